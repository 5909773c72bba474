"""A file of batches, one behind the other; the first offset is its name.

    00000000000000001234.log   .index   .timeindex   .txnindex

Positions are bytes from the start of the file; a *boundary* is a position where a batch begins or the last one ends.
Here is what the file alone can do: it is opened when it is needed, it grows, and its batches' headers are walked over
from a boundary on. What makes looking for one quick lies on top (`indexed_file`, `segment`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from dataplane.records.header import HEADER_SIZE, LENGTH_AT, LENGTH_END, MAGIC, MAGIC_AT, BatchHeader, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dataplane.doors import Buffer, File, Files

LOG, INDEX, TIME_INDEX, ABORTED_INDEX = ".log", ".index", ".timeindex", ".txnindex"
NO_TIMESTAMP = -1

_length_of = struct.Struct(">i").unpack_from
_LOOKUP_BYTES = 4096
_SCAN_BYTES = 64 * 1024

Note = tuple[int, int, int, int]
"""What appending a batch must remember: base offset, last offset, size, max timestamp."""


def note_of(header: BatchHeader) -> Note:
    """The note of a batch whose header holds its final offset. One that compaction has emptied has no time."""
    return header.base_offset, header.last_offset, header.size, header.max_timestamp if header.count else NO_TIMESTAMP


def segment_name(base_offset: int) -> str:
    """The file names' common part."""
    return f"{base_offset:020d}"


def walk(file: File, position: int, end: int, chunk_bytes: int = _LOOKUP_BYTES) -> Iterator[tuple[BatchHeader, int]]:
    """Headers with their positions, until `end` or the first that cannot be a header. Content is not checked."""
    chunk, chunk_at = b"", position
    while position + HEADER_SIZE <= end:
        at = position - chunk_at
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_at, at = file.read(position, chunk_bytes), position, 0
            if len(chunk) < HEADER_SIZE:
                return
        header = read_header(chunk, at)
        size = header.size
        if header.magic != MAGIC or size < HEADER_SIZE or position + size > end:
            return
        yield header, position
        position += size


def last_boundary(file: File, start: int, limit: int, end: int, *, at_least_one: bool) -> int:
    """The last boundary up to `limit`, or with `at_least_one` that behind the first batch; `end` is the last of all.

    As `walk`, but for lengths alone: it is what a small fetch of old data spends its time with.
    """
    boundary = chunk_at = start
    chunk = b""
    while boundary + HEADER_SIZE <= end:
        at = boundary - chunk_at
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_at, at = file.read(boundary, _LOOKUP_BYTES), boundary, 0
            if len(chunk) < HEADER_SIZE:
                break
        after = boundary + LENGTH_END + _length_of(chunk, at + LENGTH_AT)[0]
        if chunk[at + MAGIC_AT] != MAGIC or after < boundary + HEADER_SIZE or after > end:
            break
        if after > limit and (boundary > start or not at_least_one):
            break
        boundary = after
    return boundary


class BatchFile:
    """One `.log` file. `size` counts only bytes that whole batches fill."""

    __slots__ = ("_directory", "_file", "_files", "base_offset", "size", "touched")

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        self._files = files
        self._directory = directory
        self._file: File | None = None
        self.base_offset = base_offset
        self.size = 0
        self.touched = False  # since `descriptors` last looked

    @property
    def path(self) -> str:
        """The files' common part."""
        return f"{self._directory}/{segment_name(self.base_offset)}"

    @property
    def file(self) -> File:
        """The log file, opened when first needed. Raises OSError."""
        self.touched = True
        if self._file is None:
            self._file = self._files.open(self.path + LOG, create=True)
            self._opened()
        return self._file

    def _opened(self) -> None:
        """It holds descriptors from here on: for who counts them."""

    def size_on_disk(self) -> int:
        """Bytes in the log file. Raises OSError."""
        return self._files.size(self.path + LOG)

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write; `size` does not know of it yet. Raises OSError."""
        self.touched = True
        (self._file or self.file).append(buffers)

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[BatchHeader, int]]:
        """All headers from a boundary on, up to `end` or what is the size now."""
        return walk(self.file, position, self.size if end is None else end, _SCAN_BYTES)

    def has_records(self) -> bool:
        """False where compaction has left nothing but headers, for the producers' sake. Raises OSError."""
        return any(header.count for header, _ in self.headers())

    def first_timestamp(self) -> int:
        """The youngest of the first batch; NO_TIMESTAMP where there is none. Raises OSError."""
        for header, _ in walk(self.file, 0, self.size):
            return header.max_timestamp
        return NO_TIMESTAMP
