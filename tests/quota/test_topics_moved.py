"""What topics moved comes to exact sums in any order, and nothing is called known that may be in the rest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.instance import ContractError
from quota.contracts.requests import ApiCounts, RequestCounts
from quota.contracts.topics_moved import MOST_NAMED_BYTES, MOST_READ, Moved, TopicsMoved

NAMES = ["orders", "events", "a.b-c_d", "t"]
sizes = st.integers(0, 1000)
counted = st.none() | st.integers(0, 50)
windows = st.dictionaries(st.sampled_from(NAMES), st.tuples(sizes, sizes, counted), max_size=4)
"""Bytes produced and consumed by topic, and new records; None: of a broker that does not count them."""


def moved(rows, most=10):
    """A window of a broker that names so many."""
    found = TopicsMoved()
    for name, row in rows.items():
        found.count(name, *row)
    found.shorten(most)
    return found


def joined(parts):
    found = TopicsMoved()
    for each in parts:
        found.add(each)
    return found


def canonical(found):
    return dict(sorted(found.to_json().items()))


@given(windows, st.integers(0, 4))
def test_the_sum_over_topics_and_the_rest_is_what_moved(rows, most):
    found = moved(rows, most)
    assert found.total == (sum(row[0] for row in rows.values()), sum(row[1] for row in rows.values()))
    assert len(found.names) == min(most, len(rows))


@given(windows, st.integers(0, 4))
def test_a_text_is_read_back_as_it_was(rows, most):
    found = moved(rows, most)
    assert TopicsMoved.from_json(json.loads(json.dumps(found.to_json()))) == found


@given(st.lists(st.tuples(windows, st.integers(0, 4)), max_size=6), st.randoms())
def test_in_whatever_order_windows_are_added_up_they_come_to_the_same(parts, random):
    each = [moved(*part) for part in parts]
    first = canonical(joined(moved(*part) for part in parts))
    random.shuffle(each)
    halves = [joined(each[: len(each) // 2]), joined(each[len(each) // 2 :])]
    assert canonical(joined(halves)) == first


@given(st.lists(st.tuples(windows, st.integers(0, 4)), max_size=6))
def test_what_is_called_known_is_what_the_topic_moved_and_nothing_else_is(parts):
    found = joined(moved(*part) for part in parts)
    for name in NAMES:
        known = found.of(name)
        wanted = Moved(*(sum(rows.get(name, (0, 0))[place] for rows, _ in parts) for place in (0, 1)))
        if known is not None:
            assert known == wanted
            new = [rows[name][2] for rows, _ in parts if rows.get(name, (0,))[0]]
            assert found.records_of(name) == (None if None in new else sum(new))
        else:
            assert found.records_of(name) is None
        hidden = [rows for rows, most in parts if len(rows) > most and name not in moved(rows, most).names]
        assert (known is None) == bool(hidden)


def test_those_that_moved_most_are_named():
    found = moved({"small": (1, 1), "large": (5, 90), "middle": (20, 0)}, 2)
    assert list(found.names) == ["large", "middle"]
    assert (found.of("small"), found.of("nobody"), found.of("large")) == (None, None, (5, 90))
    assert found.to_json()[""] == [1, 1, 1]


def test_no_more_are_named_than_their_text_may_take():
    found = TopicsMoved()
    for number in range(200):
        found.count(f"{number:0249}", number, 0)
    found.shorten(200, MOST_NAMED_BYTES)
    assert 40 < len(found.names) < 60
    assert len(json.dumps(found.to_json())) < MOST_NAMED_BYTES
    assert min(found.names) > f"{140:0249}"
    assert found.total == (sum(range(200)), 0)


def test_of_a_window_of_an_earlier_release_no_topic_is_known():
    found = joined([moved({"orders": (5, 0)}), TopicsMoved.not_told()])
    assert (found.of("orders"), found.of("events")) == (None, None)
    assert found.total == (5, 0)


def test_what_an_earlier_release_told_has_bytes_and_no_records():
    found = joined([moved({"orders": (5, 0, 2)}), TopicsMoved.from_json({"orders": [7, 1], "read": [0, 9]})])
    assert (found.of("orders"), found.records_of("orders")) == ((12, 1), None)
    assert found.records_of("read") == 0, "nothing was produced into it"
    assert found.to_json() == {"orders": [12, 1], "read": [0, 9]}
    assert moved({"orders": (5, 0, 2)}).to_json() == {"orders": [5, 0, 0, 2]}


def test_a_windows_text_has_them_beside_its_requests():
    counts = RequestCounts(topics=moved({"orders": (5, 7)}))
    text = counts.to_text()
    assert json.loads(text) == {"_topics": {"orders": [5, 7]}}
    assert RequestCounts.from_text(text).topics == counts.topics
    assert RequestCounts.from_text("{}").topics is None
    assert json.loads(RequestCounts(topics=TopicsMoved()).to_text()) == {"_topics": {}}
    added = RequestCounts()
    added.add_text(text)
    assert added.to_text() == "{}", "rows of the control plane have topics elsewhere"


@pytest.mark.parametrize(
    "rows",
    [
        [],
        {"a b": [1, 2]},
        {"x" * 250: [1, 2]},
        {"<script>": [1, 2]},
        {"orders": [1]},
        {"orders": [1, -2]},
        {"orders": [1, 2.5]},
        {"orders": [True, 2]},
        {"orders": [1, 2, 3, 4, 5]},
        {"": [1, 2, 3, 4]},
        {"orders": {"1": 2}},
        {"": [1, 2]},
        {"orders": [1, 2**60]},
        {f"t{number}": [1, 1] for number in range(MOST_READ + 1)},
    ],
)
def test_what_no_broker_tells_is_refused_and_costs_no_request(rows):
    with pytest.raises(ContractError):
        TopicsMoved.from_json(rows)
    requests = json.loads(RequestCounts({"Produce": ApiCounts(unanswered=3)}).to_text())
    found = RequestCounts.from_text(json.dumps({**requests, "_topics": rows}))
    assert (found.topics, found.requests) == (None, 3)
