"""What is counted of whole instances: the same table in any order, hours that add up, and what REST shows of them."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.metering.models import InstanceMaximum
from controlplane.metering.selectors import instance_hours
from quota.contracts.usage import INSTANCE_COUNTERS
from tests.support.usage import instances_raise

pytestmark = pytest.mark.django_db
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
METERED = SimpleNamespace(pk="ins-aaaaaaaa")
START, END = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)


def row(instance: str, hour: int, counters: list[int], *, boot: str = "b1", offset: int = 0) -> tuple[str | int, ...]:
    return (instance, boot, f"2026-05-01T{hour:02}:00:00Z", int(boot[1]), *counters, 0, offset, 0)


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[str | int, ...]]:
    """What brokers wrote: each boot's counters only grow, hours only go on."""
    written: list[tuple[str | int, ...]] = []
    for boot in draw(st.lists(st.sampled_from(["b1", "b2"]), min_size=1, unique=True)):
        hour, counters = 0, [0] * len(INSTANCE_COUNTERS)
        for _ in range(draw(st.integers(1, 6))):
            hour = min(23, hour + draw(st.integers(0, 2)))
            counters = [counter + draw(st.integers(0, 10**12)) for counter in counters]
            written.append(row(METERED.pk, hour, counters, boot=boot, offset=len(written)))
    return written


def table() -> list[tuple[object, ...]]:
    names = [field.name for field in InstanceMaximum._meta.fields if field.name not in ("id", "updated_at_ms")]
    return sorted(InstanceMaximum.objects.values_list(*names))


@QUICK
@given(streams(), st.data())
def test_any_order_with_any_repetitions_ends_in_the_same_table(written, data):
    InstanceMaximum.objects.all().delete()
    for one in written:
        instances_raise([one])
    in_order = table()
    InstanceMaximum.objects.all().delete()
    repeated = written + data.draw(st.lists(st.sampled_from(written), max_size=6))
    instances_raise(data.draw(st.permutations(repeated)))
    assert table() == in_order


@QUICK
@given(streams())
def test_hours_add_up_to_the_last_counters(written):
    InstanceMaximum.objects.all().delete()
    instances_raise(written)
    last = {each[1]: each[4 : 4 + len(INSTANCE_COUNTERS)] for each in written}
    hours = instance_hours(instance=METERED, start=START, end=END).values()
    for place, name in enumerate(INSTANCE_COUNTERS):
        assert sum(getattr(hour, name) for hour in hours) == sum(counters[place] for counters in last.values())


def test_an_hour_shows_them_beside_its_record_bytes(alice, usage):
    instances_raise(
        [
            row(usage.id, 10, [5_000, 700, 12, 2_500, 40]),
            row(usage.id, 10, [100, 0, 1, 500, 0], boot="b2"),
            row("ins-stranger", 10, [9, 9, 9, 9, 9]),
        ]
    )
    url = f"/api/v1/instances/{usage.id}/usage?from=2026-05-01T00:00:00Z&to=2026-05-02"
    ten, eleven = alice.api.get(url).json()["items"]
    names = ("wire_in_bytes", "wire_out_bytes", "requests", "loop_ms", "throttled_ms")
    assert [ten[name] for name in names] == [5_100, 700, 13, 3.0, 40]
    assert ten["produced_bytes"] == 1000
    assert [eleven[name] for name in names] == [None] * 5, "no broker has counted them in that hour"
