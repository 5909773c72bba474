"""Which partitions another replica should lead: by hand, and for any instance."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.remedies.spreading import MOST_MOVES, WORTH, Led, spread, with_flow

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


def one_by_one(parts, takes):
    """The same choice, looking at every partition for every move."""
    left = sorted(parts, key=lambda each: (each.topic, each.partition))
    brokers = sorted({*takes, *(each.leader for each in left)})
    carried = {broker: [sum(p.flow[k] for p in left if p.leader == broker) for k in (0, 1)] for broker in brokers}
    leaders = {broker: sum(each.leader == broker for each in left) for broker in brokers}
    least = -sum((WORTH * sum(each[k] for each in carried.values()) / max(1, len(carried))) ** 2 for k in (0, 1))
    found = []
    while len(found) < MOST_MOVES:
        best, choice = least, None
        gap, idle = 1, None
        for each in left:
            for to in each.replicas:
                if to == each.leader or to not in each.in_sync or to not in takes:
                    continue
                change = sum(
                    2 * each.flow[k] * (carried[to][k] - carried[each.leader][k] + each.flow[k]) for k in (0, 1)
                )
                if any(each.flow) and change < best:
                    best, choice = change, (each, to)
                if not any(each.flow) and leaders[each.leader] - leaders[to] > gap:
                    gap, idle = leaders[each.leader] - leaders[to], (each, to)
        chosen = choice or idle
        if chosen is None:
            break
        each, to = chosen
        left.remove(each)
        for k in (0, 1):
            carried[each.leader][k] -= each.flow[k]
            carried[to][k] += each.flow[k]
        leaders[each.leader], leaders[to] = leaders[each.leader] - 1, leaders[to] + 1
        found.append((each.topic, each.partition, to))
    return found


@given(instances())
def test_the_choice_is_that_of_a_look_at_every_partition(drawn):
    parts, takes = drawn
    assert [(each.topic, each.partition, each.to) for each in spread(parts, takes).leads] == one_by_one(parts, takes)


@pytest.mark.parametrize("known", ["nothing", "flows", "talkers"])
def test_a_plan_of_very_many_topics_takes_a_moment(known):
    """Whoever asks for one keeps a process of the control plane busy for so long."""
    parts = [led(0, 1, 2, 3, topic=f"t{number:05}") for number in range(10_000)]
    flows = {} if known == "nothing" else {1: (9.0 * MIB, 3.0 * MIB)}
    talkers = {(1, f"t{number:05}"): (1.0 + number, 2.0 * number) for number in range(1_000)}
    began = time.process_time()
    found = spread(with_flow(parts, flows, talkers if known == "talkers" else {}), {1, 2, 3})
    assert len(found.leads) == (0 if known == "flows" else MOST_MOVES), "none of so many has enough to be worth it"
    assert time.process_time() - began < 3


def test_where_no_flow_is_known_partitions_are_as_they_are():
    parts = [led(0, 1, 2, flow=(1.0, 2.0))]
    assert with_flow(parts, {}, {}) == parts
