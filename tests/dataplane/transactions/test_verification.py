"""Whether a partition is in a producer's transaction: its coordinator is asked once, and producers are told what comes of it."""

from types import SimpleNamespace

import pytest

from dataplane.config import Settings
from dataplane.coordination.placement import partition_of
from dataplane.peers.outbound import PeerError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from dataplane.records.control import Marker
from dataplane.tasks import Future
from dataplane.transactions.verification import Verifier, told_to_producers
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster

A, B = (TOPIC, 0), (TOPIC, 1)


class World:
    """One broker that leads both partitions, and a coordinator that answers when the test says."""

    def __init__(self):
        self.cluster = ReplicatedCluster(size=1)
        for index in (0, 1):
            self.cluster.create((1,), index=index)
        self.cluster.run(0.1)
        self.settings = Settings()
        self.leaders = {n: SimpleNamespace(leader=n, has_leader=True) for n in range(4)}
        self.asked = []
        metadata = SimpleNamespace(partitions=lambda topic: self.leaders)
        broker = self.cluster[1]
        self.verifier = Verifier(lambda: self.settings, broker.loop, broker.replicas.registry, metadata, self._call)
        broker.replicas.appending._verifies = lambda: True

    def _call(self, broker_id, request, version, timeout_s):
        assert version == 4
        answer = Future()
        self.asked.append((broker_id, request, answer))
        return answer

    def verify(self, *partitions, name="one", producer=7, epoch=0):
        found = self.verifier.verify(name, producer, epoch, partitions)
        self.cluster.run(0.01)
        return found

    def answer(self, codes=None, *, error=ErrorCode.NONE, otherwise=ErrorCode.NONE):
        """The request that waits."""
        _, request, future = self.asked.pop(0)
        rows = tuple(
            AddPartitionsToTxnResult(
                row.transactional_id,
                tuple(
                    AddPartitionsToTxnTopicResult(
                        topic.name,
                        tuple(
                            AddPartitionsToTxnPartitionResult(n, (codes or {}).get((topic.name, n), otherwise))
                            for n in topic.partitions
                        ),
                    )
                    for topic in row.topics
                ),
            )
            for row in request.transactions
        )
        future.resolve(AddPartitionsToTxnResponse(error_code=error, results_by_transaction=rows))
        self.cluster.run(0.01)

    def write(self, index=0, sequence=0):
        done = self.cluster.produce(1, "v", index=index, producer=(7, 0, sequence), transactional=True)
        self.cluster.run(0.01)
        return done.code


@pytest.fixture
def world():
    return World()


def test_all_partitions_are_asked_about_at_once_and_may_be_written_to_then(world):
    found = world.verify(A, B)
    ((broker, request, _),) = world.asked
    assert broker == partition_of("one", 4)
    (row,) = request.transactions
    assert (row.transactional_id, row.producer_id, row.producer_epoch, row.verify_only) == ("one", 7, 0, True)
    assert [(topic.name, topic.partitions) for topic in row.topics] == [(TOPIC, (0, 1))]
    assert world.write() is ErrorCode.INVALID_TXN_STATE
    world.answer({B: ErrorCode.INVALID_TXN_STATE})
    assert found.result() == {A: ErrorCode.NONE, B: ErrorCode.INVALID_TXN_STATE}
    assert world.write() is ErrorCode.NONE
    assert world.write(index=1) is ErrorCode.INVALID_TXN_STATE
    assert world.verify(A) is None, "its transaction is open here"
    assert world.write(sequence=1) is ErrorCode.NONE
    world.cluster.mark(1, Marker.COMMIT, producer=7)
    world.cluster.run(0.01)
    assert world.verify(A) is not None


def test_an_answer_of_a_transaction_that_has_ended_counts_for_nothing(world):
    found = world.verify(A)
    world.cluster.mark(1, Marker.ABORT, producer=7)
    world.cluster.run(0.01)
    world.answer()
    assert found.result() == {A: ErrorCode.INVALID_TXN_STATE}
    assert world.write() is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("said", "found", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING,) * 3,
    ],
)
def test_what_producers_are_told(world, said, found, told):
    answer = world.verify(A)
    world.answer(otherwise=said)
    assert answer.result() == {A: found}
    assert told_to_producers(found) is told


def test_a_coordinator_that_does_not_answer_is_asked_again_by_the_producer(world):
    answer = world.verify(A)
    world.asked.pop()[2].fail(PeerError("gone"))
    world.cluster.run(0.01)
    assert answer.result() == {A: ErrorCode.NETWORK_EXCEPTION}
    again = world.verify(A)
    world.answer(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert again.result() == {A: ErrorCode.INVALID_TXN_STATE}
    world.leaders.clear()
    assert world.verify(A).result() == {A: ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_what_comes_up_meanwhile_travels_together(world):
    same = [name for name in map(str, range(100)) if partition_of(name, 4) == partition_of("one", 4)][:3]
    first = world.verify(A)
    others = [world.verify(A, name=name, producer=100 + n) for n, name in enumerate(same)]
    also = world.verify(B, name=same[0], producer=100)
    fenced = world.verify(A, name=same[1], producer=101, epoch=1)
    assert len(world.asked) == 1
    world.answer()
    assert first.result() == {A: ErrorCode.NONE}
    ((_, request, _),) = world.asked
    assert [row.transactional_id for row in request.transactions] == same
    assert [topic.partitions for topic in request.transactions[0].topics] == [(0, 1)]
    assert others[1].result() == {A: ErrorCode.INVALID_PRODUCER_EPOCH}, "one of a newer epoch has come"
    world.answer()
    assert [one.result() for one in (others[0], also, fenced, others[2])] == [
        {A: ErrorCode.NONE},
        {B: ErrorCode.NONE},
        {A: ErrorCode.NONE},
        {A: ErrorCode.NONE},
    ]


def test_where_it_is_switched_off_nobody_is_asked(world):
    world.settings = Settings(transaction_partition_verification_enable=False)
    assert world.verify(A) is None
    assert not world.asked


def test_a_partition_that_is_led_elsewhere_is_not_asked_about(world):
    found = world.verify(("nowhere", 0))
    assert found.result() == {("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not world.asked
