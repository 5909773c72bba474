"""The forms of Kafka's requests and answers, for those that are written by hand. Pure.

Flexible versions (KIP-482) write a length as one more than it is (0: null), in groups of seven bits, and end each structure with
its tagged fields, of which none is sent and nearly all are passed over. Those before write lengths as numbers. https://kafka.apache.org/protocol
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_TAGS = b"\0"
Place = tuple[str, int]
"""A topic and a partition's number."""


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """As requests have them: each topic once, with its partitions."""
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    return topics


def string(text: str) -> bytes:
    """A compact string."""
    data = text.encode()
    return _count(len(data)) + data


def array(items: Iterable[bytes]) -> bytes:
    """A compact array."""
    written = list(items)
    return _count(len(written)) + b"".join(written)


def _count(number: int) -> bytes:
    number += 1
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


class Reader:
    """An answer, from its beginning. What it lacks is a struct.error; `errors` is what becomes of text that is not UTF-8."""

    def __init__(self, data: bytes, at: int = 0, *, errors: str = "strict") -> None:
        self._data, self._at, self._errors = data, at, errors

    def skip(self, size: int) -> None:
        self._at += size

    def int8(self) -> int:
        return self._number(">b", 1)

    def int16(self) -> int:
        return self._number(">h", 2)

    def int32(self) -> int:
        return self._number(">i", 4)

    def int64(self) -> int:
        return self._number(">q", 8)

    def int32s(self) -> tuple[int, ...]:
        return tuple(self.int32() for _ in range(self.count()))

    def count(self) -> int:
        """Of an array or string; null is as good as empty."""
        return max(0, self._varint() - 1)

    def string(self) -> str:
        return self._text(self.count())

    def old_string(self) -> str:
        """Of a version that is not flexible."""
        return self._text(max(0, self.int16()))

    def old_bytes(self) -> bytes:
        """Likewise; null is as good as empty."""
        size = max(0, self.int32())
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise struct.error("the answer ends within bytes")
        self._at += size
        return data

    def nullable_string(self) -> str | None:
        """Likewise, where null is not empty."""
        size = self.int16()
        return None if size < 0 else self._text(size)

    def tags(self) -> None:
        """Passed over."""
        for _ in range(self._varint()):
            self._varint()
            self.skip(self._varint())

    def tagged_strings(self, count: int) -> tuple[str, ...]:
        """Those with the tags 0 to before `count`, all compact strings; empty: not given. Others are passed over."""
        found = dict.fromkeys(range(count), "")
        for _ in range(self._varint()):
            tag, size = self._varint(), self._varint()
            if tag in found:
                found[tag] = self.string()
            else:
                self.skip(size)
        return tuple(found.values())

    def _text(self, size: int) -> str:
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise struct.error("the answer ends within a text")
        self._at += size
        return data.decode(errors=self._errors)

    def _number(self, form: str, size: int) -> int:
        (found,) = struct.unpack_from(form, self._data, self._at)
        self._at += size
        return int(found)

    def _varint(self) -> int:
        found = shift = 0
        while True:
            if self._at >= len(self._data) or shift > 28:
                raise struct.error("the answer ends within a number")
            byte = self._data[self._at]
            self._at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found
