"""The door to transactions: what their coordinators and the leaders of their partitions say, asked on connections of its own.

Names are physical. librdkafka has no call for any of it, so the requests are written by hand (`transaction_bytes`). Every
registered broker is asked, one after the other, for what it coordinates: a page asks each twice, whatever it shows. A broker has
ROUND_S. A failure is one of core.errors; the door does not try again, but while a transaction is being ended (`fence`).
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.identification import to_brokers
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import client, leaving
from controlplane.kafka import transaction_bytes as wire
from controlplane.kafka.transaction_bytes import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.identification import Identification
    from controlplane.kafka.flexible import Place

    Found = TypeVar("Found")

ROUND_S = 3.0
FENCED_WITHIN_S, FENCE_EVERY_S = 5.0, 0.1
TRANSACTIONS_TOPIC = "__transaction_state"
COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
CONCURRENT_TRANSACTIONS, NOT_FOUND = 51, 105
_PASSING = (COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS)

Address = tuple[str, int]


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

    def fence(self, found: Coordinated) -> None:
        """Abort what is open, and keep its producer from going on."""
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
        unknown, failure = set(transactional_ids), NOBODY_COORDINATES
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
        if unknown and (failure is not NOBODY_COORDINATES or self._has_coordinators()):
            raise failure
        return found

    def _has_coordinators(self) -> bool:
        """Whether there has been a transaction in this cluster: their topic comes into being with the first."""
        return client.admin(self._cluster).layout(TRANSACTIONS_TOPIC) is not None

    def open_producers(self, places: Iterable[Place]) -> dict[Place, Mapping[int, int]]:
        """See TransactionDoor."""
        asked = list(places)
        brokers = self._brokers()
        layouts = client.admin(self._cluster).layouts(sorted({topic for topic, _ in asked}))
        leaders = {(each.name, row.partition): row.leader for each in layouts for row in each.partitions}
        found: dict[Place, Mapping[int, int]] = {}
        for broker, address in brokers.items():
            led = [place for place in asked if leaders.get(place) == broker]
            if not led:
                continue
            try:
                answer = self._ask(address, wire.DESCRIBE_PRODUCERS, 0, wire.producers_request(led))
                found |= _read(wire.open_producers, answer)
            except ClusterUnavailable:  # one partition without a leader hides no other
                continue
        return found

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
        brokers = coordination.live_brokers(zookeeper.tree(self._cluster))
        if not brokers:
            raise ClusterUnavailable("no broker is running")
        return {broker.id: (broker.host, broker.port) for broker in brokers}

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
    """What is said of Kafka's error code: the coordinator cannot answer now."""
    if code == CONCURRENT_TRANSACTIONS:
        return client.ClusterChanging("the transaction is being ended: look again in a few seconds")
    if code in _PASSING:
        return client.ClusterChanging(
            "the broker that coordinates the transaction is changing: try again in a few seconds"
        )
    return ClusterUnavailable(f"the cluster cannot do this now (Kafka's error {code})")


NOBODY_COORDINATES = problem_of(NOT_COORDINATOR)


def door(cluster: ClusterAddress) -> TransactionDoor:
    """With the proof that this process has now. Raises ClusterUnavailable."""
    return KafkaTransactions(cluster, to_brokers())
