"""Paying for an instance in advance: buying months, renewing them, giving them back, and what the clock does at their end.

What a term covers and what it costs is computed from events and the history of sizes (billing/pricing/prepaid.py), so
nothing here adds up money that a bill would not. Each call locks the instance's row, writes an event, and starts an
operation, by which it is seen and found again: asked twice, it answers the same.

::

    by the hour ──begin──> (waits until it is open) ──> paid ──renew──> paid, longer
         ^                                               │
         │            its end comes, by `at_end`         ├── renew:    the clock renews it
         ├───────────────────────────────────────────────┼── postpaid: it goes on by the hour
         │                                               └── expire:   it is isolated, and destroyed when its grace period ends
         └── restored <── isolated <─────────────────────────────┘        (begin opens it again, paid in advance)

Deleting an instance gives back what is left (endings.py). While an instance is protected against deletion it is not isolated
at its end: it goes on by the hour, and its owners are told so.

Owners are told by mail 7 days and a day before the end, and what has become of it. Each mail is written in the transaction of
what it is about.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Max, Q

from controlplane.admission import installed, rules, selectors
from controlplane.billing import selectors as billing
from controlplane.billing.models import Prepaid, PrepaidEvent
from controlplane.billing.pricing.money import amount_of, total_of
from controlplane.billing.pricing.prepaid import (
    AT_END,
    BOUGHT,
    CANCELLED,
    DECIDED,
    EXPIRE,
    EXPIRED,
    FIVE_DAYS,
    FIVE_DAYS_OF_TRYING,
    POSTPAID,
    REFUND,
    RENEW,
    RENEWED,
    Account,
    Event,
    account_of,
    months_after,
    price_of,
)
from controlplane.billing.pricing.prepaid_prices import (
    LEAST_MONTHS,
    MOST_MONTHS,
    Monthly,
    MonthlyPrices,
    monthly,
    prices_on,
)
from controlplane.billing.pricing.rating import Size
from controlplane.billing.selectors import account_get, paid_in_advance, periods_of, prepaid_events
from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, FieldProblem, Invalid, NotFound, PriceUnconfirmed
from controlplane.core.models import Operation
from controlplane.core.operations import Finished, OperationKind, Step
from controlplane.core.text import second_text
from controlplane.instances import letters, lifecycle
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_fresh, instance_get
from controlplane.instances.services import instance_locked
from controlplane.instances.telling import owners_tell
from controlplane.tenants import in_use
from controlplane.tenants.models import Organisation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.billing.pricing.rating import Period

LOG = logging.getLogger(__name__)
BEGIN, EXTEND = "prepaid.begin", "prepaid.renew"
"""Kinds of operation. The charge stands when they begin; they say from when to when it is."""
SET, GO_ON = "prepaid.set", "prepaid.postpaid"
"""Of the audit trail."""
REMINDERS = (timedelta(days=7), timedelta(days=1))
"""So long before the end owners are told of it."""
MOST_AHEAD_MONTHS = 60
"""Nobody pays for more than that."""
AT_ONCE = 100
"""Instances that are looked at in a round."""
BY_THE_HOUR, WAITING, PAID = "postpaid", "waiting", "prepaid"
STATES = (BY_THE_HOUR, WAITING, PAID)
"""How an instance is paid. `waiting`: months were bought, and begin when it is open."""
_MACHINERY = "by the clock"


@dataclass(frozen=True, slots=True)
class Quote:
    """What months of a size cost in advance."""

    prices: MonthlyPrices
    months: int
    lines: tuple[tuple[Monthly, Decimal], ...]  # each item, and its amount
    amount: Decimal
    a_month: Decimal


@dataclass(frozen=True, slots=True)
class PrepaidNow:
    """How an instance is paid."""

    instance: Instance
    account: Account
    at_end: str
    renew_months: int
    refund: Decimal  # what would be paid back if it was deleted now
    is_five_days: bool  # by the five-day rule
    has_expired: bool  # it is isolated because it is paid no more

    @property
    def state(self) -> str:
        """One of STATES."""
        return PAID if self.account.terms else WAITING if self.account.is_waiting else BY_THE_HOUR

    @property
    def currency(self) -> str:
        """Of what would be paid back, which is never a term that is over; empty where there is none."""
        return self.account.terms[-1].prices.currency if self.account.terms else ""

    @property
    def ends_text(self) -> str | None:
        """Up to when it is paid, as REST writes it."""
        return None if self.account.ends_at is None else second_text(self.account.ends_at)


def register() -> None:
    """Make the kinds of operation known."""
    operations.register(OperationKind(BEGIN, (Step("put on the bill", put_on_the_bill),)))
    operations.register(OperationKind(EXTEND, (Step("put on the bill", put_on_the_bill),)))


def put_on_the_bill(operation: Operation) -> Finished:
    """The event was written with the operation: what it comes to."""
    instance = instance_fresh(operation.target)
    account = account_get(instance, SYSTEM_CLOCK.now())
    if account.ends_at is None:
        return Finished(note="begins when the instance is open" if account.is_waiting else "ended already")
    return Finished(note=f"paid until {second_text(account.ends_at)}", result={"ends_at": account.ends_at.isoformat()})


# --- reading ----------------------------------------------------------------------------------------------------------


def prepaid_get(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> PrepaidNow:
    """How an instance is paid, and what giving it back now would bring. Raises NotFound."""
    return prepaid_of(instance_get(organisation=organisation, instance_id=instance_id), clock.now())


def prepaid_of(instance: Instance, now: datetime) -> PrepaidNow:
    """The same of an instance that is at hand."""
    prepaid, periods = paid_in_advance(instance), periods_of(instance)
    account = account_of(prepaid, periods, now)
    is_five_days = _may_try(instance.organisation, account, now)
    closed = [replace(period, until=now) if period.until is None else period for period in periods]
    events = (*prepaid.events, Event(FIVE_DAYS, now)) if is_five_days else prepaid.events
    after = account_of(replace(prepaid, events=events), closed, now)
    back = after.paid.charges[len(account.paid.charges) :]
    row = Prepaid.objects.unscoped("the caller found the instance").filter(instance=instance).first()
    return PrepaidNow(
        instance=instance,
        account=account,
        at_end=row.at_end if row else EXPIRE,
        renew_months=row.renew_months if row else LEAST_MONTHS,
        refund=-sum((line.amount for line in back if line.charged and line.charged.kind == REFUND), Decimal("0.00")),
        is_five_days=is_five_days and bool(account.terms),
        has_expired=instance.state == InstanceState.ISOLATED and _is_behind(prepaid.events, periods),
    )


def paid_until(instance: Instance) -> datetime | None:
    """Up to when it is paid, as the clock has noted it; None: by the hour, or it waits."""
    rows = Prepaid.objects.unscoped("the caller found the instance").filter(instance=instance)
    return rows.values_list("ends_at", flat=True).first()


def paid_rows(instance_ids: Iterable[str]) -> dict[str, Prepaid]:
    """Of those that are paid in advance now, by their ids: up to when, and what becomes of them then; one query."""
    rows = Prepaid.objects.unscoped("the caller found the instances")
    return {row.pk: row for row in rows.filter(instance__in=list(instance_ids)).exclude(ends_at=None)}


def _is_behind(events: Sequence[Event], periods: Sequence[Period]) -> bool:
    """Whether the last thing that happened is that it was paid no more: it was not opened since."""
    return bool(events) and events[-1].kind == EXPIRED and all(period.start <= events[-1].at for period in periods)


def prepaid_quote(
    *, organisation: Organisation, months: int, sizes: Mapping[str, float], clock: Clock = SYSTEM_CLOCK
) -> Quote:
    """What months of a size cost if they are bought now. Raises Invalid, and Conflict under a plan that has no such prices."""
    check_months(months)
    return _quote(prices_of(organisation, clock), _size(sizes), months)


def _quote(prices: MonthlyPrices, size: Size, months: int) -> Quote:
    entries = monthly(
        prices, bandwidth_mb_per_s=size.bandwidth_mb_per_s, disk_gb=size.disk_gb, partitions=size.partitions
    )
    lines = tuple((entry, amount_of(Decimal(entry.units * months), entry.unit_price)) for entry in entries)
    return Quote(prices, months, lines, price_of(prices, size, months), price_of(prices, size, 1))


def prices_of(organisation: Organisation, clock: Clock) -> MonthlyPrices:
    """The list by which an organisation pays in advance now. Raises Conflict.

    None while a plan in another currency is to come: a term is a month at least, and would reach into months of that one.
    """
    following = billing.currency_next(organisation=organisation, at=clock.now())
    if following is not None:
        other, at = following
        raise Conflict(
            f"from {at:%Y-%m-%d} on the organisation pays in {other.currency}: pay in advance from then on",
            code="other_currency_in_advance",
        )
    plan = selectors.plan_counted(organisation, clock=clock)
    try:
        return prices_on(plan.name, clock.now().date())
    except LookupError as error:
        raise Conflict(
            f"the plan “{plan.title}” reserves nothing that could be paid in advance: choose another plan first",
            code="plan_not_prepaid",
        ) from error


def _prices_to_pay(organisation: Organisation, clock: Clock) -> MonthlyPrices:
    """The same, and until this transaction ends nobody chooses a plan."""
    in_use.locked(organisation)
    return prices_of(organisation, clock)


def check_months(months: int) -> None:
    """Raises Invalid."""
    if isinstance(months, bool) or not isinstance(months, int) or not LEAST_MONTHS <= months <= MOST_MONTHS:
        raise Invalid.field("months", f"must be a whole number from {LEAST_MONTHS} to {MOST_MONTHS}")


def _check_at_end(at_end: str) -> None:
    if at_end not in AT_END:
        raise Invalid.field("at_end", f"must be one of {', '.join(AT_END)}")


# --- by people --------------------------------------------------------------------------------------------------------


def buy(
    *,
    instance: Instance,
    operation: Operation,
    actor: str,
    months: int,
    at_end: str,
    is_price_confirmed: bool,
    clock: Clock,
) -> None:
    """Months for an instance that is being created, in the transaction that creates it. Raises as `prepaid_begin`."""
    check_months(months)
    _check_at_end(at_end)
    prices = _prices_to_pay(instance.organisation, clock)
    _check_price(prices, _size_of(instance), months, is_price_confirmed=is_price_confirmed)
    _bought(instance, operation, actor, months, prices, {"at_end": at_end, "renew_months": LEAST_MONTHS}, clock)


@transaction.atomic
def prepaid_begin(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    months: int,
    at_end: str = EXPIRE,
    confirm_price: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> Operation:
    """From by the hour to in advance, from the next full hour on. One that is isolated is opened again by it.

    Asked again for the same, it answers the same operation. Raises NotFound, Invalid, Conflict, PriceUnconfirmed.
    """
    check_months(months)
    _check_at_end(at_end)
    instance = instance_locked(organisation, instance_id)
    account = account_get(instance, clock.now())
    if account.is_prepaid:
        last = [event for event in prepaid_events(instance) if event.kind != DECIDED][-1]
        if (last.kind, last.months) == (BOUGHT, months):
            return Operation.objects.for_organisation(organisation).get(pk=last.operation_id)
        raise Conflict(f"{instance_id} is paid in advance already: renew it", code="prepaid_already")
    if instance.state in (InstanceState.DELETING, InstanceState.DELETED):
        raise Conflict("the instance is being deleted", code="instance_deleting")
    prices = _prices_to_pay(organisation, clock)
    _check_price(prices, _size_of(instance), months, is_price_confirmed=confirm_price)
    if instance.state == InstanceState.ISOLATED:
        operation = lifecycle.instance_restore(
            organisation=organisation, actor=actor, instance_id=instance_id, clock=clock
        )
        instance.refresh_from_db(fields=["state"])
    else:
        operation = operations.start(
            organisation=organisation, kind=BEGIN, target=instance_id, actor=actor, clock=clock
        )
    _bought(instance, operation, actor, months, prices, {"at_end": at_end, "renew_months": LEAST_MONTHS}, clock)
    return operation


@transaction.atomic
def prepaid_renew(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    months: int,
    ends_at: datetime,
    confirm_price: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> Operation:
    """More months behind what is paid. `ends_at`: the end that the caller has read, which this puts off.

    Asked again with the same end, it answers the same operation, so that nobody pays twice. Raises NotFound, Invalid,
    PriceUnconfirmed; Conflict where it is not paid in advance, or up to another moment.
    """
    check_months(months)
    instance = instance_locked(organisation, instance_id)
    now = clock.now()
    made = _renewal_of(instance, ends_at)
    if made is not None and made.months == months:
        return Operation.objects.for_organisation(organisation).get(pk=made.operation_id)
    account = account_get(instance, now)
    if account.ends_at is None:
        raise Conflict(f"{instance_id} is not paid in advance", code="not_prepaid")
    if account.ends_at != ends_at:
        raise Conflict(
            f"{instance_id} is paid until {second_text(account.ends_at)}: look again, and give that end if you still want this",
            code="prepaid_changed",
        )
    if ends_at <= now and _row(instance).at_end == POSTPAID:
        raise Conflict(
            f"{instance_id} is paid by the hour since {second_text(ends_at)}: pay in advance anew, in a minute",
            code="prepaid_ended",
        )
    if _later(account, months) > months_after(now, MOST_AHEAD_MONTHS):
        raise Conflict(f"nothing is paid more than {MOST_AHEAD_MONTHS} months ahead", code="prepaid_too_long")
    prices = _prices_to_pay(organisation, clock)
    _check_price(prices, _size_of(instance), months, is_price_confirmed=confirm_price)
    operation = operations.start(organisation=organisation, kind=EXTEND, target=instance_id, actor=actor, clock=clock)
    _renewed(instance, operation, actor, months, prices, account, clock)
    return operation


def _renewal_of(instance: Instance, ends_at: datetime) -> PrepaidEvent | None:
    """What has put off this end of the last account: an earlier one may have ended at the same moment."""
    events = prepaid_events(instance)
    bought = max((event.number for event in events if event.kind == BOUGHT), default=0)
    return next((event for event in events if event.number > bought and event.extends == ends_at), None)


def _later(account: Account, months: int) -> datetime:
    return months_after(account.terms[0].start, months + sum(term.months for term in account.terms))


@transaction.atomic
def prepaid_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    at_end: str | None = None,
    renew_months: int | None = None,
    check: Callable[[PrepaidNow], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> PrepaidNow:
    """What becomes of it at the end of what is paid; None: as it was. `check` is told how it is paid until now.

    Raises NotFound, Invalid, Conflict.
    """
    if at_end is None and renew_months is None:
        raise Invalid("nothing to change: give at_end or renew_months")
    if at_end is not None:
        _check_at_end(at_end)
    if renew_months is not None:
        check_months(renew_months)
    instance, now = instance_locked(organisation, instance_id), clock.now()
    if check is not None:
        check(prepaid_of(instance, now))
    account = account_get(instance, now)
    if not account.is_prepaid:
        raise Conflict(f"{instance_id} is not paid in advance", code="not_prepaid")
    if account.ends_at is not None and account.ends_at <= now:
        raise Conflict(
            f"what was paid of {instance_id} has ended, and what becomes of it was decided before: look again in a minute",
            code="prepaid_ended",
        )
    row = _row(instance)
    wanted = {"at_end": at_end or row.at_end, "renew_months": renew_months or row.renew_months}
    told = audit.changed({name: getattr(row, name) for name in wanted}, wanted)
    if told:
        Prepaid.objects.for_organisation(organisation).filter(pk=row.pk).update(**wanted)
        if "at_end" in told:
            _record(instance, DECIDED, actor, now, at_end=str(wanted["at_end"]))
        audit.record_about(instance, actor, SET, told, clock)
    return prepaid_of(instance, now)


def give_back(*, instance: Instance, actor: str, clock: Clock) -> None:
    """Before an instance is isolated or destroyed by somebody, in that transaction and with its row locked.

    That closes the account, and pays back what is left. Here is only said what that does not say by itself.
    """
    now = clock.now()
    account = account_get(instance, now)
    if not account.is_prepaid:
        return
    if account.is_waiting:
        _record(instance, CANCELLED, actor, now)
    Organisation.objects.select_for_update(no_key=True).get(pk=instance.organisation_id)  # once: of two, one
    if account.terms and _may_try(instance.organisation, account, now):
        _record(instance, FIVE_DAYS, actor, now)
    Prepaid.objects.unscoped("it was found").filter(instance=instance).update(is_waiting=False, ends_at=None, told=0)


def check_not_smaller(instance: Instance, before: Mapping[str, object], clock: Clock) -> None:
    """A size that is paid does not become smaller: who wants that gives it back. Raises Conflict."""
    smaller = [name for name in rules.SIZES if getattr(instance, name) < before[name]]
    if smaller and account_get(instance, clock.now()).is_prepaid:
        raise Conflict(
            "what is paid in advance does not become smaller before its end",
            code="prepaid_not_smaller",
            errors=[FieldProblem(name, "what is paid in advance does not become smaller") for name in smaller],
        )


def charged(instance: Instance, clock: Clock) -> Decimal | None:
    """All that was charged in advance by now, less what was paid back; None: it is paid by the hour."""
    account = account_get(instance, clock.now())
    return total_of(line.amount for line in account.paid.charges) if account.is_prepaid else None


def growth_check(*, instance: Instance, before: Decimal | None, is_price_confirmed: bool, clock: Clock) -> None:
    """Whether what a larger size costs until the end, all of it at once, may be charged. Raises PriceUnconfirmed.

    `before`: what `charged` said before the size was changed.
    """
    account, after = account_get(instance, clock.now()), charged(instance, clock)
    if is_price_confirmed or before is None or after is None or not account.terms:
        return
    currency = account.terms[-1].prices.currency  # which terms that were paid in another one have nothing to do with
    threshold = installed.price_confirmed_above(currency)
    if after - before <= threshold:
        return
    cost = f"until the end of what is paid in advance this costs {currency} {rules.text_of(after - before)} at once"
    detail = f"{cost}, which is more than {rules.text_of(threshold)}"
    raise PriceUnconfirmed(
        f"{detail}. If that is meant, ask again with confirm_price",
        errors=[FieldProblem("confirm_price", detail)],
        members={"price": {"currency": currency, "in_advance": rules.number(after - before)}},
    )


# --- by the clock -------------------------------------------------------------------------------------------------------


def prepaid_look(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Note what has begun, tell what ends soon, and end or renew what is due; how many. One that fails is no obstacle."""
    now, rows = clock.now(), Prepaid.objects.unscoped(_MACHINERY)
    soon = Q()
    for count, before in enumerate(REMINDERS):
        soon |= Q(told__lte=count, ends_at__gt=now, ends_at__lte=now + before)
    return (
        _each(
            rows.filter(is_waiting=True, instance__state=InstanceState.RUNNING).order_by("pk"), _note_beginning, clock
        )
        + _each(rows.filter(soon).order_by("ends_at"), _foretell, clock)
        + _each(rows.filter(ends_at__lte=now).order_by("ends_at"), _end, clock)
    )


def _each(rows: QuerySet[Prepaid], look: Callable[[str, Clock], bool], clock: Clock) -> int:
    """So many a round; those that nothing can be done for keep no others from their turn."""
    done = 0
    for instance_id in list(rows.values_list("pk", flat=True)):
        if done == AT_ONCE:
            break
        try:
            done += look(instance_id, clock)
        except Exception:
            LOG.exception("what is paid in advance of %s", instance_id)
    return done


def _held(instance_id: str) -> Instance | None:
    """The row of the instance, until this transaction ends; None, and nothing to look at any more, where it is gone."""
    try:
        return instance_locked(instance_fresh(instance_id).organisation, instance_id)
    except NotFound:
        Prepaid.objects.unscoped(_MACHINERY).filter(pk=instance_id).update(is_waiting=False, ends_at=None)
        return None


@transaction.atomic
def _note_beginning(instance_id: str, clock: Clock) -> bool:
    instance = _held(instance_id)
    if instance is None or account_get(instance, clock.now()).is_waiting:
        return False
    _note(instance, clock.now())
    return True


@transaction.atomic
def _foretell(instance_id: str, clock: Clock) -> bool:
    instance, now = _held(instance_id), clock.now()
    if instance is None:
        return False
    row = _row(instance)
    due = sum(row.ends_at is not None and row.ends_at <= now + before for before in REMINDERS)
    ends_at = row.ends_at
    if ends_at is None or ends_at <= now or row.told >= due:
        return False  # another worker was faster, or it was renewed
    Prepaid.objects.unscoped(_MACHINERY).filter(pk=row.pk).update(told=due)
    at_end = POSTPAID if row.at_end == EXPIRE and instance.deletion_protection else row.at_end
    owners_tell(instance, lambda about: letters.ends_soon(about, at=ends_at, at_end=at_end), now)
    return True


@transaction.atomic
def _end(instance_id: str, clock: Clock) -> bool:
    instance, now = _held(instance_id), clock.now()
    if instance is None:
        return False
    row, account = _row(instance), account_get(instance, now)
    if account.ends_at is None or account.ends_at > now:  # given back, or renewed
        _note(instance, now)
        return False
    if instance.state not in lifecycle.HAVE_DATA:
        return False
    if row.at_end == RENEW:
        return _renew_by_itself(instance, row, account, clock)
    if row.at_end == EXPIRE and not instance.deletion_protection:
        _record(instance, EXPIRED, audit.SYSTEM, now)
        lifecycle.instance_expire(instance=instance, clock=clock)
        _note(instance, clock.now())
        return True
    why = "It was not isolated, since it is protected against deletion." if row.at_end == EXPIRE else ""
    _go_on(instance, account, why, clock)
    return True


def _renew_by_itself(instance: Instance, row: Prepaid, account: Account, clock: Clock) -> bool:
    try:
        prices = _prices_to_pay(instance.organisation, clock)
    except Conflict as error:
        why = "It could not be renewed: under the plan of its organisation nothing is paid in advance."
        if error.code == "other_currency_in_advance":
            why = "It could not be renewed: its organisation has chosen to pay in another currency from the next month on."
        _go_on(instance, account, why, clock)
        return True
    operation = operations.start(
        organisation=instance.organisation, kind=EXTEND, target=instance.id, counted=False, clock=clock
    )
    amount = price_of(prices, _size_of(instance), row.renew_months)
    after = _renewed(instance, operation, audit.SYSTEM, row.renew_months, prices, account, clock)
    until = after.ends_at
    assert until is not None, "it was renewed"
    price = f"{prices.currency} {amount:,.2f}"
    owners_tell(
        instance,
        lambda about: letters.renewed(about, until=until, months=row.renew_months, price=price),
        clock.now(),
    )
    return True


def _go_on(instance: Instance, account: Account, why: str, clock: Clock) -> None:
    ended = account.ends_at
    assert ended is not None, "its end has come"
    _record(instance, POSTPAID, audit.SYSTEM, clock.now())
    _note(instance, clock.now())
    audit.record_about(instance, audit.SYSTEM, GO_ON, {"ended_at": ended.isoformat()}, clock)
    owners_tell(instance, lambda about: letters.goes_on_postpaid(about, at=ended, why=why), clock.now())


# --- what both do -------------------------------------------------------------------------------------------------------


def _bought(
    instance: Instance,
    operation: Operation,
    actor: str,
    months: int,
    prices: MonthlyPrices,
    members: Mapping[str, object],
    clock: Clock,
) -> None:
    now = clock.now()
    Prepaid.objects.unscoped("the instance's own organisation is written").update_or_create(
        instance=instance, defaults={"organisation_id": instance.organisation_id, **members}
    )
    at_end = str(members["at_end"])
    _record(instance, BOUGHT, actor, now, months=months, prices=prices, operation=operation, at_end=at_end)
    _note(instance, now)
    audit.record_about(instance, actor, BEGIN, {"months": months, **members}, clock)


def _renewed(
    instance: Instance,
    operation: Operation,
    actor: str,
    months: int,
    prices: MonthlyPrices,
    account: Account,
    clock: Clock,
) -> Account:
    now = clock.now()
    _record(instance, RENEWED, actor, now, months=months, prices=prices, operation=operation, extends=account.ends_at)
    after = _note(instance, now)
    audit.record_about(
        instance, actor, EXTEND, {"months": months, "ends_at": after.ends_at and after.ends_at.isoformat()}, clock
    )
    return after


def _record(
    instance: Instance,
    kind: str,
    actor: str,
    at: datetime,
    *,
    months: int = 0,
    prices: MonthlyPrices | None = None,
    operation: Operation | None = None,
    extends: datetime | None = None,
    at_end: str = EXPIRE,
) -> None:
    rows = PrepaidEvent.objects.unscoped("the instance's own organisation is written")
    last = rows.filter(instance=instance).aggregate(last=Max("number"))["last"] or 0
    rows.create(
        organisation_id=instance.organisation_id,
        instance=instance,
        number=last + 1,
        kind=kind,
        months=months,
        prices=None if prices is None else prices.document(),
        operation_id="" if operation is None else operation.id,
        extends=extends,
        at_end=at_end,
        actor=actor,
        at=at,
    )


def _note(instance: Instance, now: datetime) -> Account:
    """What the clock goes by, as the events have it; mails before an end that is another one are to come."""
    account, row = account_get(instance, now), _row(instance)
    told = row.told if row.ends_at == account.ends_at else 0
    Prepaid.objects.unscoped("it was found").filter(pk=row.pk).update(
        is_waiting=account.is_waiting, ends_at=account.ends_at, told=told
    )
    return account


def _row(instance: Instance) -> Prepaid:
    return Prepaid.objects.unscoped("it was found").get(instance=instance)


def _may_try(organisation: Organisation, account: Account, now: datetime) -> bool:
    """Whether all is paid back if it is given back now: within five days of buying, once in an organisation's life."""
    if account.bought_at is None or now >= account.bought_at + FIVE_DAYS_OF_TRYING:
        return False
    return not PrepaidEvent.objects.for_organisation(organisation).filter(kind=FIVE_DAYS).exists()


def _check_price(prices: MonthlyPrices, size: Size, months: int, *, is_price_confirmed: bool) -> None:
    """Whether so much may be paid without a word that it is known. Raises PriceUnconfirmed."""
    amount, threshold = price_of(prices, size, months), installed.price_confirmed_above(prices.currency)
    if is_price_confirmed or amount <= threshold:
        return
    cost, most = f"{prices.currency} {rules.text_of(amount)}", rules.text_of(threshold)
    a_month = price_of(prices, size, 1)
    price = {"currency": prices.currency, "per_month": rules.number(a_month), "in_advance": rules.number(amount)}
    raise PriceUnconfirmed(
        f"{months} months cost {cost} in advance, which is more than {most}. If that is meant, ask again with confirm_price",
        errors=[FieldProblem("confirm_price", f"{months} months cost {cost} in advance, which is more than {most}")],
        members={"price": price},
    )


def _size_of(instance: Instance) -> Size:
    return _size({name: getattr(instance, name) for name in rules.SIZES})


def _size(sizes: Mapping[str, float]) -> Size:
    bandwidth, storage = Decimal(str(sizes[rules.BANDWIDTH])), Decimal(str(sizes[rules.STORAGE]))
    return Size(bandwidth, storage, int(sizes[rules.PARTITIONS]))
