"""Whatever bytes arrive where a PROXY header is expected: a header, the need for more, or its one kind of error.

An input is what has arrived, behind a byte that says whether a checksum is put right first. What is read is held to more: a
header that is whole asked for more at each of its bytes, is the same without what follows, and what it says can be written
again, by another hand, and read back.

    python tests/fuzz/fuzz_proxy.py CORPUS… [libFuzzer's options]      run by tests.fuzz
"""

from __future__ import annotations

import socket
import struct
import sys
import zlib
from ipaddress import ip_address
from pathlib import Path

import atheris
from crc32c import crc32c

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["dataplane"]):
    from dataplane.network import proxy_header
    from dataplane.network.proxy_header import MOST_HEADER_BYTES, ProxyHeaderError

from tests.fuzz import planted
from tests.fuzz.bounded import bounded

SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")


def one_input(data: bytes) -> None:
    """One input of the fuzzer."""
    if not data:
        return
    data = repaired(data[1:]) if data[0] & 1 else data[1:]
    found = read(data)
    if found is None:
        return
    assert 0 < found.size <= min(len(data), MOST_HEADER_BYTES), found
    header = data[: found.size]
    assert read(header) == found
    for size in range(found.size):
        assert proxy_header.parse_proxy_header(header[:size]) is None, size  # nor an error
    if found.source is not None:
        assert found.destination is not None
        if header.startswith(b"PROXY TCP4"):  # there is one way only to write it
            assert header == written(found.source, found.destination)[0], header
        assert str(ip_address(found.source[0])) == found.source[0]
        for again in written(found.source, found.destination):
            assert proxy_header.parse_proxy_header(again) == type(found)(len(again), found.source, found.destination)


def read(data: bytes) -> proxy_header.ProxyHeader | None:
    try:
        found = proxy_header.parse_proxy_header(data)
    except ProxyHeaderError:
        return None
    assert found is not None or len(data) < MOST_HEADER_BYTES
    return found


def written(source: tuple[str, int], destination: tuple[str, int]) -> list[bytes]:
    """By both versions. One end of IPv4 and one of IPv6 are both IPv6, the first one mapped."""
    is_v4 = ":" not in source[0] + destination[0]
    texts = [address if is_v4 or ":" in address else f"::ffff:{address}" for address, _ in (source, destination)]
    family = socket.AF_INET if is_v4 else socket.AF_INET6
    line = f"PROXY TCP{4 if is_v4 else 6} {texts[0]} {texts[1]} {source[1]} {destination[1]}\r\n".encode()
    body = b"".join(socket.inet_pton(family, text) for text in texts) + struct.pack(">HH", source[1], destination[1])
    return [line, SIGNATURE + b"\x21" + (b"\x11" if is_v4 else b"\x21") + struct.pack(">H", len(body)) + body]


def repaired(data: bytes) -> bytes:
    """With the length of what is there, and the right checksum in the TLV of one that is found by its first bytes."""
    if len(data) < 16 or not data.startswith(SIGNATURE):
        return data
    data = data[:14] + struct.pack(">H", min(len(data) - 16, 0xFFFF)) + data[16:]
    at = data.find(b"\3\0\4", 16)
    if at < 0 or at + 7 > len(data):
        return data
    return data[: at + 3] + crc32c(data[: at + 3] + bytes(4) + data[at + 7 :]).to_bytes(4) + data[at + 7 :]


def write_seeds(folder: Path) -> None:
    """The first corpus."""
    v4 = SIGNATURE + b"\x21\x11\0\x0c" + bytes([10, 0, 0, 7, 10, 0, 0, 1]) + struct.pack(">HH", 5123, 9092)
    v6 = SIGNATURE + b"\x21\x21\0\x24" + bytes(32) + struct.pack(">HH", 5123, 9092)
    tlvs = [
        b"\3\0\4" + bytes(4),
        b"\4\0\1x",
        b"\5\0\3abc",
        b"\x20\0\x0f\1" + bytes(4) + b"\x21\0\7TLSv1.3",
        b"\xee\0\0",
    ]
    made = [
        b"PROXY TCP4 10.0.0.7 10.0.0.1 5123 9092\r\n",
        b"PROXY TCP6 2001:db8::7 ::ffff:10.0.0.1 5123 9092\r\n",
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN whatever\r\n\0\0\0\1",
        SIGNATURE + b"\x20\0\0\0",
        SIGNATURE + b"\x21\x31\0\xd8" + bytes(216),
        v4,
        v6,
        *(head + each for head in (v4, v6) for each in tlvs),
        v4 + b"".join(tlvs),
    ]
    for data in made:
        for flag in (b"\0", b"\1"):
            (folder / f"{zlib.crc32(flag + data):08x}").write_bytes(flag + data)


if __name__ == "__main__":
    planted.take(sys.argv)
    atheris.Setup(sys.argv, bounded(one_input))
    atheris.Fuzz()
