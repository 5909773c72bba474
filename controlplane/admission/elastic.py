"""Elastic bandwidth: an instance may go above what it bought, up to a cap, for a price by the GB. Off until somebody wants it.

The cap goes to brokers and masters with the specification; the active master shares it out and counts what is carried
above the bought limit (quota/core/elastic.py), which comes here by its journal and onto the bill of the month
(billing/pricing/elastic.py).

A budget of the month, where there is one, switches it off until the month ends, by the clock: what is carried until brokers
hear of it is billed. Owners are told by mail, in the transaction that switches it off. Under a plan that has no price for it,
since bandwidth is not bought there, it is switched off for good.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.admission import rules, selectors
from controlplane.billing.pricing.elastic import Elastic, ElasticPrices, elastic_lines, elastic_of, elastic_prices_on
from controlplane.billing.pricing.money import total_of
from controlplane.billing.pricing.plans import month_day
from controlplane.billing.pricing.rating import Month
from controlplane.billing.selectors import currency_next, terms_of
from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, FieldProblem, Invalid, NotFound
from controlplane.core.models import Operation
from controlplane.instances import letters
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_fresh, instance_get
from controlplane.instances.services import UPDATE, instance_locked, instance_row_change
from controlplane.instances.spec import ELASTIC_TIMES
from controlplane.instances.telling import owners_tell
from controlplane.instances.validation import MOST_BANDWIDTH_MIB_PER_S
from controlplane.metering.elastic import elastic_hours
from controlplane.tenants import in_use

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
SET, OFF_BY_BUDGET, ON_AGAIN = "elastic.set", "elastic.off", "elastic.on"
"""Of the audit trail."""
OFF, ON, SPENT = "off", "on", "spent"
STATES = (OFF, ON, SPENT)
"""`spent`: its budget is used up, and it is off until the month ends."""
MOST_BUDGET = Decimal(10**9)
_MACHINERY = "by the clock"


@dataclass(frozen=True, slots=True)
class ElasticNow:
    """How it stands, and what this month has cost so far."""

    instance: Instance
    state: str
    prices: ElasticPrices | None  # None: under the plan of the organisation there is none
    month: Month
    produced_bytes: int
    consumed_bytes: int
    cost: Decimal


def elastic_get(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> ElasticNow:
    """The setting, its prices and this month. Raises NotFound."""
    return elastic_of_instance(instance_get(organisation=organisation, instance_id=instance_id), clock)


def elastic_of_instance(instance: Instance, clock: Clock) -> ElasticNow:
    """The same of an instance that is at hand."""
    now = clock.now()
    month, hours = Month.of(now), _hours(instance, now)
    plan = selectors.plan_counted(instance.organisation, clock=clock)
    return ElasticNow(
        instance=instance,
        state=_state(instance),
        prices=elastic_prices_on(plan.name, month_day(now)),
        month=month,
        produced_bytes=sum(produced for produced, _ in hours.values()),
        consumed_bytes=sum(consumed for _, consumed in hours.values()),
        cost=_cost(instance, hours, month),
    )


@transaction.atomic
def elastic_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    cap_mib_per_s: float | None,
    budget_per_month: Decimal | None = None,
    check: Callable[[Instance], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Operation:
    """A cap and a budget of the month; None: off, and no budget. What is set anew is on at once, within its budget.

    Asked again for the same, it answers the operation that has brought it. `check` is told the instance as it is.

    Raises NotFound, Invalid, Conflict.
    """
    instance = instance_locked(organisation, instance_id)
    if check is not None:
        check(instance)
    _check(instance, cap_mib_per_s, budget_per_month)
    wanted = {
        "elastic_mib_per_s": cap_mib_per_s,
        "elastic_budget": None if cap_mib_per_s is None else budget_per_month,
    }
    now = {name: getattr(instance, name) for name in wanted}
    if now == wanted:
        newest = _updates(organisation, instance_id)
        if newest is not None:
            return newest
    if cap_mib_per_s is not None and _prices(instance, clock) is None:
        raise Conflict(
            "under the plan of the organisation bandwidth is not bought, so there is nothing to go above",
            code="plan_not_elastic",
        )
    if wanted["elastic_budget"] is not None:
        _check_currency(organisation, clock)
    spent = cap_mib_per_s is not None and _is_spent(instance, budget_per_month, clock)
    off_until = Month.of(clock.now()).end if spent else None
    changed = instance_row_change(
        organisation, instance_id, lambda _instance: {**wanted, "elastic_off_until": off_until}
    )
    operation = operations.start(organisation=organisation, kind=UPDATE, target=instance_id, actor=actor, clock=clock)
    detail = audit.changed(*({name: _plain(value) for name, value in each.items()} for each in (now, wanted)))
    audit.record_about(changed, actor, SET, detail, clock)
    return operation


def elastic_look(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Switch off where the budget of the month is used up, and on again when a month has begun; how many."""
    rows = Instance.objects.unscoped(_MACHINERY).exclude(elastic_mib_per_s=None)
    rows = rows.filter(state__in=(InstanceState.RUNNING, InstanceState.RESTORING))
    done = 0
    spent = rows.filter(elastic_off_until__lte=clock.now()).values_list("pk", flat=True)
    limited = rows.filter(elastic_off_until=None).exclude(elastic_budget=None).values_list("pk", flat=True)
    unpriced = [each.pk for each in rows.select_related("organisation") if _prices(each, clock) is None]
    for look, names in ((_take_away, unpriced), (_switch_on, list(spent)), (_switch_off, list(limited))):
        for instance_id in names:
            try:
                done += look(instance_id, clock)
            except Exception:
                LOG.exception("elastic bandwidth of %s", instance_id)
    return done


@transaction.atomic
def _take_away(instance_id: str, clock: Clock) -> bool:
    instance = _held(instance_id)
    if instance is None or instance.elastic_mib_per_s is None or _prices(instance, clock) is not None:
        return False
    before = {name: _plain(getattr(instance, name)) for name in ("elastic_mib_per_s", "elastic_budget")}
    _move(instance, {"elastic_mib_per_s": None, "elastic_budget": None, "elastic_off_until": None}, clock)
    audit.record_about(instance, audit.SYSTEM, SET, audit.changed(before, dict.fromkeys(before)), clock)
    return True


@transaction.atomic
def _switch_off(instance_id: str, clock: Clock) -> bool:
    instance = _held(instance_id)
    if instance is None or instance.elastic_off_until is not None:
        return False
    if not _is_spent(instance, instance.elastic_budget, clock):
        return False
    now, budget = clock.now(), instance.elastic_budget
    assert budget is not None, "it is used up"
    until = Month.of(now).end
    _move(instance, {"elastic_off_until": until}, clock)
    audit.record_about(
        instance, audit.SYSTEM, OFF_BY_BUDGET, {"until": until.isoformat(), "budget": str(budget)}, clock
    )
    amount = f"{_currency(instance, clock)} {budget:,.2f}"
    owners_tell(instance, lambda about: letters.elastic_spent(about, budget=amount, until=until), now)
    return True


@transaction.atomic
def _switch_on(instance_id: str, clock: Clock) -> bool:
    instance = _held(instance_id)
    if instance is None or instance.elastic_off_until is None or instance.elastic_off_until > clock.now():
        return False
    _move(instance, {"elastic_off_until": None}, clock)
    audit.record_about(instance, audit.SYSTEM, ON_AGAIN, {}, clock)
    return True


def _held(instance_id: str) -> Instance | None:
    try:
        return instance_locked(instance_fresh(instance_id).organisation, instance_id)
    except NotFound:
        return None


def _move(instance: Instance, changes: dict[str, Any], clock: Clock) -> None:
    instance_row_change(instance.organisation, instance.id, lambda _instance: changes)
    operations.start(organisation=instance.organisation, kind=UPDATE, target=instance.id, counted=False, clock=clock)


def _updates(organisation: Organisation, instance_id: str) -> Operation | None:
    rows = Operation.objects.for_organisation(organisation).filter(target=instance_id, kind=UPDATE)
    return rows.order_by("-created_at", "-pk").first()


def _check(instance: Instance, cap: float | None, budget: Decimal | None) -> None:
    """Raises Invalid."""
    problems = []
    if cap is not None:
        most = min(MOST_BANDWIDTH_MIB_PER_S, ELASTIC_TIMES * instance.bandwidth_mib_per_s)
        if isinstance(cap, bool) or not math.isfinite(cap) or not instance.bandwidth_mib_per_s < cap <= most:
            least, largest = rules.text_of(instance.bandwidth_mib_per_s), rules.text_of(most)
            problems.append(
                FieldProblem(
                    "cap_mib_per_s", f"must be more than the {least} MiB/s that were bought, and at most {largest}"
                )
            )
    if budget is not None and (not budget.is_finite() or not 0 < budget <= MOST_BUDGET):
        problems.append(FieldProblem("budget_per_month", f"must be more than 0 and at most {MOST_BUDGET}"))
    if problems:
        raise Invalid("; ".join(f"{each.field} {each.detail}" for each in problems), errors=problems)


def _check_currency(organisation: Organisation, clock: Clock) -> None:
    """Whether an amount that is set now will be of the currency that it was set in. Raises Conflict."""
    in_use.locked(organisation)  # until then nobody chooses a plan
    following = currency_next(organisation=organisation, at=clock.now())
    if following is not None:
        other, at = following
        raise Conflict(
            f"from {at:%Y-%m-%d} on the organisation pays in {other.currency}: set the budget from then on",
            code="other_currency_budget",
        )


def _state(instance: Instance) -> str:
    if instance.elastic_mib_per_s is None:
        return OFF
    return ON if instance.elastic_off_until is None else SPENT


def _prices(instance: Instance, clock: Clock) -> ElasticPrices | None:
    plan = selectors.plan_counted(instance.organisation, clock=clock)
    return elastic_prices_on(plan.name, month_day(clock.now()))


def _currency(instance: Instance, clock: Clock) -> str:
    return selectors.plan_counted(instance.organisation, clock=clock).currency


def _is_spent(instance: Instance, budget: Decimal | None, clock: Clock) -> bool:
    if budget is None:
        return False
    now = clock.now()
    return _cost(instance, _hours(instance, now), Month.of(now)) >= budget


def _hours(instance: Instance, now: datetime) -> dict[datetime, tuple[int, int]]:
    month = Month.of(now)
    return elastic_hours(instance=instance, start=month.start, end=month.end)


def _cost(instance: Instance, hours: dict[datetime, tuple[int, int]], month: Month) -> Decimal:
    """As the bill has it."""
    terms = terms_of(organisation=instance.organisation, month=month)
    elastic: Elastic = elastic_of(hours, terms, month)
    return total_of(line.amount for line in elastic_lines(elastic, terms, month))


def _plain(value: object) -> Any:
    return str(value) if isinstance(value, Decimal) else value
