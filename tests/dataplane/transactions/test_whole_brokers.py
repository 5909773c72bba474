"""Transactions on a simulated cluster of whole brokers, as a tenant's client sees them, with coordinators that die."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.cluster.metadata import TRANSACTIONS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from dataplane.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    DescribeTransactionsRequest,
    EndTxnRequest,
)
from dataplane.records.batch import Record, build_batch, read_records, split_batches
from tests.simulation.cluster import SETTINGS, SimulatedCluster

NAME = "payments"
LATER = {None, 3, 5, 6, 14, 15, 16, 19, 20, 51, 7}


class Producer:
    """A tenant's, with one transactional id; asks until it is told something final."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.who = (-1, -1)

    def call(self, broker, request, version):
        if broker not in self.cluster.brokers:
            return None
        asked = self.cluster.client.call(broker, request, version)
        self.cluster.until(lambda: asked.done, 60)
        return asked.result()

    def until(self, attempt):
        """What an attempt tells that is not to be tried again: (code, answer)."""
        for _ in range(400):
            code, answer = attempt()
            if code not in LATER:
                return code, answer
            self.cluster.network.run_for(0.1)
        raise AssertionError(f"still {code}")

    def coordinator(self):
        def attempt():
            for broker in sorted(self.cluster.brokers):
                found = self.call(broker, FindCoordinatorRequest(NAME, 1), 3)
                if found is not None and not found.error_code:
                    return 0, found.node_id
            return None, None

        return self.until(attempt)[1]

    def ask(self, request, version, code_of=lambda answer: answer.error_code):
        def attempt():
            answer = self.call(self.coordinator(), request, version)
            return (None, None) if answer is None else (code_of(answer), answer)

        return self.until(attempt)

    def initialise(self):
        code, answer = self.ask(InitProducerIdRequest(NAME, 60_000), 4)
        assert code == 0
        self.who = answer.producer_id, answer.producer_epoch
        self.sequences = {}

    def add(self, *indexes):
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=self.who[0],
            v3_and_below_producer_epoch=self.who[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic("orders", indexes),),
        )

        def code(answer):
            rows = answer.results_by_topic_v3_and_below[0].results_by_partition
            return max(row.partition_error_code for row in rows)

        return self.ask(request, 3, code)[0]

    def end(self, *, committed=True):
        return self.ask(EndTxnRequest(NAME, *self.who, committed), 3)[0]

    def leader(self, index):
        broker = next(iter(self.cluster.brokers.values()))
        return broker.metadata.partitions("simulate.orders")[index].leader

    def produce(self, index, value):
        sequence = self.sequences.get(index, 0)

        def attempt():
            batch = build_batch(
                [Record(b"k", value)],
                now_ms=self.cluster.client.loop.clock.now_ms(),
                producer_id=self.who[0],
                producer_epoch=self.who[1],
                base_sequence=sequence,
                transactional=True,
            )
            data = TopicProduceData("orders", (PartitionProduceData(index, bytes(batch)),))
            answer = self.call(self.leader(index), ProduceRequest(NAME, -1, 5_000, (data,)), 9)
            return (None if answer is None else answer.responses[0].partition_responses[0].error_code), answer

        code, _ = self.until(attempt)
        self.sequences[index] = sequence + 1
        return code

    def read(self, index, isolation=1):
        """Values up to the last stable offset, without those of aborted transactions; that offset, the high watermark."""

        def attempt():
            wanted = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=2**20)
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=10,
                min_bytes=0,
                max_bytes=2**22,
                isolation_level=isolation,
                session_epoch=-1,
                topics=(FetchTopic("orders", partitions=(wanted,)),),
            )
            answer = self.call(self.leader(index), request, 10)
            row = answer.responses[0].partitions[0] if answer is not None and answer.responses else None
            return (None, None) if row is None else (row.error_code, row)

        code, row = self.until(attempt)
        assert code == 0
        aborted = [(a.producer_id, a.first_offset) for a in row.aborted_transactions or ()]
        values = []
        for header, batch in split_batches(memoryview(bytearray(row.records or b""))):
            if header.is_control:
                aborted = [a for a in aborted if a[0] != header.producer_id or a[1] > header.base_offset]
                continue
            if any(who == header.producer_id and first <= header.base_offset for who, first in aborted):
                continue
            values += [record.value for record in read_records(batch)]
        return values, row.last_stable_offset, row.high_watermark

    def state(self):
        answer = self.call(self.coordinator(), DescribeTransactionsRequest((NAME,)), 0)
        return answer.transaction_states[0].transaction_state


@pytest.fixture
def producer():
    cluster = SimulatedCluster(seed=7, settings=replace(SETTINGS, transaction_state_log_num_partitions=2))
    cluster.until(cluster.up)
    cluster.until(lambda: cluster.controller() > 0)
    made = Producer(cluster)
    created = made.call(cluster.controller(), CreateTopicsRequest((CreatableTopic("orders", 3, 3, (), ()),), 5_000), 5)
    assert not created.topics[0].error_code
    cluster.until(lambda: all(len(b.metadata.partitions("simulate.orders")) == 3 for b in cluster.brokers.values()))
    made.initialise()
    return made


def test_what_is_committed_is_read_and_what_is_aborted_is_not(producer):
    assert producer.add(0, 1) == 0
    assert producer.produce(0, b"a") == producer.produce(1, b"b") == 0
    assert producer.read(0)[0] == [], "it is open"
    assert producer.end() == 0
    producer.cluster.network.run_for(1)
    assert (producer.read(0)[0], producer.read(1)[0]) == ([b"a"], [b"b"])
    assert producer.add(0) == 0
    assert producer.produce(0, b"c") == 0
    assert producer.end(committed=False) == 0
    producer.cluster.network.run_for(1)
    values, stable, high = producer.read(0)
    assert (values, stable) == ([b"a"], high)
    assert producer.state() == "CompleteAbort"


@pytest.mark.parametrize("moment_s", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
def test_a_coordinator_that_dies_at_any_moment_of_an_end_leaves_nothing_open(producer, moment_s):
    cluster = producer.cluster
    assert producer.add(0, 1, 2) == 0
    for index in range(3):
        assert producer.produce(index, b"%d" % index) == 0
    coordinator = producer.coordinator()
    cluster.client.call(coordinator, EndTxnRequest(NAME, *producer.who, True), 3)
    cluster.network.run_for(moment_s)
    cluster.kill(coordinator)
    assert producer.end() == 0
    cluster.until(lambda: producer.state() == "CompleteCommit", 60)
    for index in range(3):
        values, stable, high = producer.read(index)
        assert (values, stable) == ([b"%d" % index], high)
    cluster.start(coordinator)
    assert producer.add(0) == 0


def test_a_second_producer_ends_what_the_first_has_open_and_fences_it(producer):
    first = Producer(producer.cluster)
    first.who, first.sequences = producer.who, producer.sequences
    assert first.add(0) == 0
    assert first.produce(0, b"a") == 0
    producer.initialise()
    assert producer.who == (first.who[0], first.who[1] + 2)
    assert first.end() == 90
    assert first.produce(0, b"b") == 47
    assert producer.add(0) == 0
    assert producer.produce(0, b"c") == 0
    assert producer.end() == 0
    producer.cluster.network.run_for(1)
    assert producer.read(0)[0] == [b"c"]


def test_nothing_is_appended_to_a_partition_that_is_not_in_the_transaction(producer):
    assert producer.add(0) == 0
    assert producer.produce(1, b"a") == 48
    assert producer.read(1)[1:] == (0, 0)


def test_a_producer_that_falls_silent_is_aborted_and_fenced(producer):
    assert producer.add(0) == 0
    assert producer.produce(0, b"a") == 0
    producer.cluster.network.run_for(65)
    values, stable, high = producer.read(0)
    assert (values, stable) == ([], high)
    assert producer.end() == 90
    assert producer.produce(0, b"b") == 47


def test_the_topic_of_transactions_is_kept_as_kafka_keeps_it(producer):
    broker = next(iter(producer.cluster.brokers.values()))
    assert len(broker.metadata.partitions(TRANSACTIONS_TOPIC)) == 2
    config = broker.topic_configs.get(TRANSACTIONS_TOPIC)
    assert (config["cleanup.policy"], config["min.insync.replicas"]) == ("compact", "2")
    index = partition_of(f"simulate.{NAME}", 2)
    assert broker.metadata.partitions(TRANSACTIONS_TOPIC)[index].leader == producer.coordinator()
