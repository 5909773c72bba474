"""REST of the audit trail: who asked for which change, from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.api import filters, pagination
from controlplane.api.ranges import moment_of
from controlplane.core import selectors
from controlplane.core.audit_file import CONTENT_TYPE, audit_file
from controlplane.core.serializers import AuditTrailEntrySerializer, AuditTrailPageSerializer

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import StreamingHttpResponse
    from rest_framework.request import Request

    from controlplane.core.models import AuditEntry

_WORDS = {
    "actor": "an email, or `system`",
    "action": "such as `topic.create`; `topic` is every action on topics",
    "target": "what was changed, whole",
}
PARAMETERS = [
    *(filters.text_parameter(name, words) for name, words in _WORDS.items()),
    filters.text_parameter("from", "from this moment on: RFC 3339 or a date, UTC"),
    filters.text_parameter("to", "before this moment"),
]


class AuditTrailApi(APIView):
    """/api/v1/audit."""

    @extend_schema(
        responses=AuditTrailPageSerializer, parameters=[*PARAMETERS, *pagination.PARAMETERS], tags=["organisation"]
    )
    def get(self, request: Request) -> Response:
        """Changes that were asked for in the organisation, the newest first."""
        rows = _asked(request)
        before, limit = pagination.place_page(request)
        if before is not None:
            rows = rows.filter(pk__lt=before)
        found = list(rows[: limit + 1])
        following = pagination.place_cursor(found[limit - 1].pk if len(found) > limit else None)
        return Response(pagination.body(AuditTrailEntrySerializer(found[:limit], many=True).data, following))


class AuditTrailFileApi(APIView):
    """/api/v1/audit.csv."""

    @extend_schema(
        operation_id="audit_file_get",
        responses={
            (200, CONTENT_TYPE): OpenApiResponse(
                OpenApiTypes.STR,
                description="a header and a row for each entry; `detail` is JSON, and what a spreadsheet would compute has an "
                "apostrophe before it",
            )
        },
        parameters=PARAMETERS,
        tags=["organisation"],
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """All changes that were asked for in the organisation, the newest first, as CSV."""
        return audit_file(_asked(request))


def _asked(request: Request) -> QuerySet[AuditEntry]:
    return selectors.audit_list(
        organisation=request.user.organisation,
        start=moment_of(request, "from"),
        end=moment_of(request, "to"),
        **{name: filters.text_of(request, name) for name in _WORDS},
    )
