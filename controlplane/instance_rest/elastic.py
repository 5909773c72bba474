"""REST of elastic bandwidth."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.admission import elastic
from controlplane.api import dry_runs, preconditions
from controlplane.api.serializers import NumberField, StrictCharField, StrictSerializer
from controlplane.billing.pricing.money import text_of
from controlplane.instance_rest.serializers import AcceptedSerializer
from controlplane.instances.validation import MOST_BANDWIDTH_MIB_PER_S

if TYPE_CHECKING:
    from rest_framework.request import Request

    from controlplane.admission.elastic import ElasticNow
    from controlplane.instances.models import Instance

TAGS = ["instances"]
AMOUNT_PATTERN = r"^[0-9]{1,9}(\.[0-9]{1,2})?$"


@extend_schema_field(
    {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": MOST_BANDWIDTH_MIB_PER_S, "nullable": True}
)
class CapField(NumberField):
    """Up to which bandwidth; null is off."""


@extend_schema_field({"type": "string", "pattern": AMOUNT_PATTERN, "nullable": True})
class BudgetField(StrictCharField):
    """Money as text."""

    def to_internal_value(self, data: Any) -> Decimal:  # type: ignore[override]
        text = super().to_internal_value(data)
        if re.fullmatch(AMOUNT_PATTERN, text) is None:
            raise serializers.ValidationError("must be an amount such as 100.00")
        return Decimal(text)


class ElasticChangeSerializer(StrictSerializer):
    """PUT: all of it."""

    cap_mib_per_s = CapField(
        allow_null=True, help_text="of each direction: above the bandwidth limit, and at most twice as much; null: off"
    )
    budget_per_month = BudgetField(
        allow_null=True,
        required=False,
        default=None,
        help_text='such as "100.00", in the currency of the plan; when it is used up it is off until the month ends. null: '
        "no budget",
    )


class ElasticSerializer(serializers.Serializer[Any]):
    """The setting, its prices, and this month."""

    state = serializers.ChoiceField(choices=list(elastic.STATES), help_text="spent: off until `off_until`")
    cap_mib_per_s = NumberField(allow_null=True)
    budget_per_month = serializers.CharField(allow_null=True)
    off_until = serializers.DateTimeField(allow_null=True)
    currency = serializers.CharField(allow_null=True, help_text="null, as prices: there is none under this plan")
    produced_per_gb = serializers.CharField(allow_null=True)
    consumed_per_gb = serializers.CharField(allow_null=True)
    month = serializers.CharField()
    produced_bytes = serializers.IntegerField(help_text="above the bandwidth limit, this month")
    consumed_bytes = serializers.IntegerField()
    cost = serializers.CharField(help_text="of them, so far")


class ElasticApi(APIView):
    """/api/v1/instances/{id}/elastic-bandwidth."""

    @extend_schema(
        responses={200: ElasticSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """Whether the instance may go above its bandwidth, up to which cap, what that costs and has cost this month."""
        now = elastic.elastic_get(organisation=caller_of(request).organisation, instance_id=instance_id)
        return preconditions.answer(request, elastic_body(now), _settings(now.instance))

    @extend_schema(
        request=ElasticChangeSerializer,
        responses={202: AcceptedSerializer},
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed()
    def put(self, request: Request, instance_id: str) -> Response:
        """A cap above the bought bandwidth, billed by the GB, and a budget of the month; or off."""
        body = ElasticChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        operation = elastic.elastic_set(
            organisation=caller.organisation,
            actor=caller.actor,
            instance_id=instance_id,
            check=preconditions.check_of(request, _settings),
            **body.validated_data,
        )
        return Response({"operation_id": operation.id}, status=202)


def _settings(instance: Instance) -> dict[str, Any]:
    """What somebody has set of it."""
    budget = instance.elastic_budget
    return {
        "cap_mib_per_s": instance.elastic_mib_per_s,
        "budget_per_month": None if budget is None else f"{budget:.2f}",
    }


def elastic_body(now: ElasticNow) -> dict[str, Any]:
    """As ElasticSerializer has it."""
    instance, prices = now.instance, now.prices
    return dict(
        ElasticSerializer(
            {
                "state": now.state,
                **_settings(instance),
                "off_until": instance.elastic_off_until,
                "currency": prices and prices.currency,
                "produced_per_gb": prices and text_of(prices.produced_per_gb),
                "consumed_per_gb": prices and text_of(prices.consumed_per_gb),
                "month": str(now.month),
                "produced_bytes": now.produced_bytes,
                "consumed_bytes": now.consumed_bytes,
                "cost": text_of(now.cost),
            }
        ).data
    )
