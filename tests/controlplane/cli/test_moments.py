"""Moments and lengths of time as people type them: in an emergency nobody computes milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.cli.values import later, ms_of, since
from tests.controlplane.alarms.rows import alarm_row
from tests.controlplane.fakes import FakeGroup

NOW = datetime(2026, 11, 21, 9, 0, 7, tzinfo=UTC)
NOW_MS = 1_795_251_607_000


@pytest.fixture
def orders(ok, instance, admin):
    """A topic with a record of two hours ago and one of now; its name as brokers have it."""
    ok("topic", "create", instance.name, "orders", "--partitions", 1, "--replication-factor", 1)
    topic = f"{instance.id.removeprefix('ins-')}.orders"
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    admin.messages.write(topic, 0, b"old", timestamp_ms=now_ms - 2 * 3_600_000)
    admin.messages.write(topic, 0, b"new", timestamp_ms=now_ms)
    return topic


@pytest.mark.parametrize(
    ("typed", "ms"),
    [
        ("-90s", NOW_MS - 90_000),
        ("-1h", NOW_MS - 3_600_000),
        ("-7d", NOW_MS - 7 * 86_400_000),
        ("2026-11-21", NOW_MS - (9 * 3600 + 7) * 1000),
        ("2026-11-21T09:00:07.250Z", NOW_MS + 250),
        ("2026-11-21T10:00:07+01:00", NOW_MS),
        ("2026-11-21T09:00:07", NOW_MS),
        ("1969-12-31T23:59:59.9995Z", -1),
    ],
)
def test_a_moment_in_milliseconds(typed, ms):
    assert ms_of(typed, NOW) == ms


@pytest.mark.parametrize("typed", ["yesterday", "1h", "-1w", "-", "", "-1", "-999999999d", "1795251607000"])
def test_what_is_no_moment_is_said(typed):
    with pytest.raises(ValueError, match="must be ago, such as -1h, or a date or RFC 3339"):
        ms_of(typed, NOW)


def test_a_length_from_now():
    assert later("4h", NOW) == "2026-11-21T13:00:07+00:00"
    for typed in ("-4h", "4", "4 h", "", "soon", "999999999d"):
        with pytest.raises(ValueError, match=r"must be a length such as|is too long"):
            later(typed, NOW)


def test_what_is_not_ago_goes_to_the_service_as_it_was_typed():
    assert [since(typed, NOW) for typed in ("-1h", "1h", "-999999999d", "-x")] == [
        "2026-11-21T08:00:07+00:00", "1h", "-999999999d", "-x"
    ]  # fmt: skip


def test_offsets_go_to_a_moment(ok, as_alice, instance, admin, orders):
    admin.groups.found[f"{instance.id.removeprefix('ins-')}.readers"] = FakeGroup({(orders, 0): 2})
    reset = ("group", "reset-offsets", instance.name, "readers", "--dry-run", "-o", "json")

    def moved(*words):
        (partition,) = ok(*reset, *words).json["changes"]["partitions"][1]
        return partition["offset"]

    early = datetime.now(UTC) - timedelta(hours=3)
    assert moved("--time", "-1h") == moved("--to", "timestamp", "--time", "-1h") == 1
    assert moved("--time", early.isoformat()) == 0
    assert moved("--to", "timestamp", "--value", int(early.timestamp() * 1000)) == 0
    ok("group", "reset-offsets", instance.name, "readers", "--time", "-1h", "--yes")
    assert admin.groups.found[f"{instance.id.removeprefix('ins-')}.readers"].offsets == {(orders, 0): 1}
    for wrong in (("--time", "-1h", "--value", 5), ("--time", "-1h", "--to", "earliest"), ("--time", "soon"), ()):
        assert as_alice(*reset, *wrong).status == 2, wrong


def test_messages_from_a_moment_on(ok, as_alice, instance, orders):
    listing = ("message", "list", instance.name, "orders", "-o", "json")
    assert [item["offset"] for item in ok(*listing, "--from", "-1h").json["items"]] == [1]
    assert [item["offset"] for item in ok(*listing, "--from", "-3h").json["items"]] == [0, 1]
    assert as_alice(*listing, "--from", "-1h", "--timestamp-ms", 5).status == 2
    assert as_alice(*listing, "--from", "soon").status == 2


def test_a_message_of_a_moment(ok, as_alice, instance, admin, orders):
    produce = ("message", "produce", instance.name, "orders", "--value", "x")
    ok(*produce, "--time", "2026-01-02T03:04:05Z")
    shown = ok("message", "show", instance.name, "orders", 0, 2, "-o", "json").json
    assert shown["timestamp_ms"] == 1_767_323_045_000
    assert as_alice(*produce, "--time", "-1h", "--timestamp-ms", 5).status == 2


def test_an_alarm_and_all_of_them_are_silent_for_a_time(ok, as_alice, instance):
    alarm = alarm_row(instance, "alm-000000000001").id
    soon = datetime.now(UTC) + timedelta(hours=4)

    def is_soon(text):
        return abs(datetime.fromisoformat(text) - soon) < timedelta(minutes=5)

    assert is_soon(ok("alarm", "silence", instance.name, alarm, "--for", "4h", "-o", "json").json["silenced_until"])
    ok("alarm", "silence", instance.name, alarm, "--end")
    (item,) = ok("alarm", "silence-all", instance.name, "--for", "240m", "-o", "json").json["items"]
    assert is_soon(item["silenced_until"])
    until = soon.isoformat()
    for words in ((), ("--for", "4h", "--until", until), ("--for", "4h", "--end"), ("--for", "-4h"), ("--for", "99d")):
        for command in (("alarm", "silence", instance.name, alarm), ("alarm", "silence-all", instance.name)):
            assert as_alice(*command, *words).status != 0, words
