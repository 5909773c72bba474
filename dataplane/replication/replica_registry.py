"""The replicas that are on this broker: found by topic and partition, added, removed, configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.cluster.topic_policy import policy_of
from dataplane.cluster.topic_settings import min_insync_replicas
from dataplane.protocol.errors import ErrorCode
from dataplane.storage.config import LogConfig
from dataplane.storage.log import rolling
from dataplane.storage.rules import rules_of
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from uuid import UUID

    from dataplane.cluster.metadata import Metadata
    from dataplane.config import BrokerConfig
    from dataplane.metering.meter import Meter
    from dataplane.replication.accounting import Accounting
    from dataplane.replication.partition import Partition
    from dataplane.replication.throttling import Throttles
    from dataplane.replication.upkeep.syncing import Syncs
    from dataplane.replication.verdicts import Verdicts
    from dataplane.replication.waiting import Waiting


class TopicOverrides(Protocol):
    """Where a topic's configuration comes from (`cluster.topic_configs`)."""

    def get(self, topic: str) -> Mapping[str, str]:
        """The topic's own settings."""
        ...

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Hear of a topic whose settings have changed."""
        ...


class ReplicaRegistry:
    """All of them. What it refers to is made by `Replicas`."""

    config: BrokerConfig
    metadata: Metadata
    topic_configs: TopicOverrides
    meter: Meter | None
    accounting: Accounting
    waiting: Waiting
    verdicts: Verdicts
    syncs: Syncs
    throttles: Throttles

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.log_defaults = LogConfig.from_settings(config.settings)
        self._topics: dict[str, dict[int, Partition]] = {}
        self._ids: dict[UUID, str] = {}  # of the topics that are here: known before metadata say so
        self._largest_batches: dict[str, int] = {}  # bytes, by instance key, of those that say

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
            exists = self.metadata.partition(topic, index) is not None
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if current_leader_epoch >= 0 and current_leader_epoch != partition.leader_epoch:
            if current_leader_epoch < partition.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return partition if partition.is_leader or not leader_only else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def topic_of_id(self, topic_id: UUID) -> str | None:
        """The name of a topic of which something is here."""
        return self._ids.get(topic_id)

    def hosts_topic(self, topic: str) -> bool:
        """Whether any partition of the topic is here."""
        return topic in self._topics

    def storage_by_instance(self) -> dict[str, int]:
        """Bytes stored here by instance key."""
        return self.accounting.storage_by_instance()

    def leaders_by_instance(self) -> dict[str, int]:
        """Partitions led here by instance key."""
        return self.accounting.leaders_by_instance()

    def add(self, partition: Partition) -> None:
        """A replica comes to this broker."""
        self._topics.setdefault(partition.topic, {})[partition.index] = partition
        self._ids[partition.topic_id] = partition.topic
        if self.meter is not None:
            partition.usage = self.meter.topic(partition.topic)
        self.configure(partition)
        self.accounting.measure(partition)

    def remove(self, partition: Partition) -> None:
        """It goes."""
        partitions = self._topics[partition.topic]
        del partitions[partition.index]
        self.accounting.forget(partition)
        self.syncs.forget(partition)
        self.waiting.look_again(partition)
        if not partitions:
            del self._topics[partition.topic]
            self._ids.pop(partition.topic_id, None)
            if self.meter is not None:
                self.meter.retire(partition.topic)

    # --- configuration ------------------------------------------------------------------------------------------------

    def log_config(self, topic: str) -> LogConfig:
        """Of a topic's logs, within what tenants may set."""
        config = self.log_defaults.with_topic(self.topic_configs.get(topic))
        return config if split_physical(topic) is None else policy_of(self.config.settings).applied(config)

    def configure(self, partition: Partition) -> None:
        """Take over what the topic's configuration says."""
        settings, overrides = self.config.settings, self.topic_configs.get(partition.topic)
        partition.min_insync_replicas = min_insync_replicas(overrides, settings)
        partition.max_message_bytes = int(
            overrides.get("max.message.bytes", self._largest_batch(partition.instance_key or ""))
        )
        rolling.configure(partition.log, self.log_config(partition.topic))
        self.syncs.configure(partition)
        self.throttles.configure(partition, overrides)
        partition.rules = rules_of(partition.log.config, settings.record_validation)

    def take_settings(self, config: BrokerConfig) -> None:
        """The broker's own settings have changed: every topic takes its defaults anew."""
        self.config = config
        self.log_defaults = LogConfig.from_settings(config.settings)
        self.throttles.take_settings(config)
        for partition in self.partitions():
            self.configure(partition)

    def take_largest_batch(self, key: str, size: int | None) -> None:
        """What an instance says of its topics that do not say themselves; None: as the broker."""
        before = self._largest_batch(key)
        if size is None:
            self._largest_batches.pop(key, None)
        else:
            self._largest_batches[key] = size
        if self._largest_batch(key) == before:
            return  # as for nearly all: a broker that starts would look at all partitions for each instance
        for partition in self.partitions():
            if partition.instance_key == key:
                self.configure(partition)

    def _largest_batch(self, key: str) -> int:
        return self._largest_batches.get(key, self.config.settings.message_max_bytes)

    def _configure_topic(self, topic: str) -> None:
        for partition in self._topics.get(topic, {}).values():
            self.configure(partition)
