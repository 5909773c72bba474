"""Whether a group may be changed in a way, and what it is now: asked before the change, and by its dry run.

Nothing is changed here. Each function raises what the change raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.errors import AlreadyExists, Conflict, Invalid, NotFound
from controlplane.groups import moving
from controlplane.groups.moving import Move, Strategy
from controlplane.instances.selectors import instance_running_get
from controlplane.kafka import groups, topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.instances.models import Instance
    from controlplane.kafka.group_door import Member, Place, Span
    from controlplane.kafka.groups import Group
    from controlplane.tenants.models import Organisation

MOST_TOPICS = 100
"""That a new group is given offsets of."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A group that may be changed, as its coordinator has it."""

    instance: Instance
    group: Group

    @property
    def members(self) -> int:
        """How many it has."""
        return len(self.group.described.members)


def creating(
    *, organisation: Organisation, instance_id: str, name: str, topic_names: Sequence[str]
) -> tuple[Instance, dict[Place, int]]:
    """Where a new group would begin: at the present end of each partition of these topics.

    Raises NotFound, Invalid, AlreadyExists (group_exists), Conflict (partition_unavailable), ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    if not groups.can_be(name):
        raise no_name()
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
    return instance, {place: spans[place].end for place in places}


def no_name() -> Invalid:
    """What is said of a name that no group can have."""
    return Invalid.field("name", f"must be 1 to {groups.MOST_NAME} characters, without NUL")


def exists(*, organisation: Organisation, instance_id: str, name: str) -> bool:
    """Whether there is a group of this name. Raises NotFound, ClusterUnavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    return bool(groups.read(instance.cluster.address, instance.id, [name]))


def deleting(*, organisation: Organisation, instance_id: str, name: str) -> Judged:
    """A group that nobody is in. Raises NotFound, Conflict (group_not_empty), ClusterUnavailable."""
    judged = _found(organisation, instance_id, name)
    if judged.members:
        raise _alive(judged.members)
    return judged


def forgetting(
    *, organisation: Organisation, instance_id: str, name: str, topic: str
) -> tuple[Judged, dict[Place, int]]:
    """The same, and its offsets of a topic. Raises NotFound, Conflict (group_not_empty), ClusterUnavailable."""
    judged = deleting(organisation=organisation, instance_id=instance_id, name=name)
    going = {place: offset for place, offset in judged.group.committed.items() if place[0] == topic}
    if not going:
        raise NotFound(f"the group {name} has no offset in the topic {topic}", code="offset_not_found")
    return judged, going


def removing(*, organisation: Organisation, instance_id: str, name: str, member_id: str) -> tuple[Judged, Member]:
    """A group, and the member of it that is to go. Raises NotFound, Conflict (member_not_removable), ClusterUnavailable."""
    judged = _found(organisation, instance_id, name)
    instance, group = judged.instance, judged.group
    found = next((each for each in group.described.members if each.id == member_id), None)
    if found is None:
        raise NotFound(f"no member {member_id} in the group {name}", code="member_not_found")
    if not groups.can_be_removed(instance.cluster.address, instance.id, group, member_id):
        raise Conflict(
            "a member of the consumer protocol (KIP-848) cannot be removed: stop its consumer instead",
            code="member_not_removable",
        )
    return judged, found


def resetting(
    *,
    organisation: Organisation,
    instance_id: str,
    name: str,
    strategy: str,
    value: int | None = None,
    topic: str | None = None,
    partitions: Sequence[int] | None = None,
    while_alive: bool = False,
) -> tuple[Judged, list[Move]]:
    """Where offsets would go. `while_alive`: also while members live, who would write theirs over them.

    `topic` None: every topic of which the group has an offset; `partitions` None: all of the topic. Raises NotFound, Invalid,
    Conflict (group_not_empty), ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    problem = moving.value_problem(strategy, value)
    if problem:
        raise Invalid.field("value", problem)
    if topic is None and partitions is not None:
        raise Invalid.field("partitions", "name the topic as well")
    judged = Judged(instance, groups.get(instance.cluster.address, instance.id, name))
    if judged.members and not while_alive:
        raise _alive(judged.members)
    places = _places(instance, judged.group, topic, partitions)
    return judged, _moves(instance, judged.group, strategy, value, places, named=partitions is not None)


def _found(organisation: Organisation, instance_id: str, name: str) -> Judged:
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    return Judged(instance, groups.get(instance.cluster.address, instance.id, name))


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
