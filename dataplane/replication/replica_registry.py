"""The replicas that are on this broker: found by topic and partition, or by the id of their topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from dataplane.cluster.metadata import Metadata
    from dataplane.replication.replica.partition import Partition


class ReplicaRegistry:
    """All of them. What else there is to do when one comes or goes is done by `manager.Replicas`."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._topics: dict[str, dict[int, Partition]] = {}
        self._ids: dict[UUID, str] = {}  # of the topics that are here: known before metadata say so

    def get(self, topic: str, index: int) -> Partition | None:
        """The replica that is here, whatever its role."""
        partitions = self._topics.get(topic)
        return None if partitions is None else partitions.get(index)

    def partitions(self) -> Iterator[Partition]:
        """All replicas here, in the order in which they came."""
        for partitions in list(self._topics.values()):
            yield from list(partitions.values())

    def leader(self, topic: str, index: int, current_leader_epoch: int = -1) -> Partition | ErrorCode:
        """The partition if we lead it, in the epoch that the caller believes in (-1: it has no belief); or why not."""
        return self.readable(topic, index, current_leader_epoch, leader_only=True)

    def readable(
        self, topic: str, index: int, current_leader_epoch: int = -1, *, leader_only: bool
    ) -> Partition | ErrorCode:
        """The same; of a follower too unless `leader_only`."""
        partitions = self._topics.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is None:
            exists = self._metadata.partition(topic, index) is not None
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.state.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if current_leader_epoch >= 0 and current_leader_epoch != partition.state.leader_epoch:
            if current_leader_epoch < partition.state.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return partition if partition.state.is_leader or not leader_only else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def topic_of_id(self, topic_id: UUID) -> str | None:
        """The name of a topic of which something is here."""
        return self._ids.get(topic_id)

    def hosts_topic(self, topic: str) -> bool:
        """Whether any partition of the topic is here."""
        return topic in self._topics

    def of_topic(self, topic: str) -> list[Partition]:
        """The replicas of one topic."""
        return list(self._topics.get(topic, {}).values())

    def add(self, partition: Partition) -> None:
        """It can be found from here on."""
        self._topics.setdefault(partition.topic, {})[partition.index] = partition
        self._ids[partition.topic_id] = partition.topic

    def remove(self, partition: Partition) -> None:
        """It cannot be found any more; its topic still can."""
        del self._topics[partition.topic][partition.index]

    def remove_empty_topic(self, partition: Partition) -> bool:
        """Nor can the topic of one that was removed, unless there are others of it. Returns whether it went."""
        if self._topics[partition.topic]:
            return False
        del self._topics[partition.topic]
        self._ids.pop(partition.topic_id, None)
        return True
