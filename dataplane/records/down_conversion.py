"""Batches of magic 2 as message sets of format 0 or 1, for clients that fetch as before 0.11. Pure.

Headers, producer ids and transactions have no place there: they are dropped, and control batches with them. Format 0 has
no timestamps either. A compressed batch becomes one wrapper with the same codec, one that is not compressed becomes single
messages, from the wanted offset on. As Kafka's `RecordsUtil.downConvert` does, byte for byte (compressed: message for
message), with one difference: the result is bounded, and ends before the first message that would not fit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from dataplane.protocol.errors import ErrorCode
from dataplane.records import compression
from dataplane.records.compression import MAX_DECOMPRESSED
from dataplane.records.header import HEADER_SIZE, LOG_APPEND_TIME, BatchHeader, CorruptBatchError, split_batches
from dataplane.records.legacy import LOG_APPEND_TIME as OLD_LOG_APPEND_TIME
from dataplane.records.legacy import NO_TIMESTAMP, pack_set, write_message
from dataplane.records.scan import Row, bad_records, read_some
from dataplane.records.steps import RECORDS_PER_STEP, Steps, packed, unpacked


class Converted:
    """What has been converted so far: `data`, the next offset to look at, and whether `limit` has ended it."""

    def __init__(self, first_offset: int, limit: int, *, at_least_one: bool) -> None:
        self.data = bytearray()
        self.next_offset = first_offset
        self.limit = limit
        self.is_full = False
        self._must_take = at_least_one
        self._since_pause = 0

    def take(self, message: bytes) -> bool:
        """Append it if there is room, or if it is the first of all and must go out; else it is over."""
        if len(self.data) + len(message) > self.limit and not (self._must_take and not self.data):
            self.is_full = True
            return False
        self.data += message
        return True

    def has_worked(self, records: int) -> bool:
        """Count them; whether it is time for a pause."""
        self._since_pause += records
        if self._since_pause < RECORDS_PER_STEP:
            return False
        self._since_pause = 0
        return True


def down_convert(batches: memoryview, magic: int, into: Converted) -> Steps[None]:
    """Add what these whole batches hold from `into.next_offset` on, as far as it fits.

    Raises CorruptBatchError: UNSUPPORTED_COMPRESSION_TYPE where the first batch is of zstd, which the old formats do not
    have; a later one ends the answer before it.
    """
    for header, batch in split_batches(batches):
        if header.is_control:
            into.next_offset = max(into.next_offset, header.next_offset)
            continue
        if header.compression == compression.ZSTD:
            if into.data:
                into.is_full = True
                return
            raise CorruptBatchError("zstd in an old format", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        try:
            yield from (_wrap if header.compression else _spread)(header, batch, magic, into)
        except struct.error as error:  # deltas of records that nobody has looked at
            raise bad_records(f"offsets or timestamps beyond 64 bits: {error}") from None
        if into.is_full:
            return
        into.next_offset = max(into.next_offset, header.next_offset)


def _spread(header: BatchHeader, batch: memoryview, magic: int, into: Converted) -> Steps[None]:
    first = into.next_offset
    attributes, stamp = _stamp(header, magic)
    for rows in _pieces(batch[HEADER_SIZE:], header.count):
        for delta, offset_delta, key, value in rows:
            offset = header.base_offset + offset_delta
            if offset >= first:
                timestamp = header.base_timestamp + delta if stamp is None else stamp
                if not into.take(write_message(magic, offset, timestamp, key, value, attributes)):
                    return
                into.next_offset = offset + 1
        if into.has_worked(len(rows)):
            yield None


def _wrap(header: BatchHeader, batch: memoryview, magic: int, into: Converted) -> Steps[None]:
    attributes, stamp = _stamp(header, magic)
    body = yield from unpacked(header.compression, batch[HEADER_SIZE:], MAX_DECOMPRESSED)
    inner = bytearray()
    first = last = -1
    latest = NO_TIMESTAMP
    for rows in _pieces(memoryview(body), header.count):
        for delta, offset_delta, key, value in rows:
            offset = header.base_offset + offset_delta
            if first < 0:
                first = offset
            last = offset
            timestamp = header.base_timestamp + delta if stamp is None else stamp
            latest = max(latest, timestamp)
            inner += write_message(magic, offset - first if magic else offset, timestamp, key, value, attributes)
        if into.has_worked(len(rows)):
            yield None
    if last < 0:
        return
    wrapped = yield from packed(lambda data: pack_set(header.compression, magic, data), inner)
    into.take(write_message(magic, last, latest, None, wrapped, attributes | header.compression))


def _pieces(body: memoryview, count: int) -> Iterator[list[Row]]:
    position = 0
    while count > 0:
        some = min(count, RECORDS_PER_STEP)
        rows, position = read_some(body, position, some)
        count -= some
        yield rows


def _stamp(header: BatchHeader, magic: int) -> tuple[int, int | None]:
    """The attribute and the timestamp of every message of a batch that the leader's clock has stamped."""
    if header.attributes & LOG_APPEND_TIME:
        return (OLD_LOG_APPEND_TIME if magic else 0), header.max_timestamp
    return 0, None
