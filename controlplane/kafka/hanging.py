"""Transactions of an instance that hang: open in a partition, and known to no coordinator, so that nobody will ever end them.

Readers at read_committed stand still there for good. What is looked for is what `kafka-transactions find-hanging` looks for: a
producer whose transaction is open in a partition, who has written nothing there for long, longer than any transaction may be
open, while no transactional id of the instance has this producer id and this partition in a transaction that is open. Leaders
are asked first, and coordinators only about those; one that is ending meanwhile has written lately.

Ended is such a transaction by a marker, past all coordinators (`kafka-transactions abort`): the partition's leader is told to
abort it. What it wrote is not read then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable, NotFound
from controlplane.kafka import transaction_door
from controlplane.kafka.patience import patiently
from controlplane.kafka.topics import names_of
from controlplane.kafka.transactions import OPEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.client import Admin
    from controlplane.kafka.flexible import Place
    from controlplane.kafka.transaction_bytes import OpenProducer
    from controlplane.kafka.transaction_door import TransactionDoor
    from quota.contracts.namespace import InstanceNames

SECOND_MS = 1000
DESCRIBED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """In one partition. `holds_back`: it is the first that is open there, and so the partition's last stable offset."""

    topic: str
    partition: int
    producer: OpenProducer
    holds_back: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What was found, by topic, partition and offset; and of how many partitions the leader did not say."""

    found: tuple[HangingTransaction, ...]
    unknown: int


def look(
    cluster: ClusterAddress, instance_id: str, places: Iterable[Place], *, idle_s: int, clock: Clock = SYSTEM_CLOCK
) -> Look:
    """Among these partitions of the instance, of producers that have written nothing there for so long."""
    names, wanted = names_of(instance_id), list(places)
    try:
        return _look(transaction_door.door(cluster), names, wanted, idle_s, clock)
    except ClusterUnavailable:  # a broker may have gone that was registered a moment ago
        return _look(transaction_door.door(cluster), names, wanted, idle_s, clock)


def end(
    cluster: ClusterAddress,
    instance_id: str,
    topic: str,
    partition: int,
    offset: int,
    *,
    idle_s: int,
    clock: Clock = SYSTEM_CLOCK,
) -> HangingTransaction:
    """Abort the one that begins at this offset; what it was. Raises NotFound where none hangs there.

    After an attempt whose answer was lost, one that hangs no longer has been ended.
    """
    place = names_of(instance_id).topic_in(topic), partition
    before: list[HangingTransaction] = []

    def attempt(admin: Admin, again: bool) -> None:
        door = transaction_door.door(cluster)
        found = _one(admin, door, instance_id, (topic, partition, offset), idle_s, clock)
        if found is not None:
            before[:] = [found]
            try:
                door.abort(place, found.producer)
            except transaction_door.EndedMeanwhile:
                before.clear()  # by somebody else
                raise
        elif not (again and before):
            raise missing(topic, partition, offset)

    patiently(cluster, attempt, clock)
    return before[0]


def to_end(
    cluster: ClusterAddress,
    instance_id: str,
    topic: str,
    partition: int,
    offset: int,
    *,
    idle_s: int,
    clock: Clock = SYSTEM_CLOCK,
) -> HangingTransaction:
    """The one that `end` would abort, which takes the same and raises the same."""

    def attempt(admin: Admin, _again: bool) -> HangingTransaction:
        door = transaction_door.door(cluster)
        found = _one(admin, door, instance_id, (topic, partition, offset), idle_s, clock)
        if found is None:
            raise missing(topic, partition, offset)
        return found

    return patiently(cluster, attempt, clock)


def missing(topic: str, partition: int, offset: int) -> NotFound:
    """What is said where none hangs."""
    return NotFound(
        f"no transaction hangs in partition {partition} of {topic} from offset {offset} on: "
        "one hangs when nothing has come of it for 15 minutes and no coordinator knows it",
        code="hanging_transaction_not_found",
    )


def _one(
    admin: Admin, door: TransactionDoor, instance_id: str, at: tuple[str, int, int], idle_s: int, clock: Clock
) -> HangingTransaction | None:
    """What hangs at this topic, partition and offset. Raises NotFound without the partition, ClusterUnavailable."""
    topic, partition, offset = at
    names = names_of(instance_id)
    if not _exists(admin, (names.topic_in(topic), partition)):
        raise missing(topic, partition, offset)
    seen = _look(door, names, [(topic, partition)], idle_s, clock)
    found = next((each for each in seen.found if each.producer.first_offset == offset), None)
    if found is None and seen.unknown:
        raise transaction_door.problem_of(transaction_door.NOT_LEADER)
    return found


def _exists(admin: Admin, place: Place) -> bool:
    """Whether the cluster has the partition: that nobody leads it now is something else."""
    topic, number = place
    return any(row.partition == number for each in admin.layouts([topic]) for row in each.partitions)


def _look(door: TransactionDoor, names: InstanceNames, places: list[Place], idle_s: int, clock: Clock) -> Look:
    wanted = [(names.topic_in(topic), number) for topic, number in places]
    said = door.producers(wanted)
    before_ms = round(SECOND_MS * clock.now().timestamp()) - SECOND_MS * idle_s
    old = [(place, each) for place, rows in said.items() for each in rows if each.written_ms < before_ms]
    known = _coordinated(door, names) if old else set()
    found = [
        HangingTransaction(
            names.topic_out(place[0]),
            place[1],
            each,
            holds_back=each.first_offset == min(row.first_offset for row in said[place]),
        )
        for place, each in old
        if (each.producer_id, place) not in known
    ]
    found.sort(key=lambda each: (each.topic, each.partition, each.producer.first_offset))
    return Look(tuple(found), len(set(wanted)) - len(said))


def _coordinated(door: TransactionDoor, names: InstanceNames) -> set[tuple[int, Place]]:
    """Producers with the partitions of their transactions, of those that a coordinator of the instance knows as open.

    Raises ClusterChanging where one may be missing: nobody coordinates its id now, or somebody else did when that one was asked.
    """
    coordinators = door.coordinators()
    listed = sorted(door.listed(names.owns, OPEN, None))
    found: set[tuple[int, Place]] = set()
    for first in range(0, len(listed), DESCRIBED_AT_ONCE):
        for each in door.described(listed[first : first + DESCRIBED_AT_ONCE]).values():
            found |= {(each.transaction.producer_id, place) for place in each.transaction.partitions}
    if door.coordinators() != coordinators:
        raise transaction_door.problem_of(transaction_door.NOT_COORDINATOR)
    return found
