"""What calls for a rebalance that nobody has asked for, by the document of a look at the cluster."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.rebalancing.causes import GIB, MIB, Aside, Cause, aside_of, cause_of, is_calm
from controlplane.rebalancing.planner.model import Goal

EVEN = {"leaders": 20, "produce": 5 * MIB, "consume": 5 * MIB, "replicas": 60, "disk": 9 * GIB, "bandwidth": 0}

NOTHING = dict.fromkeys(EVEN, 0)
NOBODY = Aside()


def document(**brokers):
    """By `b1`, `b2`: what differs from EVEN; `away` as well."""
    rows = []
    for name, members in brokers.items():
        loads = EVEN | {key: value for key, value in members.items() if key != "away"}
        rows.append({"broker": int(name[1:]), "away": members.get("away", False), "loads": loads})
    return {"brokers": rows}


def found(seen, aside=NOBODY, **options):
    return cause_of(seen, aside, **{"new_brokers": True, "skew_percent": 50, **options})


def test_brokers_that_are_alike_call_for_nothing():
    assert found(document(b1={}, b2={}, b3={})) is None


@pytest.mark.parametrize(
    ("loads", "text"),
    [
        ({"leaders": 80}, "broker 1 leads 100 % more partitions than the average"),
        ({"produce": 20 * MIB}, "producers bring broker 1 100 % more than the average"),
        ({"consume": 20 * MIB}, "consumers take 100 % more from broker 1 than the average"),
        ({"replicas": 240}, "broker 1 has 100 % more replicas than the average"),
        ({"disk": 36 * GIB}, "the disk of broker 1 holds 100 % more than the average"),
    ],
)
def test_a_broker_that_has_much_more_is_named_with_what_it_has(loads, text):
    cause = found(document(b1=loads, b2={}, b3={}))
    assert (cause.cause, cause.text) == (Cause.SKEW, text)


def test_the_largest_skew_is_named_and_of_equals_the_goal_that_is_served_first():
    assert "leads" in found(document(b1={"leaders": 80, "disk": 36 * GIB}, b2={}, b3={})).text
    assert "the disk of broker 2" in found(document(b1={"leaders": 60}, b2={"disk": 90 * GIB}, b3={})).text


def test_below_the_threshold_nothing_is_skewed_and_without_one_nothing_ever_is():
    skewed = document(b1={"leaders": 80}, b2={}, b3={})
    assert found(skewed, skew_percent=101) is None
    assert found(skewed, skew_percent=None) is None


def test_of_little_one_more_is_no_skew():
    little = {"leaders": 2, "produce": 9, "consume": 9, "replicas": 3, "disk": 7}
    assert found(document(b1=little | {"leaders": 9}, b2=little, b3=little)) is None


def test_flows_that_are_old_are_not_compared():
    skewed = document(b1={"produce": 20 * MIB}, b2={}, b3={})
    assert found(skewed, with_flows=False) is None
    assert found(skewed) is not None


class TestANewBroker:
    def test_it_is_a_cause_before_any_skew(self):
        cause = found(document(b1={"leaders": 200}, b2={}, b9=NOTHING))
        assert (cause.cause, cause.text) == (Cause.NEW_BROKER, "broker 9 has no replicas yet")

    def test_it_is_none_where_it_is_not_to_be(self):
        assert found(document(b1={}, b2={}, b9=NOTHING), new_brokers=False, skew_percent=None) is None

    def test_in_a_cluster_of_almost_nothing_there_is_nothing_to_fill_it_with(self):
        assert found(document(b1={"replicas": 3}, b2={"replicas": 3}, b9=NOTHING), skew_percent=None) is None
        assert found(document(b8=NOTHING, b9=NOTHING), skew_percent=None) is None

    def test_one_that_is_away_is_not_filled(self):
        assert found(document(b1={}, b2={}, b9=NOTHING | {"away": True})) is None

    @pytest.mark.parametrize("how", ["draining", "cordoned", "demoted"])
    def test_one_that_was_set_aside_is_not_filled_and_pulls_no_average_down(self, how):
        seen = document(b1={}, b2={}, b9=NOTHING)
        assert found(seen, Aside(**{how: frozenset({9})}), skew_percent=20) is None


class TestWhatOperatorsHaveSetAside:
    def test_the_last_one_over_the_whole_cluster_counts(self):
        history = [{"draining": [3], "cordoned": [2]}, {"draining": [1], "demoted": [1]}]
        assert aside_of(history, [1, 2, 3]) == Aside(frozenset({3}), frozenset({2}))

    @pytest.mark.parametrize("part", [{"instances": ["ins-1"]}, {"leaders_only": True}])
    def test_one_of_a_part_takes_nothing_back(self, part):
        history = [
            {"demoted": [2], **part},
            {"draining": [1], "leaders_only": False, "instances": []},
            {"draining": [3]},
        ]
        assert aside_of(history, [1, 2, 3]) == Aside(frozenset({1}), demoted=frozenset({2}))

    def test_a_drained_broker_is_drained_whatever_else_is_said(self):
        history = [{"draining": [1], "cordoned": [1, 2], "demoted": [1]}]
        assert aside_of(history, [1, 2]) == Aside(frozenset({1}), frozenset({2}))

    def test_brokers_that_are_not_known_are_left_out_and_without_history_there_is_none(self):
        assert aside_of([{"draining": [7]}], [1]) == Aside() == aside_of([], [1])


def test_it_is_calm_where_no_broker_with_replicas_is_away():
    assert is_calm(document(b1={}, b2={"away": True, "replicas": 0}))
    assert not is_calm(document(b1={}, b2={"away": True}))


LOADS = st.fixed_dictionaries({name: st.integers(0, 10 * GIB) for name in map(str, Goal)})
CLUSTERS = st.dictionaries(st.integers(1, 9), st.tuples(LOADS, st.booleans()), min_size=1, max_size=9).map(
    lambda found: {
        "brokers": [{"broker": broker, "loads": loads, "away": away} for broker, (loads, away) in found.items()]
    }
)
SOME = st.frozensets(st.integers(1, 9), max_size=3)


@settings(max_examples=200)
@given(CLUSTERS, SOME, st.integers(20, 500), st.booleans())
def test_who_calls_is_there_and_not_set_aside_and_a_lower_threshold_hears_it_too(seen, drained, percent, new_brokers):
    aside = Aside(drained)
    options = {"new_brokers": new_brokers, "with_flows": True}
    cause = cause_of(seen, aside, skew_percent=percent, **options)
    if cause is None:
        return
    number = next(int(word) for word in cause.text.split("broker ")[1].split() if word.isdigit())
    row = next(each for each in seen["brokers"] if each["broker"] == number)
    assert not row["away"]
    assert number not in drained
    assert cause_of(seen, aside, skew_percent=max(20, percent - 7), **options) == cause
