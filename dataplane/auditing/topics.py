"""Records of an audit to the instance's own topic: its one partition's leader, acks=all, over a connection that calls share.

The topic is made when the first record is there (`internal_topics`). What is not acknowledged is written again, so that a record
may be there twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.peers.outbound import PeerError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.cluster.metadata import Metadata
    from dataplane.doors import Loop
    from dataplane.peers.outbound import Peers
    from dataplane.tasks import Future
    from quota.contracts.audit import AuditRecord

_PRODUCE_VERSION = 9
_ACKS_ALL = -1
_TIMEOUT_MS = 5_000
_CALL_TIMEOUT_S = 10.0
_PARTITION = 0


class AuditTopics:
    """`ensure` makes a topic where it is missing."""

    def __init__(self, loop: Loop, metadata: Metadata, peers: Peers, ensure: Callable[[str], Future[None]]) -> None:
        self._loop, self._metadata, self._peers, self._ensure = loop, metadata, peers, ensure

    async def write(self, physical: str, records: Sequence[AuditRecord]) -> bool:
        """Whether they are on all in-sync replicas. If not they may be, too."""
        if not self._metadata.partitions(physical):
            await self._ensure(physical)
        partition = self._metadata.partitions(physical).get(_PARTITION)
        if partition is None or not partition.has_leader:
            return False
        now_ms = self._loop.clock.now_ms()
        batch = bytes(build_batch([Record(None, one.value()) for one in records], now_ms=now_ms))
        data = TopicProduceData(physical, (PartitionProduceData(_PARTITION, batch),))
        request = ProduceRequest(acks=_ACKS_ALL, timeout_ms=_TIMEOUT_MS, topic_data=(data,))
        try:
            answer = await self._peers.call(partition.leader, request, _PRODUCE_VERSION, _CALL_TIMEOUT_S)
        except PeerError:
            return False
        return bool(answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE)
