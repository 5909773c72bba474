"""What a rule may say, field by field, and when it holds."""

from __future__ import annotations

import pytest

from controlplane.alarms.delivery.words import rule_text
from controlplane.alarms.readings import reading_of
from controlplane.alarms.rules import FIGURES, REASONS, WATCHED, Comparison, Rule, rule_problems
from controlplane.health.rules import CODES, Facts, Flow, health_of

GIB = 2**30
RULE = {
    "name": "storage",
    "watch": "storage_used_percent",
    "comparison": "at_least",
    "threshold": 90.0,
    "duration_s": 0,
    "repeat_s": None,
    "receivers": [],
    "enabled": True,
}


def fields(**members) -> list[str]:
    return [each.field for each in rule_problems({**RULE, **members}, receivers=["rcv-a", "rcv-b"])]


def test_a_whole_rule_is_fine():
    assert fields() == []
    assert fields(watch="storage_full", comparison=None, threshold=None) == []
    assert fields(duration_s=86_400, repeat_s=300, receivers=["rcv-a", "rcv-b"]) == []


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"name": " "}, ["name"]),
        ({"name": "a\nb"}, ["name"]),
        ({"name": "x" * 129}, ["name"]),
        ({"watch": "weather"}, ["watch"]),
        ({"watch": "storage_full"}, ["comparison", "threshold"]),
        ({"comparison": None}, ["comparison"]),
        ({"comparison": "near"}, ["comparison"]),
        ({"threshold": None}, ["threshold"]),
        ({"threshold": -0.1}, ["threshold"]),
        ({"threshold": 1e10}, ["threshold"]),
        ({"threshold": float("nan")}, ["threshold"]),
        ({"threshold": float("inf")}, ["threshold"]),
        ({"duration_s": 86_401}, ["duration_s"]),
        ({"duration_s": -1}, ["duration_s"]),
        ({"repeat_s": 299}, ["repeat_s"]),
        ({"repeat_s": 604_801}, ["repeat_s"]),
        ({"receivers": ["rcv-a", "rcv-c"]}, ["receivers.1"]),
        ({"receivers": ["rcv-a", "rcv-a"]}, ["receivers.1"]),
        ({"receivers": ["rcv-a"] * 11}, ["receivers", *(f"receivers.{n}" for n in range(1, 11))]),
        ({"name": "", "threshold": None, "duration_s": -1}, ["name", "threshold", "duration_s"]),
    ],
)
def test_what_is_wrong_is_named(members, expected):
    assert fields(**members) == expected


@pytest.mark.parametrize(
    ("comparison", "values"),
    [("above", [91]), ("at_least", [90, 91]), ("below", [89]), ("at_most", [89, 90])],
)
def test_a_figure_is_compared(comparison, values):
    rule = Rule("storage_used_percent", Comparison(comparison), 90)
    assert [value for value in (89, 90, 91) if rule.holds(value)] == values
    assert rule.holds(None) is None


def test_a_reason_is_there_or_not():
    rule = Rule("storage_full")
    assert [rule.holds(value) for value in (1.0, 0.0, None)] == [True, False, None]


def test_every_reason_of_health_and_every_figure_has_words():
    assert tuple(REASONS) == CODES
    assert {*REASONS, *FIGURES} == set(WATCHED)
    for watch in REASONS:
        assert rule_text(Rule(watch)) == REASONS[watch]
    for watch in FIGURES:
        assert rule_text(Rule(watch, Comparison.ABOVE, 2.5, 300)).endswith("for 5 min")


# --- what is read ---------------------------------------------------------------------------------------------------------

DOCUMENT = {
    "storage_used_bytes": 8 * GIB,
    "produce": {"limit": 1000, "flow": 930},
    "consume": {"limit": None, "flow": 5},
    "connections": 12,
}


def read(facts=None, document=DOCUMENT):
    facts = facts or Facts(10 * GIB, Flow(8 * GIB, storage_full=False))
    return reading_of(health_of(facts), document, 10 * GIB).values


def test_everything_that_can_be_watched_is_read():
    assert set(read()) == set(WATCHED)
    found = read()
    assert (found["storage_used_percent"], found["produce_percent"], found["connections"]) == (80.0, 93.0, 12.0)
    assert (found["storage_nearly_full"], found["storage_full"], found["health_level"]) == (1.0, 0.0, 1.0)


def test_a_percentage_of_no_limit_is_no_value():
    assert read()["consume_percent"] is None
    assert read(document={**DOCUMENT, "produce": {"limit": 0, "flow": 5}})["produce_percent"] is None
    assert read(document={**DOCUMENT, "produce": None})["produce_percent"] is None


def test_without_a_master_what_it_says_is_not_known_and_that_it_is_away_is():
    found = read(Facts(10 * GIB, flow_problem="no flow master is active"), document=None)
    unknown = {name for name, value in found.items() if value is None}
    assert unknown == {
        "storage_full", "storage_nearly_full", "partitions_without_leader", "partitions_under_replicated",
        "throttled_under_limit", "storage_used_percent", "produce_percent", "consume_percent", "connections",
    }  # fmt: skip
    assert found["flow_unknown"] == 1.0


def test_storage_that_was_full_when_the_master_went_away_still_is():
    facts = Facts(10 * GIB, Flow(10 * GIB, storage_full=True), flow_problem="no flow master is active")
    found = read(facts, document=None)
    assert found["storage_full"] == 1.0
    assert found["storage_used_percent"] is None


def test_without_zookeeper_routes_are_not_known():
    facts = Facts(10 * GIB, Flow(GIB, storage_full=False), listeners=None)
    found = read(facts)
    assert (found["route_down"], found["cluster_unknown"]) == (None, 1.0)


def test_of_an_instance_that_does_not_run_nothing_is_known():
    assert reading_of(None, DOCUMENT, 10 * GIB).values == {}
