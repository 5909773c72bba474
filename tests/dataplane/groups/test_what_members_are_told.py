"""Whole answers: to a static member that came back to a stable group, to one that is refused, with an assignment."""

from dataclasses import replace

import pytest

from dataplane.coordination.effects import Reply
from dataplane.groups.classic.events import (
    JoinResult,
    LeaveResult,
    StaticStored,
    SyncResult,
)
from dataplane.groups.classic.members import Member, Members
from dataplane.groups.classic.model import Group, GroupState
from dataplane.groups.classic.rebalance import Draft, drop, drop_all
from dataplane.groups.classic.sharing import SharedMap
from dataplane.groups.classic.state import handle
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.machine import NO_DELAY, Machine, one_by_one

MEMBERS = {
    name: Member(name, instance, "c", "h", 1, 1, (("range", name.encode()),))
    for name, instance in (("new", "one"), ("other", None))
}
GROUP = Group("g", GroupState.STABLE, 4, "consumer", "range", "new", Members.of(MEMBERS.values()))

TAKING_OUT = (drop, lambda draft, member: drop_all(draft, [member]))


def told(group=GROUP, **changes):
    stored = replace(StaticStored(7, "new", "old", True), **changes)
    _, effects = handle(group, stored, NO_DELAY, 1_000)
    (reply,) = [effect for effect in effects if isinstance(effect, Reply)]
    assert reply.token == 7
    return reply.result


def test_a_leader_that_can_skip_the_assignment_sees_the_members_and_is_told_to():
    answer = told()
    assert (answer.error, answer.generation, answer.leader, answer.member_id) == (ErrorCode.NONE, 4, "new", "new")
    assert answer.skip_assignment is True
    assert {row[0] for row in answer.members} == {"new", "other"}


def test_one_that_cannot_is_told_of_the_old_leader_whom_nobody_is():
    answer = told(can_skip_assignment=False)
    assert (answer.leader, answer.skip_assignment, answer.members) == ("old", False, ())


def test_where_nobody_led_the_leader_has_no_name():
    assert told(can_skip_assignment=False, old_leader=None).leader == ""


def test_who_does_not_lead_sees_nobody_and_skips_nothing():
    answer = told(replace(GROUP, leader="other"))
    assert (answer.leader, answer.skip_assignment, answer.members) == ("other", False, ())


def test_what_could_not_be_stored_is_an_error_without_an_id():
    assert told(error=ErrorCode.NOT_COORDINATOR) == JoinResult(ErrorCode.NOT_COORDINATOR, "")


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR])
def test_who_is_gone_meanwhile_is_unknown(error):
    without = replace(GROUP, members=Members.of([MEMBERS["other"]]))
    assert told(without, error=error) == JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_a_join_that_is_refused_names_who_asked():
    machine = Machine()
    asked = machine.join("nobody")
    assert machine.replies[asked] == JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, "nobody")


def test_an_assignment_says_of_which_protocol_it_is():
    machine = Machine()
    machine.join(new_id="m1")
    machine.ring("join")
    synced = machine.sync("m1", assignments={"m1": b"all"})
    assert machine.replies[synced] == SyncResult(ErrorCode.NONE, "consumer", "range", b"all")


@pytest.mark.parametrize("take_out", TAKING_OUT, ids=["alone", "with others"])
def test_whoever_is_taken_out_while_it_waits_is_told_that_it_is_unknown(take_out):
    waiting = {"joining": SharedMap.of([("other", 1)]), "syncing": SharedMap.of([("other", 2)])}
    draft = Draft(replace(GROUP, **waiting), NO_DELAY, 1_000)
    take_out(draft, MEMBERS["other"])
    assert [effect for effect in one_by_one(draft.effects) if isinstance(effect, Reply)] == [
        Reply(1, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, "")),
        Reply(2, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID)),
    ]
    group = draft.group
    assert (list(group.members), group.leader, group.waits("other")) == (["new"], "new", False)


@pytest.mark.parametrize("take_out", TAKING_OUT, ids=["alone", "with others"])
@pytest.mark.parametrize(("gone", "leader"), [("first", "second"), ("second", "first"), ("third", "second")])
def test_who_leads_goes_on_leading_when_another_is_taken_out_and_after_him_the_first_leads(take_out, gone, leader):
    members = {name: Member(name, None, "c", "h", 1, 1, (("range", b""),)) for name in ("first", "second", "third")}
    draft = Draft(replace(GROUP, members=Members.of(members.values()), leader="second"), NO_DELAY, 1_000)
    take_out(draft, members[gone])
    assert draft.group.leader == leader
    assert set(draft.group.members) == members.keys() - {gone}


def test_nobody_leads_where_nobody_is_left():
    draft = Draft(replace(GROUP, members=Members.of([MEMBERS["new"]])), NO_DELAY, 1_000)
    drop(draft, MEMBERS["new"])
    assert (draft.group.leader, draft.group.members) == (None, {})
    assert draft.group.select_protocol() is None


def stable():
    machine = Machine()
    machine.join(new_id="m1")
    machine.ring("join")
    machine.sync("m1", assignments={"m1": b"all"})
    return machine


def test_a_group_that_everybody_left_has_no_leader_and_no_protocol():
    machine = stable()
    machine.leave("m1")
    group = machine.group
    assert (group.state, group.leader, group.protocol, group.initial) == (GroupState.EMPTY, None, None, None)


def test_a_member_that_joins_again_has_the_times_that_it_says_now():
    machine = stable()
    machine.join("m1", session_timeout_ms=12_000, rebalance_timeout_ms=90_000)
    member = machine.group.members["m1"]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (12_000, 90_000)


def test_the_first_rebalance_is_over_when_it_is_complete():
    assert stable().group.initial is None


def test_nobody_leaves_without_a_name():
    machine = stable()
    left = machine.leave(("", None))
    assert left == LeaveResult(ErrorCode.NONE, (("", None, ErrorCode.UNKNOWN_MEMBER_ID),))
    assert list(machine.group.members) == ["m1"]
