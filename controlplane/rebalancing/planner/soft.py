"""Goals one after the other. A move is made if its goal's score becomes smaller and that of no goal before it larger.

So the scores, read in the goals' order, become smaller with each move as numbers do by their first digit that changes:
planning ends, and another goal at the end of the list never costs those before it anything.

For each broker beyond its bounds: those that have too much give, to the brokers that have least; those that have too little
take, from the brokers that have most. Leads change before replicas move, since that copies nothing. Looked at are as many
partners as NEAR says, of all and of the same rack (where a partition stands in every rack already, it can go nowhere else).
Which they are follows from the state alone, not from how it was reached: when nothing more is found, a plan made afresh finds
nothing either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.rebalancing.planner.goals import LED
from controlplane.rebalancing.planner.model import Goal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from controlplane.rebalancing.planner.state import State

NEAR = 8
PASSES = 50
"""Of one goal in one round, at most; a few are usual."""


def serve(state: State, goals: Sequence[Goal], at: int, *, copies: bool) -> bool:
    """Serve the goal at this place of the list; whether anything was moved."""
    phase = _Phase(state, goals[at], goals[:at])
    moved = False
    for _ in range(PASSES):
        found = goals[at] in LED and phase.change_leads()
        if copies:
            found |= phase.move_replicas()
        if not found:
            return moved
        moved = True
    return moved


class _Phase:
    """One goal, and those before it."""

    def __init__(self, state: State, goal: Goal, before: Sequence[Goal]) -> None:
        self._state, self._goal = state, goal
        self._of_leads = tuple(each for each in before if each in LED)
        self._of_replicas = tuple(each for each in before if each not in LED)
        self._by_lead = goal in LED
        self._open = state.may_lead if self._by_lead else state.takes
        self._least = min(filter(None, state.weights[goal]), default=0)

    def change_leads(self) -> bool:
        """Within the replicas that there are."""
        state, moved = self._state, False
        for source in self._above():
            for partition in self._heaviest(state.leads[source]):
                if not self._is_above(source):
                    break
                others = state.replicas[partition][1:]
                moved |= any(self._lead(partition, source, target) for target in self._emptiest_of(others))
        for target in self._below():
            led = (each for each in state.hosts[target] if state.replicas[each][0] != target)
            for partition in self._heaviest(led):
                if not self._is_below(target):
                    break
                moved |= self._lead(partition, state.replicas[partition][0], target)
        return moved

    def move_replicas(self) -> bool:
        """To other brokers."""
        moved = False
        for source in self._above():
            moved |= self._give(source)
        for target in self._below():
            moved |= self._take(target)
        return moved

    def _give(self, source: int) -> bool:
        moved = False
        targets = self._partners(source, self._emptiest(), lambda place: (source, place))
        for partition in self._heaviest(self._held(source)):
            if not targets or not self._is_above(source):
                break
            if any(self._move(partition, source, target) for target in targets):
                targets = self._partners(source, self._emptiest(), lambda place: (source, place))
                moved = True
        return moved

    def _take(self, target: int) -> bool:
        moved = False
        for source in self._partners(target, self._fullest(), lambda place: (place, target)):
            for partition in self._heaviest(self._held(source)):
                if not self._is_below(target):
                    return moved
                moved |= self._move(partition, source, target)
        return moved

    def _partners(self, place: int, ordered: Sequence[int], way: Callable[[int], tuple[int, int]]) -> list[int]:
        """The first of all brokers and of the same rack between whom and this one something could go for the better."""
        state = self._state
        able = [
            other for other in ordered if other != place and state.shifted(self._goal, self._least, *way(other)) < 0
        ]
        near = [other for other in able if state.racks[other] == state.racks[place]]
        return list(dict.fromkeys((*near[:NEAR], *able[:NEAR])))

    # --- one move -----------------------------------------------------------------------------------------------------

    def _lead(self, partition: int, source: int, target: int) -> bool:
        state = self._state
        if not self._open[source] or not state.leads_well(partition, target):
            return False
        if not self._is_better(partition, source, target, self._of_leads):
            return False
        state.lead(partition, target)
        return True

    def _move(self, partition: int, source: int, target: int) -> bool:
        state = self._state
        leads = state.replicas[partition][0] == source
        others = (*self._of_leads, *self._of_replicas) if leads else self._of_replicas
        if not self._is_better(partition, source, target, others):
            return False
        if not state.hosts_well(partition, source, target):
            return False
        state.replace(partition, source, target)
        return True

    def _is_better(self, partition: int, source: int, target: int, others: Iterable[Goal]) -> bool:
        state = self._state
        if state.difference(self._goal, partition, source, target) >= 0:
            return False
        return all(state.difference(goal, partition, source, target) <= 0 for goal in others)

    # --- where to look ------------------------------------------------------------------------------------------------

    def _held(self, place: int) -> set[int]:
        return self._state.leads[place] if self._by_lead else self._state.hosts[place]

    def _heaviest(self, partitions: Iterable[int]) -> list[int]:
        """Those that may move; of the same weight the smallest first, which is copied soonest."""
        state, weights = self._state, self._state.weights[self._goal]
        sizes = state.weights[Goal.DISK]
        able = [each for each in partitions if state.partitions[each].movable and weights[each]]
        return sorted(able, key=lambda each: (-weights[each], sizes[each], each))

    def _is_above(self, place: int) -> bool:
        return self._state.loads[self._goal][place] > self._state.bounds[self._goal][place][1]

    def _is_below(self, place: int) -> bool:
        return self._state.loads[self._goal][place] < self._state.bounds[self._goal][place][0]

    def _above(self) -> list[int]:
        return [place for place in self._fullest() if self._is_above(place)]

    def _below(self) -> list[int]:
        return [place for place in self._emptiest() if self._is_below(place)]

    def _fullest(self) -> list[int]:
        return self._emptiest()[::-1]

    def _emptiest(self) -> list[int]:
        return self._emptiest_of(place for place, is_open in enumerate(self._open) if is_open)

    def _emptiest_of(self, places: Iterable[int]) -> list[int]:
        """By how much they have beside the middle of their bounds: disks and brokers are of different sizes."""
        loads, bounds = self._state.loads[self._goal], self._state.bounds[self._goal]
        return sorted(places, key=lambda place: (loads[place] - bounds[place][1], place))
