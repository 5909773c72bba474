"""Placement and elections, as rules over every possible input."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.cluster.paths import NO_LEADER, PartitionState
from dataplane.controller.decisions import elections
from dataplane.controller.decisions.placement import simple, spread

brokers = st.lists(st.integers(0, 30), min_size=1, max_size=9, unique=True)


@given(brokers, st.integers(1, 40), st.data())
def test_replicas_of_a_partition_are_on_different_brokers_and_leaders_are_balanced(
    ids: list[int], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(ids)))
    assignment = spread(ids, partitions, factor, Random(data.draw(st.integers(0, 2**32))))
    assert list(assignment) == list(range(partitions))
    for replicas in assignment.values():
        assert len(set(replicas)) == len(replicas) == factor
        assert all(replica in ids for replica in replicas)
    leaders = Counter(replicas[0] for replicas in assignment.values())
    loads = [leaders[broker] for broker in ids]
    assert max(loads) - min(loads) <= 1


def test_the_documented_example_comes_out() -> None:
    class Dice(Random):
        def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
            return 0 if stop is None else 1  # start broker 0, shift 1

    assignment = spread(range(5), 10, 3, Dice())
    assert [assignment[p] for p in (0, 1, 4, 5, 6, 9)] == [
        (0, 1, 2),
        (1, 2, 3),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (4, 1, 2),
    ]
    assert simple([3, 1, 2], 3, 2) == {0: (1, 2), 1: (2, 3), 2: (3, 1)}


def epochs(brokers: list[int]) -> dict[int, int]:
    return {broker: 100 + broker for broker in brokers}


@st.composite
def situations(draw: st.DrawFn) -> tuple[PartitionState, tuple[int, ...], dict[int, int]]:
    replicas = tuple(draw(st.permutations([1, 2, 3, 4])))[: draw(st.integers(1, 4))]
    isr = tuple(draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True)))
    leader = draw(st.sampled_from((*isr, NO_LEADER)))
    alive = draw(st.lists(st.integers(1, 4), unique=True))
    return PartitionState(leader, draw(st.integers(0, 9)), isr, 1, 5), replicas, epochs(alive)


@given(situations())
def test_a_leader_is_alive_and_was_in_sync_or_there_is_none_and_the_isr_stays(
    situation: tuple[PartitionState, tuple[int, ...], dict[int, int]],
) -> None:
    state, replicas, alive = situation
    changed = elections.after_change(state, replicas, alive, 7)
    now = changed or state
    survivors = tuple(replica for replica in state.isr if replica in alive)
    if survivors:
        assert now.leader in survivors
        assert now.isr == survivors
        assert now.leader == state.leader or state.leader not in survivors
    else:
        assert (now.leader, now.isr) == (NO_LEADER, state.isr)
    assert (changed is None) == ((now.leader, now.isr) == (state.leader, state.isr))
    if changed is not None:
        assert (changed.leader_epoch, changed.controller_epoch) == (state.leader_epoch + 1, 7)
        assert changed.partition_epoch == state.partition_epoch  # the compare-and-set is on what was read


@given(situations())
def test_preferred_and_leaving_choose_only_among_those_in_sync(
    situation: tuple[PartitionState, tuple[int, ...], dict[int, int]],
) -> None:
    state, replicas, alive = situation
    preferred = elections.preferred(state, replicas, alive, 7)
    assert preferred is None or (preferred.leader == replicas[0] and replicas[0] in state.isr and replicas[0] in alive)
    leaving = state.isr[0]
    moved = elections.without(state, replicas, alive, leaving, 7)
    if moved is not None:
        assert moved.leader in state.isr
        assert moved.leader in alive
        assert leaving not in moved.isr


@given(situations())
def test_only_unclean_election_takes_a_replica_that_was_not_in_sync(
    situation: tuple[PartitionState, tuple[int, ...], dict[int, int]],
) -> None:
    state, replicas, alive = situation
    now = elections.after_change(state, replicas, alive, 7, unclean=True) or state
    living = [replica for replica in replicas if replica in alive]
    if living:
        assert now.leader in living
        assert now.leader in now.isr
    else:
        assert now.leader == NO_LEADER


@pytest.mark.parametrize(("alive", "expected"), [([2, 3], (2, (2, 3))), ([1, 2, 3], (1, (1, 2, 3))), ([], None)])
def test_a_first_leader_is_the_first_live_replica(alive: list[int], expected: tuple[int, tuple[int, ...]]) -> None:
    state = elections.first_state((1, 2, 3), epochs(alive), 4)
    assert (state and (state.leader, state.isr)) == expected
