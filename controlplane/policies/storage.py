"""Buying more storage: one kind of operation, which buys as a person would, by `purchases.instance_change`.

So the room of the cluster, the caps of the organisation and the price are judged as ever, the change is on record, and an
operation of its own brings it to brokers. Budgets, which only tell people otherwise, stop it: nobody is there to be told first.
What is refused ends the operation, and the policy says why.

The purchase and the mark that it was made are one transaction, under the lock of the policy's row: a worker that dies has bought
nothing, or everything, and the step that is repeated finds which.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.admission import prepaid, purchases
from controlplane.admission import rules as sizes
from controlplane.admission.selectors import counted, plan_counted
from controlplane.billing.costs import cost_list
from controlplane.billing.models import PrepaidEvent
from controlplane.billing.pricing.prepaid import GROWTH, Account
from controlplane.billing.pricing.rating import Month, Paid
from controlplane.billing.selectors import account_get
from controlplane.budgets.selectors import budget_list, stand_of, stands_of
from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict, Forbidden, OperationFailed, SluiceError
from controlplane.core.operations import Finished, OperationKind, Step
from controlplane.instances.models import Instance, InstanceState, SpecChange, SpecChangeKind
from controlplane.instances.selectors import instance_fresh
from controlplane.policies import measuring, rules, telling
from controlplane.policies.rules import EXPANSION
from controlplane.policies.services import amounts_at, most_of
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controlplane.billing.models import MonthCost
    from controlplane.billing.pricing.plans import Plan
    from controlplane.core.models import Operation
    from controlplane.policies.models import DiskPolicy

FREE = (SpecChangeKind.ISOLATED, SpecChangeKind.CLOSED)
"""From then on an instance costs nothing."""


def register() -> None:
    """Make the kind of operation known."""
    operations.register(OperationKind(rules.EXPANDING, (Step("buy storage", buy),), failed=telling.stuck))


def buy(operation: Operation) -> Finished:
    """One step more, where the level is still reached. What is refused ends the operation."""
    used = measuring.used_bytes(instance_fresh(operation.target))
    try:
        return _bought(operation, used)
    except SluiceError as error:
        if error.retriable or isinstance(error, OperationFailed):
            raise
        raise OperationFailed(error.detail, code=error.code) from error


@transaction.atomic
def _bought(operation: Operation, used: int) -> Finished:
    policy = telling.policy_locked(operation.target)
    if policy is None or policy.revision != operation.arguments["revision"] or policy.policy != EXPANSION:
        return _nothing("there is another policy since: nothing was done")
    if policy.expanded_by == operation.id:
        return Finished("", operation.result or {"said": "more storage was bought"})
    instance = instance_fresh(operation.target)
    if instance.state != InstanceState.RUNNING:
        return _nothing("the instance does not run any more: nothing was done")
    if not rules.is_reached(policy.level_percent, used, round(instance.storage_gib * GIB)):
        return _nothing("storage is below the level again: nothing was done")
    before, most, charged = instance.storage_gib, most_of(policy.rule), prepaid.charged(instance, SYSTEM_CLOCK)
    wanted = rules.expanded(before, step_percent=policy.step_percent, most_gib=most)
    if wanted is None:
        raise OperationFailed(f"storage is at the most that the policy buys: {most:g} GiB", code=telling.AT_ITS_MOST)
    _, begun = purchases.instance_change(
        organisation=policy.organisation,
        actor=audit.SYSTEM,
        instance_id=policy.pk,
        changes={"storage_gib": wanted},
        confirm_price=policy.confirm_price,
        admit_paying=None if policy.pays_in_advance else _refuse,
    )
    # The purchase has locked the organisation's row: of two instances that buy at once the second counts what the first bought.
    price = _check_budgets(policy, instance, wanted, charged)
    policy.expanded_by, policy.problem, policy.problem_at = operation.id, "", None
    policy.save(update_fields=["expanded_by", "problem", "problem_at"])
    telling.expanded_tell(policy, before_gib=before, after_gib=wanted, price=price, at=SYSTEM_CLOCK.now())
    said = f"storage was raised from {before:g} to {wanted:g} GiB"
    return Finished("", {"said": said, "storage_gib": wanted, "operation_id": begun.id})


def _refuse() -> None:
    """Of an instance that is paid in advance since. Raises Forbidden."""
    raise Forbidden(
        "the instance is paid in advance, and who has set the policy does not pay in advance: "
        "an owner or a member has to set it again",
        code="not_in_role",
    )


def _check_budgets(policy: DiskPolicy, instance: Instance, wanted: float, charged: Decimal | None) -> str:
    """What the instance costs a month then. Raises Conflict where a budget of this month does not suffice.

    `instance` is as it was before the purchase, which is made; `charged` what had been paid in advance by then: of an instance
    that is paid so, all that it costs more until the end is this month's.
    """
    organisation, now = policy.organisation, SYSTEM_CLOCK.now()
    currency = plan_counted(organisation).currency
    price: Decimal = amounts_at(instance, wanted, SYSTEM_CLOCK)[sizes.PRICE]  # type: ignore[assignment]  # a price is a Decimal
    more = price - amounts_at(instance, instance.storage_gib, SYSTEM_CLOCK)[sizes.PRICE]  # type: ignore[operator]
    month = Month.of(now)
    left = (month.end - now) / (month.end - month.start)
    if charged is not None:
        more, left = (prepaid.charged(instance_fresh(instance.pk), SYSTEM_CLOCK) or charged) - charged, 1.0
    costs = list(cost_list(organisation=organisation, month=month))
    stands, bought = (
        stands_of(costs),
        _bought_since(instance, [row for row in costs if row.currency == currency], month),
    )
    for budget in budget_list(organisation=organisation).filter(currency=currency):
        stand = stand_of(budget, stands)
        if stand is None or budget.instance_id not in (None, instance.id):
            continue
        forecast = stand.forecast + (
            bought.get(instance.id, Decimal(0)) if budget.instance_id else sum(bought.values())
        )
        if rules.is_over_budget(amount=budget.amount, forecast=forecast, more_per_month=more, left=left):
            raise Conflict(
                f"with more storage this month would cost more than the budget {budget.name} of {currency} {budget.amount}",
                code="over_budget",
            )
    return f"{currency} {price:,.2f}"


def _bought_since(instance: Instance, costs: Sequence[MonthCost], month: Month) -> dict[str, Decimal]:
    """What this month costs more by what was bought since its forecasts were computed, by instance of the organisation.

    By the hour that is sizes that were changed, in hours that are not paid in advance; in advance it is what was charged, less
    what was paid back. But for the last change of `instance`: that is what is judged.
    """
    since = {row.instance_id: row.computed_at for row in costs}
    if not since:
        return {}
    organisation, oldest = instance.organisation, min(since.values())
    rows = SpecChange.objects.for_organisation(organisation)
    judged = rows.filter(instance=instance).order_by("-pk").first()
    if judged is not None:
        rows = rows.exclude(pk=judged.pk)
    events = PrepaidEvent.objects.for_organisation(organisation)
    changed = {
        name for kind in (rows, events) for name in kind.filter(at__gt=oldest).values_list("instance", flat=True)
    }
    in_advance = Instance.objects.for_organisation(organisation).in_bulk(
        events.filter(instance__in=changed).values_list("instance", flat=True)
    )
    plan = plan_counted(organisation)
    prices: dict[str, list[tuple[datetime, Decimal]]] = {name: [] for name in changed}
    for row in rows.filter(instance__in=changed).order_by("at", "pk"):
        prices[row.instance_id].append((row.at, Decimal(0) if row.kind in FREE else _price(row, plan)))
    found: dict[str, Decimal] = {}
    for name, steps in prices.items():
        start = since.get(name, oldest)
        now = then = Account(Paid())
        if name in in_advance:
            then, now = (account_get(in_advance[name], at) for at in (start, SYSTEM_CLOCK.now()))
        grown = judged.at if judged is not None and name == instance.id else None
        charged = sum(
            line.amount
            for line in now.paid.charges
            if line.charged
            and line.charged.at > start
            and not (line.charged.kind == GROWTH and line.charged.at == grown)
        )
        expected = _by_the_hour([step for step in steps if step[0] <= start], then.paid, start, month)
        found[name] = _by_the_hour(steps, now.paid, start, month) - expected + charged
    return found


def _by_the_hour(steps: Sequence[tuple[datetime, Decimal]], paid: Paid, since: datetime, month: Month) -> Decimal:
    """What hours from then to the month's end cost that are not paid in advance.

    `steps`: from when on a month costs how much, in order.
    """
    found = Decimal(0)
    ends = [at for at, _ in steps[1:]]
    for (at, price), until in zip(steps, [*ends, month.end], strict=False):
        start, end = max(at, since, month.start), min(until, month.end)
        left = max(end - start, timedelta(0))
        for first, last in paid.covered:
            left -= max(min(last, end) - max(first, start), timedelta(0))
        found += price * Decimal(str(left / (month.end - month.start)))
    return found


def _price(row: SpecChange, plan: Plan) -> Decimal:
    """A month of this size."""
    price: Decimal = counted({name: getattr(row, name) for name in sizes.SIZES}, plan)[sizes.PRICE]  # type: ignore[assignment]
    return price


def _nothing(why: str) -> Finished:
    return Finished(why, {"said": why})
