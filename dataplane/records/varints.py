"""Zig-zag varints as bytes, for code that writes many records: small ones from a table."""

from __future__ import annotations

from dataplane.protocol.primitives import write_varint


def _written(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


_SMALL = tuple(_written(value) for value in range(8192))


def varint(value: int) -> bytes:
    """A zig-zag varint of at most 64 bits."""
    return _SMALL[value] if 0 <= value < 8192 else _written(value)
