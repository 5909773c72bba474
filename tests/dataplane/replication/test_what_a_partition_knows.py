"""The rules of a partition, one at a time, with a log that is two numbers and without a network."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import AlterPartitionResponsePartitionData, LeaderAndIsrPartitionState
from dataplane.replication.replica.partition import Partition
from dataplane.replication.replica.partition_state import PartitionSettings, ReplicaRules
from dataplane.storage.checkpoints.transactions import Transactions

ME = 1
BYTES_PER_OFFSET = 100


@dataclass
class Epochs:
    entries: list[tuple[int, int]] = field(default_factory=list)

    def begin(self, epoch: int, start: int) -> None:
        self.entries.append((epoch, start))


class FakeSegment:
    """Of as many bytes for each offset."""

    def position_of(self, offset: int) -> int:
        return BYTES_PER_OFFSET * offset


@dataclass
class FakeLog:
    """Where a log begins and ends, and how many bytes lie between, is all that a partition asks of it."""

    start_offset: int = 0
    end_offset: int = 0
    epochs: Epochs = field(default_factory=Epochs)
    transactions: Transactions = field(default_factory=Transactions)

    segments: list[FakeSegment] = field(default_factory=lambda: [FakeSegment()])

    def segment_index(self, _offset: int) -> int:
        return 0


def _state(epoch: int = 0, leader: int = ME, isr: tuple[int, ...] = (1, 2, 3), version: int = 0):
    return LeaderAndIsrPartitionState(
        leader=leader, leader_epoch=epoch, isr=isr, partition_epoch=version, replicas=(1, 2, 3)
    )


def _partition(end: int = 0, alive: tuple[int, ...] = (1, 2, 3)) -> Partition:
    return Partition("t", 0, UUID(int=1), FakeLog(end_offset=end), ReplicaRules(ME, 10.0, lambda b: b in alive))


def _leader(end: int = 0, isr: tuple[int, ...] = (1, 2, 3), alive: tuple[int, ...] = (1, 2, 3)) -> Partition:
    partition = _partition(end, alive)
    partition.lead(_state(isr=isr), 0.0)
    return partition


def _append(partition: Partition, offsets: int, now: float) -> bool:
    partition.log.end_offset += offsets
    return partition.appended(BYTES_PER_OFFSET * offsets, now)


def _answer(partition: Partition, isr: tuple[int, ...] = (), code: ErrorCode = ErrorCode.NONE, **more: int) -> bool:
    data = AlterPartitionResponsePartitionData(
        partition_index=0,
        error_code=code,
        leader_id=ME,
        leader_epoch=more.get("epoch", partition.state.leader_epoch),
        isr=isr,
        partition_epoch=more.get("version", partition.state.partition_epoch + 1),
    )
    return partition.state.isr_answered(data, 0.0)


def test_a_new_leader_does_not_move_its_high_watermark_before_it_has_heard_of_all_in_sync():
    partition = _leader(end=5)
    assert partition.state.high_watermark == 0
    partition.update_follower(2, 5, 1.0)
    assert partition.state.high_watermark == 0
    assert partition.update_follower(3, 4, 1.0)
    assert partition.state.high_watermark == 4


def test_a_follower_may_not_join_below_the_high_watermark():
    partition = _leader(end=10, isr=(1,))
    assert partition.state.high_watermark == 10
    partition.update_follower(2, 9, 1.0)
    assert partition.state.isr_with(2, 1.0) is None
    partition.update_follower(2, 10, 1.0)
    assert partition.state.isr_with(2, 1.0) == (1, 2)


def test_a_follower_may_not_join_below_the_start_of_our_epoch():
    """Our high watermark may be stale: what the former leader committed can reach up to where our epoch began."""
    partition = _leader(end=10, isr=(1, 3))
    assert partition.state.high_watermark == 0
    partition.update_follower(2, 9, 1.0)
    assert partition.state.isr_with(2, 1.0) is None
    partition.update_follower(2, 10, 1.0)
    assert partition.state.isr_with(2, 1.0) == (1, 3, 2)


def test_a_live_follower_about_to_join_is_waited_for_and_a_dead_one_is_not():
    for alive, expected in (((1, 2), 10), ((1,), 11)):
        partition = _leader(end=10, isr=(1,), alive=alive)
        partition.update_follower(2, 10, 1.0)
        _append(partition, 1, 1.0)
        assert partition.state.high_watermark == expected
        _append(partition, 1, 12.0)
        assert partition.state.high_watermark == 12  # its time is over


def test_a_follower_that_the_controller_will_not_have_is_not_waited_for_until_it_may_be_proposed_again():
    """A broker that is shutting down still follows, is alive, and then falls silent: nobody may wait for it."""
    partition = _leader(isr=(1,))
    partition.update_follower(2, 0, 0.0)
    partition.state.propose((1, 2))
    _append(partition, 1, 0.1)
    assert partition.state.high_watermark == 0
    _answer(partition, code=ErrorCode.INELIGIBLE_REPLICA)
    partition.advance(0.2)
    assert partition.state.high_watermark == 1
    partition.update_follower(2, 1, 0.5)
    _append(partition, 1, 1.5)
    assert partition.state.high_watermark == 2
    partition.update_follower(2, 2, 1.6)
    _append(partition, 1, 1.7)
    assert partition.state.high_watermark == 2


def test_while_an_expansion_is_undecided_the_newcomer_counts():
    partition = _leader(isr=(1,), alive=(1,))
    partition.state.propose((1, 2))
    _append(partition, 5, 100.0)
    assert partition.state.high_watermark == 0
    _answer(partition, (1, 2))
    assert partition.state.isr == (1, 2)
    partition.update_follower(2, 5, 100.0)
    assert partition.state.high_watermark == 5


def test_while_a_shrink_is_undecided_the_laggard_counts():
    partition = _leader(isr=(1, 2), alive=(1,))
    _append(partition, 5, 100.0)
    assert partition.isr_without_laggards(100.0) == (1,)
    partition.state.propose((1,))
    assert partition.isr_without_laggards(100.0) is None  # one at a time
    assert not partition.advance(100.0)
    _answer(partition, (1,))
    assert partition.advance(100.0)
    assert partition.state.high_watermark == 5


def test_the_leader_itself_never_leaves_the_isr():
    partition = _leader()
    _append(partition, 1, 0.0)
    assert partition.isr_without_laggards(1000.0) == (1,)


def test_an_answer_of_another_epoch_or_an_older_version_changes_nothing():
    partition = _leader(isr=(1, 2, 3))
    partition.state.propose((1, 2))
    assert not _answer(partition, (1, 2), epoch=-1)
    assert partition.state.isr == (1, 2, 3)
    assert not _answer(partition, (1, 2), version=-1)
    assert partition.state.isr == (1, 2, 3)


def test_errors_that_may_pass_are_asked_again_and_others_wait_for_the_next_word():
    for code, again, undecided in (
        (ErrorCode.NOT_CONTROLLER, True, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, True),
        (ErrorCode.INVALID_UPDATE_VERSION, False, True),
        (ErrorCode.FENCED_LEADER_EPOCH, False, True),
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
    ):
        partition = _leader(isr=(1,))
        partition.state.propose((1, 2))
        assert _answer(partition, code=code) is again
        assert (partition.state.proposed_isr is not None) is undecided


def test_keeping_up_with_what_was_the_end_at_the_last_fetch_is_keeping_up():
    partition = _leader()
    for second in range(100):
        _append(partition, 10, float(second))
        partition.update_follower(2, second * 10, second + 0.5)  # always one round behind
        partition.update_follower(3, 0, second + 0.5)
    assert partition.isr_without_laggards(100.0) == (1, 2)


def test_a_followers_high_watermark_is_the_leaders_as_far_as_its_own_log_goes():
    partition = _partition(end=3)
    partition.follow(_state(leader=2))
    partition.state.hear_high_watermark(10)
    assert partition.follow_high_watermark()
    assert partition.state.high_watermark == 3
    partition.log.end_offset = 12
    partition.follow_high_watermark()
    assert partition.state.high_watermark == 10
    partition.log.end_offset = 2
    partition.truncated()
    assert partition.state.high_watermark == 2


def test_committed_bytes_follow_the_high_watermark():
    partition = _leader(isr=(1, 2), alive=(1, 2))
    for _ in range(5):
        _append(partition, 2, 0.0)
    assert partition.counts.committed == 0
    partition.update_follower(2, 4, 0.0)
    assert partition.counts.committed == 400
    partition.update_follower(2, 7, 0.0)  # in the middle of what was written together
    assert partition.counts.committed == 700
    partition.update_follower(2, 10, 0.0)
    assert partition.counts.committed == 1000


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("fetch"), st.integers(2, 3), st.integers(0, 60)),
        st.tuples(st.just("wait"), st.floats(0, 20)),
        st.tuples(st.just("decide"), st.booleans()),
    ),
    max_size=60,
)


@given(STEPS)
def test_the_high_watermark_is_on_all_of_the_larger_isr_and_never_goes_back(steps):
    partition, now, known = _leader(), 0.0, {2: -1, 3: -1}
    for step in steps:
        before, in_sync = partition.state.high_watermark, partition.state.isr
        if step[0] == "append":
            _append(partition, step[1], now)
        elif step[0] == "fetch":
            offset = max(known[step[1]], min(step[2], partition.log.end_offset))
            known[step[1]] = offset
            partition.update_follower(step[1], offset, now)
            joined = partition.state.isr_with(step[1], now)
            if joined is not None:
                partition.state.propose(joined)
        elif step[0] == "wait":
            now += step[1]
            without = partition.isr_without_laggards(now)
            if without is not None:
                partition.state.propose(without)
        elif partition.state.proposed_isr is not None:
            if step[1]:
                _answer(partition, partition.state.proposed_isr)
                in_sync = partition.state.isr
            else:
                _answer(partition, code=ErrorCode.INELIGIBLE_REPLICA)
        partition.advance(now)
        assert partition.state.high_watermark >= before
        if partition.state.high_watermark > before:
            larger = {*in_sync, *(partition.state.proposed_isr or ())} - {ME}
            assert all(known[member] >= partition.state.high_watermark for member in larger)


def _leader_of_a_small_isr(isr: tuple[int, ...], *, others_eligible: bool, enough: int = 2) -> Partition:
    """Everybody has everything, and nothing is known to be committed."""
    partition = _partition(5)
    partition.state.configure(PartitionSettings(min_insync_replicas=enough))
    partition.lead(replace(_state(isr=isr), leader_recovery_state=int(others_eligible)), 0.0)
    for broker in (2, 3):
        partition.update_follower(broker, 5, 1.0)
    return partition


def test_while_others_are_eligible_nothing_is_committed_whatever_is_configured_meanwhile():
    assert _leader_of_a_small_isr((1,), others_eligible=False, enough=1).state.high_watermark == 5
    partition = _leader_of_a_small_isr((1,), others_eligible=True, enough=1)
    assert partition.state.high_watermark == 0
    partition.state.adopt_isr((1,), 1, others_eligible=False)
    assert partition.advance(1.0)
    assert partition.state.high_watermark == 5


def test_who_is_only_proposed_does_not_make_enough_of_too_few():
    partition = _leader_of_a_small_isr((1,), others_eligible=True)
    partition.state.propose((1, 2))
    assert not partition.advance(1.0)
    _answer(partition, (1, 2))
    assert partition.advance(1.0)


def test_the_controllers_answer_says_whether_others_are_eligible():
    partition = _leader_of_a_small_isr((1, 2), others_eligible=False)
    partition.state.propose((1,))
    data = AlterPartitionResponsePartitionData(
        leader_id=ME, leader_epoch=0, isr=(1,), partition_epoch=1, leader_recovery_state=1
    )
    partition.state.isr_answered(data, 0.0)
    assert partition.state.others_eligible
