"""What must hold of a partition whatever happens to it, in whatever order: `PartitionState` against a model.

The model knows what no broker knows: which ISR is in force at the controller, whether or not its answer has come, and
how far every log is. No network, no log, no clock: what the state has to know is said to it.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import AlterPartitionResponsePartitionData, LeaderAndIsrPartitionState
from dataplane.replication.replica.partition_state import (
    PartitionSettings,
    PartitionState,
    ReplicaRules,
)
from dataplane.replication.replica.remote_replica import UNKNOWN_OFFSET

ME, OTHERS = 1, (2, 3)
ALL = (ME, *OTHERS)
LAG_S = 10.0
REFUSALS = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
UNSETTLED = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_UPDATE_VERSION)
"""What leaves it open whether the controller has done it."""


class Model(RuleBasedStateMachine):
    """One partition of three replicas, as broker 1 sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = set(ALL)
        self.state = PartitionState(ReplicaRules(ME, LAG_S, self.alive.__contains__), 0)
        self.now, self.end, self.epoch, self.version = 0.0, 0, -1, 0
        self.in_force: tuple[int, ...] = ALL  # at the controller
        self.ends = dict.fromkeys(OTHERS, UNKNOWN_OFFSET)  # as far as they have said in this epoch
        self.others_eligible = False  # as the controller has said last
        self.mark = 0  # the high watermark before the last event

    def given(self, leader: int, isr: tuple[int, ...], *, others_eligible: bool = False) -> LeaderAndIsrPartitionState:
        """The next epoch."""
        self.epoch, self.version, self.in_force = self.epoch + 1, self.version + 1, isr
        self.others_eligible = others_eligible
        return LeaderAndIsrPartitionState(
            leader=leader,
            leader_epoch=self.epoch,
            isr=isr,
            partition_epoch=self.version,
            replicas=ALL,
            leader_recovery_state=int(others_eligible),
        )

    def advance(self, counted_end: int | None = None) -> None:
        """As after every event at a leader; where it moves, all that must be true is."""
        state, before = self.state, self.state.high_watermark
        counted_end = self.end if counted_end is None else counted_end
        if not state.advance(counted_end, self.end, self.now):
            assert state.high_watermark == before
            return
        assert before < state.high_watermark <= counted_end
        assert not self.others_eligible
        assert len(state.isr) >= min(state.settings.min_insync_replicas, len(ALL))
        for member in self.in_force:
            assert member == ME or self.ends[member] >= state.high_watermark, "committed, and not on all of the ISR"

    # --- roles --------------------------------------------------------------------------------------------------------

    @initialize(isr=st.sampled_from([(1,), (1, 2), ALL]), enough=st.integers(1, 3))
    def begin(self, isr: tuple[int, ...], enough: int) -> None:
        self.configure(enough)
        self.elect(isr, others_eligible=False)

    @rule(isr=st.sampled_from([(1,), (1, 2), (1, 3), ALL]), others_eligible=st.booleans())
    def elect(self, isr: tuple[int, ...], *, others_eligible: bool) -> None:
        self.state.become_leader(self.given(ME, isr, others_eligible=others_eligible), self.end, self.now)
        self.ends = dict.fromkeys(OTHERS, UNKNOWN_OFFSET)
        assert self.state.is_leader
        assert self.state.epoch_start_offset == self.end
        assert [remote.broker_id for remote in self.state.remotes()] == list(OTHERS)
        self.advance()

    @precondition(lambda self: self.state.is_leader)
    @rule(leader=st.sampled_from(OTHERS))
    def depose(self, leader: int) -> None:
        self.state.become_follower(self.given(leader, OTHERS))
        assert not self.state.is_leader
        assert self.state.leader_id == leader
        assert not list(self.state.remotes())
        assert self.state.isr_without_laggards(self.end, self.now) is None

    @precondition(lambda self: self.state.is_leader)
    @rule(fails=st.booleans())
    def stop(self, *, fails: bool) -> None:
        was_offline = self.state.is_offline
        assert self.state.fail() if fails else self.state.resign()
        assert not self.state.is_leader
        assert self.state.is_offline == (fails or was_offline)
        assert not self.state.resign(), "it ends once"

    # --- as the leader ------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.state.is_leader)
    @rule(count=st.integers(1, 5), unsynced=st.integers(0, 2))
    def append(self, count: int, unsynced: int) -> None:
        self.end += count
        self.advance(self.end - unsynced)

    @precondition(lambda self: self.state.is_leader)
    @rule(follower=st.sampled_from(OTHERS), behind=st.integers(0, 8))
    def fetch(self, follower: int, behind: int) -> None:
        offset = max(0, self.ends[follower], self.end - behind)
        moved = self.state.follower_fetched(follower, offset, self.end, self.now)
        assert moved == (offset != self.ends[follower])
        self.ends[follower] = offset
        self.advance()
        joined = self.state.isr_with(follower, self.now)
        if joined is not None:
            assert joined == (*self.state.isr, follower)
            assert offset >= self.state.high_watermark
            assert offset >= self.state.epoch_start_offset
            self.propose(joined)

    @rule(seconds=st.floats(0, 2 * LAG_S))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        smaller = self.state.isr_without_laggards(self.end, self.now)
        if smaller is not None:
            assert ME in smaller
            assert set(smaller) < set(self.state.isr)
            self.propose(smaller)

    def propose(self, isr: tuple[int, ...]) -> None:
        assert self.state.proposed_isr is None
        self.state.propose(isr)
        assert self.state.isr_with(3, self.now) is self.state.isr_without_laggards(self.end, self.now) is None
        self.advance()

    @rule(broker=st.sampled_from(OTHERS))
    def dies_or_comes_back(self, broker: int) -> None:
        self.alive ^= {broker}
        if self.state.is_leader:
            self.advance()

    @rule(enough=st.integers(1, 3))
    def configure(self, enough: int) -> None:
        self.state.configure(PartitionSettings(min_insync_replicas=enough))
        if self.state.is_leader:
            self.advance()

    # --- the controller -----------------------------------------------------------------------------------------------

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> bool:
        data = AlterPartitionResponsePartitionData(
            error_code=code, leader_epoch=self.epoch, isr=self.in_force, partition_epoch=self.version
        )
        again = self.state.isr_answered(data, self.now)
        if self.state.is_leader:
            self.advance()
        return again

    @precondition(lambda self: self.state.is_leader and self.state.proposed_isr is not None)
    @rule(is_lost=st.booleans())
    def accept(self, *, is_lost: bool) -> None:
        assert self.state.proposed_isr is not None
        self.in_force, self.version = self.state.proposed_isr, self.version + 1
        if is_lost:  # who asked does not hear of it, and may go on
            self.advance()
        else:
            self.others_eligible = False
            assert not self.answer()
            assert (self.state.isr, self.state.proposed_isr) == (self.in_force, None)

    @precondition(lambda self: self.state.is_leader and self.state.proposed_isr is not None)
    @precondition(lambda self: self.state.partition_epoch == self.version)  # else it would say so again
    @rule(code=st.sampled_from(REFUSALS))
    def refuse(self, code: ErrorCode) -> None:
        assert not self.answer(code)
        assert (self.state.isr, self.state.proposed_isr) == (self.in_force, None)
        assert all(self.state.isr_with(other, self.now) is None for other in OTHERS), "not again at once"

    @precondition(lambda self: self.state.is_leader and self.state.proposed_isr is not None)
    @rule(code=st.sampled_from(UNSETTLED))
    def cannot_say(self, code: ErrorCode) -> None:
        proposed = self.state.proposed_isr
        assert self.answer(code) == (code is ErrorCode.UNKNOWN_SERVER_ERROR)
        assert self.state.proposed_isr is proposed

    # --- as a follower ------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.state.is_leader)
    @rule(cut=st.integers(0, 5), count=st.integers(0, 5), leaders=st.integers(0, 50))
    def copy(self, cut: int, count: int, leaders: int) -> None:
        if cut:
            self.truncate(cut)
        self.end += count
        before = self.state.high_watermark
        self.state.hear_high_watermark(leaders)
        moved = self.state.follow_high_watermark(self.end)
        assert self.state.high_watermark == max(before, min(leaders, self.end))
        assert moved == (self.state.high_watermark > before)

    def truncate(self, cut: int) -> None:
        self.end = max(0, self.end - cut)
        self.mark = min(self.mark, self.end)
        self.state.truncated(0, self.end)
        assert not self.state.follow_high_watermark(self.end), "what the former leader said is forgotten"

    # --- always -------------------------------------------------------------------------------------------------------

    @invariant()
    def the_high_watermark_is_in_the_log_and_never_goes_back(self) -> None:
        assert self.mark <= self.state.high_watermark <= self.end
        self.mark = self.state.high_watermark

    @invariant()
    def what_consumers_read_is_committed(self) -> None:
        state = self.state
        assert state.last_stable_offset == state.high_watermark, "nobody has held it back"

    @invariant()
    def the_epochs_are_the_controllers(self) -> None:
        assert self.state.leader_epoch == self.epoch
        assert self.state.partition_epoch <= self.version

    @invariant()
    def whoever_may_be_in_force_would_be_asked_before_a_verdict(self) -> None:
        if self.state.is_leader:
            assert set(self.state.others_in_sync()) >= set(self.in_force) - {ME}


TestWhateverHappens = Model.TestCase


def test_settings_are_replaced_whole():
    state = PartitionState(ReplicaRules(ME, LAG_S, bool), 0)
    settings: Any = state.settings
    with pytest.raises(FrozenInstanceError):
        settings.is_durable = True
    state.configure(PartitionSettings(is_durable=True))
    assert state.settings == PartitionSettings(is_durable=True)


def test_a_role_of_another_epoch_begins_one_and_the_same_said_again_does_not():
    state = PartitionState(ReplicaRules(ME, LAG_S, bool), 0)
    first = LeaderAndIsrPartitionState(leader=ME, leader_epoch=3, isr=ALL, replicas=ALL)
    assert state.begins_epoch(first)
    state.become_leader(first, 7, 0.0)
    assert not state.begins_epoch(first)
    state.become_leader(first, 9, 0.0)
    assert state.epoch_start_offset == 7
    state.resign()
    assert state.begins_epoch(first), "another log may have been written to meanwhile"
