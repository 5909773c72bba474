"""What a month has cost so far, what it will have cost, and which topics and users it goes to.

Of one instance all is computed when it is asked for, from the same inputs as its bill. Of an organisation that would take a
second for every hundred instances: `costs_refresh` computes them one by one, those first that were not computed for longest,
and keeps the two amounts in `MonthCost`. Sums of an organisation, and budgets, are made of these rows, and say how old they are.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from django.db import OperationalError
from django.db.models import Exists, OuterRef, Q

from controlplane.billing.models import Invoice, MonthCost
from controlplane.billing.pricing import documents
from controlplane.billing.pricing.forecast import Recent, forecast_document, recent_window
from controlplane.billing.pricing.money import total_of
from controlplane.billing.pricing.rating import (
    CREDIT,
    ELASTIC,
    PREPAID,
    RESERVED,
    TAX,
    USED,
    Line,
    Month,
    Period,
    Span,
    Used,
    spans_of,
    total,
)
from controlplane.billing.pricing.sharing import Shares, UserUsed, by_topic, by_user
from controlplane.billing.selectors import Bill, bill_get
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound
from controlplane.instances.models import Instance
from controlplane.instances.selectors import instance_any
from controlplane.metering import selectors as metering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from django.db.models import QuerySet

    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
U = TypeVar("U")
REFRESHED_AFTER = timedelta(minutes=15)
ROUND_S = 200.0
ITEMS = (*RESERVED, *PREPAID, *USED, *ELASTIC, CREDIT, TAX)
_REASON = "costs of all organisations are computed"


@dataclass(frozen=True, slots=True)
class Cost:
    """A month of one instance. `so_far` is its bill's total, `forecast` the total at the month's end."""

    bill: Bill
    so_far: Decimal
    forecast: Decimal
    counted_until: datetime  # hours before have been counted, as far as is known
    recent: Recent | None  # what the forecast goes by; None: the month is invoiced
    lines: tuple[tuple[str, Decimal, Decimal], ...]  # item, so far, forecast; the last may be "adjustments"


@dataclass(frozen=True, slots=True)
class CurrencyTotal:
    """Of the instances that are billed in one currency."""

    currency: str
    so_far: Decimal
    forecast: Decimal
    instances: int


@dataclass(frozen=True, slots=True)
class OrganisationCost:
    """A month of an organisation, as last computed."""

    month: Month
    totals: tuple[CurrencyTotal, ...]  # by currency
    computed_at: datetime | None  # the oldest of what was added up
    counted_until: datetime | None  # the least
    missing: int  # instances that have not been computed yet


def cost_get(*, organisation: Organisation, instance_id: str, month: Month, clock: Clock = SYSTEM_CLOCK) -> Cost:
    """So far and at the month's end, of now. Raises NotFound."""
    bill = bill_get(organisation=organisation, instance_id=instance_id, month=month, clock=clock)
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    return cost_of(instance, bill, clock.now())


def cost_of(instance: Instance, bill: Bill, now: datetime) -> Cost:
    """The same from a bill that is at hand."""
    counted_until = metering.counted_until(now, read_to=metering.complete_to(instance.cluster.name))
    if bill.inputs is None:
        amount = Decimal(bill.total)
        lines = documents.rated(bill.invoice.inputs) if bill.invoice else ()
        return Cost(bill, amount, amount, counted_until, None, _by_item(lines, lines))
    recent = _recent(instance, documents.periods_in(bill.inputs), counted_until)
    lines = documents.rated(bill.inputs)
    later = documents.rated(forecast_document(bill.inputs, recent))
    return Cost(bill, total(lines), total(later), counted_until, recent, _by_item(lines, later))


def topic_costs_get(
    *, organisation: Organisation, instance_id: str, month: Month, clock: Clock = SYSTEM_CLOCK
) -> tuple[Bill, Shares[Used]]:
    """A month's bill so far, or its invoice, by topic. Raises NotFound."""
    bill, lines, spans, used = _shared_get(organisation, instance_id, month, clock, metering.usage_by_topic, Used)
    return bill, by_topic(lines, spans, used)


def user_costs_get(
    *, organisation: Organisation, instance_id: str, month: Month, clock: Clock = SYSTEM_CLOCK
) -> tuple[Bill, Shares[UserUsed]]:
    """The same by user; of some names `user_kind` says that they are none. Raises NotFound."""
    bill, lines, spans, used = _shared_get(organisation, instance_id, month, clock, metering.usage_by_user, UserUsed)
    return bill, by_user(lines, spans, used)


def _shared_get(
    organisation: Organisation,
    instance_id: str,
    month: Month,
    clock: Clock,
    usage_of: Callable[..., list[dict[str, tuple[int, int, int]]]],
    counted: Callable[[int, int, int], U],
) -> tuple[Bill, Sequence[Line], Sequence[Span], dict[datetime, dict[str, U]]]:
    """A bill, its lines, and what was used within each of its spans, under the hour that it begins with, by name."""
    bill = bill_get(organisation=organisation, instance_id=instance_id, month=month, clock=clock)
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    inputs = bill.invoice.inputs if bill.invoice else bill.inputs
    lines = documents.rated(inputs) if inputs else ()
    spans = spans_of(documents.terms_in(inputs), month) if inputs else bill.spans
    parts = usage_of(instance=instance, bounds=[*(span.start for span in spans), spans[-1].end])
    used = {
        span.start: {name: counted(*counts) for name, counts in part.items()}
        for span, part in zip(spans, parts, strict=True)
    }
    return bill, lines, spans, used


def organisation_cost_get(*, organisation: Organisation, month: Month) -> OrganisationCost:
    """What is known of a month, in two queries however many instances there are."""
    rows = list(cost_list(organisation=organisation, month=month))
    there = there_in(month, Instance.objects.for_organisation(organisation)).count()
    return OrganisationCost(
        month,
        totals_of(rows),
        min((row.computed_at for row in rows), default=None),
        min((row.counted_until for row in rows), default=None),
        max(0, there - len(rows)),
    )


def totals_of(rows: Iterable[MonthCost]) -> tuple[CurrencyTotal, ...]:
    """Sums by currency. Not made by the database: SQLite adds decimals as floating point."""
    by_currency: dict[str, list[MonthCost]] = {}
    for row in rows:
        by_currency.setdefault(row.currency, []).append(row)
    return tuple(
        CurrencyTotal(
            currency, total_of(row.so_far for row in found), total_of(row.forecast for row in found), len(found)
        )
        for currency, found in sorted(by_currency.items())
    )


def cost_list(*, organisation: Organisation, month: Month) -> QuerySet[MonthCost]:
    """By instance, as last computed."""
    return MonthCost.objects.for_organisation(organisation).filter(month=str(month))


def there_in(month: Month, instances: QuerySet[Instance]) -> QuerySet[Instance]:
    """Those of these instances that existed in the month."""
    return instances.filter(Q(deleted_at=None) | Q(deleted_at__gte=month.start), created_at__lt=month.end)


def costs_refresh(*, clock: Clock = SYSTEM_CLOCK, until_s: float = ROUND_S) -> int:
    """Compute what is older than REFRESHED_AFTER, of this month and, until it is invoiced, of the one before; how many.

    And of still earlier months, once, what has an invoice by now: months may wait for long.
    One that cannot be computed is logged, and no obstacle to those behind it.
    """
    done, end = 0, time.monotonic() + until_s
    present = Month.of(clock.now())
    due = ((name, month) for month in (present, present.before(1)) for name in _stale(month, clock.now()))
    for instance_id, month in chain(due, _invoiced_late(present.before(1))):
        if time.monotonic() >= end:
            return done
        done += _refreshed(instance_id, month, clock)
    return done


def _invoiced_late(before: Month) -> list[tuple[str, Month]]:
    """Months before one that have an invoice, and are known as they were when they had none."""
    rows = MonthCost.objects.unscoped(_REASON).filter(month__lt=str(before), is_final=False)
    invoices = Invoice.objects.unscoped(_REASON).filter(instance=OuterRef("instance"), month=OuterRef("month"))
    found = rows.filter(Exists(invoices)).order_by("month", "instance_id").values_list("instance_id", "month")
    return [(instance_id, documents.month_of(month)) for instance_id, month in found]


def _stale(month: Month, now: datetime) -> list[str]:
    """Instances whose cost is to be computed, those first that were never or not for longest."""
    rows = MonthCost.objects.unscoped(_REASON).filter(month=str(month))
    known = {key: (at, final) for key, at, final in rows.values_list("instance_id", "computed_at", "is_final")}
    names = there_in(month, Instance.objects.unscoped(_REASON)).values_list("pk", flat=True)
    never = (month.start - timedelta(days=1), False)
    due = [
        (known.get(name, never)[0], name)
        for name in names
        if not known.get(name, never)[1] and known.get(name, never)[0] <= now - REFRESHED_AFTER
    ]
    return [name for _, name in sorted(due)]


def _refreshed(instance_id: str, month: Month, clock: Clock) -> bool:
    try:
        instance = Instance.objects.unscoped(_REASON).select_related("organisation").get(pk=instance_id)
        cost = cost_get(organisation=instance.organisation, instance_id=instance_id, month=month, clock=clock)
    except OperationalError:
        raise  # the database is away: that is no instance's fault
    except (NotFound, Instance.DoesNotExist):
        return False  # gone meanwhile
    except Exception:
        LOG.exception("cost of %s in %s", instance_id, month)
        return False
    MonthCost.objects.unscoped(_REASON).update_or_create(
        organisation_id=instance.organisation_id,
        instance=instance,
        month=str(month),
        defaults={
            "currency": cost.bill.currency,
            "so_far": cost.so_far,
            "forecast": cost.forecast,
            "counted_until": cost.counted_until,
            "computed_at": clock.now(),
            "is_final": cost.bill.invoice is not None,
        },
    )
    return True


def _recent(instance: Instance, periods: tuple[Period, ...], counted_until: datetime) -> Recent:
    start, end = recent_window(periods, counted_until)
    if start >= end:
        return Recent(start, end)
    return Recent(start, end, Used(*metering.usage_total(instance=instance, start=start, end=end)))


def _by_item(lines: Sequence[Line], later: Sequence[Line]) -> tuple[tuple[str, Decimal, Decimal], ...]:
    def amount(found: Sequence[Line], item: str | None) -> Decimal:
        return total_of(line.amount for line in found if (None if line.adjusts else line.item) == item)

    named = [(item, amount(lines, item), amount(later, item)) for item in ITEMS]
    present = {line.item for line in later if not line.adjusts}
    adjusted = (
        [("adjustments", amount(lines, None), amount(later, None))] if any(line.adjusts for line in later) else []
    )
    return (*(each for each in named if each[0] in present), *adjusted)
