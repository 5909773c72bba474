"""Control batches: the markers that end a transaction in a partition.

One record; key = version int16, type int16 (0 abort, 1 commit); value = version int16, coordinator epoch int32.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from dataplane.records.batch import CorruptBatchError, Record, build_batch, read_records
from dataplane.records.header import Buffer

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class Marker(IntEnum):
    """Whether a transaction was committed or aborted, as control records say it."""

    ABORT = 0
    COMMIT = 1


def build_marker(
    marker: Marker, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, now_ms: int
) -> bytearray:
    """A batch of one marker. Markers carry no sequence."""
    record = Record(_KEY.pack(0, marker), _VALUE.pack(0, coordinator_epoch))
    return build_batch(
        [record],
        now_ms=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(batch: Buffer) -> tuple[Marker, int]:
    """``(marker, coordinator epoch)``. Raises CorruptBatchError."""
    records = read_records(batch)
    try:
        _, kind = _KEY.unpack_from(records[0].key or b"")
        _, epoch = _VALUE.unpack_from(records[0].value or b"")
        return Marker(kind), epoch
    except (struct.error, ValueError, IndexError) as error:
        raise CorruptBatchError(f"control batch: {error}") from error
