"""Heartbeats that are refused, and those that are not although they look late."""

import pytest

from dataplane.groups.settings import ConsumerRules
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.consumer.machine import Machine


@pytest.fixture
def pair():
    """Ana has everything, at epoch 1; Bob waits for his part, at epoch 2."""
    machine = Machine()
    machine.join("ana")
    machine.join("bob")
    return machine


@pytest.mark.parametrize(
    ("member", "epoch", "more", "error"),
    [
        ("ana", 1, {}, ErrorCode.NONE),
        ("ana", 2, {}, ErrorCode.FENCED_MEMBER_EPOCH),  # from the future
        ("bob", 1, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        ("carl", 1, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("carl", -1, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("ana", 1, {"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("ana", -1, {"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_is_heard(pair, member, epoch, more, error):
    assert pair.beat(member, epoch, **more).error == error


def test_a_group_that_does_not_exist_has_no_members():
    machine = Machine()
    assert machine.beat("ana", 1).error == ErrorCode.GROUP_ID_NOT_FOUND
    assert machine.group.is_blank()


def test_a_member_whose_answer_was_lost_is_heard_with_its_epoch_before(pair):
    owned = pair.group.members["ana"].assigned
    pair.beat("ana", 1)
    kept = pair.group.members["ana"].assigned
    assert pair.beat("ana", 1, owned=kept).epoch == 2
    late = pair.beat("ana", 1, owned=kept, topics=("t",), rebalance_timeout_ms=1_000)
    assert (late.error, late.epoch, late.assignment) == (ErrorCode.NONE, 2, kept)
    assert (
        pair.beat("ana", 1, owned=owned).error == ErrorCode.FENCED_MEMBER_EPOCH
    )  # it has what is not its own any more
    assert pair.beat("ana", 1).error == ErrorCode.FENCED_MEMBER_EPOCH  # it does not say what it has


def test_a_group_takes_so_many_members_and_no_more():
    machine = Machine(ConsumerRules(max_size=1))
    assert machine.join("ana").error == ErrorCode.NONE
    assert machine.join("bob").error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert machine.join("ana").error == ErrorCode.NONE


def test_a_join_whose_answer_was_lost_is_the_same_member():
    machine = Machine()
    first = machine.join("ana", instance_id="i")
    again = machine.join("ana", instance_id="i")
    assert (again.error, again.epoch, again.assignment) == (ErrorCode.NONE, first.epoch, first.assignment)
    assert machine.group.epoch == 1


# --- static members ---------------------------------------------------------------------------------------------------


def test_an_instance_id_is_taken_until_its_member_leaves():
    machine = Machine()
    machine.join("ana", instance_id="i")
    assert machine.join("another", instance_id="i").error == ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_is_away_keeps_its_partitions_and_its_successor_gets_them_without_a_new_epoch():
    machine = Machine()
    machine.join("ana", instance_id="i")
    assert machine.beat("ana", -2, instance_id="i").epoch == -2
    joined = machine.join("bob")
    assert joined.assignment == {}  # still Ana's
    epoch = machine.group.epoch
    back = machine.join("ana again", instance_id="i")
    assert back.error == ErrorCode.NONE
    assert machine.group.epoch == epoch
    assert list(machine.group.members) == ["bob", "ana again"]
    assert machine.beat("ana", epoch, instance_id="i").error == ErrorCode.FENCED_INSTANCE_ID
    assert machine.beat("ana", -1, instance_id="i").error == ErrorCode.FENCED_INSTANCE_ID


def test_the_same_process_comes_back():
    machine = Machine()
    had = machine.join("ana", instance_id="i").assignment
    machine.beat("ana", -2, instance_id="i")
    assert machine.beat("ana", 1, instance_id="i").error == ErrorCode.FENCED_MEMBER_EPOCH
    assert machine.join("ana", instance_id="i").assignment == had


def test_a_static_member_that_does_not_come_back_is_given_up():
    machine = Machine()
    machine.join("ana", instance_id="i")
    machine.beat("ana", -2, instance_id="i")
    machine.ring("session:ana")
    assert not machine.group.members
