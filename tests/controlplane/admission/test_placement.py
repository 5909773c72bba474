"""Where an instance goes, by the rules alone: as is wished, where there is room, evenly, and whatever the order of clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.admission.placement import (
    Candidate,
    Choice,
    Destination,
    Leaving,
    Obstacle,
    Wish,
    choose,
    destinations,
    fullness,
)
from controlplane.admission.rules import exceeded

RESOURCES = ("instances", "bandwidth_mib_per_s", "storage_gib")
NEED = {"instances": 1, "bandwidth_mib_per_s": 20.0, "storage_gib": 100.0}
ZONES = ("a", "b", "c")


def cluster(name=1, *, capacity=(10, 400, 4000), taken=(0, 0, 0), zones=(), **members):
    amounts = (dict(zip(RESOURCES, each, strict=True)) for each in (capacity, taken))
    return Candidate(name, *amounts, frozenset(zones), **members)


def placed(*candidates, wish=None, need=NEED):
    return choose(candidates, {each.id: need for each in candidates}, wish or Wish())


def test_it_goes_where_the_least_is_sold_afterwards():
    assert placed(cluster(1, taken=(5, 100, 100)), cluster(2, taken=(4, 100, 100))).fitting == (2, 1)


def test_the_fullest_resource_counts_whichever_it_is():
    nearly_full_disk = cluster(1, taken=(0, 0, 3800))
    half_of_everything = cluster(2, taken=(5, 200, 2000))
    assert placed(nearly_full_disk, half_of_everything).fitting == (2, 1)


def test_a_part_counts_and_not_an_amount():
    """The large cluster has sold more, and has more left."""
    large = cluster(1, capacity=(100, 4000, 40_000), taken=(9, 300, 3000))
    assert placed(cluster(2, taken=(3, 100, 1000)), large).fitting == (1, 2)


def test_of_equals_the_oldest_comes_first():
    assert placed(cluster(3), cluster(2), cluster(4)).fitting == (2, 3, 4)


def test_one_without_brokers_comes_behind_all_that_have_some():
    assert placed(cluster(1, is_served=False), cluster(2, taken=(9, 300, 3000))).fitting == (2, 1)
    assert placed(cluster(1, is_served=False)).fitting == (1,)


@pytest.mark.parametrize(
    ("candidate", "wish", "obstacle"),
    [
        (cluster(takes_new=False, zones=["a"]), Wish(), Obstacle.CLOSED),
        (cluster(zones=["a"]), Wish(frozenset("ab")), Obstacle.ZONES),
        (cluster(), Wish(avoided=frozenset({1})), Obstacle.APART),
        (cluster(taken=(10, 0, 0)), Wish(), Obstacle.FULL),
        (cluster(taken=(0, 381, 0)), Wish(), Obstacle.FULL),
    ],
)
def test_what_keeps_it_from_a_cluster_is_said(candidate, wish, obstacle):
    choice = placed(candidate, wish=wish)
    assert (choice.fitting, choice.obstacles[1], choice.unmet) == ((), obstacle, obstacle)


def test_the_last_unit_can_be_had():
    assert placed(cluster(taken=(9, 380, 3900))).fitting == (1,)


def test_the_obstacle_of_the_cluster_that_comes_nearest_is_named():
    wish = Wish(frozenset("a"))
    choice = placed(cluster(1, takes_new=False), cluster(2), cluster(3, zones="a", taken=(10, 0, 0)), wish=wish)
    assert (choice.unmet, choice.full) == (Obstacle.FULL, (3,))
    assert Choice(()).unmet is Obstacle.CLOSED, "there is no cluster at all"


def test_where_there_is_nothing_to_sell_nothing_fits():
    nothing = cluster(capacity=(10, 0, 4000))
    assert fullness(nothing, NEED) == float("inf")
    assert placed(nothing).unmet is Obstacle.FULL


amounts = st.floats(0, 1000, allow_nan=False)
rows = st.fixed_dictionaries(dict.fromkeys(RESOURCES, amounts))
names = st.frozensets(st.sampled_from(ZONES))


@st.composite
def candidates(draw):
    return [
        Candidate(number, draw(rows), draw(rows), draw(names), draw(st.booleans()), draw(st.booleans()))
        for number in range(draw(st.integers(0, 6)))
    ]


wishes = st.builds(Wish, names, st.frozensets(st.integers(0, 6)))


def needs_of(found, need):
    """Of a cluster with more brokers it takes more."""
    return {each.id: {name: amount * (1 + each.id / 10) for name, amount in need.items()} for each in found}


def suits(each, need, wish):
    return (
        each.takes_new
        and wish.zones <= each.zones
        and each.id not in wish.avoided
        and not exceeded(each.capacity, [each.taken], after=need)
    )


@given(candidates(), rows, wishes)
def test_it_is_placed_where_it_suits_and_wherever_it_suits(found, need, wish):
    needs = needs_of(found, need)
    choice = choose(found, needs, wish)
    assert set(choice.fitting) == {each.id for each in found if suits(each, needs[each.id], wish)}
    assert set(choice.fitting) | set(choice.obstacles) == {each.id for each in found}
    assert not set(choice.fitting) & set(choice.obstacles)


@given(candidates(), rows, wishes, st.randoms())
def test_the_order_of_clusters_decides_nothing(found, need, wish, shuffler):
    shuffled = list(found)
    shuffler.shuffle(shuffled)
    needs = needs_of(found, need)
    assert choose(found, needs, wish) == choose(shuffled, needs, wish)


@given(candidates(), rows, wishes)
def test_more_room_in_the_best_one_leaves_it_the_best(found, need, wish):
    needs = needs_of(found, need)
    before = choose(found, needs, wish).fitting
    if not before:
        return
    grown = [
        replace(each, capacity={name: 2 * amount for name, amount in each.capacity.items()})
        if each.id == before[0]
        else each
        for each in found
    ]
    assert choose(grown, needs, wish).fitting == before


@given(candidates(), rows, wishes)
def test_those_with_brokers_come_first_and_each_group_by_what_is_left(found, need, wish):
    needs = needs_of(found, need)
    there = {each.id: each for each in found}
    keys = [
        (not there[name].is_served, fullness(there[name], needs[name])) for name in choose(found, needs, wish).fitting
    ]
    assert keys == sorted(keys)


@settings(max_examples=200)
@given(candidates(), st.lists(st.tuples(rows, wishes, st.frozensets(st.integers(0, 12))), max_size=12))
def test_a_plan_for_what_leaves_oversells_nobody_and_keeps_every_wish(found, asked):
    leaving = [
        Leaving(f"ins-{number}", needs_of(found, need), wish, frozenset(f"ins-{other}" for other in apart))
        for number, (need, wish, apart) in enumerate(asked)
    ]
    planned = destinations(leaving, found)
    assert [each.instance for each in planned] == [each.id for each in leaving]
    there, put = {each.id: each for each in found}, {}
    for each, goes in zip(leaving, planned, strict=True):
        assert (goes.cluster is None) == (goes.obstacle is not None)
        if goes.cluster is None:
            continue
        target = there[goes.cluster]
        assert target.takes_new
        assert each.wish.zones <= target.zones
        assert target.id not in each.wish.avoided
        assert not any(put.get(other) == target.id for other in each.apart_from)
        put[each.id] = target.id
        taken = {name: amount + each.needs[target.id][name] for name, amount in target.taken.items()}
        there[target.id] = replace(target, taken=taken)
    for number, each in there.items():
        before = {candidate.id: candidate for candidate in found}[number].taken
        for name in RESOURCES:
            if each.taken[name] > before[name]:
                assert each.taken[name] <= each.capacity[name] * (1 + 1e-12), name


def test_two_that_are_to_be_apart_leave_to_two_clusters():
    pair = [Leaving(name, {1: NEED, 2: NEED}, Wish(), frozenset({"x", "y"} - {name})) for name in ("x", "y")]
    assert destinations(pair, [cluster(1), cluster(2)]) == [Destination("x", 1), Destination("y", 2)]
    alone = [Leaving(name, {1: NEED}, Wish(), frozenset({"x", "y"} - {name})) for name in ("x", "y")]
    assert destinations(alone, [cluster(1)]) == [Destination("x", 1), Destination("y", None, Obstacle.APART)]
