"""What this broker knows of the cluster: brokers, topics, leaders. Told by the controller in UpdateMetadata.

An update carries the partitions that changed and always all live brokers. A partition whose leader is -2 is forgotten
(its topic is being deleted); what is said of that topic id from then on is late, for ids are not used twice. A full update
(type 2, the first that a new controller sends) replaces everything: so a broker that missed a deletion under the old
controller does not remember the topic forever.

An update costs what it changes, whoever else has topics: lists and counts of the instances are kept up to date. A long one
is taken over in steps, topic by topic, and a reader in between finds each topic as it was or as it is; a full one in
one go, when all of it has been read. Nothing that a controller says overtakes what was said before it (`words`).

Updates of a controller older than the newest one seen are refused: `controller_epoch` is shared by everything that the
controller sends (LeaderAndIsr and StopReplica raise it through `saw_controller` too). So is what a controller said on a
connection that has ended for it, if that comes after what it said on a later one (`is_overtaken`): it would bring back what was
true before, and no further word need come to put it right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from dataplane.cluster.in_order import InOrder, Run, at_once
from dataplane.cluster.paths import INTERNAL_LISTENER, LEADER_DURING_DELETE, NO_LEADER, BrokerAddress
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from dataplane.protocol.schema import NO_UUID
from dataplane.records.steps import Steps, run_through
from dataplane.tasks import Future
from quota.contracts.namespace import is_kept_by_the_service, split_physical

__all__ = [
    "COORDINATORS_TOPICS",
    "FULL_UPDATE",
    "INCREMENTAL_UPDATE",
    "OFFSETS_TOPIC",
    "TRANSACTIONS_TOPIC",
    "BrokerAddress",
    "Metadata",
    "PartitionMetadata",
]

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
COORDINATORS_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Coordinators write them themselves, and find what they keep by the number of partitions."""
INCREMENTAL_UPDATE = 1
FULL_UPDATE = 2
_PARTITIONS_PER_STEP = 24
"""About 100 us."""
_PARTITIONS_AT_ONCE = 100
_DELETED_REMEMBERED = 10_000
"""Topic ids, about a megabyte: more than are deleted while a word lies in a connection that its controller has closed."""


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition as clients see it."""

    leader: int  # -1: none
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]

    @property
    def has_leader(self) -> bool:
        """Whether somebody serves it."""
        return self.leader != NO_LEADER

    @property
    def is_behind(self) -> bool:
        """Whether it has a leader, and a replica that is not in sync with it."""
        return self.leader != NO_LEADER and len(self.isr) < len(self.replicas)


_Change = tuple[PartitionMetadata, int]
"""A partition as it is (1), or as it was (-1)."""


@dataclass(slots=True)
class _Owned:
    """What there is of one instance."""

    topics: dict[str, None] = field(default_factory=dict)
    sorted: list[str] | None = None  # made when asked for, and never changed
    partitions: int = 0
    led: int = 0  # of them
    behind: int = 0  # of the led ones


class _Tables:
    """The topics: by name, by id, by owner."""

    def __init__(self) -> None:
        self.partitions: dict[str, dict[int, PartitionMetadata]] = {}
        self.ids: dict[str, UUID] = {}
        self.names: dict[UUID, str] = {}
        self.owned: dict[str, _Owned] = {}
        self.absent: dict[int, list[int]] = {}  # by broker, as `Metadata.absent`

    def _count(self, name: str, owned: _Owned | None, partition: PartitionMetadata, change: int) -> None:
        """A partition is there (1), or is not any more (-1): for its owner, and what it lacks of which broker."""
        if owned is not None:
            owned.partitions += change
            owned.led += change * partition.has_leader
            owned.behind += change * partition.is_behind
        if partition.has_leader and not partition.is_behind:
            return
        for broker in partition.replicas:
            if partition.has_leader and broker in partition.isr:
                continue
            counts = self.absent.setdefault(broker, [0, 0, 0])
            if partition.has_leader:
                counts[0] += change
            else:
                counts[1] += change
                counts[2] += change if name == OFFSETS_TOPIC else 0

    def put(self, name: str, topic_id: UUID, partitions: dict[int, PartitionMetadata], changes: list[_Change]) -> None:
        """A topic as it is now, and what has changed of its partitions."""
        owner, owned = split_physical(name), None
        if owner is not None:
            owned = self.owned.setdefault(owner[0], _Owned())
            if name not in self.partitions:
                owned.topics[name] = None
                owned.sorted = None
        counted = None if is_kept_by_the_service(name) else owned
        for partition, change in changes:
            self._count(name, counted, partition, change)
        self.partitions[name] = partitions
        if topic_id != NO_UUID:
            self.ids[name], self.names[topic_id] = topic_id, name

    def forget(self, name: str) -> None:
        """A topic has gone. Harmless where it was not known."""
        topic_id = self.ids.pop(name, None)
        if topic_id is not None:
            self.names.pop(topic_id, None)
        partitions, owner = self.partitions.pop(name, None), split_physical(name)
        if partitions is None:
            return
        owned = None if owner is None else self.owned[owner[0]]
        counted = None if is_kept_by_the_service(name) else owned
        for partition in partitions.values():
            self._count(name, counted, partition, -1)
        if owner is None or owned is None:
            return
        owned.sorted = None
        del owned.topics[name]
        if not owned.topics:
            del self.owned[owner[0]]

    def take(self, name: str, topic_id: UUID, states: Sequence[UpdateMetadataPartitionState]) -> Steps[None]:
        """What is said of a topic; of a topic with very many partitions in steps, and still in one go."""
        known, is_another = self.partitions.get(name, {}), self.ids.get(name, topic_id) != topic_id
        if is_another:
            if all(state.leader == LEADER_DURING_DELETE for state in states):
                return  # a late word on the old one
            known = {}  # deleted and created again: nothing of the old one holds
        partitions, changes = dict(known), list[_Change]()
        for place, state in enumerate(states, 1):
            if place % _PARTITIONS_PER_STEP == 0:
                yield None
            before = partitions.pop(state.partition_index, None) if state.leader == LEADER_DURING_DELETE else None
            if state.leader != LEADER_DURING_DELETE:
                before = partitions.get(state.partition_index)
                now = partitions[state.partition_index] = _partition(state)
                changes.append((now, 1))
            if before is not None:
                changes.append((before, -1))
        if is_another or not partitions:
            self.forget(name)
        if partitions:
            in_order = partitions.keys() == known.keys()
            self.put(name, topic_id, partitions if in_order else dict(sorted(partitions.items())), changes)


class Metadata:
    """The cluster as last told. Read by handlers on every request: look-ups are dictionary accesses."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerAddress] = {}  # live ones only, in order of id
        self.controller_id = -1
        self.controller_epoch = 0
        self.version = 0  # grows with every update that was taken over
        self._set(_Tables())
        self._heard = (-1, -1), 0  # epoch and id of the controller that was heard last, and its latest connection
        self._deleted: dict[UUID, None] = {}  # topics that were deleted, the latest last
        self._known: Future[None] = Future()
        self._deletion_listeners: list[Callable[[list[tuple[str, int]]], None]] = []
        self._update_listeners: list[Callable[[], None]] = []
        self.words = InOrder()  # of the controller: also those to replicas

    def _set(self, tables: _Tables) -> None:
        self._tables = tables
        self._partitions, self._ids, self._names = tables.partitions, tables.ids, tables.names

    def on_deleted(self, callback: Callable[[list[tuple[str, int]]], None]) -> None:
        """Called with the (topic, partition) pairs that an update has made disappear."""
        self._deletion_listeners.append(callback)

    def on_updated(self, callback: Callable[[], None]) -> None:
        """Called after every update that was taken over."""
        self._update_listeners.append(callback)

    def known(self) -> Future[None]:
        """Resolved once a controller has told anything at all. Before that there is nothing true to answer."""
        return self._known

    def alive(self) -> list[int]:
        """Ids of the live brokers, sorted."""
        return list(self.brokers)

    def topics(self) -> list[str]:
        return sorted(self._partitions)

    def topics_of(self, key: str) -> list[str]:
        """Physical names of one instance, sorted. Costs nothing for the topics of all the others. Not to be changed."""
        owned = self._tables.owned.get(key)
        if owned is None:
            return []
        if owned.sorted is None:
            owned.sorted = sorted(owned.topics)
        return owned.sorted

    def leaders_of(self, key: str) -> int:
        """How many partitions of an instance are led, by whomever."""
        owned = self._tables.owned.get(key)
        return 0 if owned is None else owned.led

    def trouble_of(self, key: str) -> tuple[int, int]:
        """Of an instance: partitions without a leader, and led ones with a replica that is not in sync."""
        owned = self._tables.owned.get(key)
        return (0, 0) if owned is None else (owned.partitions - owned.led, owned.behind)

    def absent(self) -> dict[int, tuple[int, int, int]]:
        """What the cluster lacks of brokers; those of which nothing is lacking are left out.

        Replicas of theirs that are not in sync with a leader, replicas of partitions without one, and how many of these
        are of the topic of groups' offsets.
        """
        rows = (
            (broker, (behind, without, groups)) for broker, (behind, without, groups) in self._tables.absent.items()
        )
        return {broker: counts for broker, counts in sorted(rows) if any(counts)}

    def has_topic(self, topic: str) -> bool:
        return topic in self._partitions

    def partitions(self, topic: str) -> dict[int, PartitionMetadata]:
        """Partitions of a topic in order of index; empty where it does not exist. Not to be changed."""
        return self._partitions.get(topic, {})

    def partition(self, topic: str, index: int) -> PartitionMetadata | None:
        partitions = self._partitions.get(topic)
        return None if partitions is None else partitions.get(index)

    def topic_id(self, topic: str) -> UUID | None:
        return self._ids.get(topic)

    def topic_of_id(self, topic_id: UUID) -> str | None:
        return self._names.get(topic_id)

    def was_deleted(self, topic_id: UUID) -> bool:
        """Whether the controller has said that this topic goes: it does not come back, though a late word may speak of it."""
        return topic_id in self._deleted

    def saw_controller(self, controller_id: int, epoch: int) -> bool:
        """Note that a controller of this epoch spoke. False: refuse (STALE_CONTROLLER_EPOCH).

        Then there is a newer one, or the epoch is another broker's: each is won by one.
        """
        if epoch < self.controller_epoch or (
            epoch == self.controller_epoch and self.controller_id not in (-1, controller_id)
        ):
            return False
        self.controller_id, self.controller_epoch = controller_id, epoch
        return True

    def is_overtaken(self, controller_id: int, epoch: int, connection: int) -> bool:
        """Whether this controller has spoken on a later connection than this one (`Session.number`); noted, if not.

        A controller has one connection at a time to a broker, and says again on the next what was not answered. So what arrives
        on the one before was said before, however late it comes.
        """
        said_by, said_on = self._heard
        if (epoch, controller_id) == said_by:
            if connection < said_on:
                return True
        elif epoch <= said_by[0]:
            return False  # refused by its epoch
        self._heard = (epoch, controller_id), connection
        return False

    # --- updates ------------------------------------------------------------------------------------------------------

    def take(self, request: UpdateMetadataRequest, run: Run) -> Future[ErrorCode]:
        """As `apply`, behind what the controller said before; `run` makes the steps of what is long."""
        return self.words.add(self._applied(request), run if _is_long(request) else at_once)

    def apply(self, request: UpdateMetadataRequest) -> ErrorCode:
        """Take an update over: NONE, or STALE_CONTROLLER_EPOCH and nothing changes."""
        return run_through(self._applied(request))

    def _applied(self, request: UpdateMetadataRequest) -> Steps[ErrorCode]:
        """A full update makes new tables, which take the place of the old ones when they are whole."""
        if not self.saw_controller(request.controller_id, request.controller_epoch):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        brokers = {broker.id: _address(broker) for broker in sorted(request.live_brokers, key=lambda b: b.id)}
        if request.type == FULL_UPDATE:
            before, tables = self._tables, _Tables()
            yield from self._told(request, tables)
            self._set(tables)
            self.brokers = brokers
            yield from self._forgotten(before)
        else:
            self.brokers = brokers
            yield from self._told(request, self._tables)
        self.version += 1
        self._known.resolve(None)
        for listener in self._update_listeners:
            listener()
        return ErrorCode.NONE

    def _told(self, request: UpdateMetadataRequest, tables: _Tables) -> Steps[None]:
        """Topic by topic. What is gone then is told in time, of a full update later."""
        left = _PARTITIONS_PER_STEP
        gone: list[tuple[str, int]] = []
        for topic in request.topic_states:
            if self._is_late(topic):
                continue
            before = tables.partitions.get(topic.topic_name, {})
            yield from tables.take(topic.topic_name, topic.topic_id, topic.partition_states)
            gone += self._gone(topic.topic_name, before, tables)
            left -= 1 + len(topic.partition_states)
            if left <= 0:
                gone = self._tell_deletions(gone)
                left = _PARTITIONS_PER_STEP
                yield None
        self._tell_deletions(gone)

    def _is_late(self, topic: UpdateMetadataTopicState) -> bool:
        """Whether this was said before the topic went. Which topics go is noted.

        Not by single rows: those of a topic that went may come with the one that was made again, under the new id.
        """
        states = topic.partition_states
        if not states or any(state.leader != LEADER_DURING_DELETE for state in states):
            return topic.topic_id in self._deleted
        if topic.topic_id != NO_UUID:
            self._deleted.pop(topic.topic_id, None)
            self._deleted[topic.topic_id] = None
            if len(self._deleted) > _DELETED_REMEMBERED:
                del self._deleted[next(iter(self._deleted))]
        return False

    def _forgotten(self, before: _Tables) -> Steps[None]:
        """What a full update has made disappear."""
        left = _PARTITIONS_PER_STEP
        for topic, partitions in before.partitions.items():
            self._tell_deletions(self._gone(topic, partitions, self._tables))
            left -= 1
            if left <= 0:
                left = _PARTITIONS_PER_STEP
                yield None

    @staticmethod
    def _gone(topic: str, before: Mapping[int, PartitionMetadata], tables: _Tables) -> list[tuple[str, int]]:
        after = tables.partitions.get(topic, {})
        if before.keys() <= after.keys():
            return []
        return [(topic, index) for index in before if index not in after]

    def _tell_deletions(self, gone: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """What is left to tell: nothing."""
        if gone:
            for listener in self._deletion_listeners:
                listener(gone)
        return []


def _is_long(request: UpdateMetadataRequest) -> bool:
    if request.type == FULL_UPDATE:  # whatever it says, it may make much disappear
        return True
    left = _PARTITIONS_AT_ONCE
    for topic in request.topic_states:
        left -= 1 + len(topic.partition_states)
        if left < 0:
            return True
    return False


def _partition(state: UpdateMetadataPartitionState) -> PartitionMetadata:
    return PartitionMetadata(state.leader, state.leader_epoch, state.replicas, state.isr, state.offline_replicas)


def _address(broker: UpdateMetadataBroker) -> BrokerAddress:
    endpoint = next(endpoint for endpoint in broker.endpoints if endpoint.listener == INTERNAL_LISTENER)
    return BrokerAddress(broker.id, endpoint.host, endpoint.port, broker.rack or None)
