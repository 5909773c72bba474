"""What a controller knows, in memory: live brokers and their epochs, topics, partitions. No I/O, no decisions.

It mirrors ZooKeeper: loaded when the controller is elected, changed only after a write succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, TypeVar
from uuid import UUID

from dataplane.cluster.paths import NO_LEADER, BrokerAddress, PartitionState
from dataplane.controller.assignment import Assignment
from dataplane.controller.state import PARTITION, PartitionEvent, PartitionStatus
from quota.contracts.namespace import counted_key

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """One registration of a broker."""

    address: BrokerAddress
    epoch: int  # czxid of its node
    whole_since: int  # the epoch since which its logs have lost nothing


@dataclass(slots=True)
class Partition:
    """What the controller knows of a partition: assignment, and state with its node's version."""

    topic: str
    topic_id: UUID
    index: int
    assignment: Assignment
    state: PartitionState | None = None
    status: PartitionStatus = PartitionStatus.NEW
    failed: dict[int, None] = field(default_factory=dict)  # live brokers whose disk lost this replica

    @property
    def replicas(self) -> tuple[int, ...]:
        """All of them: while they move, the old and the new."""
        return self.assignment.replicas

    def is_new_on(self, broker_id: int) -> bool:
        """Whether a broker begins with an empty log, because the replica is about to move there."""
        return broker_id in self.assignment.adding and (self.state is None or broker_id not in self.state.isr)

    def take(self, state: PartitionState) -> None:
        """A state that has been written, or read."""
        if state.leader == NO_LEADER:
            event = PartitionEvent.LEADER_LOST
        elif self.state is not None and self.state.leader == state.leader:
            event = PartitionEvent.ISR_CHANGED
        else:
            event = PartitionEvent.LEADER_CHOSEN
        self.status = PARTITION[self.status, event]
        self.state = state

    def load(self, state: PartitionState, zxid: int) -> None:
        """The state as the last controller left it, in the transaction `zxid`."""
        if not state.broker_epochs:  # Kafka's own, or older: the replicas in sync were those registered then
            state = replace(state, broker_epochs=dict.fromkeys(state.isr, zxid))
        self.state = state
        self.status = PartitionStatus.OFFLINE if state.leader == NO_LEADER else PartitionStatus.ONLINE


class Holdings(NamedTuple):
    """What an instance has of what it may have only so many of."""

    topics: int = 0
    replicas: int = 0
    on_brokers: Mapping[int, int] = MappingProxyType({})
    """Of the replicas; brokers that hold none are not in it. Not to be changed."""


@dataclass(slots=True)
class Topic:
    """What the controller knows of a topic: its id and its partitions."""

    name: str
    topic_id: UUID
    partitions: dict[int, Partition]
    has_directory: bool = False  # whether /brokers/topics/<t>/partitions exists


class Context:
    """The cluster as the controller sees it. Dictionaries keep their order, so every walk is deterministic."""

    def __init__(self) -> None:
        self.brokers: dict[int, LiveBroker] = {}
        self.min_insync_replicas: Callable[[str], int] = lambda _topic: 1
        self.shutting_down: dict[int, None] = {}
        self.topics: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._by_broker: dict[int, dict[tuple[str, int], Partition]] = {}
        self._topics_of: dict[str, int] = {}  # by the instance's key
        self._replicas_of: dict[str, dict[int, int]] = {}  # likewise, and by broker

    def sort_brokers(self) -> None:
        """In order of their ids, after one was added. The dictionary stays the same: channels read it."""
        ordered = sorted(self.brokers.items())
        self.brokers.clear()
        self.brokers.update(ordered)

    def add_topic(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        for partition in topic.partitions.values():
            self._host(partition)
        self._count_topic(topic, 1)

    def add_partitions(self, topic: Topic, partitions: Iterable[Partition]) -> None:
        """A topic that is known has grown."""
        for partition in partitions:
            topic.partitions[partition.index] = partition
            self._host(partition)

    def reassign(self, partition: Partition, assignment: Assignment) -> None:
        """A partition's replicas are others now."""
        self._unhost(partition)
        partition.assignment = assignment
        self._host(partition)

    @property
    def racks(self) -> dict[int, str | None]:
        """The live brokers, and where each stands."""
        return {broker_id: broker.address.rack for broker_id, broker in self.brokers.items()}

    def remove_topic(self, name: str) -> None:
        """A topic has gone. Harmless where it was not known."""
        topic = self.topics.pop(name, None)
        if topic is None:
            return
        self._by_id.pop(topic.topic_id, None)
        for partition in topic.partitions.values():
            self._unhost(partition)
        self._count_topic(topic, -1)

    def topic_of_id(self, topic_id: UUID) -> Topic | None:
        """A topic by its id."""
        return self._by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> Partition | None:
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    def partitions(self) -> Iterator[Partition]:
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def on_broker(self, broker_id: int) -> list[Partition]:
        """Those with a replica there."""
        return list(self._by_broker.get(broker_id, {}).values())

    def alive(self, partition: Partition) -> dict[int, int]:
        """Brokers that can hold the lead or the ISR of a partition, and their epochs."""
        return {
            broker_id: broker.epoch
            for broker_id, broker in self.brokers.items()
            if broker_id not in self.shutting_down and broker_id not in partition.failed
        }

    def restarted(self, partition: Partition) -> list[int]:
        """Live brokers that have registered anew since they were in sync, or eligible."""
        return self._registered_after(partition, lambda broker: broker.epoch)

    def lost(self, partition: Partition) -> list[int]:
        """Those whose logs may lack what they had when they were in sync: after a power cut, or a refusal of the disk."""
        return [*self._registered_after(partition, lambda broker: broker.whole_since), *partition.failed]

    def _registered_after(self, partition: Partition, moment: Callable[[LiveBroker], int]) -> list[int]:
        epochs = {} if partition.state is None else partition.state.broker_epochs
        return [b for b, epoch in epochs.items() if b in self.brokers and moment(self.brokers[b]) > epoch]

    def enough(self, partition: Partition) -> int:
        """With fewer in sync nothing is committed."""
        return min(self.min_insync_replicas(partition.topic), len(partition.replicas))

    def holdings(self, key: str) -> Holdings:
        """What the instance of this key has. Replicas that are about to go do not count, those on their way do."""
        on_brokers = self._replicas_of.get(key, {})
        return Holdings(self._topics_of.get(key, 0), sum(on_brokers.values()), on_brokers)

    def _host(self, partition: Partition) -> None:
        for replica in partition.replicas:
            self._by_broker.setdefault(replica, {})[partition.topic, partition.index] = partition
        self._count_replicas(partition, 1)

    def _unhost(self, partition: Partition) -> None:
        for replica in partition.replicas:
            self._by_broker.get(replica, {}).pop((partition.topic, partition.index), None)
        self._count_replicas(partition, -1)

    def _count_topic(self, topic: Topic, step: int) -> None:
        key = counted_key(topic.name)
        if key is not None:
            _add(self._topics_of, key, step)

    def _count_replicas(self, partition: Partition, step: int) -> None:
        key = counted_key(partition.topic)
        if key is None:
            return
        on_brokers = self._replicas_of.setdefault(key, {})
        for broker_id in partition.assignment.target:
            _add(on_brokers, broker_id, step)
        if not on_brokers:
            del self._replicas_of[key]


def _add(counts: dict[T, int], key: T, step: int) -> None:
    """What has come to nothing is forgotten."""
    after = counts.get(key, 0) + step
    if after:
        counts[key] = after
    else:
        counts.pop(key, None)
