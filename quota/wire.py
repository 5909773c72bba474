"""Frames between agent and master: a 4-byte big-endian length, then one JSON object in UTF-8. Sans-IO.

What a broker sends: ``hello`` once and first, then ``report``; what the master sends: ``grants``. The hello, with the
broker's own credential (`quota.contracts.identity`)::

    {"type": "hello", "version": 1, "secret": "…", "broker": 2}

A master that does not accept it closes the connection without an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

VERSION = 1
LENGTH_BYTES = 4
MAX_FRAME_BYTES = 8 * 2**20
MAX_HELLO_BYTES = 4096
"""A stranger may make the master buffer this much, not MAX_FRAME_BYTES."""


class WireError(Exception):
    """The peer does not speak this protocol: close the connection. The text says what was wrong, never the content."""


def frame(document: bytes) -> bytes:
    """A document with its length."""
    return len(document).to_bytes(LENGTH_BYTES, "big") + document


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame of a connection."""

    secret: str
    broker: int

    def to_json(self) -> bytes:
        """The document, without the length prefix."""
        document = {"type": "hello", "version": VERSION, "secret": self.secret, "broker": self.broker}
        return orjson.dumps(document)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Hello:
        """From a parsed frame. Raises WireError."""
        secret, broker = document.get("secret"), document.get("broker")
        if document.get("type") != "hello" or not isinstance(secret, str) or type(broker) is not int:
            raise WireError("the first frame is not a hello")
        if document.get("version") != VERSION:
            raise WireError("the hello is of another version")
        return cls(secret, broker)


class Decoder:
    """Cuts a byte stream into documents. After a WireError it is of no further use."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes  # may be raised between two documents
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[dict[str, Any]]:
        """The documents that are complete now, one at a time: the limit may be raised between two. Raises WireError."""
        self._buffer += data
        return iter(self._next, None)  # until it answers None

    def _next(self) -> dict[str, Any] | None:
        if len(self._buffer) < LENGTH_BYTES:
            return None
        size = int.from_bytes(self._buffer[:LENGTH_BYTES], "big")
        if size > self.max_frame_bytes:
            raise WireError(f"a frame of {size} bytes; at most {self.max_frame_bytes} are allowed")
        end = LENGTH_BYTES + size
        if len(self._buffer) < end:
            return None
        document = _parse(self._buffer[LENGTH_BYTES:end])
        del self._buffer[:end]
        return document


def _parse(data: bytearray) -> dict[str, Any]:
    try:
        document = json.loads(data)  # orjson would read a whole number beyond 64 bits as a fraction
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame of {len(data)} bytes is not JSON: {type(error).__name__}") from error
    if not isinstance(document, dict):
        raise WireError(f"a frame holds {type(document).__name__} where an object is expected")
    return document
