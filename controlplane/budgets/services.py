"""Budgets are made, changed and deleted. Who decides on money is the callers' to ask: owners of the organisation."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.alarms.models import Receiver
from controlplane.billing.selectors import plan_of
from controlplane.budgets.models import Budget, BudgetReceiver
from controlplane.budgets.rules import (
    DEFAULT_ACTUAL,
    DEFAULT_FORECAST,
    MOST_BUDGETS,
    MOST_RECEIVERS,
    NO_AMOUNT,
    amount_of,
    percents_problems,
)
from controlplane.budgets.selectors import budget_get
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import FieldProblem, Invalid, LimitReached, NotFound
from controlplane.core.text import name_problem
from controlplane.instances.selectors import instance_get
from controlplane.tenants import in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controlplane.tenants.models import Organisation

PERCENTS = ("actual_percents", "forecast_percents")
DECIDED = ("amount", *PERCENTS)
"""Members by which a month that is over was not judged when they were set after it."""


@transaction.atomic
def budget_create(
    *,
    organisation: Organisation,
    actor: str,
    name: str,
    amount: str,
    instance_id: str | None = None,
    actual_percents: Sequence[int] = DEFAULT_ACTUAL,
    forecast_percents: Sequence[int] = DEFAULT_FORECAST,
    receivers: Sequence[str] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> Budget:
    """A new budget, in the currency of the present plan. Raises NotFound, Invalid, LimitReached."""
    instance = None if instance_id is None else instance_get(organisation=organisation, instance_id=instance_id)
    in_use.locked(organisation)  # so that they are counted by one at a time
    if Budget.objects.for_organisation(organisation).count() >= MOST_BUDGETS:
        raise LimitReached(f"an organisation has at most {MOST_BUDGETS} budgets", code="too_many_budgets")
    members = {
        "name": name,
        "amount": amount,
        "actual_percents": actual_percents,
        "forecast_percents": forecast_percents,
        "receivers": receivers,
    }
    checked = _checked(organisation, members)
    told = checked.pop("receivers")
    now = clock.now()
    budget = Budget(
        id=ids.budget_id(random.SystemRandom()),
        organisation=organisation,
        instance=instance,
        currency=plan_of(organisation=organisation, at=now).currency,
        created_at=now,
        decided_at=now,
        **checked,
    )
    budget.save(force_insert=True)
    _tell(budget, told)
    detail = {**_said(checked), "instance_id": instance_id, "currency": budget.currency, "receivers": told}
    _audit(budget, actor, "create", detail, clock)
    return budget


@transaction.atomic
def budget_update(
    *,
    organisation: Organisation,
    actor: str,
    budget_id: str,
    changes: Mapping[str, Any],
    check: Callable[[Budget], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Budget:
    """Another name, amount, thresholds or receivers. With another amount, thresholds count anew.

    `check` is told the budget that is to be another. Raises NotFound, Invalid.
    """
    if not changes:
        raise Invalid("nothing to change: give a member of the budget")
    budget = _locked(organisation, budget_id)
    if check is not None:
        check(budget)
    checked = _checked(organisation, changes)
    told = checked.pop("receivers", None)
    before = {name: getattr(budget, name) for name in checked}
    changed = {name: value for name, value in checked.items() if value != before[name]}
    for name, value in changed.items():
        setattr(budget, name, value)
    if any(name in changed for name in DECIDED):
        budget.decided_at = clock.now()
    budget.save(force_update=True)
    detail = audit.changed(_said(before), _said(changed))
    told_before = _told(budget)
    if told is not None and set(told) != set(told_before):
        _tell(budget, told)
        detail |= audit.changed({"receivers": told_before}, {"receivers": told})
    if detail:
        _audit(budget, actor, "update", detail, clock)
    return budget


@transaction.atomic
def budget_delete(
    *,
    organisation: Organisation,
    actor: str,
    budget_id: str,
    check: Callable[[Budget], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """It goes with its history; messages that were written are sent. `check` is told the budget. Raises NotFound."""
    budget = _locked(organisation, budget_id)
    if check is not None:
        check(budget)
    members = {name: getattr(budget, name) for name in ("name", "amount", *PERCENTS)}
    _audit(budget, actor, "delete", _said(members) | {"receivers": _told(budget)}, clock)
    Budget.objects.for_organisation(organisation).filter(pk=budget.pk).delete()


def _locked(organisation: Organisation, budget_id: str) -> Budget:
    budget_get(organisation=organisation, budget_id=budget_id)
    budget = Budget.objects.for_organisation(organisation).select_for_update().filter(pk=budget_id).first()
    if budget is None:  # gone since
        raise NotFound(f"no budget {budget_id}")
    return budget


def _checked(organisation: Organisation, members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are given, as rows have them. Raises Invalid with everything that is wrong."""
    problems: list[FieldProblem] = []
    found = dict(members)
    if "name" in found:
        problem = name_problem(found["name"])
        if problem is not None:
            problems.append(FieldProblem("name", problem))
        else:
            found["name"] = found["name"].strip()
    if "amount" in found:
        found["amount"] = amount_of(found["amount"])
        if found["amount"] is None:
            problems.append(FieldProblem("amount", NO_AMOUNT))
    for field in PERCENTS:
        if field in found:
            found_here = percents_problems(field, found[field])
            problems += found_here
            found[field] = found[field] if found_here else sorted(found[field])
    if "receivers" in found:
        found["receivers"] = list(dict.fromkeys(found["receivers"]))
        problems += _receivers_problems(organisation, found["receivers"])
    if problems:
        raise Invalid.fields(problems)
    return found


def _receivers_problems(organisation: Organisation, names: Sequence[str]) -> list[FieldProblem]:
    if len(names) > MOST_RECEIVERS:
        return [FieldProblem("receivers", f"at most {MOST_RECEIVERS}")]
    known = set(Receiver.objects.for_organisation(organisation).filter(pk__in=names).values_list("pk", flat=True))
    return [
        FieldProblem(f"receivers.{place}", "no such receiver") for place, name in enumerate(names) if name not in known
    ]


def _told(budget: Budget) -> list[str]:
    rows = BudgetReceiver.objects.unscoped("the caller has found the budget").filter(budget=budget)
    return list(rows.values_list("receiver_id", flat=True))


def _tell(budget: Budget, names: Sequence[str]) -> None:
    rows = BudgetReceiver.objects.unscoped("the caller has found the budget")
    rows.filter(budget=budget).delete()
    rows.bulk_create(
        BudgetReceiver(organisation_id=budget.organisation_id, budget=budget, receiver_id=name) for name in names
    )


def _said(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if name == "amount" else value for name, value in members.items()}


def _audit(budget: Budget, actor: str, action: str, detail: dict[str, Any], clock: Clock) -> None:
    audit.record(
        organisation=budget.organisation,
        actor=actor,
        action=f"budget.{action}",
        target=budget.pk,
        detail=detail,
        clock=clock,
    )
