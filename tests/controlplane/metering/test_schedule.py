"""When a job is to run next, and how far it is behind."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.pipeline.schedule import (
    AHEAD_MS,
    DAY_MS,
    HOUR_MS,
    JOBS,
    LONGEST_PAUSE_MS,
    MINUTE_MS,
    PAUSE_MS,
    Job,
    Run,
    State,
    has_done,
    lag_ms,
    next_start,
)

AT_MS = 10 * MINUTE_MS
DAILY = Job("report", "Report", "reports", "nothing", daily_at_ms=AT_MS)
STREAM = Job("stream", "Stream", "streams", "nothing")
MIDNIGHT = 20_000 * DAY_MS


def ran(begun: int, state: State = State.SUCCEEDED, *, took: int = MINUTE_MS, done_to: int | None = None) -> Run:
    """Moments are after MIDNIGHT."""
    ended = None if state is State.RUNNING else MIDNIGHT + begun + took
    return Run(state, MIDNIGHT + begun, ended, None if done_to is None else MIDNIGHT + done_to)


@pytest.mark.parametrize(
    ("runs", "now", "expected"),
    [
        ([], 5 * HOUR_MS, AT_MS),  # due since then
        ([], AT_MS - 1, AT_MS - DAY_MS),  # yesterday's still
        ([ran(AT_MS, done_to=0)], 5 * HOUR_MS, AT_MS + DAY_MS),
        ([ran(AT_MS)], 5 * HOUR_MS, AT_MS + DAY_MS),  # there is nothing to do
        ([ran(AT_MS - DAY_MS, done_to=-DAY_MS)], 5 * HOUR_MS, AT_MS),
        ([ran(HOUR_MS, State.RUNNING)], 5 * HOUR_MS, None),
        ([ran(AT_MS, State.FAILED)], 5 * HOUR_MS, AT_MS + MINUTE_MS + PAUSE_MS),
        ([Run(State.FAILED, MIDNIGHT + AT_MS)], 5 * HOUR_MS, AT_MS + PAUSE_MS),  # nobody has said when it ended
        ([ran(AT_MS, done_to=-DAY_MS)], 5 * HOUR_MS, AT_MS + MINUTE_MS + PAUSE_MS),  # it came too early
        (
            [ran(2 * HOUR_MS, State.FAILED), ran(AT_MS, State.FAILED)],
            5 * HOUR_MS,
            2 * HOUR_MS + MINUTE_MS + 2 * PAUSE_MS,
        ),
        (
            [ran(2 * HOUR_MS, State.FAILED), ran(AT_MS, done_to=0)],
            5 * HOUR_MS,
            AT_MS + DAY_MS,
        ),  # a day that was asked for
        (
            [ran(2 * HOUR_MS, State.FAILED), ran(-HOUR_MS, State.FAILED)],
            5 * HOUR_MS,
            2 * HOUR_MS + MINUTE_MS + PAUSE_MS,
        ),
        (
            [ran(HOUR_MS * n, State.FAILED) for n in range(20, 0, -1)],
            DAY_MS,
            20 * HOUR_MS + MINUTE_MS + LONGEST_PAUSE_MS,
        ),
        ([ran(5 * HOUR_MS + 2 * MINUTE_MS)], 5 * HOUR_MS, AT_MS),  # by a clock that was ahead: it decides nothing
        ([ran(5 * HOUR_MS + MINUTE_MS)], 5 * HOUR_MS, AT_MS + DAY_MS),  # by one that differs a little
        ([ran(AT_MS, State.FAILED, took=2 * DAY_MS)], 5 * HOUR_MS, AT_MS + PAUSE_MS),  # it was ahead at the end
    ],
)
def test_a_daily_job_begins_once_a_day_and_again_after_a_pause_where_it_was_in_vain(runs, now, expected):
    assert next_start(DAILY, runs, MIDNIGHT + now) == (None if expected is None else MIDNIGHT + expected)


def test_a_stream_is_started_by_no_schedule():
    assert next_start(STREAM, [], MIDNIGHT) is None


RUNS = st.lists(
    st.builds(
        ran,
        st.integers(-2 * DAY_MS, DAY_MS),
        st.sampled_from([State.SUCCEEDED, State.FAILED]),
        took=st.integers(0, HOUR_MS),
        done_to=st.sampled_from([None, -DAY_MS, 0]),
    ),
    max_size=8,
).map(lambda runs: sorted(runs, key=lambda run: -run.started_at_ms))


@given(RUNS, st.integers(AT_MS, DAY_MS + AT_MS - 1))
def test_whatever_has_run_the_next_start_is_tomorrow_exactly_where_the_day_is_done(runs, now):
    today = [run for run in runs if AT_MS <= run.started_at_ms - MIDNIGHT <= now + AHEAD_MS]
    found = next_start(DAILY, runs, MIDNIGHT + now)
    assert found is not None
    if any(has_done(run, MIDNIGHT) for run in today):
        assert found == MIDNIGHT + DAY_MS + AT_MS
    else:
        assert found >= MIDNIGHT + AT_MS
        assert found <= max([MIDNIGHT + AT_MS, *(run.ended_at_ms + LONGEST_PAUSE_MS for run in today)])


def test_a_stream_is_behind_now_and_a_daily_job_behind_the_last_midnight():
    assert lag_ms(STREAM, MIDNIGHT, MIDNIGHT + 5000) == 5000
    assert lag_ms(DAILY, MIDNIGHT, MIDNIGHT + DAY_MS - 1) == 0
    assert lag_ms(DAILY, MIDNIGHT, MIDNIGHT + DAY_MS) == DAY_MS
    assert lag_ms(DAILY, MIDNIGHT + DAY_MS, MIDNIGHT) == 0, "a clock that was ahead"
    assert lag_ms(DAILY, None, MIDNIGHT) is None


@pytest.mark.parametrize("name", JOBS)
def test_every_job_is_a_program_that_there_is(name):
    job = JOBS[name]
    assert (job.name, job.title[:1].isupper(), job.does[-1:] != ".") == (name, True, True)
    assert importlib.util.find_spec(job.module) is not None
