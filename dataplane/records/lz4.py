"""LZ4 frames as Kafka writes them, with the right and with the historic header checksum. Pure.

    magic 0x184D2204 (little-endian) | FLG | BD | HC | blocks: size uint32 (high bit: stored as it is), bytes | 0

Independent blocks of 64 KiB, no checksums but HC: Java's clients read no linked blocks, which is what a library writes
if it is not told otherwise. HC is the second byte of the xxHash32 of the descriptor (FLG and BD). The first clients that
knew lz4 hashed the frame's magic as well; messages of format 0 have carried that wrong byte ever since, and their readers
look for it, or for none (KIP-57). With format 1 it became right.
"""

from __future__ import annotations

import struct
from typing import Final

import cramjam

Buffer = bytes | bytearray | memoryview

_MAGIC: Final = b"\x04\x22\x4d\x18"
_DESCRIPTOR: Final = b"\x60\x40"  # version 1, independent blocks; blocks of at most 64 KiB
_BLOCK: Final = 64 * 2**10
_STORED: Final = 0x80000000
_uint32 = struct.Struct("<I")

_CONTENT_SIZE, _DICTIONARY = 0x08, 0x01  # bits of FLG: fields of 8 and 4 bytes follow BD

_MASK: Final = 0xFFFFFFFF
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


def compress_frame(data: Buffer, *, wrong_checksum: bool = False) -> bytes:
    """One frame; `wrong_checksum` for messages of format 0."""
    hashed = _MAGIC + _DESCRIPTOR if wrong_checksum else _DESCRIPTOR
    out = bytearray(_MAGIC + _DESCRIPTOR)
    out.append(xxhash32_of_few(hashed) >> 8 & 0xFF)
    view = memoryview(data)
    for start in range(0, len(view), _BLOCK):
        block = view[start : start + _BLOCK]
        packed = cramjam.lz4.compress_block(block, store_size=False)
        if len(packed) < len(block):
            out += _uint32.pack(len(packed))
            out += packed
        else:
            out += _uint32.pack(len(block) | _STORED)
            out += block
    out += b"\0\0\0\0"
    return bytes(out)


def with_right_checksum(frame: Buffer) -> Buffer:
    """The frame as libraries accept it, whatever its header checksum is. What is no frame comes back as it is."""
    if len(frame) < 7 or bytes(frame[:4]) != _MAGIC:
        return frame
    end = 6 + (8 if frame[4] & _CONTENT_SIZE else 0) + (4 if frame[4] & _DICTIONARY else 0)
    if end >= len(frame):
        return frame
    right = xxhash32_of_few(bytes(frame[4:end])) >> 8 & 0xFF
    if frame[end] == right:
        return frame
    patched = bytearray(frame)
    patched[end] = right
    return patched


def xxhash32_of_few(data: bytes) -> int:
    """xxHash32 with seed 0, of fewer than 16 bytes: all that a frame's header has."""
    value = _P5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = value + _uint32.unpack_from(data, at)[0] * _P3 & _MASK
        value = _rotated(value, 17) * _P4 & _MASK
    for byte in data[whole:]:
        value = value + byte * _P5 & _MASK
        value = _rotated(value, 11) * _P1 & _MASK
    value = (value ^ value >> 15) * _P2 & _MASK
    value = (value ^ value >> 13) * _P3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
