"""One batch to one partition of the target, once, acknowledged by all in-sync replicas; who called says whether to try again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from dataplane.clients.cluster import Cluster
from dataplane.clients.connection import Connection
from dataplane.clients.errors import UnsupportedError, raise_for
from dataplane.clients.fetching import Place
from dataplane.clients.messages import Message, write_entries
from dataplane.clients.moving import MovedRecord
from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from dataplane.records import compression

_TIMEOUT_MS = 15_000


def append(cluster: Cluster, place: Place, messages: Sequence[Message], codec: int = compression.NONE) -> int:
    """The offset of the first. Raises BrokerError; ConnectionLostError, after which they may be there or not."""
    topic, partition = place

    def send(connection: Connection) -> ProduceResponse:
        version = connection.version(ApiKey.PRODUCE)
        entries = write_entries(messages, version, codec, time.time_ns() // 1_000_000)
        data = (TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=entries),)),)
        request = ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=data)
        answer: ProduceResponse = connection.call(request, version=version, timeout_ms=_TIMEOUT_MS)
        return answer

    answer: ProduceResponse = cluster.on(cluster.leader(topic, partition), send)
    found = answer.responses[0].partition_responses[0]
    raise_for(found.error_code, f"append to {topic}-{partition}")
    return found.base_offset


class PlainWriter:
    """Appends without transactions, and so is never in the middle of one. What a copier writes with: see `copying.Writer`."""

    is_exact = False
    is_broken = False
    is_late = False
    room = 2**31

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def has(self, place: Place) -> bool:
        """There is nothing to be part of."""
        del place
        return True

    def enlist(self, places: Iterable[Place]) -> dict[Place, int]:
        """None is refused."""
        del places
        return {}

    def append(self, place: Place, messages: Sequence[Message], codec: int = compression.NONE) -> int:
        """As the function."""
        return append(self._cluster, place, messages, codec)

    def move(self, place: Place, records: Sequence[MovedRecord], codec: int = compression.NONE) -> int:
        """Nobody asks: without transactions what comes is compared with what is there."""
        del place, records, codec
        raise UnsupportedError("records are moved within transactions")
