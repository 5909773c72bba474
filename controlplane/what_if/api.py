"""REST of what-ifs."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.billing.api import PARAMETERS, month_asked
from controlplane.core.errors import Invalid, in_one_pass
from controlplane.what_if.selectors import SIZES, what_if_get
from controlplane.what_if.serializers import WhatIfSerializer, what_if_body

if TYPE_CHECKING:
    from rest_framework.request import Request

LONGEST_NUMBER = 32
WHOLE, NUMBER = r"-?[0-9]+", r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
KEPT = "left out: as it was"
SIZE_PARAMETERS = [
    OpenApiParameter("bandwidth_mib_per_s", OpenApiTypes.NUMBER, description=KEPT),
    OpenApiParameter("storage_gib", OpenApiTypes.NUMBER, description=KEPT),
    OpenApiParameter("partitions", OpenApiTypes.INT, description=KEPT),
]


class WhatIfApi(APIView):
    """/api/v1/instances/{id}/what-if."""

    @extend_schema(responses=WhatIfSerializer, parameters=[*PARAMETERS, *SIZE_PARAMETERS], tags=["costs"])
    def get(self, request: Request, instance_id: str) -> Response:
        """What a month would have cost at another size or under another plan, and on how many days that is too small."""
        month, *sizes = in_one_pass(partial(month_asked, request), *(partial(_number, request, name) for name in SIZES))
        found = what_if_get(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            month=month,
            size=dict(zip(SIZES, sizes, strict=True)),
            plan=request.query_params.get("plan"),
        )
        return Response(what_if_body(found))


def _number(request: Request, name: str) -> float | None:
    """Raises Invalid."""
    text = request.query_params.get(name)
    if text is None:
        return None
    whole = name == "partitions"
    if len(text) > LONGEST_NUMBER or re.fullmatch(WHOLE if whole else NUMBER, text) is None:
        raise Invalid.field(name, "must be a whole number" if whole else "must be a number")
    return int(text) if whole else float(text)
