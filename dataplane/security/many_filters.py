"""Of many filters of ACLs, which is the first that means one: what DeleteAcls answers. Pure.

Thousands of filters against thousands of ACLs are not compared pair by pair: filters that fix the same members stand in one
table by what they fix, so an ACL asks once for each such shape, of which there are at most 160.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from typing import Any

from dataplane.protocol.release import released
from quota.contracts.acls import ANYTHING, Acl, PatternType
from quota.core.acl_filters import MATCH, AclFilter
from quota.steps import Steps

_FILTERS_PER_STEP, _ACLS_PER_STEP, _NODES_PER_STEP = 30, 5, 400
_NO_PLACE = 2**31
_NAME = 2
"""Where it is among the members."""
_LAST = "\U0010ffff"
Key = tuple[object, ...]


def _members(one: Acl | AclFilter) -> Key:
    """What it fixes; None: nothing."""
    return (
        one.resource_type,
        None if one.pattern_type == MATCH else one.pattern_type,
        one.resource_name,
        one.principal,
        one.host,
        one.operation,
        one.permission,
    )


def matching(acl_filter: AclFilter, acls: Iterable[Acl]) -> Steps[list[Acl]]:
    """Those that one filter means."""
    found: list[Acl] = []
    for place, acl in enumerate(acls, 1):
        if place % (10 * _ACLS_PER_STEP) == 0:
            yield None
        if acl_filter.takes(acl):
            found.append(acl)
    return found


def by_first_filter(filters: Mapping[int, AclFilter], acls: Iterable[Acl]) -> Steps[dict[int, list[Acl]]]:
    """By the place of a filter, the ACLs of which it is the first that means them. Costs their sum, not their product."""
    tables = yield from _Tables.of(filters)
    found: dict[int, list[Acl]] = {}
    for number, acl in enumerate(acls, 1):
        if number % _ACLS_PER_STEP == 0:
            yield None
        place = tables.first(acl)
        if place != _NO_PLACE:
            found.setdefault(place, []).append(acl)
    yield from tables.dismissed()
    return found


class _Tables:
    """Filters by their shape (which members they fix) and by what they fix."""

    def __init__(self) -> None:
        self._exact: dict[tuple[int, ...], dict[Key, int]] = {}
        self._names: dict[
            tuple[int, ...], dict[Key, _Names]
        ] = {}  # of those that match a name, which is not in the key

    @classmethod
    def of(cls, filters: Mapping[int, AclFilter]) -> Steps[_Tables]:
        tables = cls()
        for number, (place, acl_filter) in enumerate(filters.items(), 1):
            if number % _FILTERS_PER_STEP == 0:
                yield None
            tables._add(acl_filter, place)
        for names in [names for table in tables._names.values() for names in table.values()]:
            yield from names.close()
        return tables

    def dismissed(self) -> Steps[None]:
        """Let go of all of it, with pauses; nothing may be asked of it any more."""
        held: list[Any] = [self._exact, self._names]
        self._exact, self._names = {}, {}
        yield from released(held)

    def _add(self, acl_filter: AclFilter, place: int) -> None:
        matches_name = acl_filter.pattern_type == MATCH and acl_filter.resource_name is not None
        members = _members(acl_filter)
        fixed = [number for number, member in enumerate(members) if member is not None]
        shape = tuple(number for number in fixed if not (matches_name and number == _NAME))
        key = tuple(members[number] for number in shape)
        if matches_name:
            names = self._names.setdefault(shape, {}).setdefault(key, _Names())
            names.add(str(acl_filter.resource_name), place)
        else:
            table = self._exact.setdefault(shape, {})
            table[key] = min(place, table.get(key, place))

    def first(self, acl: Acl) -> int:
        """The place of the first filter that means it; `_NO_PLACE`: none does."""
        members, found = _members(acl), _NO_PLACE
        for shape, table in self._exact.items():
            found = min(found, table.get(tuple([members[number] for number in shape]), _NO_PLACE))
        for shape, by_names in self._names.items():
            names = by_names.get(tuple([members[number] for number in shape]))
            if names is not None:
                found = min(found, names.first(acl))
        return found


class _Names:
    """Names that filters match, sorted, with the least place below each node of a tree over them."""

    def __init__(self) -> None:
        self._names: list[tuple[str, int]] = []
        self._least: list[int] = []

    def add(self, name: str, place: int) -> None:
        """One more; before `close`."""
        insort(self._names, (name, place))

    def close(self) -> Steps[None]:
        """All are there."""
        size = len(self._names)
        self._least = [_NO_PLACE] * size
        self._least += [place for _, place in self._names]
        for node in range(size - 1, 0, -1):
            if node % _NODES_PER_STEP == 0:
                yield None
            self._least[node] = min(self._least[2 * node], self._least[2 * node + 1])

    def first(self, acl: Acl) -> int:
        """The least place of the names to which an ACL would apply."""
        name, size = acl.resource_name, len(self._names)
        low, high = bisect_left(self._names, (name, -1)), size
        if acl.pattern_type is PatternType.PREFIXED:
            behind = name.rstrip(_LAST)
            if behind:
                high = bisect_left(self._names, (behind[:-1] + chr(ord(behind[-1]) + 1), -1))
        elif name == ANYTHING:
            low = 0
        else:
            high = bisect_right(self._names, (name, _NO_PLACE))
        return self._least_between(low + size, high + size)

    def _least_between(self, low: int, high: int) -> int:
        """Of the nodes from one up to the other, both of the tree's last row."""
        found = _NO_PLACE
        while low < high:
            if low & 1:
                found, low = min(found, self._least[low]), low + 1
            if high & 1:
                high -= 1
                found = min(found, self._least[high])
            low, high = low // 2, high // 2
        return found
