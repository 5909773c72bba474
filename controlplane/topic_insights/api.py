"""REST of what a topic holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.topic_insights.figures import topic_figures
from controlplane.topic_insights.serializers import TopicFiguresSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request


class TopicFiguresApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/figures."""

    @extend_schema(responses=TopicFiguresSerializer, tags=["topics"])
    def get(self, request: Request, instance_id: str, topic: str) -> Response:
        """Size, records, offsets, last write, flow, skew, groups and hints, as brokers and the meter know them at this moment."""
        found = topic_figures(organisation=caller_of(request).organisation, instance_id=instance_id, name=topic)
        return Response(TopicFiguresSerializer(found).data)
