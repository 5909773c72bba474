"""What brokers write to `__usage`: counters of a topic, of an instance and of its users, and that all of an hour is told."""

import json

import pytest

from quota.contracts.instance import ContractError
from quota.contracts.usage import (
    COUNTERS,
    INSTANCE_COUNTERS,
    LONGEST_USER,
    NO_USER,
    OTHER_USERS,
    USER_COUNTERS,
    HoursComplete,
    InstanceRecord,
    UsageRecord,
    UserRecord,
    parse_value,
    user_told,
)
from quota.contracts.users import user_name_problem

TOPIC_ID = "0Oe5xJ2lQv6b1S3mYkzXWA"
USAGE = UsageRecord(
    2, "5f0c.3", "2026-11-21T09:00:00Z", "ins-k3v9x2qa", "orders", 81234567, 1234, 99887766, TOPIC_ID, "default"
)
INSTANCE = InstanceRecord(2, "5f0c", "2026-11-21T09:00:00Z", "ins-k3v9x2qa", 5432, 987, 12, 3456, 0, "default")
USER = UserRecord(2, "5f0c.1", "2026-11-21T09:00:00Z", "ins-k3v9x2qa", "alice", 5432, 987, 12, "default")
COMPLETE = HoursComplete(2, "5f0c", "2026-11-21T08:00:00Z", ("a1b2",), "default")

OF_VERSION_1 = (
    b'{"boot":"5f0c.3","broker":2,"consumed_bytes":1234,"hour":"2026-11-21T09:00:00Z","instance":"ins-k3v9x2qa",'
    b'"produced_bytes":81234567,"stored_byte_seconds":99887766,"topic":"orders","version":1}'
)
COMPLETE_BEFORE = (
    b'{"after":["a1b2"],"boot":"5f0c","broker":2,"hour":"2026-11-21T08:00:00Z","kind":"complete","version":2}'
)
"""As brokers of the release before wrote them."""


def test_the_records_of_the_documentation():
    assert json.loads(USAGE.key()) == {
        "boot": "5f0c.3", "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa", "topic": "orders",
    }  # fmt: skip
    assert json.loads(USAGE.value()) == {
        "version": 2, "cluster": "default", "broker": 2, "boot": "5f0c.3", "hour": "2026-11-21T09:00:00Z",
        "instance": "ins-k3v9x2qa", "topic": "orders", "topic_id": TOPIC_ID, "produced_bytes": 81234567,
        "consumed_bytes": 1234, "stored_byte_seconds": 99887766,
    }  # fmt: skip
    assert json.loads(INSTANCE.key()) == {
        "kind": "instance", "boot": "5f0c", "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa",
    }  # fmt: skip
    assert json.loads(INSTANCE.value()) == {
        "version": 2, "kind": "instance", "cluster": "default", "broker": 2, "boot": "5f0c",
        "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa", "wire_in_bytes": 5432, "wire_out_bytes": 987,
        "requests": 12, "loop_us": 3456, "throttled_ms": 0,
    }  # fmt: skip
    assert json.loads(USER.key()) == {
        "kind": "user", "boot": "5f0c.1", "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa", "user": "alice",
    }  # fmt: skip
    assert json.loads(USER.value()) == {
        "version": 2, "kind": "user", "cluster": "default", "broker": 2, "boot": "5f0c.1", "hour": "2026-11-21T09:00:00Z",
        "instance": "ins-k3v9x2qa", "user": "alice", "wire_in_bytes": 5432, "wire_out_bytes": 987, "requests": 12,
    }  # fmt: skip
    assert json.loads(COMPLETE.key()) == {"broker": 2, "kind": "complete"}
    assert json.loads(COMPLETE.value()) == {
        "version": 2, "kind": "complete", "cluster": "default", "broker": 2, "boot": "5f0c",
        "hour": "2026-11-21T08:00:00Z", "after": ["a1b2"],
    }  # fmt: skip


@pytest.mark.parametrize("record", [USAGE, INSTANCE, USER, COMPLETE], ids=["usage", "instance", "user", "complete"])
def test_every_kind_is_read_as_it_was_written(record):
    assert parse_value(record.value()) == record


def test_what_brokers_of_the_release_before_wrote_is_read():
    usage = parse_value(OF_VERSION_1)
    assert usage == UsageRecord.from_value(OF_VERSION_1)
    assert [getattr(usage, name) for name in COUNTERS] == [getattr(USAGE, name) for name in COUNTERS]
    assert (usage.cluster, usage.topic_id) == ("", "")
    assert parse_value(COMPLETE_BEFORE) == HoursComplete(2, "5f0c", "2026-11-21T08:00:00Z", ("a1b2",))


def test_a_row_keeps_its_identity_over_versions():
    """What an older boot left is told by a newer release: with the same key, or it would count twice."""
    assert parse_value(OF_VERSION_1).key() == USAGE.key()


def test_usage_of_an_instance_is_no_topics():
    topics = {
        UsageRecord(2, "5f0c", INSTANCE.hour, INSTANCE.instance, name, 0, 0, 0).key() for name in ("", "instance")
    }
    assert INSTANCE.key() not in topics
    assert not set(COUNTERS) & set(INSTANCE_COUNTERS)


def test_usage_of_a_user_is_no_instances_nor_topics():
    others = {INSTANCE.key(), UsageRecord(2, USER.boot, USER.hour, USER.instance, USER.user, 0, 0, 0).key()}
    assert USER.key() not in others
    assert set(USER_COUNTERS) < set(INSTANCE_COUNTERS)


@pytest.mark.parametrize("user", [NO_USER, OTHER_USERS, 'a"b\\', "Zoë", "\N{GRINNING FACE}" * LONGEST_USER])
def test_a_users_name_comes_back_as_it_was(user):
    record = UserRecord(2, "5f0c", USER.hour, USER.instance, user, 1, 2, 3)
    assert parse_value(record.value()) == record
    assert len(record.value()) < 4096, "of which 64 go in a request"


@pytest.mark.parametrize("name", ["alice", "User:alice", "CN=app,O=Sea", "x" * LONGEST_USER, "Zoë"])
def test_a_name_that_a_user_can_have_is_told_as_it_is(name):
    assert user_told(name) == name


@pytest.mark.parametrize(
    "name", [NO_USER, OTHER_USERS, "ANONYMOUS", "x" * 256, "x" * 1024, "nul\0", "\ud800", "two\nlines"]
)
def test_any_other_is_told_by_its_beginning_and_a_digest_and_is_never_a_reserved_one(name):
    told = user_told(name)
    assert user_name_problem(told) is None
    assert user_told(told) == told
    assert told.startswith(name[:3].split("\n")[0].rstrip("\0\ud800"))
    assert told not in (NO_USER, OTHER_USERS, user_told(name + "!"))


def test_compaction_keeps_what_a_broker_said_last():
    assert HoursComplete(2, "other", "2026-11-21T09:00:00Z").key() == COMPLETE.key()
    assert HoursComplete(3, "5f0c", "2026-11-21T08:00:00Z").key() != COMPLETE.key()


@pytest.mark.parametrize("record", [COMPLETE, INSTANCE, USER], ids=["complete", "instance", "user"])
def test_a_reader_of_topics_alone_refuses_the_other_kinds(record):
    with pytest.raises(ContractError, match=r"of the kind '\w+', not of a topic"):
        UsageRecord.from_value(record.value())


@pytest.mark.parametrize("record", [USAGE, INSTANCE, USER, COMPLETE], ids=["usage", "instance", "user", "complete"])
def test_what_a_newer_release_writes_is_refused(record):
    newer = json.dumps(json.loads(record.value()) | {"version": 3}).encode()
    with pytest.raises(ContractError, match="version 3"):
        parse_value(newer)


@pytest.mark.parametrize(
    "changes",
    [{"kind": "weekly"}, {"after": None}, {"version": 1}, {"version": None}, {"kind": 5}],
)
def test_what_is_not_known_is_refused(changes):
    with pytest.raises(ContractError):
        parse_value(json.dumps(json.loads(COMPLETE.value()) | changes).encode())


@pytest.mark.parametrize("missing", ["cluster", "user", "requests"])
def test_a_record_of_a_user_has_all_of_its_members(missing):
    document = json.loads(USER.value())
    del document[missing]
    with pytest.raises(ContractError, match=missing):
        parse_value(json.dumps(document).encode())


@pytest.mark.parametrize("missing", ["cluster", "topic_id", "topic", "produced_bytes"])
def test_a_record_of_version_2_has_all_of_its_members(missing):
    document = json.loads(USAGE.value())
    del document[missing]
    with pytest.raises(ContractError, match=missing):
        parse_value(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"\xff", b'{"version":1}', b'{"version":2,"kind":"complete"}'])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(ContractError):
        parse_value(data)
