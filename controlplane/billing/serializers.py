"""Bills as JSON: decimals are strings."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import StrictCharField, StrictSerializer
from controlplane.billing.pricing.plans import NAMES
from controlplane.billing.pricing.prepaid import CHARGES
from controlplane.billing.pricing.sharing import REASONS, USER_KINDS
from controlplane.billing.waiting import STATES

CREDIT_PATTERN = r"^[0-9]{1,20}(\.[0-9]{1,2})?$"


class LineSerializer(serializers.Serializer[Any]):
    """Quantity times unit price, rounded to the currency's cents."""

    item = serializers.CharField(
        help_text="bandwidth, disk or partitions; prepaid_bandwidth, prepaid_disk or prepaid_partitions; produced, consumed "
        "or stored; elastic_produced or elastic_consumed; guarantee_credit, which is negative; tax, on the net total"
    )
    quantity = serializers.CharField()
    unit = serializers.CharField()
    unit_price = serializers.CharField()
    amount = serializers.CharField()


class AdjustsSerializer(serializers.Serializer[Any]):
    """What a line adjusts: usage of these hours became known after that invoice was written."""

    invoice = serializers.CharField(help_text="its number")
    month = serializers.CharField()
    line = serializers.IntegerField(allow_null=True, help_text="counted from 1; null: the invoice has no such line")


class ChargedSerializer(serializers.Serializer[Any]):
    """Why and when something was charged in advance."""

    kind = serializers.ChoiceField(
        choices=list(CHARGES),
        help_text="growth: for a larger size, up to the end of what is paid; refund: given back, the amount is negative",
    )
    at = serializers.DateTimeField()


class PlacedLineSerializer(LineSerializer):
    """A line and the hours it covers."""

    locals().update({"from": serializers.CharField(help_text="UTC, included")})
    to = serializers.CharField(help_text="UTC, not included")
    plan = serializers.CharField(help_text="the plan in force in these hours")
    plan_version = serializers.IntegerField()
    adjusts = AdjustsSerializer(
        allow_null=True,
        help_text="null: a line of this month. Adjustments may be negative, and have no exact unit price",
    )
    charged = ChargedSerializer(
        allow_null=True,
        help_text="null: billed by the hour or by use. What is paid in advance is charged in the month in which it is paid, and "
        "covers hours of other months",
    )
    usage = serializers.CharField(help_text="path of the usage rows of these hours")


class BillPlanSerializer(serializers.Serializer[Any]):
    """A plan, and the hours of the month that it prices."""

    plan = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField()
    locals().update({"from": serializers.CharField(help_text="UTC, included")})
    to = serializers.CharField(help_text="UTC, not included")


class AdjustmentSerializer(serializers.Serializer[Any]):
    """A line of a later invoice."""

    invoice = serializers.CharField(help_text="its number")
    month = serializers.CharField()
    line = PlacedLineSerializer()


class BillSerializer(serializers.Serializer[Any]):
    """One instance, one month in UTC."""

    instance_id = serializers.CharField()
    month = serializers.CharField()
    plan = serializers.ChoiceField(choices=list(NAMES), help_text="the last one of the month")
    plans = BillPlanSerializer(many=True)
    currency = serializers.CharField()
    total = serializers.CharField()
    lines = PlacedLineSerializer(many=True)
    so_far = serializers.BooleanField(help_text="false once the month is invoiced: nothing changes any more")
    state = serializers.ChoiceField(
        choices=list(STATES),
        help_text="open: the month is not over; waiting_for_metering: it is, and not all of its usage has been counted; "
        "closing: all has, and the invoice is written six hours after the month's end; invoiced; nothing: the instance "
        "was not there",
    )
    counted_until = serializers.DateTimeField(
        allow_null=True, help_text="while it waits for metering: all usage before this moment has been counted"
    )
    invoice = serializers.CharField(allow_null=True, help_text="number of the invoice")
    metering = serializers.ChoiceField(
        choices=["complete", "waived"],
        allow_null=True,
        help_text="waived: the invoice was written before all usage was counted; the rest is adjusted on a later one",
    )
    adjusted_by = AdjustmentSerializer(many=True, help_text="lines of later invoices that adjust this one")
    input_hash = serializers.CharField(allow_null=True, help_text="SHA-256 of what the invoice was computed from")


class CreditedSerializer(serializers.Serializer[Any]):
    """A credit note of an invoice, shortly."""

    number = serializers.CharField()
    amount = serializers.CharField()
    created_at = serializers.DateTimeField()


class InvoiceSerializer(serializers.Serializer[Any]):
    """A month of one instance, closed."""

    number = serializers.CharField(help_text="without gaps within the organisation")
    instance_id = serializers.CharField()
    month = serializers.CharField()
    currency = serializers.CharField()
    total = serializers.CharField(help_text="negative where more is paid back than billed")
    credited = serializers.CharField(help_text="what its credit notes give back; the total stays as it is")
    credit_notes = CreditedSerializer(many=True)
    created_at = serializers.DateTimeField()
    hash = serializers.CharField(help_text="SHA-256 of the invoice and of the hash of the one before")
    previous_hash = serializers.CharField()


class InvoicePageSerializer(serializers.Serializer[Any]):
    """An organisation's invoices, a page at a time."""

    items = InvoiceSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class InvoiceLinesSerializer(InvoiceSerializer):
    """One invoice with its lines."""

    lines = PlacedLineSerializer(many=True)
    input_hash = serializers.CharField(help_text="SHA-256 of what it was computed from")


class CreditedTaxSerializer(serializers.Serializer[Any]):
    """How much of a tax of the invoice is in a credit note."""

    name = serializers.CharField(help_text='as the invoice calls it, such as "VAT"')
    rate = serializers.CharField(help_text="its share of the net amount, such as 0.06")
    amount = serializers.CharField()


class CreditNoteSerializer(serializers.Serializer[Any]):
    """A part or all of one invoice, given back by an operator. The invoice stays as it is."""

    number = serializers.CharField(help_text="without gaps within the organisation")
    invoice = serializers.CharField(help_text="number of the invoice that it is about")
    instance_id = serializers.CharField()
    month = serializers.CharField(help_text="the invoice's")
    currency = serializers.CharField()
    amount = serializers.CharField(help_text="what is given back, above 0, with its tax")
    tax = serializers.CharField(help_text="how much of the amount is tax: the sum of `taxes`")
    taxes = CreditedTaxSerializer(many=True, help_text="one for each tax of the invoice")
    reason = serializers.CharField()
    actor = serializers.CharField(help_text="the operator")
    created_at = serializers.DateTimeField()
    hash = serializers.CharField(
        help_text="SHA-256 of the credit note, of the hash of its invoice and of that of the note before"
    )
    previous_hash = serializers.CharField()


class InvoiceCreditSerializer(serializers.Serializer[Any]):
    """What was given back of one invoice, and what is left of it."""

    invoice = serializers.CharField(help_text="its number")
    currency = serializers.CharField()
    total = serializers.CharField()
    credited = serializers.CharField(help_text="what all credit notes give back together")
    left = serializers.CharField(help_text="so much can still be given back")
    credit_notes = CreditNoteSerializer(many=True)


class CreditNotePageSerializer(serializers.Serializer[Any]):
    """An organisation's credit notes, a page at a time."""

    items = CreditNoteSerializer(many=True)
    next = serializers.CharField(allow_null=True)


@extend_schema_field({"type": "string", "pattern": CREDIT_PATTERN})
class CreditField(StrictCharField):
    """Money as text. What is left of the invoice is the service's to judge."""

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ValidationError."""
        text = super().to_internal_value(data)
        if re.fullmatch(CREDIT_PATTERN, text) is None or Decimal(text) <= 0:
            raise serializers.ValidationError("must be an amount above 0 with at most two decimals")
        return text


class CreditNoteRequestSerializer(StrictSerializer):
    """POST: how much of the invoice is given back, and why."""

    amount = CreditField(
        max_length=24, help_text='in the invoice\'s currency, such as "120.00"; at most what is left of it'
    )
    reason = StrictCharField(max_length=1000, help_text="for the tenant, and for the audit trail; one line")


class DifferenceSerializer(serializers.Serializer[Any]):
    """What is not as it was."""

    invoice = serializers.CharField()
    code = serializers.ChoiceField(
        choices=[
            "number",
            "chain",
            "hash",
            "inputs",
            "line",
            "total",
            "credited",
            "price_list",
            "plans",
            "sizes",
            "prepaid",
            "elastic",
            "guarantee",
            "tax",
            "usage",
        ],
        help_text="number to credited: the invoice or one of its credit notes is damaged; the others: its month looks different "
        "today",
    )
    detail = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    item = serializers.CharField(allow_null=True)
    invoiced = serializers.CharField(allow_null=True)
    recomputed = serializers.CharField(allow_null=True)
    credit_note = serializers.CharField(allow_null=True, help_text="its number, where it is about one of the notes")


class RawDifferenceSerializer(serializers.Serializer[Any]):
    """A counter of an hour that is not what the raw records say."""

    hour = serializers.CharField()
    against = serializers.CharField(help_text="database, or invoices")
    topic = serializers.CharField(help_text="empty: of all together")
    counter = serializers.CharField()
    recomputed = serializers.CharField()
    known = serializers.CharField()


class RawComparedSerializer(serializers.Serializer[Any]):
    """What was recomputed from the raw records of usage, day by day."""

    compared = serializers.ListField(child=serializers.DateField(), help_text="days that were")
    not_compared = serializers.ListField(
        child=serializers.DateField(), help_text="days that were not, or not all of them"
    )
    at = serializers.DateTimeField(allow_null=True, help_text="when: the oldest of them; null: none was")
    differences = RawDifferenceSerializer(many=True)


class VerificationSerializer(serializers.Serializer[Any]):
    """Whether an invoice is what its rows give."""

    equal = serializers.BooleanField()
    differences = DifferenceSerializer(many=True)
    raw = RawComparedSerializer()


class WaitedForSerializer(serializers.Serializer[Any]):
    """A broker that has not told all that it counted in the month."""

    broker = serializers.IntegerField()
    hours_from = serializers.DateTimeField(
        source="start", allow_null=True, help_text="hours from here on are not told; null: it has told of none"
    )
    hours_to = serializers.DateTimeField(source="end", help_text="up to which it must come")
    boots = serializers.ListField(
        child=serializers.CharField(),
        help_text="starts of the broker that these hours are about, as far as they are known",
    )
    why = serializers.CharField(source="sentence")


class WaitingMonthSerializer(serializers.Serializer[Any]):
    """A month that is over, and whose invoices wait for the metering of a cluster."""

    month = serializers.CharField()
    cluster = serializers.CharField(help_text="whose metering they wait for")
    invoices = serializers.IntegerField(help_text="that wait")
    why = serializers.CharField(help_text="what is missing first")
    brokers = WaitedForSerializer(many=True)


class WaitingMonthPageSerializer(serializers.Serializer[Any]):
    """All of them, the oldest first; at most 24 of each cluster."""

    items = WaitingMonthSerializer(many=True)


class TaxSerializer(serializers.Serializer[Any]):
    """The tax on invoices from a month on."""

    id = serializers.IntegerField()
    organisation_id = serializers.CharField(allow_null=True, help_text="null: everybody's")
    month = serializers.CharField(help_text="the first")
    name = serializers.CharField(help_text="as invoices call it")
    rate = serializers.DecimalField(None, None, help_text="a share, as text: 0.06; 0: exempt")
    actor = serializers.CharField()
    at = serializers.DateTimeField()


class TaxPageSerializer(serializers.Serializer[Any]):
    """Taxes, a page at a time."""

    items = TaxSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class WaiverRequestSerializer(StrictSerializer):
    """What shall not wait for metering."""

    month = StrictCharField(max_length=7, help_text="YYYY-MM: a month that is over")
    instance_id = StrictCharField(
        max_length=32, allow_null=True, required=False, default=None, help_text="null: every instance's invoice"
    )
    cluster = StrictCharField(
        max_length=64,
        allow_null=True,
        required=False,
        default=None,
        help_text="whose instances' invoices; null: of every cluster",
    )
    reason = StrictCharField(max_length=1000, help_text="for the audit trail")


class WaiverSerializer(serializers.Serializer[Any]):
    """An operator's word that invoices shall not wait for metering."""

    id = serializers.IntegerField()
    month = serializers.CharField()
    cluster = serializers.CharField(help_text="empty: every cluster")
    instance_id = serializers.CharField(allow_null=True)
    actor = serializers.CharField()
    reason = serializers.CharField()
    at = serializers.DateTimeField()


class WaiverPageSerializer(serializers.Serializer[Any]):
    """Months and invoices that do not wait for metering, a page at a time."""

    items = WaiverSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class RecentSerializer(serializers.Serializer[Any]):
    """The counted hours whose average the forecast goes by."""

    locals().update({"from": serializers.DateTimeField(source="start", help_text="UTC, included")})
    to = serializers.DateTimeField(source="end", help_text="UTC, not included")
    hours = serializers.IntegerField(help_text="0: nothing is known yet of how the instance is used")


class ItemCostSerializer(serializers.Serializer[Any]):
    """An item of a bill."""

    item = serializers.CharField(help_text="as in a bill, or adjustments of earlier months")
    so_far = serializers.CharField()
    forecast = serializers.CharField()


class CostSerializer(serializers.Serializer[Any]):
    """What a month of an instance has cost so far, and at its end if it goes on as in the last seven days."""

    instance_id = serializers.CharField()
    month = serializers.CharField()
    currency = serializers.CharField()
    so_far = serializers.CharField(help_text="the total of the bill")
    forecast = serializers.CharField(
        help_text="at the month's end: the present size and the chosen plans go on, and each hour that is not counted yet "
        "uses the average of `based_on`"
    )
    state = serializers.ChoiceField(choices=list(STATES))
    counted_until = serializers.DateTimeField(help_text="hours before have been counted, as far as is known")
    based_on = RecentSerializer(allow_null=True, help_text="null: the month is invoiced")
    items = ItemCostSerializer(many=True)


class AmountSerializer(serializers.Serializer[Any]):
    """A part of an amount."""

    item = serializers.CharField()
    amount = serializers.CharField()


class TopicCostSerializer(serializers.Serializer[Any]):
    """A topic's part of a bill."""

    topic = serializers.CharField()
    amount = serializers.CharField()
    items = AmountSerializer(many=True)
    produced_bytes = serializers.IntegerField()
    consumed_bytes = serializers.IntegerField()
    stored_byte_hours = serializers.IntegerField()


class OtherTopicsSerializer(serializers.Serializer[Any]):
    """Topics beyond the limit, together."""

    topics = serializers.IntegerField()
    amount = serializers.CharField()


class UnsharedSerializer(AmountSerializer):
    """What no topic, or no user, can be given."""

    reason = serializers.ChoiceField(
        choices=list(REASONS),
        help_text="not_metered: not by topic, or not by user; no_usage: of hours in which none did anything it is shared by; "
        "adjustment: of an earlier month; in_advance: paid for hours of other months too; tax: on all of it",
    )


class _SharesSerializer(serializers.Serializer[Any]):
    instance_id = serializers.CharField()
    month = serializers.CharField()
    currency = serializers.CharField()
    total = serializers.CharField(help_text="the total of the bill")
    so_far = serializers.BooleanField()
    unshared = UnsharedSerializer(many=True)


class TopicCostsSerializer(_SharesSerializer):
    """A bill by topic: topics, others and what cannot be shared add up to `total`, to the cent."""

    topics = TopicCostSerializer(many=True, help_text="the dearest first")
    others = OtherTopicsSerializer()


class UserCostSerializer(serializers.Serializer[Any]):
    """A user's part of a bill."""

    user = serializers.CharField(help_text="the name that clients signed in with, where `kind` says that it is one")
    kind = serializers.ChoiceField(
        choices=list(USER_KINDS),
        help_text="signed_in: a user; not_signed_in: connections without a user; not_kept_apart: users together, "
        "of whom there were more at a broker than it counts one by one",
    )
    amount = serializers.CharField()
    items = AmountSerializer(many=True)
    wire_in_bytes = serializers.IntegerField(help_text="all that came from the user's clients, as it was on the wire")
    wire_out_bytes = serializers.IntegerField()
    requests = serializers.IntegerField()


class OtherUsersSerializer(serializers.Serializer[Any]):
    """Users beyond the limit, together."""

    users = serializers.IntegerField()
    amount = serializers.CharField()


class UserCostsSerializer(_SharesSerializer):
    """A bill by user: users, others and what cannot be shared add up to `total`, to the cent."""

    users = UserCostSerializer(many=True, help_text="the dearest first")
    others = OtherUsersSerializer()


class CurrencyTotalSerializer(serializers.Serializer[Any]):
    """Of the instances that are billed in one currency."""

    currency = serializers.CharField()
    so_far = serializers.CharField()
    forecast = serializers.CharField()
    instances = serializers.IntegerField()


class OrganisationCostSerializer(serializers.Serializer[Any]):
    """A month of an organisation, as last computed: each instance about every quarter of an hour."""

    month = serializers.CharField()
    totals = CurrencyTotalSerializer(many=True, help_text="by currency")
    computed_at = serializers.DateTimeField(allow_null=True, help_text="of the instance that was computed longest ago")
    counted_until = serializers.DateTimeField(
        allow_null=True, help_text="hours before have been counted, as far as is known"
    )
    missing = serializers.IntegerField(help_text="instances that have not been computed yet, and are not in the totals")


class MonthCostSerializer(serializers.Serializer[Any]):
    """A month of one instance, as last computed."""

    instance_id = serializers.CharField()
    name = serializers.CharField(source="instance.name")
    month = serializers.CharField()
    currency = serializers.CharField()
    so_far = serializers.CharField()
    forecast = serializers.CharField()
    final = serializers.BooleanField(source="is_final", help_text="the month is invoiced")
    counted_until = serializers.DateTimeField()
    computed_at = serializers.DateTimeField()


class MonthCostPageSerializer(serializers.Serializer[Any]):
    """Instances with their costs, a page at a time, by id."""

    items = MonthCostSerializer(many=True)
    next = serializers.CharField(allow_null=True)
