"""A transactional producer and a reader of what is committed, for the simulation: the protocol of Kafka's clients, step by step.

A step is asked again while the answer says "later", or there is none. Any other refusal ends the producer (`EndedError`):
somebody else has its transactional id by now, or its transaction took too long. It begins anew with `begin_anew`, as a client
does that was started again.

A producer `raises` where it knows the second part of KIP-890: it adds no partitions, and goes on from each end with another
epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from dataplane.protocol.messages.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from dataplane.records.batch import Record, build_batch, read_records, split_batches
from dataplane.records.control import Marker, read_marker
from tests.simulation.client import ALL_IN_SYNC, PAUSE_S
from tests.simulation.producer import LIVES_WITH, PRODUCE_VERSION, TIMEOUT_MS

if TYPE_CHECKING:
    from tests.simulation.cluster import SimulatedCluster

GROUP, TRANSACTION = 0, 1
READ_COMMITTED = 1
LATER = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # a broker that has not heard of it yet
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
)
PRODUCE_LATER = (*(code for code in LIVES_WITH if code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), *LATER)


class EndedError(Exception):
    """The broker has refused for good: this producer is over."""


ADDS_ITSELF, RAISES = (PRODUCE_VERSION, 3, 3), (12, 5, 5)
"""Versions of Produce, of TxnOffsetCommit and of EndTxn."""


class TransactionalProducer:
    """One life of a client with a transactional id."""

    def __init__(
        self, cluster: SimulatedCluster, transactional_id: str, timeout_ms: int, *, raises: bool = False
    ) -> None:
        self.raises = raises
        self._produces, self._commits, self._ends = RAISES if raises else ADDS_ITSELF
        self._client, self._ids = cluster.new_client(), cluster.ids
        self._name, self._timeout_ms = transactional_id, timeout_ms
        self._coordinators: dict[tuple[int, str], int] = {}
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def begin_anew(self) -> None:
        """Take the transactional id over: whoever has it is fenced, and its transaction ends."""
        await self._initialise(-1, -1)

    async def raise_epoch(self) -> None:
        """As a producer that does not know whether its last batches have come: their sequence is over (KIP-360)."""
        await self._initialise(self._producer_id, self._epoch)

    async def _initialise(self, producer_id: int, epoch: int) -> None:
        request = InitProducerIdRequest(self._name, self._timeout_ms, producer_id, epoch)
        answer = await self._ask(TRANSACTION, self._name, request, 4)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def write(self, topic: str, partition: int, values: list[bytes], *, late_s: float | None = None) -> None:
        """Records of the transaction, at their place when this returns; or sent so much later, and nobody waits for them."""
        if not self.raises:
            await self._add(topic, partition)
        if late_s is None:
            await self._produce(topic, partition, values)
        else:
            request = self._batch(topic, partition, values)
            leader = await self._client.leader(topic, partition, self._ids)
            self._client.loop.call_later(late_s, lambda: self._client.call(leader, request, self._produces))

    async def _add(self, topic: str, partition: int) -> None:
        topics = (AddPartitionsToTxnTopic(topic, (partition,)),)
        added = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=topics,
        )
        await self._ask(TRANSACTION, self._name, added, 3)

    async def send_offsets(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Where a consumer has got to, as part of the transaction."""
        if not self.raises:
            added = AddOffsetsToTxnRequest(self._name, self._producer_id, self._epoch, group)
            await self._ask(TRANSACTION, self._name, added, 3)
        rows = tuple(
            TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
            for partition, offset in offsets.items()
        )
        request = TxnOffsetCommitRequest(
            self._name, group, self._producer_id, self._epoch, topics=(TxnOffsetCommitRequestTopic(topic, rows),)
        )
        await self._ask(GROUP, group, request, self._commits)

    async def end(self, *, committed: bool) -> None:
        """When this returns the outcome is certain."""
        request = EndTxnRequest(self._name, self._producer_id, self._epoch, committed)
        answer = await self._ask(TRANSACTION, self._name, request, self._ends)
        if self.raises:
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()

    async def position(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """What is committed, once no transaction holds it back; 0 where nothing is."""
        topics = (OffsetFetchRequestTopic(topic, tuple(partitions)),)
        request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=True)
        answer = await self._ask(GROUP, group, request, 7)
        return {row.partition_index: max(0, row.committed_offset) for row in answer.topics[0].partitions}

    def _batch(self, topic: str, partition: int, values: list[bytes]) -> ProduceRequest:
        batch = build_batch(
            [Record(b"k", value) for value in values],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get((topic, partition), 0),
            now_ms=self._client.loop.clock.now_ms(),
            transactional=True,
        )
        data = TopicProduceData(topic, (PartitionProduceData(partition, bytes(batch)),))
        return ProduceRequest(transactional_id=self._name, acks=ALL_IN_SYNC, timeout_ms=TIMEOUT_MS, topic_data=(data,))

    async def _produce(self, topic: str, partition: int, values: list[bytes]) -> None:
        while True:
            request = self._batch(topic, partition, values)
            leader = await self._client.leader(topic, partition, self._ids)
            answer = await self._client.call(leader, request, self._produces)
            code = None if answer is None else answer.responses[0].partition_responses[0].error_code
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._sequences[topic, partition] = self._sequences.get((topic, partition), 0) + len(values)
                return
            if code is not None and code not in PRODUCE_LATER:
                raise EndedError(f"Produce: {ErrorCode(code).name}")
            self._client.doubt(topic, partition)
            await self._client.sleep(PAUSE_S)

    async def _ask(self, key_type: int, key: str, request: Any, version: int) -> Any:
        """Of a coordinator, until it says yes. Raises EndedError."""
        while True:
            coordinator = self._coordinators.get((key_type, key), -1)
            if coordinator < 0:
                coordinator = self._coordinators[key_type, key] = await self._find(key_type, key)
            answer = await self._client.call(coordinator, request, version)
            codes = [] if answer is None else [code for code in _codes(answer) if code]
            if answer is not None and not codes:
                return answer
            for code in codes:
                if code not in LATER:
                    raise EndedError(f"{type(request).__name__}: {ErrorCode(code).name}")
            if ErrorCode.CONCURRENT_TRANSACTIONS not in codes:
                self._coordinators.pop((key_type, key), None)
            await self._client.sleep(PAUSE_S)

    async def _find(self, key_type: int, key: str) -> int:
        for broker in self._ids:
            answer = await self._client.call(broker, FindCoordinatorRequest(key=key, key_type=key_type), 2)
            if answer is not None and not answer.error_code:
                return int(answer.node_id)
        return -1


def _codes(answer: Any) -> Iterable[int]:
    """All error codes of an answer, whatever it nests them in."""
    for topic in getattr(answer, "results_by_topic_v3_and_below", ()):
        for result in topic.results_by_partition:
            yield result.partition_error_code
    for topic in getattr(answer, "topics", None) or ():
        for result in topic.partitions:
            yield result.error_code
    yield getattr(answer, "error_code", 0)


class CommittedReader:
    """Reads a partition as a consumer with read_committed does: on from where it was."""

    def __init__(self, cluster: SimulatedCluster, topic: str, partition: int) -> None:
        self._client, self._ids = cluster.new_client(), cluster.ids
        self._topic, self._partition = topic, partition
        self.offset = 0

    async def read(self) -> list[tuple[int, bytes]]:
        """(offset, value) of all that is new, up to the last stable offset."""
        found: list[tuple[int, bytes]] = []
        while True:
            row = await self._fetch()
            if row is None:
                self._client.doubt(self._topic, self._partition)
                await self._client.sleep(PAUSE_S)
                continue
            found += self._taken(row)
            if self.offset >= row.last_stable_offset:
                return found

    async def _fetch(self) -> Any:
        wanted = FetchPartition(partition=self._partition, fetch_offset=self.offset, partition_max_bytes=2**20)
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=2**22,
            isolation_level=READ_COMMITTED,
            topics=(FetchTopic(topic=self._topic, partitions=(wanted,)),),
        )
        leader = await self._client.leader(self._topic, self._partition, self._ids)
        answer = await self._client.call(leader, request, 10)
        row = answer.responses[0].partitions[0] if answer is not None and answer.responses else None
        return None if row is None or row.error_code else row

    def _taken(self, row: Any) -> list[tuple[int, bytes]]:
        """What a consumer passes on: nothing of transactions that the answer names as aborted, and no markers."""
        aborted = deque(sorted(row.aborted_transactions or (), key=lambda entry: entry.first_offset))
        ignored: set[int] = set()
        found: list[tuple[int, bytes]] = []
        for header, batch in split_batches(memoryview(bytearray(row.records))):
            while aborted and aborted[0].first_offset <= header.last_offset:
                ignored.add(aborted.popleft().producer_id)
            if header.is_control:
                if read_marker(batch)[0] is Marker.ABORT:
                    ignored.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in ignored):
                records = read_records(batch)
                found += [(record.offset, record.value or b"") for record in records if record.offset >= self.offset]
            self.offset = header.next_offset
        return found
