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
was written, nothing below was open any more. Where that one is far, because one transaction was open for long, blocks of entries
are passed over by the smallest of their first offsets.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

from dataplane.storage.checkpoints.transactions import AbortedTransaction

if TYPE_CHECKING:
    from dataplane.doors import Buffer

_VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
_BLOCK = 256


class AbortedIndexError(Exception):
    """The file is not an index of this kind, or a damaged one."""


class AbortedIndex:
    """Of one segment, in columns: there may be a hundred thousand entries."""

    __slots__ = ("_firsts", "_lasts", "_least_firsts", "_producers", "_stables", "is_saved")

    def __init__(self) -> None:
        self._producers, self._firsts, self._lasts, self._stables = (array("q") for _ in range(4))
        self._least_firsts = array("q")  # of each block
        self.is_saved = False  # the file holds the same

    def __len__(self) -> int:
        return len(self._lasts)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return _ENTRY.size * len(self)

    def add(self, aborted: AbortedTransaction) -> None:
        """One more, whose marker is behind all others."""
        if not len(self) % _BLOCK:
            self._least_firsts.append(aborted.first_offset)
        elif aborted.first_offset < self._least_firsts[-1]:
            self._least_firsts[-1] = aborted.first_offset
        self._producers.append(aborted.producer_id)
        self._firsts.append(aborted.first_offset)
        self._lasts.append(aborted.last_offset)
        self._stables.append(aborted.last_stable_offset)
        self.is_saved = False

    def entries(self) -> list[AbortedTransaction]:
        """All of them."""
        columns = zip(self._producers, self._firsts, self._lasts, self._stables, strict=True)
        return [AbortedTransaction(*row) for row in columns]

    def cut(self, end: int) -> None:
        """The segment ends there now."""
        keep = bisect_left(self._lasts, end)
        if keep == len(self):
            return
        for column in (self._producers, self._firsts, self._lasts, self._stables):
            del column[keep:]
        begun = keep - keep % _BLOCK
        del self._least_firsts[begun // _BLOCK :]
        if keep > begun:
            self._least_firsts.append(min(self._firsts[begun:]))
        self.is_saved = False

    def find(self, start: int, bound: int, found: list[AbortedTransaction]) -> bool:
        """Add what a reader of [start, bound) needs to `found`. Whether no segment behind has more of it."""
        firsts, stables = self._firsts, self._stables
        place, end = bisect_left(self._lasts, start), len(firsts)
        while place < end:
            block, within = divmod(place, _BLOCK)
            following = min(end, place - within + _BLOCK)
            if self._least_firsts[block] >= bound:
                if stables[following - 1] >= bound:  # they never fall
                    return True
                place = following
                continue
            for at in range(place, following):
                if firsts[at] < bound:
                    row = self._producers[at], firsts[at], self._lasts[at], stables[at]
                    found.append(AbortedTransaction(*row))
                if stables[at] >= bound:
                    return True
            place = following
        return False

    def pack(self) -> bytes:
        """The content of the file."""
        return b"".join(_ENTRY.pack(_VERSION, *aborted) for aborted in self.entries())


def unpack(data: Buffer) -> AbortedIndex:
    """From the content of a file. Raises AbortedIndexError."""
    index = AbortedIndex()
    if len(data) % _ENTRY.size:
        raise AbortedIndexError("it does not consist of entries")
    before = -1
    for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
        if version != _VERSION or not (0 <= first <= last and last > before):
            raise AbortedIndexError(f"an entry of version {version}, from {first} to {last} behind {before}")
        before = last
        index.add(AbortedTransaction(producer_id, first, last, stable))
    index.is_saved = True
    return index
