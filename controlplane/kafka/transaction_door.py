"""The door to transactions: what their coordinators and the leaders of their partitions say, asked on connections of its own.

Names are physical. librdkafka has no call for any of it, so the requests are written by hand (`transaction_bytes`). Every
registered broker is asked, one after the other, for what it coordinates: a page asks each twice, whatever it shows. A broker has
ROUND_S. A failure is one of core.errors; the door does not try again, but while a transaction is being ended (`fence`).
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from controlplane.clusters.identification import to_brokers
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import client, leaving, running
from controlplane.kafka import transaction_bytes as wire
from controlplane.kafka.transaction_bytes import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.identification import Identification
    from controlplane.kafka.flexible import Place
    from controlplane.kafka.transaction_bytes import OpenProducer

    Found = TypeVar("Found")

ROUND_S = 3.0
FENCED_WITHIN_S, FENCE_EVERY_S = 5.0, 0.1
PRODUCERS_AT_ONCE = 500
"""Partitions in one question: a leader may have to read for each who has written to it."""
TRANSACTIONS_TOPIC = "__transaction_state"
UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, NOT_LEADER, NOT_ENOUGH_REPLICAS = 3, 5, 6, 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND, TIMED_OUT, STORAGE_ERROR = 20, 7, 56
PRODUCER_EPOCH, COORDINATOR_FENCED = 47, 52
COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
CONCURRENT_TRANSACTIONS, NOT_FOUND = 51, 105
_MOVING = (
    *(UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, NOT_LEADER, TIMED_OUT),
    *(NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, STORAGE_ERROR),
)
_PASSING = (COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS)

Address = tuple[str, int]


class EndedMeanwhile(client.ClusterChanging):
    """Its coordinator has ended it, or its producer has begun another: nothing was aborted."""


class Coordinated(NamedTuple):
    """A transaction and the address of its coordinator."""

    transaction: Transaction
    coordinator: Address


class TransactionDoor(Protocol):
    """What this service asks about transactions. Every call may raise ClusterUnavailable."""

    def listed(self, owned: Callable[[str], bool], states: Sequence[str], open_for_ms: int | None) -> dict[str, str]:
        """The state by transactional id: of ids that are `owned`, in one of `states` (none: any), begun that long ago."""
        ...

    def described(self, transactional_ids: Sequence[str]) -> dict[str, Coordinated]:
        """By transactional id, without those that do not exist."""
        ...

    def open_producers(self, places: Iterable[Place]) -> dict[Place, Mapping[int, int]]:
        """By partition: where the open transaction of each producer id begins. Without partitions whose leader does not say."""
        ...

    def producers(self, places: Iterable[Place]) -> dict[Place, tuple[OpenProducer, ...]]:
        """By partition: who has a transaction open there. Without those that have no leader, or whose leader does not say."""
        ...

    def coordinators(self) -> tuple[int, ...]:
        """Who coordinates, by partition of transactional ids.

        Raises ClusterChanging where nobody does: what is in that partition is not in `listed`.
        """
        ...

    def fence(self, found: Coordinated) -> None:
        """Abort what is open, and keep its producer from going on."""
        ...

    def abort(self, place: Place, producer: OpenProducer) -> None:
        """Abort what a producer has open in one partition, past all coordinators. Raises EndedMeanwhile."""
        ...


class KafkaTransactions:
    """The real one."""

    def __init__(self, cluster: ClusterAddress, who: Identification) -> None:
        self._cluster = cluster
        self._who = who

    def listed(self, owned: Callable[[str], bool], states: Sequence[str], open_for_ms: int | None) -> dict[str, str]:
        """See TransactionDoor. A list that silently lacks what one broker coordinates would be a wrong one."""
        found: dict[str, str] = {}
        for address in self._brokers().values():
            answer = self._ask(address, wire.LIST_TRANSACTIONS, 1, wire.list_request(states, open_for_ms))
            error, rows = _read(wire.listed, answer)
            if error:
                raise problem_of(error)
            found |= {name: state for name, state in rows.items() if owned(name)}
        return found

    def described(self, transactional_ids: Sequence[str]) -> dict[str, Coordinated]:
        """See TransactionDoor. A broker that is away hides nothing that another one coordinates."""
        found: dict[str, Coordinated] = {}
        unknown = set(transactional_ids)
        failure: ClusterUnavailable | None = None
        request = wire.describe_request(sorted(unknown))
        for address in self._brokers().values():
            if not unknown:
                break
            try:
                answers = _read(wire.described, self._ask(address, wire.DESCRIBE_TRANSACTIONS, 0, request))
            except ClusterUnavailable as error:
                failure = error
                continue
            for name, (code, transaction) in answers.items():
                if code == 0:
                    found[name] = Coordinated(transaction, address)
                if code in (0, NOT_FOUND):
                    unknown.discard(name)
                elif code != NOT_COORDINATOR:
                    failure = problem_of(code)
        if unknown and (failure is not None or self._has_coordinators()):
            raise failure or problem_of(NOT_COORDINATOR)
        return found

    def _has_coordinators(self) -> bool:
        """Whether there has been a transaction in this cluster: their topic comes into being with the first."""
        return client.admin(self._cluster).layout(TRANSACTIONS_TOPIC) is not None

    def open_producers(self, places: Iterable[Place]) -> dict[Place, Mapping[int, int]]:
        """See TransactionDoor."""
        found = self.producers(places)
        return {place: {each.producer_id: each.first_offset for each in rows} for place, rows in found.items()}

    def producers(self, places: Iterable[Place]) -> dict[Place, tuple[OpenProducer, ...]]:
        """See TransactionDoor."""
        found: dict[Place, tuple[OpenProducer, ...]] = {}
        for address, led in self._by_leader(places).items():
            for first in range(0, len(led), PRODUCERS_AT_ONCE):
                request = wire.producers_request(led[first : first + PRODUCERS_AT_ONCE])
                try:
                    found |= _read(wire.producers, self._ask(address, wire.DESCRIBE_PRODUCERS, 0, request))
                except ClusterUnavailable:  # one partition without a leader hides no other
                    break
        return found

    def _by_leader(self, places: Iterable[Place]) -> dict[Address, list[Place]]:
        asked = list(places)
        brokers = self._brokers()
        layouts = client.admin(self._cluster).layouts(sorted({topic for topic, _ in asked}))
        leaders = {(each.name, row.partition): row.leader for each in layouts for row in each.partitions}
        found: dict[Address, list[Place]] = {}
        for place in asked:
            address = brokers.get(leaders.get(place, -1))
            if address is not None:
                found.setdefault(address, []).append(place)
        return found

    def coordinators(self) -> tuple[int, ...]:
        """See TransactionDoor."""
        brokers = self._brokers()
        layout = client.admin(self._cluster).layout(TRANSACTIONS_TOPIC)
        found = []
        for row in () if layout is None else layout.partitions:
            if row.leader is None or row.leader not in brokers:
                raise problem_of(NOT_COORDINATOR)
            found.append(row.leader)
        return tuple(found)

    def abort(self, place: Place, producer: OpenProducer) -> None:
        """See TransactionDoor."""
        leader = next(iter(self._by_leader([place])), None)
        if leader is None:
            raise problem_of(NOT_LEADER)
        error = _read(wire.aborted, self._ask(leader, wire.WRITE_TXN_MARKERS, 1, wire.abort_request(place, producer)))
        if error in (PRODUCER_EPOCH, COORDINATOR_FENCED):
            raise EndedMeanwhile("the transaction has changed meanwhile: look again")
        if error:
            raise problem_of(error)

    def fence(self, found: Coordinated) -> None:
        """See TransactionDoor. The coordinator says CONCURRENT_TRANSACTIONS until every partition has its marker."""
        about, until = found.transaction, time.monotonic() + FENCED_WITHIN_S
        request = wire.fence_request(about.transactional_id, about.timeout_ms)
        while True:
            answer = self._ask(found.coordinator, wire.INIT_PRODUCER_ID, 1, request, flexible=False)
            error = _read(wire.fenced, answer)
            if error != CONCURRENT_TRANSACTIONS or time.monotonic() >= until:
                break
            time.sleep(FENCE_EVERY_S)
        if error:
            raise problem_of(error)

    def _brokers(self) -> dict[int, Address]:
        return {broker.id: (broker.host, broker.port) for broker in running.brokers(self._cluster)}

    def _ask(self, address: Address, key: int, version: int, body: bytes, *, flexible: bool = True) -> bytes:
        try:
            with leaving.signed_in(address, self._who, timeout_s=ROUND_S) as connection:
                return leaving.ask(connection, key, version, body, flexible=flexible)
        except ClusterUnavailable as error:  # whose sentence is about groups
            raise client.ClusterChanging(client.NO_ANSWER) from error


def _read(read: Callable[[bytes], Found], answer: bytes) -> Found:
    try:
        return read(answer)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ClusterUnavailable("a broker's answer about transactions cannot be read") from error


def problem_of(code: int) -> ClusterUnavailable:
    """What is said of Kafka's error code: the coordinator, or the leader of a partition, cannot answer now."""
    if code == CONCURRENT_TRANSACTIONS:
        return client.ClusterChanging("the transaction is being ended: look again in a few seconds")
    if code in _PASSING:
        return client.ClusterChanging(
            "the broker that coordinates the transaction is changing: try again in a few seconds"
        )
    if code in _MOVING:
        return client.ClusterChanging("the broker that leads the partition is changing: try again in a few seconds")
    return ClusterUnavailable(f"the cluster cannot do this now (Kafka's error {code})")


def door(cluster: ClusterAddress) -> TransactionDoor:
    """With the proof that this process has now. Raises ClusterUnavailable."""
    return KafkaTransactions(cluster, to_brokers())
