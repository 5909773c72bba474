"""A plan: rounds of what is hard and then of each goal in order, until a round finds nothing more.

A later goal may open a way for an earlier one, hence rounds. In the last one nothing was moved, so that a plan for the cluster
as it will be is empty. A goal joins when those before it have come to their end: where they come to does not depend on it, and it
can only better it. ROUNDS bounds what is spent; a plan that is not `settled` is good as far as it goes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controlplane.rebalancing.planner import hard, soft
from controlplane.rebalancing.planner.bandwidth import Usable
from controlplane.rebalancing.planner.model import Move, Plan, TenantChange
from controlplane.rebalancing.planner.state import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.rebalancing.planner.model import Cluster, Goal, Stuck, Wishes

ROUNDS = 25


def plan(cluster: Cluster, wishes: Wishes) -> Plan:
    """The moves after which the goals are met as well as can be, and what that comes to."""
    state = State(cluster, wishes)
    before, usable = state.loads_now(), Usable(state)
    usable_before = usable.all()
    first = [list(where) for where in state.replicas]
    _, stuck = hard.settle(state)
    state.find_bounds()
    scores_before = _scores_of(cluster, wishes, state)
    settled = True
    for count in range(len(wishes.goals) + 1):  # first what is hard alone, then with the first goal, then with two
        settled, stuck = _rounds(state, wishes.goals[:count], copies=not wishes.leaders_only)
    moves = _moves(state, first, usable)
    bytes_in, bytes_out = _traffic(moves)
    return Plan(
        moves=moves,
        before=before,
        after=state.loads_now(),
        tenants=_tenants(cluster, usable_before, Usable(state).all()),
        scores_before=scores_before,
        scores_after={goal: state.score(goal) for goal in wishes.goals},
        stuck=tuple(stuck),
        settled=settled,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
    )


def _rounds(state: State, goals: Sequence[Goal], *, copies: bool) -> tuple[bool, list[Stuck]]:
    """Until one finds nothing to do; whether it came to that, and what is stuck."""
    stuck: list[Stuck] = []
    for _ in range(ROUNDS):
        moved, stuck = hard.settle(state)
        state.find_bounds()
        for at in range(len(goals)):
            moved |= soft.serve(state, goals, at, copies=copies)
        if not moved:
            return True, stuck
    return False, stuck


def applied(cluster: Cluster, found: Plan) -> Cluster:
    """The cluster after a plan was carried out, and nothing else has changed."""
    targets = {(move.topic, move.partition): move.after for move in found.moves}
    return replace(
        cluster,
        partitions=tuple(
            replace(each, replicas=target, leader=target[0]) if (target := targets.get(each.key)) is not None else each
            for each in cluster.partitions
        ),
    )


def _scores_of(cluster: Cluster, wishes: Wishes, settled: State) -> Mapping[Goal, int]:
    """Of the cluster as it is, by the bounds that hold once what is hard is done: the same as afterwards."""
    now = State(cluster, wishes)
    now.bounds = settled.bounds
    return {goal: now.score(goal) for goal in wishes.goals}


def _moves(state: State, first: list[list[int]], usable: Usable) -> tuple[Move, ...]:
    """What has changed, those first that return most to their tenants, then those that copy least."""
    found = []
    for partition, (each, was, now) in enumerate(zip(state.partitions, first, state.replicas, strict=True)):
        after = tuple(state.brokers[place].id for place in now)
        if was != now or _waits_for_election(state, partition):
            returns = usable.lead(partition, was[0], now[0])
            found.append(
                Move(each.topic, each.index, each.instance, each.replicas, after, each.leader, each.size_bytes, returns)
            )
    return tuple(
        sorted(found, key=lambda move: (-move.returns_bytes_per_s, move.bytes_to_copy, move.topic, move.partition))
    )


def _waits_for_election(state: State, partition: int) -> bool:
    """Whether another than the first replica leads, which could."""
    each, first = state.partitions[partition], state.replicas[partition][0]
    if not each.movable or each.leader is None or each.leader == state.brokers[first].id:
        return False
    return state.leads_well(partition, first)


def _traffic(moves: tuple[Move, ...]) -> tuple[dict[int, int], dict[int, int]]:
    """Bytes into each broker and out of it: a new replica copies from the leader."""
    bytes_in: dict[int, int] = {}
    bytes_out: dict[int, int] = {}
    for move in moves:
        sender = move.before[0] if move.leader is None else move.leader
        for broker in move.added:
            bytes_in[broker] = bytes_in.get(broker, 0) + move.size_bytes
            bytes_out[sender] = bytes_out.get(sender, 0) + move.size_bytes
    return bytes_in, bytes_out


def _tenants(cluster: Cluster, before: Mapping[str, int], after: Mapping[str, int]) -> tuple[TenantChange, ...]:
    return tuple(
        TenantChange(each.id, each.limit_bytes_per_s, before[each.id], after[each.id])
        for each in cluster.instances
        if each.limit_bytes_per_s is not None and each.id in before
    )
