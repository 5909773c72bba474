"""An idempotent producer as the Java client is one: several batches in flight, one request for all partitions of a leader.

What is not acknowledged is sent again, in order and under its numbers, once everything that was under way for its
partition has come back. What it is answered must be one of the errors that a producer lives with: anything else is found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from tests.simulation.client import ALL_IN_SYNC, PAUSE_S

if TYPE_CHECKING:
    from dataplane.tasks import Future
    from tests.simulation.cluster import SimulatedCluster

MAX_IN_FLIGHT = 5
"""From the oldest batch that is not acknowledged to the newest, those between that are acknowledged among them: a broker knows
the last five of a producer, and a retry of one before them has failed for good, with Apache Kafka as with us."""
PRODUCE_VERSION = 9
TIMEOUT_MS = 3_000
LIVES_WITH = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,  # behind one that was refused; or of a leader that does not know it is deposed
    ErrorCode.KAFKA_STORAGE_ERROR,
)


@dataclass(slots=True)
class Batch:
    """Some records of one producer in one partition."""

    number: int
    records: list[tuple[bytes, bytes]]  # key, value
    sequence: int
    is_sent: bool = False


@dataclass(slots=True)
class _Place:
    """What is open in one partition."""

    index: int
    open: deque[Batch] = field(default_factory=deque)
    under_way: int = 0
    again_at: float | None = None  # something was refused: all that is open is sent again, not sooner than this
    number: int = 0
    sequence: int = 0


class Producer:
    """Writes to all partitions of a topic. `records(partition, number)`: what batch `number` holds.

    `acknowledged(partition, base offset, batch, seconds)` hears of each batch, and how long it took since it was first sent.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        topic: str,
        partitions: int,
        records: Callable[[int, int], list[tuple[bytes, bytes]]],
        acknowledged: Callable[[int, int, Batch, float], None],
        *,
        in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        self._cluster, self._topic = cluster, topic
        self._client, self._ids = cluster.new_client(), cluster.ids
        self._records, self._acknowledged = records, acknowledged
        self._in_flight = in_flight
        self._places = [_Place(index) for index in range(partitions)]
        self._first_sent: dict[tuple[int, int], float] = {}
        self._failure: Exception | None = None
        self.sent: dict[int, int] = dict.fromkeys(range(partitions), 0)  # by partition, how many batches were made

    async def run(self, rest: Callable[[], Awaitable[None]], is_over: Callable[[], bool]) -> None:
        """Until it is over, and then until everything is acknowledged."""
        producer_id = await self._client.producer_id(self._ids)
        while True:
            if self._failure is not None:
                raise self._failure
            if not is_over():
                self._make()
            elif not any(place.open for place in self._places):
                return
            if not await self._send(producer_id):
                await (self._client.sleep(PAUSE_S) if is_over() else rest())

    def _make(self) -> None:
        for place in self._places:
            oldest = place.open[0].number if place.open else place.number
            if place.number - oldest < self._in_flight and place.again_at is None:
                records = self._records(place.index, place.number)
                place.open.append(Batch(place.number, records, place.sequence))
                place.number += 1
                place.sequence += len(records)
                self.sent[place.index] = place.number

    async def _send(self, producer_id: int) -> bool:
        """The next batch of each partition, those of a leader in one request. Whether there are more to be sent at once."""
        rows: dict[int, list[tuple[_Place, Batch]]] = {}
        for place in self._places:
            self._again(place)
            batch = next((batch for batch in place.open if not batch.is_sent), None)
            if batch is None or place.again_at is not None:
                continue
            leader = await self._client.leader(self._topic, place.index, self._ids)
            if leader >= 0:
                rows.setdefault(leader, []).append((place, batch))
        for leader, chosen in rows.items():
            self._send_to(leader, chosen, producer_id)
        return bool(rows) and any(not b.is_sent for p in self._places if p.again_at is None for b in p.open)

    def _again(self, place: _Place) -> None:
        if place.again_at is not None and not place.under_way and place.again_at <= self._now():
            place.again_at = None
            self._client.doubt(self._topic, place.index)
            for batch in place.open:
                batch.is_sent = False

    def _send_to(self, leader: int, chosen: list[tuple[_Place, Batch]], producer_id: int) -> None:
        data = []
        for place, batch in chosen:
            batch.is_sent = True
            place.under_way += 1
            self._first_sent.setdefault((place.index, batch.number), self._now())
            made = build_batch(
                [Record(key, value) for key, value in batch.records],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=batch.sequence,
                now_ms=self._client.loop.clock.now_ms(),
            )
            data.append(PartitionProduceData(place.index, bytes(made)))
        request = ProduceRequest(
            acks=ALL_IN_SYNC, timeout_ms=TIMEOUT_MS, topic_data=(TopicProduceData(self._topic, tuple(data)),)
        )
        self._client.call(leader, request, PRODUCE_VERSION).then(partial(self._answered, chosen))

    def _answered(self, chosen: list[tuple[_Place, Batch]], future: Future[Any]) -> None:
        answer = future.result()
        rows = {} if answer is None else {row.index: row for row in answer.responses[0].partition_responses}
        for place, batch in chosen:
            place.under_way -= 1
            row = rows.get(place.index)
            if row is None or row.error_code:
                if row is not None and row.error_code not in LIVES_WITH:
                    self._failure = AssertionError(
                        f"a producer of {self._topic}-{place.index} was answered {ErrorCode(row.error_code).name}"
                    )
                place.again_at = self._now() + PAUSE_S
            else:
                place.open.remove(batch)
                took_s = self._now() - self._first_sent.pop((place.index, batch.number))
                self._acknowledged(place.index, row.base_offset, batch, took_s)

    def _now(self) -> float:
        return self._client.loop.clock.monotonic()
