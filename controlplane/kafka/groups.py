"""An instance's consumer groups by the tenant's own names. Nothing about them is kept here; the coordinators are the truth.

The internal listener shows the groups of every tenant. What leaves this module belongs to the instance asked for: names of
groups and topics are mapped by `InstanceNames`, and what the instance does not own is left out before anything else is done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from controlplane.clusters import zookeeper
from controlplane.clusters.topic_names import physical_names
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable, NotFound
from controlplane.kafka import group_door
from controlplane.kafka.group_door import Known, Listing
from controlplane.kafka.patience import patiently
from controlplane.kafka.topics import names_of
from quota.contracts.namespace import KEY_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.group_door import DescribedGroup, GroupDoor, ListedGroup, Place, Span
    from quota.contracts.namespace import InstanceNames

    Answer = TypeVar("Answer")

DEAD, EMPTY = "Dead", "Empty"
MOST_NAME = 1000 - KEY_LENGTH - 1
"""A longer name is nobody's: brokers take 1,000 characters, with the instance's key and its dot."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group as its tenant knows it."""

    described: DescribedGroup
    committed: Mapping[Place, int]

    @property
    def name(self) -> str:
        """Its tenant's name."""
        return self.described.name

    @property
    def exists(self) -> bool:
        """A coordinator describes any name; what has no member and no offset is not there."""
        return self.described.state != DEAD or bool(self.described.members) or bool(self.committed)


def list_all(cluster: ClusterAddress, instance_id: str) -> list[ListedGroup]:
    """Every group of the instance, by name, but for one with an empty name (simple consumers may): it has no address.

    Raises ClusterUnavailable, also where one broker does not name its groups: a list that lacks some would be a wrong one.
    """
    names = names_of(instance_id)

    def listed(door: GroupDoor) -> list[ListedGroup]:
        listing = door.listed(names.owns)
        if listing.missing:
            raise ClusterUnavailable(f"broker {listing.missing[0]} does not name its groups")
        return listing.groups

    return _by_name(names, _asked(cluster, listed))


def list_known(cluster: ClusterAddress, instance_id: str) -> Listing:
    """The same of the brokers that answer, and who does not: one look, all asked at once.

    Raises ClusterUnavailable where nobody answers.
    """
    names = names_of(instance_id)
    listing = _asked(cluster, lambda door: door.listed(names.owns))
    return Listing(_by_name(names, listing.groups), listing.missing)


def _by_name(names: InstanceNames, owned: Iterable[ListedGroup]) -> list[ListedGroup]:
    """Each once, though two brokers may name one that moves from one to the other."""
    mapped = {group.name: group for group in (replace(each, name=names.group_out(each.name)) for each in owned)}
    return [mapped[name] for name in sorted(mapped) if name]


def read(cluster: ClusterAddress, instance_id: str, wanted: Sequence[str]) -> list[Group]:
    """These groups in this order, without those that are not there: members and offsets, asked for in one round."""
    names = names_of(instance_id)
    physical = [names.group_in(name) for name in wanted if can_be(name)]
    described, committed = _asked(cluster, lambda door: door.read(physical))
    return _there(names, Known(described, committed), physical)


def read_known(cluster: ClusterAddress, instance_id: str, wanted: Sequence[str]) -> tuple[list[Group], list[str]]:
    """The same of those that answer, and the names of those that do not. Raises ClusterUnavailable: no broker is registered."""
    names = names_of(instance_id)
    physical = [names.group_in(name) for name in wanted if can_be(name)]
    known = group_door.door(cluster).known(physical)
    answered = [name for name in physical if name in known.committed]
    return _there(names, known, answered), [names.group_out(name) for name in physical if name not in known.committed]


def _there(names: InstanceNames, known: Known, physical: Sequence[str]) -> list[Group]:
    found = [
        Group(
            replace(known.described[name], name=names.group_out(name)),
            {
                (names.topic_out(topic), number): offset
                for (topic, number), offset in sorted(known.committed[name].items())
                if names.owns(topic)
            },
        )
        for name in physical
    ]
    return [group for group in found if group.exists]


def _asked(cluster: ClusterAddress, ask: Callable[[GroupDoor], Answer]) -> Answer:
    """The answer, of the second attempt if the first has none: after a broker's death the first learns only that it is gone.

    The door gives a client up that had no answer, so the second attempt begins with the brokers that are there. Raises
    ClusterUnavailable.
    """
    try:
        return ask(group_door.door(cluster))
    except ClusterUnavailable:
        return ask(group_door.door(cluster))


def get(cluster: ClusterAddress, instance_id: str, name: str) -> Group:
    """One group. Raises NotFound."""
    found = read(cluster, instance_id, [name])
    if not found:
        raise missing(name)
    return found[0]


def can_be(name: str) -> bool:
    """Whether a group can have this name. librdkafka ends a name at NUL, and would ask for another's of the same tenant."""
    return (
        0 < len(name) <= MOST_NAME and "\0" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)
    )


def missing(name: str) -> NotFound:
    """What is said of a group that is not there, and of one that nobody can be asked about."""
    if "\0" in name:
        return NotFound(
            "a group whose name has NUL in it is listed, and cannot be looked at or changed here: use Kafka's own tools",
            code="group_not_found",
        )
    return NotFound(f"no group {name}", code="group_not_found")


def topic_names(cluster: ClusterAddress, instance_id: str) -> set[str]:
    """The topics that are there: to ask for the offsets of one that is not would be waited for in vain."""
    names = names_of(instance_id)
    return {names.topic_out(topic) for topic in physical_names(zookeeper.tree(cluster), instance_id)}


def spans(cluster: ClusterAddress, instance_id: str, places: Iterable[Place]) -> dict[Place, Span]:
    """What the partitions hold now, without those whose topic is gone or that have no leader."""
    there = topic_names(cluster, instance_id)
    return _by_tenants_names(
        cluster, instance_id, [place for place in places if place[0] in there], lambda door, asked: door.spans(asked)
    )


def offsets_at(
    cluster: ClusterAddress, instance_id: str, places: Iterable[Place], timestamp_ms: int
) -> dict[Place, int | None]:
    """Of each partition the first record of that time or later; None: there is none."""
    return _by_tenants_names(cluster, instance_id, places, lambda door, asked: door.offsets_at(asked, timestamp_ms))


def offsets_at_each(cluster: ClusterAddress, instance_id: str, times: Mapping[Place, int]) -> dict[Place, int | None]:
    """The same with a time of each partition's own, in ms; without those that have no leader."""
    names = names_of(instance_id)
    asked = {(names.topic_in(topic), number): timestamp_ms for (topic, number), timestamp_ms in times.items()}
    return _out(names, group_door.door(cluster).offsets_at_each(asked)) if asked else {}


def newest(cluster: ClusterAddress, instance_id: str, places: Iterable[Place]) -> dict[Place, int | None]:
    """See `GroupDoor.newest`."""
    return _by_tenants_names(cluster, instance_id, places, lambda door, asked: door.newest(asked))


def oldest(cluster: ClusterAddress, instance_id: str, positions: Mapping[Place, int]) -> dict[Place, int]:
    """See `GroupDoor.oldest`."""
    names = names_of(instance_id)
    asked = {(names.topic_in(topic), number): offset for (topic, number), offset in positions.items()}
    return _out(names, group_door.door(cluster).oldest(asked)) if asked else {}


def commit(
    cluster: ClusterAddress, instance_id: str, name: str, offsets: Mapping[Place, int], *, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Set offsets of a group without members. Raises Conflict."""
    names = names_of(instance_id)
    wanted = {(names.topic_in(topic), number): offset for (topic, number), offset in offsets.items()}
    patiently(cluster, lambda _admin, _again: group_door.door(cluster).commit(names.group_in(name), wanted), clock)


def delete(cluster: ClusterAddress, instance_id: str, name: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """A group and its offsets. Raises NotFound, Conflict while it has members."""
    if not can_be(name):
        raise missing(name)
    physical = names_of(instance_id).group_in(name)
    try:
        _taken_away(cluster, lambda: group_door.door(cluster).delete(physical), clock)
    except NotFound as error:
        raise missing(name) from error


def remove(
    cluster: ClusterAddress, instance_id: str, name: str, member_id: str, *, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Take a member out of a group; one that lives comes back by itself. Raises NotFound."""
    physical = names_of(instance_id).group_in(name)
    _taken_away(cluster, lambda: group_door.door(cluster).remove(physical, member_id), clock)


def can_be_removed(cluster: ClusterAddress, instance_id: str, group: Group, member_id: str) -> bool:
    """Whether the coordinator takes this member out when it is told to: one of the consumer protocol leaves by itself alone."""
    return not group.described.is_of_consumers or member_id in classic_members(cluster, instance_id, group.name)


def classic_members(cluster: ClusterAddress, instance_id: str, name: str) -> frozenset[str]:
    """See `GroupDoor.classic_members`."""
    physical = names_of(instance_id).group_in(name)
    return _asked(cluster, lambda door: door.classic_members(physical))


def forget(
    cluster: ClusterAddress, instance_id: str, name: str, places: Iterable[Place], *, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Delete offsets of a group without members, which ends with its last one. Raises NotFound, Conflict."""
    names = names_of(instance_id)
    physical, wanted = names.group_in(name), [(names.topic_in(topic), number) for topic, number in places]
    _taken_away(cluster, lambda: group_door.door(cluster).forget(physical, wanted), clock)


def _taken_away(cluster: ClusterAddress, act: Callable[[], None], clock: Clock) -> None:
    """Patiently: what is not there after an attempt whose answer was lost has been taken away by it. Raises NotFound."""

    def attempt(again: bool) -> None:
        try:
            act()
        except NotFound:
            if not again:
                raise

    patiently(cluster, lambda _admin, again: attempt(again), clock)


def _by_tenants_names(
    cluster: ClusterAddress,
    instance_id: str,
    places: Iterable[Place],
    ask: Callable[[GroupDoor, list[Place]], dict[Place, Answer]],
) -> dict[Place, Answer]:
    names = names_of(instance_id)
    asked = [(names.topic_in(topic), number) for topic, number in places]
    return _out(names, ask(group_door.door(cluster), asked)) if asked else {}


def _out(names: InstanceNames, found: Mapping[Place, Answer]) -> dict[Place, Answer]:
    return {(names.topic_out(topic), number): answer for (topic, number), answer in found.items()}
