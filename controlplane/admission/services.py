"""Admitting purchases, and what operators decide about room and caps.

Every purchase and every change of a size holds the row of its cluster, then the row of its organisation, from before it
counts until it is committed. So two that come at once are counted one after the other, and the second one sees the first.
SQLite has no such locks and needs none: its transactions begin IMMEDIATE, and one writes at a time.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.admission import installed, rules, selectors
from controlplane.admission.models import ClusterRoom, OrganisationCap
from controlplane.clusters.models import PhysicalCluster
from controlplane.core import audit, sums
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterFull, FieldProblem, Invalid, OrganisationCapReached, PriceUnconfirmed
from controlplane.tenants import in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.admission.rules import Amounts, Exceeded
    from controlplane.billing.pricing.plans import Plan
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

CAPS_SET = "organisation.caps"
LEAST_OVERCOMMIT, MOST_OVERCOMMIT = 0.1, 10_000


def admit(
    *,
    instance: Instance,
    before: Mapping[str, object] | None = None,
    is_price_confirmed: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Whether an instance may have the sizes that its row has in this transaction. `before`: its sizes until now, if any.

    Raises Conflict where the organisation was marked for deletion meanwhile, OrganisationCapReached, ClusterFull,
    PriceUnconfirmed, the first of them that applies; the transaction has to be given up then.
    """
    cluster = PhysicalCluster.objects.select_for_update().get(pk=instance.cluster_id)
    organisation = in_use.locked(instance.organisation)
    after = {name: getattr(instance, name) for name in rules.SIZES}
    plan = selectors.plan_counted(organisation, clock=clock)
    now = selectors.counted(before, plan) if before else None
    then = selectors.counted(after, plan)
    _check_caps(organisation, plan, instance, now, then)
    _check_cluster(cluster, instance, before, after, clock)
    if not is_price_confirmed:
        price_check(plan, now, then)


def _check_caps(
    organisation: Organisation, plan: Plan, instance: Instance, before: Amounts | None, after: Amounts
) -> None:
    others = selectors.taken_of_organisation(organisation, plan=plan, but=instance)
    found = rules.exceeded(selectors.caps_of(organisation, currency=plan.currency), others, before=before, after=after)
    if found:
        said = {
            each: sums.shown(rules.sentence_of(each, has="the organisation may have", currency=plan.currency))
            for each in found
        }
        detail = f"{'; '.join(said.values())}. {selectors.how_to_raise(organisation)}"
        raise OrganisationCapReached(detail, errors=_beside(said), members=_members(found, with_sums=sums.are_told()))


def _check_cluster(
    cluster: PhysicalCluster,
    instance: Instance,
    before: Mapping[str, object] | None,
    after: Mapping[str, object],
    clock: Clock,
) -> None:
    hosts = selectors.hosts_of(cluster, clock=clock)
    operators = {"operators_limits": instance.operators_limits}
    found = rules.exceeded(
        selectors.capacity_of(cluster, hosts=hosts),
        selectors.taken_of_cluster(cluster, hosts=hosts, but=instance),
        before=selectors.taken_by({**before, **operators}, hosts) if before else None,
        after=selectors.taken_by({**after, **operators}, hosts),
    )
    if found:
        said = {each: rules.sentence_of(each, has="the cluster has") for each in found}
        raise ClusterFull("; ".join(said.values()), errors=_beside(said), members=_members(found))


def price_check(plan: Plan, before: Amounts | None, after: Amounts) -> None:
    """Whether a price may be paid without a word that it is known. Raises PriceUnconfirmed."""
    price, threshold = after[rules.PRICE], installed.price_confirmed_above(plan.currency)
    if price <= threshold or (before and price <= before[rules.PRICE]):
        return
    detail = (
        f"the instance costs {plan.currency} {rules.text_of(price)} a month, which is more than "
        f"{rules.text_of(threshold)}"
    )
    members = {"price": {"currency": plan.currency, "per_month": rules.number(price)}}
    raise PriceUnconfirmed(
        f"{detail}. If that is meant, ask again with confirm_price",
        errors=[FieldProblem("confirm_price", detail)],
        members=members,
    )


def _beside(said: Mapping[Exceeded, str]) -> list[FieldProblem]:
    return [FieldProblem(each.resource if each.resource in rules.SIZES else "", text) for each, text in said.items()]


def _members(found: tuple[Exceeded, ...], *, with_sums: bool = True) -> dict[str, object]:
    documents = [each.document() for each in found]
    return {"exceeded": documents if with_sums else [each | {"limit": None, "used": None} for each in documents]}


@transaction.atomic
def caps_set(
    *,
    organisation: Organisation,
    actor: str,
    caps: Mapping[str, Decimal | float | None],
    reason: str,
    check: Callable[[Organisation], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """An operator's word on what an organisation may have; None is the default again, what is not named stays.

    `check` is told the organisation, whose caps nobody else changes then.

    The price is in the currency of the plan, and counts in that one alone.
    On record in the organisation's audit trail. What it has already stays its own where a cap is lowered. Raises Invalid,
    Conflict where the organisation is being deleted.
    """
    in_use.locked(organisation)
    if check is not None:
        check(organisation)
    if not caps:
        raise Invalid(f"nothing to change: give one or more of {', '.join(rules.ORGANISATION)}")
    problems = [
        FieldProblem(name, problem)
        for name, value in caps.items()
        if value is not None and (problem := cap_problem(name, value))
    ]
    if not reason.strip():
        problems.append(FieldProblem("reason", "must say why"))
    if problems:
        raise Invalid("; ".join(f"{each.field} {each.detail}" for each in problems), errors=problems)
    currency = selectors.plan_counted(organisation, clock=clock).currency
    before = selectors.caps_of(organisation, currency=currency)
    rows = OrganisationCap.objects.for_organisation(organisation)
    for name, value in caps.items():
        kept = rules.price_cap(currency) if name == rules.PRICE else name
        if value is None:
            rows.filter(resource=kept).delete()
        elif not rows.filter(resource=kept).update(limit=_decimal(value)):
            OrganisationCap(organisation=organisation, resource=kept, limit=_decimal(value)).save(force_insert=True)
    after = selectors.caps_of(organisation, currency=currency)
    changed = {
        name: {"from": rules.number(before[name]), "to": rules.number(after[name])}
        | ({"currency": currency} if name == rules.PRICE else {})
        for name in caps
        if before[name] != after[name]
    }
    detail = {"caps": changed, "reason": reason.strip()}
    audit.record(
        organisation=organisation, actor=actor, action=CAPS_SET, target=organisation.id, detail=detail, clock=clock
    )


@transaction.atomic
def room_set(
    *,
    cluster: PhysicalCluster,
    actor: str,
    resource: str,
    per_broker: float,
    overcommit: float,
    reason: str,
    clock: Clock = SYSTEM_CLOCK,
) -> ClusterRoom:
    """An operator's word on what each broker of a cluster has of a resource, and how many times as much is sold.

    The row is its own record. Raises Invalid.
    """
    PhysicalCluster.objects.select_for_update().get(pk=cluster.pk)
    problems = []
    if resource not in rules.DEFAULT_ROOM:
        problems.append(FieldProblem("resource", f"must be one of {', '.join(rules.DEFAULT_ROOM)}"))
    if not math.isfinite(per_broker) or not 0 <= per_broker <= rules.MOST:
        problems.append(FieldProblem("per_broker", f"must be at least 0 and at most {rules.MOST}"))
    if not math.isfinite(overcommit) or not LEAST_OVERCOMMIT <= overcommit <= MOST_OVERCOMMIT:
        problems.append(
            FieldProblem("overcommit", f"must be at least {LEAST_OVERCOMMIT} and at most {MOST_OVERCOMMIT}")
        )
    if not reason.strip():
        problems.append(FieldProblem("reason", "must say why"))
    if problems:
        raise Invalid("; ".join(f"{each.field} {each.detail}" for each in problems), errors=problems)
    row = ClusterRoom(
        cluster=cluster, resource=resource, per_broker=per_broker, overcommit=overcommit,
        actor=actor, reason=reason.strip(), at=clock.now(),
    )  # fmt: skip
    row.save(force_insert=True)
    return row


def cap_problem(name: str, value: object) -> str | None:
    """What is wrong with a cap; None: nothing."""
    if name not in rules.ORGANISATION:
        return "is no cap"
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return "must be a number"
    if not math.isfinite(value) or not 0 <= value <= rules.MOST:
        return f"must be at least 0 and at most {rules.MOST}"
    return None


def _decimal(value: Decimal | float) -> Decimal:
    return Decimal(str(value)).quantize(Decimal("0.001"))
