"""What is paid in advance, as JSON: money is text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.admission.prepaid import STATES
from controlplane.api.serializers import StrictBooleanField, StrictIntegerField, StrictSerializer
from controlplane.billing.pricing.documents import moment_text
from controlplane.billing.pricing.money import text_of
from controlplane.billing.pricing.prepaid import AT_END
from controlplane.billing.pricing.prepaid_prices import LEAST_MONTHS, MOST_MONTHS

if TYPE_CHECKING:
    from controlplane.admission.prepaid import PrepaidNow, Quote

CONFIRM_PRICE = (
    "the price is known: what costs more than a threshold is refused without it (price_unconfirmed), and the answer has the "
    "price"
)
AT_END_HELP = (
    "what becomes of it when what is paid has ended. expire: it is isolated, and destroyed when its grace period ends; renew: "
    "it is renewed by itself; postpaid: it goes on, paid by the hour. One that is protected against deletion goes on as well"
)


@extend_schema_field({"type": "integer", "minimum": LEAST_MONTHS, "maximum": MOST_MONTHS})
class MonthsField(StrictIntegerField):
    """Whole calendar months."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=LEAST_MONTHS, max_value=MOST_MONTHS, **options)


class AtEndField(serializers.ChoiceField):
    """One of AT_END."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=list(AT_END), help_text=AT_END_HELP, **options)


class PrepaidBeginSerializer(StrictSerializer):
    """POST: from by the hour to in advance."""

    months = MonthsField()
    at_end = AtEndField(required=False)
    confirm_price = StrictBooleanField(required=False, help_text=CONFIRM_PRICE)


class PrepaidRenewSerializer(StrictSerializer):
    """POST: more months behind what is paid."""

    months = MonthsField()
    ends_at = serializers.DateTimeField(
        help_text="the end that you have read, which this puts off. Asked again with it, the answer is the same, and nothing is "
        "paid twice; another end is refused (prepaid_changed)"
    )
    confirm_price = StrictBooleanField(required=False, help_text=CONFIRM_PRICE)


class PrepaidChangeSerializer(StrictSerializer):
    """PATCH: what is left out stays."""

    not_empty = True

    at_end = AtEndField(required=False)
    renew_months = MonthsField(required=False, help_text="at a time, where it is renewed by itself")


class PaidTermSerializer(serializers.Serializer[Any]):
    """Months that were bought or renewed together."""

    locals().update({"from": serializers.CharField(help_text="UTC, included: a full hour")})
    to = serializers.CharField(help_text="UTC, not included")
    months = serializers.IntegerField()
    prices = serializers.CharField(help_text="the price list with which it was paid")
    prices_version = serializers.IntegerField()


class RefundSerializer(serializers.Serializer[Any]):
    """What would be paid back if the instance was deleted now."""

    currency = serializers.CharField()
    amount = serializers.CharField()
    five_days = serializers.BooleanField(
        help_text="all of it, by the five-day rule, which an organisation may use once; else the days that are left"
    )


class PrepaidSerializer(serializers.Serializer[Any]):
    """How an instance is paid."""

    state = serializers.ChoiceField(
        choices=list(STATES),
        help_text="waiting: months were bought, and begin when the instance is open; nothing is charged before",
    )
    ends_at = serializers.CharField(allow_null=True, help_text="up to when it is paid; null: by the hour, or it waits")
    at_end = serializers.ChoiceField(choices=list(AT_END), help_text=AT_END_HELP)
    renew_months = serializers.IntegerField(help_text="at a time, where it is renewed by itself")
    terms = PaidTermSerializer(many=True)
    refund = RefundSerializer(allow_null=True, help_text="null: nothing is paid in advance")


class PricedItemSerializer(serializers.Serializer[Any]):
    """One item of a price."""

    item = serializers.CharField()
    quantity = serializers.CharField()
    unit = serializers.CharField()
    unit_price = serializers.CharField()
    amount = serializers.CharField()


class PrepaidPriceSerializer(serializers.Serializer[Any]):
    """What months of a size cost in advance, at the prices of now."""

    months = serializers.IntegerField()
    currency = serializers.CharField()
    amount = serializers.CharField(help_text="of all months")
    per_month = serializers.CharField()
    prices = serializers.CharField(help_text="the price list")
    prices_version = serializers.IntegerField()
    items = PricedItemSerializer(many=True)


def prepaid_body(now: PrepaidNow) -> dict[str, Any]:
    """As PrepaidSerializer has it."""
    terms = now.account.terms
    return {
        "state": now.state,
        "ends_at": now.ends_text,
        "at_end": now.at_end,
        "renew_months": now.renew_months,
        "terms": [
            {
                "from": moment_text(term.start),
                "to": moment_text(term.end),
                "months": term.months,
                "prices": term.prices.name,
                "prices_version": term.prices.version,
            }
            for term in terms
        ],
        "refund": {
            "currency": terms[-1].prices.currency,
            "amount": text_of(now.refund),
            "five_days": now.is_five_days,
        }
        if terms
        else None,
    }


def price_body(quote: Quote) -> dict[str, Any]:
    """As PrepaidPriceSerializer has it."""
    return {
        "months": quote.months,
        "currency": quote.prices.currency,
        "amount": text_of(quote.amount),
        "per_month": text_of(quote.a_month),
        "prices": quote.prices.name,
        "prices_version": quote.prices.version,
        "items": [
            {
                "item": entry.item,
                "quantity": str(entry.units * quote.months),
                "unit": entry.unit,
                "unit_price": text_of(entry.unit_price),
                "amount": text_of(amount),
            }
            for entry, amount in quote.lines
        ],
    }
