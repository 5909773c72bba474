"""Replicas on their way from some brokers to others, as rules over every possible input."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataplane.cluster.paths import NO_LEADER, PartitionState
from dataplane.controller.assignment import Assignment, finished, restricted

replica_lists = st.lists(st.integers(1, 6), min_size=1, max_size=5, unique=True).map(tuple)


@given(replica_lists, replica_lists)
def test_on_the_way_there_are_the_new_replicas_in_their_order_and_then_the_old(
    origin: tuple[int, ...], target: tuple[int, ...]
) -> None:
    moving = Assignment(origin).toward(target)
    assert moving.replicas[: len(target)] == moving.target == target
    assert sorted(moving.replicas) == sorted({*origin, *target})
    assert sorted(moving.adding) == sorted({*target} - {*origin})
    assert sorted(moving.removing) == sorted({*origin} - {*target})
    assert moving.is_moving == (sorted(origin) != sorted(target))


@given(replica_lists, replica_lists, replica_lists)
def test_another_target_begins_from_what_was_there_at_first_and_forgets_the_one_before(
    origin: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    moving = Assignment(origin).toward(first).toward(second)
    assert moving.target == second
    assert sorted(moving.origin) == sorted(origin)


@given(replica_lists, replica_lists)
def test_cancelled_it_is_what_it_was(origin: tuple[int, ...], target: tuple[int, ...]) -> None:
    moving = Assignment(origin).toward(target)
    back = moving.toward(moving.origin)
    assert not back.is_moving
    assert sorted(back.replicas) == sorted(origin)


@given(replica_lists, replica_lists)
def test_those_that_may_be_empty_come_last_where_it_matters(origin: tuple[int, ...], target: tuple[int, ...]) -> None:
    moving = Assignment(origin).toward(target)
    assert sorted(moving.oldest_first) == sorted(moving.replicas)
    assert sorted(moving.oldest_first[: len(origin)]) == sorted(origin)


@st.composite
def situations(draw: st.DrawFn) -> tuple[PartitionState, Assignment, list[int]]:
    assignment = Assignment(draw(replica_lists)).toward(draw(replica_lists))
    isr = tuple(draw(st.lists(st.sampled_from(assignment.replicas), min_size=1, unique=True)))
    leader = draw(st.sampled_from((*isr, NO_LEADER)))
    return PartitionState(leader, 4, isr, 1, 5), assignment, draw(st.lists(st.integers(1, 6), unique=True))


@given(situations())
def test_it_ends_only_with_all_of_the_target_in_sync_and_one_of_them_leads(
    situation: tuple[PartitionState, Assignment, list[int]],
) -> None:
    state, assignment, alive = situation
    end = finished(state, assignment, alive, 7)
    if state.leader == NO_LEADER or not {*assignment.target} <= {*state.isr}:
        assert end is None
    elif end is not None:
        assert sorted(end.isr) == sorted(assignment.target)
        assert end.leader in assignment.target
        assert (end.leader_epoch, end.controller_epoch, end.partition_epoch) == (5, 7, 5)


@given(situations(), replica_lists)
def test_who_is_restricted_keeps_its_leader_if_it_may_and_never_loses_the_last_in_sync(
    situation: tuple[PartitionState, Assignment, list[int]], replicas: tuple[int, ...]
) -> None:
    state, _, alive = situation
    after = restricted(state, replicas, alive, 7)
    left = [replica for replica in state.isr if replica in replicas]
    if after is None:
        assert not left or (state.leader not in replicas and not any(replica in alive for replica in left))
        return
    assert list(after.isr) == left
    if state.leader in (*left, NO_LEADER):
        assert after.leader == state.leader
    else:
        assert after.leader == next(replica for replica in replicas if replica in left and replica in alive)
