"""REST of the audit trail: who asked for which change, from where; whether it is as it was written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.api import filters, pagination
from controlplane.api.ranges import span_of
from controlplane.core import selectors
from controlplane.core.audit_file import CONTENT_TYPE, audit_file
from controlplane.core.audit_sealing import verify
from controlplane.core.errors import Invalid
from controlplane.core.serializers import (
    AuditTrailEntrySerializer,
    AuditTrailPageSerializer,
    AuditVerificationSerializer,
)

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
HASH = re.compile("[0-9a-f]{64}")
MOST_NUMBER = 2**63 - 1
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


class AuditVerifyApi(APIView):
    """/api/v1/audit/verify."""

    @extend_schema(
        responses=AuditVerificationSerializer,
        parameters=[
            OpenApiParameter(
                "after",
                {"type": "integer", "minimum": 0, "maximum": MOST_NUMBER, "default": 0},
                description="the number of an entry: those behind it are looked at; default 0, from the first on",
            ),
            OpenApiParameter(
                "hash",
                {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                description="what you know the hash of that entry to be; goes with `after`",
            ),
        ],
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        """Whether the audit trail is as it was written: its chain, computed again, up to 1,000 entries at a time."""
        found = verify(organisation=request.user.organisation, after=_after(request), kept_hash=_kept_hash(request))
        return Response(AuditVerificationSerializer(found).data)


def _after(request: Request) -> int:
    text = request.query_params.get("after", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MOST_NUMBER):
        raise Invalid.field("after", "must be a whole number of 0 or more")
    return int(text)


def _kept_hash(request: Request) -> str:
    text: str = request.query_params.get("hash", "")
    if "hash" in request.query_params and not HASH.fullmatch(text):
        raise Invalid.field("hash", "must be 64 hexadecimal digits")
    return text


def _asked(request: Request) -> QuerySet[AuditEntry]:
    start, end = span_of(request)
    return selectors.audit_list(
        organisation=request.user.organisation,
        start=start,
        end=end,
        **{name: filters.text_of(request, name) for name in _WORDS},
    )
