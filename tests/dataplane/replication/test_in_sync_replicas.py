"""Who is in sync: proposed by the leader, decided by the controller, and never counted before."""

from __future__ import annotations

from dataplane.protocol.errors import ErrorCode
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster


def _started(**overrides: str) -> ReplicatedCluster:
    cluster = ReplicatedCluster()
    cluster.create(**overrides)
    cluster.run(0.5)
    return cluster


def _separate(cluster: ReplicatedCluster, broker_id: int) -> None:
    cluster.network.cut("b1", f"b{broker_id}")


def test_a_follower_that_does_not_keep_up_leaves_after_the_lag_time_and_commits_go_on():
    cluster = _started()
    _separate(cluster, 3)
    produced = cluster.produce(1, "x")
    cluster.run(1.5)
    assert cluster[1].partition().state.isr == (1, 2, 3)
    assert produced.code is None
    cluster.run(2.5)
    assert cluster.controller.states[TOPIC, 0].isr == cluster[1].partition().state.isr == (1, 2)
    assert produced.code == ErrorCode.NONE


def test_a_follower_that_has_everything_stays_however_long_nothing_is_written():
    cluster = _started()
    _separate(cluster, 3)
    cluster.run(10)
    assert cluster[1].partition().state.isr == (1, 2, 3)
    assert cluster.controller.requests == []


def test_a_follower_that_is_back_joins_again():
    cluster = _started()
    _separate(cluster, 3)
    cluster.produce(1, "x")
    cluster.run(5)
    cluster.network.heal("b1", "b3")
    cluster.run(15)
    assert cluster[3].values() == [b"x"]
    assert sorted(cluster[1].partition().state.isr) == [1, 2, 3]


def test_a_follower_joins_while_the_leader_is_written_to_all_the_time():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(0.5)
    cluster.kill(2)
    cluster.produce(1, "x", acks=1)
    cluster.run(5)
    assert cluster[1].partition().state.isr == (1,)
    cluster.start(2)
    cluster.tell(told=(2,))
    for number in range(1000):
        cluster.produce(1, str(number), acks=1)
        cluster.run(0.0001)
    assert cluster[1].partition().state.isr == (1, 2)


def test_nobody_joins_who_is_not_registered():
    cluster = _started()
    _separate(cluster, 3)
    cluster.produce(1, "x")
    cluster.run(5)
    cluster.forget(3)
    cluster.network.heal("b1", "b3")
    cluster.run(10)
    assert cluster[3].values() == [b"x"]
    assert cluster[1].partition().state.isr == (1, 2)


def test_a_proposal_that_gets_no_answer_is_made_again_until_it_does():
    cluster = _started()
    _separate(cluster, 3)
    cluster.controller.silent = True
    produced = cluster.produce(1, "x")
    cluster.run(20)
    assert len(cluster.controller.requests) >= 2
    assert produced.code is None
    cluster.controller.silent = False
    cluster.run(8)
    assert cluster[1].partition().state.isr == (1, 2)
    assert produced.code == ErrorCode.NONE


def test_a_shrink_that_is_not_confirmed_does_not_move_the_high_watermark():
    cluster = _started()
    _separate(cluster, 3)
    cluster.controller.refuse = ErrorCode.INVALID_UPDATE_VERSION
    produced = cluster.produce(1, "x")
    cluster.run(10)
    assert cluster[1].partition().state.high_watermark == 0
    assert produced.code is None


def test_a_shrink_whose_answer_was_lost_is_confirmed_when_asked_again():
    cluster = _started()
    _separate(cluster, 3)
    produced = cluster.produce(1, "x")
    cluster.controller.loses_answers = True
    cluster.run(4)
    assert cluster.controller.states[TOPIC, 0].isr == (1, 2)
    assert cluster[1].partition().state.isr == (1, 2, 3)
    assert produced.code is None
    cluster.controller.loses_answers = False
    cluster.run(10)
    assert cluster[1].partition().state.isr == (1, 2)
    assert produced.code == ErrorCode.NONE


def test_a_joining_follower_counts_before_the_controller_has_confirmed_it():
    cluster = _started()
    _separate(cluster, 3)
    cluster.produce(1, "x")
    cluster.run(5)
    cluster.controller.silent = True
    cluster.network.heal("b1", "b3")
    cluster.run(8)
    assert cluster[1].partition().state.proposed_isr == (1, 2, 3)
    _separate(cluster, 3)
    produced = cluster.produce(1, "y")
    cluster.run(1)
    assert cluster[2].values() == [b"x", b"y"]
    assert produced.code is None


def test_a_refused_follower_is_not_proposed_at_every_fetch():
    cluster = _started()
    _separate(cluster, 3)
    cluster.produce(1, "x")
    cluster.run(5)
    cluster.controller.refuse = ErrorCode.INELIGIBLE_REPLICA
    cluster.controller.requests.clear()
    cluster.network.heal("b1", "b3")
    cluster.run(7)
    cluster.controller.requests.clear()
    cluster.run(10)
    assert 5 <= len(cluster.controller.requests) <= 11
    assert cluster[1].partition().state.isr == (1, 2)


def test_isr_changes_of_many_partitions_go_together():
    cluster = ReplicatedCluster()
    for index in range(10):
        cluster.create(index=index)
    cluster.run(0.5)
    _separate(cluster, 3)
    for index in range(10):
        cluster.produce(1, "x", index=index)
    cluster.run(5)
    assert [len(topic.partitions) for request in cluster.controller.requests for topic in request.topics] == [10]
    assert all(cluster.controller.states[TOPIC, index].isr == (1, 2) for index in range(10))


def test_with_too_few_in_sync_acks_all_is_refused_before_anything_is_written():
    cluster = _started(min_insync_replicas="2")
    cluster.kill(2)
    cluster.kill(3)
    waiting = cluster.produce(1, "x")
    cluster.run(6)
    assert cluster[1].partition().state.isr == (1,)
    assert waiting.code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    refused = cluster.produce(1, "y")
    accepted = cluster.produce(1, "z", acks=1)
    cluster.run(0.1)
    assert refused.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert accepted.code == ErrorCode.NONE
    assert cluster[1].values() == [b"x", b"z"]


def test_no_more_in_sync_replicas_are_asked_for_than_there_are():
    cluster = ReplicatedCluster()
    cluster.create(replicas=(1,), min_insync_replicas="2")
    cluster.run(0.5)
    alone = cluster.produce(1, "x")
    cluster.run(1)
    assert alone.code == ErrorCode.NONE
    assert cluster[1].values() == [b"x"]


def test_what_too_few_hold_is_not_committed_until_enough_hold_it():
    cluster = _started(min_insync_replicas="2")
    cluster.produce(1, "x")
    cluster.run(1)
    cluster.kill(2)
    cluster.kill(3)
    cluster.produce(1, "y", acks=1)
    cluster.run(6)
    assert cluster[1].partition().state.isr == (1,)
    assert cluster[1].partition().state.high_watermark == 1
    cluster.start(2)
    cluster.tell()
    cluster.run(6)
    assert cluster[1].partition().state.high_watermark == 2
