"""What can go wrong in storage.

LogFailedError(OSError)       the disk refused; the log is offline until the broker starts again (KAFKA_STORAGE_ERROR)
OffsetOutOfRangeError         a read outside of what the log has (OFFSET_OUT_OF_RANGE)
CorruptBatchError             bytes from a leader, or of a file, that are not the batches expected (records.header)
"""

from __future__ import annotations

from dataplane.protocol.errors import ErrorCode
from dataplane.records.header import CorruptBatchError

__all__ = ["CorruptBatchError", "LogFailedError", "OffsetOutOfRangeError"]


class LogFailedError(OSError):
    """Nothing more is appended to this log: what the file holds after the failure is known only to recovery."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class OffsetOutOfRangeError(Exception):
    """The offset is before the log's start or after its end."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, offset: int, start: int, end: int) -> None:
        super().__init__(f"offset {offset} is outside of {start} to {end}")
