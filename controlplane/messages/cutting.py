"""What of a message is shown: in at most so many bytes a page, and nothing of its content where the role may not read. Pure.

Where a page's messages are larger together than a page may be, the largest fields are cut, all to the same length, and small ones
stay whole. How long each field is, is said beside it in any case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.kafka.message_door import Message
    from controlplane.schemas.decoding import Part
    from controlplane.schemas.values import Decoded

    ByParts = Mapping[Part, Decoded]

MOST_HEADERS = 100
"""That a page shows of one message; headers have no limit of their own."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as somebody may see it. Lengths are of the whole; -1: there is none (null)."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    key_bytes: int
    value_bytes: int
    headers_bytes: int
    header_count: int
    is_cut: bool = False
    is_masked: bool = False
    decoded: ByParts = field(default_factory=dict)  # what has a schema, by it; of the whole
    load_id: str = ""  # of the load whose table it is from; empty: from the topic

    @property
    def is_tombstone(self) -> bool:
        """Whether it says that its key is gone."""
        return self.value_bytes == NULL


NULL = -1


def masked(message: Message) -> Shown:
    """Where it is, when, and how large; nothing of what it says, names of headers included."""
    return _shown(message, None, None, (), is_masked=True)


def whole(message: Message) -> Shown:
    """All of it."""
    return _shown(message, message.key, message.value, message.headers)


def page(messages: Sequence[Message], most_bytes: int) -> list[Shown]:
    """In the same order, with so many bytes of keys, values and headers together."""
    longest = _longest(messages, most_bytes)
    return [_cut(message, longest) for message in messages]


def _longest(messages: Sequence[Message], most_bytes: int) -> int:
    """The length to which fields are cut, so that all fit: what short fields do not use is the long ones'."""
    sizes = sorted(size for message in messages for size in _sizes(message))
    left = most_bytes
    for place, size in enumerate(sizes):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return most_bytes


def _sizes(message: Message) -> tuple[int, int, int]:
    return len(message.key or b""), len(message.value or b""), message.headers_bytes


def _cut(message: Message, longest: int) -> Shown:
    key, value = _first(message.key, longest), _first(message.value, longest)
    headers, left = [], longest
    for name, text in message.headers[:MOST_HEADERS]:
        left -= len(name.encode()) + len(text or b"")
        if left < 0:
            break
        headers.append((name, text))
    is_cut = key != message.key or value != message.value or len(headers) < len(message.headers)
    return _shown(message, key, value, tuple(headers), is_cut=is_cut)


def _first(content: bytes | None, longest: int) -> bytes | None:
    return None if content is None else content[:longest]


def _shown(
    message: Message,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    *,
    is_cut: bool = False,
    is_masked: bool = False,
) -> Shown:
    return Shown(
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=message.timestamp_ms,
        key=key,
        value=value,
        headers=headers,
        key_bytes=NULL if message.key is None else len(message.key),
        value_bytes=NULL if message.value is None else len(message.value),
        headers_bytes=message.headers_bytes,
        header_count=len(message.headers),
        is_cut=is_cut,
        is_masked=is_masked,
    )
