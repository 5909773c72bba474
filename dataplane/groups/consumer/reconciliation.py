"""How one member comes from what it has to what it shall have: one step a heartbeat, giving up before taking.

    has something that is not in its target  -> UNREVOKED: it keeps the rest, and its epoch, until it says that it does not own it
    what it lacks is free, all or some of it -> gets that, and the target's epoch
    some of what it lacks others still have  -> UNRELEASED: looks again at its next heartbeat
    nothing of this                          -> STABLE

What a member gives up is free when it says so, not when it is told to: so no partition has two owners at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.groups.consumer.model import Assignment, MemberState, places

if TYPE_CHECKING:
    from dataplane.groups.consumer.model import Member, Place

IsFree = Callable[["Place"], bool]


def reconcile(
    member: Member, target_epoch: int, target: Assignment, is_free: IsFree, owned: Assignment | None
) -> Member:
    """The member after the next step; itself where there is none. `owned` is what it says that it has; None: as before."""
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return member
    if member.state is MemberState.UNREVOKED and _owns(owned, member.revoking):
        return member
    kept, surplus = split(member.assigned, target)
    if surplus and _owns(owned, surplus):
        return _moved(member, MemberState.UNREVOKED, member.epoch, kept, surplus)
    lacks = split(target, kept)[1]
    free = {topic: tuple(p for p in partitions if is_free((topic, p))) for topic, partitions in lacks.items()}
    waits = any(len(free[topic]) < len(partitions) for topic, partitions in lacks.items())
    state = MemberState.UNRELEASED if waits else MemberState.STABLE
    return _moved(member, state, target_epoch, together(kept, free), {})


def _moved(member: Member, state: MemberState, epoch: int, assigned: Assignment, revoking: Assignment) -> Member:
    previous = member.previous_epoch if epoch == member.epoch else member.epoch
    after = replace(member, state=state, epoch=epoch, previous_epoch=previous, assigned=assigned, revoking=revoking)
    return member if after == member else after  # it waits as before


def _owns(owned: Assignment | None, some: Assignment) -> bool:
    """Whether the member may still have some of these; one that says nothing does."""
    return owned is None or any(set(owned.get(topic, ())) & set(partitions) for topic, partitions in some.items())


# --- assignments ------------------------------------------------------------------------------------------------------


def split(one: Assignment, other: Assignment) -> tuple[Assignment, Assignment]:
    """What of one is in the other, and what is not."""
    common, rest = {}, {}
    for topic, partitions in one.items():
        in_other = frozenset(other.get(topic, ()))
        both = tuple(p for p in partitions if p in in_other)
        if both:
            common[topic] = both
        if len(both) < len(partitions):
            rest[topic] = tuple(p for p in partitions if p not in in_other)
    return common, rest


def together(one: Assignment, other: Assignment) -> Assignment:
    """Both, which have nothing in common."""
    joined = dict(one)
    for topic, partitions in other.items():
        if partitions:
            joined[topic] = tuple(sorted((*joined.get(topic, ()), *partitions)))
    return joined


def is_within(owned: Assignment | None, assigned: Assignment) -> bool:
    """Whether a member says that it has nothing but what it was assigned. One that says nothing does not."""
    if owned is None:
        return False
    return all(set(partitions) <= set(assigned.get(topic, ())) for topic, partitions in owned.items())


def count(assignment: Assignment) -> int:
    """How many partitions it names."""
    return sum(1 for _ in places(assignment))
