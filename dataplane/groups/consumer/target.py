"""The assignment that is wanted: for a new group epoch, of what the members subscribe to.

A new epoch begins when a member comes, goes or subscribes to something else, and when a topic that is subscribed to is created,
deleted or grows. (Not when a member asks for another assignor: as in Kafka, that counts from the next epoch on.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.groups.consumer.assignors import ASSIGNORS
from dataplane.groups.consumer.assignors.subscription import Subscriber
from dataplane.groups.consumer.model import Topic

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.groups.consumer.events import Around
    from dataplane.groups.consumer.model import Assignment, Group


def topics_now(group: Group, around: Around) -> dict[str, Topic]:
    """The topics that are subscribed to and exist, as they are in the cluster, in order of their names."""
    found = ((name, around.find_topic(name)) for name in group.subscribed())
    return {name: topic for name, topic in found if topic is not None}


def wanted(group: Group, assignors: tuple[str, ...]) -> dict[str, Assignment]:
    """The target of each member, for the group as it is."""
    subscribers: dict[str, Subscriber] = {}
    known: dict[tuple[tuple[str, ...], str | None], frozenset[UUID]] = {}  # most members say the same
    for member_id in sorted(group.members):
        member = group.members[member_id]
        said = member.topics, member.pattern
        if said not in known:
            names = group.topics_of(member)
            known[said] = frozenset(group.topics[name].topic_id for name in names if name in group.topics)
        subscribers[member_id] = Subscriber(known[said], group.targets.get(member_id, {}))
    sizes = {topic.topic_id: topic.partitions for topic in group.topics.values()}
    return ASSIGNORS[assignor_of(group, assignors)](subscribers, sizes)


def assignor_of(group: Group, assignors: tuple[str, ...]) -> str:
    """The one that most members ask for; the first of the settings where none asks, or as many for another."""
    votes = dict.fromkeys(assignors, 0)
    for member in group.members.values():
        if member.assignor in votes:
            votes[member.assignor] += 1
    return max(assignors, key=lambda name: votes[name])
