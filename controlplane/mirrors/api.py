"""REST of mirrors. The list has no pages: an instance has one mirror, or a few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.mirrors import selectors
from controlplane.mirrors.serializers import MirrorsSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request


class MirrorsApi(APIView):
    """/api/v1/instances/{id}/mirrors."""

    @extend_schema(responses=MirrorsSerializer, tags=["mirrors"])
    def get(self, request: Request, instance_id: str) -> Response:
        """Mirrors that copy into the instance, by the last that each has said: lag, rates, offsets of both sides.

        What is read for it, a few records of the topic mirror-status, counts as consumed by the instance.
        """
        found = selectors.mirrors_read(organisation=caller_of(request).organisation, instance_id=instance_id)
        return Response(MirrorsSerializer({"items": found}).data)
