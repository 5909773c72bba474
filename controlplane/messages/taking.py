"""Whether a topic takes a message, by what is configured for it: brokers decide by the same rules when they have it.

A message is sent alone in a batch (record format 2, not compressed), and `max.message.bytes` is of the batch: a header of 61
bytes, and the record with its lengths as numbers of variable length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.kafka import message_door

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.core.errors import SluiceError
    from controlplane.kafka.message_door import Message

HEADER_BYTES = 61
FIXED_BYTES = 3
"""Of a record: attributes, and a time and an offset that are none beyond the batch's."""
NULL = -1


def batch_bytes(message: Message) -> int:
    """The batch that holds this message alone."""
    record = FIXED_BYTES + _bytes(message.key) + _bytes(message.value) + _number(len(message.headers))
    record += sum(_bytes(name.encode()) + _bytes(content) for name, content in message.headers)
    return HEADER_BYTES + _number(record) + record


def refusal(message: Message, settings: Mapping[str, str], now_ms: int) -> SluiceError | None:
    """What is said of a message that a topic with these settings does not take; a setting that is not known refuses nothing."""
    most = int(settings.get("max.message.bytes", message_door.LARGEST_BYTES))
    if batch_bytes(message) > min(most, message_door.LARGEST_BYTES):
        return message_door.too_large()
    if message.timestamp_ms is not None and not _is_timely(message.timestamp_ms, settings, now_ms):
        return message_door.out_of_time()
    if message.key is None and "compact" in settings.get("cleanup.policy", ""):
        return message_door.no_such_record()
    return None


def _is_timely(timestamp_ms: int, settings: Mapping[str, str], now_ms: int) -> bool:
    """A topic that writes the time of arrival asks nobody for theirs."""
    if settings.get("message.timestamp.type") == "LogAppendTime":
        return True
    before, after = (settings.get(f"message.timestamp.{side}.max.ms") for side in ("before", "after"))
    is_too_old = before is not None and timestamp_ms < now_ms - int(before)
    return not is_too_old and (after is None or timestamp_ms <= now_ms + int(after))


def _bytes(content: bytes | None) -> int:
    """With its length before it."""
    return _number(NULL) if content is None else _number(len(content)) + len(content)


def _number(number: int) -> int:
    """Bytes of a number: seven bits in each, negative ones folded in between."""
    folded, found = (number << 1) ^ (number >> 63), 1
    while folded >= 0x80:
        folded >>= 7
        found += 1
    return found
