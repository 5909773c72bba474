"""Late, repeated and out-of-order records change no total: the upsert and the differences, on whatever was sent."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.metering.models import UsageMaximum
from controlplane.metering.selectors import usage_hours, usage_records, usage_total

from .conftest import Row, raised, row

pytestmark = pytest.mark.django_db
START, END = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)
METERED = SimpleNamespace(pk="ins-aaaaaaaa")
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def streams(draw: st.DrawFn) -> list[Row]:
    """What brokers wrote, in order: each boot's counters only grow, hours only go on."""
    written: list[Row] = []
    for boot in draw(st.lists(st.sampled_from(["b1", "b2", "b3"]), min_size=1, unique=True)):
        for topic in draw(st.lists(st.sampled_from(["orders", "clicks"]), min_size=1, unique=True)):
            hour, counters = 0, [0, 0, 0]
            for _ in range(draw(st.integers(1, 6))):
                hour = min(23, hour + draw(st.integers(0, 2)))
                counters = [counter + draw(st.integers(0, 10**12)) for counter in counters]
                produced, consumed, stored = counters
                written.append(
                    row(
                        METERED.pk, f"2026-05-01T{hour:02d}", produced, boot=boot, topic=topic, consumed=consumed,
                        stored=stored, broker=int(boot[1]), partition=int(boot[1]), offset=len(written),
                    )
                )  # fmt: skip
    return written


def table() -> list[tuple[object, ...]]:
    names = [field.name for field in UsageMaximum._meta.fields if field.name not in ("id", "updated_at_ms")]
    return sorted(UsageMaximum.objects.values_list(*names))


@QUICK
@given(streams(), st.data())
def test_any_order_with_any_repetitions_ends_in_the_same_table(written, data):
    UsageMaximum.objects.all().delete()
    raised(written)
    in_order = table()
    UsageMaximum.objects.all().delete()
    repeated = written + data.draw(st.lists(st.sampled_from(written), max_size=10))
    raised(data.draw(st.permutations(repeated)))
    assert table() == in_order


@QUICK
@given(streams())
def test_hours_add_up_to_the_last_counters(written):
    UsageMaximum.objects.all().delete()
    raised(written)
    last = {(boot, topic): counters for _, boot, topic, _, _, *counters in (each[:8] for each in written)}
    hours = usage_hours(instance=METERED, start=START, end=END)
    assert sum(hour.produced_bytes for hour in hours) == sum(produced for produced, _, _ in last.values())
    assert sum(hour.consumed_bytes for hour in hours) == sum(consumed for _, consumed, _ in last.values())
    assert sum(hour.stored_byte_seconds for hour in hours) == sum(stored for _, _, stored in last.values())


@QUICK
@given(streams(), st.integers(0, 24))
def test_a_range_cut_in_two_sees_every_hour_once_and_the_same(written, cut):
    UsageMaximum.objects.all().delete()
    raised(written)
    middle = END if cut == 24 else START.replace(hour=cut)
    halves = usage_hours(instance=METERED, start=START, end=middle) + usage_hours(
        instance=METERED, start=middle, end=END
    )
    assert halves == usage_hours(instance=METERED, start=START, end=END)


@QUICK
@given(streams(), st.integers(0, 23), st.integers(0, 23))
def test_the_total_of_a_range_is_the_sum_of_its_hours(written, first, last):
    UsageMaximum.objects.all().delete()
    raised(written)
    about = {
        "instance": METERED,
        "start": START.replace(hour=min(first, last)),
        "end": START.replace(hour=max(first, last)),
    }
    hours = usage_hours(**about)
    assert usage_total(**about) == (
        sum(hour.produced_bytes for hour in hours),
        sum(hour.consumed_bytes for hour in hours),
        sum(hour.stored_byte_seconds for hour in hours),
    )


@QUICK
@given(streams())
def test_records_behind_an_hour_add_up_to_it(written):
    UsageMaximum.objects.all().delete()
    raised(written)
    sums: dict[str, int] = defaultdict(int)
    for record in usage_records(instance=METERED, start=START, end=END):
        sums[record.hour] += record.produced_bytes
    assert sums == {hour.hour: hour.produced_bytes for hour in usage_hours(instance=METERED, start=START, end=END)}


def test_the_row_names_the_record_that_carried_the_maximum():
    raised(
        [row(METERED.pk, "2026-05-01T10", produced, offset=offset) for offset, produced in ((5, 10), (6, 30), (4, 20))]
    )
    raised([row(METERED.pk, "2026-05-01T10", 30, offset=8), row(METERED.pk, "2026-05-01T10", 30, offset=7)])
    stored = UsageMaximum.objects.get()
    assert (stored.produced_bytes, stored.source_offset) == (30, 8)


def test_a_late_record_of_an_earlier_hour_moves_bytes_between_hours_and_keeps_the_sum():
    raised([row(METERED.pk, "2026-05-01T10", 100), row(METERED.pk, "2026-05-01T11", 500)])
    assert [hour.produced_bytes for hour in usage_hours(instance=METERED, start=START, end=END)] == [100, 400]
    raised([row(METERED.pk, "2026-05-01T10", 300)])
    assert [hour.produced_bytes for hour in usage_hours(instance=METERED, start=START, end=END)] == [300, 200]


def test_the_open_hour_is_marked():
    raised([row(METERED.pk, "2026-05-01T10", 100), row(METERED.pk, "2026-05-01T11", 500)])
    now = datetime(2026, 5, 1, 11, 59, tzinfo=UTC)
    assert [hour.so_far for hour in usage_hours(instance=METERED, start=START, end=END, now=now)] == [False, True]
    later = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert [hour.so_far for hour in usage_hours(instance=METERED, start=START, end=END, now=later)] == [False, False]
