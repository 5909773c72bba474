"""One replica's log: batches in segments, appended in groups, read as file ranges.

A log is one value (`Log`, in `state`). What is done with it are functions, a file for each purpose, each of which imports
only files above it in this list:

    state        what a log is, and how it fails
    boundaries   when a segment ends (the rule, pure)
    producing    the producers' state, with its snapshots
    aborting     transactions that were aborted
    flushing     to disk
    closing      the orderly end, and the other one
    rolling      a segment ends, and the next begins
    appending    stage, commit
    reading      ranges of files, by offset
    lookup       batches, and offsets by time
    removing     the oldest segments: retention, DeleteRecords
    compacting   compacted segments in the place of old ones
    cutting      truncation, and beginning again elsewhere
    opening      from a directory to a log

Callers name the file: `appending.commit(log)`. That costs what a method costs (docs/decisions/0016).

Segments (`segment`), recovery at open (`recovery`), the rule of retention (`retention`), leader
epochs and the format of producers' snapshots have files of their own, beside this package.
"""

from __future__ import annotations

from dataplane.records.header import CorruptBatchError
from dataplane.storage.config import LogConfig
from dataplane.storage.errors import LogFailedError, OffsetOutOfRangeError
from dataplane.storage.log.opening import open_log
from dataplane.storage.log.state import Log, Shared

__all__ = ["CorruptBatchError", "Log", "LogConfig", "LogFailedError", "OffsetOutOfRangeError", "Shared", "open_log"]
