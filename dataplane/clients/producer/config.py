"""Settings of a producer, by the documents' names; those that Kafka 0.8 gave some of them are understood as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dataplane.clients.errors import ConfigurationError
from dataplane.clients.messages import codec_of
from dataplane.clients.settings import ConnectionSettings, addresses
from dataplane.records import compression
from quota.contracts.zookeeper_login import NOBODY, Access

_TYPES = ("sync", "async")


@dataclass(frozen=True, kw_only=True)
class ProducerConfig(ConnectionSettings):
    """Either `zk_connect` or `broker_list` says where the cluster is. Times are in milliseconds."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "metadata.broker.list": "broker.list",
        "zookeeper.connect": "zk.connect",
        "batch.num.messages": "batch.size",
        "queue.buffering.max.ms": "queue.time",
        "queue.buffering.max.messages": "queue.size",
        "queue.enqueueTimeout.ms": "queue.enqueue.timeout.ms",
        "num.retries": "message.send.max.retries",
    }

    zk_connect: str = ""
    zk_access: Access = NOBODY  # who we are to ZooKeeper: one of our clusters asks
    broker_list: str = ""

    producer_type: str = "sync"
    batch_size: int = 200  # messages
    queue_time: int = 5_000
    queue_size: int = 10_000  # messages
    queue_enqueue_timeout_ms: int = -1  # -1: wait for room, 0: do not

    serializer_class: Any = "default"
    key_serializer_class: Any = None  # None: as the message
    partitioner_class: Any = "hash"
    event_handler: Any = None
    callback_handler: Any = None

    request_required_acks: int = 1  # 0: nobody is asked, 1: the leader, -1: all in-sync replicas
    request_timeout_ms: int = 10_000  # of the brokers, for the acknowledgement
    message_send_max_retries: int = 3
    retry_backoff_ms: int = 100
    topic_metadata_refresh_interval_ms: int = 600_000

    compression_codec: str = "none"
    compressed_topics: str = ""  # empty: all; else only these, with commas
    max_message_size: int = 1_000_000  # bytes of a batch before it is compressed

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of("producer_type", _TYPES)
        self.one_of("request_required_acks", (-1, 0, 1))
        for name in ("batch_size", "queue_size", "max_message_size", "request_timeout_ms"):
            self.at_least(name, 1)
        for name in ("queue_time", "message_send_max_retries", "retry_backoff_ms"):
            self.at_least(name, 0)
        self.at_least("queue_enqueue_timeout_ms", -1)
        if bool(self.zk_connect) == bool(self.broker_list):
            raise ConfigurationError("one of zk.connect and broker.list says where the cluster is")
        if self.broker_list:
            addresses(self.broker_list)
        try:
            codec_of(self.compression_codec)
        except KeyError:
            told = ", ".join(compression.NAMES.values())
            raise ConfigurationError(f"compression.codec is one of {told}, not {self.compression_codec!r}") from None

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """As the base; `request.required.acks` may be `all`, too."""
        acks = "request.required.acks"
        if properties.get(acks) == "all":
            properties = {**properties, acks: -1}
        return super().from_properties(properties)

    @property
    def is_async(self) -> bool:
        return self.producer_type == "async"

    def codec(self, topic: str) -> int:
        """With which messages of a topic are compressed."""
        only = {name.strip() for name in self.compressed_topics.split(",") if name.strip()}
        return codec_of(self.compression_codec) if not only or topic in only else compression.NONE
