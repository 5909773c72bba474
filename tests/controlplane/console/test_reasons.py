"""Throttled intervals that are alike and follow each other are one reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controlplane.remedies.merging import APART_MS, whys
from quota.contracts.instance import MIB
from tests.controlplane.quotas.conftest import NINE, interval

MINUTE = 60_000


def newest_first(*intervals):
    return sorted(intervals, key=lambda each: -each.started_at_ms)


def times(*intervals):
    return [reason.times for reason in whys(newest_first(*intervals))]


def test_what_follows_soon_is_the_same_reason():
    (reason,) = whys(newest_first(*(interval(start=NINE + number * MINUTE) for number in range(10))))
    assert (reason.times, reason.waited_s, reason.seconds) == (10, 120, 9 * 60 + 20)


def test_after_five_minutes_of_peace_it_is_another():
    first = interval(start=NINE, seconds=20)
    assert times(first, interval(start=first.ended_at_ms + APART_MS)) == [2]
    assert times(first, interval(start=first.ended_at_ms + APART_MS + 1)) == [1, 1]


def test_what_comes_between_does_not_part_them():
    produced = (interval(start=NINE + number * MINUTE) for number in range(4))
    consumed = (interval(start=NINE + 1 + number * MINUTE, direction="consume") for number in range(4))
    assert times(*produced, *consumed) == [4, 4]


def test_another_limit_another_rule_another_cause_are_other_reasons():
    alike = interval(start=NINE)
    for other in ({"limit": 3 * MIB}, {"rule": "rule-1"}, {"blocked": "storage"}, {"limit": 4 * MIB}):
        assert times(alike, interval(start=NINE + MINUTE, **other)) == [1, 1], other


def test_the_sentence_is_that_of_the_worst():
    mild, bad = interval(start=NINE + MINUTE, throttled_ms=100), interval(start=NINE, throttled_ms=9_000)
    (reason,) = whys([mild, bad])
    assert reason.sentence.startswith("Producing waited 9.0 s on broker 2")


_INTERVALS = st.lists(
    st.builds(
        lambda minute, waited, direction, limit: interval(
            start=NINE + minute * MINUTE, throttled_ms=waited * 1000, direction=direction, limit=limit * MIB
        ),
        st.integers(0, 300), st.integers(1, 60), st.sampled_from(["produce", "consume"]), st.integers(3, 5),
    ),
    max_size=40,
)  # fmt: skip


@given(_INTERVALS)
def test_nothing_is_lost_by_it(intervals):
    reasons = whys(newest_first(*intervals))
    assert sum(reason.times for reason in reasons) == len(intervals)
    assert sum(reason.waited_s for reason in reasons) == sum(each.throttled_ms for each in intervals) // 1000
    ends = [reason.ended_at for reason in reasons]
    assert ends == sorted(ends, reverse=True), "newest first"
