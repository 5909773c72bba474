"""Record batches, magic 2: the header is read and checked, the records stay opaque bytes.

A batch is the unit of produce, storage and fetch; the bytes on the wire are the bytes on disk (all big-endian):

    position  0  baseOffset            int64   written by the leader in place
              8  batchLength           int32   bytes after this field
             12  partitionLeaderEpoch  int32   written by the leader in place
             16  magic                 int8    2; the formats 0 and 1 have theirs at the same place
             17  crc                   uint32  CRC32C of everything from position 21 on
             21  attributes            int16   bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 horizon
             23  lastOffsetDelta       int32
             27  baseTimestamp         int64   ms
             35  maxTimestamp          int64   ms
             43  producerId            int64   -1: none
             51  producerEpoch         int16
             53  baseSequence          int32
             57  recordCount           int32
             61  records, compressed together when the codec is not 0

The leader changes only what lies before the CRC's range, so a batch is stored as it came. `check_batch` is on the hot
path of Produce: one unpack, one CRC, a handful of integer comparisons. What the records say is never trusted,
and what the header says of their number only as far as the size allows: a batch that claims two thousand million offsets
fills the range of a segment alone, so each one like it would open another file.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from dataplane.protocol.errors import ErrorCode

Buffer = bytes | bytearray | memoryview

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LENGTH_AT = 8
LENGTH_END = 12
MAGIC_AT = 16
CRC_AT = 17
CHECKED_FROM = 21
_LOW_ATTRIBUTES_AT = 22
MAGIC = 2

CODEC_BITS = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

_FROM_PRODUCERS = CODEC_BITS | TRANSACTIONAL  # every other attribute bit is the broker's, or reserved
_HIGHEST_CODEC = 4
_SMALLEST_RECORD = 7  # length, attributes, timestamp, offset, key, value, headers: a byte each
_MOST_RECORDS = 1_000_000  # of a compressed batch

unpack_header = HEADER.unpack_from
"""The fields of `BatchHeader`, unchecked. Raises HeaderEndsError; `read_header` is the same with kinder words."""
HeaderEndsError = struct.error
_length_of = struct.Struct(">i").unpack_from


class CorruptBatchError(Exception):
    """Bytes that are not a batch. Carries the code to answer with."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(message)
        self.code = code


class BatchHeader(NamedTuple):
    """The fields of a batch before its records, in their order on the wire."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody wants here

    @property
    def size(self) -> int:
        """Bytes of the whole batch: what is billed."""
        return LENGTH_END + self.batch_length

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & CODEC_BITS

    @property
    def is_transactional(self) -> bool:
        """Written within a transaction."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """A transaction marker: clients see the offset, not the record."""
        return self.attributes & CONTROL != 0


_new = tuple.__new__


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, unchecked. Raises CorruptBatchError when the bytes end before it does."""
    try:
        return _new(BatchHeader, unpack_header(buffer, position))
    except struct.error:
        raise too_short(buffer, position) from None


def too_short(buffer: Buffer, position: int = 0) -> CorruptBatchError:
    """Why these bytes, fewer than our header, are no batch.

    A message of an old format may be as short: say so rather than calling it corrupt. A batch that was cut on its way is
    no valid record, as with Kafka: clients send again what is corrupt.
    """
    size = len(buffer) - position
    if size > MAGIC_AT and buffer[position + MAGIC_AT] < MAGIC:
        return CorruptBatchError("a message of format 0 or 1", ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    is_cut = size < LENGTH_END or _length_of(buffer, position + LENGTH_AT)[0] + LENGTH_END > size
    code = ErrorCode.INVALID_RECORD if is_cut else ErrorCode.CORRUPT_MESSAGE
    return CorruptBatchError(f"{size} bytes are less than a batch header", code)


def claimed_size(records: Buffer) -> int:
    """Bytes that the first batch or message says it has, at least 12 of which must be there."""
    return LENGTH_END + int(_length_of(records, LENGTH_AT)[0])


def magic_of(records: Buffer) -> int | None:
    """The format of what comes first: its byte has the same place in every format. None where the bytes end before."""
    return records[MAGIC_AT] if len(records) > MAGIC_AT else None


def codec_of(batch: Buffer) -> int | None:
    """The codec that a batch names, see `records.compression`; None where the bytes end before."""
    return batch[_LOW_ATTRIBUTES_AT] & CODEC_BITS if len(batch) > _LOW_ATTRIBUTES_AT else None


def is_in_transaction(batch: Buffer) -> bool:
    """Whether a batch says that it is of a transaction; False where the bytes end before, or are of an older format's."""
    return len(batch) >= HEADER_SIZE and batch[_LOW_ATTRIBUTES_AT] & TRANSACTIONAL != 0 and magic_of(batch) == MAGIC


def check_batch(batch: memoryview, header: BatchHeader, max_bytes: int) -> ErrorCode:
    """May a producer append this? `batch` is all the record bytes it sent for one partition.

    Answers NONE, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_RECORD or UNSUPPORTED_FOR_MESSAGE_FORMAT.
    """
    base, length, _, magic, crc, attributes, last_delta, _, _, producer_id, producer_epoch, sequence, count = header
    size = len(batch)
    if magic != MAGIC:
        return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    if length + LENGTH_END != size:
        # Kafka wants exactly one batch, whole. Said again, what was cut would still be: no error that is retried.
        return ErrorCode.INVALID_RECORD if length + LENGTH_END >= HEADER_SIZE else ErrorCode.CORRUPT_MESSAGE
    if size > max_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if crc32c(batch[CHECKED_FROM:]) != crc:
        return ErrorCode.CORRUPT_MESSAGE
    if base or last_delta < 0 or count != last_delta + 1 or count > _MOST_RECORDS:
        return ErrorCode.INVALID_RECORD
    if not attributes & CODEC_BITS and count * _SMALLEST_RECORD > size - HEADER_SIZE:
        return ErrorCode.INVALID_RECORD
    if attributes & ~_FROM_PRODUCERS or attributes & CODEC_BITS > _HIGHEST_CODEC:
        return ErrorCode.INVALID_RECORD
    if producer_id < 0:
        return ErrorCode.INVALID_RECORD if producer_id != -1 or attributes & TRANSACTIONAL else ErrorCode.NONE
    if sequence < 0 or producer_epoch < 0:
        return ErrorCode.INVALID_RECORD
    return ErrorCode.NONE


def check_stored(batch: Buffer, header: BatchHeader) -> None:
    """Is this batch of a log or a leader whole? Raises CorruptBatchError.

    Less is asked than of a producer: control batches and log append time are fine here, and compaction leaves fewer
    records than the offsets they span.
    """
    if header.magic != MAGIC or header.size != len(batch):
        raise CorruptBatchError(f"batch of format {header.magic} and size {header.size} in {len(batch)} bytes")
    if crc32c(memoryview(batch)[CHECKED_FROM:]) != header.crc:
        raise CorruptBatchError(f"CRC of the batch at offset {header.base_offset} is wrong")
    if header.base_offset < 0 or header.last_offset_delta < 0:
        raise CorruptBatchError(f"offsets of the batch at {header.base_offset} are negative")


def split_batches(buffer: Buffer) -> list[tuple[BatchHeader, memoryview]]:
    """The whole batches of a fetch answer or of a piece of a log. A partial last one is left out.

    Their content is not checked. Raises CorruptBatchError where a length cannot be one.
    """
    view = memoryview(buffer)
    batches = []
    position, end = 0, len(view)
    while position + LENGTH_END <= end:
        length = _length_of(view, position + LENGTH_AT)[0]
        if length < HEADER_SIZE - LENGTH_END:
            raise CorruptBatchError(f"a batch of length {length}")
        after = position + LENGTH_END + length
        if after > end:
            break
        batches.append((_new(BatchHeader, unpack_header(view, position)), view[position:after]))
        position = after
    return batches
