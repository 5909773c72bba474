"""What the log says of a group becomes the group: every member of it, and what is not durable as at the beginning."""

from dataclasses import replace

import pytest

from dataplane.groups.classic.members import Member, Members
from dataplane.groups.classic.model import Group, GroupState, durable_value
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
MEMBER = Member("m1", "one", "client", "/10.0.0.9", 60_000, 10_000, (("range", b"topics"),), b"all")


def test_a_group_is_loaded_with_all_its_members_have():
    assert apply(Group("g"), VALUE) == Group(
        "g", GroupState.STABLE, 4, "consumer", "range", "m1", {"m1": MEMBER}, state_since_ms=99
    )


def test_a_loaded_group_is_written_as_it_was():
    assert durable_value(apply(Group("g"), VALUE)) == VALUE


def test_nothing_is_under_way_in_a_group_that_was_loaded():
    loaded = apply(Group("g", storing=True), VALUE)
    assert loaded.storing is False
    assert not any(member.waits or member.is_new or member.needs_sync for member in loaded.members.values())


def test_without_members_it_is_empty_and_has_no_protocol():
    loaded = apply(Group("g"), replace(VALUE, members=(), protocol=None, protocol_type="", leader=None))
    assert (loaded.state, loaded.protocol_type, loaded.protocol) == (GroupState.EMPTY, None, None)


@pytest.mark.parametrize(("written", "loaded"), [(-1, 10_000), (0, 0), (1, 1)])
def test_a_rebalance_timeout_from_before_there_was_one_is_the_session_timeout(written, loaded):
    value = replace(VALUE, members=(replace(LOADED, rebalance_timeout=written),))
    assert apply(Group("g"), value).members["m1"].rebalance_timeout_ms == loaded


def test_a_member_that_is_known_keeps_its_connection_and_offers():
    known = replace(MEMBER, awaiting_sync=7, protocols=(("range", b"new"), ("sticky", b"")), assignment=b"")
    assert apply(Group("g", members=Members.of([known])), VALUE).members["m1"] == replace(known, assignment=b"all")


def test_a_member_without_a_protocol_offers_one_without_a_name():
    assert apply(Group("g"), replace(VALUE, protocol=None)).members["m1"].protocols == (("", b"topics"),)
