"""The bytes of coordinators' records: an int16, then fields. The number is the version of the fields, or says what they are."""

from __future__ import annotations

from struct import Struct
from typing import Any, TypeVar

from dataplane.protocol.codec import decode, encode
from dataplane.protocol.primitives import DecodeError

T = TypeVar("T")
_NUMBER = Struct(">h")


def written(message: Any, number: int, version: int | None = None) -> bytes:
    """A key or a value; `version` of its declaration, where the number is not that."""
    return _NUMBER.pack(number) + encode(message, number if version is None else version)


def number_of(data: bytes) -> int:
    """What it begins with. Raises DecodeError."""
    if len(data) < _NUMBER.size:
        raise DecodeError("no version")
    return int(_NUMBER.unpack_from(data)[0])


def read(cls: type[T], data: bytes, version: int | None = None) -> T:
    """The fields. Raises DecodeError or ValueError for what cannot be read."""
    return decode(cls, number_of(data) if version is None else version, data, _NUMBER.size)
