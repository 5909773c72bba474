"""REST of the organisation's plan: which one it has, which ones there are, and choosing another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import BillingPermission, caller_of
from controlplane.api import dry_runs
from controlplane.api.serializers import StrictCharField, StrictSerializer
from controlplane.billing import selectors
from controlplane.billing.pricing.documents import moment_text
from controlplane.billing.pricing.elastic import elastic_prices_on
from controlplane.billing.pricing.plans import Plan, month_day, plans_on
from controlplane.billing.pricing.prepaid_prices import prices_on
from controlplane.billing.pricing.rating import Month
from controlplane.billing.services import NEXT_MONTH, NOW, plan_choose
from controlplane.core.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from datetime import date, datetime

    from rest_framework.request import Request

    from controlplane.tenants.models import Organisation

PRICES_HELP = "unit prices as decimals in text"


class PlanSerializer(serializers.Serializer[Any]):
    """A plan."""

    name = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField()
    currency = serializers.CharField()


class PlanToComeSerializer(PlanSerializer):
    """A plan that was chosen, and from when on it is in force."""

    at = serializers.DateTimeField()


class PlanOfferedSerializer(PlanSerializer):
    """A plan with its price lists."""

    prices = serializers.DictField(help_text=PRICES_HELP)
    in_advance = serializers.DictField(allow_null=True, help_text=f"{PRICES_HELP}; null: nothing is paid in advance")
    elastic = serializers.DictField(allow_null=True, help_text=f"{PRICES_HELP}; null: bandwidth is not bought")


class PlansSerializer(serializers.Serializer[Any]):
    """How the organisation pays."""

    plan = PlanSerializer(help_text="in force now")
    next = PlanToComeSerializer(allow_null=True, help_text="null: no change is to come")
    offered = PlanOfferedSerializer(many=True, help_text="what can be chosen for the next month, at its prices")


class PlanChoiceSerializer(StrictSerializer):
    """PUT: another plan."""

    plan = StrictCharField(max_length=32)
    when = serializers.ChoiceField(
        choices=[NOW, NEXT_MONTH],
        default=NOW,
        help_text="now: from the next full hour. A plan in another currency counts from the next month",
    )


class PlanApi(APIView):
    """/api/v1/plan."""

    permission_classes = (BillingPermission,)

    @extend_schema(operation_id="plan_get", responses=PlansSerializer, tags=["bill"])
    def get(self, request: Request) -> Response:
        """The plan of the organisation, a change that is to come, and what can be chosen, with prices in every currency."""
        return Response(_plans(caller_of(request).organisation, SYSTEM_CLOCK.now()))

    @extend_schema(operation_id="plan_choose", request=PlanChoiceSerializer, responses=PlansSerializer, tags=["bill"])
    @dry_runs.rehearsed()
    def put(self, request: Request) -> Response:
        """Another plan, for hours that have not begun. It takes the place of a change that is to come."""
        body = PlanChoiceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        plan_choose(organisation=caller.organisation, actor=caller.actor, **body.validated_data)
        return Response(_plans(caller.organisation, SYSTEM_CLOCK.now()))


def _plans(organisation: Organisation, now: datetime) -> dict[str, Any]:
    state = selectors.plan_state(organisation=organisation, at=now)
    choice = state.following
    following = choice and {
        **_plan(selectors.plan_named(choice.plan, choice.at)),
        "at": moment_text(choice.at),
    }
    day = month_day(Month.of(now).end)
    return {
        "plan": _plan(state.present),
        "next": following,
        "offered": [_offered(plan, day) for plan in plans_on(day)],
    }


def _plan(plan: Plan) -> dict[str, Any]:
    return {"name": plan.name, "version": plan.version, "title": plan.title, "currency": plan.currency}


def _offered(plan: Plan, day: date) -> dict[str, Any]:
    try:
        in_advance: dict[str, Any] | None = prices_on(plan.name, day).document()
    except LookupError:
        in_advance = None
    elastic = elastic_prices_on(plan.name, day)
    return {
        **_plan(plan),
        "prices": plan.document(),
        "in_advance": in_advance,
        "elastic": elastic and elastic.document(),
    }
