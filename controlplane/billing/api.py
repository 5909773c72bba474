"""REST of bills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.billing import documents, selectors
from controlplane.billing.plans import NAMES, Plan
from controlplane.billing.rating import Month
from controlplane.billing.serializers import BillSerializer
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from rest_framework.request import Request

PARAMETERS = [
    OpenApiParameter("month", OpenApiTypes.STR, description="YYYY-MM, UTC; default: the present one"),
    OpenApiParameter("plan", OpenApiTypes.STR, enum=list(NAMES), description="what it would be under another plan"),
]


class BillApi(APIView):
    """/api/v1/instances/{id}/bill."""

    @extend_schema(responses=BillSerializer, parameters=PARAMETERS, tags=["bill"])
    def get(self, request: Request, instance_id: str) -> Response:
        """The bill of a month: so far, or as invoiced. It can be had after the instance is deleted, too."""
        bill = selectors.bill_get(
            organisation=request.user.organisation,
            instance_id=instance_id,
            month=month_asked(request),
            plan=request.query_params.get("plan"),
        )
        return Response(_shown(bill))


def month_asked(request: Request) -> Month:
    """`month`. Raises Invalid."""
    text = request.query_params.get("month")
    if text is None:
        return Month.of(SYSTEM_CLOCK.now())
    try:
        return documents.month_of(text)
    except ValueError as error:
        raise Invalid.field("month", str(error)) from error


def _shown(bill: selectors.Bill) -> dict[str, Any]:
    return {
        "instance_id": bill.instance_id,
        "month": str(bill.month),
        "plan": bill.plan,
        "plans": [
            {
                "plan": span.plan.name,
                "version": span.plan.version,
                "title": span.plan.title,
                "from": documents.moment_text(span.start),
                "to": documents.moment_text(span.end),
            }
            for span in bill.spans
        ],
        "currency": bill.currency,
        "total": bill.total,
        "lines": [_line(bill.instance_id, bill.spans[-1].plan, line) for line in bill.lines],
        "so_far": bill.invoice is None,
        "input_hash": bill.invoice.input_hash if bill.invoice else None,
    }


def _line(instance_id: str, plan: Plan, line: dict[str, Any]) -> dict[str, Any]:
    """Invoices of the first kind had one plan, and their lines did not say which."""
    usage = f"/api/v1/instances/{instance_id}/usage?{urlencode({'from': line['from'], 'to': line['to']})}"
    return {"plan": plan.name, "plan_version": plan.version, "adjusts": None, **line, "usage": usage}
