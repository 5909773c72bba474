"""A tenant's client in the simulation: requests with futures, an idempotent producer, a reader of whole partitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from dataplane.doors import Connection, Loop
from dataplane.protocol.api import APIS
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from dataplane.protocol.messages.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.protocol.schema import message_info
from dataplane.records.batch import Record, build_batch, read_records, split_batches
from dataplane.tasks import Future, sleep

CALL_TIMEOUT_S = 10.0
PAUSE_S = 0.1
ALL_IN_SYNC = -1


class Client:
    """One connection to each broker. A call that gets no answer is answered None."""

    def __init__(self, loop: Loop, address_of: Callable[[int], tuple[str, int]]) -> None:
        self.loop = loop
        self._address_of = address_of
        self._wires: dict[int, _Wire] = {}
        self._leaders: dict[tuple[str, int], int] = {}  # believed until one does not answer as a leader does

    def call(self, broker: int, request: Any, version: int) -> Future[Any]:
        """Ask a broker."""
        if broker < 0:
            answer: Future[Any] = Future()
            self.loop.call_soon(lambda: answer.resolve(None))
            return answer
        wire = self._wires.get(broker)
        if wire is None or wire.is_closed:
            wire = self._wires[broker] = _Wire(self.loop, self._address_of(broker))
        return wire.call(request, version)

    def sleep(self, seconds: float) -> Future[None]:
        """Wait."""
        return sleep(self.loop, seconds)

    async def leader(self, topic: str, partition: int, brokers: list[int]) -> int:
        """Who leads a partition, as the first broker that answers knew; -1: nobody."""
        known = self._leaders.get((topic, partition))
        if known is not None:
            return known
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
        for broker in brokers:
            answer = await self.call(broker, request, 9)
            if answer is not None and answer.topics and not answer.topics[0].error_code:
                for row in answer.topics[0].partitions:
                    if row.partition_index == partition and row.leader_id >= 0:
                        self._leaders[topic, partition] = row.leader_id
                        return int(row.leader_id)
        return -1

    def doubt(self, topic: str, partition: int) -> None:
        """Whoever was believed to lead it did not answer so."""
        self._leaders.pop((topic, partition), None)

    async def producer_id(self, brokers: list[int]) -> int:
        """A new producer id."""
        while True:
            for broker in brokers:
                answer = await self.call(
                    broker, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4
                )
                if answer is not None and not answer.error_code:
                    return int(answer.producer_id)
            await self.sleep(PAUSE_S)

    async def produce(
        self, topic: str, partition: int, values: list[bytes], producer_id: int, sequence: int, brokers: list[int]
    ) -> int:
        """Send one batch with acks=all until it is acknowledged, as an idempotent producer does; its base offset."""
        while True:
            leader = await self.leader(topic, partition, brokers)
            batch = build_batch(
                [Record(b"k", value) for value in values],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                now_ms=self.loop.clock.now_ms(),
            )
            data = TopicProduceData(topic, (PartitionProduceData(partition, bytes(batch)),))
            request = ProduceRequest(acks=ALL_IN_SYNC, timeout_ms=3_000, topic_data=(data,))
            answer = await self.call(leader, request, 9)
            if answer is not None:
                row = answer.responses[0].partition_responses[0]
                if not row.error_code:
                    return int(row.base_offset)
            self.doubt(topic, partition)
            await self.sleep(PAUSE_S)

    async def read_all(
        self, topic: str, partition: int, brokers: list[int], offset: int = 0
    ) -> list[tuple[int, bytes]]:
        """(offset, value) of everything from `offset` up to the high watermark."""
        found: list[tuple[int, bytes]] = []
        while True:
            leader = await self.leader(topic, partition, brokers)
            wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=2**20)
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=2**22,
                session_epoch=-1,
                topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
            )
            answer = await self.call(leader, request, 10)  # later versions may read from a deposed leader
            row = answer.responses[0].partitions[0] if answer is not None and answer.responses else None
            if row is None or row.error_code:
                self.doubt(topic, partition)
                await self.sleep(PAUSE_S)
                continue
            for header, batch in split_batches(memoryview(bytearray(row.records))):
                found += [(at, value) for at, value in _values(bytes(batch)) if at >= offset]
                offset = header.last_offset + 1
            if offset >= row.high_watermark:
                return found

    async def _coordinator(self, group: str, brokers: list[int]) -> int:
        request = FindCoordinatorRequest(key=group, key_type=0)
        while True:
            for broker in brokers:
                answer = await self.call(broker, request, 2)
                if answer is not None and not answer.error_code:
                    return int(answer.node_id)
            await self.sleep(PAUSE_S)

    async def commit(self, group: str, topic: str, partition: int, offset: int, brokers: list[int]) -> None:
        """Commit an offset as a simple consumer does, until it is taken."""
        row = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        topics = (OffsetCommitRequestTopic(topic, (row,)),)
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
        while True:
            answer = await self.call(await self._coordinator(group, brokers), request, 7)
            if answer is not None and not answer.topics[0].partitions[0].error_code:
                return
            await self.sleep(PAUSE_S)

    async def committed(self, group: str, topic: str, partition: int, brokers: list[int]) -> int:
        """The committed offset; -1: none."""
        topics = (OffsetFetchRequestTopic(topic, (partition,)),)
        while True:
            coordinator = await self._coordinator(group, brokers)
            answer = await self.call(coordinator, OffsetFetchRequest(group_id=group, topics=topics), 7)
            if answer is not None and not answer.error_code:
                return int(answer.topics[0].partitions[0].committed_offset)
            await self.sleep(PAUSE_S)


@lru_cache(maxsize=1_000)
def _values(batch: bytes) -> list[tuple[int, bytes]]:
    """(offset, value); readers see most batches again and again."""
    return [(record.offset, record.value or b"") for record in read_records(memoryview(bytearray(batch)))]


class _Wire:
    """A connection with calls under way, answered in order."""

    def __init__(self, loop: Loop, address: tuple[str, int]) -> None:
        self._loop = loop
        self._connection: Connection | None = None
        self._under_way: list[tuple[int, Any, int, Future[Any]]] = []
        self._serial = 0
        self.is_closed = False
        loop.connect(*address, self._opened, self.closed)

    def call(self, request: Any, version: int) -> Future[Any]:
        self._serial += 1
        call = (self._serial, request, version, Future[Any]())
        self._under_way.append(call)
        if self._connection is not None:
            self._send(call)
        self._loop.call_later(CALL_TIMEOUT_S, lambda: None if call[3].done else self._give_up())
        return call[3]

    def _opened(self, connection: Connection) -> _Wire:
        self._connection = connection
        for call in self._under_way:
            self._send(call)
        return self

    def _send(self, call: tuple[int, Any, int, Future[Any]]) -> None:
        serial, request, version, _ = call
        key = message_info(type(request)).api_key
        assert key is not None
        assert self._connection is not None
        self._connection.send([encode_request(APIS[key], version, serial, "client", request)])

    def frame(self, frame: memoryview) -> None:
        serial, request, version, future = self._under_way.pop(0)
        key = message_info(type(request)).api_key
        assert key is not None
        got, answer = decode_response(APIS[key], version, bytes(frame))
        assert got == serial, "answers out of order"
        future.resolve(answer)

    def _give_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self.closed("no answer")

    def closed(self, _reason: str) -> None:
        self.is_closed = True
        calls, self._under_way = self._under_way, []
        for call in calls:
            call[3].resolve(None)
