"""What a policy would do, without doing it: who would lose unread records, up to which price storage would be bought.

The policy is set and taken back, so that it is refused as it would be. What brokers are asked for is of now: a preview says
what would go if the level were reached at this moment.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from controlplane.admission import dry_runs
from controlplane.admission import rules as sizes
from controlplane.admission.selectors import plan_counted
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Outlook, PriceChange, differences, taken_back
from controlplane.core.errors import SluiceError, Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.policies import looking, planning, rules
from controlplane.policies.rules import EXPANSION, RETENTION, Rule
from controlplane.policies.selectors import disk_get
from controlplane.policies.services import amounts_at, most_of, policy_set, puts_back

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.instances.models import Instance
    from controlplane.policies.rules import Kept, Loss
    from controlplane.tenants.models import Organisation

MOST_LINES = 20


def setting(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    wanted: Rule,
    confirm_price: bool = False,
    admit_paying: Callable[[], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Outlook:
    """Of services.policy_set, which takes the same. Raises what that raises."""
    before = disk_get(organisation=organisation, instance_id=instance_id)
    with taken_back() as rehearsal:
        policy_set(
            organisation=organisation,
            actor=actor,
            instance_id=instance_id,
            wanted=wanted,
            confirm_price=confirm_price,
            admit_paying=admit_paying,
            clock=clock,
        )
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    changes = differences(asdict(before.rule), asdict(wanted))
    problems: list[str] = []
    if before.shortened and puts_back(before.rule, wanted):
        names = planning.some([row.topic for row in before.shortened])
        problems.append(f"retention that was shortened is put back as it was (topics: {names})")
    if wanted.policy == RETENTION:
        problems += _retention(instance, wanted, clock)
    if wanted.policy != EXPANSION:
        return Outlook(changes, None, tuple(problems), begun=tuple(rehearsal.begun))
    problems += _expansion(organisation, instance, wanted, clock)
    return Outlook(changes, _price(instance, wanted, clock), tuple(problems), begun=tuple(rehearsal.begun))


def _retention(instance: Instance, wanted: Rule, clock: Clock) -> list[str]:
    """Whose settings would be shortened, and what groups would lose: by a first act now, and at the worst."""
    try:
        found = looking.foretold(instance, wanted, clock=clock)
    except Unavailable as error:
        detail = error.detail
        return [f"who would lose unread records is not known now: {detail}"]
    plan, worst = found.plan, found.worst
    said = _of_settings(found.kept, wanted)
    if plan.problem:
        problem = plan.problem
        said.append(f"if the level were reached now: {problem}")
    said += _of_losses(plan.losses)
    if plan.spared and not plan.problem:
        names = planning.some(plan.spared)
        said.append(f"if the level were reached now, topics would be spared that groups have still to read: {names}")
    lost, floor = sum(loss.records for loss in worst), rules.duration_text(wanted.floor_minutes * rules.MINUTE_MS)
    if lost:
        names = planning.losers(worst)
        said.append(f"at the floor of {floor} groups would lose up to {lost} records that they have not read: {names}")
    return said


def _of_settings(kept: Mapping[str, Kept], wanted: Rule) -> list[str]:
    floor_ms, said = wanted.floor_minutes * rules.MINUTE_MS, []
    own = sorted(name for name, each in kept.items() if each.own_ms is not None and rules.shortens(each, floor_ms))
    if own:
        names = planning.some(own)
        said.append(f"retention that was set for a topic would be shortened, too: {names}")
    unlimited = sorted(name for name, each in kept.items() if each.is_unlimited)
    if unlimited:
        names = planning.some(unlimited)
        said.append(f"topics that keep everything are never shortened: {names}")
    return said


def _of_losses(losses: tuple[Loss, ...]) -> list[str]:
    said = []
    for loss in losses[:MOST_LINES]:
        group, topic, records = loss.group, loss.topic, loss.records
        if loss.size_bytes is None:
            said.append(
                f"if the level were reached now, group {group} would lose up to {records} unread records of {topic}"
            )
        else:
            mib = f"{loss.size_bytes / 2**20:.1f}"
            said.append(
                f"if the level were reached now, group {group} would lose up to {records} unread records of {topic} "
                f"(about {mib} MiB)"
            )
    more = len(losses) - MOST_LINES
    if more > 0:
        said.append(f"and so would others: {more} more")
    return said


def _price(instance: Instance, wanted: Rule, clock: Clock) -> PriceChange:
    """At the most that the policy may buy."""
    plan = plan_counted(instance.organisation, clock=clock)
    now, then = (amounts_at(instance, each, clock)[sizes.PRICE] for each in (instance.storage_gib, most_of(wanted)))
    return PriceChange(now, then, plan.currency)  # type: ignore[arg-type]  # a price is a Decimal


def _expansion(organisation: Organisation, instance: Instance, wanted: Rule, clock: Clock) -> list[str]:
    """Why so much could not be bought now; it may be another time."""
    try:
        dry_runs.changing(
            organisation=organisation,
            actor="",
            instance_id=instance.id,
            changes={"storage_gib": most_of(wanted)},
            confirm_price=True,
            clock=clock,
        )
    except SluiceError as error:
        most, detail = f"{most_of(wanted):g}", error.detail
        return [f"{most} GiB could not be bought now: {detail}"]
    return []
