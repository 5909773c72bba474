"""The transactions whose abort markers are in one segment, so that readers can leave their records out.

    00000000000000001234.txnindex, Kafka's format, big-endian, one entry after the other in the order of the markers:

    version             int16   0
    producer id         int64
    first offset        int64   of the transaction
    last offset         int64   of the marker
    last stable offset  int64   when the marker was written

There is no file where nothing was aborted. It is written and believed as the segment's other indexes are: when the segment is
sealed, closed or left idle, before the `.index`, so that where that one is found this one is not missing. Unlike them it
cannot be made of the segment alone, for the transaction may have begun before: see `log.aborting`.

What a reader of the offsets [start, bound) needs are transactions that begin below `bound` and end at `start` or later. Those
that end within are neighbours; of the others, which were open at `bound`, there is one a producer at most, but it may be far
behind. An entry whose last stable offset is not below `bound` ends the search, in the segments behind as well: when it
was written, nothing below was open any more. Where that one is far, because one transaction was open for long, whole blocks are
passed over by the smallest of their first offsets, once that is known.

There may be a million entries, so in memory they stay as they are in the file, and are looked for in place.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING

from dataplane.storage.checkpoints.transactions import NEVER, AbortedTransaction

if TYPE_CHECKING:
    from dataplane.doors import Buffer

_VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
_SIZE = _ENTRY.size
_BLOCK = 256
_long = struct.Struct(">q").unpack_from
_LAST_AT, _STABLE_AT = 18, 26


class AbortedIndexError(Exception):
    """The file is not an index of this kind, or a damaged one."""


class AbortedIndex:
    """Of one segment."""

    __slots__ = ("_data", "_least_firsts", "is_saved")

    def __init__(self, data: Buffer = b"") -> None:
        """With the content of a file. Raises AbortedIndexError."""
        if len(data) % _SIZE:
            raise AbortedIndexError("it does not consist of entries")
        self._data = bytearray(data)
        self._least_firsts: dict[int, int] = {}  # of blocks that somebody has searched in vain
        self.is_saved = False  # the file holds the same
        if data:
            self._check()

    def _check(self) -> None:
        """What the ends show."""
        for place in (0, len(self) - 1):
            version, _, first, last, _ = _ENTRY.unpack_from(self._data, place * _SIZE)
            if version != _VERSION or not 0 <= first <= last:
                raise AbortedIndexError(f"an entry of version {version}, from {first} to {last}")
        if self._last(0) > self._last(len(self) - 1):
            raise AbortedIndexError("its entries are not in order")

    def __len__(self) -> int:
        return len(self._data) // _SIZE

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._data)

    def _last(self, place: int) -> int:
        return int(_long(self._data, place * _SIZE + _LAST_AT)[0])

    def _stable(self, place: int) -> int:
        return int(_long(self._data, place * _SIZE + _STABLE_AT)[0])

    def _place_of(self, offset: int) -> int:
        """The first entry whose marker is at `offset` or behind."""
        return bisect_left(range(len(self)), offset, key=self._last)

    def add(self, aborted: AbortedTransaction) -> None:
        """One more, whose marker is behind all others."""
        self._least_firsts.pop(len(self) // _BLOCK, None)
        self._data += _ENTRY.pack(_VERSION, *aborted)
        self.is_saved = False

    def entries(self) -> list[AbortedTransaction]:
        """All of them."""
        return [AbortedTransaction(*row) for _, *row in _ENTRY.iter_unpack(self._data)]

    def cut(self, end: int) -> None:
        """The segment ends there now."""
        keep = self._place_of(end)
        if keep < len(self):
            del self._data[keep * _SIZE :]
            self._least_firsts.clear()
            self.is_saved = False

    def find(self, start: int, bound: int, found: list[AbortedTransaction]) -> bool:
        """Add what a reader of [start, bound) needs to `found`. Whether no segment behind has more of it."""
        place, end = self._place_of(start), len(self)
        while place < end:
            block, within = divmod(place, _BLOCK)
            following = min(end, place - within + _BLOCK)
            if self._least_firsts.get(block, -1) < bound:
                rows = memoryview(self._data)[place * _SIZE : following * _SIZE]
                least = NEVER
                for _, producer_id, first, last, stable in _ENTRY.iter_unpack(rows):
                    if first < bound:
                        found.append(AbortedTransaction(producer_id, first, last, stable))
                    least = min(least, first)
                    if stable >= bound:
                        return True
                if not within:
                    self._least_firsts[block] = least
            elif self._stable(following - 1) >= bound:  # they never fall
                return True
            place = following
        return False

    def pack(self) -> bytes:
        """The content of the file."""
        return bytes(self._data)


def unpack(data: Buffer) -> AbortedIndex:
    """From the content of a file. Raises AbortedIndexError."""
    index = AbortedIndex(data)
    index.is_saved = True
    return index
