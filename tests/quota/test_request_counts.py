"""What windows of requests come to: exact sums in any order, and percentiles in the right bucket."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.instance import ContractError
from quota.contracts.requests import (
    BOUNDS_US,
    BUCKETS,
    MOST_TEXT,
    PHASES,
    ApiCounts,
    Histogram,
    RequestCounts,
    documents_of,
    windows_of,
)

times = st.integers(0, 3 * 10**8)
histograms = st.lists(times, max_size=20)
codes = st.sampled_from(["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "CODE_1"])


def histogram(observed):
    made = Histogram()
    for us in observed:
        made.observe(us)
    return made


@st.composite
def counted(draw):
    made = RequestCounts()
    for api in draw(st.lists(st.sampled_from(["Produce", "Fetch", "Metadata"]), unique=True)):
        made.apis[api] = ApiCounts(
            draw(st.integers(0, 9)),
            *(histogram(draw(histograms)) for _ in range(5)),
            draw(st.dictionaries(codes, st.integers(1, 9))),
        )
    return made


def same(one, other):
    return one.to_text() == other.to_text()


@given(counted())
def test_a_text_is_read_back_as_it_was(counts):
    assert same(RequestCounts.from_text(counts.to_text()), counts)


@given(st.lists(counted(), max_size=5), st.randoms())
def test_in_whatever_order_windows_are_added_up_they_come_to_the_same(windows, random):
    texts = [each.to_text() for each in windows]
    first = RequestCounts.joined(texts)
    random.shuffle(texts)
    halves = [RequestCounts.joined(texts[:2]), RequestCounts.joined(texts[2:])]
    assert same(first, RequestCounts.joined(each.to_text() for each in halves))
    assert first.requests == sum(each.requests for each in windows)


@given(counted(), counted())
def test_a_text_that_is_added_unchecked_comes_to_the_same(one, other):
    added = RequestCounts()
    for each in (one, other):
        added.add_text(each.to_text())
    assert same(added, RequestCounts.joined([one.to_text(), other.to_text()]))


def test_bounds_are_ten_a_decade_and_each_is_larger_than_the_one_before():
    assert (BOUNDS_US[0], BOUNDS_US[-1], BUCKETS) == (10, 10**8, 72)
    assert all(1.1 < larger / bound < 1.34 for bound, larger in itertools.pairwise(BOUNDS_US))


@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99, 0.999, 1.0]))
def test_a_percentile_is_in_the_bucket_of_the_true_one(observed, share):
    true = sorted(observed)[math.ceil(share * len(observed)) - 1]
    found = histogram(observed).percentile_us(share)
    bucket = next(number for number, bound in enumerate(BOUNDS_US) if true <= bound)
    assert (BOUNDS_US[bucket - 1] if bucket else 0) <= found <= BOUNDS_US[bucket]


def test_of_nothing_there_is_no_percentile_and_what_is_beyond_all_bounds_is_at_the_last():
    assert Histogram().percentile_us(0.99) is None
    assert histogram([10**9]).percentile_us(0.5) == BOUNDS_US[-1]


def test_a_time_that_is_a_bound_is_in_the_bucket_of_that_bound():
    made = histogram([10, 11, 12, 13])
    assert made.counts[:4] == [1, 2, 1, 0]
    assert made.sum_us == 46


def test_requests_that_waited_for_nothing_are_zero_of_what_others_waited():
    api = ApiCounts(1, histogram([100, 200]), histogram([1_000]), histogram([300]), histogram([700]), histogram([]))
    assert api.requests == 4
    assert {phase: api.times(phase).count for phase in PHASES} == dict.fromkeys(PHASES, 3)
    assert {phase: api.times(phase).sum_us for phase in PHASES} == {
        "total": 1_300, "local": 600, "remote": 700, "throttle": 0,
    }  # fmt: skip
    assert api.times("remote").counts[0] == 2


def test_errors_are_added_up_over_apis():
    counts = RequestCounts({"Produce": ApiCounts(errors={"A": 1}), "Fetch": ApiCounts(errors={"A": 2, "B": 3})})
    assert counts.errors == {"A": 3, "B": 3}
    assert counts.of("Metadata").requests == 0


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "7", '{"Produce": 7}', '{"Produce": []}', '{"Produce": [0, [], [], [], [], {}]}',
        '{"Produce": [-1, [], [], [], [], [], {}]}', '{"Produce": [0, [1], [], [], [], [], {}]}',
        '{"Produce": [0, [1, 72, 5], [], [], [], [], {}]}', '{"Produce": [0, [1, 0, true], [], [], [], [], {}]}',
        '{"Produce": [0, [], [], [], [], [], {"a b": 1}]}', '{"Pro\\"duce": [0, [], [], [], [], [], {}]}',
        '{"Produce": [0, [], [], [], [], [], {"A": -1}]}', '{"": [0, [], [], [], [], [], {}]}', " " * (MOST_TEXT + 1),
    ],
)  # fmt: skip
def test_what_is_no_window_is_refused(text):
    with pytest.raises(ContractError):
        RequestCounts.from_text(text)


def test_windows_of_a_report_are_read_back_as_they_were_written():
    windows = {"ins-k3v9x2qa": {1_740_830_400: "{}", 1_740_830_410: "{}"}}
    assert windows_of(documents_of(windows)) == windows


def test_what_was_carried_is_told_and_added_up_with_the_number_of_its_windows():
    one = RequestCounts(produced_bytes=5000, consumed_bytes=7, carried_windows=1)
    one.apis["Produce"] = ApiCounts(unanswered=2)
    assert RequestCounts.from_text(one.to_text()) == one
    total = RequestCounts.joined([one.to_text(), one.to_text()])
    total.add_text(one.to_text())
    assert (total.produced_bytes, total.consumed_bytes, total.carried_windows) == (15_000, 21, 3)
    assert total.requests == 6
    assert list(total.apis) == ["Produce"]


def test_what_was_carried_can_be_read_alone():
    one = RequestCounts(produced_bytes=5000, consumed_bytes=7, carried_windows=1)
    one.apis["Produce"] = ApiCounts(unanswered=2)
    alone, whole = RequestCounts(), RequestCounts()
    for text in (one.to_text(), one.to_text(), RequestCounts({"Fetch": ApiCounts(unanswered=1)}).to_text(), "{}"):
        alone.add_carried(text)
        whole.add_text(text)
    assert alone == RequestCounts(produced_bytes=10_000, consumed_bytes=14, carried_windows=2)
    assert (alone.produced_bytes, alone.carried_windows) == (whole.produced_bytes, whole.carried_windows)


def test_a_text_of_an_earlier_release_says_nothing_of_it():
    old = RequestCounts({"Fetch": ApiCounts(unanswered=1)})
    assert "_carried" not in old.to_text()
    new = RequestCounts(produced_bytes=5, carried_windows=1)
    assert RequestCounts.joined([old.to_text(), new.to_text()]).carried_windows == 1


def test_a_reader_of_an_earlier_release_takes_it_for_an_api_without_requests():
    """It reads rows of APIs as this one does, and knows no other names: it must neither stop nor lose the rest."""
    new = RequestCounts(produced_bytes=5000, consumed_bytes=7, carried_windows=1)
    row = json.loads(new.to_text())["_carried"]
    taken = ApiCounts.from_row(row)
    assert (taken.requests, taken.errors) == (0, {})
    assert all(taken.times(phase).count == 0 for phase in PHASES)
    for each in row[1:6]:
        if each:
            Histogram().add_row(each)  # as rows of our own are added, unchecked
    added = ApiCounts()
    added.add(taken)
    kept = json.dumps({"_carried": added.to_row()})  # what it writes down of it
    for counts in (RequestCounts.from_text(kept), added_unchecked(kept)):
        assert counts == RequestCounts(), "what was carried is not known"


def test_what_a_later_release_tells_beside_apis_is_left_out_and_stops_nobody():
    later = '{"Fetch": [1, [], [], [], [], [], {}], "_later": {"anything": [1]}}'
    for counts in (RequestCounts.from_text(later), added_unchecked(later)):
        assert (list(counts.apis), counts.requests) == (["Fetch"], 1)


def added_unchecked(text):
    counts = RequestCounts()
    counts.add_text(text)
    return counts


@pytest.mark.parametrize(
    "row", ["[5000, 0, 1]", "[1, 2]", "[1, 2, 3, 4]", "[-1, 0, 1]", "[1.5, 0, 1]", "{}", "7", '["5", 0, 1]', "[true, 0, 1]",
            "[0, [-1, 0], [], [], [], [], {}]", "[0, [1.5, 0], [], [], [], [], {}]", "[0, [true, 0], [], [], [], [], {}]"]
)  # fmt: skip
def test_what_is_no_sum_of_bytes_is_refused(row):
    with pytest.raises(ContractError):
        RequestCounts.from_text(f'{{"_carried": {row}}}')
