"""One replica's log: batches in segments, appended in groups, read as file ranges.

    start_offset <= what is readable < end_offset <= staged_end

What can be done with a log is told by a file each; `Log` is all of them:

    state        what a log remembers, and how it fails
    rolling      when a segment ends, and the next begins
    appending    stage, commit
    reading      ranges, and look-ups by time
    removing     the oldest segments: retention, DeleteRecords
    cutting      truncation, and beginning again elsewhere
    compacting   compacted segments in the place of old ones
    producing    the producers' state, with its snapshots
    flushing     to disk, up to the orderly close
    log          opening

`stage`, `commit` and `read` are what every request pays for. So the files are classes that `Log` inherits from, with one
object's slots between them, and not objects that ask each other: a call more for each batch would show.

Segments (`segment`), recovery at open (`recovery`), the rule of retention (`retention`), leader
epochs and the format of producers' snapshots have files of their own, beside this package.
"""

from __future__ import annotations

from dataplane.records.header import CorruptBatchError
from dataplane.storage.config import LogConfig
from dataplane.storage.errors import LogFailedError, OffsetOutOfRangeError
from dataplane.storage.log.log import Log

__all__ = ["CorruptBatchError", "Log", "LogConfig", "LogFailedError", "OffsetOutOfRangeError"]
