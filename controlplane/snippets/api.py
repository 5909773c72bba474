"""REST of snippets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.snippets import selectors
from controlplane.snippets.serializers import SnippetQuerySerializer, SnippetsSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request

TAGS = ["routes"]


class SnippetsApi(APIView):
    """/api/v1/instances/{id}/snippets."""

    @extend_schema(responses=SnippetsSerializer, parameters=[SnippetQuerySerializer], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Programs to paste for clients of the instance: they write a record and read, by a route and its security.

        Without `client` the list of clients alone. No secret is in them: words stand where the reader's own belong.
        """
        query = _query(request)
        client = query.get("client", "")
        found = selectors.guide_get(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            route_id=query.get("route", ""),
            topic=query.get("topic", ""),
            mechanism=query.get("mechanism", ""),
        )
        body = {
            "route": found.route,
            "mechanism": found.mechanism,
            "bootstrap": found.bootstrap,
            "topic": found.topic,
            "snippets": found.snippets,
            "snippet": next((each for each in found.snippets if each.key == client), None),
        }
        return Response(SnippetsSerializer(body).data)


def _query(request: Request) -> dict[str, Any]:
    said = {name: value for name, value in request.query_params.items() if name in SnippetQuerySerializer().fields}
    query = SnippetQuerySerializer(data=said)
    query.is_valid(raise_exception=True)
    found: dict[str, Any] = query.validated_data
    return found
