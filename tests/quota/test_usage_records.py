"""What brokers write to `__usage`: counters of a topic, and that all of an hour is told."""

import json

import pytest

from quota.contracts.instance import ContractError
from quota.contracts.usage import HoursComplete, UsageRecord, parse_value

USAGE = UsageRecord(2, "5f0c.3", "2026-11-21T09:00:00Z", "ins-k3v9x2qa", "orders", 81234567, 1234, 99887766)
COMPLETE = HoursComplete(2, "5f0c", "2026-11-21T08:00:00Z", ("a1b2",))


def test_the_records_of_the_documentation():
    assert json.loads(USAGE.key()) == {
        "boot": "5f0c.3", "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa", "topic": "orders",
    }  # fmt: skip
    assert json.loads(COMPLETE.key()) == {"broker": 2, "kind": "complete"}
    assert json.loads(COMPLETE.value()) == {
        "version": 2, "kind": "complete", "broker": 2, "boot": "5f0c", "hour": "2026-11-21T08:00:00Z", "after": ["a1b2"],
    }  # fmt: skip


@pytest.mark.parametrize("record", [USAGE, COMPLETE], ids=["usage", "complete"])
def test_either_kind_is_read_as_it_was_written(record):
    assert parse_value(record.value()) == record


def test_compaction_keeps_what_a_broker_said_last():
    assert HoursComplete(2, "other", "2026-11-21T09:00:00Z").key() == COMPLETE.key()
    assert HoursComplete(3, "5f0c", "2026-11-21T08:00:00Z").key() != COMPLETE.key()


def test_a_reader_of_counters_alone_refuses_what_is_said_of_hours():
    with pytest.raises(ContractError, match="version 2 is newer than 1"):
        UsageRecord.from_value(COMPLETE.value())


@pytest.mark.parametrize(
    "changes",
    [{"kind": "weekly"}, {"after": None}, {"version": 3}, {"version": None}, {"kind": 5}],
)
def test_what_is_not_known_is_refused(changes):
    with pytest.raises(ContractError):
        parse_value(json.dumps(json.loads(COMPLETE.value()) | changes).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"\xff", b'{"version":1}', b'{"version":2,"kind":"complete"}'])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(ContractError):
        parse_value(data)
