"""Where a load may go, when it runs, and which words say what of a topic it loads again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.lake.request import Request
from controlplane.loads import destinations, ranges, schedule
from controlplane.loads.ranges import Asked
from controlplane.spark.hadoop import properties_of

NOW = datetime(2026, 11, 28, 12, 7, tzinfo=UTC)
GOOD = {"bucket": "events-1", "path": "lake/orders", "region": "eu-central-1", "access_key": "AK", "secret_key": "s/+="}


# --- destinations -------------------------------------------------------------------------------------------------------


def test_a_bucket_as_people_have_it_is_taken():
    assert destinations.problems(**GOOD) == {}
    assert destinations.bucket_uri("events-1", "lake/orders") == "s3a://events-1/lake/orders"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bucket", "Events"), ("bucket", "a"), ("bucket", "a.b.c"), ("bucket", "evil@host"), ("bucket", "-a-"), ("bucket", ""),
        ("path", "../other"), ("path", "a/../b"), ("path", "/etc"), ("path", "a//b"), ("path", ""), ("path", "a/."),
        ("path", "x" * 501), ("path", "a b"), ("path", "a\nb"),
        ("region", "eu central"), ("region", "http://x"), ("access_key", ""), ("access_key", "a\nfs.s3a.endpoint=http://x"),
        ("secret_key", ""), ("secret_key", "a b"), ("secret_key", "a\nb"),
    ],
)  # fmt: skip
def test_what_could_mean_another_place_is_refused(name, value):
    assert set(destinations.problems(**{**GOOD, name: value})) == {name}


def test_a_bucket_s_options_are_of_that_bucket_alone_and_name_the_one_way_to_log_in():
    options = destinations.hadoop_options("events-1", "eu-central-1", destinations.AWS, "AK", "s3cret")
    assert all(name.startswith("fs.s3a.bucket.events-1.") for name in options)
    own = {name.removeprefix("fs.s3a.bucket.events-1."): value for name, value in options.items()}
    assert own["aws.credentials.provider"] == "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    assert (own["access.key"], own["secret.key"], "endpoint" in own) == ("AK", "s3cret", False)
    there = destinations.hadoop_options("events-1", "us-east-1", "http://127.0.0.1:9000", "AK", "s")
    assert there["fs.s3a.bucket.events-1.endpoint"] == "http://127.0.0.1:9000"
    assert there["fs.s3a.bucket.events-1.connection.ssl.enabled"] == "false"


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=200))
def test_any_secret_comes_out_of_the_file_as_it_went_in(secret):
    options = destinations.hadoop_options("events-1", "us-east-1", destinations.AWS, "AK", secret)
    assert properties_of(destinations.options_text(options)) == options


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


@given(st.integers(schedule.LEAST_MINUTES, schedule.MOST_MINUTES), st.integers(1, 10**6))
def test_after_a_run_in_vain_it_is_tried_sooner_and_never_later_than_the_schedule_has_it(every, failures):
    following = schedule.after(every, NOW, NOW, failures)
    assert NOW + timedelta(minutes=1) <= following <= schedule.after(every, NOW, NOW, 0)
    assert following <= schedule.after(every, NOW, NOW, failures + 1)


# --- ranges -------------------------------------------------------------------------------------------------------------

SPANS = st.tuples(st.integers(0, 2**62), st.integers(1, 2**62)).map(lambda pair: (pair[0], pair[0] + pair[1]))
ASKED = st.one_of(
    st.builds(Asked, from_time_ms=st.integers(0, 2**42), new_topic=st.booleans(), skip_expired=st.booleans()),
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
