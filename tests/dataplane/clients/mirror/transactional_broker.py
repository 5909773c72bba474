"""A small broker with transactions: one coordinator, real batches and markers in its logs, aborted ones told to who fetches.

with TransactionalBroker({"t": 2}) as broker:
    broker.committed("t", 0)                  # values that a reader at read_committed gets
    broker.time_out("id")                     # the coordinator ends a transaction that took too long
    broker.unwritable["t", 1] = code          # a partition that cannot become part of one
    broker.dies_at = 3                        # the third write is not done, and nothing is answered any more; None: again
    broker.is_mute = True                     # the last one of these is done all the same
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field

from dataplane.clients.messages import read_entries
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import discovery, fetch, produce, transactions
from dataplane.records.batch import read_header
from dataplane.records.control import Marker, build_marker
from tests.dataplane.clients.small_broker import SmallBroker

WRITES = (ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.PRODUCE, ApiKey.END_TXN)


@dataclass
class Producer:
    """A transactional id."""

    producer_id: int
    epoch: int = -1
    places: dict = field(
        default_factory=dict
    )  # of the open transaction, with the first offset, None: nothing was written yet
    written: dict = field(default_factory=dict)  # by place: the next sequence, the last one and the offset that it got
    last_end: bool | None = None


class TransactionalBroker(SmallBroker):
    """A context manager."""

    def __init__(self, topics):
        super().__init__(topics)
        self.batches: dict[tuple[str, int], list[bytes]] = {place: [] for place in self.logs}
        self.aborted: dict[tuple[str, int], list[tuple[int, int, int]]] = {place: [] for place in self.logs}
        self.producers: dict[str, Producer] = {}
        self.unwritable: dict[tuple[str, int], int] = {}
        self.dies_at: int | None = None
        self.is_mute = False
        self.writes = 0
        self._ids = itertools.count(100)
        self._turn = threading.Lock()

    # --- what tests look at -------------------------------------------------------------------------------------------

    def end(self, topic, partition):
        batches = self.batches[topic, partition]
        return read_header(batches[-1]).next_offset if batches else 0

    def stable(self, place):
        """The last stable offset."""
        firsts = [one.places[place] for one in self.producers.values() if one.places.get(place) is not None]
        return min([self.end(*place), *firsts])

    def read(self, topic, partition):
        """Messages that a reader at read_committed gets, with their offsets."""
        place = topic, partition
        aborted = [fetch.AbortedTransaction(*one[:2]) for one in self.aborted[place]]
        found = read_entries(b"".join(self.batches[place]), 0, aborted).messages
        return [one for one in found if one.offset < self.stable(place)]

    def committed(self, topic, partition):
        return [one.message.value.decode() for one in self.read(topic, partition)]

    def time_out(self, transactional_id):
        found = self.producers[transactional_id]
        self._ended(found, Marker.ABORT)
        found.epoch += 1

    # --- answers ------------------------------------------------------------------------------------------------------

    def make(self, topic, partitions):
        for partition in range(self.topics.get(topic, 0), partitions):
            self.batches[topic, partition], self.aborted[topic, partition] = [], []
        super().make(topic, partitions)

    def _answer(self, key, version, request):
        with self._turn:
            return self._answered(key, version, request)

    def _answered(self, key, version, request):
        if key not in WRITES:
            return super()._answer(key, version, request)
        self.writes += 1
        if self.dies_at is not None and self.writes >= self.dies_at:
            if self.is_mute and self.writes == self.dies_at:
                super()._answer(key, version, request)
            raise ConnectionAbortedError
        return super()._answer(key, version, request)

    def _more(self, key, request, version):
        if key == ApiKey.FIND_COORDINATOR:
            assert request.key_type == 1
            host, port = self.address
            return discovery.FindCoordinatorResponse(node_id=1, host=host, port=port)
        if key == ApiKey.INIT_PRODUCER_ID:
            return self._init(request)
        if key == ApiKey.ADD_PARTITIONS_TO_TXN:
            return self._add(request)
        if key == ApiKey.END_TXN:
            return self._end_txn(request)
        return super()._more(key, request, version)

    def _init(self, request):
        found = self.producers.get(request.transactional_id)
        if found is None:
            found = self.producers[request.transactional_id] = Producer(next(self._ids))
        elif request.producer_id >= 0 and (request.producer_id, request.producer_epoch) != (
            found.producer_id,
            found.epoch,
        ):
            return produce.InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED, producer_epoch=-1)
        if found.places:  # as Apache Kafka: aborted with an epoch that nobody is told, and then the client asks again
            self._ended(found, Marker.ABORT)
            found.epoch += 1
            return produce.InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=-1)
        found.epoch += 1
        found.written.clear()
        return produce.InitProducerIdResponse(producer_id=found.producer_id, producer_epoch=found.epoch)

    def _add(self, request):
        found = self.producers[request.v3_and_below_transactional_id]
        places = [(topic.name, one) for topic in request.v3_and_below_topics for one in topic.partitions]
        is_latest = request.v3_and_below_producer_epoch == found.epoch
        bad = {place: self.unwritable[place] for place in places if place in self.unwritable}
        others = ErrorCode.OPERATION_NOT_ATTEMPTED if bad else ErrorCode.NONE
        rows: dict[str, list] = {}
        for topic, partition in places:
            code = bad.get((topic, partition), others) if is_latest else ErrorCode.PRODUCER_FENCED
            rows.setdefault(topic, []).append(transactions.AddPartitionsToTxnPartitionResult(partition, code))
            if code == ErrorCode.NONE:
                found.places.setdefault((topic, partition), None)
        return transactions.AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=tuple(
                transactions.AddPartitionsToTxnTopicResult(topic, tuple(results)) for topic, results in rows.items()
            )
        )

    def _end_txn(self, request):
        found = self.producers[request.transactional_id]
        if request.producer_epoch != found.epoch:
            return transactions.EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if not found.places:
            is_again = found.last_end == request.committed
            return transactions.EndTxnResponse(error_code=ErrorCode.NONE if is_again else ErrorCode.INVALID_TXN_STATE)
        self._ended(found, Marker.COMMIT if request.committed else Marker.ABORT)
        return transactions.EndTxnResponse(error_code=ErrorCode.NONE)

    def _ended(self, producer, marker):
        for place, first in producer.places.items():
            batch = build_marker(
                marker, producer_id=producer.producer_id, producer_epoch=producer.epoch, coordinator_epoch=0, now_ms=0
            )
            last = self._append(place, batch)
            if marker is Marker.ABORT and first is not None:
                self.aborted[place].append((producer.producer_id, first, last))
        producer.last_end = marker is Marker.COMMIT
        producer.places.clear()

    def _append(self, place, batch):
        base = self.end(*place)
        self.batches[place].append(base.to_bytes(8) + bytes(batch)[8:])
        return base

    def _produce(self, request, version):
        code, rows = self._code(ApiKey.PRODUCE), []
        for topic in request.topic_data:
            answers = []
            for one in topic.partition_data:
                refusal, base = (code, -1) if code else self._written((topic.name, one.index), bytes(one.records))
                answers.append(produce.PartitionProduceResponse(one.index, refusal, base))
            rows.append(produce.TopicProduceResponse(topic.name, tuple(answers)))
        return produce.ProduceResponse(tuple(rows))

    def _written(self, place, batch):
        header = read_header(batch)
        if len(batch) > self.largest_batch:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        if header.producer_id < 0:
            return ErrorCode.NONE, self._append(place, batch)
        found = next(one for one in self.producers.values() if one.producer_id == header.producer_id)
        expected, last, base = found.written.get(place, (0, -1, -1))
        assert header.is_transactional
        if header.producer_epoch != found.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if place not in found.places:
            return ErrorCode.INVALID_TXN_STATE, -1
        if header.base_sequence == last:
            return ErrorCode.NONE, base
        if header.base_sequence != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        base = self._append(place, batch)
        found.written[place] = (header.base_sequence + header.count, header.base_sequence, base)
        if found.places[place] is None:
            found.places[place] = base
        return ErrorCode.NONE, base

    def _fetch(self, request, version):
        rows = []
        for topic in request.topics:
            answers = []
            for one in topic.partitions:
                place = topic.topic, one.partition
                end, stable = self.end(*place), self.stable(place)
                code = ErrorCode.NONE if 0 <= one.fetch_offset <= end else ErrorCode.OFFSET_OUT_OF_RANGE
                until = stable if request.isolation_level else end
                headers = [(read_header(batch), batch) for batch in self.batches[place]]
                data = b"".join(
                    batch for h, batch in headers if h.next_offset > one.fetch_offset and h.base_offset < until
                )
                aborted = tuple(
                    fetch.AbortedTransaction(producer_id, first)
                    for producer_id, first, last in self.aborted[place]
                    if last >= one.fetch_offset
                )
                answers.append(
                    fetch.FetchResponsePartitionData(
                        one.partition,
                        code,
                        end,
                        stable,
                        aborted_transactions=aborted if request.isolation_level else None,
                        records=b"" if code else data,
                    )
                )
            rows.append(fetch.FetchableTopicResponse(topic.topic, partitions=tuple(answers)))
        return fetch.FetchResponse(responses=tuple(rows))
