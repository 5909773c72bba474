"""What a leader does to records before it stores them, where a topic or the broker asks for more than storing. Pure.

`Rules` say what: another codec (`compression.type`), the leader's clock instead of the producer's
(`message.timestamp.type`), timestamps within bounds of it, keys (compacted topics), every record checked
(`record.validation=full`). `prepare_batch` takes a magic-2 batch whose header was checked; `prepare_messages` makes one of
a message set of format 0 or 1, which has to be read through in any case. Both are steps (`records.steps`).

Where nothing but the clock is asked, the header alone changes. A maximum of the timestamps that is not the records' own is
put right whenever they are looked at, as Kafka does.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from typing import Final

from crc32c import crc32c

from dataplane.protocol.errors import ErrorCode
from dataplane.records import compression
from dataplane.records.compression import MAX_DECOMPRESSED, Buffer
from dataplane.records.header import (
    CHECKED_FROM,
    CODEC_BITS,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    CorruptBatchError,
)
from dataplane.records.legacy import LOG_APPEND_TIME as OLD_LOG_APPEND_TIME
from dataplane.records.legacy import Message, check_inside, message_end, open_wrapper, read_message
from dataplane.records.scan import Findings, bad_records, check_some
from dataplane.records.steps import RECORDS_PER_STEP, Steps, packed, unpacked
from dataplane.records.varints import varint

FOREVER: Final = 2**63 - 1
_NAMED = 3
_LARGE_BYTES = 64 * 2**10
"""A message that is larger is checked beside the loop; so much of messages is a step."""
_pack_attributes = struct.Struct(">h").pack_into
_pack_length = struct.Struct(">i").pack_into
_pack_time = struct.Struct(">q").pack_into
_ATTRIBUTES_AT, _LENGTH_AT, _MAX_TIMESTAMP_AT = 21, 8, 35


@dataclass(frozen=True, slots=True)
class Rules:
    """What is asked of the records of a topic. `codec` None: as the producer sent them."""

    codec: int | None = None
    stamps: bool = False
    before_max_ms: int = FOREVER
    after_max_ms: int = FOREVER
    needs_keys: bool = False
    full: bool = False

    @property
    def bounds_times(self) -> bool:
        """Whether a timestamp can be refused. The leader's own cannot."""
        return not self.stamps and (self.before_max_ms != FOREVER or self.after_max_ms != FOREVER)

    @property
    def looks_at_records(self) -> bool:
        """Whether the header does not suffice."""
        return self.full or self.needs_keys or self.bounds_times


NO_RULES = Rules()


class RefusedRecordsError(CorruptBatchError):
    """Some records of a good batch are not for this topic."""

    def __init__(self, code: ErrorCode, text: str, rows: list[tuple[int, str]]) -> None:
        super().__init__(text, code)
        self.rows = rows
        """(index of the record, what is wrong with it)."""


# --- magic 2 ----------------------------------------------------------------------------------------------------------


def prepare_batch(batch: memoryview, header: BatchHeader, rules: Rules, now_ms: int) -> Steps[memoryview]:
    """The batch to store: the same memory, changed in place, or other memory. Raises CorruptBatchError.

    `batch` is writable, and stays as it is until the steps are done.
    """
    codec = header.compression
    target = codec if rules.codec is None else rules.codec
    attributes, latest = header.attributes, header.max_timestamp
    if rules.looks_at_records or target != codec:
        body = yield from unpacked(codec, batch[HEADER_SIZE:], MAX_DECOMPRESSED)
        if rules.looks_at_records:
            latest = yield from _check_all(body, header, rules, now_ms)
        if target != codec:
            new = (
                body
                if target == compression.NONE
                else (yield from packed(lambda b: compression.compress(target, b), body))
            )
            batch = memoryview(bytearray(b"".join((batch[:HEADER_SIZE], new))))
            _pack_length(batch, _LENGTH_AT, len(batch) - LENGTH_END)
            attributes = attributes & ~CODEC_BITS | target
    if rules.stamps:
        attributes |= LOG_APPEND_TIME
        latest = now_ms
    if (attributes, latest) != (header.attributes, header.max_timestamp):  # another codec is another attribute
        _pack_attributes(batch, _ATTRIBUTES_AT, attributes)
        _pack_time(batch, _MAX_TIMESTAMP_AT, latest)
        batch[CRC_AT:CHECKED_FROM] = crc32c(batch[CHECKED_FROM:]).to_bytes(4)
    return batch


def _check_all(body: Buffer, header: BatchHeader, rules: Rules, now_ms: int) -> Steps[int]:
    """Every record; returns their largest timestamp."""
    found = Findings()
    base = header.base_timestamp
    times = None
    if rules.bounds_times and base != -1:
        times = (now_ms - rules.before_max_ms - base, now_ms + rules.after_max_ms - base)
    position = 0
    while found.count < header.count:
        if found.count:
            yield None
        some = min(RECORDS_PER_STEP, header.count - found.count)
        position = check_some(body, position, some, found, times)
    if position != len(body):
        raise bad_records("bytes after the last record")
    if not -FOREVER <= base + found.least_timestamp <= base + found.latest_timestamp <= FOREVER:
        raise bad_records("timestamps beyond 64 bits")
    _refuse(found.out_of_time, found.keyless if rules.needs_keys else [])
    return base + found.latest_timestamp


def _refuse(out_of_time: list[int], keyless: list[int]) -> None:
    if out_of_time:
        text = "the timestamp is further from the broker's clock than the topic allows"
        raise RefusedRecordsError(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            [(index, text) for index in out_of_time],
        )
    if keyless:
        text = "a compacted topic takes no record without a key"
        raise RefusedRecordsError(
            ErrorCode.INVALID_RECORD,
            f"{len(keyless)} records have been rejected, among them {keyless[:_NAMED]}: {text}",
            [(index, text) for index in keyless],
        )


# --- formats 0 and 1 --------------------------------------------------------------------------------------------------


class _Old:
    """A batch in the making, message by message."""

    def __init__(self, rules: Rules, now_ms: int) -> None:
        self.batch = bytearray(HEADER_SIZE)  # its header is written last
        self.count = 0
        self.base_timestamp = self.latest = -1
        self._rules, self._now_ms = rules, now_ms
        self._keyless: list[int] = []
        self._out_of_time: list[int] = []
        self._step_end = _LARGE_BYTES

    def is_step(self) -> bool:
        """Whether what was added since the last step is one: so many records, or bytes."""
        if self.count % RECORDS_PER_STEP and len(self.batch) < self._step_end:
            return False
        self._step_end = len(self.batch) + _LARGE_BYTES
        return True

    def add(self, message: Message, timestamp: int) -> None:
        rules = self._rules
        if rules.stamps:
            timestamp = self._now_ms
        elif timestamp != -1 and rules.bounds_times:
            age = self._now_ms - timestamp
            if age > rules.before_max_ms or -age > rules.after_max_ms:
                self._out_of_time.append(self.count)
        if message.key is None and rules.needs_keys:
            self._keyless.append(self.count)
        if not self.count:
            self.base_timestamp = timestamp
        self.latest = max(self.latest, timestamp)
        key, value = message.key, message.value
        before_value = b"".join(
            (
                b"\0",
                varint(timestamp - self.base_timestamp),
                varint(self.count),
                b"\1" if key is None else varint(len(key)),
                key or b"",
                b"\1" if value is None else varint(len(value)),
            )
        )
        value = value or b""
        self.batch += varint(len(before_value) + len(value) + 1) + before_value
        self.batch += value  # it may be large: copied once
        self.batch += b"\0"
        self.count += 1

    def check(self) -> None:
        _refuse(self._out_of_time[:100], self._keyless[:100])


def prepare_messages(message_set: memoryview, rules: Rules, now_ms: int, max_bytes: int) -> Steps[memoryview | None]:
    """One magic-2 batch of all the messages; None where there is no whole one. Raises CorruptBatchError.

    A compressed message has to be the only one, as Kafka demands. Its codec stays unless the topic has one. No message
    may be larger than `max_bytes` as it was sent.
    """
    codec = compression.NONE
    made = _Old(rules, now_ms)
    position = 0
    while (end := message_end(message_set, position)) is not None:
        message = yield from _read(message_set, position, end)
        position = end
        if message.magic != message_set[MAGIC_AT]:
            raise bad_records("messages of two formats")
        if codec or (message.codec and made.count):
            raise bad_records("a compressed message among others")
        size = len(message.value or b"") + len(message.key or b"")
        if size > max_bytes:
            raise CorruptBatchError(f"a message of {size} bytes", ErrorCode.MESSAGE_TOO_LARGE)
        is_stamped = message.attributes & OLD_LOG_APPEND_TIME
        if is_stamped and (rules.stamps or message.timestamp == -1):  # else Kafka takes the time as the producer's
            raise CorruptBatchError("log append time is not the producer's to set", ErrorCode.INVALID_TIMESTAMP)
        if message.codec:
            codec = message.codec
            inside = yield from open_wrapper(message)
            yield from _add_all(made, message, memoryview(inside), message.timestamp if is_stamped else None)
            if not made.count:
                raise bad_records("a compressed message with none inside")
        else:
            made.add(message, message.timestamp)
            if made.is_step():
                yield None
    if not made.count:
        return None
    made.check()
    return (yield from _built(made, codec if rules.codec is None else rules.codec, rules, now_ms))


def _read(messages: memoryview, position: int, end: int) -> Steps[Message]:
    if end - position > _LARGE_BYTES:  # its CRC takes a millisecond for a MiB
        return (yield partial(read_message, messages, position, end))  # type: ignore[no-any-return]
    return read_message(messages, position, end)


def _add_all(made: _Old, wrapper: Message, inside: memoryview, stamp: int | None) -> Steps[None]:
    position = 0
    while (end := message_end(inside, position)) is not None:
        message = yield from _read(inside, position, end)
        position = end
        check_inside(wrapper, message)
        made.add(message, message.timestamp if stamp is None else stamp)
        if made.is_step():
            yield None


def _built(made: _Old, codec: int, rules: Rules, now_ms: int) -> Steps[memoryview]:
    batch = made.batch
    if codec != compression.NONE:
        body = yield from packed(lambda data: compression.compress(codec, data), memoryview(batch)[HEADER_SIZE:])
        batch = bytearray(HEADER_SIZE)
        batch += body
    HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - LENGTH_END,
        -1,
        MAGIC,
        0,
        codec | (LOG_APPEND_TIME if rules.stamps else 0),
        made.count - 1,
        made.base_timestamp,
        now_ms if rules.stamps else made.latest,
        -1,
        -1,
        -1,
        made.count,
    )
    view = memoryview(batch)
    view[CRC_AT:CHECKED_FROM] = crc32c(view[CHECKED_FROM:]).to_bytes(4)
    return view
