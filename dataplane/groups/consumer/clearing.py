"""What may be in the log and does not hold is overwritten, by what does: in one batch, or in several of bounded size.

A successor may load the group between two of them. What it finds must be a group of one protocol, though some members may be
missing, who join again. So the record that says which protocol it is has its turn while there is nothing to contradict it:

    the group is of consumers   the end of the classic group and the group's epoch first, the members afterwards
    it could not become one     the members first, then the group's epoch; the classic group comes last
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.groups.consumer.records import Kind, as_it_is, size_of

if TYPE_CHECKING:
    from dataplane.groups.consumer.model import Group
    from dataplane.groups.consumer.records import Record
    from dataplane.protocol.messages.group_records import GroupMetadataValue

_ORDER = (
    *(Kind.CLASSIC, Kind.EPOCH, Kind.TARGET_EPOCH, Kind.TOPICS, Kind.PATTERN),
    *(Kind.MEMBER, Kind.TARGET, Kind.CURRENT),
)
"""Of a group of consumers; of one that is none, the other way round."""


def clearing(group: Group, classic: GroupMetadataValue | None, limit_bytes: int) -> tuple[Record, ...]:
    """What holds of the keys that are in doubt: the first of it that has no more bytes than that, one record at least.

    `classic`: what the log shall say of the group of the classic protocol that goes on, where it could not become this one.
    """
    keys = sorted(group.doubtful, key=lambda key: _ORDER.index(Kind(key[0])), reverse=not group.epoch)
    some: list[Record] = []
    left = limit_bytes
    for kind, name in keys:
        record = as_it_is(group, Kind(kind), name, classic)
        left -= size_of(group.group_id, record)
        if some and left < 0:
            break
        some.append(record)
    return tuple(some)
