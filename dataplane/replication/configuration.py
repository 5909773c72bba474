"""How the replicas of this broker are configured: by their topics, by the broker's settings, by their instances.

A topic's own settings come first; where it does not say, its instance may, and then the broker's settings hold. What comes
of it is one value for each replica, `PartitionSettings`, and the configuration of its log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from dataplane.cluster.topic_policy import policy_of
from dataplane.cluster.topic_settings import min_insync_replicas
from dataplane.records.steps import Pace
from dataplane.replication.replica.partition_state import PartitionSettings
from dataplane.replication.upkeep.syncing import flush_after, is_durable
from dataplane.storage.config import LogConfig
from dataplane.storage.log import rolling
from dataplane.storage.rules import rules_of
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dataplane.config import BrokerConfig, Settings
    from dataplane.records.steps import Steps
    from dataplane.replication.replica.partition import Partition
    from dataplane.replication.replica_registry import ReplicaRegistry
    from dataplane.replication.throttling import Throttles
    from dataplane.replication.upkeep.syncing import Syncs


_CONFIGURED_US = 25

_log = logging.getLogger(__name__)


class TopicOverrides(Protocol):
    """Where a topic's configuration comes from (`cluster.topic_configs`)."""

    def get(self, topic: str) -> Mapping[str, str]:
        """The topic's own settings."""
        ...

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Hear of a topic whose settings have changed."""
        ...


class Configuration:
    """`config` is the broker's, with the settings that are in force."""

    def __init__(
        self,
        config: BrokerConfig,
        registry: ReplicaRegistry,
        topic_configs: TopicOverrides,
        throttles: Throttles,
        syncs: Syncs,
    ) -> None:
        self.config = config
        self._registry = registry
        self._topic_configs = topic_configs
        self._throttles = throttles
        self._syncs = syncs
        self._log_defaults = LogConfig.from_settings(config.settings)
        self._largest_batches: dict[str, int] = {}  # bytes, by instance key, of those that say
        topic_configs.on_change(self._configure_topic)

    @property
    def settings(self) -> Settings:
        """The broker's, as they are now."""
        return self.config.settings

    def log_config(self, topic: str) -> LogConfig:
        """Of a topic's logs, within what tenants may set."""
        config = self._log_defaults.with_topic(self._topic_configs.get(topic))
        return config if split_physical(topic) is None else policy_of(self.settings).applied(config)

    def configure(self, partition: Partition) -> None:
        """Take over what the topic's configuration says."""
        overrides, was_durable = self._topic_configs.get(partition.topic), partition.state.settings.is_durable
        config = self.log_config(partition.topic)
        rolling.configure(partition.log, config)
        partition.state.configure(self._settings_of(partition, config, overrides))
        self._syncs.configured(partition, was_durable=was_durable)

    def _settings_of(self, partition: Partition, config: LogConfig, overrides: Mapping[str, str]) -> PartitionSettings:
        settings = self.settings
        largest = overrides.get("max.message.bytes", self._largest_batch(partition.instance_key or ""))
        sending, copying = self._throttles.named(partition.index, overrides)
        return PartitionSettings(
            min_insync_replicas=min_insync_replicas(overrides, settings),
            max_message_bytes=int(largest),
            rules=rules_of(config, settings.record_validation),
            flush_after=flush_after(config),
            is_durable=is_durable(config),
            throttles_sending=sending,
            throttles_copying=copying,
        )

    def take_settings(self, config: BrokerConfig) -> None:
        """The broker's own settings have changed; call `all_anew` next."""
        self.config = config
        self._log_defaults = LogConfig.from_settings(config.settings)
        self._throttles.take_settings(config)

    def all_anew(self) -> Steps[None]:
        """Every topic takes the broker's defaults anew."""
        pace = Pace()
        for partition in self._registry.partitions():
            if pace.over(_CONFIGURED_US):
                yield None
            if self._registry.get(partition.topic, partition.index) is not partition:  # it has gone meanwhile
                continue
            try:
                self.configure(partition)
            except Exception:  # noqa: BLE001 - the others take theirs
                _log.exception("%r keeps its settings", partition)

    def take_largest_batch(self, key: str, size: int | None) -> None:
        """What an instance says of its topics that do not say themselves; None: as the broker."""
        before = self._largest_batch(key)
        if size is None:
            self._largest_batches.pop(key, None)
        else:
            self._largest_batches[key] = size
        if self._largest_batch(key) == before:
            return  # as for nearly all: a broker that starts would look at all partitions for each instance
        for partition in self._registry.partitions():
            if partition.instance_key == key:
                self.configure(partition)

    def _largest_batch(self, key: str) -> int:
        return self._largest_batches.get(key, self.settings.message_max_bytes)

    def _configure_topic(self, topic: str) -> None:
        for partition in self._registry.of_topic(topic):
            self.configure(partition)
