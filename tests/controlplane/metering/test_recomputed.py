"""The SQL of an independent check, on raw records in SQLite, beside what the stream's running maxima made of the same records."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from datetime import datetime
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.metering.models import Cap, UsageMaximum
from controlplane.metering.pipeline.recompute import hours_sql, instance_hours_sql, since_sql
from controlplane.metering.selectors import usage_records
from quota.contracts.usage import COUNTERS, INSTANCE_COUNTERS

from .conftest import Row, raised, row
from .test_late_and_repeated_records import streams

pytestmark = pytest.mark.django_db
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
METERED = SimpleNamespace(pk="ins-aaaaaaaa")
FIRST, LAST = "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"


class Raw:
    """`usage_raw` and caps in SQLite, as the job has them in the lake."""

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")
        of_instance = ", ".join(f"{name} INTEGER" for name in INSTANCE_COUNTERS)
        self.connection.execute(
            "CREATE TABLE usage_raw (kind TEXT, broker INTEGER, instance TEXT, boot TEXT, topic TEXT, topic_uuid TEXT,"
            f" booked_hour TEXT, {', '.join(f'{name} INTEGER' for name in COUNTERS)}, {of_instance})"
        )
        self.connection.execute(
            f"CREATE TABLE caps (instance TEXT, boot TEXT, topic TEXT, {', '.join(f'{name} INTEGER' for name in COUNTERS)})"
        )

    def append(self, rows: list[Row], uuid: str | None = None) -> None:
        for instance, boot, topic, hour, broker, *counters in (each[:8] for each in rows):
            self.connection.execute(
                f"INSERT INTO usage_raw (kind, broker, instance, boot, topic, topic_uuid, booked_hour, {', '.join(COUNTERS)})"
                " VALUES ('usage', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (broker, instance, boot, topic, uuid, hour, *counters),
            )

    def cap(self, *values) -> None:
        self.connection.execute("INSERT INTO caps VALUES (?, ?, ?, ?, ?, ?)", values)

    def since(self, start=FIRST, end=LAST) -> str | None:
        return self.connection.execute(since_sql("usage_raw"), {"start": start, "end": end}).fetchone()[0]

    def hours(self, start=FIRST, end=LAST) -> dict[tuple, tuple]:
        """(hour, topic, broker, boot) -> counters, of keys that used anything."""
        about = {"start": start, "end": end, "since": self.since(start, end) or end}
        rows = self.connection.execute(hours_sql("usage_raw", "caps"), about)
        return {
            (hour, topic, broker, boot): tuple(used) for _, boot, topic, hour, broker, _, *used in rows if any(used)
        }


def shown(start=FIRST, end=LAST) -> dict[tuple, tuple]:
    """What the database says of the same hours."""
    rows = usage_records(instance=METERED, start=datetime.fromisoformat(start), end=datetime.fromisoformat(end))
    return {
        (each.hour, each.topic, each.broker, each.boot): used
        for each in rows
        if any(used := tuple(getattr(each, name) for name in COUNTERS))
    }


@QUICK
@given(streams(), st.data())
def test_what_is_recomputed_is_what_the_stream_has_made_of_records_in_any_order_and_twice(written, data):
    UsageMaximum.objects.all().delete()
    raised(data.draw(st.permutations(written)))
    raw = Raw()
    raw.append(data.draw(st.permutations(written + data.draw(st.lists(st.sampled_from(written), max_size=8)))))
    assert raw.hours() == shown()


@QUICK
@given(streams(), st.integers(0, 23), st.integers(1, 24))
def test_any_range_is_recomputed_as_a_part_of_the_whole(written, first, length):
    raw = Raw()
    raw.append(written)
    start = f"2026-05-01T{first:02}:00:00Z"
    end = LAST if first + length > 23 else f"2026-05-01T{first + length:02}:00:00Z"
    assert raw.hours(start, end) == {key: used for key, used in raw.hours().items() if start <= key[0] < end}


@QUICK
@given(streams(), st.sampled_from(["b1", "b2", "b3"]), st.sampled_from(["orders", "clicks"]), st.integers(0, 10**13))
def test_what_operators_have_capped_is_capped_here_as_well(written, boot, topic, most):
    UsageMaximum.objects.all().delete()
    Cap.objects.all().delete()
    cap = (most, None, most)
    Cap.objects.create(
        instance=METERED.pk, boot=boot, topic=topic, **dict(zip(COUNTERS, cap, strict=True)), reason="torn", set_by="a",
        set_at=datetime.fromisoformat(FIRST),
    )  # fmt: skip
    raised(written)
    raw = Raw()
    raw.append(written)
    raw.cap(METERED.pk, boot, topic, *cap)
    assert raw.hours() == shown()


def test_hours_before_a_boot_began_need_not_be_read():
    raw = Raw()
    raw.append([row(METERED.pk, "2026-04-01T10", 1, boot="old"), row(METERED.pk, "2026-05-01T09", 5, boot="new")])
    raw.append([row(METERED.pk, "2026-04-30T09", 4, boot="new"), row(METERED.pk, "2026-05-03T00", 9, boot="later")])
    assert raw.since() == "2026-04-30T09:00:00Z"
    assert raw.since("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z") is None
    assert list(raw.hours().values()) == [(1, 0, 0)]


def test_a_topic_keeps_its_uuid_where_some_records_do_not_have_it():
    raw = Raw()
    raw.append([row(METERED.pk, "2026-05-01T09", 5)])
    raw.append([row(METERED.pk, "2026-05-01T09", 7)], uuid="0Oe5xJ2lQv6b1S3mYkzXWA")
    about = {"start": FIRST, "end": LAST, "since": FIRST}
    ((*_, uuid, produced, _, _),) = raw.connection.execute(hours_sql("usage_raw", "caps"), about).fetchall()
    assert (uuid, produced) == ("0Oe5xJ2lQv6b1S3mYkzXWA", 7)


COUNTED = st.lists(st.tuples(st.sampled_from(["b1", "b2"]), st.integers(0, 23), st.integers(0, 10**9)), max_size=20)


@given(COUNTED)
def test_what_is_counted_of_instances_adds_up_to_the_last_counters(counted):
    raw, last = Raw(), defaultdict(int)
    names = ", ".join(INSTANCE_COUNTERS)
    for boot, hour, more in sorted(counted, key=lambda each: each[1]):
        last[boot] += more
        raw.connection.execute(
            f"INSERT INTO usage_raw (kind, instance, boot, booked_hour, {names}) VALUES ('instance', ?, ?, ?, ?, 0, 0, 0, 0)",
            (METERED.pk, boot, f"2026-05-01T{hour:02}:00:00Z", last[boot]),
        )
    about = {"start": FIRST, "end": LAST, "since": raw.since() or FIRST}
    rows = raw.connection.execute(instance_hours_sql("usage_raw"), about).fetchall()
    assert sum(used[0] for _, _, _, *used in rows) == sum(last.values())
