"""Minutes and hours come to what all samples come to, in whatever order, portions and repetitions they were made."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.history import forgetting, services
from controlplane.history.models import Hour, Minute, RolledUp, Sample
from controlplane.quotas.models import RecordedInterval
from tests.controlplane.fakes import ManualClock

from . import plain
from .conftest import MIB, NOON, forget, keep, keep_waits, move, rows_of, sample

pytestmark = pytest.mark.django_db
NAMES = ("ins-k3v9x2qa", "ins-another1")
SPAN_S = 3 * 3600
flows = st.integers(0, 2**40)
limits = st.none() | st.integers(0, 2**40)
moments = st.integers(0, SPAN_S // 10 - 1).map(lambda number: NOON + 10 * number)
samples = st.builds(
    sample,
    moments,
    st.sampled_from(NAMES),
    produce_bytes_per_s=flows,
    produce_limit_bytes_per_s=limits,
    consume_bytes_per_s=flows,
    consume_allocated_bytes_per_s=limits,
    storage_used_bytes=st.integers(0, 2**49),
    connections=st.integers(0, 2**31 - 1),
)
waits = st.builds(
    lambda name, direction, at, tenths, share: (
        name, direction, 1000 * NOON + 100 * at, 1000 * NOON + 100 * (at + tenths), 100 * tenths * share // 100,
    ),
    st.sampled_from(NAMES),
    st.sampled_from(["produce", "consume"]),
    st.integers(0, SPAN_S * 10),
    st.integers(1, 600),
    st.integers(0, 100),
)  # fmt: skip


def of_one_each(found):
    """The first sample of a moment counts, and one interval of a start."""
    return list({(each["instance"], each["at"]): each for each in reversed(found)}.values())


def expected(all_samples, all_waits, until):
    # An hour is made when its minutes have been: both are over at the same moment.
    return plain.steps(all_samples, all_waits, 60, until), plain.steps(all_samples, all_waits, 3600, until)


def rolled():
    return rows_of(Minute), rows_of(Hour)


def roll_up_to(clock, at):
    move(clock, at)
    services.roll_up(clock=clock)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(samples, max_size=40), st.lists(waits, max_size=6), st.lists(st.integers(0, SPAN_S), max_size=4), st.data()
)
def test_steps_come_to_what_all_samples_come_to(all_samples, all_waits, stops, data):
    forget()
    all_samples = of_one_each(all_samples)
    all_waits = list({each[:3]: each for each in all_waits}.values())
    clock = ManualClock()
    come = 0
    ordered = sorted(all_samples, key=lambda each: each["at"])
    for stop in sorted(stops):  # now and then, as a worker that is sometimes away does
        at = NOON + stop
        there = sum(each["at"] < at for each in ordered)
        recent = sum(at - 240 <= each["at"] < at for each in ordered)
        late = data.draw(st.integers(0, recent))  # that a slow worker brings when the minute has been rolled up
        until = max(come, there - late)
        keep(ordered[come:until])
        come = until
        keep_waits(each for each in all_waits if each[3] <= 1000 * at)
        roll_up_to(clock, at)
        keep(ordered[come:there])
        come = max(come, there)
        roll_up_to(clock, at + 60)
    keep(ordered[come:])
    keep_waits(all_waits)
    end = NOON + SPAN_S + 900
    roll_up_to(clock, end)
    assert rolled() == expected(all_samples, all_waits, end)
    services.roll_up(clock=clock)
    assert rolled() == expected(all_samples, all_waits, end)


def test_a_minute_is_made_once_it_is_over(at_noon):
    keep([sample(NOON), sample(NOON + 50, produce_bytes_per_s=4 * MIB), sample(NOON + 60)])
    roll_up_to(at_noon, NOON + 59)
    assert not Minute.objects.exists()
    roll_up_to(at_noon, NOON + 60)
    (row,) = rows_of(Minute).values()
    assert (row["samples"], row["produce_bytes_per_s_sum"], row["produce_bytes_per_s_max"]) == (2, 5 * MIB, 4 * MIB)


def test_of_limits_a_step_has_the_last(at_noon):
    keep([sample(NOON + 10, produce_limit_bytes_per_s=9), sample(NOON + 40, produce_limit_bytes_per_s=3)])
    roll_up_to(at_noon, NOON + 3600)
    assert [rows[0]["produce_limit_bytes_per_s"] for rows in map(list, (each.values() for each in rolled()))] == [3, 3]


def test_hours_are_those_of_utc_also_where_clocks_are_changed(at_noon):
    """On 2025-03-30 at 01:00 UTC Europe goes from 2 to 3 o'clock."""
    one = 1_743_296_400
    keep([sample(one - 10), sample(one), sample(one + 3590)])
    roll_up_to(at_noon, one + 7200)
    assert {at: row["samples"] for (_, at), row in rows_of(Hour).items()} == {one - 3600: 1, one: 2}


def test_a_sample_that_is_late_is_taken_into_its_minute_and_its_hour(at_noon):
    keep([sample(NOON + 3500)])
    roll_up_to(at_noon, NOON + 3600)
    keep([sample(NOON + 3510, produce_bytes_per_s=9 * MIB)])
    roll_up_to(at_noon, NOON + 3660)
    assert [row["samples"] for rows in rolled() for row in rows.values()] == [2, 2]
    assert [row["produce_bytes_per_s_max"] for rows in rolled() for row in rows.values()] == [9 * MIB, 9 * MIB]


def test_waiting_that_is_told_later_is_taken_into_its_minute_and_its_hour(at_noon):
    keep([sample(NOON + 3540), sample(NOON + 3550)])
    roll_up_to(at_noon, NOON + 3600)
    keep_waits([("ins-k3v9x2qa", "produce", 1000 * (NOON + 3550), 1000 * (NOON + 3610), 30_000)])
    roll_up_to(at_noon, NOON + 3660)
    assert [row["produce_throttled_ms"] for rows in rolled() for row in rows.values()] == [25_000, 25_000]
    keep_waits([("ins-k3v9x2qa", "produce", 1000 * (NOON + 3550), 1000 * (NOON + 3610), 36_000)])
    roll_up_to(at_noon, NOON + 3720)
    assert [row["produce_throttled_ms"] for rows in rolled() for row in rows.values()] == [30_000, 30_000]


def test_an_interval_that_nobody_understands_is_no_obstacle(at_noon):
    keep([sample(NOON)])
    first = 1000 * NOON
    keep_waits([("ins-k3v9x2qa", "produce", first + each, first + each + 1000, 1000) for each in range(4)])
    for row, ended in zip(RecordedInterval.objects.order_by("started_at"), (None, "soon", 10**15), strict=False):
        row.document["ended_at_ms"] = ended
        row.save()
    roll_up_to(at_noon, NOON + 60)
    assert next(iter(rows_of(Minute).values()))["produce_throttled_ms"] == 1000


def test_no_minute_has_waited_longer_than_it_lasts(at_noon):
    """Two masters may both tell of a moment at which one took over."""
    keep([sample(NOON)])
    first, last = 1000 * NOON, 1000 * (NOON + 60)
    keep_waits([("ins-k3v9x2qa", "consume", first, last, 50_000), ("ins-k3v9x2qa", "consume", first + 1, last, 50_000)])
    roll_up_to(at_noon, NOON + 60)
    assert next(iter(rows_of(Minute).values()))["consume_throttled_ms"] == 60_000


def test_where_nobody_sampled_there_is_no_row_of_waiting(at_noon):
    keep_waits([("ins-k3v9x2qa", "produce", 1000 * NOON, 1000 * (NOON + 60), 30_000)])
    keep([sample(NOON + 600)])
    roll_up_to(at_noon, NOON + 660)
    assert list(rows_of(Minute)) == [("ins-k3v9x2qa", NOON + 600)]


def test_a_pause_longer_than_samples_are_kept_loses_none(at_noon):
    keep([sample(NOON + 600 * number) for number in range(48)])
    roll_up_to(at_noon, NOON + 1200)
    move(at_noon, NOON + 8 * 3600)
    services.purge(clock=at_noon)  # of the pause nothing
    services.roll_up(clock=at_noon)
    services.roll_up(clock=at_noon)
    assert sum(row["samples"] for row in rows_of(Hour).values()) == 48


def test_one_run_makes_no_more_than_its_portions_and_the_next_goes_on(at_noon, monkeypatch):
    monkeypatch.setattr(services, "PORTIONS_AT_ONCE", 2)
    keep([sample(NOON + 60 * number) for number in range(60)])
    roll_up_to(at_noon, NOON + 3600)
    assert Minute.objects.count() == 20
    assert not Hour.objects.exists()
    services.roll_up(clock=at_noon)
    services.roll_up(clock=at_noon)
    assert (Minute.objects.count(), Hour.objects.count()) == (60, 1)


def test_what_stays_as_it_was_is_not_written_again(at_noon):
    keep([sample(NOON)])
    roll_up_to(at_noon, NOON + 60)
    Minute.objects.update(storage_used_bytes_max=1)  # would be put right by any write
    services.roll_up(clock=at_noon)
    assert Minute.objects.get().storage_used_bytes_max == 1


def test_of_two_workers_one_does_not_set_the_other_back(at_noon):
    keep([sample(NOON), sample(NOON + 600)])
    roll_up_to(at_noon, NOON + 660)
    assert RolledUp.objects.get(pk=60).until == NOON + 660
    roll_up_to(at_noon, NOON + 120)  # its clock, or its task, is behind
    assert RolledUp.objects.get(pk=60).until == NOON + 660


def test_a_clock_that_was_ahead_keeps_nothing_from_being_rolled_up(at_noon):
    """It was a day ahead for a minute, and is set right."""
    keep([sample(NOON + 86_400)])
    roll_up_to(at_noon, NOON + 86_400 + 3660)
    move(at_noon, NOON)
    for minute in range(70):
        keep([sample(NOON + 60 * minute)])
        roll_up_to(at_noon, NOON + 60 * (minute + 1))
    assert [at for _, at in rows_of(Minute) if at < NOON + 86_400] == [NOON + 60 * minute for minute in range(70)]
    assert [at for _, at in rows_of(Hour) if at < NOON + 86_400] == [NOON]


def test_purging_removes_what_has_expired_and_nothing_else(at_noon):
    keep([sample(NOON + 10 * number) for number in range(0, 720, 6)])
    roll_up_to(at_noon, NOON + 7200)
    services.purge(clock=at_noon)
    kept = sorted(Sample.objects.values_list("at", flat=True))
    assert kept[0] == NOON + 7200 - 3600 - 120
    assert Minute.objects.count() == 120
    roll_up_to(at_noon, NOON + 15 * 86_400 + 3600 + 1800)
    services.purge(clock=at_noon)
    services.purge(clock=at_noon)
    assert (Sample.objects.count(), Hour.objects.count()) == (0, 2)
    assert min(Minute.objects.values_list("at", flat=True)) == NOON + 1800
    move(at_noon, NOON + 401 * 86_400 + 3600)
    services.purge(clock=at_noon)
    assert list(Hour.objects.values_list("at", flat=True)) == [NOON + 3600]


def test_purging_goes_in_portions(at_noon, monkeypatch):
    monkeypatch.setattr(forgetting, "PORTIONS_AT_ONCE", 2)
    keep([sample(NOON + 10 * number) for number in range(60)])
    roll_up_to(at_noon, NOON + 86_400)
    services.purge(clock=at_noon)
    assert Sample.objects.count() == 60 - 2 * 6


def test_a_pause_without_samples_costs_one_portion(at_noon, monkeypatch):
    monkeypatch.setattr(services, "PORTIONS_AT_ONCE", 3)
    keep([sample(NOON), sample(NOON + 10 * 86_400)])
    roll_up_to(at_noon, NOON + 10 * 86_400 + 60)
    assert Minute.objects.count() == 2


def test_samples_that_are_not_rolled_up_are_not_removed(at_noon):
    keep([sample(NOON)])
    move(at_noon, NOON + 86_400)
    services.purge(clock=at_noon)
    assert Sample.objects.count() == 1
