"""Choosing a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.billing.models import PlanChoice
from controlplane.billing.rating import HOUR, Month, floored
from controlplane.billing.selectors import plan_named, plan_of
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.tenants.models import Organisation

NOW, NEXT_MONTH = "now", "next_month"


@transaction.atomic
def plan_choose(
    *, organisation: Organisation, actor: str, plan: str, when: str = NOW, clock: Clock = SYSTEM_CLOCK
) -> PlanChoice:
    """A plan from the next full hour on (NOW), or from the next month (NEXT_MONTH): never for hours that have begun.

    It takes the place of changes that were chosen before and have not come into force. Raises Invalid, Conflict.
    """
    now = clock.now()
    if when not in (NOW, NEXT_MONTH):
        raise Invalid.field("when", f"must be {NOW} or {NEXT_MONTH}")
    at = Month.of(now).end if when == NEXT_MONTH else _hour_from(now)
    chosen = plan_named(plan, at)
    present = plan_of(organisation=organisation, at=now)
    if when == NOW and chosen.currency != present.currency:
        raise Conflict(
            f"{chosen.title} is paid in {chosen.currency}, this month in {present.currency}: choose it for the next month",
            code="other_currency",
        )
    rows = PlanChoice.objects.for_organisation(organisation)
    rows.filter(at__gte=at).delete()
    choice = PlanChoice(organisation=organisation, plan=plan, at=at)
    choice.save(force_insert=True)
    detail = {"plan": plan, "at": at.isoformat()}
    audit.record(organisation=organisation, actor=actor, action="plan.choose", target=plan, detail=detail, clock=clock)
    return choice


def _hour_from(moment: datetime) -> datetime:
    """The first full hour that does not begin before a moment."""
    hour = floored(moment)
    return hour if hour == moment else hour + HOUR
