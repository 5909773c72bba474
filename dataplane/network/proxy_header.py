"""The PROXY protocol's header, versions 1 and 2: what a load balancer says in front of its client's bytes.

`parse_proxy_header(data)` takes what has come so far: None means that more is needed, and that all of it is of the header;
a `ProxyHeader` says how many bytes it had, and whose the connection is; `ProxyHeaderError` means that it is no header.

    version 1    PROXY TCP4 10.0.0.7 10.0.0.1 51234 9092 CR LF      a line of at most 107 bytes; TCP4, TCP6, UNKNOWN
    version 2    12 bytes of signature; version and command, family and transport, length (2 bytes each, big-endian, the
                 first two a byte); addresses; TLVs: type (1), length (2), value

It is strict where the specification leaves room, since an address that two readers understand differently is a way past a
whitelist: one space, no leading zeros, nothing behind a line's last port. A CRC32c TLV has to be right; TLVs have to end
where the header ends, those within an SSL TLV as well.

No source (`source` is None) means that the connection is the proxy's own: LOCAL (its health checks), UNKNOWN, and what a
listener of TCP cannot have as a client (UNIX sockets, datagrams). What such a header says besides is not looked at.

Source: HAProxy, "The PROXY protocol, Versions 1 & 2", doc/proxy-protocol.txt.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from crc32c import crc32c

MOST_V1_BYTES = 107
MOST_V2_BODY_BYTES = 1024
"""Of addresses and TLVs; the specification allows 65,535, and asks of senders to keep a header within 536 bytes."""
MOST_HEADER_BYTES = 16 + MOST_V2_BODY_BYTES

_V1_PREFIX = b"PROXY "
_V1_LINE = re.compile(rb"PROXY (?:(TCP4|TCP6) ([0-9A-Fa-f:.]+) ([0-9A-Fa-f:.]+) ([0-9]+) ([0-9]+)|UNKNOWN(?: [ -~]*)?)")
_V1_FAMILIES = (b"TCP4 ", b"TCP6 ", b"UNKNOWN")
_NOT_PRINTABLE = re.compile(rb"[^ -~]")
_PORT = re.compile(rb"0|[1-9][0-9]{0,4}")

_V2_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_V2_HEAD = struct.Struct(">12sBBH")
_LOCAL, _PROXY = 0x20, 0x21
_UNSPECIFIED, _TCP4, _TCP6 = 0x00, 0x11, 0x21
_ADDRESSES = {_TCP4: 12, 0x12: 12, _TCP6: 36, 0x22: 36, 0x31: 216, 0x32: 216}
"""Bytes, by family and transport: IPv4, IPv6, UNIX; a stream, datagrams. There is no other."""
_TLV_HEAD = struct.Struct(">BH")
_CRC32C, _UNIQUE_ID, _SSL = 0x03, 0x05, 0x20
_MOST_UNIQUE_ID_BYTES = 128
_SSL_HEAD_BYTES = 5  # which kinds of certificate; whether they were verified

Address = tuple[str, int]


class ProxyHeaderError(ValueError):
    """These bytes are not, and do not begin, a header; the text says why."""


@dataclass(frozen=True, slots=True)
class ProxyHeader:
    """A whole header. Addresses are in canonical text; one of IPv4 that is mapped into IPv6 is of IPv4."""

    size: int
    source: Address | None  # None: the socket's own peer
    destination: Address | None


def parse_proxy_header(data: bytes) -> ProxyHeader | None:
    """The header that `data` begins with; None: there may be one, and all of `data` is of it. Raises ProxyHeaderError."""
    if data[:1] == _V2_SIGNATURE[:1]:
        return _parse_v2(data)
    return _parse_v1(data)


# --- version 1 --------------------------------------------------------------------------------------------------------


def _parse_v1(data: bytes) -> ProxyHeader | None:
    if not _agree(data, _V1_PREFIX):
        raise ProxyHeaderError("neither version of a PROXY header begins so")
    line, end, _ = data[:MOST_V1_BYTES].partition(b"\r\n")
    if not end:
        _could_become_v1(line)
        return None
    match = _V1_LINE.fullmatch(line)
    if match is None:
        raise ProxyHeaderError(f"not a line of the PROXY protocol: {line!r}")
    size = len(line) + 2
    if match[1] is None:
        return ProxyHeader(size, None, None)
    read = _ipv4 if match[1] == b"TCP4" else _ipv6
    return ProxyHeader(size, (read(match[2]), _port(match[4])), (read(match[3]), _port(match[5])))


def _could_become_v1(line: bytes) -> None:
    """What can be told before the line has ended. Raises ProxyHeaderError."""
    if len(line) >= MOST_V1_BYTES:
        raise ProxyHeaderError(f"no end of a line within {MOST_V1_BYTES} bytes")
    if _NOT_PRINTABLE.search(line.removesuffix(b"\r")):
        raise ProxyHeaderError(f"not a line of text: {line!r}")
    family = line[len(_V1_PREFIX) :]
    if not any(_agree(family, known) for known in _V1_FAMILIES):
        raise ProxyHeaderError(f"not a family of the PROXY protocol: {family!r}")


def _agree(data: bytes, expected: bytes) -> bool:
    """Whether they are the same as far as both go."""
    size = min(len(data), len(expected))
    return data[:size] == expected[:size]


def _ipv4(text: bytes) -> str:
    try:
        return str(IPv4Address(text.decode()))  # it takes no leading zeros, and four numbers only
    except AddressValueError as error:
        raise ProxyHeaderError(str(error)) from error


def _ipv6(text: bytes) -> str:
    try:
        return _canonical(IPv6Address(text.decode()))
    except AddressValueError as error:
        raise ProxyHeaderError(str(error)) from error


def _canonical(address: IPv6Address) -> str:
    return str(address.ipv4_mapped or address)


def _port(text: bytes) -> int:
    if not _PORT.fullmatch(text) or int(text) > 0xFFFF:
        raise ProxyHeaderError(f"not a port: {text!r}")
    return int(text)


# --- version 2 --------------------------------------------------------------------------------------------------------


def _parse_v2(data: bytes) -> ProxyHeader | None:
    if not _agree(data, _V2_SIGNATURE):
        raise ProxyHeaderError("neither version of a PROXY header begins so")
    if len(data) > 12 and data[12] not in (_LOCAL, _PROXY):
        raise ProxyHeaderError(f"version and command 0x{data[12]:02x}")
    if len(data) < _V2_HEAD.size:
        return None
    _, command, family, length = _V2_HEAD.unpack_from(data)
    if length > MOST_V2_BODY_BYTES:
        raise ProxyHeaderError(f"{length} bytes of addresses and more, of at most {MOST_V2_BODY_BYTES}")
    size = _V2_HEAD.size + length
    if len(data) < size:
        return None
    if command == _LOCAL:
        return ProxyHeader(size, None, None)
    return _v2_proxied(data[:size], family)


def _v2_proxied(header: bytes, family: int) -> ProxyHeader:
    """A whole header of version 2 that is about a client."""
    size = len(header)
    if family == _UNSPECIFIED:
        return ProxyHeader(size, None, None)
    if family not in _ADDRESSES:
        raise ProxyHeaderError(f"family and transport 0x{family:02x}")
    tlvs_at = _V2_HEAD.size + _ADDRESSES[family]
    if size < tlvs_at:
        raise ProxyHeaderError(f"{size} bytes, too few for the addresses of family and transport 0x{family:02x}")
    _check_tlvs(header, tlvs_at, size)
    if family == _TCP4:
        return ProxyHeader(size, *_v4_addresses(header))
    if family == _TCP6:
        return ProxyHeader(size, *_v6_addresses(header))
    return ProxyHeader(size, None, None)


def _v4_addresses(header: bytes) -> tuple[Address, Address]:
    source, destination, source_port, destination_port = struct.unpack_from(">4s4sHH", header, _V2_HEAD.size)
    return (str(IPv4Address(source)), source_port), (str(IPv4Address(destination)), destination_port)


def _v6_addresses(header: bytes) -> tuple[Address, Address]:
    source, destination, source_port, destination_port = struct.unpack_from(">16s16sHH", header, _V2_HEAD.size)
    return (_canonical(IPv6Address(source)), source_port), (_canonical(IPv6Address(destination)), destination_port)


def _check_tlvs(header: bytes, position: int, end: int, *, is_nested: bool = False) -> None:
    """They end where they have to, and what is known of their values holds. Raises ProxyHeaderError."""
    has_checksum = False
    while position < end:
        if end - position < _TLV_HEAD.size:
            raise ProxyHeaderError(f"{end - position} bytes behind the last TLV")
        kind, length = _TLV_HEAD.unpack_from(header, position)
        position += _TLV_HEAD.size
        if length > end - position:
            raise ProxyHeaderError(f"a TLV of type 0x{kind:02x} ends behind the header")
        if kind == _CRC32C and not is_nested:
            if has_checksum:
                raise ProxyHeaderError("two checksums")
            has_checksum = True
            _check_checksum(header, position, length)
        elif kind == _UNIQUE_ID and length > _MOST_UNIQUE_ID_BYTES:
            raise ProxyHeaderError(f"a unique id of {length} bytes")
        elif kind == _SSL and not is_nested:
            if length < _SSL_HEAD_BYTES:
                raise ProxyHeaderError(f"an SSL TLV of {length} bytes")
            _check_tlvs(header, position + _SSL_HEAD_BYTES, position + length, is_nested=True)
        position += length


def _check_checksum(header: bytes, position: int, length: int) -> None:
    """It is that of the whole header with zeros in its own place."""
    if length != 4:
        raise ProxyHeaderError(f"a checksum of {length} bytes")
    checked = header[:position] + bytes(4) + header[position + 4 :]
    if crc32c(checked).to_bytes(4) != header[position : position + 4]:
        raise ProxyHeaderError("the checksum is wrong")
