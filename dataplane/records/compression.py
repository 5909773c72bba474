"""The codecs of record batches, bounded: a batch never expands beyond what the caller allows.

Kafka's codec ids are the low three bits of a batch's attributes. Snappy comes in two framings: Java's clients write
blocks behind a 16-byte header (`xerial`), as we do, librdkafka one raw block. Gzip may hold several members, lz4 and zstd
several frames.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import cramjam

from dataplane.records.lz4 import compress_frame

Buffer = bytes | bytearray | memoryview

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES: Final = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}

MAX_DECOMPRESSED = 16 * 2**20

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_XERIAL_VERSIONS = b"\0\0\0\1\0\0\0\1"  # of the writer, and the least a reader must be
_XERIAL_BLOCK = 32 * 2**10
_GZIP_WINDOW = 31  # zlib's way to say "gzip header, largest window"
_MOST_MEMBERS = 100  # of a gzip stream: each costs a copy of what follows it
_NO_ROOM = "failed to write whole buffer"  # as cramjam says that the buffer was too small
_int32_at = struct.Struct(">i").unpack_from


class CompressionError(Exception):
    """Not what the codec writes, or larger than allowed."""


class TooLargeError(CompressionError):
    """Valid as far as it was read, but there is more than allowed."""


def compress(codec: int, data: Buffer) -> bytes:
    """Compress with the codec's default level."""
    if codec == GZIP:
        packer = zlib.compressobj(wbits=_GZIP_WINDOW)
        return packer.compress(data) + packer.flush()
    if codec == SNAPPY:
        return _snappy(memoryview(data))
    if codec == LZ4:
        return compress_frame(data)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    raise CompressionError(f"codec {codec} does not exist")


def decompress(codec: int, data: Buffer, limit: int = MAX_DECOMPRESSED) -> Buffer:
    """At most `limit` bytes. Raises CompressionError when there would be more, or when `data` is not valid."""
    if codec == NONE:
        return data
    if codec == GZIP:
        return _gunzip(data, limit)
    if codec == SNAPPY:
        return _unsnappy(memoryview(data), limit)
    if codec in (LZ4, ZSTD):
        return _into_growing_buffer(cramjam.lz4 if codec == LZ4 else cramjam.zstd, data, limit)
    raise CompressionError(f"codec {codec} does not exist")


def _snappy(data: memoryview) -> bytes:
    out = bytearray(_XERIAL + _XERIAL_VERSIONS)
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK])
        out += len(block).to_bytes(4)
        out += block
    return bytes(out)


def _gunzip(data: Buffer, limit: int) -> bytearray:
    out = bytearray()
    rest: Buffer = data
    for _ in range(_MOST_MEMBERS):
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            out += member.decompress(rest, limit - len(out) + 1)
        except zlib.error as error:
            raise CompressionError(f"gzip: {error}") from error
        if len(out) > limit:
            raise TooLargeError(f"more than {limit} bytes")
        if not member.eof:
            raise CompressionError("gzip: the end is missing")
        rest = member.unused_data
        if not rest:
            return out
    raise CompressionError(f"gzip: more than {_MOST_MEMBERS} members")


def _unsnappy(data: memoryview, limit: int) -> Buffer:
    if data[:8] != _XERIAL:
        return _unsnappy_block(data, limit)
    out = bytearray()
    position = _XERIAL_HEADER
    while position + 4 <= len(data):
        size = _int32_at(data, position)[0]
        position += 4
        if size < 0 or position + size > len(data):
            raise CompressionError("snappy: a block ends after the data")
        out += _unsnappy_block(data[position : position + size], limit - len(out))
        position += size
    return out


def _unsnappy_block(block: memoryview, limit: int) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(block) > limit:
            raise TooLargeError(f"more than {limit} bytes")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CompressionError(f"snappy: {error}") from error


def _into_growing_buffer(codec: object, data: Buffer, limit: int) -> memoryview:
    """Frames need not say how large their content is: try buffers of growing size, up to the limit."""
    size = min(limit, max(4 * len(data), 4096))
    while True:
        out = bytearray(size)
        try:
            written: int = codec.decompress_into(data, out)  # type: ignore[attr-defined]
        except cramjam.DecompressionError as error:
            if str(error) != _NO_ROOM:
                raise CompressionError(str(error)) from error
            if size >= limit:
                raise TooLargeError(f"more than {limit} bytes") from error
            size = min(limit, 8 * size)
        else:
            return memoryview(out)[:written]
