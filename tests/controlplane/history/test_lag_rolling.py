"""What a group's hours and steps say is what its minutes come to, however they were kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.history.lag import rolling, sampling, selectors
from controlplane.history.lag.rows import digest_of
from controlplane.history.models import LagGroup, LagHours, LagMark, LagMinutes
from controlplane.instances.models import Instance
from tests.controlplane.fakes import ManualClock

from .conftest import NOON, move

pytestmark = pytest.mark.django_db
DAY = 86_400
MIDNIGHT = NOON - NOON % DAY
ONE = Instance(id="ins-k3v9x2qa")
figures = st.none() | st.tuples(
    st.sampled_from([0, 0, 0, 1, 7, 2**40]),
    st.none() | st.just(-1) | st.integers(MIDNIGHT - DAY, MIDNIGHT).map(lambda s: 1000 * s + 500),
    st.sampled_from([0, 0, None, 3, 2**44]),
    st.sampled_from([(0, 0), (0, 0), (None, None), (0, 7), (6_000_000, 1)]),
).map(lambda each: (*each[:3], *each[3]))


def group_of(name="billing"):
    return LagGroup.objects.get_or_create(instance=ONE.pk, digest=digest_of(name), defaults={"name": name})[0].pk


def kept(minutes, first):
    """As the sampler does: (records, timestamp, bytes, and what moved) of each minute from the first on; None: not known."""
    group = group_of()
    for number, found in enumerate(minutes):
        if found is not None:
            sampling._written({group: sampling.Minute(*found)}, first + 60 * number, 5)
    return group


def at(moment):
    clock = ManualClock()
    move(clock, moment)
    return clock


def ages(minutes, first):
    """By minute, as a naive reader has it."""
    found = {}
    for number, each in enumerate(minutes):
        if each is not None:
            moment = first + 60 * number
            messages, oldest, size, *moved = each
            age = None if oldest is None else 0.0 if oldest == -1 else moment + 5 - oldest / 1000
            found[moment] = (messages, age, size, *moved)
    return found


def expected(known, start, step_s):
    inside = [figures for moment, figures in known.items() if start <= moment < start + step_s]
    if not inside:
        return (None,) * 8
    messages, seconds = [each[0] for each in inside], [each[1] for each in inside if each[1] is not None]
    sizes = [each[2] for each in inside if each[2] is not None]
    moved = [each[3:] for each in inside if each[3] is not None]
    return (
        round(sum(messages) / len(messages), 1),
        max(messages),
        round(sum(sizes) / len(sizes), 1) if sizes else None,
        max(sizes) if sizes else None,
        round(sum(seconds) / len(seconds), 1) if seconds else None,
        round(max(seconds), 1) if seconds else None,
        *(round(sum(each) / (60 * len(moved)), 3) for each in zip(*moved, strict=True)),
        *(() if moved else (None, None)),
    )


def shown(start, end, step_s, clock):
    found = selectors.lag_get(
        instance=ONE,
        name="billing",
        start=clock.now() - timedelta(seconds=clock.time.timestamp() - start),
        end=clock.now() - timedelta(seconds=clock.time.timestamp() - end),
        step_s=step_s,
        clock=clock,
    )
    columns = [values for series in found.series for values in (series.values, series.maxima) if values]
    return list(zip(*columns, strict=True))


@pytest.mark.timeout(300)  # thousands of rows in each of the examples
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    runs=st.lists(st.tuples(figures, st.integers(1, 150)), min_size=1, max_size=12),
    offset=st.integers(0, 59),
)
def test_minutes_and_hours_come_to_what_all_minutes_come_to(db, runs, offset):
    for model in (LagMinutes, LagHours, LagMark, LagGroup):
        model.objects.all().delete()
    minutes = [each for each, count in runs for _ in range(count)]
    first = MIDNIGHT + 22 * 3600 + 60 * offset
    kept(minutes, first)
    known = ages(minutes, first)
    start = MIDNIGHT + 22 * 3600
    end = start + 3600 * (len(minutes) // 60 + 2)
    clock = at(end + rolling.SETTLED_S)
    rolling.roll_up(clock=clock)
    rolling.roll_up(clock=clock)  # changes nothing
    for step_s in (120, 3600):
        assert shown(start, end, step_s, clock) == [
            expected(known, moment, step_s) for moment in range(start, end, step_s)
        ]
    later = at(start + 20 * DAY)  # only hours are that old
    assert same(shown(start, end, 3600, later), [expected(known, moment, 3600) for moment in range(start, end, 3600)])


def same(found, wanted):
    """But for the last digit, which sums of runs and of minutes round differently."""
    return all(
        a == b or (a is not None and b is not None and abs(a - b) <= 0.11)
        for row, other in zip(found, wanted, strict=True)
        for a, b in zip(row, other, strict=True)
    )


@pytest.mark.parametrize("moved", [(None, None), (0, 0)])
def test_a_day_in_which_everything_is_read_is_one_row(db, moved):
    kept([(0, -1, 0, *moved)] * (24 * 60 + 120), MIDNIGHT)
    rolling.roll_up(clock=at(MIDNIGHT + DAY + 2 * 3600 + rolling.SETTLED_S))
    hours = [((row.at - MIDNIGHT) // 3600, (row.until - MIDNIGHT) // 3600) for row in LagHours.objects.order_by("at")]
    assert hours == [(0, 23), (24, 25)]
    assert LagMinutes.objects.count() == 26


def test_hours_in_which_a_group_that_is_not_behind_read_are_rows_of_their_own(db):
    kept([(0, -1, 0, 600, 600)] * 60 + [(0, -1, 0, 0, 0)] * 120, MIDNIGHT)
    rolling.roll_up(clock=at(MIDNIGHT + 3 * 3600 + rolling.SETTLED_S))
    rows = LagHours.objects.order_by("at")
    assert [((row.until - MIDNIGHT) // 3600, row.moved, row.consumed_sum, row.produced_sum) for row in rows] == [
        (0, 60, 36_000, 36_000), (2, 60, 0, 0),
    ]  # fmt: skip


def test_an_hour_of_before_bytes_were_known_is_shown_and_has_none(db):
    group = group_of()
    LagHours.objects.create(
        group=group,
        at=NOON,
        until=NOON,
        samples=60,
        dated=60,
        messages_sum=60,
        messages_max=1,
        seconds_sum=0,
        seconds_max=0,
    )
    assert shown(NOON, NOON + 3600, 3600, at(NOON + 20 * DAY)) == [(1, 1, None, None, 0, 0, None, None)]


def test_an_hour_is_made_only_when_it_is_over_and_settled(db):
    kept([(5, None, None)] * 20 + [(5, None, 70)] * 40, NOON)
    rolling.roll_up(clock=at(NOON + 3600 + rolling.SETTLED_S - 1))
    assert not LagHours.objects.exists()
    rolling.roll_up(clock=at(NOON + 3600 + rolling.SETTLED_S))
    row = LagHours.objects.get()
    assert (row.samples, row.dated, row.messages_sum, row.seconds_max) == (60, 0, 300, None)
    assert (row.sized, row.size_sum, row.size_max) == (40, 2800, 70)


def test_what_nobody_may_ask_for_is_removed_and_then_the_group(db):
    kept([(5, None, 70)] * 60, NOON)
    rolling.roll_up(clock=at(NOON + 2 * 3600))
    rolling.purge(clock=at(NOON + 15 * DAY))
    assert LagMinutes.objects.exists()
    rolling.purge(clock=at(NOON + 15 * DAY + 3 * 3600))
    assert (LagMinutes.objects.count(), LagHours.objects.count(), LagGroup.objects.count()) == (0, 1, 1)
    rolling.purge(clock=at(NOON + 403 * DAY))
    assert (LagHours.objects.count(), LagGroup.objects.count()) == (0, 0)


def test_minutes_that_are_in_no_hour_yet_are_kept(db):
    kept([(5, None, 70)], NOON)
    rolling.purge(clock=at(NOON + 30 * DAY))
    assert LagMinutes.objects.exists()
    rolling.roll_up(clock=at(NOON + 30 * DAY))
    rolling.purge(clock=at(NOON + 30 * DAY))
    assert not LagMinutes.objects.exists()


@pytest.mark.parametrize("figures", [(5, None, None), (0, -1, 0)])
def test_a_clock_that_was_ahead_leaves_no_hour_unmade_or_half_made(db, figures):
    kept([figures] * 90, NOON)
    rolling.roll_up(clock=at(NOON + 90 * 60 + DAY))
    kept([figures] * 90, NOON + 90 * 60)
    now = at(NOON + 3 * 3600 + rolling.SETTLED_S)
    rolling.roll_up(clock=at(NOON + 100 * 60))
    rolling.roll_up(clock=now)
    assert LagMark.objects.get(pk=rolling.HOURS_MARK).at == NOON + 3 * 3600
    rows = list(LagHours.objects.order_by("at"))
    assert {row.samples for row in rows} == {60}
    assert [hour for row in rows for hour in range(row.at, row.until + 1, 3600)] == [NOON + 3600 * n for n in range(3)]


def test_a_clock_that_was_behind_costs_no_hour(db):
    kept([(5, None, 70)] * 120, NOON)
    rolling.roll_up(clock=at(NOON + 3 * 3600))
    before = list(LagHours.objects.order_by("at").values())
    rolling.roll_up(clock=at(NOON - 500 * DAY))
    rolling.roll_up(clock=at(NOON + 3 * 3600))
    assert list(LagHours.objects.order_by("at").values()) == before
    assert len(before) == 2
