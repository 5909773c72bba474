"""Members come together, agree, and come together again."""

import pytest

from dataplane.coordination.effects import Gradually, Reply, SetTimer
from dataplane.groups.classic.events import SyncExpired
from dataplane.groups.classic.joining import MAX_PROTOCOLS
from dataplane.groups.classic.model import FOLLOWS, GroupState
from dataplane.groups.classic.state import handle
from dataplane.groups.settings import GroupSettings
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.machine import RANGE, Machine

BOTH = (("sticky", b"s"), ("range", b"r"))


def test_two_members_meet_in_one_generation_and_only_the_leader_sees_both():
    m = Machine()
    a, b = m.join(new_id="a"), m.join(new_id="b")
    assert m.waits(a)
    assert m.waits(b)
    m.ring("join")
    assert (m.replies[a].generation, m.replies[b].generation) == (1, 1)
    assert m.replies[a].leader == m.replies[b].leader == "a"
    assert [member[0] for member in m.replies[a].members] == ["a", "b"]
    assert m.replies[b].members == ()
    assert (m.replies[a].protocol_type, m.replies[a].protocol) == ("consumer", "range")


def test_followers_wait_for_the_leaders_assignment():
    m = Machine()
    m.join(new_id="a"), m.join(new_id="b")
    m.ring("join")
    b = m.sync("b")
    assert m.waits(b)
    a = m.sync("a", assignments={"a": b"0", "b": b"1"})
    assert (m.replies[a].assignment, m.replies[b].assignment) == (b"0", b"1")
    assert m.group.state is GroupState.STABLE


def test_nobody_gets_an_assignment_before_it_is_committed():
    m = Machine()
    m.join(new_id="a"), m.join(new_id="b")
    m.ring("join")
    m.log_is_slow = True
    a, b = m.sync("a", assignments={"a": b"0", "b": b"1"}), m.sync("b")
    assert m.waits(a)
    assert m.waits(b)
    assert m.group.state is GroupState.COMPLETING
    m.commit()
    assert (m.replies[a].assignment, m.replies[b].assignment) == (b"0", b"1")


def test_an_assignment_that_cannot_be_stored_starts_the_rebalance_again():
    m = Machine()
    m.join(new_id="a"), m.join(new_id="b")
    m.ring("join")
    m.log_is_slow = True
    a, b = m.sync("a", assignments={"a": b"0"}), m.sync("b")
    m.commit(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert m.error(a) == m.error(b) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert m.group.state is GroupState.PREPARING
    assert not m.group.assignments


def test_an_assignment_of_a_generation_that_is_over_changes_nothing():
    m = Machine()
    m.join(new_id="a"), m.join(new_id="b")
    m.ring("join")
    m.log_is_slow = True
    a = m.sync("a", assignments={"a": b"0", "b": b"1"})
    c = m.join(new_id="c")
    assert m.error(a) == ErrorCode.REBALANCE_IN_PROGRESS
    m.commit()
    assert m.group.state is GroupState.PREPARING
    assert m.waits(c)


def test_a_late_assignment_of_the_last_generation_is_not_given_to_the_next():
    m = Machine()
    m.join(new_id="a")
    m.ring("join")
    m.log_is_slow = True
    m.sync("a", assignments={"a": b"old"})
    m.join(new_id="b")
    m.join("a")
    assert (m.group.state, m.group.generation) == (GroupState.COMPLETING, 2)
    b = m.sync("b")
    m.commit()
    assert m.group.state is GroupState.COMPLETING
    assert m.waits(b)
    m.sync("a", assignments={"b": b"new"})
    m.commit()
    assert m.group.state is GroupState.STABLE
    assert m.replies[b].assignment == b"new"


def test_a_leader_that_repeats_its_sync_stores_its_assignment_once():
    m = Machine()
    m.join(new_id="a")
    m.ring("join")
    m.log_is_slow = True
    first, second = m.sync("a", assignments={"a": b"0"}), m.sync("a", assignments={"a": b"other"})
    assert len(m.stores) == 1
    assert m.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
    m.commit()
    assert m.replies[second].assignment == b"0"


def test_a_third_member_makes_the_others_join_again():
    m = Machine().stable("a", "b")
    c = m.join(new_id="c")
    assert m.heartbeat("a") == ErrorCode.REBALANCE_IN_PROGRESS
    a = m.join("a")
    assert m.waits(a)
    assert m.waits(c)
    b = m.join("b")
    assert {m.replies[t].generation for t in (a, b, c)} == {2}
    assert [member[0] for member in m.replies[a].members] == ["a", "b", "c"]


def test_members_that_do_not_join_again_in_time_are_dropped():
    m = Machine().stable("a", "b", "c")
    a = m.join("a")
    c = m.join("c")
    assert m.timers["join"].delay_ms == 60_000
    m.ring("join")
    assert m.replies[a].generation == m.replies[c].generation == 2
    assert list(m.group.members) == ["a", "c"]
    assert m.heartbeat("b", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert "session:b" not in m.timers


def test_when_the_leader_dies_another_member_leads():
    m = Machine().stable("a", "b")
    m.ring("session:a")
    assert m.heartbeat("b") == ErrorCode.REBALANCE_IN_PROGRESS
    b = m.join("b")
    assert (m.replies[b].leader, m.replies[b].generation) == ("b", 2)
    assert [member[0] for member in m.replies[b].members] == ["b"]


def test_a_leader_that_does_not_join_again_loses_its_place_to_one_who_did():
    m = Machine().stable("a", "b")
    b = m.join("b", protocols=(("range", b"new topics"),))
    m.ring("join")
    assert m.replies[b].leader == "b"


def test_a_follower_that_joins_again_unchanged_is_told_what_holds():
    m = Machine().stable("a", "b")
    b = m.join("b")
    assert (m.replies[b].generation, m.replies[b].leader, m.replies[b].members) == (1, "a", ())
    assert m.group.state is GroupState.STABLE


def test_a_leader_that_joins_again_starts_a_rebalance():
    m = Machine().stable("a", "b")
    assert m.waits(m.join("a"))
    assert m.group.state is GroupState.PREPARING


def test_a_member_that_repeats_its_join_gets_one_answer_on_each():
    m = Machine().stable("a", "b")
    first = m.join("a")
    second = m.join("a")
    assert m.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
    assert m.waits(second)


def test_a_lost_answer_can_be_asked_for_again_before_the_sync():
    m = Machine()
    m.join(new_id="a"), m.join(new_id="b")
    m.ring("join")
    a = m.join("a")
    assert [member[0] for member in m.replies[a].members] == ["a", "b"]
    assert m.group.generation == 1


def test_the_protocol_that_most_members_prefer_among_the_common_ones_wins():
    m = Machine()
    m.join(new_id="a", protocols=(("range", b""), ("sticky", b"")))
    for new_id in ("b", "c"):
        m.join(new_id=new_id, protocols=(("own", b""), ("sticky", b""), ("range", b"")))
    m.ring("join")
    assert m.group.protocol == "sticky"


def test_a_member_with_no_common_protocol_is_refused():
    m = Machine().stable("a")
    assert m.error(m.join(new_id="b", protocols=(("other", b""),))) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert m.error(m.join(new_id="b", protocols=())) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert m.group.state is GroupState.STABLE


def test_members_that_never_ask_for_their_assignment_are_dropped():
    m = Machine()
    m.join(new_id="a"), m.join(new_id="b")
    m.ring("join")
    m.sync("a", assignments={"a": b"0", "b": b"1"})
    assert m.group.state is GroupState.STABLE
    m.ring("sync")
    assert list(m.group.members) == ["a"]
    assert m.group.state is GroupState.PREPARING


def test_the_time_for_syncs_is_of_one_generation_and_over_when_another_rebalance_begins():
    m = Machine()
    for member_id in ("a", "b"):
        m.join(new_id=member_id)
    m.ring("join")
    assert m.group.state is GroupState.COMPLETING
    m.do(SyncExpired(m.group.generation - 1))
    assert set(m.group.members) == {"a", "b"}
    m.join("a", protocols=BOTH)
    assert m.group.state is GroupState.PREPARING
    m.do(SyncExpired(m.group.generation))
    assert set(m.group.members) == {"a", "b"}


def test_a_rebalance_ends_the_wait_for_syncs_of_the_last_generation():
    m = Machine()
    m.join(new_id="a")
    m.ring("join")
    assert "sync" in m.timers
    m.join(new_id="b")
    assert "sync" not in m.timers


def test_once_all_have_their_assignment_nobody_is_waited_for():
    assert "sync" not in Machine().stable("a", "b").timers


def test_the_first_rebalance_waits_on_while_members_keep_coming():
    m = Machine(GroupSettings(group_initial_rebalance_delay_ms=3_000))
    first = m.join(new_id="a", rebalance_timeout_ms=7_000)
    assert m.timers["join"].delay_ms == 3_000
    m.join(new_id="b", rebalance_timeout_ms=7_000)
    m.ring("join")
    assert m.waits(first)
    assert m.timers["join"].delay_ms == 3_000
    m.ring("join")
    assert m.replies[first].generation == 1


def test_the_first_rebalance_waits_no_longer_than_the_rebalance_timeout():
    m = Machine(GroupSettings(group_initial_rebalance_delay_ms=3_000))
    first, waited_ms = m.join(new_id="a", rebalance_timeout_ms=5_000), 0
    for n in range(2):
        m.join(new_id=f"m{n}", rebalance_timeout_ms=5_000)
        waited_ms += m.timers["join"].delay_ms
        assert m.waits(first)
        m.ring("join")
    assert waited_ms == 5_000
    assert len(m.replies[first].members) == 3


def test_the_first_rebalance_is_over_when_the_rebalance_timeout_is_whoever_came_meanwhile():
    m = Machine(GroupSettings(group_initial_rebalance_delay_ms=3_000))
    first = m.join(new_id="a", rebalance_timeout_ms=3_000)
    m.join(new_id="b", rebalance_timeout_ms=3_000)
    m.ring("join")
    assert len(m.replies[first].members) == 2


def test_in_a_rebalance_of_a_full_group_the_first_to_join_have_the_places():
    m = Machine(GroupSettings(group_initial_rebalance_delay_ms=0, group_max_size=2))
    m.stable("a", "b")
    first = m.join("a")
    newcomer = m.join(new_id="c")
    assert m.waits(newcomer)
    assert m.error(m.join("b")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert m.error(m.join(new_id="d")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    again = m.join("a")  # it has its place
    assert m.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
    m.ring("join")
    assert (m.error(again), m.error(newcomer)) == (ErrorCode.NONE, ErrorCode.NONE)
    assert set(m.group.members) == {"a", "c"}


def test_a_full_group_takes_nobody_else():
    m = Machine(GroupSettings(group_initial_rebalance_delay_ms=0, group_max_size=2))
    m.stable("a", "b")
    assert m.error(m.join(new_id="c")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert m.waits(m.join("a"))


@pytest.mark.parametrize(
    ("state", "follows"),
    [
        ("Empty", {"PreparingRebalance", "Dead"}),
        ("PreparingRebalance", {"CompletingRebalance", "Empty", "Dead"}),
        ("CompletingRebalance", {"Stable", "PreparingRebalance", "Dead"}),
        ("Stable", {"PreparingRebalance", "Dead"}),
        ("Dead", {"Empty"}),
    ],
)
def test_each_state_leads_only_where_the_protocol_says(state, follows):
    assert {s.value for s in FOLLOWS[GroupState(state)]} == follows


def test_ranges_are_what_members_offered():
    assert RANGE[0][0] == "range"
    m = Machine().stable("a", protocols=BOTH)
    assert m.group.protocol == "sticky"
    assert m.group.members["a"].metadata("sticky") == b"s"


def test_a_member_offers_a_bounded_number_of_protocols():
    """Every join looks at the protocols of all members: 20,000 of one held the broker for two seconds."""
    m = Machine()
    many = tuple((f"protocol-{n}", b"") for n in range(MAX_PROTOCOLS + 1))
    assert m.error(m.join(new_id="a", protocols=many)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert m.group.members == {}
    m.join(new_id="a", protocols=many[:-1])
    assert set(m.group.members) == {"a"}


def test_a_session_does_not_run_while_its_member_waits_so_that_it_cannot_end_before_a_gradual_answer():
    machine = Machine().stable("m1", "m2")
    joined = machine.join("m2", protocols=(("range", b"others"),))
    assert machine.waits(joined)
    assert "session:m2" not in machine.timers
    machine.heartbeat("m2")
    assert "session:m2" not in machine.timers
    machine.join("m1")
    assert "session:m2" in machine.timers
    synced = machine.sync("m2")
    assert machine.waits(synced)
    assert "session:m2" not in machine.timers
    machine.sync("m1", assignments={"m1": b"1", "m2": b"2"})
    assert "session:m2" in machine.timers


def test_a_new_member_is_given_up_though_it_waits_and_has_asked_twice():
    machine = Machine().stable("m1")
    machine.join(new_id="m2")
    machine.join("m2")
    assert "session:m2" in machine.timers
    machine.ring("session:m2")
    assert "m2" not in machine.group.members


def test_a_session_begins_before_the_answer_so_that_what_the_member_asks_next_comes_after_it():
    machine = Machine().stable("m1", "m2")
    gradual = []
    perform = Machine.do

    def do(event):
        _, effects = handle(machine.group, event, machine.settings, machine.now_ms)
        gradual.extend(list(effect.effects()) for effect in effects if isinstance(effect, Gradually))
        perform(machine, event)

    machine.do = do
    machine.join("m2", protocols=(("range", b"others"),))
    machine.join("m1")
    machine.sync("m2")
    machine.sync("m1", assignments={"m1": b"1", "m2": b"2"})
    kinds = [[type(effect) for effect in effects] for effects in gradual]
    assert kinds == [[SetTimer, Reply] * 2] * 2
