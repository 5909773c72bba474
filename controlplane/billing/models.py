"""Which plan an organisation has, what was paid in advance, and invoices: bills that were frozen, or could not be.

Rows of `Invoice` and `CreditNote` are appended and never changed: triggers of the database refuse it (migrations 0005, 0012
and 0013).
Rows of `PrepaidEvent` are appended as well: bills are computed from them and the history of sizes (pricing/prepaid.py).
"""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.billing.chain import NOTE_PREFIX, Sealed, SealedNote, number_text
from controlplane.billing.pricing.prepaid import AT_END, EVENTS, EXPIRE
from controlplane.core.scope import TenantManager


class PlanChoice(models.Model):
    """A plan from a full hour on. Who never chose has the default plan.

    A row whose hour has come is never changed, once anything was billed.
    """

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    plan = models.CharField(max_length=32)
    at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """One plan an hour."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "at"], name="one_plan_per_hour")
        ]

    def __str__(self) -> str:
        return f"{self.plan} from {self.at:%Y-%m-%d %H:%M}"


class TaxRate(models.Model):
    """The tax on invoices from a month on: an organisation's, or everybody's (None). Never changed once its month has begun."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, null=True, related_name="+")
    month = models.CharField(max_length=7)  # the first, such as "2027-01"
    name = models.CharField(max_length=64)  # as invoices call it: "VAT"
    rate = models.DecimalField(max_digits=6, decimal_places=5)  # 0.06; 0: exempt
    actor = models.CharField(max_length=254)
    at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """One a month, of an organisation and of everybody."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "month"], name="one_tax_per_month"),
            models.UniqueConstraint(
                fields=["month"], condition=models.Q(organisation=None), name="one_tax_of_everybody_per_month"
            ),
            models.CheckConstraint(condition=models.Q(rate__gte=0, rate__lte=1), name="taxes_are_shares"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.rate} of {self.organisation_id or 'everybody'} from {self.month}"


class Prepaid(models.Model):
    """How an instance is paid in advance, or was: what becomes of it at the end, and what the clock goes by."""

    instance = models.OneToOneField("instances.Instance", models.PROTECT, primary_key=True, related_name="+")
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    at_end = models.CharField(max_length=16, choices=[(each, each) for each in AT_END], default=EXPIRE)
    renew_months = models.PositiveSmallIntegerField(default=1)  # at a time, where it is renewed by itself
    is_waiting = models.BooleanField(default=False)  # it was bought, and begins when the instance is open
    ends_at = models.DateTimeField(null=True)  # as the events have it; null: it waits, or is paid by the hour
    told = models.PositiveSmallIntegerField(default=0)  # how many of the mails before this end were written

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Beat asks for those whose end is near, and for those that wait."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["ends_at"], name="prepaid_ends", condition=models.Q(ends_at__isnull=False)),
            models.Index(fields=["is_waiting"], name="prepaid_waits", condition=models.Q(is_waiting=True)),
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} to {self.ends_at}, then {self.at_end}"


class PrepaidEvent(models.Model):
    """Something that happened to what is paid in advance of an instance; never changed."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()  # from 1 within the instance
    kind = models.CharField(max_length=16, choices=[(each, each) for each in EVENTS])
    months = models.PositiveSmallIntegerField(default=0)
    prices = models.JSONField(null=True)  # MonthlyPrices.document() of what was bought or renewed
    at_end = models.CharField(
        max_length=16, choices=[(each, each) for each in AT_END], default=EXPIRE
    )  # of what was decided
    extends = models.DateTimeField(null=True)  # of a renewal: the end that it has put off
    operation_id = models.CharField(max_length=32, blank=True, default="")  # that answered for it
    actor = models.CharField(max_length=254)
    at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """In order; of two writers at once the slower one finds its number taken."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "number"], name="one_prepaid_event_per_number")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organisation", "kind"], name="prepaid_events_by_kind")
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} {self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"


class Invoice(models.Model):
    """One instance's bill of one month, closed. `inputs` is all it was computed from; `input_hash` seals it.

    `number` counts from 1 within the organisation, without gaps; `hash` seals the invoice and, by `previous_hash`, all
    before it (chain.py).
    """

    number = models.PositiveIntegerField()
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    month = models.CharField(max_length=7)  # "2026-11", UTC
    currency = models.CharField(max_length=3)
    total = models.DecimalField(max_digits=24, decimal_places=2)
    lines = models.JSONField()
    inputs = models.JSONField()
    input_hash = models.CharField(max_length=64)  # SHA-256 of the canonical JSON of `inputs`
    created_at = models.DateTimeField()
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """A month is closed once, and a number given once: the slower of two writers begins again."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "month"], name="one_invoice_per_month"),
            models.UniqueConstraint(fields=["organisation", "number"], name="one_invoice_per_number"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="numbers_begin_with_1"),
        ]

    def __str__(self) -> str:
        return f"{number_text(self.number)} of {self.organisation_id}: {self.total} {self.currency}"

    def sealed(self) -> Sealed:
        """What its hash is of, as the row says it now."""
        return Sealed(
            number=self.number,
            organisation=self.organisation_id,
            instance=self.instance_id,
            month=self.month,
            currency=self.currency,
            total=self.total,
            created_at=self.created_at,
            lines=self.lines,
            input_hash=self.input_hash,
            previous_hash=self.previous_hash,
        )


class CreditNote(models.Model):
    """An operator's word that a part or all of one invoice is given back. The invoice stays as it is.

    `number` and `hash` as an invoice has them, in a chain of its own.
    """

    number = models.PositiveIntegerField()
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    invoice = models.ForeignKey(Invoice, models.PROTECT, related_name="+")
    currency = models.CharField(max_length=3)
    amount = models.DecimalField(max_digits=24, decimal_places=2)
    reason = models.TextField()  # for the tenant
    actor = models.CharField(max_length=254)
    created_at = models.DateTimeField()
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """A number is given once: of two operators the slower one computes anew what is left of the invoice."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "number"], name="one_credit_note_per_number"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="credit_notes_begin_with_1"),
            models.CheckConstraint(condition=models.Q(amount__gt=0), name="credit_notes_give_something_back"),
        ]

    def __str__(self) -> str:
        return f"{self.number_text} of {self.organisation_id}: {self.amount} {self.currency}"

    @property
    def number_text(self) -> str:
        """``crn-00000017``."""
        return number_text(self.number, NOTE_PREFIX)

    def sealed(self) -> SealedNote:
        """What its hash is of, as the row says it now."""
        return SealedNote(
            number=self.number,
            organisation=self.organisation_id,
            invoice=self.invoice.number,
            invoice_hash=self.invoice.hash,
            currency=self.currency,
            amount=self.amount,
            reason=self.reason,
            actor=self.actor,
            created_at=self.created_at,
            previous_hash=self.previous_hash,
        )


class InvoiceFailure(models.Model):
    """A month of one instance that is due and could not be closed. Gone when it is."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    month = models.CharField(max_length=7)
    problem = models.TextField()  # for operators
    at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """The last one counts."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "month"], name="one_failure_per_month")
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} {self.month}: {self.problem}"


class Settled(models.Model):
    """A month in which an instance was gone already and nothing was left to bill: there is no invoice to look for."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    month = models.CharField(max_length=7)
    at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Looked at once."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "month"], name="settled_once")
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} {self.month}"


class MonthCost(models.Model):
    """What a month of one instance costs, as last computed (costs.py): amounts that can be computed anew at any time."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    month = models.CharField(max_length=7)
    currency = models.CharField(max_length=3)
    so_far = models.DecimalField(max_digits=24, decimal_places=2)  # the bill's total
    forecast = models.DecimalField(max_digits=24, decimal_places=2)  # the total at the month's end
    counted_until = models.DateTimeField()  # hours before had been counted, as far as was known
    computed_at = models.DateTimeField()
    is_final = models.BooleanField(default=False)  # the month is invoiced

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """One a month; sums are of an organisation's month."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "month"], name="one_cost_per_month")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organisation", "month"], name="costs_of_a_month")
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} {self.month}: {self.so_far} {self.currency}, {self.forecast} at its end"


class MeteringWaiver(models.Model):
    """An operator's word that the invoices of a month shall not wait for metering: of one instance, or of all.

    Of all of one cluster, if that is named: what is missing on another one keeps its own invoices waiting.
    """

    month = models.CharField(max_length=7)
    cluster = models.CharField(max_length=64, blank=True, default="", db_default="")  # its name; blank: of every one
    instance = models.ForeignKey("instances.Instance", models.PROTECT, null=True, related_name="+")  # null: all of them
    actor = models.CharField(max_length=254)
    reason = models.TextField()
    waited_for = models.TextField()  # what was said to be missing
    at = models.DateTimeField()

    class Meta:
        """The first word stands."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["month", "cluster", "instance"], name="one_waiver_per_instance"),
            models.UniqueConstraint(
                fields=["month", "cluster"], condition=models.Q(instance=None), name="one_waiver_for_all_instances"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.month} of {self.instance_id or 'all instances'}, by {self.actor}: {self.reason}"
