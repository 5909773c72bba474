"""Who is a member: ids, sessions, static members, leaving."""

import pytest

from dataplane.groups.classic.model import GroupState
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.machine import Machine


def test_a_client_that_can_is_told_its_id_and_has_to_come_back_with_it():
    m = Machine()
    told = m.join(new_id="a", needs_known_id=True)
    assert (m.error(told), m.replies[told].member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "a")
    assert m.group.members == {}
    joined = m.join("a", needs_known_id=True)
    m.ring("join")
    assert (m.error(joined), m.replies[joined].member_id) == (ErrorCode.NONE, "a")
    assert len(m.group.pending) == 0
    assert "pending:a" not in m.timers


def test_an_id_that_is_never_used_is_forgotten():
    m = Machine()
    m.join(new_id="a", needs_known_id=True)
    m.ring("pending:a")
    assert m.group.is_blank()
    assert m.error(m.join("a")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_a_member_that_was_given_an_id():
    m = Machine().stable("a")
    m.join(new_id="b", needs_known_id=True)
    a = m.join("a")
    assert m.waits(a)
    m.ring("pending:b")
    assert m.replies[a].generation == 2


def test_an_id_that_nobody_gave_is_unknown():
    m = Machine().stable("a")
    assert m.error(m.join("stranger")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert m.heartbeat("stranger") == ErrorCode.UNKNOWN_MEMBER_ID
    assert m.error(m.sync("stranger")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_stale_generation_is_refused():
    m = Machine().stable("a")
    assert m.heartbeat("a", 0) == ErrorCode.ILLEGAL_GENERATION
    assert m.heartbeat("a", 2) == ErrorCode.ILLEGAL_GENERATION
    assert m.error(m.sync("a", 0)) == ErrorCode.ILLEGAL_GENERATION
    assert m.heartbeat("a", 1) == ErrorCode.NONE


def test_a_sync_for_another_protocol_is_refused():
    m = Machine().stable("a")
    assert m.error(m.sync("a", protocol_type="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert m.error(m.sync("a", protocol="sticky")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert m.error(m.sync("a", protocol_type="consumer", protocol="range")) == ErrorCode.NONE


def test_a_sync_during_a_rebalance_sends_the_member_back_to_join():
    m = Machine().stable("a", "b")
    m.join("a")
    assert m.error(m.sync("b")) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_heartbeat_begins_the_session_anew():
    m = Machine().stable("a")
    m.timers.clear()
    m.heartbeat("a")
    assert m.timers["session:a"].delay_ms == 10_000


def test_a_member_whose_request_is_parked_is_alive():
    m = Machine().stable("a", "b")
    ended = m.timers["session:a"].event
    a = m.join("a")
    m.do(ended)
    assert m.waits(a)
    assert "a" in m.group.members


def test_a_new_member_that_waits_too_long_is_given_up_and_told():
    m = Machine().stable("a")
    b = m.join(new_id="b")
    assert m.timers["session:b"].delay_ms == 300_000
    m.ring("session:b")
    assert m.error(b) == ErrorCode.UNKNOWN_MEMBER_ID
    assert "b" not in m.group.members


def test_a_heartbeat_between_join_and_sync_is_fine():
    m = Machine()
    m.join(new_id="a")
    m.ring("join")
    assert m.heartbeat("a") == ErrorCode.NONE


# --- leaving ----------------------------------------------------------------------------------------------------------


def test_the_last_member_leaves_an_empty_group_behind():
    m = Machine().stable("a")
    assert m.leave("a").members == (("a", None, ErrorCode.NONE),)
    assert (m.group.state, m.group.generation, m.group.protocol) == (GroupState.EMPTY, 2, None)
    assert (m.stored[-1].generation, m.stored[-1].members) == (2, ())
    assert m.timers == {}


def test_several_members_leave_at_once_and_each_is_told():
    m = Machine().stable("a", "b", "c")
    left = m.leave("a", "stranger", "c")
    assert [error for _, _, error in left.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert list(m.group.members) == ["b"]


def test_who_leaves_while_its_join_is_parked_has_both_answered():
    m = Machine().stable("a", "b")
    a = m.join("a")
    m.leave("a")
    assert m.error(a) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_member_may_leave():
    m = Machine().stable("a")
    m.join(new_id="b", needs_known_id=True)
    a = m.join("a")
    assert m.leave("b").members[0][2] == ErrorCode.NONE
    assert m.replies[a].generation == 2


# --- static members ---------------------------------------------------------------------------------------------------


def static_group():
    m = Machine()
    m.join(new_id="a1", instance_id="A"), m.join(new_id="b1", instance_id="B")
    m.ring("join")
    m.sync("a1", assignments={"a1": b"0", "b1": b"1"}), m.sync("b1")
    assert m.group.state is GroupState.STABLE
    return m


def test_a_static_member_that_restarts_keeps_its_assignment_without_a_rebalance():
    m = static_group()
    b = m.join(new_id="b2", instance_id="B")
    assert (m.error(b), m.replies[b].member_id, m.replies[b].generation) == (ErrorCode.NONE, "b2", 1)
    assert m.group.state is GroupState.STABLE
    assert m.replies[m.sync("b2", instance_id="B")].assignment == b"1"


def test_whoever_uses_the_old_id_of_a_static_member_is_fenced():
    m = static_group()
    m.join(new_id="b2", instance_id="B")
    assert m.heartbeat("b1", instance_id="B") == ErrorCode.FENCED_INSTANCE_ID
    assert m.error(m.sync("b1", instance_id="B")) == ErrorCode.FENCED_INSTANCE_ID
    assert m.error(m.join("b1", instance_id="B")) == ErrorCode.FENCED_INSTANCE_ID
    assert m.leave(("b1", "B")).members[0][2] == ErrorCode.FENCED_INSTANCE_ID
    assert m.heartbeat("b2", instance_id="B") == ErrorCode.NONE


def test_the_session_of_a_fenced_process_ends_with_it():
    m = static_group()
    m.join(new_id="b2", instance_id="B")
    assert "session:b1" not in m.timers
    assert "session:b2" in m.timers


def test_a_static_member_that_restarts_before_its_sync_is_still_waited_for():
    m = Machine()
    m.join(new_id="a1", instance_id="A")
    m.join(new_id="b1", instance_id="B")
    m.ring("join")
    m.sync("a1", assignments={"a1": b"0", "b1": b"1"})
    m.join(new_id="b2", instance_id="B")
    assert m.group.state is GroupState.STABLE
    m.ring("sync")
    assert list(m.group.members) == ["a1"]


def test_an_instance_id_that_nobody_has_is_unknown():
    assert static_group().heartbeat("a1", instance_id="C") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_restarts_is_told_to_skip_the_assignment_or_that_somebody_else_leads():
    m = static_group()
    modern = m.join(new_id="a2", instance_id="A", can_skip_assignment=True)
    assert (m.replies[modern].skip_assignment, m.replies[modern].leader) == (True, "a2")
    assert [member[0] for member in m.replies[modern].members] == ["a2", "b1"]
    older = m.join(new_id="a3", instance_id="A")
    assert (m.replies[older].skip_assignment, m.replies[older].leader) == (False, "a2")
    assert m.replies[older].members == ()


def test_the_new_id_of_a_static_member_is_told_only_when_it_is_stored():
    m = static_group()
    m.log_is_slow = True
    b = m.join(new_id="b2", instance_id="B")
    assert m.waits(b)
    m.commit(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert m.error(b) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    m.log_is_slow = False
    assert m.error(m.join(new_id="b3", instance_id="B")) == ErrorCode.NONE
    assert [v.member_id for v in m.stored[-1].members] == ["a1", "b3"]


def test_a_static_member_that_comes_back_with_other_protocols_starts_a_rebalance():
    m = Machine()
    m.join(new_id="a1", instance_id="A", protocols=(("range", b""), ("sticky", b"")))
    m.ring("join")
    m.sync("a1", assignments={"a1": b"0"})
    a = m.join(new_id="a2", instance_id="A", protocols=(("sticky", b""), ("range", b"")))
    assert (m.replies[a].generation, m.replies[a].protocol) == (2, "sticky")


def test_a_parked_join_of_the_old_process_is_fenced_by_the_new_one():
    m = static_group()
    old = m.join("a1", instance_id="A")  # the leader wants a rebalance
    new = m.join(new_id="a2", instance_id="A")
    assert m.error(old) == ErrorCode.FENCED_INSTANCE_ID
    assert m.waits(new)
    m.join("b1", instance_id="B", protocols=(("range", b"more"),))
    assert m.replies[new].generation == 2


def test_static_members_may_be_away_during_a_rebalance():
    m = static_group()
    m.join("a1", instance_id="A")
    m.ring("join")
    assert list(m.group.members) == ["a1", "b1"]
    assert m.group.generation == 2


def test_a_rebalance_that_only_absent_static_members_could_complete_waits_on():
    m = static_group()
    m.join(new_id="c")
    m.leave("c")
    m.ring("join")
    assert m.group.state is GroupState.PREPARING
    assert "join" in m.timers


def test_an_administrator_removes_a_static_member_by_its_instance_id():
    m = static_group()
    assert m.leave(("", "B")).members == (("", "B", ErrorCode.NONE),)
    assert list(m.group.members) == ["a1"]
    assert m.leave(("", "C")).members[0][2] == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("timeouts", [(1_000, 2_000), (5_000, 1_000)])
def test_the_most_patient_member_decides_how_long_a_rebalance_may_take(timeouts):
    m = Machine()
    for n, timeout in enumerate(timeouts):
        m.join(new_id=f"m{n}", rebalance_timeout_ms=timeout)
    m.ring("join")
    assert m.timers["sync"].delay_ms == max(timeouts)
