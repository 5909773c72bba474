"""Usage records to ``__usage``: one request to each leader, acks=all, over the connection that all short calls share.

Which partition a record goes to follows from its key. What is not acknowledged is asked for again by the meter; counters
are cumulative, so a record that was written twice, or overtaken by a later one, changes no total.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from dataplane.peers.outbound import PeerError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from dataplane.tasks import sleep
from quota.contracts.usage import USAGE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.cluster.metadata import Metadata
    from dataplane.doors import Loop
    from dataplane.peers.outbound import Peers
    from dataplane.tasks import Future
    from quota.contracts.usage import Told

_PRODUCE_VERSION = 9
_ACKS_ALL = -1
_TIMEOUT_MS = 10_000
_CALL_TIMEOUT_S = 15.0
_PAUSE_S = 5.0

ByPartition = dict[int, list["Told"]]


class Publisher:
    """`ensure` creates the topic where it is missing."""

    def __init__(self, loop: Loop, metadata: Metadata, peers: Peers, ensure: Callable[[str], Future[None]]) -> None:
        self._loop, self._metadata, self._peers, self._ensure = loop, metadata, peers, ensure
        self._closed = False

    def close(self) -> None:
        """Stop waiting for the topic."""
        self._closed = True

    async def prepare(self) -> None:
        """Make sure that the topic exists: its readers may be waiting."""
        while not self._metadata.partitions(USAGE_TOPIC) and not self._closed:
            await self._ensure(USAGE_TOPIC)
            if not self._metadata.partitions(USAGE_TOPIC):
                await sleep(self._loop, _PAUSE_S)

    async def publish(self, records: Sequence[Told]) -> list[Told]:
        """Write each once; those that are known to be on all in-sync replicas. The others may be, too."""
        calls = [(parts, self._send(leader, parts)) for leader, parts in self._by_leader(records).items()]
        acknowledged: list[Told] = []
        for parts, answer in calls:
            try:
                response = await answer
            except PeerError:
                continue
            for row in response.responses[0].partition_responses:
                if row.error_code == ErrorCode.NONE:
                    acknowledged += parts[row.index]
        return acknowledged

    def _by_leader(self, records: Sequence[Told]) -> dict[int, ByPartition]:
        """Records whose partition nobody leads are left out."""
        partitions = self._metadata.partitions(USAGE_TOPIC)
        by_leader: dict[int, ByPartition] = {}
        for record in records if partitions else ():
            index = zlib.crc32(record.key()) % len(partitions)
            partition = partitions.get(index)
            if partition is not None and partition.has_leader:
                by_leader.setdefault(partition.leader, {}).setdefault(index, []).append(record)
        return by_leader

    def _send(self, leader: int, parts: ByPartition) -> Future[Any]:
        now_ms = self._loop.clock.now_ms()
        data = tuple(
            PartitionProduceData(
                index, bytes(build_batch([Record(r.key(), r.value()) for r in records], now_ms=now_ms))
            )
            for index, records in parts.items()
        )
        request = ProduceRequest(
            acks=_ACKS_ALL, timeout_ms=_TIMEOUT_MS, topic_data=(TopicProduceData(USAGE_TOPIC, data),)
        )
        return self._peers.call(leader, request, _PRODUCE_VERSION, _CALL_TIMEOUT_S)
