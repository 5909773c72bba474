"""PROXY headers on real sockets: read before anything else, believed of configured peers only, not a byte more is taken."""

import socket
import time

import pytest

from dataplane.network import preface
from tests.dataplane.network.proxied import (
    BALANCER,
    CLIENT,
    SIGNATURE,
    STRANGER,
    answer,
    connected,
    framed,
    serving,
    v1,
    v2,
)


@pytest.mark.parametrize("header", [v1(), v2(), v2(tlvs=b"\4\0\3abc")], ids=["v1", "v2", "v2 with a TLV"])
def test_a_connection_is_its_clients_whether_the_first_frame_comes_with_the_header_or_later(header):
    with serving() as server:
        for pause_s in (0.0, 0.05):
            with connected(server.port, BALANCER) as sock:
                if pause_s:
                    sock.sendall(header)
                    time.sleep(pause_s)
                    sock.sendall(framed(b"one"))
                else:
                    sock.sendall(header + framed(b"one"))
                assert answer(sock) == f"{CLIENT} 5123 one".encode()
                sock.sendall(framed(b"two"))
                assert answer(sock) == f"{CLIENT} 5123 two".encode()


@pytest.mark.parametrize("header", [v1(), v2()], ids=["v1", "v2"])
def test_a_header_may_come_byte_by_byte(header):
    with serving() as server, connected(server.port, BALANCER) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(header)):
            sock.sendall(header[at : at + 1])
            time.sleep(0.002)
        sock.sendall(framed(b"one"))
        assert answer(sock) == f"{CLIENT} 5123 one".encode()


def test_the_first_byte_behind_the_header_is_still_in_the_socket_when_the_connection_is_accepted():
    """Where TLS begins, OpenSSL reads it from there."""
    seen = []
    with serving() as server:
        accept = server.listener._accept

        def look(connection):
            seen.append(connection._socket.recv(100, socket.MSG_PEEK))
            return accept(connection)

        server.listener._accept = look
        for header in (v1(), v2()):
            with connected(server.port, BALANCER) as sock:
                sock.sendall(header + framed(b"hello"))
                assert answer(sock) is not None
    assert seen == [framed(b"hello")] * 2


def test_the_whitelist_judges_the_client_and_not_the_balancer():
    with serving() as server, connected(server.port, BALANCER) as sock:
        sock.sendall(v1(STRANGER) + framed(b"one"))
        assert answer(sock) is None
        assert server.let_in == []


def test_a_connection_of_the_balancer_itself_is_judged_by_its_own_address():
    with serving(whitelist=(f"{BALANCER}/32",)) as server, connected(server.port, BALANCER) as sock:
        port = sock.getsockname()[1]
        sock.sendall(SIGNATURE + b"\x20\x00\0\0" + framed(b"one"))
        assert answer(sock) == f"{BALANCER} {port} one".encode()


def test_nobody_is_believed_where_no_peers_are_configured():
    with serving(peers=(), whitelist=("0.0.0.0/0",)) as server, connected(server.port, BALANCER) as sock:
        sock.sendall(v1() + framed(b"one"))
        assert answer(sock) is None
        assert server.let_in == []


def test_a_header_takes_its_time_only():
    with serving(within_s=0.2) as server, connected(server.port, BALANCER) as sock:
        began = time.monotonic()
        sock.sendall(v1()[:-1])
        assert answer(sock) is None
        assert 0.1 < time.monotonic() - began < 10
        _until(lambda: any("within 0.2 s" in line for line in server.lines))  # said after the connection is closed


def test_a_client_that_finishes_before_its_header_is_whole_is_let_go():
    with serving() as server:
        with connected(server.port, BALANCER) as sock:
            sock.sendall(v2()[:-1])
        _until(lambda: not _waiting(server))
        assert server.let_in == []


def test_those_that_wait_are_bounded_and_the_oldest_goes_first(monkeypatch):
    monkeypatch.setattr(preface, "MOST_WAITING", 5)
    with serving() as server:
        socks = []
        for count in range(8):  # one after the other: who is the oldest is known
            socks.append(connected(server.port, BALANCER))
            _until(lambda count=count: len(_waiting(server)) == min(count + 1, 5))
        for sock in socks[:3]:
            assert answer(sock) is None
        for sock in socks[3:]:
            sock.sendall(v1() + framed(b"one"))
            assert answer(sock) == f"{CLIENT} 5123 one".encode()
        for sock in socks:
            sock.close()


def test_what_a_closed_listener_has_not_accepted_is_closed_with_it():
    with serving() as server, connected(server.port, BALANCER) as sock:
        _until(lambda: len(_waiting(server)) == 1)
        server.on_loop(server.listener.close)
        assert answer(sock) is None
        assert not _waiting(server)


def test_the_rest_is_told_in_one_line_now_and_then():
    with serving() as server:
        for _ in range(5):
            with connected(server.port, STRANGER) as sock:
                assert answer(sock) is None
        assert len(server.lines) == 1
        assert f"port {server.port} expects a PROXY header: {STRANGER}:" in server.lines[0]


# --- who speaks for others ----------------------------------------------------------------------------------------------


def spoofed():
    """Headers that say they are of the client whom the whitelist lets in; whole, in parts, in disguise."""
    whole = [
        v1(),
        v2(),
        v2(tlvs=b"\4\0\0"),
        v2(tlvs=b"\xee\0\4" + socket.inet_aton(BALANCER)),
        b"PROXY TCP6 ::ffff:127.0.0.5 ::1 1 2\r\n",
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN 127.0.0.5 127.0.0.1 1 2\r\n",
        SIGNATURE + b"\x20\x00\0\0",
        SIGNATURE + b"\x20\x11\0\x0c" + v2()[16:],
        SIGNATURE + b"\x21\x00\0\x0c" + v2()[16:],
        SIGNATURE + b"\x21\x12\0\x0c" + v2()[16:],
        SIGNATURE + b"\x21\x31\0\xd8" + bytes(216),
    ]
    for source in (CLIENT, BALANCER, "0.0.0.0", "127.0.0.1", "255.255.255.255"):
        whole += [v1(source, port) for port in (0, 1, 9092, 65535)] + [v2(source, port) for port in (0, 65535)]
    crooked = [
        line.encode("latin-1")
        for line in (
            "PROXY TCP4 127.0.0.05 127.0.0.1 1 2\r\n",
            "PROXY TCP4 127.5 127.0.0.1 1 2\r\n",
            "PROXY TCP4 2130706437 127.0.0.1 1 2\r\n",
            "PROXY TCP4 127.0.0.5,127.0.0.6 127.0.0.1 1 2\r\n",
            "PROXY TCP4 127.0.0.5/32 127.0.0.1 1 2\r\n",
            "PROXY TCP4 127.0.0.5\x00 127.0.0.1 1 2\r\n",
            "PROXY TCP4 127.0.0.5 127.0.0.1 1 2\n",
            "proxy tcp4 127.0.0.5 127.0.0.1 1 2\r\n",
            "PROXY TCP4\t127.0.0.5 127.0.0.1 1 2\r\n",
            "X-Forwarded-For: 127.0.0.5\r\n",
            "Forwarded: for=127.0.0.5\r\n\r\n",
            "GET / HTTP/1.1\r\nX-Forwarded-For: 127.0.0.5\r\n\r\n",
            "\r\nPROXY TCP4 127.0.0.5 127.0.0.1 1 2\r\n",
            " PROXY TCP4 127.0.0.5 127.0.0.1 1 2\r\n",
        )
    ]
    twice = [one + other for one in (v1(STRANGER), v2(STRANGER)) for other in (v1(), v2())]
    behind = [framed(b"\0\x12\0\0") + header for header in (v1(), v2())]  # a request first
    padded = [framed(header) for header in (v1(), v2())]
    return whole + crooked + twice + behind + padded


def forms():
    """How they are sent: at once, and cut in two."""
    return [(header,) for header in spoofed()] + [
        (header[:at], header[at:]) for header in spoofed() for at in (5, 13) if len(header) > at
    ]


def send(sock, parts):
    try:
        for part in parts:
            sock.sendall(part)
            if len(parts) > 1:
                time.sleep(0.002)
        sock.sendall(framed(b"one"))
    except ConnectionError:  # it has been closed already
        return None
    return answer(sock)


def test_a_hundred_forms_of_header_from_other_peers_let_nobody_in():
    assert len(forms()) >= 100
    with serving() as server:
        for parts in forms():
            with connected(server.port, STRANGER) as sock:
                assert send(sock, parts) is None, parts
        assert server.let_in == []


def test_no_form_of_header_counts_where_a_route_has_none():
    with serving() as server:
        for parts in forms():
            with connected(server.plain_port, STRANGER) as sock:
                assert send(sock, parts) is None, parts
        assert server.let_in == []


def test_where_a_route_has_none_a_header_is_garbage_that_ends_the_connection():
    with serving() as server:
        for header in (v1(STRANGER), v2(STRANGER), b"PROXY UNKNOWN\r\n", SIGNATURE + b"\x20\x00\0\0"):
            with connected(server.plain_port, CLIENT) as sock:
                assert send(sock, (header,)) is None
        assert {address for address, _ in server.let_in} == {CLIENT}


def test_a_client_behind_the_balancer_is_who_the_balancer_says_whatever_it_says_itself():
    with serving() as server:
        for header in spoofed():
            for first in (v1(STRANGER), v2(STRANGER)):
                with connected(server.port, BALANCER) as sock:
                    assert send(sock, (first + header,)) is None, header
        assert server.let_in == []


def _waiting(server):
    return server.on_loop(lambda: list(server.listener._prefaces._waiting))


def _until(condition, within_s=10.0):
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
