"""Which partitions another replica should lead: by hand, and for any instance."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from controlplane.remedies.spreading import Led, spread, with_flow

MIB = 2**20


def led(partition, *replicas, flow=(0.0, 0.0), in_sync=None, topic="orders", leader=None):
    return Led(topic, partition, leader or replicas[0], replicas, in_sync or replicas, flow)


def test_flow_goes_where_there_is_room():
    parts = [led(number, 1, 2, 3, flow=(3 * MIB, 0.0)) for number in range(3)]
    found = spread(parts, {1, 2, 3})
    assert [(each.partition, each.leader, each.to) for each in found.leads] == [(0, 1, 2), (1, 1, 3)]
    assert found.leads[1].after == (3, 1, 2)
    assert {broker: each.produce for broker, each in found.before.items()} == {1: 9 * MIB}
    assert {broker: each.produce for broker, each in found.after.items()} == {1: 3 * MIB, 2: 3 * MIB, 3: 3 * MIB}
    assert {broker: each.leaders for broker, each in found.after.items()} == {1: 1, 2: 1, 3: 1}


def test_only_who_is_in_sync_and_may_take_it_is_given_a_lead():
    parts = [led(number, 1, 2, 3, in_sync=(1, 3), flow=(MIB, MIB)) for number in range(2)]
    assert {each.to for each in spread(parts, {1, 2, 3}).leads} == {3}
    assert spread(parts, {1, 2}).leads == ()


def test_a_broker_that_takes_none_still_gives():
    parts = [led(number, 1, 2, flow=(MIB, 0.0)) for number in range(2)]
    assert len(spread(parts, {2}).leads) == 1


def test_what_is_even_enough_stays():
    parts = [led(0, 1, 2, flow=(10 * MIB, 0)), led(1, 2, 1, flow=(10.2 * MIB, 0)), led(2, 2, 1, flow=(0.1 * MIB, 0))]
    assert spread(parts, {1, 2}).leads == ()


def test_idle_leaders_are_evened_out_in_number():
    parts = [led(number, 1, 2) for number in range(4)]
    found = spread(parts, {1, 2})
    assert {broker: each.leaders for broker, each in found.after.items()} == {1: 2, 2: 2}


def test_a_leader_that_is_not_the_first_replica_is_the_one_that_gives():
    parts = [led(number, 1, 2, leader=2, flow=(MIB, 0)) for number in range(2)]
    (found,) = spread(parts, {1, 2}).leads
    assert (found.leader, found.to, found.before, found.after) == (2, 1, (1, 2), (1, 2))


def test_what_a_broker_carries_falls_on_topics_by_what_is_known_of_them():
    parts = [led(0, 1, 2), led(1, 1, 2), led(0, 1, 2, topic="quiet"), led(2, 2, 1)]
    found = with_flow(parts, {1: (9.0, 6.0), 2: (5.0, 0.0)}, {(1, "orders"): (2.0, 0.0), (1, "quiet"): (1.0, 0.0)})
    flows = {(each.topic, each.partition): each.flow for each in found}
    assert flows == {
        ("orders", 0): (3.0, 2.0),  # of consuming nothing is known: in equal parts
        ("orders", 1): (3.0, 2.0),
        ("quiet", 0): (3.0, 2.0),
        ("orders", 2): (5.0, 0.0),
    }


@st.composite
def instances(draw):
    dice = random.Random(draw(st.integers(0, 2**32)))
    brokers = range(1, draw(st.integers(2, 6)) + 1)
    parts = []
    for number in range(draw(st.integers(0, 30))):
        replicas = tuple(dice.sample(brokers, dice.randint(1, min(3, len(brokers)))))
        in_sync = tuple(broker for broker in replicas if dice.random() < 0.8) or replicas[:1]
        flow = (dice.choice([0, 1, 7, 100]) * MIB, dice.choice([0, 3]) * MIB)
        parts.append(Led("t", number, dice.choice(in_sync), replicas, in_sync, flow))
    return parts, {broker for broker in brokers if dice.random() < 0.9}


def squares(brokers):
    return sum(each.produce**2 + each.consume**2 for each in brokers.values())


@given(instances())
def test_of_any_instance_nothing_is_copied_nothing_lost_and_it_gets_no_worse(drawn):
    parts, takes = drawn
    found = spread(parts, takes)
    by_number = {each.partition: each for each in parts}
    moved = [each.partition for each in found.leads]
    assert len(moved) == len(set(moved))
    for each in found.leads:
        part = by_number[each.partition]
        assert sorted(each.after) == sorted(each.before) == sorted(part.replicas)
        assert each.to in part.in_sync
        assert each.to in takes
        assert each.to != part.leader
    for name in ("leaders", "produce", "consume"):
        before, after = (sum(getattr(row, name) for row in rows.values()) for rows in (found.before, found.after))
        assert before == after, name
    assert squares(found.after) <= squares(found.before)


@given(instances())
def test_what_was_spread_stays_so(drawn):
    parts, takes = drawn
    to = {each.partition: each for each in spread(parts, takes).leads}
    after = [
        Led(
            each.topic, each.partition, to[each.partition].to if each.partition in to else each.leader,
            each.replicas, each.in_sync, each.flow,
        )
        for each in parts
    ]  # fmt: skip
    again, first = spread(after, takes), spread(parts, takes)
    assert squares(again.after) <= squares(first.after)
    assert len(again.leads) <= len(parts) // 4 + 1, "no partition goes to and fro for ever"
