"""Settings of the high-level consumer, by the documents' names (Kafka 0.7); Kafka 0.8's names are understood as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from dataplane.clients.connector.rebalance import DOCUMENTED, STRATEGIES
from dataplane.clients.errors import ConfigurationError
from dataplane.clients.settings import ConnectionSettings
from quota.contracts.zookeeper_login import NOBODY, Access

SMALLEST, LARGEST = "smallest", "largest"


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig(ConnectionSettings):
    """Times are in milliseconds. `group_id` and `zk_connect` have no default."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "groupid": "group.id",
        "zookeeper.connect": "zk.connect",
        "zookeeper.session.timeout.ms": "zk.session.timeout.ms",
        "zookeeper.connection.timeout.ms": "zk.connection.timeout.ms",
        "zk.sessiontimeout.ms": "zk.session.timeout.ms",
        "zk.connectiontimeout.ms": "zk.connection.timeout.ms",
        "auto.commit.enable": "autocommit.enable",
        "auto.commit.interval.ms": "autocommit.interval.ms",
        "auto.offset.reset": "autooffset.reset",
        "fetch.message.max.bytes": "fetch.size",
        "queued.max.message.chunks": "queuedchunks.max",
        "consumerid": "consumer.id",
    }

    group_id: str
    zk_connect: str
    zk_access: Access = NOBODY  # who we are to ZooKeeper: one of our clusters asks
    zk_session_timeout_ms: int = 6_000
    zk_connection_timeout_ms: int = 6_000
    consumer_id: str = ""  # empty: host:uuid

    autocommit_enable: bool = True
    autocommit_interval_ms: int = 60_000
    autooffset_reset: str = LARGEST  # where a partition is begun of which the group has no offset
    consumer_timeout_ms: int = -1  # -1: a stream waits for messages as long as it takes

    fetch_size: int = 2**20  # bytes of a partition
    fetch_min_bytes: int = 1
    fetch_wait_max_ms: int = 100
    queuedchunks_max: int = 2  # answers to fetches that a stream holds ready
    refresh_leader_backoff_ms: int = 200

    rebalance_max_retries: int = 4
    rebalance_backoff_ms: int = 2_000
    partition_assignment_strategy: str = DOCUMENTED
    exclude_internal_topics: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.group_id or "/" in self.group_id or "/" in self.consumer_id:
            raise ConfigurationError(
                "group.id and consumer.id are names of nodes: without a slash, the first not empty"
            )
        if not self.zk_connect:
            raise ConfigurationError("zk.connect says where the group and the cluster are")
        self.one_of("autooffset_reset", (SMALLEST, LARGEST))
        self.one_of("partition_assignment_strategy", tuple(STRATEGIES))
        for name in ("fetch_size", "fetch_min_bytes", "queuedchunks_max", "autocommit_interval_ms"):
            self.at_least(name, 1)
        for name in ("rebalance_max_retries", "rebalance_backoff_ms", "fetch_wait_max_ms", "refresh_leader_backoff_ms"):
            self.at_least(name, 0)
        self.at_least("consumer_timeout_ms", -1)
