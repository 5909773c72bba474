"""What a handler may answer beside a message: bytes that are encoded already, and the end of the connection."""

from __future__ import annotations

from dataclasses import dataclass

from dataplane.protocol.primitives import Buffer, Splice


@dataclass(frozen=True, slots=True)
class Encoded:
    """A whole frame, as it goes out."""

    parts: list[bytes | Splice] | list[Buffer | Splice]


class CloseConnectionError(Exception):
    """The connection has to end: Kafka's way to say what an answer has no room for."""
