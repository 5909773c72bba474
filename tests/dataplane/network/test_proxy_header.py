"""The PROXY protocol's header: what a proxy writes is read back, whatever else arrives is an error of one kind."""

import socket
import struct
from ipaddress import IPv4Address, IPv6Address

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.network.proxy_header import (
    MOST_HEADER_BYTES,
    MOST_V1_BYTES,
    ProxyHeaderError,
    parse_proxy_header,
)

SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")

ports = st.integers(0, 65535)
addresses = st.one_of(
    st.tuples(st.just(4), st.ip_addresses(v=4), st.ip_addresses(v=4), ports, ports),
    st.tuples(st.just(6), st.ip_addresses(v=6), st.ip_addresses(v=6), ports, ports),
)


def write_v1(family, source, destination, source_port, destination_port):
    """As HAProxy does: addresses by the C library."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    texts = [socket.inet_ntop(kind, each.packed) for each in (source, destination)]
    return f"PROXY TCP{family} {texts[0]} {texts[1]} {source_port} {destination_port}\r\n".encode()


def write_v2(family, source, destination, source_port, destination_port, tlvs=b"", command=0x21):
    body = source.packed + destination.packed + struct.pack(">HH", source_port, destination_port) + tlvs
    return SIGNATURE + bytes((command, 0x11 if family == 4 else 0x21)) + struct.pack(">H", len(body)) + body


def tlv(kind, value):
    return bytes((kind,)) + len(value).to_bytes(2) + value


def with_checksum(header):
    """The same, with a CRC32c TLV at its end."""
    length = int.from_bytes(header[14:16]) + 7
    header = header[:14] + length.to_bytes(2) + header[16:] + tlv(3, bytes(4))
    return header[:-4] + crc32c(header).to_bytes(4)


def text(address):
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def v2(family=0x11, body=bytes(12), command=0x21):
    return SIGNATURE + bytes((command, family)) + len(body).to_bytes(2) + body


kinds = st.integers(0, 255).filter(lambda kind: kind not in (0x03, 0x05, 0x20))
tlv_lists = st.lists(st.tuples(kinds, st.binary(max_size=60)), max_size=8)


# --- what a proxy writes ----------------------------------------------------------------------------------------------


@given(addresses, st.binary(max_size=40))
@example((6, IPv6Address("::ffff:10.0.0.7"), IPv6Address("::1"), 1, 2), b"")
def test_a_line_of_version_1_is_read_back_whatever_follows(client, behind):
    header = write_v1(*client)
    found = parse_proxy_header(header + behind)
    _, source, destination, source_port, destination_port = client
    assert found.size == len(header) <= MOST_V1_BYTES
    assert found.source == (text(source), source_port)
    assert found.destination == (text(destination), destination_port)


@given(addresses, tlv_lists, st.booleans(), st.binary(max_size=40))
def test_a_header_of_version_2_is_read_back_with_its_tlvs(client, tlvs, has_checksum, behind):
    header = write_v2(*client, tlvs=b"".join(tlv(*each) for each in tlvs))
    if has_checksum:
        header = with_checksum(header)
    found = parse_proxy_header(header + behind)
    _, source, destination, source_port, destination_port = client
    assert found.size == len(header)
    assert found.source == (text(source), source_port)
    assert found.destination == (text(destination), destination_port)


@given(addresses, st.sampled_from([write_v1, write_v2]), st.data())
def test_any_part_of_a_header_asks_for_more_so_that_no_byte_behind_it_is_taken(client, write, data):
    header = write(*client)
    for size in range(len(header)):
        assert parse_proxy_header(header[:size]) is None
    size = data.draw(st.integers(0, len(header) - 1))
    assert parse_proxy_header(header[:size] + header[size:]).size == len(header)


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n",
        v2(0x00, b"", 0x20),  # LOCAL, as HAProxy's health checks are
        v2(0x77, b"whatever", 0x20),  # its family is ignored
        v2(0x00, b"whatever"),  # UNSPEC
        v2(0x12, bytes(12)),  # datagrams
        v2(0x22, bytes(36)),
        v2(0x31, bytes(216)),  # a UNIX socket
        v2(0x32, bytes(216) + tlv(4, b"")),
    ],
)
def test_a_connection_of_the_proxy_itself_keeps_the_sockets_own_address(header):
    found = parse_proxy_header(header + b"\0\0\0\1")
    assert (found.size, found.source, found.destination) == (len(header), None, None)


def test_an_ssl_tlv_has_tlvs_of_its_own():
    ssl = tlv(0x20, b"\1" + bytes(4) + tlv(0x21, b"TLSv1.3") + tlv(0x22, b"client"))
    header = with_checksum(write_v2(4, IPv4Address("10.0.0.7"), IPv4Address("10.0.0.1"), 1, 2, tlvs=ssl))
    assert parse_proxy_header(header).source == ("10.0.0.7", 1)


# --- whatever else ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"PROXY TCP4 10.0.0.7 10.0.0.1 1\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 1 2 \r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 1 2 3\r\n",
        b"PROXY TCP4  10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY  TCP4 10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY\tTCP4 10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 1 2\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 1 2\r\r\n",
        b"proxy TCP4 10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY tcp4 10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP5 10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY UDP4 10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY UNKNOWNS\r\n",
        b"PROXY TCP4 010.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 0x0a.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 167772167 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 10.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 10.0.0.256 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 10.0.0.7. 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 ::1 ::1 1 2\r\n",
        b"PROXY TCP4 ::ffff:10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP6 10.0.0.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP6 ::1 10.0.0.1 1 2\r\n",
        b"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
        b"PROXY TCP6 [::1] ::1 1 2\r\n",
        b"PROXY TCP6 1::2::3 ::1 1 2\r\n",
        b"PROXY TCP6 00001::2 ::1 1 2\r\n",
        b"PROXY TCP4 localhost 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 -1 2\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 +1 2\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 01 2\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 65536 2\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 1 99999999999\r\n",
        "PROXY TCP4 10.0.0.7 10.0.0.1 \u0661 2\r\n".encode(),
        b"PROXY TCP4 10.0.0.7\0 10.0.0.1 1 2\r\n",
        b"PROXY UNKNOWN \xff\r\n",
        b"PROXY UNKNOWN " + b"x" * MOST_V1_BYTES + b"\r\n",
        b"PROXY UNKNOWN " + b"x" * (MOST_V1_BYTES - 15) + b"\r\n",  # one byte too long
        b"GET / HTTP/1.0\r\n",
        b"\0\0\0\x12\0\x12\0\0",
        b"\x16\x03\x01\x02\x00",
        b" PROXY TCP4 10.0.0.7 10.0.0.1 1 2\r\n",
    ],
)
def test_what_is_no_line_of_version_1_is_an_error(line):
    with pytest.raises(ProxyHeaderError):
        parse_proxy_header(line)


def test_the_longest_line_is_taken():
    line = b"PROXY UNKNOWN " + b"x" * (MOST_V1_BYTES - 16) + b"\r\n"
    assert len(line) == MOST_V1_BYTES
    assert parse_proxy_header(line).size == MOST_V1_BYTES


@pytest.mark.parametrize(
    "header",
    [
        b"\r\n\r\n\0\r\nQUIX\n" + v2()[12:],
        b"\r\nPROXY TCP4 10.0.0.7 10.0.0.1 1 2\r\n",
        v2(command=0x11),  # version 1
        v2(command=0x31),
        v2(command=0x22),  # neither LOCAL nor PROXY
        v2(command=0x01),
        *(v2(family, bytes(216)) for family in (0x01, 0x02, 0x10, 0x13, 0x20, 0x23, 0x30, 0x33, 0x41, 0xFF)),
        v2(0x11, bytes(11)),
        v2(0x21, bytes(35)),
        v2(0x31, bytes(215)),
        v2(0x11, bytes(12) + b"\4"),  # the head of a TLV that is not whole
        v2(0x11, bytes(12) + b"\4\0\2x"),  # which ends behind the header
        v2(0x11, bytes(12) + tlv(0x03, bytes(4))),  # a wrong checksum
        v2(0x11, bytes(12) + tlv(0x03, bytes(3))),
        v2(0x11, bytes(12) + tlv(0x05, bytes(129))),
        v2(0x11, bytes(12) + tlv(0x20, bytes(4))),
        v2(0x11, bytes(12) + tlv(0x20, bytes(5) + b"\x21\0\5TLS")),
        SIGNATURE + b"\x21\x11\xff\xff",  # longer than is waited for
        SIGNATURE + b"\x20\x00\x04\x01",
    ],
)
def test_what_is_no_header_of_version_2_is_an_error(header):
    with pytest.raises(ProxyHeaderError):
        parse_proxy_header(header)


@given(addresses, st.integers(0), st.integers(0, 7))
def test_a_bit_that_is_turned_does_not_get_past_a_checksum(client, where, bit):
    """But in the lengths, where the header would end elsewhere: then it is not whole, or an error."""
    header = bytearray(with_checksum(write_v2(*client)))
    header[where % len(header)] ^= 1 << bit
    if header[12] == 0x20 or header[13] == 0x00:
        return  # LOCAL, UNSPEC: nothing of it is looked at, nor believed
    try:
        found = parse_proxy_header(bytes(header))
    except ProxyHeaderError:
        return
    # The type of the checksum's own TLV can become another one's, which nobody has to know.
    assert found is None or found.source is None or where % len(header) == len(header) - 7


TEXTS = [b"PROXY ", b"TCP4 ", b"TCP6 ", b"UNKNOWN", b"10.0.0.7 ", b"::1 ", b"65535", b" ", b"\r", b"\n", b"\r\n"]
PARTS = [SIGNATURE, b"\x21\x11", b"\x20\x00", b"\x21\x21", b"\0\x0c", bytes(12), b"\3\0\4", b"\x20\0\5"]
pieces = st.sampled_from([*TEXTS, *PARTS])


@given(st.lists(pieces | st.binary(max_size=20), max_size=12).map(b"".join))
def test_whatever_comes_is_a_header_or_less_or_the_one_error(data):
    try:
        found = parse_proxy_header(data)
    except ProxyHeaderError:
        return
    if found is None:
        assert len(data) < MOST_HEADER_BYTES
        return
    assert 0 < found.size <= min(len(data), MOST_HEADER_BYTES)
    assert parse_proxy_header(data[: found.size]) == found
    for size in range(found.size):  # what is whole was never wrong on the way, and never whole before
        assert parse_proxy_header(data[:size]) is None
