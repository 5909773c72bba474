"""An instance's quota: what it may carry and carries, broker by broker, and why it had to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.flow import broker_time_of, directions, flow_of, transactions_of
from controlplane.console.page import tenant_page
from controlplane.console.rules import whom
from controlplane.console.waits import day_began, waited_days
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Unavailable
from controlplane.health.selectors import health_get
from controlplane.instances.selectors import instance_get
from controlplane.quotas import history
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import allocation_of
from controlplane.remedies.merging import whys
from controlplane.remedies.neighbours import noise_of
from controlplane.remedies.reasons import reasons_of
from controlplane.throttle_rules.selectors import throttle_rule_list

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance

RULES = 10
"""Shown here; the page of their own has all of them."""
INTERVALS, REASONS = 500, 8
"""Read, and shown of what they come to: hours of throttling are one reason. Where there are more, the page says so."""


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Now, the last 24 hours, and each day of the week that is kept."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    now = SYSTEM_CLOCK.now()
    began = day_began(now)
    waited_ms = history.throttled_by_hour(instance=instance, start=began, end=now)
    intervals = history.latest(instance=instance, start=began, end=now, limit=INTERVALS)
    rules = _rules(caller, instance)
    named = rules.get("all_rules")
    context = {
        **_now(instance),
        **rules,
        "tab": "quota",
        "days": waited_days(waited_ms, now),
        "reasons": reasons_of(instance, whys(intervals)[:REASONS], named, now=now),
        "read": INTERVALS if len(intervals) == INTERVALS else None,  # there may be more
        "noise": noise_of(instance, began, now)[:REASONS],
        "guarantee": history.guarantee_days(instance=instance, now=now),
    }
    return render(request, "console/instance_quota.html", context)


@require_safe
@tenant_page
def now(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The part that comes again every 2 s."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    return render(request, "console/parts/quota_now.html", _now(instance))


def _rules(caller: Caller, instance: Instance) -> dict[str, Any]:
    try:
        rules = throttle_rule_list(organisation=caller.organisation, instance_id=instance.id)
    except Unavailable as error:
        return {"rules_away": error}
    return {
        "rules": [(rule, whom(rule)) for rule in rules[:RULES]],
        "more_rules": len(rules) if len(rules) > RULES else None,
        "all_rules": rules,
        "rule_ids": {rule.id for rule in rules},
    }


def _now(instance: Instance) -> dict[str, Any]:
    figures = figures_get([instance], allocation_of)
    document = figures.documents.get(instance.id, {})
    return {
        "instance": instance,
        "health": health_get([instance], figures=figures).get(instance.id),
        "directions": directions(flow_of(instance, document)),
        "broker_time": broker_time_of(document),
        "transactions": transactions_of(document),
        "figures": figures,
    }
