"""What a plan needs to know, asked of the cluster: a few rounds of questions.

What each topic keeps and holds, and where each group would read on, is asked once; leaders then say what a shorter retention
would keep. A topic of which a partition has no leader is left alone, since nobody could say who loses what of it; where no broker
answers, or one that coordinates groups does not, nothing is said at all (ClusterUnavailable), and nothing is shortened.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings

from controlplane.clusters import coordination, zookeeper
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable, Unavailable
from controlplane.core.portions import portions
from controlplane.kafka import groups, placement_door, topics
from controlplane.kafka.client import NO_ANSWER
from controlplane.policies import rules
from controlplane.policies.planning import Seen, plan_of
from controlplane.policies.rules import MINUTE_MS, Extent, Kept
from quota.contracts.namespace import AUDIT_TOPIC

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from controlplane.instances.models import Instance
    from controlplane.policies.planning import Asked, Cuts, Plan
    from controlplane.policies.rules import Loss, Place, Rule

    T = TypeVar("T")

PLACES_AT_ONCE = 2_000
GROUPS_AT_ONCE = 200
SHOW_WITHIN = timedelta(seconds=10)
"""So long the cluster may take for all that a preview asks, which somebody waits for."""
LONGEST_PART = timedelta(seconds=10)


def part_of_lease() -> timedelta:
    """So long a step of an operation may ask before it returns: beyond its lease another worker would begin it anew, for ever."""
    return min(LONGEST_PART, timedelta(seconds=settings.ENVIRONMENT.lease_s) / 2)


class Deadline:
    """Until when questions may begin: each has a time limit of its own."""

    def __init__(self, within: timedelta, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._until = clock.now() + within

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        return self._clock.now() > self._until

    def check(self) -> None:
        """Raises ClusterUnavailable where it has passed."""
        if self.is_over:
            raise ClusterUnavailable(NO_ANSWER)


@dataclass(frozen=True, slots=True)
class Foretold:
    """Of a policy that is not in force: what topics keep, a first act, and what groups would lose at the floor."""

    kept: Mapping[str, Kept]
    plan: Plan
    worst: tuple[Loss, ...] = ()


def kept_all(instance: Instance, *, clock: Clock = SYSTEM_CLOCK) -> dict[str, Kept]:
    """How long each topic keeps records, but for the service's own. Raises ClusterUnavailable."""
    found = {}
    for name, in_force in topics.settings_all(instance.cluster.address, instance.id, clock=clock).items():
        retention, cleanup = in_force.get("retention.ms"), in_force.get("cleanup.policy")
        if name == AUDIT_TOPIC or retention is None or cleanup is None:
            continue
        milliseconds = int(retention.value)
        found[name] = Kept(milliseconds, milliseconds if retention.is_own else None, "delete" in cleanup.value)
    return found


def seen(
    instance: Instance,
    rule: Rule,
    until: Deadline,
    *,
    all_kept: Mapping[str, Kept] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Seen:
    """All that a plan needs to know of an instance. Raises ClusterUnavailable."""
    cluster, floor_ms = instance.cluster.address, rule.floor_minutes * MINUTE_MS
    found = kept_all(instance, clock=clock) if all_kept is None else all_kept
    kept = {name: each for name, each in found.items() if rules.shortens(each, floor_ms)}
    if not kept:
        return Seen()
    until.check()
    there = [topic for topic in topics.list_all(cluster, instance.id, clock=clock) if topic.name in kept]
    places = [(topic.name, partition.partition) for topic in there for partition in topic.layout]
    extents = {
        place: Extent(span.start, span.end)
        for part in _parts(places, PLACES_AT_ONCE, until)
        for place, span in groups.spans(cluster, instance.id, part).items()
    }
    leaderless = {place[0] for place in places if place not in extents}
    whole = {topic.name: kept[topic.name] for topic in there if topic.name not in leaderless}
    held = {place: extent for place, extent in extents.items() if place[0] in whole}
    return Seen(whole, held, _positions(instance, held, until))


def _positions(instance: Instance, held: Mapping[Place, Extent], until: Deadline) -> dict[str, dict[Place, int]]:
    """Where each group would read on: where it has committed, else at the start of what its members have assigned.

    A new group may begin at the end as well; nobody but its consumers knows, and what is said is an upper bound.
    """
    cluster = instance.cluster.address
    until.check()
    names = [group.name for group in groups.list_all(cluster, instance.id)]
    found = {}
    for part in _parts(names, GROUPS_AT_ONCE, until):
        for group in groups.read(cluster, instance.id, part):
            assigned = [place for member in group.described.members for place in member.partitions]
            positions = {place: held[place].start for place in assigned if place in held}
            positions |= {place: offset for place, offset in group.committed.items() if place in held}
            if positions:
                found[group.name] = positions
    return found


def planned(instance: Instance, rule: Rule, *, clock: Clock = SYSTEM_CLOCK) -> Plan:
    """By how much retention is to be shortened now, and what that costs whom. Raises ClusterUnavailable."""
    until = Deadline(part_of_lease(), clock=clock)
    there = seen(instance, rule, until, clock=clock)
    return plan_of(there, rule, asker(instance, clock, until), lambda places: _sizes(instance, places, until))


def foretold(instance: Instance, rule: Rule, *, clock: Clock = SYSTEM_CLOCK) -> Foretold:
    """What a policy would mean if its level were reached now: somebody waits for it. Raises ClusterUnavailable."""
    until = Deadline(SHOW_WITHIN, clock=clock)
    kept = kept_all(instance, clock=clock)
    there, ask = seen(instance, rule, until, all_kept=kept, clock=clock), asker(instance, clock, until)
    plan = plan_of(there, rule, ask, lambda places: _sizes(instance, places, until))
    if rule.spare_unread:
        return Foretold(kept, plan)
    cuts = ask(dict.fromkeys(there.extents, rule.floor_minutes * MINUTE_MS))
    return Foretold(kept, plan, tuple(rules.losses(there.committed, there.extents, cuts)))


def asker(instance: Instance, clock: Clock, until: Deadline) -> Asked:
    """By which leaders are asked for cuts, all at the same moment."""
    now_ms = int(clock.now().timestamp() * 1000)
    cluster = instance.cluster.address

    def ask(retentions: Mapping[Place, int]) -> Cuts:
        found: dict[Place, int | None] = {}
        for part in _parts(sorted(retentions), PLACES_AT_ONCE, until):
            times = {place: max(0, now_ms - retentions[place]) for place in part}
            found |= groups.offsets_at_each(cluster, instance.id, times)
        return found

    return ask


def _sizes(instance: Instance, of: Collection[Place], until: Deadline) -> dict[Place, int]:
    """Bytes of a copy of each partition, the largest one; none where brokers do not say, or there is no time to ask."""
    if until.is_over:
        return {}
    cluster, names = instance.cluster.address, topics.names_of(instance.id)
    physical = {(names.topic_in(topic), number): (topic, number) for topic, number in of}
    found: dict[Place, int] = {}
    try:
        brokers = [broker.id for broker in coordination.live_brokers(zookeeper.tree(cluster))]
        disks = placement_door.door(cluster).disks(brokers, list(physical))
    except Unavailable:
        return {}
    for disk in disks.values():
        for place, size in disk.sizes.items():
            if place in physical:
                found[physical[place]] = max(size, found.get(physical[place], 0))
    return found


def _parts(items: Sequence[T], size: int, until: Deadline) -> Iterator[Sequence[T]]:
    """Raises ClusterUnavailable where the time is over before a part."""
    for part in portions(items, size):
        until.check()
        yield part
