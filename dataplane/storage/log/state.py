"""What a log is: one value. What is done with it is told by functions, in the files beside this one.

    start_offset <= what is readable < end_offset <= staged_end

Everybody may read all of it. Only the functions of this package change it, but for what says that its owner sets it.

When the disk refuses, the log has failed: nothing is appended any more and what was staged is dropped. Recovery at the
next start cuts what was half written.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.checkpoints.transactions import Transactions
from dataplane.storage.errors import LogFailedError
from dataplane.storage.presence import Presence

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from dataplane.doors import Background, Files
    from dataplane.storage.checkpoints.epochs import Epochs
    from dataplane.storage.checkpoints.producers import Producers
    from dataplane.storage.checkpoints.transactions import AbortedTransaction
    from dataplane.storage.config import LogConfig
    from dataplane.storage.segments.batch_file import Note
    from dataplane.storage.segments.descriptors import Descriptors
    from dataplane.storage.segments.segment import Segment
    from dataplane.storage.startup.founding import Founding
    from dataplane.storage.startup.recovery import Loaded
    from dataplane.storage.unhurried import Unhurried


class Shared(NamedTuple):
    """What all logs of a broker share."""

    files: Files
    background: Background
    descriptors: Descriptors
    now_ms: Callable[[], int]  # by the wall's clock
    removals: Unhurried  # of what nobody refers to any more


class Staged:
    """Batches that the next commit writes. Their memory is good until the end of the turn."""

    __slots__ = ("aborted", "buffers", "is_late", "notes", "size_bytes")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget them: they are written, or never will be."""
        self.buffers: list[memoryview] = []
        self.notes: list[Note] = []
        self.aborted: list[AbortedTransaction] = []  # by markers among them
        self.size_bytes = 0
        self.is_late = False  # one of them is younger than the active segment's time allows


class Rollover:
    """What `rolling` remembers of the active segment, so that the hot path compares two integers."""

    __slots__ = ("begun_ms", "easy_bytes", "last_timestamp")

    def __init__(self, begun_ms: int) -> None:
        self.begun_ms = begun_ms  # when the segment was begun, or the log opened
        self.easy_bytes = 0  # as long as it is no larger, neither its size nor its index ends it
        self.last_timestamp = 0  # a batch that is younger may end it (see `rolling`)


class ProducerState:
    """What `producing` remembers of the log's producers."""

    __slots__ = ("known", "newcomers", "snapshots", "unread_to")

    def __init__(self, unread_to: int, snapshots: list[int], newcomers: Callable[[int], None] | None) -> None:
        self.known: Producers | None = None  # None: nobody has asked since the log was opened,
        self.unread_to = unread_to  # when it ended here
        self.snapshots = snapshots  # offsets, ascending
        self.newcomers = newcomers  # told of producers that are new to the log (see `producer_budget`)


class Log:
    """The log of one partition on this broker."""

    __slots__ = (
        "active",
        "bytes_cut",
        "cleaned_to",
        "compacted_to",
        "config",
        "cut_marks",
        "cut_work",
        "directory",
        "end_offset",
        "epochs",
        "failed",
        "founding",
        "last_aborted",
        "late_saves",
        "on_failure",
        "partition",
        "presence",
        "producer_state",
        "recovery_point",
        "rollover",
        "segments",
        "shared",
        "size_bytes",
        "staged",
        "staged_end",
        "start_offset",
        "topic",
        "topic_id",
        "transactions",
        "truncations",
    )

    def __init__(
        self,
        shared: Shared,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        epochs: Epochs,
        found: Loaded,
        newcomers: Callable[[int], None] | None,
    ) -> None:
        """As recovery found it, with nothing believed yet of what the checkpoints say."""
        self.shared = shared
        self.directory, self.presence = directory, Presence()
        self.topic, self.partition, self.topic_id = topic, partition, topic_id
        self.config = config  # replaced by `rolling.configure`
        self.epochs = epochs
        self.segments = found.segments  # in order of their offsets, never empty
        self.active = self.segments[-1]  # the one that is written to
        self.size_bytes = sum(segment.size for segment in self.segments)
        self.start_offset = self.segments[0].base_offset
        self.end_offset = self.staged_end = found.end_offset
        self.recovery_point = self.start_offset  # up to here the log is known to be on disk
        self.compacted_to = found.compacted_to  # segments below may end before the next begins
        self.cleaned_to = 0  # where compaction's last round ended
        self.bytes_cut = found.bytes_cut  # by recovery
        self.staged = Staged()
        self.rollover = Rollover(shared.now_ms())
        self.producer_state = ProducerState(found.end_offset, found.snapshots, newcomers)
        self.transactions = Transactions()
        self.transactions.forget()  # until somebody asks, see `producing`
        # No marker behind this offset aborts a transaction.
        self.last_aborted = found.end_offset - 1 if any(segment.has_aborted for segment in found.segments) else -1
        self.truncations = 0  # and resets: work beside the loop compares
        self.cut_work: Callable[[], None] | None = None  # brings the last cut to disk, before what is written behind it
        # Names that the next checkpoint makes superfluous (see `truncation_marks`). The owner adds its own.
        self.cut_marks: tuple[str, ...] = ()
        self.late_saves: list[Segment] = []  # that have left the log while an index of theirs was being written
        self.failed = False
        self.on_failure: Callable[[OSError], None] | None = None  # the owner sets it, and hears of the first error
        self.founding: Founding | None = None  # the owner sets it: the directory itself is on its way to the disk

    def __repr__(self) -> str:
        return f"<log {self.topic}-{self.partition}>"

    @property
    def is_founded(self) -> bool:
        """Whether its directory is on disk."""
        return self.founding is None or self.founding.is_settled

    @property
    def is_staging(self) -> bool:
        """Whether something is to be written by the next commit."""
        return bool(self.staged.buffers)

    def fail(self, error: OSError) -> LogFailedError:
        """The disk has refused something that was done for this log: it has failed. Returns what to raise."""
        first, self.failed = not self.failed, True
        self.drop_staged()
        if first and self.on_failure is not None:
            self.on_failure(error)
        return LogFailedError(error.errno, error.strerror)

    def give_up(self) -> None:
        """Something unexpected has happened to this log alone: its owner is not told that the disk has refused."""
        self.failed = True
        self.drop_staged()

    def drop_staged(self) -> None:
        """What was staged is written, or will not be."""
        self.staged.clear()
        self.staged_end = self.end_offset

    def segment_index(self, offset: int) -> int:
        """Of the segment that holds `offset`, or where it would be."""
        return max(0, bisect_right(self.segments, offset, key=_base_offset) - 1)

    def segment_end(self, index: int) -> int:
        """The offset at which the next segment begins, or the log ends."""
        following = index + 1
        return self.segments[following].base_offset if following < len(self.segments) else self.end_offset


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
