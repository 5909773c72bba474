"""What an interval adds up from its periods: waiting, waiting below the limit, the worst of it, and where its edges are."""

from dataclasses import replace

import pytest

from quota.contracts.throttled import WINDOWS_S, Moment
from quota.core.recorder import LONGEST_MS, _Open, _Period
from tests.quota.samples import flow
from tests.quota.test_recorder import NINE, Watched, waits

NO_OVER = (0.0,) * len(WINDOWS_S)


def period(number=0, *, waited=None, flow=0, over=NO_OVER, limit=1_000, short=None):
    began_ms, waited = NINE + number * 1_000, waited or {}
    return _Period(
        limit, "ckafka", waited, flow, over, began_ms, began_ms + 1_000, frozenset(waited if short is None else short)
    )


def opened(first):
    return _Open(first, first, Moment(0, ()), written_at_ms=first.ended_ms)


def test_a_period_counts_the_longest_wait_of_any_broker_and_no_more_than_it_lasted():
    interval = opened(period())
    interval.add(period(0, waited={1: (300, 0), 2: (500, 0)}))
    assert interval.throttled_ms == 500
    interval.add(period(1, waited={1: (2_500, 0)}))
    assert interval.throttled_ms == 1_500
    assert interval.waits_ms == {1: 2_800, 2: 500}
    assert interval.ended_at_ms == NINE + 2_000


@pytest.mark.parametrize(("used", "under_ms"), [(940, 500), (949, 500), (950, 0), (951, 0), (1_000, 0)])
def test_waiting_below_95_percent_of_the_limit_is_counted_apart(used, under_ms):
    interval = opened(period())
    interval.add(period(waited={1: (500, 0)}, flow=used))
    assert interval.under_limit_ms == under_ms


def test_only_brokers_count_that_held_less_than_they_could_have_had():
    interval = opened(period())
    interval.add(period(waited={1: (700, 0), 2: (300, 0)}, flow=500, short={2}))
    assert (interval.throttled_ms, interval.under_limit_ms) == (700, 300)


def test_over_admission_is_the_largest_of_each_window():
    interval = opened(period())
    for over in ((3.0, 1.0, 0.5), (2.0, 4.0, 0.25), (1.0, 1.0, 1.0)):
        interval.add(period(over=over))
    assert interval.over_percent == [3.0, 4.0, 1.0]


def test_windows_are_told_all_or_not_at_all():
    with pytest.raises(ValueError, match="zip"):
        opened(period()).add(period(over=(1.0,)))


@pytest.mark.parametrize(
    ("changes", "goes_on"),
    [
        ({}, True),
        ({"began_ms": NINE + LONGEST_MS - 1}, True),
        ({"began_ms": NINE + LONGEST_MS}, False),
        ({"began_ms": NINE - 1}, False),  # the clock on the wall went back
        ({"limit": 999}, False),
        ({"strategy": "bounded"}, False),
    ],
)
def test_an_interval_goes_on_for_a_minute_with_what_was_bought(changes, goes_on):
    assert opened(period()).goes_on(period()._replace(**changes)) is goes_on


@pytest.mark.parametrize(
    ("this", "other", "is_worse"),
    [
        ({"waited": {1: (111, 0)}}, {"waited": {1: (100, 0)}}, True),
        ({"waited": {1: (100, 0)}}, {"waited": {1: (100, 0)}}, False),
        ({"waited": {1: (60, 0), 2: (60, 0)}}, {"waited": {1: (100, 0)}}, True),
        ({"waited": {1: (1, 0)}}, {}, True),
        ({}, {"waited": {1: (1, 0)}}, False),
        ({"waited": {1: (1, 0)}}, {"over": (50.0, 0.0, 0.0)}, True),  # waiting comes before what flowed
        ({"over": (5.0, 9.0, 0.0)}, {"waited": {1: (1, 0)}, "over": (1.0, 0.0, 0.0)}, False),
        ({"over": (11.1, 0.0, 0.0)}, {"over": (10.0, 50.0, 0.0)}, True),
        ({"over": (10.0, 50.0, 0.0)}, {"over": (10.0, 0.0, 0.0)}, False),
    ],
)
def test_a_period_is_worse_by_more_than_a_tenth_of_waiting_or_of_what_flowed_in_a_second(this, other, is_worse):
    assert period(**this).is_worse_than(period(**other)) is is_worse


def test_exactly_a_tenth_more_is_not_worse():
    assert not period(over=(11.0, 0.0, 0.0)).is_worse_than(period(over=(10.0, 0.0, 0.0)))
    assert not period(waited={1: (1_100, 0)}).is_worse_than(period(waited={1: (1_000, 0)}))


def test_an_interval_that_ends_for_another_is_of_this_mastership():
    watched = Watched()
    watched.second(waits(200), flow(50))
    watched.buy(produce=600)
    (ended,) = watched.second(waits(200), flow(50))
    assert (ended.epoch, ended.limit) == (6, 300)
    assert replace(ended, epoch=6) == ended
