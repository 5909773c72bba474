"""Choosing a plan; setting a tax; waiving what a month waits for, or a broker that invoices wait for."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Q

from controlplane.billing.models import Invoice, MeteringWaiver, PlanChoice, Prepaid, PrepaidEvent, TaxRate
from controlplane.billing.pricing.rating import HOUR, Month, floored
from controlplane.billing.selectors import plan_named, plan_state, waiver_about
from controlplane.billing.waiting import months_due, reasons_by_cluster, waiting_for_broker, waived_by
from controlplane.clusters.services import cluster_named
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, FieldProblem, Invalid, NotFound, PreconditionFailed
from controlplane.core.text import name_problem, second_text
from controlplane.instances.models import Instance, InstanceState, SpecChange, SpecChangeKind
from controlplane.metering import finality
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER
from controlplane.metering.selectors import complete_to
from controlplane.tenants import in_use
from controlplane.tenants.models import Organisation

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.metering.models import BrokerWaiver

LOG = logging.getLogger(__name__)
NOW, NEXT_MONTH = "now", "next_month"
LONGEST_TAX, MOST_PERCENT = 64, 100
EVERYBODY = "everybody"
"""Whose a tax is that was set for no organisation of its own."""
STEP = Decimal("0.001")


@transaction.atomic
def plan_choose(
    *,
    organisation: Organisation,
    actor: str,
    plan: str,
    when: str = NOW,
    seen: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> PlanChoice:
    """A plan from the next full hour on (NOW), or from the next month (NEXT_MONTH): never for hours that have begun.

    A month has one currency. A plan in another one counts from the next month, once nothing is left of what is in the
    currency of before (`_check_left`); where nothing was ever billed, NOW is all of the running month. It takes the place of
    changes that were chosen before and have not come into force. `seen`: the state of the plan (`PlanState.text`) that a page has
    shown. Raises Invalid, Conflict; PreconditionFailed where it is another one by now.
    """
    # Who pays in advance, or sets a budget of elastic bandwidth, holds this row too: of the two, one sees the other.
    in_use.locked(organisation)
    now = clock.now()
    state = plan_state(organisation=organisation, at=now)
    if seen is not None and seen != state.text:
        raise PreconditionFailed("the plan was changed since you opened the page: look again. Nothing was changed now")
    if when not in (NOW, NEXT_MONTH):
        raise Invalid.field("when", f"must be {NOW} or {NEXT_MONTH}")
    at = Month.of(now).end if when == NEXT_MONTH else _hour_from(now)
    chosen = plan_named(plan, at)
    present = state.present
    if when == NOW and chosen.currency != present.currency:
        if _is_billed(organisation):
            raise Conflict(
                f"{chosen.title} is paid in {chosen.currency}, this month in {present.currency}: choose it for the next month",
                code="other_currency",
            )
        at = Month.of(now).start
        chosen = plan_named(plan, at)
    _check_left(organisation, present.currency, chosen.currency, at)
    rows = PlanChoice.objects.for_organisation(organisation)
    rows.filter(at__gte=at).delete()
    choice = PlanChoice(organisation=organisation, plan=plan, at=at)
    choice.save(force_insert=True)
    detail = {"plan": {"from": present.name, "to": plan}, "at": at.isoformat()}
    audit.record(organisation=organisation, actor=actor, action="plan.choose", target=plan, detail=detail, clock=clock)
    return choice


@transaction.atomic
def tax_set(
    *,
    organisation: Organisation | None,
    month: Month,
    name: str,
    percent: Decimal,
    actor: str,
    clock: Clock = SYSTEM_CLOCK,
) -> TaxRate:
    """What invoices are taxed with from a month on that has not begun: those of one organisation, or of everybody (None).

    In place of what was set for the same month. 0 percent: exempt. On record in the audit trail of the organisation, or of
    every one. Raises Invalid with everything that is wrong, Conflict.
    """
    problems = []
    problem = name_problem(name)
    if problem is not None or len(name) > LONGEST_TAX:
        problems.append(FieldProblem("name", problem or f"must have at most {LONGEST_TAX} characters"))
    if not (percent.is_finite() and 0 <= percent <= MOST_PERCENT and percent == percent.quantize(STEP)):
        problems.append(FieldProblem("percent", "must be a number from 0 to 100 with at most three decimals"))
    if problems:
        raise Invalid.fields(problems)
    now = clock.now()
    if month.start <= now:
        raise Conflict(f"{month} has begun: its invoices are taxed as was known before", code="month_begun")
    defaults = {"name": name.strip(), "rate": percent / MOST_PERCENT, "actor": actor, "at": now}
    rows = TaxRate.objects.unscoped("operators set everybody's taxes")
    before = rows.filter(organisation=organisation, month=str(month)).first()
    row, _ = rows.update_or_create(organisation=organisation, month=str(month), defaults=defaults)
    LOG.info("tax of %s: %s percent by %s", organisation.pk if organisation else EVERYBODY, percent, actor)
    was = (before.name, before.rate * MOST_PERCENT) if before is not None else (None, None)
    detail: dict[str, Any] = {
        "month": str(month),
        "name": {"from": was[0], "to": row.name},
        "percent": {"from": None if was[1] is None else f"{was[1].normalize():f}", "to": f"{percent.normalize():f}"},
    }
    if organisation is None:
        detail["of"] = EVERYBODY
    for each in Organisation.objects.filter(deleted_at=None).order_by("pk") if organisation is None else [organisation]:
        audit.record(organisation=each, actor=actor, action="tax.set", target=row.name, detail=detail, clock=clock)
    return row


def _is_billed(organisation: Organisation) -> bool:
    """Whether anything was, or is to be: an instance was open, however long ago, or there is an invoice."""
    opened = SpecChange.objects.for_organisation(organisation).filter(kind=SpecChangeKind.OPENED)
    return opened.exists() or Invoice.objects.for_organisation(organisation).exists()


def _check_left(organisation: Organisation, present: str, currency: str, at: datetime) -> None:
    """Whether anything in another currency reaches beyond a moment from which this one counts. Raises Conflict.

    What is paid in advance would be paid back, and grow, at the prices with which it was bought, on a bill in this currency;
    a budget of elastic bandwidth is an amount without one.
    """
    reaching = Q(is_waiting=True) | Q(ends_at__gt=at)
    left = [
        f"{row.pk} (until {second_text(row.ends_at)})" if row.ends_at else f"{row.pk} (not open yet)"
        for row in Prepaid.objects.for_organisation(organisation).filter(reaching).order_by("pk")
        if _paid_in(organisation, row.pk) not in (None, currency)
    ]
    if left:
        instances = ", ".join(left)
        raise Conflict(
            f"still paid in advance in another currency than {currency}: {instances}. Choose the plan when that has ended",
            code="other_currency_in_advance",
        )
    if currency == present:
        return
    rows = Instance.objects.for_organisation(organisation).exclude(state=InstanceState.DELETED)
    budgets = ", ".join(rows.exclude(elastic_budget=None).order_by("pk").values_list("pk", flat=True))
    if budgets:
        raise Conflict(
            f"budgets of elastic bandwidth are in the currency of the present plan: {budgets}."
            f" Take them away, and set them in {currency} from {at:%Y-%m-%d} on",
            code="other_currency_budget",
        )


def _paid_in(organisation: Organisation, instance_id: str) -> str | None:
    """The currency in which months were paid last."""
    events = (
        PrepaidEvent.objects.for_organisation(organisation).filter(instance=instance_id).exclude(prices__isnull=True)
    )
    last = events.order_by("number").last()
    return last.prices["currency"] if last and last.prices else None


def _hour_from(moment: datetime) -> datetime:
    """The first full hour that does not begin before a moment."""
    hour = floored(moment)
    return hour if hour == moment else hour + HOUR


@transaction.atomic
def metering_waive(
    *,
    month: Month,
    instance_id: str | None,
    actor: str,
    reason: str,
    cluster: str = "",
    clock: Clock = SYSTEM_CLOCK,
) -> MeteringWaiver:
    """An operator's word that invoices of a month need not wait for metering: of one instance, or of all (None).

    `cluster`: of those on this one; empty: on every cluster. The next run of the closer writes them. On record in every
    organisation whose invoices waited. Raises Invalid, Conflict, NotFound.
    """
    if not reason.strip():
        raise Invalid.field("reason", "must say why")
    if month not in months_due(clock.now()):
        raise Conflict(f"{month} is not due: its invoices wait for nothing that could be waived", code="month_not_due")
    if cluster:
        cluster = cluster_named(cluster).name
    about = {"month": str(month), "cluster": cluster, "instance_id": instance_id}
    before = waiver_about(month=str(month), cluster=cluster, instance_id=instance_id)
    if before is not None:
        return before
    reasons = reasons_by_cluster(month, cluster)
    if not reasons:
        raise Conflict(f"all usage of {month} has been counted: there is nothing to waive", code="nothing_waits")
    concerned = waived_by(month, reasons, instance_id)
    if instance_id is not None and not concerned:
        raise NotFound(f"no invoice of {instance_id} for {month} waits")
    organisations = {instance.organisation_id: instance.organisation for instance in concerned}
    why = "; ".join(dict.fromkeys(reasons[instance.cluster.name] for instance in concerned))
    if not organisations:
        raise Conflict(f"no invoice of {month} waits", code="nothing_waits")
    waiver = MeteringWaiver(**about, actor=actor, reason=reason.strip(), waited_for=why, at=clock.now())
    waiver.save(force_insert=True)
    detail = {"month": str(month), "reason": waiver.reason, "waited_for": why}
    if cluster:
        detail["cluster"] = cluster
    for organisation in organisations.values():
        audit.record(
            organisation=organisation,
            actor=actor,
            action="invoice.waive_metering",
            target=instance_id or str(month),
            detail=detail,
            clock=clock,
        )
    return waiver


@transaction.atomic
def broker_waive(
    *, broker: int, reason: str, actor: str, cluster: str = DEFAULT_CLUSTER, clock: Clock = SYSTEM_CLOCK
) -> BrokerWaiver:
    """An operator's word that usage waits no longer for a broker of a cluster, as it is now (metering/finality.py).

    On record in every organisation whose invoices waited for it. Raises NotFound, Invalid, Conflict.
    """
    months = waiting_for_broker(broker, cluster, clock.now())
    organisations = {
        instance.organisation_id: instance.organisation for concerned in months.values() for instance in concerned
    }
    waiver = finality.broker_waive(
        broker=broker, reason=reason, actor=actor, read_to=complete_to(cluster), cluster=cluster, clock=clock
    )
    detail = {
        "cluster": cluster,
        "months": [str(month) for month in months],
        "reason": waiver.reason,
        "waited_for": waiver.waited_for,
    }
    for organisation in organisations.values():
        audit.record(
            organisation=organisation,
            actor=actor,
            action="invoice.waive_broker",
            target=f"broker {broker}",
            detail=detail,
            clock=clock,
        )
    return waiver
