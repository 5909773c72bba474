"""What the log says of a group becomes the group: every member of it, and what is not durable as at the beginning."""

from dataclasses import replace

import pytest

from dataplane.groups.classic.members import Member, Members
from dataplane.groups.classic.model import Group, GroupState, durable_value
from dataplane.groups.classic.sharing import SharedMap
from dataplane.groups.classic.state import apply
from dataplane.protocol.messages.group_records import GroupMetadataValue, MemberMetadata

LOADED = MemberMetadata(
    member_id="m1",
    group_instance_id="one",
    client_id="client",
    client_host="/10.0.0.9",
    rebalance_timeout=60_000,
    session_timeout=10_000,
    subscription=b"topics",
    assignment=b"all",
)
VALUE = GroupMetadataValue(
    protocol_type="consumer", generation=4, protocol="range", leader="m1", current_state_timestamp=99, members=(LOADED,)
)
MEMBER = Member("m1", "one", "client", "/10.0.0.9", 60_000, 10_000, (("range", b"topics"),))


def test_a_group_is_loaded_with_all_its_members_have():
    assert apply(Group("g"), VALUE) == Group(
        *("g", GroupState.STABLE, 4, "consumer", "range", "m1", {"m1": MEMBER}),
        assignments={"m1": b"all"},
        state_since_ms=99,
    )


def test_a_loaded_group_is_written_as_it_was():
    assert durable_value(apply(Group("g"), VALUE)) == VALUE


def test_nothing_is_under_way_in_a_group_that_was_loaded():
    loaded = apply(Group("g", storing=True), VALUE)
    assert loaded.storing is False
    assert not any(loaded.waits(name) or loaded.is_new(member) for name, member in loaded.members.items())


def test_without_members_it_is_empty_and_has_no_protocol():
    loaded = apply(Group("g"), replace(VALUE, members=(), protocol=None, protocol_type="", leader=None))
    assert (loaded.state, loaded.protocol_type, loaded.protocol) == (GroupState.EMPTY, None, None)


@pytest.mark.parametrize(("written", "loaded"), [(-1, 10_000), (0, 0), (1, 1)])
def test_a_rebalance_timeout_from_before_there_was_one_is_the_session_timeout(written, loaded):
    value = replace(VALUE, members=(replace(LOADED, rebalance_timeout=written),))
    assert apply(Group("g"), value).members["m1"].rebalance_timeout_ms == loaded


def test_a_member_that_is_known_keeps_its_connection_and_offers():
    known = replace(MEMBER, protocols=(("sticky", b""), ("range", b"topics")))
    group = apply(Group("g", members=Members.of([known]), syncing=SharedMap.of([("m1", 7)])), VALUE)
    assert (dict(group.members), group.assignment("m1"), dict(group.syncing)) == ({"m1": known}, b"all", {"m1": 7})


@pytest.mark.parametrize(
    "change",
    [
        {"subscription": b"other topics"},
        {"session_timeout": 11_000},
        {"rebalance_timeout": 61_000},
        {"client_id": "renamed"},
        {"client_host": "/10.0.0.10"},
        {"group_instance_id": "two"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_of_several_records_of_a_group_the_last_says_what_a_member_is(change):
    last = replace(VALUE, generation=5, members=(replace(LOADED, **change),))
    assert durable_value(apply(apply(Group("g"), VALUE), last)) == last


def test_members_that_the_log_does_not_name_are_not_there_and_those_that_it_names_are_in_its_order():
    others = Members.of([replace(MEMBER, member_id="m2", instance_id=None), MEMBER])
    value = replace(VALUE, members=(LOADED, replace(LOADED, member_id="m3", assignment=b"none")))
    group = apply(Group("g", members=others), value)
    assert [(name, group.assignment(name)) for name in group.members] == [("m1", b"all"), ("m3", b"none")]
    assert group.members["m1"] is MEMBER


def test_a_member_without_a_protocol_offers_one_without_a_name():
    assert apply(Group("g"), replace(VALUE, protocol=None)).members["m1"].protocols == (("", b"topics"),)
