"""Every batch of a log, from its start to its end, read beside the loop a piece at a time.

For readers that need all of it, as coordinators do when they are elected. Files are read from end to end, without an index: a
segment is opened when its turn comes and kept until it is read, so that compaction may replace it meanwhile. The one that
took its place may begin before what was read already; what is read twice is passed over. What is appended meanwhile is
read as well: when there is nothing left, there is nothing left at this moment.

Two kinds of damage. A batch whose bytes are not what was written is handed out like any other, and `check_stored` says so:
those behind it can be found. Where a length or an offset cannot be one, nobody knows where the next batch begins, and the
rest of the log would be missing without a word: CorruptBatchError.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataplane.records.header import CorruptBatchError, split_batches

if TYPE_CHECKING:
    from dataplane.doors import File
    from dataplane.records.header import BatchHeader
    from dataplane.records.steps import Steps
    from dataplane.storage.log import Log

_CHUNK_BYTES = 2**20
_LARGEST_BATCH = 2**27

Batch = tuple["BatchHeader", memoryview]


class Replay:
    """One reading of a log from its start until it has nothing more."""

    __slots__ = ("_base", "_end", "_file", "_from", "_log", "_next_from", "_position", "_size")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._end = log.end_offset
        self._from = self._next_from = log.start_offset  # what lies before was handed out, or is deleted
        self._file: File | None = None
        self._base = self._position = self._size = 0

    def next(self) -> Steps[list[Batch]]:
        """The next batches; none at the end. Raises OSError, CorruptBatchError."""
        while self._position < self._size or self._open_next():
            batches = yield from self._piece()
            if batches:
                return batches
        return []

    def _open_next(self) -> bool:
        """Begin the segment that the next offset is in, or go on in it where it has grown since."""
        self._from = self._next_from
        self._end = self._log.end_offset
        if self._from >= self._end:
            return False
        segments = self._log.segments
        bases = [segment.base_offset for segment in segments]
        number = max((n for n, base in enumerate(bases) if base <= self._from), default=0)
        self._next_from = bases[number + 1] if number + 1 < len(bases) else self._end
        segment = segments[number]
        has_grown = segment.base_offset == self._base and self._size > 0
        self._position = segment.position_of(self._from) if has_grown else 0
        self._base, self._size = segment.base_offset, segment.size
        self._file = segment.file if self._size else None
        return True

    def _piece(self) -> Steps[list[Batch]]:
        if self._file is None:
            return []
        want = _CHUNK_BYTES
        while True:
            chunk = yield partial(self._file.read, self._position, min(want, self._size - self._position))
            found = self._split(chunk)
            if found:
                break
            if len(chunk) < want or want >= _LARGEST_BATCH:
                raise self._lost()
            want *= 8
        for header, batch in found:
            if not self._base <= header.base_offset < self._end:
                raise self._lost()
            self._position += len(batch)
        return [(header, batch) for header, batch in found if header.last_offset >= self._from]

    def _split(self, chunk: bytes) -> list[Batch]:
        try:
            return split_batches(chunk)
        except CorruptBatchError as error:
            raise self._lost() from error

    def _lost(self) -> CorruptBatchError:
        return CorruptBatchError(
            f"{self._log.topic}-{self._log.partition}: segment {self._base} cannot be read behind position {self._position}"
        )
