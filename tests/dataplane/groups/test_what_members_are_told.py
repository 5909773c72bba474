"""Whole answers: to a static member that came back to a stable group, to one that is refused, with an assignment."""

from dataclasses import replace

import pytest

from dataplane.groups.events import JoinResult, Reply, StaticStored, SyncResult
from dataplane.groups.model import Group, GroupState, Member
from dataplane.groups.state import handle
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.machine import NO_DELAY, Machine

MEMBERS = {
    name: Member(name, instance, "c", "h", 1, 1, (("range", name.encode()),))
    for name, instance in (("new", "one"), ("other", None))
}
GROUP = Group("g", GroupState.STABLE, 4, "consumer", "range", "new", MEMBERS)


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
    without = replace(GROUP, members={"other": MEMBERS["other"]})
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
