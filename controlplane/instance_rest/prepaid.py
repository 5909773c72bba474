"""REST of paying in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.admission import dry_runs as outlooks
from controlplane.admission import prepaid
from controlplane.admission.rules import PARTITIONS, SIZES
from controlplane.api import dry_runs, preconditions
from controlplane.billing.pricing.prepaid_prices import LEAST_MONTHS, MOST_MONTHS
from controlplane.core.errors import FieldProblem, Invalid
from controlplane.instance_rest.prepaid_serializers import (
    PrepaidBeginSerializer,
    PrepaidChangeSerializer,
    PrepaidPriceSerializer,
    PrepaidRenewSerializer,
    PrepaidSerializer,
    prepaid_body,
    price_body,
)
from controlplane.instance_rest.serializers import AcceptedSerializer
from controlplane.instances.validation import RULES

if TYPE_CHECKING:
    from rest_framework.request import Request

    from controlplane.admission.prepaid import PrepaidNow
    from controlplane.api.serializers import StrictSerializer

TAGS = ["instances"]
LONGEST_NUMBER = 32
MEASURED = ("refund",)
"""What is shown of how an instance is paid that nobody has set: it becomes less by itself."""
PARAMETERS = [
    OpenApiParameter(
        "months", {"type": "integer", "minimum": LEAST_MONTHS, "maximum": MOST_MONTHS}, description="by default 1"
    ),
    OpenApiParameter("bandwidth_mib_per_s", OpenApiTypes.NUMBER, required=True),
    OpenApiParameter("storage_gib", OpenApiTypes.NUMBER, required=True),
    OpenApiParameter("partitions", OpenApiTypes.INT, required=True),
]


class PrepaidApi(APIView):
    """/api/v1/instances/{id}/prepaid."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(
        responses={200: PrepaidSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """How the instance is paid: by the hour, or in advance up to when; what becomes of it then, what is paid back now."""
        found = prepaid.prepaid_get(organisation=caller_of(request).organisation, instance_id=instance_id)
        return _answer(request, found)

    @extend_schema(request=PrepaidBeginSerializer, responses={200: dry_runs.ANSWER, 202: AcceptedSerializer}, tags=TAGS)
    def post(self, request: Request, instance_id: str) -> Response:
        """Pay in advance, from the next full hour on. One that is isolated is opened again by it."""
        asked = _asked(request, instance_id, PrepaidBeginSerializer)
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(outlooks.beginning(**asked))
        return Response({"operation_id": prepaid.prepaid_begin(**asked).id}, status=202)

    @extend_schema(
        request=PrepaidChangeSerializer,
        responses=PrepaidSerializer,
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed()
    def patch(self, request: Request, instance_id: str) -> Response:
        """What becomes of it when what is paid has ended; by how many months it is renewed by itself."""
        asked = _asked(request, instance_id, PrepaidChangeSerializer)
        return _answer(request, prepaid.prepaid_set(**asked, check=preconditions.check_of(request, _settings)))


class PrepaidRenewApi(APIView):
    """/api/v1/instances/{id}/prepaid/renew."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(request=PrepaidRenewSerializer, responses={200: dry_runs.ANSWER, 202: AcceptedSerializer}, tags=TAGS)
    def post(self, request: Request, instance_id: str) -> Response:
        """More months behind what is paid, at the prices of now and the present size."""
        asked = _asked(request, instance_id, PrepaidRenewSerializer)
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(outlooks.renewing(**asked))
        return Response({"operation_id": prepaid.prepaid_renew(**asked).id}, status=202)


class PrepaidPriceApi(APIView):
    """/api/v1/prepaid-price."""

    @extend_schema(responses=PrepaidPriceSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """What months of a size cost in advance, before it is bought."""
        sizes = {name: _number(request, name) for name in SIZES}
        problems = [
            FieldProblem(name, problem) for name, size in sizes.items() if (problem := RULES[name](size)) is not None
        ]
        if problems:
            raise Invalid("; ".join(f"{each.field} {each.detail}" for each in problems), errors=problems)
        quote = prepaid.prepaid_quote(
            organisation=caller_of(request).organisation, months=_months(request), sizes=sizes
        )
        return Response(price_body(quote))


def _settings(now: PrepaidNow) -> dict[str, Any]:
    """With the terms that were bought."""
    return preconditions.without(prepaid_body(now), MEASURED)


def _answer(request: Request, now: PrepaidNow) -> Response:
    return preconditions.answer(request, prepaid_body(now), _settings(now))


def _asked(request: Request, instance_id: str, shape: type[StrictSerializer]) -> dict[str, Any]:
    body = shape(data=request.data)
    body.is_valid(raise_exception=True)
    caller = caller_of(request)
    return {
        "organisation": caller.organisation,
        "actor": caller.actor,
        "instance_id": instance_id,
        **body.validated_data,
    }


def _months(request: Request) -> int:
    """Raises Invalid."""
    text = request.query_params.get("months", str(LEAST_MONTHS))
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise Invalid.field("months", f"must be a whole number from {LEAST_MONTHS} to {MOST_MONTHS}")
    return int(text)


def _number(request: Request, name: str) -> float:
    """Raises Invalid."""
    text = request.query_params.get(name, "")
    try:
        if len(text) > LONGEST_NUMBER or not text.isascii() or "_" in text:
            raise ValueError(name)
        return int(text) if name == PARTITIONS else float(text)
    except ValueError as error:
        detail = "must be a whole number" if name == PARTITIONS else "must be a number"
        raise Invalid.field(name, detail) from error
