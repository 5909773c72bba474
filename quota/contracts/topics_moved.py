"""How many bytes each topic of an instance has moved in some time: record bytes, as they are billed; and its new records. Pure.

A broker tells it with a window of requests (`quota.contracts.requests`), of those topics alone in which anything moved, by the
names that the tenant knows. There may be very many: so those with most are named, and what the others moved is one sum, the
*rest*. A topic that is not named where there is a rest may be in it, and then nobody knows what it moved; where there is no
rest it moved nothing.

Adding up keeps that apart: `unknown` of a topic counts the windows, of one broker each, in which it may have been in a rest, or
of which a broker of an earlier release said nothing. What it moved is known where that is 0. The sum of all names and the rest
is exact, in whatever order it is added up.

Of records the number that were produced is known, where every broker with a part in it tells it: one of an earlier release does
not. Of a topic into which nothing was produced that is 0 in any case.

As JSON ``{"orders": [produced, consumed, unknown, records], "events": [produced, consumed], "old": [produced, consumed, unknown],
"": [produced, consumed, windows]}``: a row of two or three numbers says nothing of records, no topic has an empty name, and the
windows are those that had a rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from quota.contracts.instance import ContractError

MOST_NAMED = 200
"""Topics of an instance in one window of one broker."""
MOST_NAMED_BYTES = 16 * 2**10
"""And of their text: a master is asked for the windows of many instances at once."""
MOST_READ = 4 * MOST_NAMED
"""A text with more is refused."""
_BYTES_OF_NUMBERS = 56
_MOST = 2**53
_REST = ""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Moved(NamedTuple):
    """Bytes of one topic."""

    produced: int
    consumed: int


@dataclass(slots=True)
class TopicsMoved:
    """See the file's text. Of each name: produced, consumed, unknown, records, and whether these are not known (0 or 1)."""

    names: dict[str, list[int]] = field(default_factory=dict)
    rest_produced: int = 0
    rest_consumed: int = 0
    rest_windows: int = 0

    @classmethod
    def not_told(cls) -> Self:
        """A window of a broker of an earlier release: what any topic moved in it is not known."""
        return cls(rest_windows=1)

    @property
    def is_empty(self) -> bool:
        """Nothing moved, and that is known."""
        return not (self.names or self.rest_windows)

    @property
    def total(self) -> Moved:
        """Of all topics together, with the rest."""
        produced, consumed = self.rest_produced, self.rest_consumed
        for row in self.names.values():
            produced, consumed = produced + row[0], consumed + row[1]
        return Moved(produced, consumed)

    def of(self, name: str) -> Moved | None:
        """Of one topic; None: not known."""
        row = self.names.get(name)
        if row is None:
            return None if self.rest_windows else Moved(0, 0)
        return None if row[2] else Moved(row[0], row[1])

    def records_of(self, name: str) -> int | None:
        """That were produced into one topic; None: not known."""
        row = self.names.get(name)
        if row is None:
            return None if self.rest_windows else 0
        return None if row[2] or row[4] else row[3]

    def count(self, name: str, produced: int, consumed: int, records: int | None = None) -> None:
        """A topic has moved so much more. `records` None: how many were produced is not known."""
        row = self.names.setdefault(name, [0, 0, 0, 0, 0])
        row[0] += produced
        row[1] += consumed
        row[4] |= int(records is None and produced > 0)
        row[3] = 0 if row[4] else row[3] + (records or 0 if produced else 0)

    def add(self, other: TopicsMoved) -> None:
        """What another has, of another time or another broker. It stays as it is."""
        names, before, more = self.names, self.rest_windows, other.rest_windows
        if more:
            for name, row in names.items():
                if name not in other.names:
                    row[2] += more
        for name, (produced, consumed, unknown, records, uncounted) in other.names.items():
            row = names.get(name, [])
            if row:
                row[0] += produced
                row[1] += consumed
                row[2] += unknown
                row[4] |= uncounted
                row[3] = 0 if row[4] else row[3] + records
            else:
                names[name] = [produced, consumed, unknown + before, records, uncounted]
        self.rest_produced += other.rest_produced
        self.rest_consumed += other.rest_consumed
        self.rest_windows += more

    def shorten(self, most: int = MOST_NAMED, most_bytes: int | None = None) -> None:
        """Name no more than so many, those with most, as long as their text takes; the others are the rest."""
        size = sum(map(len, self.names)) + _BYTES_OF_NUMBERS * len(self.names)
        if len(self.names) <= most and (most_bytes is None or size <= most_bytes):
            return
        ordered = sorted(self.names.items(), key=_bytes_moved, reverse=True)
        left = size if most_bytes is None else most_bytes
        count = 0
        for name, _ in ordered[:most]:
            left -= len(name) + _BYTES_OF_NUMBERS
            if left < 0:
                break
            count += 1
        self.names = dict(ordered[:count])
        for _, row in ordered[count:]:
            self.rest_produced += row[0]
            self.rest_consumed += row[1]
        self.rest_windows = max(1, self.rest_windows)

    def to_json(self) -> dict[str, list[int]]:
        """As the text has it."""
        found = {name: _written(row) for name, row in self.names.items()}
        if self.rest_windows:
            found[_REST] = [self.rest_produced, self.rest_consumed, self.rest_windows]
        return found

    @classmethod
    def from_trusted(cls, rows: Mapping[str, list[int]]) -> Self:
        """Of rows of our own, unchecked."""
        found = cls({name: _read(row) for name, row in rows.items() if name})
        if _REST in rows:
            found.rest_produced, found.rest_consumed, found.rest_windows = rows[_REST]
        return found

    @classmethod
    def from_json(cls, rows: Any) -> Self:
        """Of what a broker told. Raises ContractError."""
        if not isinstance(rows, dict) or len(rows) > MOST_READ:
            raise ContractError(f"topics moved: an object of at most {MOST_READ} names")
        for name, row in rows.items():
            if name != _REST and not _NAME.fullmatch(name):
                raise ContractError("topics moved: a name that no topic has")
            lengths = (3,) if name == _REST else (2, 3, 4)
            if type(row) is not list or len(row) not in lengths:
                raise ContractError("topics moved: a row has bytes produced and consumed, and perhaps records")
            for number in row:
                if type(number) is not int or not 0 <= number <= _MOST:
                    raise ContractError(f"topics moved: {number!r} must be a whole number of 0 or more")
        return cls.from_trusted(rows)


def _written(row: list[int]) -> list[int]:
    """As the text has it: of a topic that was read alone nobody need say that it had no new records."""
    produced, _, unknown, records, uncounted = row
    if produced and not uncounted:
        return [*row[:3], records]
    return row[:3] if unknown else row[:2]


def _read(row: list[int]) -> list[int]:
    is_counted = len(row) > len(("produced", "consumed", "unknown"))
    produced, consumed, unknown, records, *_ = (*row, 0, 0)
    return [produced, consumed, unknown, records, int(produced > 0 and not is_counted)]


def _bytes_moved(item: tuple[str, list[int]]) -> int:
    row = item[1]
    return row[0] + row[1]
