"""Where a load may go, when it runs, and which words say what of a topic it loads again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.lake.request import Request
from controlplane.loads import destinations, ranges, schedule
from controlplane.loads.ranges import Asked
from controlplane.loads.serializers import MOST_TIME

NOW = datetime(2026, 11, 28, 12, 7, tzinfo=UTC)
GOOD = {"bucket": "events-1", "path": "lake/orders", "region": "eu-central-1", "access_key": "AK", "secret_key": "s/+="}


# --- destinations -------------------------------------------------------------------------------------------------------


def test_a_bucket_as_people_have_it_is_taken():
    assert destinations.problems(**GOOD) == {}
    assert destinations.bucket_uri("events-1", "lake/orders") == "s3://events-1/lake/orders"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bucket", "Events"), ("bucket", "a"), ("bucket", "a.b.c"), ("bucket", "evil@host"), ("bucket", "-a-"), ("bucket", ""),
        ("path", "../other"), ("path", "a/../b"), ("path", "/etc"), ("path", "a//b"), ("path", ""), ("path", "a/."),
        ("path", "x" * 501), ("path", "a b"), ("path", "a\nb"),
        ("region", "eu central"), ("region", "http://x"), ("access_key", ""),
        ("access_key", "a\nsecret_key=b"), ("access_key", "${env.AWS_ACCESS_KEY_ID}"),
        ("secret_key", ""), ("secret_key", "a b"), ("secret_key", "a\nb"), ("secret_key", "${env.DATABASE_URL}"),
    ],
)  # fmt: skip
def test_what_could_mean_another_place_is_refused(name, value):
    assert set(destinations.problems(**{**GOOD, name: value})) == {name}


# --- schedules ----------------------------------------------------------------------------------------------------------


def test_a_load_without_a_schedule_runs_only_when_it_is_asked_for():
    assert schedule.first(None, NOW) is None
    assert schedule.after(None, NOW, NOW, 3) is None


@given(st.integers(schedule.LEAST_MINUTES, schedule.MOST_MINUTES), st.integers(0, 10**7))
def test_runs_keep_their_minute_and_what_was_missed_is_run_once(every, late_s):
    due = NOW
    now = due + timedelta(seconds=late_s)
    following = schedule.after(every, due, now, 0)
    assert now < following <= now + timedelta(minutes=every)
    assert (following - due) % timedelta(minutes=every) == timedelta(0)


@given(st.integers(schedule.LEAST_MINUTES, schedule.MOST_MINUTES), st.integers(1, 10**6), st.integers(0, 10**6))
def test_after_a_run_in_vain_it_is_tried_sooner_at_first_and_once_a_day_at_least(every, failures, late_s):
    now = NOW + timedelta(seconds=late_s)
    following, regular = schedule.after(every, NOW, now, failures), schedule.after(every, NOW, now, 0)
    assert now + timedelta(minutes=1) <= following or following == regular
    assert following <= max(regular, now + timedelta(days=1, minutes=every))
    assert following <= schedule.after(every, NOW, now, failures + 1)
    if failures == 1 and regular > now + timedelta(minutes=1):
        assert following == now + timedelta(minutes=1)


# --- ranges -------------------------------------------------------------------------------------------------------------

SPANS = st.tuples(st.integers(0, 2**62), st.integers(1, 2**62)).map(lambda pair: (pair[0], pair[0] + pair[1]))
ASKED = st.one_of(
    st.builds(Asked, from_time_ms=st.integers(0, MOST_TIME), new_topic=st.booleans(), skip_expired=st.booleans()),
    st.builds(Asked, offsets=st.dictionaries(st.integers(0, 999), SPANS, max_size=5), skip_expired=st.booleans()),
)


@given(ASKED)
def test_what_is_asked_for_stands_in_a_row_and_in_words_as_it_is(asked):
    assert Asked.from_json(asked.to_json()) == asked
    request = Request.read(["--brokers", "b", "--topic", "t", "--to", "u", *asked.words()])
    read = {partition: (span.first, span.end) for partition, span in request.offsets.items()}
    assert Asked(request.from_time_ms, read, request.new_topic, request.skip_expired) == asked
    assert ranges.problems(asked) == {}


@pytest.mark.parametrize(
    "asked",
    [
        Asked(from_time_ms=1, offsets={0: (0, 1)}),
        Asked(offsets={0: (5, 5)}),
        Asked(offsets={0: (-1, 5)}),
        Asked(offsets=dict.fromkeys(range(1001), (0, 1))),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(asked):
    assert set(ranges.problems(asked)) == {"offsets"}
