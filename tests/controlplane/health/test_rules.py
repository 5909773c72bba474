"""Which facts make an instance healthy, degraded or critical, and what is said of each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.health.metrics import metrics_text
from controlplane.health.rules import CODES, Facts, Flow, HealthState, Listener, health_of
from quota.contracts.instance import GIB

GOOD = Facts(
    storage_limit_bytes=10 * GIB,
    flow=Flow(storage_used_bytes=GIB, storage_full=False),
    listeners=[Listener("default", broker) for broker in (1, 2, 3)],
)


def codes(facts: Facts) -> list[str]:
    return [reason.code for reason in health_of(facts).reasons]


def test_an_instance_with_which_nothing_is_the_matter_is_healthy():
    health = health_of(GOOD)
    assert health.state is HealthState.HEALTHY
    assert health.reasons == ()


def test_full_storage_is_critical_and_says_what_is_refused_how_much_is_used_and_what_to_do():
    health = health_of(replace(GOOD, flow=Flow(10 * GIB, storage_full=True)))
    (reason,) = health.reasons
    assert (health.state, reason.code, reason.title) == (HealthState.CRITICAL, "storage_full", "Storage is full")
    assert "Producing is refused: 10 GiB of 10 GiB" in reason.detail
    assert "more storage" in reason.detail


@pytest.mark.parametrize(
    ("used_percent", "expected"), [(74, []), (75, ["storage_nearly_full"]), (99, ["storage_nearly_full"])]
)
def test_storage_is_a_reason_from_75_percent(used_percent, expected):
    facts = replace(GOOD, flow=Flow(10 * GIB * used_percent // 100, storage_full=False))
    assert codes(facts) == expected
    if expected:
        assert health_of(facts).state is HealthState.DEGRADED
        assert f"{used_percent} % full" in health_of(facts).reasons[0].title


def test_the_fence_decides_what_is_full_not_the_figure():
    assert codes(replace(GOOD, flow=Flow(980 * GIB // 100, storage_full=True))) == ["storage_full"]


def test_partitions_without_a_leader_are_critical_and_those_that_are_behind_are_not():
    without = health_of(
        replace(GOOD, flow=Flow(GIB, False, partitions_without_leader=1, partitions_under_replicated=6))
    )
    assert [reason.title for reason in without.reasons] == [
        "1 partition has no leader",
        "6 partitions are under-replicated",
    ]
    assert without.state is HealthState.CRITICAL
    assert health_of(replace(GOOD, flow=Flow(GIB, False, 0, 6))).state is HealthState.DEGRADED


def test_a_route_that_some_brokers_do_not_serve_is_degraded_and_one_that_none_does_is_critical():
    listeners = [Listener("default", 1, "the broker is away"), Listener("default", 2), Listener("default", 3)]
    health = health_of(replace(GOOD, listeners=listeners))
    assert (health.state, health.reasons[0].code) == (HealthState.DEGRADED, "route_down")
    assert health.reasons[0].detail == "Route default, broker 1: the broker is away. Clients use the other brokers"
    every = [Listener("default", broker, "the broker is away") for broker in (1, 2)]
    assert health_of(replace(GOOD, listeners=[*every, Listener("public", 1)])).state is HealthState.CRITICAL


def test_waiting_below_the_limit_counts_from_a_second():
    assert codes(replace(GOOD, throttled_under_limit_ms=999)) == []
    assert codes(replace(GOOD, throttled_under_limit_ms=1000)) == ["throttled_under_limit"]


def test_a_limit_that_is_used_counts_from_a_quarter_of_the_time():
    assert codes(replace(GOOD, throttled_at_limit_ms=29_999)) == []
    (reason,) = health_of(replace(GOOD, throttled_at_limit_ms=109_000)).reasons
    assert (reason.code, reason.title) == ("limit_used_up", "The bandwidth is used up")
    assert "Clients waited 109 s of the last two minutes, because the instance used all its bandwidth" in reason.detail


def test_what_cannot_be_known_is_not_taken_for_good():
    health = health_of(replace(GOOD, flow=None, flow_problem="no flow master is active", listeners=None))
    assert [reason.code for reason in health.reasons] == ["flow_unknown", "cluster_unknown"]
    assert "No flow master is active. Brokers serve on" in health.reasons[0].detail


def test_an_instance_that_is_too_new_to_be_known_to_the_master_is_healthy():
    assert codes(replace(GOOD, flow=None)) == []


def test_a_change_that_is_not_in_force_and_usage_that_is_behind_are_reasons():
    assert codes(replace(GOOD, change_problem="too large", metering_problem="no sign of life")) == [
        "change_not_in_force",
        "metering_behind",
    ]


@given(
    st.builds(
        Facts,
        storage_limit_bytes=st.integers(1, 2**50),
        flow=st.none() | st.builds(Flow, st.integers(0, 2**50), st.booleans(), st.integers(0, 3), st.integers(0, 3)),
        flow_problem=st.sampled_from(["", "no flow master is active"]),
        listeners=st.none()
        | st.lists(
            st.builds(Listener, st.sampled_from("ab"), st.integers(1, 3), st.sampled_from([None, "it is away"]))
        ),
        throttled_under_limit_ms=st.integers(0, 5000),
        throttled_at_limit_ms=st.integers(0, 60_000),
        change_problem=st.sampled_from(["", "x"]),
        metering_problem=st.sampled_from(["", "y"]),
    )
)
def test_the_state_is_that_of_the_worst_reason_and_the_worst_come_first(facts):
    health = health_of(facts)
    order = [HealthState.CRITICAL, HealthState.DEGRADED]
    states = [reason.state for reason in health.reasons]
    assert states == sorted(states, key=order.index)
    assert health.state is (states[0] if states else HealthState.HEALTHY)
    found = [reason.code for reason in health.reasons]
    assert len(set(found)) == len(found)
    assert set(found) <= set(CODES)


def test_metrics_have_a_level_for_each_instance_and_a_line_for_each_reason():
    since = datetime(2026, 11, 21, 9, tzinfo=UTC)
    full = health_of(replace(GOOD, flow=Flow(10 * GIB, storage_full=True))).known_since({}, since)
    lines = metrics_text({"ins-bbbbbbbb": health_of(GOOD), "ins-aaaaaaaa": full}).splitlines()
    assert 'sluice_instance_health{instance="ins-aaaaaaaa"} 2' in lines
    assert 'sluice_instance_health{instance="ins-bbbbbbbb"} 0' in lines
    assert 'sluice_instance_health_reason{instance="ins-aaaaaaaa",code="storage_full",state="critical"} 1' in lines
    moment = f"{since.timestamp():.0f}"
    line = f'sluice_instance_health_reason_since_seconds{{instance="ins-aaaaaaaa",code="storage_full"}} {moment}'
    assert line in lines
