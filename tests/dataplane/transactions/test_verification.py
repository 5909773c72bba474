"""Whether a partition is in a producer's transaction: its coordinator is asked once, and producers are told what comes of it."""

from types import SimpleNamespace

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC
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
from dataplane.transactions.verification import (
    ADDED_WITHIN_S,
    PARTITIONS_PER_REQUEST,
    PAUSE_S,
    Verifier,
    told_to_producers,
)
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

    def add(self, *partitions, name="one", producer=7, epoch=0):
        found = self.verifier.add(name, producer, epoch, partitions)
        self.cluster.run(0.001)
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
        self.cluster.run(0.001)

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
    ("said", "found", "told_10", "told_11", "told_12"),
    [
        (ErrorCode.PRODUCER_FENCED, *(ErrorCode.INVALID_PRODUCER_EPOCH,) * 4),
        (
            *(ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
            *(ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        ),
        (
            *(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
            *(ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS),
        ),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR, *(ErrorCode.NOT_ENOUGH_REPLICAS,) * 3),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING,) * 5,
        (ErrorCode.POLICY_VIOLATION,) * 5,
    ],
)
def test_what_producers_are_told_by_the_version_of_produce(world, said, found, told_10, told_11, told_12):
    answer = world.verify(A)
    world.answer(otherwise=said)
    assert answer.result() == {A: found}
    assert [told_to_producers(found, version) for version in (3, 10, 11, 12)] == [told_10, told_10, told_11, told_12]


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


def test_a_new_producer_id_is_not_fenced_by_one_whose_epochs_are_exhausted(world):
    world.leaders = {0: world.leaders[0]}
    world.verify(B, name="busy")
    old = world.verify(A, producer=7, epoch=32_766)
    new = world.verify(A, producer=8, epoch=0)
    assert told_to_producers(new.result()[A], 12) is ErrorCode.NOT_ENOUGH_REPLICAS, "it comes again"
    world.answer()
    world.answer(otherwise=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    assert old.result() == {A: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    again = world.verify(A, producer=8, epoch=0)
    world.answer()
    assert again.result() == {A: ErrorCode.NONE}


def test_a_thousand_producers_are_asked_about_a_few_at_a_time(world):
    world.leaders = {0: world.leaders[0]}
    found = [world.verify(A, B, name=str(n), producer=1_000 + n) for n in range(1_000)]
    sizes = []
    while world.asked:
        sizes.append(len(world.asked[0][1].transactions))
        world.answer()
    assert sizes[0] == 1
    assert max(sizes) == PARTITIONS_PER_REQUEST // 2
    assert sum(sizes) == 1_000
    assert all(one.result() == {A: ErrorCode.NONE, B: ErrorCode.NONE} for one in found)


def test_a_transaction_that_is_wider_than_a_request_is_asked_about_in_one(world, monkeypatch):
    monkeypatch.setattr("dataplane.transactions.verification.PARTITIONS_PER_REQUEST", 1)
    found = world.verify(A, B)
    world.answer()
    assert found.result() == {A: ErrorCode.NONE, B: ErrorCode.NONE}


@pytest.mark.parametrize("epoch", [0, 1])
def test_who_names_the_producer_of_another_transactional_id_spoils_nothing(world, epoch):
    world.leaders = {0: world.leaders[0]}
    found, stranger = world.verify(A), world.verify(A, name="stranger", epoch=epoch)
    world.answer()
    world.answer(otherwise=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    assert stranger.result() == {A: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert found.result() == {A: ErrorCode.NONE}
    assert world.verify(A, name="stranger", epoch=epoch) is not None, "what another has verified is not for everybody"
    assert world.write() is ErrorCode.NONE


def test_a_refusal_of_one_transactional_id_does_not_reach_another_that_still_waits(world):
    elsewhere = next(name for name in map(str, range(100)) if partition_of(name, 4) != partition_of("one", 4))
    waiting = world.verify(A)
    world.verify(A, name=elsewhere)
    world.asked.reverse()
    world.answer(otherwise=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    world.answer()
    assert waiting.result() == {A: ErrorCode.NONE}
    assert world.write() is ErrorCode.NONE


def test_where_it_is_switched_off_nobody_is_asked(world):
    world.settings = Settings(transaction_partition_verification_enable=False)
    assert world.verify(A) is None
    assert not world.asked


def test_a_partition_that_instances_share_is_asked_about_whatever_is_set(world, monkeypatch):
    registry = world.cluster[1].replicas.registry
    leader = registry.leader
    monkeypatch.setattr(type(registry), "leader", lambda _, topic, index: leader(TOPIC, index))
    world.settings = Settings(transaction_partition_verification_enable=False)
    found = world.verify((OFFSETS_TOPIC, 0))
    world.answer(otherwise=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    assert found.result() == {(OFFSETS_TOPIC, 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_a_partition_that_is_led_elsewhere_is_not_asked_about(world):
    found = world.verify(("nowhere", 0))
    assert found.result() == {("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not world.asked


# --- a producer that does not add partitions itself -------------------------------------------------------------------


def test_partitions_are_added_by_the_question_once(world):
    found = world.add(A, B)
    ((_, request, _),) = world.asked
    assert [row.verify_only for row in request.transactions] == [False]
    world.answer()
    assert found.result() == {A: ErrorCode.NONE, B: ErrorCode.NONE}
    assert world.write() is ErrorCode.NONE
    assert world.add(A, B) is None, "one is open here, and of the other the coordinator has said so"


def test_they_are_added_where_verification_is_switched_off(world):
    world.settings = Settings(transaction_partition_verification_enable=False)
    assert world.add(A) is not None
    assert len(world.asked) == 1


def test_while_the_transaction_before_is_being_ended_the_coordinator_is_asked_again(world):
    found = world.add(A)
    for _ in range(3):
        world.answer(otherwise=ErrorCode.CONCURRENT_TRANSACTIONS)
        assert not found.done
        assert not world.asked
        world.cluster.run(PAUSE_S)
    world.answer()
    assert found.result() == {A: ErrorCode.NONE}
    assert world.write() is ErrorCode.NONE


def test_a_marker_of_the_transaction_before_that_comes_meanwhile_costs_another_question(world):
    found = world.add(A, epoch=1)
    world.cluster.mark(1, Marker.COMMIT, producer=7, epoch=1)
    world.cluster.run(0.001)
    world.answer()
    assert not found.done
    world.cluster.run(PAUSE_S)
    world.answer()
    assert found.result() == {A: ErrorCode.NONE}


def test_after_a_moment_it_is_left_to_the_producer(world):
    found = world.add(A)
    for _ in range(round(ADDED_WITHIN_S / PAUSE_S) + 1):
        if world.asked:
            world.answer(otherwise=ErrorCode.CONCURRENT_TRANSACTIONS)
        world.cluster.run(PAUSE_S)
    assert found.result() == {A: ErrorCode.CONCURRENT_TRANSACTIONS}
    assert not world.asked


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.POLICY_VIOLATION])
def test_any_other_answer_is_told_at_once(world, code):
    found = world.add(A)
    world.answer(otherwise=code)
    told = ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code
    assert found.result() == {A: told}


def test_who_only_asks_and_who_adds_do_not_travel_as_one(world):
    world.leaders = {0: world.leaders[0]}
    world.verify(B, name="busy", producer=8)
    asks, adds = world.verify(A), world.add(B)
    assert told_to_producers(adds.result()[B], 12) is ErrorCode.NOT_ENOUGH_REPLICAS, "it comes again"
    world.answer()
    world.answer()
    assert asks.result() == {A: ErrorCode.NONE}
