"""REST of the audit trail: who asked for which change, from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.api import pagination
from controlplane.api.ranges import moment_of
from controlplane.core import selectors
from controlplane.core.errors import Invalid
from controlplane.core.serializers import AuditTrailEntrySerializer, AuditTrailPageSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request

_WORDS = {
    "actor": "an email, or `system`",
    "action": "such as `topic.create`; `topic` is every action on topics",
    "target": "what was changed, whole",
}
PARAMETERS = [
    *(OpenApiParameter(name, OpenApiTypes.STR, description=words) for name, words in _WORDS.items()),
    OpenApiParameter("from", OpenApiTypes.STR, description="from this moment on: RFC 3339 or a date, UTC"),
    OpenApiParameter("to", OpenApiTypes.STR, description="before this moment"),
    *pagination.PARAMETERS,
]


class AuditTrailApi(APIView):
    """/api/v1/audit."""

    @extend_schema(responses=AuditTrailPageSerializer, parameters=PARAMETERS, tags=["organisation"])
    def get(self, request: Request) -> Response:
        """Changes that were asked for in the organisation, the newest first."""
        words = {name: request.query_params.get(name, "") for name in _WORDS}
        for name, word in words.items():
            if not pagination.can_be_asked(word):
                raise Invalid.field(name, "is no text")
        rows = selectors.audit_list(
            organisation=request.user.organisation,
            start=moment_of(request, "from"),
            end=moment_of(request, "to"),
            **words,
        )
        before, limit = pagination.place_page(request)
        if before is not None:
            rows = rows.filter(pk__lt=before)
        found = list(rows[: limit + 1])
        following = pagination.place_cursor(found[limit - 1].pk if len(found) > limit else None)
        return Response(pagination.body(AuditTrailEntrySerializer(found[:limit], many=True).data, following))
