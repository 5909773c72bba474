"""Changing groups on a tenant's behalf: the coordinator does it, this adds whose it is, and the audit trail.

Whether it may be done, and what it means, is said in `judging`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.groups import earlier, judging, making, moving
from controlplane.groups.selectors import group_forget
from controlplane.instances.selectors import instance_running_get
from controlplane.kafka import groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.groups.moving import Move
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

MOST_AUDITED = 50
"""Partitions that an entry of the audit trail names."""
MOST_TARGET = 320
"""Characters of an entry's target. A group's name may be longer; the detail has it whole."""


@dataclass(frozen=True, slots=True)
class Reset:
    """What is moved, or would be. `members`: how many stand in the way."""

    moves: tuple[Move, ...]
    members: int

    @property
    def again(self) -> int:
        """Records that are read once more."""
        return moving.totals(self.moves)[0]

    @property
    def skipped(self) -> int:
        """Records that this group never reads."""
        return moving.totals(self.moves)[1]

    @property
    def new(self) -> int:
        """Partitions that have no offset yet: of their records none counts as read again or skipped."""
        return sum(move.before is None for move in self.moves)

    @property
    def passed(self) -> int:
        """Records before the new offsets of those."""
        return sum(move.passed for move in self.moves)

    @property
    def changes(self) -> int:
        """Partitions whose offset changes."""
        return sum(move.changes for move in self.moves)


def group_create(
    *, organisation: Organisation, actor: str, instance_id: str, name: str, topic_names: Sequence[str]
) -> None:
    """Make a group: it has no member, and the present end of each partition of these topics for its offset.

    A group is there while it has members or offsets, so it needs a topic. Raises NotFound, Invalid, AlreadyExists (group_exists),
    Conflict (partition_unavailable), ConcurrentChange, ClusterUnavailable.
    """
    instance_running_get(organisation=organisation, instance_id=instance_id)  # nobody else holds a name of its groups
    if not groups.can_be(name):
        raise judging.no_name()
    with making.alone(instance_id, name):
        instance, offsets = judging.creating(
            organisation=organisation, instance_id=instance_id, name=name, topic_names=topic_names
        )
        groups.commit(instance.cluster.address, instance.id, name, offsets)
    group_forget(instance.id, name)
    detail = {"topics": list(dict.fromkeys(topic_names))[:MOST_AUDITED], "partitions": len(offsets)}
    _audit(organisation, actor, "group.create", instance, name, detail)


def topic_forget(*, organisation: Organisation, actor: str, instance_id: str, name: str, topic: str) -> None:
    """Delete a group's offsets of a topic.

    With its last ones the group ends: at once if nobody was ever in it, else within minutes. Raises NotFound,
    Conflict (group_not_empty), ClusterUnavailable.
    """
    judged, going = judging.forgetting(organisation=organisation, instance_id=instance_id, name=name, topic=topic)
    instance = judged.instance
    groups.forget(instance.cluster.address, instance.id, name, going)
    group_forget(instance.id, name)
    offsets = [{"partition": number, "offset": offset} for (_, number), offset in sorted(going.items())]
    detail = {"topic": topic, "partitions": len(going), "deleted": offsets[:MOST_AUDITED]}
    _audit(organisation, actor, "group.offsets.delete", instance, name, detail)


def offsets_reset(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    name: str,
    strategy: str,
    value: int | None = None,
    topic: str | None = None,
    partitions: Sequence[int] | None = None,
    dry_run: bool = False,
) -> Reset:
    """Move offsets; with `dry_run` only say where they would go, which is allowed while members live.

    `topic` None: every topic of which the group has an offset; `partitions` None: all of the topic. Raises NotFound, Invalid,
    Conflict (group_not_empty), ClusterUnavailable.
    """
    judged, moves = judging.resetting(
        organisation=organisation,
        instance_id=instance_id,
        name=name,
        strategy=strategy,
        value=value,
        topic=topic,
        partitions=partitions,
        while_alive=dry_run,
    )
    instance = judged.instance
    if not dry_run:
        changed = {(move.topic, move.partition): move.after for move in moves if move.changes}
        if changed:
            groups.commit(instance.cluster.address, instance.id, name, changed)
            group_forget(instance.id, name)
        detail = {"strategy": strategy, "value": value, "partitions": len(changed), "moved": _audited(moves)}
        _audit(organisation, actor, "group.offsets.reset", instance, name, detail)
    return Reset(tuple(moves), judged.members)


def group_delete(
    *, organisation: Organisation, actor: str, instance_id: str, name: str, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Delete a group with its offsets. Raises NotFound, Conflict (group_not_empty), ClusterUnavailable."""
    judged = judging.deleting(organisation=organisation, instance_id=instance_id, name=name)
    instance, going = judged.instance, judged.group.committed
    groups.delete(instance.cluster.address, instance.id, name)
    earlier.deleted(instance.id, name, int(clock.now().timestamp()))
    group_forget(instance.id, name)
    offsets = [
        {"topic": topic, "partition": number, "offset": offset} for (topic, number), offset in sorted(going.items())
    ]
    detail = {"partitions": len(going), "deleted": offsets[:MOST_AUDITED]}
    _audit(organisation, actor, "group.delete", instance, name, detail)


def member_remove(*, organisation: Organisation, actor: str, instance_id: str, name: str, member_id: str) -> None:
    """Take a member out: its partitions go to the others at once. A consumer that lives joins again by itself.

    Raises NotFound, Conflict (member_not_removable), ClusterUnavailable.
    """
    judged, member = judging.removing(
        organisation=organisation, instance_id=instance_id, name=name, member_id=member_id
    )
    instance = judged.instance
    groups.remove(instance.cluster.address, instance.id, name, member_id)
    detail = {"member": member_id, "client_id": member.client_id, "host": member.host}
    _audit(organisation, actor, "group.member.remove", instance, name, detail)


def _audited(moves: Sequence[Move]) -> list[dict[str, object]]:
    changed = [move for move in moves if move.changes]
    return [
        {"topic": move.topic, "partition": move.partition, "from": move.before, "to": move.after}
        for move in changed[:MOST_AUDITED]
    ]


def _audit(
    organisation: Organisation, actor: str, action: str, instance: Instance, name: str, detail: Mapping[str, object]
) -> None:
    target = f"{instance.id}/groups/{name}"[:MOST_TARGET]
    audit.record(organisation=organisation, actor=actor, action=action, target=target, detail={"group": name, **detail})
