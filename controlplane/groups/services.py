"""Changing groups on a tenant's behalf: the coordinator does it, this adds whose it is, what it means, and the audit trail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core import audit
from controlplane.core.errors import AlreadyExists, Conflict, Invalid, NotFound
from controlplane.groups import moving
from controlplane.groups.moving import Move, Strategy
from controlplane.groups.selectors import group_forget
from controlplane.instances.selectors import instance_running_get
from controlplane.kafka import groups, topics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.instances.models import Instance
    from controlplane.kafka.group_door import Place, Span
    from controlplane.kafka.groups import Group
    from controlplane.tenants.models import Organisation

MOST_AUDITED = 50
"""Partitions that an entry of the audit trail names."""
MOST_TOPICS = 100
"""That a new group is given offsets of."""
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
    def changes(self) -> int:
        """Partitions whose offset changes."""
        return sum(move.changes for move in self.moves)


def group_create(
    *, organisation: Organisation, actor: str, instance_id: str, name: str, topic_names: Sequence[str]
) -> None:
    """Make a group: it has no member, and the present end of each partition of these topics for its offset.

    A group is there while it has members or offsets, so it needs a topic. Raises NotFound, Invalid, AlreadyExists (group_exists),
    Conflict (partition_unavailable), ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    if not groups.can_be(name):
        raise Invalid.field("name", f"must be 1 to {groups.MOST_NAME} characters, without NUL")
    if not topic_names:
        raise Invalid.field("topics", "name at least one: a group without members consists of its offsets")
    if len(topic_names) > MOST_TOPICS:
        raise Invalid.field("topics", f"{MOST_TOPICS} at most")
    if groups.read(instance.cluster.address, instance.id, [name]):
        raise AlreadyExists(f"there is a group {name}", code="group_exists")
    places = [
        (topic, number)
        for topic in dict.fromkeys(topic_names)
        for number in range(topics.get(instance.cluster.address, instance.id, topic).partitions)
    ]
    spans = groups.spans(instance.cluster.address, instance.id, places)
    for place in places:
        if place not in spans:
            raise _unavailable(place)
    groups.commit(instance.cluster.address, instance.id, name, {place: spans[place].end for place in places})
    group_forget(instance.id, name)
    detail = {"topics": list(dict.fromkeys(topic_names))[:MOST_AUDITED], "partitions": len(places)}
    _audit(organisation, actor, "group.create", instance, name, detail)


def topic_forget(*, organisation: Organisation, actor: str, instance_id: str, name: str, topic: str) -> None:
    """Delete a group's offsets of a topic; with the last ones the group ends.

    Raises NotFound, Conflict (group_not_empty), ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    group = groups.get(instance.cluster.address, instance.id, name)
    if group.described.members:
        raise _alive(len(group.described.members))
    going = {place: offset for place, offset in group.committed.items() if place[0] == topic}
    if not going:
        raise NotFound(f"the group {name} has no offset in the topic {topic}", code="offset_not_found")
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
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    problem = moving.value_problem(strategy, value)
    if problem:
        raise Invalid.field("value", problem)
    if topic is None and partitions is not None:
        raise Invalid.field("partitions", "name the topic as well")
    group = groups.get(instance.cluster.address, instance.id, name)
    members = len(group.described.members)
    if members and not dry_run:
        raise _alive(members)
    places = _places(instance, group, topic, partitions)
    moves = _moves(instance, group, strategy, value, places, named=partitions is not None)
    if not dry_run:
        changed = {(move.topic, move.partition): move.after for move in moves if move.changes}
        if changed:
            groups.commit(instance.cluster.address, instance.id, name, changed)
            group_forget(instance.id, name)
        detail = {"strategy": strategy, "value": value, "partitions": len(changed), "moved": _audited(moves)}
        _audit(organisation, actor, "group.offsets.reset", instance, name, detail)
    return Reset(tuple(moves), members)


def group_delete(*, organisation: Organisation, actor: str, instance_id: str, name: str) -> None:
    """Delete a group with its offsets. Raises NotFound, Conflict (group_not_empty), ClusterUnavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    members = len(groups.get(instance.cluster.address, instance.id, name).described.members)
    if members:
        raise _alive(members)
    groups.delete(instance.cluster.address, instance.id, name)
    group_forget(instance.id, name)
    _audit(organisation, actor, "group.delete", instance, name, {})


def member_remove(*, organisation: Organisation, actor: str, instance_id: str, name: str, member_id: str) -> None:
    """Take a member out: its partitions go to the others at once. A consumer that lives joins again by itself.

    Raises NotFound, ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    member = next(
        (
            each
            for each in groups.get(instance.cluster.address, instance.id, name).described.members
            if each.id == member_id
        ),
        None,
    )
    if member is None:
        raise NotFound(f"no member {member_id} in the group {name}", code="member_not_found")
    groups.remove(instance.cluster.address, instance.id, name, member_id)
    detail = {"member": member_id, "client_id": member.client_id, "host": member.host}
    _audit(organisation, actor, "group.member.remove", instance, name, detail)


def _alive(members: int) -> Conflict:
    have, them = ("a member", "it") if members == 1 else (f"{members} members", "them")
    return Conflict(
        f"the group has {have}: stop {them} first, because offsets are moved and groups deleted only while nobody reads",
        code="group_not_empty",
    )


def _places(instance: Instance, group: Group, topic: str | None, partitions: Sequence[int] | None) -> list[Place]:
    if topic is None:
        if not group.committed:
            raise Invalid.field("topic", "the group has no offset yet: name a topic")
        there = groups.topic_names(
            instance.cluster.address, instance.id
        )  # offsets outlive a topic that was deleted, for a while
        return sorted(place for place in group.committed if place[0] in there)
    count = topics.get(instance.cluster.address, instance.id, topic).partitions
    beyond = [number for number in partitions or () if not 0 <= number < count]
    if beyond:
        raise Invalid.field("partitions", f"the topic has no partition {beyond[0]}: it has {count}, from 0")
    return [(topic, number) for number in (range(count) if partitions is None else sorted(set(partitions)))]


def _moves(
    instance: Instance, group: Group, strategy: str, value: int | None, places: Sequence[Place], *, named: bool
) -> list[Move]:
    spans = groups.spans(instance.cluster.address, instance.id, places)
    timed = strategy == Strategy.TIMESTAMP and value is not None
    at_time = (
        groups.offsets_at(instance.cluster.address, instance.id, spans, value) if timed and value is not None else {}
    )
    moves = []
    for place in places:
        before = group.committed.get(place)
        if place not in spans or (timed and place not in at_time):
            raise _unavailable(place)
        span = spans[place]
        asked = moving.target(strategy, value, before, span.start, span.end, at_time.get(place))
        if asked is not None:
            moves.append(_move(place, before, asked, span))
        elif named:
            raise Invalid.field("partitions", f"the group has no offset in partition {place[1]} to shift from")
    if not moves:
        raise Invalid.field("strategy", "the group has no offset in this topic to shift from")
    return moves


def _unavailable(place: Place) -> Conflict:
    return Conflict(f"partition {place[1]} of {place[0]} has no leader now, or is gone", code="partition_unavailable")


def _move(place: Place, before: int | None, asked: int, span: Span) -> Move:
    after = moving.within(asked, span.start, span.end)
    return Move(*place, before, after, span.start, span.end, clamped=after != asked)


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
