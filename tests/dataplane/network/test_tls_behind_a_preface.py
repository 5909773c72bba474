"""A route with TLS behind a balancer: the header comes in the clear, TLS begins with the byte behind it."""

import socket
import ssl
import time

import pytest

from dataplane.tenancy.proxies import Proxies
from tests.dataplane.network.proxied import BALANCER, CLIENT, STRANGER, connected, v1, v2
from tests.dataplane.network.tls_server import ByHand, Server, client_context, echo, framed, is_ended, read_exactly


@pytest.fixture
def server():
    one = Server(echo)
    one.on_loop(one.listener.close)
    one.listener = one.on_loop(
        lambda: one.loop.listen("127.0.0.1", 0, one.accept, preface=Proxies((f"{BALANCER}/32",)), tls=True)
    )
    yield one
    one.stop()


def talks(sock):
    with client_context().wrap_socket(sock, server_hostname="localhost") as client:
        client.sendall(framed(b"hello"))
        return read_exactly(client, len(framed(b"hello"))) == framed(b"hello")


@pytest.mark.parametrize("header", [v1(), v2()], ids=["v1", "v2"])
def test_the_handshake_follows_the_header(server, header):
    sock = connected(server.listener.address[1], BALANCER)
    sock.sendall(header)
    assert talks(sock)
    assert server.protocols[0].connection.peer == (CLIENT, 5123)


@pytest.mark.parametrize("header", [v1(), v2()], ids=["v1", "v2"])
def test_header_and_handshake_may_come_in_one_piece_or_byte_by_byte(server, header):
    for piece in (None, 1):
        with connected(server.listener.address[1], BALANCER) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = ByHand(sock)
            with pytest.raises(ssl.SSLWantReadError):
                client.tls.do_handshake()
            first = header + client.out.read()  # a balancer that forwards what has come already
            for at in range(0, len(first), piece or len(first)):
                sock.sendall(first[at : at + (piece or len(first))])
                time.sleep(0.0005)
            client.shake_hands()
            client.write(framed(b"hello"))
            client.push()
            assert client.read(len(framed(b"hello"))) == framed(b"hello")


def test_a_client_that_speaks_tls_at_once_is_not_let_in(server):
    for source in (BALANCER, STRANGER):
        sock = connected(server.listener.address[1], source)
        with pytest.raises(OSError), sock:
            talks(sock)
    assert server.protocols == []


def test_a_header_within_tls_is_garbage(server):
    sock = connected(server.listener.address[1], BALANCER)
    sock.sendall(v1())
    with client_context().wrap_socket(sock, server_hostname="localhost") as client:
        client.sendall(v1(STRANGER) + framed(b"hello"))
        assert is_ended(client)
    assert server.protocols[0].connection.peer == (CLIENT, 5123)
