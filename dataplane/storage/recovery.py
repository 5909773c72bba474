"""Opening a log: find its segments, walk every batch header, cut what an unclean stop left half written.

After an orderly close only headers are read. After any other stop everything behind the recovery point (what is known
to be on disk) is read whole and its CRC checked; the log ends with the last batch before the first that is torn,
corrupt or out of place, and later segments are removed: their offsets would leave a gap. Nothing but CRC-checked
batches is trusted there, least of all an index. Leader epochs that the batches show and the checkpoint does not are
added; epochs that began behind the end are forgotten.

The same walk rebuilds the producers' state. (Snapshots, which make it short for large logs, are a later issue.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.records.header import HEADER_SIZE, BatchHeader, CorruptBatchError, check_stored, read_header
from dataplane.storage.segment import LOG, Segment, note_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.doors import File, Files
    from dataplane.storage.config import LogConfig
    from dataplane.storage.epochs import Epochs
    from dataplane.storage.producers import Producers

DELETED = ".deleted"
_CHUNK_BYTES = 2**20
_LARGEST_BATCH = 2**27  # more than a request may carry: a larger length is damage
_NAME_LENGTH = 20 + len(LOG)


class Loaded(NamedTuple):
    """What was found."""

    segments: list[Segment]  # at least one
    end_offset: int
    bytes_cut: int


def load(
    files: Files,
    directory: str,
    epochs: Epochs,
    producers: Producers,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: int,
    start_offset: int,
) -> Loaded:
    """Open all segments of a log, and cut it where it must be. Raises OSError."""
    bases = _segments_in(files, directory) or [start_offset]
    segments: list[Segment] = []
    expected, cut = bases[0], 0
    for base, following in zip(bases, [*bases[1:], None], strict=True):
        segment = Segment(files, directory, base)
        checked = not clean and (following is None or following > recovery_point)
        end = _scan(segment, epochs, producers, config.index_interval_bytes, base, checked=checked)
        segments.append(segment)
        expected = end
        torn = segment.file.size() - segment.size
        if torn:
            cut += torn
            segment.truncate(segment.size)
        if following is None:
            break
        if torn or following < end or (checked and following != end):
            cut += _remove(files, directory, [base for base in bases if base >= following])
            break
        segment.release()
    segments[-1].close()  # a log nobody uses holds no descriptor; the first use opens it again
    epochs.truncate_from_end(expected)
    return Loaded(segments, expected, cut)


def replay_producers(producers: Producers, segments: list[Segment]) -> None:
    """Rebuild the state from what the log holds now."""
    producers.clear()
    for segment in segments:
        for header, _ in segment.headers():
            if header.producer_id >= 0:
                producers.update(header, header.base_offset)


def read_batches(file: File, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Batches from the beginning of a file, read in pieces; ends at the first that is not whole or has no size."""
    position, want = 0, _CHUNK_BYTES
    while position < end:
        chunk = file.read(position, min(want, end - position))
        start = position
        for header, batch in _split_until_damage(chunk):
            yield header, batch
            position += header.size
        if position > start:
            want = _CHUNK_BYTES
        elif len(chunk) < want or want >= _LARGEST_BATCH:
            return
        else:
            want *= 8


def _split_until_damage(chunk: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    view, position = memoryview(chunk), 0
    while position + HEADER_SIZE <= len(view):
        header = read_header(view, position)
        after = position + header.size
        if header.size < HEADER_SIZE or after > len(view):
            return
        yield header, view[position:after]
        position = after


def _scan(
    segment: Segment, epochs: Epochs, producers: Producers, index_interval: int, expected: int, *, checked: bool
) -> int:
    """Note every good batch of the segment; returns the offset after the last."""
    for header in _checked_headers(segment.file) if checked else _plain_headers(segment):
        if header.base_offset < expected or header.last_offset_delta < 0:
            break
        segment.note((note_of(header),), index_interval)
        expected = header.next_offset
        if checked and header.leader_epoch > epochs.newest:
            epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            producers.update(header, header.base_offset)
    return expected


def _plain_headers(segment: Segment) -> Iterator[BatchHeader]:
    for header, _ in segment.headers(end=segment.file.size()):
        yield header


def _checked_headers(file: File) -> Iterator[BatchHeader]:
    for header, batch in read_batches(file, file.size()):
        try:
            check_stored(batch, header)
        except CorruptBatchError:
            return
        yield header


def _segments_in(files: Files, directory: str) -> list[int]:
    """Base offsets, after removing what an interrupted deletion left."""
    names = files.list(directory)
    for name in names:
        if name.endswith((DELETED, ".tmp")):
            files.remove(f"{directory}/{name}")
    logs = [name[: -len(LOG)] for name in names if name.endswith(LOG) and len(name) == _NAME_LENGTH]
    return [int(name) for name in logs if name.isdigit()]


def _remove(files: Files, directory: str, bases: list[int]) -> int:
    freed = 0
    for base in bases:
        segment = Segment(files, directory, base)
        freed += segment.file.size()
        segment.close()
        segment.remove_indexes()
        files.remove(segment.path + LOG)
    return freed
