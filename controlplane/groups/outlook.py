"""What a change of a group would do: brokers are asked how things are, and told nothing.

The group as it would be is looked at as `GET` does, so lags are of its new offsets. What brokers decide by themselves is not
foretold, such as who is given the partitions of a member that goes. Each function takes what its service takes, and raises what
that raises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from controlplane.core.clock import OneMoment
from controlplane.core.dry_runs import Affected, affected
from controlplane.groups import judging, moving
from controlplane.groups.selectors import group_view
from controlplane.kafka.group_door import DescribedGroup
from controlplane.kafka.groups import EMPTY, Group

if TYPE_CHECKING:
    from controlplane.groups.selectors import GroupView
    from controlplane.instances.models import Instance
    from controlplane.kafka.group_door import Member

REBALANCING = "PreparingRebalance"
ENDS_LATER = "these are its last offsets: without them the group stays, empty, for some minutes"


@dataclass(frozen=True, slots=True)
class Foretold:
    """A group before and after a change. None: it is not there."""

    before: GroupView | None
    after: GroupView | None
    problems: tuple[str, ...] = ()
    affected: tuple[Affected, ...] = ()


def creating(**members: Any) -> Foretold:
    """Of services.group_create."""
    instance, offsets = judging.creating(**members)
    return _foretold(
        instance, None, Group(DescribedGroup(members["name"], EMPTY, "", ()), dict(sorted(offsets.items())))
    )


def deleting(**members: Any) -> Foretold:
    """Of services.group_delete."""
    judged = judging.deleting(**members)
    return _foretold(judged.instance, judged.group, None, _lost(len(judged.group.committed)))


def forgetting(**members: Any) -> Foretold:
    """Of services.topic_forget."""
    judged, going = judging.forgetting(**members)
    left = {place: offset for place, offset in judged.group.committed.items() if place not in going}
    said = _lost(len(going))
    if not left and judged.group.described.is_offsets_alone:
        return _foretold(judged.instance, judged.group, None, said)
    after = replace(judged.group, committed=left)
    return _foretold(judged.instance, judged.group, after, said if left else (*said, ENDS_LATER))


def removing(**members: Any) -> Foretold:
    """Of services.member_remove."""
    judged, going = judging.removing(**members)
    described = judged.group.described
    left = tuple(member for member in described.members if member.id != going.id)
    return _foretold(
        judged.instance,
        judged.group,
        replace(judged.group, described=_with(described, left)),
        affected=(
            *affected("group_members", [going.id], "out of the group; one that lives joins again by itself"),
            *affected("group_members", [member.id for member in left], "share its partitions among them"),
        ),
    )


def _with(described: DescribedGroup, members: tuple[Member, ...]) -> DescribedGroup:
    """With these members alone. In a rebalance of the classic protocol nobody has a partition, and no way to assign is agreed."""
    if described.is_of_consumers:
        return replace(described, members=members)
    nobody_reads = tuple(replace(member, partitions=()) for member in members)
    return replace(described, members=nobody_reads, state=REBALANCING if members else EMPTY, protocol="")


def resetting(**members: Any) -> Foretold:
    """Of services.offsets_reset."""
    judged, moves = judging.resetting(**members)
    moved = {(move.topic, move.partition): move.after for move in moves if move.changes}
    after = replace(judged.group, committed=dict(sorted({**judged.group.committed, **moved}.items())))
    again, skipped = moving.totals(moves)
    said = [f"{_records(again)} would be read again"] if again else []
    said += [f"{_records(skipped)} would be skipped: this group never reads them"] if skipped else []
    clamped = sum(move.clamped for move in moves)
    where = "1 partition" if clamped == 1 else f"{clamped} partitions"
    said += [f"in {where} the offset asked for is not kept: the nearest would be taken"] if clamped else []
    return _foretold(judged.instance, judged.group, after, tuple(said))


def _foretold(
    instance: Instance,
    before: Group | None,
    after: Group | None,
    problems: tuple[str, ...] = (),
    affected: tuple[Affected, ...] = (),
) -> Foretold:
    """Both looked at as of one moment. Coordinators alone carry a change out: leaders that are away do not keep it back."""
    clock = OneMoment()
    first, last = (
        None if each is None else group_view(instance, each, clock=clock, even_without_ends=True)
        for each in (before, after)
    )
    return Foretold(first, last, problems, affected)


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number} records"


def _lost(partitions: int) -> tuple[str, ...]:
    where = "offsets in 1 partition" if partitions == 1 else f"offsets in {partitions} partitions"
    return (f"{where} would be lost: whoever reads there by this name begins as auto.offset.reset says",)
