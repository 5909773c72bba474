"""Opening a log: find its segments, look where it ends, cut what an unclean stop left half written.

After an orderly close nothing is read but the end: what the directory lists, how large the files are, and from the last
index entry on the headers of the last few batches. So opening costs the same whatever the log's size; the indexes are
looked into when they are used (`segment`). The same holds for segments that end below the recovery point, up to where the
log is known to be on disk.

After any other stop everything behind the recovery point is read whole and its CRC checked; the log ends with the last
batch before the first that is torn, corrupt or out of place, and later segments are removed: their offsets would leave a
gap. Nothing but CRC-checked batches is trusted there, least of all an index: those are written anew. Leader epochs that
the batches show and the checkpoint does not are added; epochs that began behind the end are forgotten.

The producers' state comes from the newest snapshot at or before the end and the headers behind it. Where a snapshot is
exactly at the end, as a clean close leaves it, not even that is read before somebody asks.

Which transactions were aborted is written anew as well, for a segment that was checked or has lost its other indexes; that
needs the producers, and so is done when all segments are known (`log.aborting`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.records.header import HEADER_SIZE, BatchHeader, CorruptBatchError, check_stored, read_header
from dataplane.storage.checkpoints import snapshots
from dataplane.storage.checkpoints.snapshots import SnapshotError
from dataplane.storage.cleaner import marker, swap
from dataplane.storage.segments.batch_file import (
    ABORTED_INDEX,
    INDEX,
    LOG,
    TIME_INDEX,
    note_of,
    segment_name,
)
from dataplane.storage.segments.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from dataplane.doors import File, Files
    from dataplane.storage.checkpoints.epochs import Epochs
    from dataplane.storage.checkpoints.producers import Producers
    from dataplane.storage.checkpoints.transactions import AbortedTransaction
    from dataplane.storage.config import LogConfig
    from dataplane.storage.segments.descriptors import Descriptors

DELETED = ".deleted"
_CHUNK_BYTES = 2**20
_LARGEST_BATCH = 2**27  # more than a request may carry: a larger length is damage
_NAME_LENGTH = 20 + len(LOG)


class Loaded(NamedTuple):
    """What opening a log has found, and where it ends."""

    segments: list[Segment]  # at least one
    end_offset: int
    bytes_cut: int
    snapshots: list[int]  # offsets of the producer-state snapshots, none behind the end
    without_aborted: list[Segment]  # whose index of aborted transactions is to be made again
    compacted_to: int  # below this segments may end before the next begins, and are known to be on disk


def new(files: Files, directory: str, descriptors: Descriptors | None = None) -> Loaded:
    """What `load` would find in a directory that has just been made, of which nothing is asked. Raises OSError.

    Thousands of topics may be created at once, and on the loop: each system call lets other threads have the interpreter.
    """
    segment = Segment(files, directory, 0, descriptors)
    segment.clear()
    _ = segment.file  # it is there from the beginning, as Kafka's
    segment.close()
    return Loaded([segment], 0, 0, [], [], 0)


def load(
    files: Files,
    directory: str,
    epochs: Epochs,
    config: LogConfig,
    *,
    topic_id: UUID,
    clean: bool,
    recovery_point: int,
    start_offset: int,
    descriptors: Descriptors | None = None,
) -> Loaded:
    """Open all segments of a log, and cut it where it must be. Raises OSError."""
    names = _clean_names(files, directory)
    compacted_to = marker.read(files, directory, topic_id) if marker.COMPACTED_TO in names else 0
    recovery_point = max(recovery_point, compacted_to)
    bases = _segment_bases(names) or [start_offset]
    segments: list[Segment] = []
    kinds = {kind: {name[: -len(kind)] for name in names if name.endswith(kind)} for kind in (INDEX, ABORTED_INDEX)}
    without_aborted: list[Segment] = []
    expected, cut = bases[0], 0
    for base, following in zip(bases, [*bases[1:], None], strict=True):
        segment = Segment(files, directory, base, descriptors)
        segments.append(segment)
        trusted = _trust(segment, following, clean=clean, recovery_point=recovery_point)
        if trusted is not None:
            expected = trusted
            name = segment_name(base)
            if name in kinds[ABORTED_INDEX] and (clean or name in kinds[INDEX]):
                segment.has_aborted = True
            elif not clean and name not in kinds[INDEX] and _has_markers(segment):
                without_aborted.append(segment)
            continue
        segment.remove_indexes()  # they may be of content that the stop has lost, and of more than is written now
        end, has_markers = _scan(segment, epochs, config.index_interval_bytes, base)
        if has_markers:
            without_aborted.append(segment)
        expected = end
        torn = segment.file.size() - segment.size
        if torn:
            cut += torn
            segment.truncate(segment.size)
        if following is None:
            break
        if torn or following != end:
            cut += _remove(files, directory, [base for base in bases if base >= following])
            break
        _save_indexes(files, segment)
    if trusted is not None:
        segments[-1].release()
    segments[-1].close()  # a log nobody uses holds no descriptor; the first use opens it again
    epochs.truncate_from_end(expected)
    usable = _usable_snapshots(files, directory, names, expected, recovery_point)
    return Loaded(segments, expected, cut, usable, without_aborted, compacted_to)


def load_producers(
    producers: Producers, files: Files, directory: str, found: list[int], segments: list[Segment], end: int
) -> list[AbortedTransaction]:
    """The state as of `end`: from the newest snapshot that can be read, and the headers behind it. Raises OSError.

    `found` are the snapshots' offsets; those that are no use are removed from it, and from the directory. Returns which
    transactions were aborted behind the snapshot.
    """
    producers.clear()
    start = 0
    all_aborted: list[AbortedTransaction] = []
    while found:
        try:
            producers.restore(*snapshots.read(files, directory, found[-1]))
        except (SnapshotError, FileNotFoundError):
            files.remove(f"{directory}/{snapshots.file_name(found.pop())}")
        else:
            start = found[-1]
            break
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if following is not None and following.base_offset <= start:
            continue
        for header, at in segment.headers(segment.position_of(start) if start > segment.base_offset else 0):
            if header.base_offset >= end:
                return all_aborted
            if header.producer_id >= 0 and header.base_offset >= start:
                marker = segment.file.read(at, header.size) if header.is_control else None
                aborted = producers.update(header, header.base_offset, marker)
                if aborted is not None:
                    all_aborted.append(aborted)
    return all_aborted


def _trust(segment: Segment, following: int | None, *, clean: bool, recovery_point: int) -> int | None:
    """Where a segment ends whose content need not be checked; None for another."""
    if not clean and (following is None or following > recovery_point):
        return None
    size = _size(segment)
    if size is None:
        return None
    segment.trust(size)
    if following is not None:
        return following
    return segment.next_offset() if size else segment.base_offset


def _size(segment: Segment) -> int | None:
    try:
        return segment.size_on_disk()
    except FileNotFoundError:
        return None


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


def _has_markers(segment: Segment) -> bool:
    return any(header.is_control for header, _ in segment.headers())


def _scan(segment: Segment, epochs: Epochs, index_interval: int, expected: int) -> tuple[int, bool]:
    """Note every good batch of the segment; returns the offset after the last, and whether it has markers."""
    segment.clear()
    has_markers = False
    for header in _checked_headers(segment.file):
        if header.base_offset < expected or header.last_offset_delta < 0:
            break
        segment.note((note_of(header),), index_interval)
        expected = header.next_offset
        has_markers = has_markers or header.is_control
        if header.leader_epoch > epochs.newest:
            epochs.assign(header.leader_epoch, header.base_offset)
    return expected, has_markers


def _checked_headers(file: File) -> Iterator[BatchHeader]:
    for header, batch in read_batches(file, file.size()):
        try:
            check_stored(batch, header)
        except CorruptBatchError:
            return
        yield header


def _save_indexes(files: Files, segment: Segment) -> None:
    for path, content in segment.packed_indexes():
        files.write_file(path, content)
    segment.forget_index()
    segment.close()


def _clean_names(files: Files, directory: str) -> list[str]:
    """What is in the directory, after removing what an interrupted deletion left."""
    names, kept = files.list(directory), []
    if swap.settle(files, directory, names):
        names = files.list(directory)
    for name in names:
        without_log = name.endswith((INDEX, TIME_INDEX, ABORTED_INDEX)) and name.rpartition(".")[0] + LOG not in names
        if without_log or name.endswith((DELETED, ".tmp")):
            files.remove(f"{directory}/{name}")
        else:
            kept.append(name)
    return kept


def _segment_bases(names: list[str]) -> list[int]:
    logs = [name[: -len(LOG)] for name in names if name.endswith(LOG) and len(name) == _NAME_LENGTH]
    return [int(name) for name in logs if name.isdigit()]


def _usable_snapshots(files: Files, directory: str, names: list[str], end: int, recovery_point: int) -> list[int]:
    found = snapshots.offsets_in(names)
    usable = [offset for offset in found if offset <= end]
    gone = {*found[len(usable) :], *snapshots.superfluous(usable, recovery_point)}
    for offset in sorted(gone):
        files.remove(f"{directory}/{snapshots.file_name(offset)}")
    return [offset for offset in usable if offset not in gone]


def _remove(files: Files, directory: str, bases: list[int]) -> int:
    freed = 0
    for base in bases:
        segment = Segment(files, directory, base)
        freed += segment.file.size()
        segment.close()
        segment.remove_indexes()
        files.remove(segment.path + LOG)
    return freed
