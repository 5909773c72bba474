"""REST of search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.search import matching, selectors
from controlplane.search.serializers import (
    SearchItemSerializer,
    SearchKindSerializer,
    SearchQuerySerializer,
    SearchSerializer,
)

if TYPE_CHECKING:
    from rest_framework.request import Request


class SearchApi(APIView):
    """/api/v1/search."""

    @extend_schema(responses=SearchSerializer, parameters=[SearchQuerySerializer], tags=["search"])
    def get(self, request: Request) -> Response:
        """Look for a text in everything that the key may see: names, ids, notes, addresses.

        An exact name comes first, then what begins with the text, then where it begins a word. No broker is asked.
        """
        said = {name: value for name, value in request.query_params.items() if name in SearchQuerySerializer().fields}
        query = SearchQuerySerializer(data=said)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        found = selectors.search(
            caller=caller_of(request),
            wanted=matching.asked(asked["q"]),
            kind=asked.get("kind", ""),
            most=asked["limit"],
            here=asked.get("instance_id", ""),
        )
        items = [hit for each in found for hit in each.hits]
        return Response(
            {
                "items": SearchItemSerializer(items, many=True).data,
                "kinds": SearchKindSerializer(found, many=True).data,
            }
        )
