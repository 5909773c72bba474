"""Another leader: what was committed stays, what was not goes, and who was deposed acknowledges nothing."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.storage.log import removing
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster
from tests.support.memory_files import MemoryFiles


def _started(size: int = 3) -> ReplicatedCluster:
    cluster = ReplicatedCluster(size)
    cluster.create(tuple(range(1, size + 1)))
    cluster.run(0.5)
    return cluster


def _all_equal(cluster: ReplicatedCluster) -> bool:
    values = [broker.values() for broker in cluster.brokers.values()]
    entries = [broker.partition().log.epochs.entries() for broker in cluster.brokers.values()]
    return all(v == values[0] for v in values) and all(e == entries[0] for e in entries)


def test_what_was_acknowledged_survives_the_leader():
    cluster = _started()
    produced = [cluster.produce(1, str(number)) for number in range(10)]
    cluster.run(0.5)
    assert all(p.code == ErrorCode.NONE for p in produced)
    cluster.kill(1)
    cluster.elect(2, (2, 3), told=(2, 3))
    after = cluster.produce(2, "after")
    cluster.run(1)
    assert after.code == ErrorCode.NONE
    assert cluster[3].committed_values()[:10] == [str(number).encode() for number in range(10)]


def test_a_suffix_that_only_the_old_leader_had_is_cut():
    cluster = _started()
    cluster.produce(1, "both")
    cluster.run(0.5)
    cluster.network.cut("b1", "b2")
    cluster.network.cut("b1", "b3")
    lost = cluster.produce(1, "only", "here")
    cluster.run(0.2)
    cluster.elect(2, (2, 3), told=(2, 3))
    kept = cluster.produce(2, "new")
    cluster.run(0.5)
    assert kept.code == ErrorCode.NONE
    cluster.network.heal("b1", "b2")
    cluster.network.heal("b1", "b3")
    cluster.tell()
    cluster.run(10)
    assert lost.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster[1].values() == [b"both", b"new"]
    assert _all_equal(cluster)


def test_a_follower_keeps_what_is_above_its_own_high_watermark_if_the_leader_has_it():
    """Truncating to the high watermark would lose it: the follower heard of the commit only with its next fetch."""
    cluster = _started(2)
    cluster.produce(1, "x")
    cluster.network.run_until(lambda: cluster[2].partition().log.end_offset == 1)
    assert cluster[2].partition().state.high_watermark == 0
    cluster.kill(2)
    cluster.start(2)
    cluster.tell(told=(2,))
    cluster.kill(1)
    cluster.elect(2, (2,), told=(2,))
    cluster.run(0.5)
    assert cluster[2].committed_values() == [b"x"]


def test_logs_that_part_above_the_high_watermark_are_cut_where_they_part():
    """At the high watermark the follower would lose what both have, and with the leader's death it would be gone."""
    cluster = ReplicatedCluster()
    cluster.create(min_insync_replicas="3")
    cluster.produce(1, "committed", acks=1)
    cluster.run(0.5)
    cluster.network.cut("b1", "b3")
    cluster.network.cut("b2", "b3")
    cluster.produce(1, "on", "both", acks=1)
    cluster.run(0.5)
    cluster.network.cut("b1", "b2")
    cluster.elect(2, (1, 2), told=(2,))
    cluster.produce(2, "not", "here", acks=1)
    cluster.run(0.01)
    log = cluster[2].partition().log
    assert (log.end_offset, cluster[2].partition().state.high_watermark) == (5, 1)
    cluster.network.heal("b1", "b2")
    cluster.elect(1, (1, 2), told=(1, 2))
    cluster.network.run_until(lambda: log.end_offset != 5)
    assert log.end_offset == 3
    cluster.kill(1)
    cluster.elect(2, (2,), told=(2,))
    assert cluster[2].values() == [b"committed", b"on", b"both"]


def test_two_quick_changes_of_leader_leave_no_trace_of_either():
    """KIP-279: one answer about an epoch is not enough when both logs have epochs that the other never saw."""
    cluster = _started()
    cluster.produce(1, "base")
    cluster.run(0.5)
    for broker_id in (2, 3):
        cluster.network.cut("b1", f"b{broker_id}")
    cluster.network.cut("b2", "b3")
    cluster.produce(1, "a1", "a2", "a3", acks=1)
    cluster.run(0.01)
    cluster.elect(2, (2,), told=(2,))
    cluster.produce(2, "b1", acks=1)
    cluster.run(0.01)
    cluster.elect(1, (1,), told=(1,))
    cluster.produce(1, "a4", acks=1)
    cluster.run(0.01)
    cluster.elect(2, (2,), told=(2,))
    cluster.produce(2, "b2", "b3", acks=1)
    cluster.run(0.01)
    cluster.elect(3, (3,), told=(3,))
    cluster.network.heal_all()
    cluster.tell()
    cluster.produce(3, "final")
    cluster.run(10)
    assert cluster[3].values() == [b"base", b"final"]
    assert _all_equal(cluster)


def test_an_epoch_in_which_nothing_was_written_is_forgotten_by_who_led_it():
    """KAFKA-10706: its log need not be cut, but its epoch has to go, or it is asked about for ever."""
    cluster = _started()
    cluster.produce(1, "x")
    cluster.run(0.5)
    cluster.elect(2, (1, 2, 3), told=(2,))
    cluster.elect(3, (1, 2, 3))
    produced = cluster.produce(3, "y")
    cluster.run(2)
    assert produced.code == ErrorCode.NONE
    assert _all_equal(cluster)


def test_a_deposed_leader_that_does_not_know_it_acknowledges_nothing():
    cluster = _started()
    cluster.elect(2, (1, 2, 3), told=(2, 3))
    zombie = cluster.produce(1, "lost")
    cluster.run(1)
    assert cluster[1].partition().state.is_leader
    assert zombie.code is None
    cluster.tell(told=(1,))
    assert zombie.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.run(3)
    assert cluster[1].values() == []


def test_a_paused_leader_that_wakes_up_finds_itself_alone():
    cluster = _started()
    cluster.network.pause("b1")
    cluster.elect(2, (2, 3), told=(2, 3))
    cluster.produce(2, "new")
    zombie = cluster.produce(1, "lost")
    cluster.run(5)
    cluster.network.resume("b1")
    cluster.run(5)
    assert zombie.code is None
    assert cluster.controller.states[TOPIC, 0].isr == (2, 3)
    cluster.tell(told=(1,))
    cluster.run(5)
    assert zombie.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster[1].values() == [b"new"]


def test_a_follower_of_the_old_epoch_is_not_counted_by_the_new_leader():
    cluster = _started()
    cluster.elect(2, (1, 2, 3), told=(2,))
    produced = cluster.produce(2, "x")
    cluster.run(1)
    assert produced.code is None
    cluster.tell(told=(1, 3))
    cluster.run(1)
    assert produced.code == ErrorCode.NONE


def test_the_new_leader_knows_the_producers_and_tells_a_retry_the_old_offset():
    cluster = _started()
    producer = (42, 0, 0)
    first = cluster.produce(1, "a", "b", producer=producer)
    cluster.run(0.5)
    cluster.kill(1)
    cluster.elect(3, (2, 3), told=(2, 3))
    cluster.run(1)
    retry = cluster.produce(3, "a", "b", producer=producer)
    following = cluster.produce(3, "c", producer=(42, 0, 2))
    gap = cluster.produce(3, "d", producer=(42, 0, 9))
    cluster.run(1)
    assert first.code == retry.code == following.code == ErrorCode.NONE
    assert retry.appended.duplicate
    assert retry.appended.base_offset == first.appended.base_offset == 0
    assert gap.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert cluster[2].values() == [b"a", b"b", b"c"]


def test_a_retry_of_what_is_not_committed_yet_waits_for_the_commit():
    cluster = _started()
    cluster.network.cut("b1", "b2")
    first = cluster.produce(1, "a", producer=(42, 0, 0))
    second = cluster.produce(1, "b", producer=(42, 0, 1))
    cluster.run(0.1)
    retry = cluster.produce(1, "a", producer=(42, 0, 0))
    cluster.run(0.1)
    assert retry.appended.duplicate
    assert (first.code, second.code, retry.code) == (None, None, None)
    cluster.network.heal("b1", "b2")
    cluster.run(1)
    assert first.code == second.code == retry.code == ErrorCode.NONE
    assert cluster[1].values() == [b"a", b"b"]


def test_a_restarted_broker_goes_on_from_its_checkpointed_high_watermark():
    cluster = _started()
    for number in range(5):
        cluster.produce(1, str(number))
    cluster.run(6)
    for broker_id in (1, 2, 3):
        cluster.kill(broker_id)
    cluster.start(2)
    cluster.elect(2, (2,), told=(2,))
    assert cluster[2].partition().state.high_watermark == 5


def test_a_checkpoint_that_is_ahead_of_the_log_is_not_believed():
    cluster = _started()
    for number in range(5):
        cluster.produce(1, str(number))
    cluster.run(6)
    for broker_id in (1, 2, 3):
        cluster.kill(broker_id)
    cluster[2].files.crash()  # the checkpoint was synced, the log was not
    cluster.start(2)
    cluster.elect(2, (2, 3), told=(2,))
    assert cluster[2].partition().log.end_offset == cluster[2].partition().state.high_watermark == 0


def test_a_log_that_fell_behind_the_leaders_start_begins_anew_there():
    cluster = _started()
    cluster.kill(3)
    for number in range(10):
        cluster.produce(1, str(number), acks=1)
    cluster.run(5)
    removing.set_start_offset(cluster[1].partition().log, 8)
    cluster.start(3)
    cluster.tell(told=(3,))
    cluster.run(3)
    assert cluster[3].partition().log.start_offset == 8
    assert cluster[3].values() == [b"8", b"9"]


@pytest.mark.parametrize("begins", ["behind", "empty"])
def test_a_log_begins_with_the_whole_batch_that_its_leaders_log_starts_in(begins):
    """DeleteRecords may name an offset within a batch, which stays whole on the leader's disk and is sent so."""
    cluster = _started()
    cluster.kill(3)
    for number in range(4):
        cluster.produce(1, *(f"{number}.{at}" for at in range(3)), acks=1)
    cluster.run(5)
    removing.set_start_offset(cluster[1].partition().log, 7)
    cluster.start(3, None if begins == "behind" else MemoryFiles())
    cluster.tell(told=(3,))
    cluster.run(3)
    log = cluster[3].partition().log
    assert (log.start_offset, log.end_offset) == (7, 12)
    assert cluster[3].values()[-5:] == [b"2.1", b"2.2", b"3.0", b"3.1", b"3.2"]
    assert cluster.controller.states[TOPIC, 0].isr == (1, 2, 3)


def test_leadership_is_told_to_who_asked_for_it():
    cluster = _started()
    cluster.elect(2, (1, 2, 3))
    cluster.elect(2, (1, 2, 3))
    assert cluster[1].leadership == [(TOPIC, 0, 0), (TOPIC, 0, None)]
    assert cluster[2].leadership == [(TOPIC, 0, 1), (TOPIC, 0, 2)]
    assert cluster[3].leadership == []


def test_an_answer_of_the_old_leader_that_comes_late_is_thrown_away():
    cluster = _started()
    cluster.create(index=1)  # stays with broker 1, and with it the connection to it
    cluster.run(0.5)
    cluster.elect(2, (1, 2, 3), told=(2, 3))
    zombie = cluster.produce(1, "lost", acks=1)
    cluster.run(0.1)
    assert zombie.code == ErrorCode.NONE
    assert cluster[3].partition().log.end_offset == 0


def test_what_was_appended_in_the_turn_of_the_change_belongs_to_the_old_epoch():
    cluster = _started()
    produced = cluster.produce(1, "x")
    cluster.elect(1, (1, 2, 3))  # heard of in the same turn
    cluster.run(0.5)
    assert produced.code == ErrorCode.NONE
    assert cluster[1].partition().log.epochs.entries() == [(0, 0), (1, 1)]
    late = cluster.produce(1, "y")
    cluster.elect(2, (1, 2, 3))
    assert late.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_that_comes_back_in_its_old_epoch_remembers_where_that_began():
    cluster = _started(2)
    cluster.elect(1, (1, 2))
    cluster.produce(1, "a")
    cluster.run(0.5)
    cluster.kill(2)
    cluster.kill(1)
    cluster.start(1)
    cluster.tell(told=(1,))
    assert cluster[1].partition().state.is_leader
    assert cluster[1].partition().log.epochs.entries() == [(1, 0)]
    cluster.start(2)
    cluster.tell(told=(2,))
    produced = cluster.produce(1, "b")
    cluster.run(2)
    assert produced.code == ErrorCode.NONE
    assert _all_equal(cluster)
