"""Comparing every budget with what its month costs; thresholds that are reached for the first time are noted and told.

This month is looked at, and the one before, whose last hours are counted after its end: there only budgets whose amount and
thresholds were set before it ended. Costs are those that billing keeps (costs.py), at most about twenty minutes old.

Alerts and their messages are written in one transaction, under a lock on the budget's row: of two workers at once the second
finds the alerts of the first. So a threshold is told once however many workers look, and one that dies before its
transaction ended has told nothing. What is wrong with one budget keeps no other from being looked at.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import OperationalError, transaction

from controlplane.alarms.delivery import outbox, words
from controlplane.billing.models import MonthCost
from controlplane.billing.pricing.money import text_of
from controlplane.billing.pricing.rating import Month
from controlplane.budgets.models import Budget, BudgetAlert
from controlplane.budgets.rules import Standing, Threshold, reached, told
from controlplane.budgets.selectors import receivers_of, stand_of, stands_of
from controlplane.core.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from controlplane.budgets.selectors import Stand

LOG = logging.getLogger(__name__)
_REASON = "budgets of all organisations are looked at"


def evaluate(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Look at every budget; how many alerts there were."""
    now = clock.now()
    month = Month.of(now)
    budgets = list(Budget.objects.unscoped(_REASON).order_by("organisation_id", "pk"))
    found = sum(_looked_at(part, month, now, is_over=False) for part in _by_organisation(budgets))
    before = month.before(1)
    earlier = [budget for budget in budgets if budget.decided_at < before.end]
    return found + sum(_looked_at(part, before, now, is_over=True) for part in _by_organisation(earlier))


def _by_organisation(budgets: Sequence[Budget]) -> list[list[Budget]]:
    found: dict[str, list[Budget]] = {}
    for budget in budgets:
        found.setdefault(budget.organisation_id, []).append(budget)
    return list(found.values())


def _looked_at(budgets: Sequence[Budget], month: Month, now: datetime, *, is_over: bool) -> int:
    """Budgets of one organisation."""
    rows = MonthCost.objects.unscoped(_REASON).filter(organisation=budgets[0].organisation_id, month=str(month))
    stands = stands_of(rows)
    count = 0
    for budget in budgets:
        stand = stand_of(budget, stands)
        if stand is None:
            continue
        standing = Standing(stand.so_far, stand.forecast, is_over)
        if not reached(budget.amount, standing, budget.thresholds):
            continue
        try:
            count += _alert(budget, month, stand, now, is_over=is_over)
        except OperationalError:
            raise  # the database is away: that is no budget's fault
        except Exception:
            LOG.exception("budget %s in %s", budget.pk, month)
    return count


@transaction.atomic
def _alert(budget: Budget, month: Month, stand: Stand, now: datetime, *, is_over: bool) -> int:
    """Note and tell what is reached and was not before; how many."""
    rows = Budget.objects.unscoped(_REASON).select_related("organisation", "instance")
    row = rows.select_for_update(of=("self",)).filter(pk=budget.pk, decided_at=budget.decided_at).first()
    if row is None:  # deleted or changed meanwhile: the next look sees it
        return 0
    alerts = BudgetAlert.objects.unscoped(_REASON).filter(budget=row, month=str(month), amount=row.amount)
    known = {Threshold(kind, percent) for kind, percent in alerts.values_list("kind", "percent")}
    standing = Standing(stand.so_far, stand.forecast, is_over)
    fresh = sorted(reached(row.amount, standing, row.thresholds) - known)
    messages = {each: _tell(row, month, each, stand, now, fresh, is_over=is_over) for each in told(fresh)}
    BudgetAlert.objects.unscoped(_REASON).bulk_create(
        BudgetAlert(
            organisation_id=row.organisation_id,
            budget=row,
            month=str(month),
            kind=each.kind,
            percent=each.percent,
            amount=row.amount,
            so_far=stand.so_far,
            forecast=stand.forecast,
            counted_until=stand.counted_until,
            at=now,
            messages=messages.get(each, 0),
        )
        for each in fresh
    )
    return len(fresh)


def _tell(
    budget: Budget,
    month: Month,
    threshold: Threshold,
    stand: Stand,
    now: datetime,
    fresh: Sequence[Threshold],
    *,
    is_over: bool,
) -> int:
    receivers = receivers_of([budget]).get(budget.pk, [])
    document = words.budget_document(
        at=now,
        place=_place(budget),
        budget={
            "id": budget.pk,
            "name": budget.name,
            "amount": text_of(budget.amount),
            "currency": budget.currency,
        },
        month=str(month),
        kind=threshold.kind,
        percent=threshold.percent,
        lower=[each.percent for each in fresh if each.kind == threshold.kind and each < threshold],
        so_far=text_of(stand.so_far),
        forecast=text_of(stand.forecast),
        counted_until=stand.counted_until,
        is_over=is_over,
    )
    return outbox.write_budget(receivers, document, at=now)


def _place(budget: Budget) -> Mapping[str, Mapping[str, str] | None]:
    instance = budget.instance
    return {
        "organisation": {"id": budget.organisation_id, "name": budget.organisation.name},
        "instance": None if instance is None else {"id": instance.pk, "name": instance.name},
    }
