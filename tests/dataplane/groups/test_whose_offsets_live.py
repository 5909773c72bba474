"""Committed offsets as pure functions: who may commit, what members subscribe to, whose time is over."""

from dataclasses import replace

import pytest

from dataplane.groups.classic.members import Member, Members
from dataplane.groups.classic.model import Group, GroupState
from dataplane.groups.offsets import OFFSETS_PER_PAUSE, GroupOffsets, commit_problem, expired, subscribed_topics
from dataplane.protocol.codec import encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from dataplane.protocol.messages.group_records import OffsetCommitValue
from dataplane.records.steps import run_through

KEY = ("aaaabbbb.orders", 0)
RETENTION_MS = 1_000


def subscription(*topics, version=0):
    return version.to_bytes(2, "big", signed=True) + encode(
        ConsumerProtocolSubscription(topics=topics), max(0, min(version, 3))
    )


def member(number=1, *, metadata=None, instance_id=None):
    metadata = subscription("orders") if metadata is None else metadata
    return Member(f"m{number}", instance_id, "c", "h", 1, 1, (("range", metadata),))


def group_of(*members, state=GroupState.STABLE, generation=4, name="aaaabbbb.readers", **more):
    more = {"protocol_type": "consumer", "protocol": "range", **more}
    return Group(name, state, generation, members=Members.of(members), **more)


EMPTY = group_of(state=GroupState.EMPTY, protocol=None, state_since_ms=500)


# --- who may commit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "generation", "member_id", "instance_id", "error"),
    [
        (GroupState.EMPTY, -1, "", None, ErrorCode.NONE),
        (GroupState.EMPTY, 0, "", None, ErrorCode.UNKNOWN_MEMBER_ID),
        (GroupState.EMPTY, 0, "m9", None, ErrorCode.UNKNOWN_MEMBER_ID),
        (GroupState.STABLE, -1, "", None, ErrorCode.UNKNOWN_MEMBER_ID),
        (GroupState.STABLE, -1, "m1", None, ErrorCode.ILLEGAL_GENERATION),
        (GroupState.STABLE, 0, "m1", None, ErrorCode.ILLEGAL_GENERATION),
        (GroupState.STABLE, 3, "m1", None, ErrorCode.ILLEGAL_GENERATION),
        (GroupState.STABLE, 4, "m1", None, ErrorCode.NONE),
        (GroupState.STABLE, -1, "", "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        (GroupState.PREPARING, 4, "m1", None, ErrorCode.NONE),
        (GroupState.COMPLETING, 4, "m1", None, ErrorCode.REBALANCE_IN_PROGRESS),
        (GroupState.DEAD, -1, "", None, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (GroupState.DEAD, 4, "m1", None, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_who_may_commit(state, generation, member_id, instance_id, error):
    group = EMPTY if state is GroupState.EMPTY else group_of(member(), state=state)
    assert commit_problem(group, generation, member_id, instance_id) == error


def test_whoever_holds_an_instance_id_is_told_what_a_simple_consumer_is_not():
    group = group_of(member(instance_id="one"))
    assert commit_problem(group, -1, "", None) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_problem(group, -1, "", "one") == ErrorCode.FENCED_INSTANCE_ID
    assert commit_problem(group, -1, "m1", "one") == ErrorCode.ILLEGAL_GENERATION


# --- what members subscribe to ----------------------------------------------------------------------------------------


def test_topics_of_all_members_count_under_the_instances_names():
    group = group_of(member(1, metadata=subscription("orders", "events")), member(2, metadata=subscription("bills")))
    assert subscribed_topics(group) == {"aaaabbbb.orders", "aaaabbbb.events", "aaaabbbb.bills"}


def test_a_group_of_the_cluster_has_topics_of_the_cluster():
    assert subscribed_topics(group_of(member(), name="sluice-usage")) == {"orders"}


@pytest.mark.parametrize("version", [-1, 0, 1, 2, 3, 4, 100])
def test_every_version_begins_with_the_topics(version):
    assert subscribed_topics(group_of(member(metadata=subscription("orders", version=version)))) == {"aaaabbbb.orders"}


def test_a_version_0_subscription_ends_with_its_topics_and_a_version_3_one_with_its_rack():
    owned = encode(ConsumerProtocolSubscription(topics=("orders",), rack_id="r"), 3)
    assert subscribed_topics(group_of(member(metadata=b"\x00\x03" + owned))) == {"aaaabbbb.orders"}
    assert subscribed_topics(group_of(member(metadata=b"\x00\x03" + owned[:-3]))) is None
    assert subscribed_topics(group_of(member(metadata=subscription("orders")[:-5]))) is None


@pytest.mark.parametrize(
    ("change", "known"),
    [
        ({"protocol_type": "connect"}, False),
        ({"protocol_type": None}, False),
        ({"protocol": None}, False),
        ({"protocol": None, "members": {}}, True),
        ({"protocol_type": "connect", "members": {}}, False),
    ],
)
def test_of_others_it_cannot_be_known(change, known):
    assert (subscribed_topics(replace(group_of(member()), **change)) is not None) is known


# --- whose time is over -----------------------------------------------------------------------------------------------


def offsets_of(commit_ms=0, expire_ms=-1, key=KEY):
    offsets = GroupOffsets()
    offsets.apply(key, OffsetCommitValue(offset=7, commit_timestamp=commit_ms, expire_timestamp=expire_ms))
    return offsets


def ends_at(group, offsets):
    """The first moment at which its offset is over; None: never."""
    return next((ms for ms in range(-1, 5_000) if run_through(expired(group, offsets, ms, RETENTION_MS))), None)


@pytest.mark.parametrize(
    ("group", "ends_ms"),
    [
        (EMPTY, 500 + RETENTION_MS),
        (replace(EMPTY, state_since_ms=0), 0 + RETENTION_MS),
        (replace(EMPTY, state_since_ms=-1), 700 + RETENTION_MS),  # not known since when: since its commit
        (replace(EMPTY, protocol_type=None), 700 + RETENTION_MS),  # a simple consumer's
        (replace(EMPTY, protocol_type="connect"), 500 + RETENTION_MS),
        (group_of(member()), None),  # it reads the topic
        (group_of(member(metadata=subscription("events"))), 700 + RETENTION_MS),
        (group_of(member(metadata=b"")), None),
        (group_of(member(metadata=subscription("events")), state=GroupState.PREPARING), None),
        (group_of(member(metadata=subscription("events")), protocol_type="connect"), None),
    ],
)
def test_retention_begins_when_the_group_became_empty_or_with_the_commit(group, ends_ms):
    assert ends_at(group, offsets_of(commit_ms=700)) == ends_ms


@pytest.mark.parametrize("expire_ms", [0, 1, 900, 4_000])
def test_a_commit_that_says_when_it_ends_ends_then(expire_ms):
    assert ends_at(EMPTY, offsets_of(commit_ms=700, expire_ms=expire_ms)) == expire_ms


def test_each_is_told_with_the_value_that_was_too_old():
    offsets = offsets_of()
    offsets.apply(("aaaabbbb.bills", 3), OffsetCommitValue(offset=8, expire_timestamp=10**6))
    gone = run_through(expired(EMPTY, offsets, 5_000, RETENTION_MS))
    assert gone == {KEY: offsets.committed[KEY]}


def test_what_is_being_committed_again_lives():
    offsets = offsets_of()
    offsets.begin([KEY])
    assert ends_at(EMPTY, offsets) is None
    offsets.finish([KEY])
    assert ends_at(EMPTY, offsets) == 500 + RETENTION_MS


@pytest.mark.parametrize(("count", "pauses"), [(OFFSETS_PER_PAUSE - 1, 0), (OFFSETS_PER_PAUSE, 1)])
def test_very_many_are_looked_at_with_pauses(count, pauses):
    offsets = GroupOffsets()
    for partition in range(count):
        offsets.apply(("aaaabbbb.orders", partition), OffsetCommitValue(offset=7))
    assert sum(1 for _ in expired(EMPTY, offsets, 5_000, RETENTION_MS)) == pauses


# --- commits under way ------------------------------------------------------------------------------------------------


def test_a_key_is_pending_as_long_as_any_of_its_commits():
    offsets, other = GroupOffsets(), ("t", 1)
    offsets.begin([KEY, other])
    offsets.begin([KEY])
    assert offsets.pending == {KEY: 2, other: 1}
    offsets.finish([KEY, other])
    assert offsets.pending == {KEY: 1}
    assert not offsets.is_empty()
    offsets.finish([KEY])
    assert offsets.is_empty()


def test_a_tombstone_of_nothing_is_nothing():
    offsets = GroupOffsets()
    offsets.apply(KEY, None)
    assert offsets.is_empty()
    offsets.apply(KEY, OffsetCommitValue(offset=7))
    assert not offsets.is_empty()
    offsets.begin([("t", 1), KEY])
    assert offsets.all_keys() == [KEY, ("t", 1)]
    offsets.apply(KEY, None)
    assert offsets.committed == {}


def test_what_is_committed_and_what_is_on_its_way_counts_and_is_had():
    offsets, other = offsets_of(), ("t", 1)
    assert (offsets.count(), offsets.has(KEY), offsets.has(other)) == (1, True, False)
    offsets.begin([other])
    assert (offsets.count(), offsets.has(other), offsets.has(("t", 2))) == (2, True, False)
