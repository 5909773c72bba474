"""What this broker knows of the cluster: brokers, topics, leaders. Told by the controller in UpdateMetadata.

An update carries the partitions that changed and always all live brokers. A partition whose leader is -2 is forgotten
(its topic is being deleted). A full update (type 2, the first that a new controller sends) replaces everything: so a
broker that missed a deletion under the old controller does not remember the topic for ever.

Updates of a controller older than the newest one seen are refused: `controller_epoch` is shared by everything that the
controller sends (LeaderAndIsr and StopReplica raise it through `saw_controller` too).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from dataplane.cluster.paths import INTERNAL_LISTENER, LEADER_DURING_DELETE, NO_LEADER, BrokerAddress
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from dataplane.protocol.schema import NO_UUID
from dataplane.tasks import Future
from quota.contracts.namespace import split_physical

__all__ = ["FULL_UPDATE", "INCREMENTAL_UPDATE", "BrokerAddress", "Metadata", "PartitionMetadata"]

INCREMENTAL_UPDATE = 1
FULL_UPDATE = 2


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


class Metadata:
    """The cluster as last told. Read by handlers on every request: look-ups are dictionary accesses."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerAddress] = {}  # live ones only, in order of id
        self.controller_id = -1
        self.controller_epoch = 0
        self.version = 0  # grows with every update that was taken over
        self._partitions: dict[str, dict[int, PartitionMetadata]] = {}
        self._ids: dict[str, UUID] = {}
        self._names: dict[UUID, str] = {}
        self._by_owner: dict[str, list[str]] | None = None  # made when asked for
        self._known: Future[None] = Future()
        self._deletion_listeners: list[Callable[[list[tuple[str, int]]], None]] = []
        self._update_listeners: list[Callable[[], None]] = []

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
        """Physical names, sorted."""
        return sorted(self._partitions)

    def topics_of(self, key: str) -> list[str]:
        """Physical names of one instance, sorted. Costs nothing for the topics of all the others. Not to be changed."""
        if self._by_owner is None:
            self._by_owner = {}
            for topic in self.topics():
                owner = split_physical(topic)
                if owner is not None:
                    self._by_owner.setdefault(owner[0], []).append(topic)
        return self._by_owner.get(key, [])

    def has_topic(self, topic: str) -> bool:
        """Whether the topic exists."""
        return topic in self._partitions

    def partitions(self, topic: str) -> dict[int, PartitionMetadata]:
        """Partitions of a topic in order of index; empty where it does not exist. Not to be changed."""
        return self._partitions.get(topic, {})

    def partition(self, topic: str, index: int) -> PartitionMetadata | None:
        """One partition."""
        partitions = self._partitions.get(topic)
        return None if partitions is None else partitions.get(index)

    def topic_id(self, topic: str) -> UUID | None:
        """Id of a topic."""
        return self._ids.get(topic)

    def topic_of_id(self, topic_id: UUID) -> str | None:
        """Name of a topic."""
        return self._names.get(topic_id)

    def saw_controller(self, controller_id: int, epoch: int) -> bool:
        """Note that a controller of this epoch spoke. False: there is a newer one, refuse (STALE_CONTROLLER_EPOCH)."""
        if epoch < self.controller_epoch:
            return False
        self.controller_id, self.controller_epoch = controller_id, epoch
        return True

    def apply(self, request: UpdateMetadataRequest) -> ErrorCode:
        """Take an update over: NONE, or STALE_CONTROLLER_EPOCH and nothing changes."""
        if not self.saw_controller(request.controller_id, request.controller_epoch):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.version += 1
        self._by_owner = None
        self.brokers = {broker.id: _address(broker) for broker in sorted(request.live_brokers, key=lambda b: b.id)}
        if request.type == FULL_UPDATE:
            touched, before = list(self._partitions), self._partitions
            self._partitions, self._ids, self._names = {}, {}, {}
        else:
            touched = [topic.topic_name for topic in request.topic_states]
            before = {topic: self._partitions[topic] for topic in touched if topic in self._partitions}
        for topic in request.topic_states:
            self._apply_topic(topic.topic_name, topic.topic_id, topic.partition_states)
        self._known.resolve(None)
        self._tell_deletions(touched, before)
        for listener in self._update_listeners:
            listener()
        return ErrorCode.NONE

    def _tell_deletions(self, topics: list[str], before: dict[str, dict[int, PartitionMetadata]]) -> None:
        deleted = [
            (topic, index)
            for topic in topics
            for index in before.get(topic, {})
            if self.partition(topic, index) is None
        ]
        if deleted:
            for listener in self._deletion_listeners:
                listener(deleted)

    def _apply_topic(self, name: str, topic_id: UUID, states: tuple[UpdateMetadataPartitionState, ...]) -> None:
        if self._ids.get(name, topic_id) != topic_id:
            if any(state.leader != LEADER_DURING_DELETE for state in states):
                self._forget(name)  # deleted and created again: nothing of the old one holds
            else:
                return  # a late word on the old one
        known = self._partitions.get(name, {})
        partitions = dict(known)
        for state in states:
            if state.leader == LEADER_DURING_DELETE:
                partitions.pop(state.partition_index, None)
            else:
                partitions[state.partition_index] = _partition(state)
        if not partitions:
            self._forget(name)
            return
        self._partitions[name] = dict(sorted(partitions.items())) if partitions.keys() != known.keys() else partitions
        if topic_id != NO_UUID:
            self._ids[name], self._names[topic_id] = topic_id, name

    def _forget(self, name: str) -> None:
        self._partitions.pop(name, None)
        topic_id = self._ids.pop(name, None)
        if topic_id is not None:
            self._names.pop(topic_id, None)


def _partition(state: UpdateMetadataPartitionState) -> PartitionMetadata:
    return PartitionMetadata(state.leader, state.leader_epoch, state.replicas, state.isr, state.offline_replicas)


def _address(broker: UpdateMetadataBroker) -> BrokerAddress:
    endpoint = next(endpoint for endpoint in broker.endpoints if endpoint.listener == INTERNAL_LISTENER)
    return BrokerAddress(broker.id, endpoint.host, endpoint.port, broker.rack or None)
