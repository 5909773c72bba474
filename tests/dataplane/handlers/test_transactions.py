"""Transactions from a client's first request to its readers: what producers write, and who sees it when."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from dataplane.protocol.messages.produce import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from dataplane.records.batch import Record, build_batch, read_records, split_batches
from tests.dataplane.handlers.asking import Tenant
from tests.simulation.cluster import SimulatedCluster

NAME = "payments"


class Producer:
    """A transactional producer's requests, one after the other."""

    def __init__(self, tenant):
        self.tenant = tenant
        self.cluster = tenant.cluster
        self.sequence = 0
        self.coordinator = self._find()
        self.begin_anew()

    def _find(self):
        while True:
            answer = self._ask_one(1, FindCoordinatorRequest(key=NAME, key_type=1), 2)
            if not answer.error_code:
                return answer.node_id
            self.cluster.network.run_for(0.2)

    def _ask_one(self, broker, request, version):
        answer = self.cluster.client.call(broker, request, version)
        self.cluster.until(lambda: answer.done, 60)
        return answer.result()

    def ask(self, request, version, code=lambda answer: answer.error_code):
        """Until the coordinator has loaded what it knows, and markers are written."""
        while True:
            answer = self._ask_one(self.coordinator, request, version)
            if code(answer) not in (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.CONCURRENT_TRANSACTIONS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ):
                return answer
            self.cluster.network.run_for(0.1)

    def begin_anew(self):
        answer = self.ask(InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=60_000), 3)
        assert answer.error_code == 0
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence = 0

    def add(self, topic="orders"):
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(topic, (0,)),),
        )

        def code(answer):
            return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

        return code(self.ask(request, 3, code))

    def batch(self, value, *, transactional=True):
        self.sequence += 1
        return build_batch(
            [Record(b"k", value)],
            now_ms=1,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence - 1,
            transactional=transactional,
        )

    def write(self, value, *, named=NAME, transactional=True, version=9):
        data = PartitionProduceData(0, bytes(self.batch(value, transactional=transactional)))
        request = ProduceRequest(
            transactional_id=named, acks=-1, timeout_ms=5_000, topic_data=(TopicProduceData("orders", (data,)),)
        )
        answer = self.tenant.ask(request, version).responses[0].partition_responses[0]
        if answer.error_code:
            self.sequence -= 1
        return answer.error_code

    def end_and_go_on(self, *, committed):
        """With the epoch of the answer."""
        answer = self.ask(EndTxnRequest(NAME, self.id, self.epoch, committed), 5)
        if not answer.error_code:
            self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return answer.error_code

    def end(self, *, committed):
        request = EndTxnRequest(NAME, self.id, self.epoch, committed)
        return self.ask(request, 3).error_code


@pytest.fixture(scope="module")
def tenant():
    cluster = SimulatedCluster(seed=7)
    cluster.until(cluster.up)
    cluster.create_topic("orders", 1)
    return Tenant(cluster)


@pytest.fixture
def producer(tenant):
    return Producer(tenant)


def read(tenant, level=1, offset=0):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
    request = FetchRequest(
        max_wait_ms=50, min_bytes=1, isolation_level=level, topics=(FetchTopic(topic="orders", partitions=(wanted,)),)
    )
    return tenant.ask(request, 11).responses[0].partitions[0]


def values(data):
    return [
        record.value
        for header, batch in split_batches(bytes(data.records or b""))
        if not header.is_control
        for record in read_records(bytes(batch))
    ]


def latest(tenant, level):
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=level, topics=(ListOffsetsTopic(name="orders", partitions=(wanted,)),)
    )
    return tenant.ask(request, 5).topics[0].partitions[0].offset


def described(tenant, producer_id):
    request = DescribeProducersRequest((DescribeProducersRequestTopicRequest("orders", (0,)),))
    rows = tenant.ask(request, 0).topics[0].partitions[0].active_producers
    return next(row for row in rows if row.producer_id == producer_id)


def test_what_is_committed_is_seen_then(producer):
    tenant, begin = producer.tenant, latest(producer.tenant, 0)
    assert producer.add() == 0
    assert producer.write(b"one") == 0
    assert producer.write(b"two") == 0
    assert (latest(tenant, 0), latest(tenant, 1)) == (begin + 2, begin)
    assert values(read(tenant, 0, begin)) == [b"one", b"two"]
    assert values(read(tenant, 1, begin)) == []
    assert described(tenant, producer.id).current_txn_start_offset == begin
    assert producer.end(committed=True) == 0
    tenant.cluster.network.run_for(1)
    assert (latest(tenant, 0), latest(tenant, 1)) == (begin + 3, begin + 3)
    data = read(tenant, 1, begin)
    assert (values(data), data.aborted_transactions) == ([b"one", b"two"], ())
    row = described(tenant, producer.id)
    assert (row.current_txn_start_offset, row.coordinator_epoch >= 0, row.last_sequence) == (-1, True, 1)


def test_what_is_aborted_is_listed(producer):
    tenant, begin = producer.tenant, latest(producer.tenant, 0)
    producer.add()
    assert producer.write(b"never") == 0
    assert producer.end(committed=False) == 0
    tenant.cluster.network.run_for(1)
    data = read(tenant, 1, begin)
    assert [(one.producer_id, one.first_offset) for one in data.aborted_transactions] == [(producer.id, begin)]


def test_a_partition_that_is_not_in_the_transaction_takes_nothing(producer):
    begin = latest(producer.tenant, 0)
    assert producer.write(b"not added") == ErrorCode.INVALID_TXN_STATE
    assert latest(producer.tenant, 0) == begin
    assert producer.add() == 0
    assert producer.write(b"added") == 0
    assert producer.end(committed=True) == 0
    producer.tenant.cluster.network.run_for(1)
    assert producer.write(b"too late") == ErrorCode.INVALID_TXN_STATE


def test_a_producer_of_an_earlier_epoch_is_fenced(producer):
    producer.add()
    assert producer.write(b"by the first") == 0
    first = producer.epoch, producer.sequence
    producer.begin_anew()
    assert producer.epoch > first[0]
    now, (producer.epoch, producer.sequence) = producer.epoch, first
    assert producer.write(b"by the first, again") == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.epoch = now
    assert latest(producer.tenant, 1) == latest(producer.tenant, 0), "its transaction was aborted"


def test_batches_of_transactions_need_an_id_and_others_need_none(producer):
    assert producer.write(b"v", named=None) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert producer.write(b"v", transactional=False) == 0


def test_all_batches_are_of_one_producer(producer):
    batches = [
        producer.batch(b"v"),
        build_batch(
            [Record(b"k", b"v")], now_ms=1, producer_id=99, producer_epoch=0, base_sequence=0, transactional=True
        ),
    ]
    rows = tuple(PartitionProduceData(number, bytes(batch)) for number, batch in enumerate(batches))
    request = ProduceRequest(
        transactional_id=NAME, acks=-1, timeout_ms=5_000, topic_data=(TopicProduceData("orders", rows),)
    )
    answer = producer.tenant.ask(request, 9).responses[0].partition_responses
    assert [row.error_code for row in answer] == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


def test_a_producer_that_adds_no_partitions_writes_in_transactions_each_of_its_own_epoch(tenant, producer):
    end = latest(tenant, 0)
    first = producer.epoch
    assert producer.write(b"one", version=11) == ErrorCode.TRANSACTION_ABORTABLE, "nobody has added the partition"
    assert producer.write(b"one", version=12) == 0
    assert producer.write(b"two", version=12) == 0
    assert values(read(tenant, offset=end)) == []
    assert producer.end_and_go_on(committed=True) == 0
    assert producer.write(b"three", version=12) == 0, "while markers are on their way"
    assert producer.end_and_go_on(committed=False) == 0
    assert producer.write(b"four", version=12) == 0
    assert producer.end_and_go_on(committed=True) == 0
    tenant.cluster.network.run_for(1)
    data = read(tenant, offset=end)
    assert values(data) == [b"one", b"two", b"three", b"four"]
    assert [aborted.producer_id for aborted in data.aborted_transactions] == [producer.id], "one of the three"
    assert producer.epoch == first + 3


def test_a_batch_that_overtakes_the_first_of_its_producer_is_refused_until_that_has_come(tenant, monkeypatch):
    """The first may have been told that its transaction cannot begin yet."""
    monkeypatch.setitem(globals(), "NAME", "never-seen")
    tenant.cluster.network.run_for(1)  # markers of others may be on their way
    begin = latest(tenant, 0)
    producer = Producer(tenant)
    producer.sequence = 1
    named = {"named": "never-seen", "version": 12}
    assert producer.write(b"two", **named) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert latest(tenant, 0) == begin
    producer.sequence = 0
    assert [producer.write(value, **named) for value in (b"one", b"two")] == [0, 0]
    assert producer.end_and_go_on(committed=True) == 0
    tenant.cluster.network.run_for(1)
    assert values(read(tenant, offset=begin)) == [b"one", b"two"]


def test_what_is_late_cannot_reach_into_the_next_transaction(tenant, producer):
    assert producer.write(b"one", version=12) == 0
    late = producer.epoch, producer.sequence
    assert producer.end_and_go_on(committed=True) == 0
    producer.write(b"two", version=12)
    now = producer.epoch, producer.sequence
    producer.epoch, producer.sequence = late
    assert producer.write(b"late", version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end_and_go_on(committed=True) == ErrorCode.PRODUCER_FENCED
    producer.epoch, producer.sequence = now
    assert producer.end_and_go_on(committed=True) == 0
