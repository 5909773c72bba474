"""What comes before any goal: brokers drained and demoted, racks apart, no disk beyond its size. Changes a state.

Each step makes one of these counts smaller and none of them larger: replicas on draining brokers, leads where there are to be
none, racks that partitions lack, bytes beyond a disk's size. What cannot be done is said: it stays as it is.

Of several brokers that may take a replica it goes to the one that lacks most: first by how many replicas, then by how many
bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.rebalancing.planner.model import Goal, Stuck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from controlplane.rebalancing.planner.state import State

NOWHERE = (
    "every other broker has a replica already, is in the rack of one, is away, cordoned or drained as well, has no room on its"
    " disk, or does not serve the instance"
)
NOT_MOVABLE = "it is being moved already, it has no leader, or its instance is not among those named"
NOBODY = "no other in-sync replica of it may lead"


def settle(state: State) -> tuple[bool, list[Stuck]]:
    """Whether anything was moved, and what could not be."""
    stuck: list[Stuck] = []
    moved = _drain(state, stuck)
    moved |= _demote(state, stuck)
    moved |= _part_racks(state)
    moved |= _relieve_disks(state)
    return moved, stuck


def _drain(state: State, stuck: list[Stuck]) -> bool:
    moved = False
    for source in _places(state.draining):
        for partition in sorted(state.hosts[source]):
            if not state.partitions[partition].movable:
                stuck.append(_stuck(state, partition, source, NOT_MOVABLE))
                continue
            if state.replicas[partition][0] == source:
                moved |= _hand_over(state, partition)
            target = _best(state, partition, source)
            if target is None:
                stuck.append(_stuck(state, partition, source, NOWHERE))
            else:
                state.replace(partition, source, target)
                moved = True
    return moved


def _demote(state: State, stuck: list[Stuck]) -> bool:
    moved = False
    for source in _places(state.demoted):
        for partition in sorted(state.leads[source]):
            if not state.partitions[partition].movable or not _hand_over(state, partition):
                stuck.append(_stuck(state, partition, source, NOBODY))
            else:
                moved = True
    return moved


def _hand_over(state: State, partition: int) -> bool:
    """Give the lead to the replica whose broker leads least."""
    where = state.replicas[partition]
    able = [place for place in where[1:] if state.leads_well(partition, place)]
    if not able:
        return False
    state.lead(partition, min(able, key=lambda place: (state.loads[Goal.LEADERS][place], place)))
    return True


def _part_racks(state: State) -> bool:
    moved = False
    for partition, each in enumerate(state.partitions):
        while each.movable and state.racks_short(partition):
            if not _part(state, partition):
                break
            moved = True
    return moved


def _part(state: State, partition: int) -> bool:
    """Move one of two that share a rack into a rack without one; a follower rather than the leader."""
    where = state.replicas[partition]
    racks = [state.racks[place] for place in where]
    for source in reversed(where):
        if racks.count(state.racks[source]) > 1:
            target = _best(state, partition, source, lambda place: state.racks[place] not in racks)
            if target is not None:
                state.replace(partition, source, target)
                return True
    return False


def _relieve_disks(state: State) -> bool:
    moved = False
    for source, most in enumerate(state.disk):
        if most is None or state.loads[Goal.DISK][source] <= most:
            continue
        sizes = state.weights[Goal.DISK]
        for partition in sorted(state.hosts[source], key=lambda each: (-sizes[each], each)):
            if state.loads[Goal.DISK][source] <= most or not sizes[partition]:
                break
            target = _best(state, partition, source) if state.partitions[partition].movable else None
            if target is not None:
                state.replace(partition, source, target)
                moved = True
    return moved


def _best(state: State, partition: int, source: int, also: Callable[[int], bool] = lambda _place: True) -> int | None:
    able = (place for place in range(len(state.brokers)) if also(place) and state.hosts_well(partition, source, place))
    replicas, disk = state.loads[Goal.REPLICAS], state.loads[Goal.DISK]
    return min(able, key=lambda place: (replicas[place], disk[place], place), default=None)


def _places(flags: Iterable[bool]) -> list[int]:
    return [place for place, flag in enumerate(flags) if flag]


def _stuck(state: State, partition: int, place: int, reason: str) -> Stuck:
    each = state.partitions[partition]
    return Stuck(each.topic, each.index, state.brokers[place].id, reason)
