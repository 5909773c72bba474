"""What a rule may say, field by field, and when it holds."""

from __future__ import annotations

import pytest

from controlplane.alarms.delivery.words import rule_text
from controlplane.alarms.readings import OF_FLOW, OF_PARTITIONS, reading_of
from controlplane.alarms.rules import (
    FIGURES,
    MISSING,
    OF_ANY_BROKER,
    OF_GROUPS,
    OF_TOPICS,
    REASONS,
    WATCHED,
    Comparison,
    Missing,
    Rule,
    rule_problems,
)
from controlplane.health.rules import CODES, Facts, Flow, health_of
from controlplane.history.lag import rows as lag
from controlplane.history.latest import Latest
from controlplane.history.metrics import METRICS
from controlplane.history.requests import brokers

GIB = 2**30
RULE = {
    "name": "storage",
    "watch": "storage_used_percent",
    "comparison": "at_least",
    "threshold": 90.0,
    "group": None,
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


# --- figures of the history, and of groups ----------------------------------------------------------------------------------


def test_every_metric_of_the_history_can_be_watched_in_its_unit():
    for metric in METRICS.values():
        assert FIGURES[metric.name].unit == ("" if metric.unit == "connections" else metric.unit)
    for metric in lag.METRICS.values():
        figure = FIGURES[f"group_{metric.name}"]
        assert (figure.unit, figure.of_group) == (metric.unit, True)
    assert set(OF_GROUPS) == {f"group_{name}" for name in lag.METRICS}


LIKE_OTHERS = {"produce_bytes_per_s", "consume_bytes_per_s", "requests_per_s", "produce_p50_ms", "fetch_p50_ms"}
"""Of a broker: that one has more of these than another is no trouble, and half of the requests say less than 99 %."""


def test_what_shows_a_broker_in_trouble_can_be_watched_of_any_broker_in_its_unit():
    for watch, metric in OF_ANY_BROKER.items():
        assert (watch, FIGURES[watch].unit) == (f"any_broker_{metric}", brokers.METRICS[metric].unit)
        assert FIGURES[watch].of_one.count("{name}") == 1
    assert {*OF_ANY_BROKER.values(), *LIKE_OTHERS} == set(brokers.METRICS)


@pytest.mark.parametrize("watch", FIGURES)
def test_a_threshold_is_within_what_the_figure_can_be(watch):
    group = {"group": "billing"} if watch in OF_GROUPS else {"topic": "orders"} if watch in OF_TOPICS else {}
    most = FIGURES[watch].most
    assert fields(watch=watch, threshold=float(most), **group) == []
    assert fields(watch=watch, threshold=most * 1.001, **group) == ["threshold"]


@pytest.mark.parametrize(
    ("watch", "group", "expected"),
    [
        ("group_lag_messages", "billing", []),
        ("group_lag_seconds", " with spaces ", []),
        ("group_lag_bytes", None, ["group"]),
        ("group_lag_messages", None, ["group"]),
        ("group_lag_messages", "", ["group"]),
        ("group_lag_messages", "x" * 1000, []),
        ("group_lag_messages", "x" * 1001, ["group"]),
        ("group_lag_messages", "a\0b", ["group"]),
        ("group_lag_messages", "a\ud800", ["group"]),
        ("connections", "billing", ["group"]),
        ("storage_full", "billing", ["comparison", "threshold", "group"]),
    ],
)
def test_a_figure_of_a_group_names_it_and_no_other_does(watch, group, expected):
    assert fields(watch=watch, group=group) == expected


@pytest.mark.parametrize(
    ("watch", "threshold", "said"),
    [
        ("produce_bytes_per_s", 4.5 * 2**20, "Produce flow above 4.5 MiB/s"),
        ("produce_bytes_per_s", 512, "Produce flow above 512 B/s"),
        ("storage_used_bytes", 3 * 2**30, "Storage used above 3 GiB"),
        ("consume_throttled_ms_per_s", 125, "Throttled time of consumers above 12.5 %"),
        ("connections", 7, "Connections above 7"),
        ("group_lag_messages", 1000, "Lag of group bil\N{REPLACEMENT CHARACTER}ling above 1000 records"),
        (
            "group_lag_seconds",
            90 * 60,
            "Age of the oldest unread record of group bil\N{REPLACEMENT CHARACTER}ling above 90 min",
        ),
    ],
)
def test_a_rule_in_words_has_the_units_of_people_and_the_group(watch, threshold, said):
    group = "bil\nling" if watch in OF_GROUPS else None
    assert rule_text(Rule(watch, Comparison.ABOVE, threshold, group=group)) == said


# --- what is read ---------------------------------------------------------------------------------------------------------

DOCUMENT = {"partitions_under_replicated": 3, "partitions_without_leader": 1}
SAMPLED = {
    **dict.fromkeys(METRICS, 0),
    "produce_bytes_per_s": 930,
    "produce_limit_bytes_per_s": 1000,
    "consume_bytes_per_s": 5,
    "consume_limit_bytes_per_s": None,
    "consume_allocated_bytes_per_s": None,
    "storage_used_bytes": 8 * GIB,
    "storage_limit_bytes": 10 * GIB,
    "connections": 12,
}


def read(facts=None, document=DOCUMENT, latest=None):
    facts = facts or Facts(10 * GIB, Flow(8 * GIB, storage_full=False))
    return reading_of(health_of(facts), document, Latest(1, SAMPLED) if latest is None else latest)


def of(reading, watch, group=None):
    return reading.of(Rule(watch, group=group))


def test_everything_that_can_be_watched_of_an_instance_is_read():
    found = read()
    assert {name for name, _ in found.values} == set(WATCHED) - set(OF_GROUPS)
    assert [of(found, name) for name in ("storage_used_percent", "produce_percent", "connections")] == [
        80.0,
        93.0,
        12.0,
    ]
    assert [of(found, name) for name in ("storage_nearly_full", "storage_full", "health_level")] == [1.0, 0.0, 1.0]
    assert [of(found, name) for name in ("under_replicated_partitions", "offline_partitions")] == [3.0, 1.0]
    assert [of(found, name) for name in ("produce_bytes_per_s", "storage_limit_bytes")] == [930.0, 10.0 * GIB]


def test_a_percentage_of_no_limit_is_no_value_and_so_is_the_limit():
    for name in ("consume_percent", "consume_limit_bytes_per_s", "consume_allocated_bytes_per_s"):
        assert of(read(), name) is Missing.NO_LIMIT
    nothing = Latest(1, {**SAMPLED, "produce_limit_bytes_per_s": 0})
    assert of(read(latest=nothing), "produce_percent") is Missing.NO_LIMIT


def test_a_latency_of_requests_that_there_were_not_is_no_value():
    quiet = Latest(1, {**SAMPLED, "produce_p99_ms": None})
    assert of(read(latest=quiet), "produce_p99_ms") is Missing.NO_REQUESTS
    assert of(read(latest=Latest(1, {**SAMPLED, "produce_p99_ms": 4.5})), "produce_p99_ms") == 4.5


def test_without_a_fresh_sample_no_metric_has_a_value_and_health_has():
    found = read(latest=Latest())
    missing = {name for (name, _), value in found.values.items() if value is Missing.NO_SAMPLE}
    assert missing == {*METRICS, "storage_used_percent", "produce_percent", "consume_percent"}
    assert of(found, "storage_nearly_full") == 1.0


def test_without_a_master_what_it_says_is_not_known_and_that_it_is_away_is():
    found = read(Facts(10 * GIB, flow_problem="no flow master is active"), document=None)
    unknown = {name for (name, _), value in found.values.items() if value is Missing.NO_MASTER}
    assert unknown == {
        "storage_full", "storage_nearly_full", "partitions_without_leader", "partitions_under_replicated",
        "throttled_under_limit", "under_replicated_partitions", "offline_partitions",
    }  # fmt: skip
    assert of(found, "flow_unknown") == 1.0


def test_what_a_master_says_that_has_not_heard_of_its_brokers_is_not_known():
    troubled = {"partitions_without_leader": 0, "partitions_under_replicated": 0}
    new = read(Facts(10 * GIB, Flow(0, storage_full=False)), document=DOCUMENT | troubled | {"learning": True})
    unknown = {name for (name, _), value in new.values.items() if value is Missing.NO_MASTER}
    assert unknown == {*OF_FLOW, *OF_PARTITIONS}
    known = read(document=DOCUMENT | {"learning": False})
    assert Missing.NO_MASTER not in known.values.values()


def test_storage_that_was_full_when_the_master_went_away_still_is():
    facts = Facts(10 * GIB, Flow(10 * GIB, storage_full=True), flow_problem="no flow master is active")
    assert of(read(facts, document=None), "storage_full") == 1.0


def test_without_zookeeper_routes_are_not_known():
    facts = Facts(10 * GIB, Flow(GIB, storage_full=False), listeners=None)
    found = read(facts)
    assert (of(found, "route_down"), of(found, "cluster_unknown")) == (Missing.NO_ROUTES, 1.0)


def test_of_an_instance_that_does_not_run_and_of_a_group_that_nobody_asked_about_nothing_is_known():
    assert of(reading_of(None, DOCUMENT, Latest(1, SAMPLED)), "connections") is Missing.NOT_READ
    assert of(read(), "group_lag_messages", "billing") is Missing.NOT_READ


def test_why_there_is_no_value_is_said_in_words():
    assert set(MISSING) == set(Missing)
