"""An exception that nobody expects: who is met by it has an error, or nothing; all others of the turn are served.

What lies in the receive memory of a turn must not be written in a later one, whatever happens in between.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch
from dataplane.replication.following.fetcher import Fetcher
from dataplane.replication.leadership import apply_leader_and_isr
from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.log import appending, cutting, producing
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster

PARTITIONS = 3


def started(size: int = 1) -> ReplicatedCluster:
    cluster = ReplicatedCluster(size)
    for index in range(PARTITIONS):
        cluster.create(tuple(range(1, size + 1)), index=index)
    cluster.run(0.5)
    return cluster


def bug(*_: object) -> None:
    raise ValueError("a bug")


def only_of(index: int, method):
    """What is done with a log, which fails unexpectedly for one partition; what was staged before is staged."""

    def meets(log, *rest):
        if log.partition == index:
            bug()
        return method(log, *rest)

    return meets


def append_and(cluster: ReplicatedCluster, index: int, done, *, acks: int = 1) -> None:
    """A batch in memory that is overwritten when the turn ends, and what is called then."""
    broker = cluster[1]

    def handle() -> None:
        partition = broker.replicas.registry.leader(TOPIC, index)
        batch = broker.loop.lend(bytes(build_batch([Record(None, b"lent")], now_ms=1)))
        appended = broker.replicas.appending.append(partition, batch, acks)
        if appended.error is ErrorCode.NONE:
            broker.replicas.appending.after_commit(partition, appended.last_offset, acks, 1.0, done)
        else:
            done(appended.error)

    broker.loop.post(handle)


def serves_on(cluster: ReplicatedCluster, index: int, values: list[bytes]) -> None:
    again = cluster.produce(1, "again", index=index)
    cluster.run(0.1)
    assert again.code == ErrorCode.NONE
    assert cluster[1].values(index) == [*values, b"again"]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_callback_that_fails_keeps_nobody_elses_answer(acks):
    cluster, codes = started(), []
    append_and(cluster, 0, bug, acks=acks)
    append_and(cluster, 0, codes.append, acks=acks)
    append_and(cluster, 1, codes.append, acks=acks)
    cluster.run(0.1)
    assert codes == [ErrorCode.NONE] * 2
    serves_on(cluster, 0, [b"lent"] * 2)
    serves_on(cluster, 1, [b"lent"])


def test_a_callback_that_fails_once_the_followers_have_it_keeps_nobody_elses_answer():
    cluster, codes = started(2), []
    append_and(cluster, 0, bug, acks=-1)
    append_and(cluster, 0, codes.append, acks=-1)
    append_and(cluster, 1, codes.append, acks=-1)
    cluster.run(0.1)
    assert codes == [ErrorCode.NONE] * 2


@pytest.mark.parametrize("place", ["read_waiters", "replica_waiters"])
def test_a_reader_that_cannot_be_woken_keeps_nobody_from_hearing(place):
    cluster, heard, codes = started(), [], []
    watchers = getattr(cluster[1].partition().queues, place)
    watchers[Reader(bug)] = None
    watchers[Reader(heard.append)] = None
    append_and(cluster, 0, codes.append, acks=-1)
    append_and(cluster, 1, codes.append)
    cluster.run(0.1)
    assert heard
    assert sorted(codes) == [ErrorCode.NONE] * 2


class Reader:
    """What reads from a partition."""

    def __init__(self, arrived) -> None:
        self.arrived = arrived
        self.lost = lambda: None


def test_who_times_out_with_one_that_fails_is_told_all_the_same():
    cluster, codes = started(2), []
    cluster.network.cut("b1", "b2")
    for done in (bug, codes.append):
        append_and(cluster, 0, done, acks=-1)
    cluster.run(1.5)
    assert codes == [ErrorCode.REQUEST_TIMED_OUT]


def test_who_waits_with_one_that_fails_hears_that_another_leads():
    cluster, codes = started(2), []
    cluster[1].replicas.roles.on_leadership(bug)
    cluster[1].replicas.roles.on_leadership(lambda *change: codes.append(change))
    cluster.network.cut("b1", "b2")
    for done in (bug, codes.append):
        append_and(cluster, 0, done, acks=-1)
    cluster.run(0.1)
    cluster.elect(2, (1, 2), told=(1,))
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER, (TOPIC, 0, None)]
    assert not cluster[1].partition().state.is_leader


@pytest.mark.parametrize("method", ["commit", "stage"])
def test_a_log_that_fails_unexpectedly_fails_alone(method, monkeypatch):
    cluster, lost = started(), []
    cluster[1].replicas.roles.on_broken(lambda: lost.append(1))
    answers: dict[int, list[ErrorCode]] = {index: [] for index in range(PARTITIONS)}
    monkeypatch.setattr(appending, method, only_of(1, getattr(appending, method)))
    for index, codes in answers.items():
        append_and(cluster, index, codes.append)
    cluster.run(0.1)
    monkeypatch.undo()
    assert answers == {0: [ErrorCode.NONE], 1: [ErrorCode.KAFKA_STORAGE_ERROR], 2: [ErrorCode.NONE]}
    assert cluster[1].replicas.registry.leader(TOPIC, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert lost == [1], "the controller is told, so that another replica may lead"
    assert cluster[1].logs.directories() == [("/data/1", None)], "its directory is well"
    for index in (0, 2):
        serves_on(cluster, index, [b"lent"])


def test_nothing_half_staged_is_written_in_a_later_turn(monkeypatch):
    """The batch is in the list of what is to be written when the exception comes."""
    cluster, codes = started(), []
    monkeypatch.setattr(Producers, "update", bug)
    cluster.produce(1, "x", producer=(7, 0, 0))
    append_and(cluster, 1, codes.append)
    cluster.run(0.1)
    monkeypatch.undo()
    cluster.tell_next_epoch(1)
    cluster[1].replicas.stop()
    assert cluster[1].partition().state.is_offline
    assert cluster[1].files.size(f"/data/1/{TOPIC}-0/{0:020}.log") == 0
    assert codes == [ErrorCode.NONE]


def test_nothing_half_staged_is_written_by_a_follower(monkeypatch):
    cluster = started(2)
    update, failing = Producers.update, {producing.producers_of(cluster[2].partition().log): None}

    def fail_at_the_second(self, header, base_offset, batch):
        if self in failing and base_offset == 1:
            bug()
        return update(self, header, base_offset, batch)

    monkeypatch.setattr(Producers, "update", fail_at_the_second)
    cluster.produce(1, "x", producer=(7, 0, 0), acks=1)
    cluster.produce(1, "y", producer=(7, 0, 1), acks=1)
    other = cluster.produce(1, "y", index=1)
    cluster.run(0.5)
    assert other.code == ErrorCode.NONE
    assert cluster[2].partition().state.is_offline
    assert cluster[2].partition().log.size_bytes == 0
    cluster[2].replicas.stop()
    assert cluster[2].partition().log.size_bytes == 0


def test_one_partition_whose_role_cannot_change_keeps_no_other_from_its_own(monkeypatch):
    cluster = started(2)
    requests = []
    for index in range(PARTITIONS):
        cluster.controller.states[TOPIC, index].leader_epoch += 1
        requests.append(cluster.leader_and_isr(cluster[1], index))
    states = [request.topic_states[0].partition_states[0] for request in requests]
    (topic,) = requests[0].topic_states
    monkeypatch.setattr(type(cluster[1].partition()), "lead", only_first(cluster[1].partition()))
    together = replace(requests[0], topic_states=(replace(topic, partition_states=tuple(states)),))
    answer = apply_leader_and_isr(cluster[1].replicas, together)
    monkeypatch.undo()
    codes = [row.error_code for row in answer.topics[0].partition_errors]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE, ErrorCode.NONE]
    assert [cluster[1].partition(index).state.leader_epoch for index in (1, 2)] == [1, 1]


def only_first(broken):
    lead = type(broken).lead
    return lambda self, *rest: bug() if self is broken else lead(self, *rest)


def test_a_follower_asks_again_after_an_answer_that_it_could_not_take(monkeypatch):
    cluster = started(2)
    monkeypatch.setattr(Fetcher, "_take_all", bug)
    cluster.produce(1, "x", acks=1)
    cluster.run(0.1)
    monkeypatch.undo()
    again = cluster.produce(1, "y")
    cluster.run(1)
    assert again.code == ErrorCode.NONE
    assert cluster[2].values() == [b"x", b"y"]


def test_one_partition_that_fails_with_its_new_isr_keeps_no_other_from_its_own(monkeypatch):
    """A proposal that is neither decided nor asked again would keep the larger ISR for ever."""
    cluster = started(2)
    confirmed, first = cluster[1].replicas.isr_changes._confirmed, cluster[1].partition()
    monkeypatch.setattr(
        cluster[1].replicas.isr_changes,
        "_confirmed",
        lambda partition: bug() if partition is first else confirmed(partition),
    )
    for index in range(PARTITIONS):
        cluster.produce(1, "x", index=index)
    cluster.run(0.1)
    cluster.kill(2)
    waiting = [cluster.produce(1, "y", index=index) for index in range(PARTITIONS)]
    cluster.run(6)
    assert [cluster[1].partition(index).state.isr for index in range(PARTITIONS)] == [(1,)] * 3
    assert [p.code for p in waiting[1:]] == [ErrorCode.NONE] * 2


def beyond_its_leader() -> ReplicatedCluster:
    """A follower whose log goes on where its leader's ends."""
    cluster = ReplicatedCluster(2)
    cluster.create((1, 2))
    cluster.run(0.5)
    cluster.network.cut("b1", "b2")
    cluster.produce(1, "x", acks=1)
    cluster.run(0.1)
    cluster.elect(2, (1, 2), told=(2,))
    cluster.network.heal("b1", "b2")
    return cluster


def test_a_log_that_cannot_be_cut_is_not_copied_to(monkeypatch):
    """Half of it may be cut: what comes next would follow on something that nobody knows."""
    cluster = beyond_its_leader()
    monkeypatch.setattr(cutting, "cut", bug)
    cluster.tell(told=(1,))
    cluster.run(1)
    monkeypatch.undo()
    assert cluster[1].partition().state.is_offline


def test_a_follower_looks_again_for_its_leaders_range_after_an_answer_it_did_not_understand(monkeypatch):
    cluster = ReplicatedCluster(2)
    cluster.create((1, 2), retention_bytes="1", segment_bytes="100")
    cluster.run(0.5)
    cluster.kill(2)
    for _ in range(3):
        cluster.produce(1, "x" * 50, acks=1)
        cluster.run(3)
    cluster[1].replicas.housekeeping.apply_retention()
    assert cluster[1].partition().log.start_offset > 0
    monkeypatch.setattr(Fetcher, "_leader_offset", bug)
    cluster.start(2)
    cluster.tell(told=(2,))
    cluster.run(1)
    monkeypatch.undo()
    cluster.run(3)
    assert cluster[2].partition().log.end_offset == cluster[1].partition().log.end_offset == 3
