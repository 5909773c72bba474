"""The rules alone: what is exceeded, and that nothing is ever sold twice, whatever the order."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.admission import rules
from controlplane.admission.rules import BANDWIDTH, BROKER_TIME, CONNECTIONS, INSTANCES, PRICE, Room

SIZES = {"bandwidth_mib_per_s": 20, "storage_gib": 100, "partitions": 300}


def taken(hosts=3, operators=None, **sizes):
    return rules.taken_of_cluster(**(SIZES | sizes), hosts=hosts, operators=operators or {})


def test_an_instance_takes_what_was_bought_and_connections_and_time_of_each_host():
    assert taken() == {
        "instances": 1, "bandwidth_mib_per_s": 20, "storage_gib": 100, "partitions": 300,
        "connections": 3000, "broker_time_ms_per_s": 2400,
    }  # fmt: skip
    assert taken(hosts=1)[CONNECTIONS] == 1000
    assert taken(hosts=1)[BROKER_TIME] == 900  # no more than a broker gives to one tenant


@pytest.mark.parametrize(("limit", "ms"), [(None, 2700), (100, 100), (0, 0), (10**6, 2700)])
def test_an_operators_limit_of_broker_time_is_what_counts(limit, ms):
    assert taken(operators={"loop_ms_per_s": limit})[BROKER_TIME] == ms


def test_capacity_is_room_times_overcommit_times_brokers():
    assert rules.capacity_of({BANDWIDTH: Room(300, 1.5)}, brokers=3, instances=500) == {
        INSTANCES: 500, BANDWIDTH: 1350,
    }  # fmt: skip


def test_what_is_exceeded_says_limit_use_and_what_was_asked():
    others = [{BANDWIDTH: 300.0}, {BANDWIDTH: 70.0}]
    (found,) = rules.exceeded({BANDWIDTH: 400.0}, others, before={BANDWIDTH: 20.0}, after={BANDWIDTH: 40.0})
    assert (found.limit, found.used, found.asked) == (400, 390, 20)
    assert found.document() == {"resource": BANDWIDTH, "limit": 400, "used": 390, "asked": 20}
    assert rules.sentence_of(found, has="the organisation may have") == (
        "bandwidth: the organisation may have 400 MiB/s (in use: 390 MiB/s; asked for: 20 MiB/s more)"
    )


def test_the_last_unit_can_be_had():
    assert rules.exceeded({BANDWIDTH: 400.0}, [{BANDWIDTH: 380.0}], after={BANDWIDTH: 20.0}) == ()


def test_tenths_add_up():
    """0.1 ten times is 0.9999999999999999 if floats are added one by one, and three of them more than 0.3."""
    assert rules.exceeded({BANDWIDTH: 1.0}, [{BANDWIDTH: 0.1}] * 9, after={BANDWIDTH: 0.1}) == ()


@pytest.mark.parametrize("after", [5.0, 20.0])
def test_what_does_not_grow_is_never_refused(after):
    others = [{BANDWIDTH: 1000.0}]
    assert rules.exceeded({BANDWIDTH: 100.0}, others, before={BANDWIDTH: 20.0}, after={BANDWIDTH: after}) == ()


def test_money_is_counted_in_decimals():
    others = [{PRICE: Decimal("0.10")}] * 2
    assert rules.exceeded({PRICE: Decimal("0.30")}, others, after={PRICE: Decimal("0.10")}) == ()
    (found,) = rules.exceeded({PRICE: Decimal("0.30")}, others, after={PRICE: Decimal("0.11")})
    assert found.document() == {"resource": PRICE, "limit": "0.30", "used": "0.20", "asked": "0.11"}
    assert "CNY 0.11 a month more" in rules.sentence_of(found, has="the organisation may have", currency="CNY")


amounts = st.one_of(st.floats(0.001, 1e5, allow_nan=False), st.integers(1, 500).map(float))
sizes = st.fixed_dictionaries(
    {"bandwidth_mib_per_s": amounts, "storage_gib": amounts, "partitions": st.integers(1, 40_000)}
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("create"), sizes),
        st.tuples(st.just("resize"), st.integers(0, 30), sizes),
        st.tuples(st.just("fail"), st.integers(0, 30)),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.just("gone"), st.integers(0, 30)),
    ),
    max_size=40,
)
rooms = st.fixed_dictionaries(
    {
        name: st.builds(Room, st.floats(1, most), st.floats(0.1, 10))
        for name, most in {
            "bandwidth_mib_per_s": 1000, "storage_gib": 1e5, "partitions": 40_000,
            "connections": 10_000, "broker_time_ms_per_s": 900,
        }.items()
    }
)  # fmt: skip


@settings(max_examples=300)
@given(rooms, st.integers(1, 6), st.integers(1, 20), steps)
def test_no_sequence_oversells_a_cluster(room, brokers, most_instances, steps):
    """Creations, resizes, failures and deletions in any order; sums are checked as fractions, which do not round."""
    capacity = rules.capacity_of(room, brokers=brokers, instances=most_instances)
    held: dict[int, tuple[str, dict]] = {}  # what is there: state and sizes
    for number, (kind, *arguments) in enumerate(steps):
        names = sorted(held)
        if kind == "create":
            others = [taken(brokers, **sizes) for _, sizes in held.values()]
            if not rules.exceeded(capacity, others, after=taken(brokers, **arguments[0])):
                held[number] = ("creating", arguments[0])
        elif names:
            name = names[arguments[0] % len(names)]
            state, sizes = held[name]
            if kind == "resize" and state != "deleting":
                others = [taken(brokers, **sizes) for each, (_, sizes) in held.items() if each != name]
                before, after = taken(brokers, **sizes), taken(brokers, **arguments[1])
                if not rules.exceeded(capacity, others, before=before, after=after):
                    held[name] = (state, arguments[1])
            elif kind == "fail" and state == "creating":
                held[name] = ("failed", sizes)
            elif kind == "delete":
                held[name] = ("deleting", sizes)
            elif kind == "gone" and state == "deleting":
                del held[name]
        for resource, limit in capacity.items():
            sold = sum(Fraction(taken(brokers, **sizes)[resource]) for _, sizes in held.values())
            assert sold <= Fraction(limit) * (1 + Fraction(1, 2**52)), resource  # fsum rounds once


@given(st.lists(amounts, min_size=1, max_size=30), st.randoms())
def test_a_sum_does_not_depend_on_the_order(values, shuffler):
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    first, second = ([{BANDWIDTH: value} for value in each] for each in (values, shuffled))
    assert rules.total(first, BANDWIDTH) == rules.total(second, BANDWIDTH) == math.fsum(values)
