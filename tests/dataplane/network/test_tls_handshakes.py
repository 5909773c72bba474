"""Whose handshake begins, and when: limited by account, ended when it is slow, and nothing but a handshake."""

import ssl
import threading

import pytest

from dataplane.network import handshakes, tls_connection
from dataplane.network.tls_context import server_context
from tests.dataplane.network.tls_server import (
    AUTHORITY,
    LEAF,
    ByHand,
    Server,
    client_context,
    echo,
    framed,
    is_ended,
    read_exactly,
    wait_until,
)
from tests.support.certificates import rsa_key


@pytest.fixture
def server():
    made = []

    def make(*args, **kwargs):
        made.append(Server(*args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def waits(protocol):
    """Whether its handshake may not begin yet."""
    return protocol.connection._waits


@pytest.mark.parametrize("first", [b"\0\0\0\x10\0\x12\0\0", b"GET / HTTP/1.1\r\n\r\n", b"\x15", b"\x80\x2e\x01"])
def test_a_client_without_tls_is_closed_at_once_counted_and_said(server, first):
    one = server()
    with one.connect() as client:
        client.sendall(first)
        assert is_ended(client)
    wait_until(lambda: one.protocols[0].closed_for == ["what came is not TLS"])
    assert one.protocols[0].connection.payer.insecure == 1
    assert one.said[0].startswith("instance ins-tenant01: what came is not TLS from 127.0.0.1:")


def test_garbage_behind_the_first_byte_is_closed_at_once(server):
    one = server()
    with one.connect() as client:
        client.sendall(b"\x16\x03\x01\x00\x20" + b"\xff" * 100)
        assert is_ended(client)
    wait_until(lambda: one.protocols[0].closed_for)
    assert one.protocols[0].closed_for[0].startswith("TLS handshake failed")


def test_what_is_refused_is_said_once_and_counted(server):
    one = server()
    for _ in range(5):
        with one.connect() as client:
            client.sendall(b"plain!")
            assert is_ended(client)
    account = one.loop.accounts.of("tenant01")
    assert (account.insecure, len(one.said)) == (5, 1)


@pytest.mark.parametrize("begun", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
def test_a_slow_handshake_ends(server, begun, monkeypatch):
    monkeypatch.setattr(tls_connection, "HANDSHAKE_WITHIN_S", 0.2)
    one = server()
    with one.connect() as client:
        client.sendall(begun)
        assert is_ended(client)
    wait_until(lambda: one.protocols[0].closed_for)
    assert "longer than" in one.protocols[0].closed_for[0]
    assert one.loop.accounts.of("tenant01").handshakes.present == 0


def test_a_handshake_in_time_is_not_ended_later(server, monkeypatch):
    monkeypatch.setattr(tls_connection, "HANDSHAKE_WITHIN_S", 0.5)
    one = server(echo)
    with one.connect_securely() as client, one.connect() as other:
        assert other.recv(1) == b""  # its time is over
        client.sendall(framed(b"still here"))
        assert read_exactly(client, 14) == framed(b"still here")


def test_more_handshakes_than_may_begin_wait_and_are_served(server):
    one = server(echo, per_s=20)
    socks = [one.connect() for _ in range(12)]
    clients = [ByHand(sock) for sock in socks]
    for client in clients:
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.push()
    for client in clients:
        client.shake_hands()
        client.write(framed(b"x"))
        client.push()
        assert client.read(5) == framed(b"x")
    for sock in socks:
        sock.close()
    line = one.loop.accounts.of("tenant01").handshakes
    assert line._bucket.charged_bytes == 12
    wait_until(lambda: line.present == 0)


def test_another_limit_holds_from_the_next_connection_on(server):
    one = server(echo, per_s=1)
    for per_s in (1, 1000):
        one.per_s = per_s
        with one.connect_securely() as client:
            client.sendall(framed(b"x"))
            assert read_exactly(client, 5) == framed(b"x")
        assert one.loop.accounts.of("tenant01").handshakes._bucket.rate == per_s


def test_who_waits_is_left_unread_and_bounded(server):
    one = server(per_s=1)
    socks = [one.connect() for _ in range(12)]
    for sock in socks:
        client = ByHand(sock)
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.push()
    wait_until(lambda: sum(bool(protocol.closed_for) for protocol in one.protocols) == 2)
    waiting = one.on_loop(lambda: [protocol for protocol in one.protocols if waits(protocol)])
    assert waiting
    wait_until(lambda: all(protocol.connection._events == 0 for protocol in waiting if waits(protocol)))
    for sock in socks:
        sock.close()


def test_one_that_went_while_it_waited_takes_nobodys_place(server):
    one = server(echo, per_s=5)
    gone = [one.connect() for _ in range(6)]
    for sock in gone:
        client = ByHand(sock)
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.push()
    wait_until(lambda: any(waits(protocol) for protocol in one.protocols))
    for protocol in list(one.protocols):
        one.on_loop(protocol.connection.close)
    with one.connect_securely() as client:
        client.sendall(framed(b"x"))
        assert read_exactly(client, 5) == framed(b"x")
    assert one.loop.accounts.of("tenant01").handshakes._bucket.charged_bytes <= 3
    for sock in gone:
        sock.close()


def test_a_flood_of_one_account_does_not_keep_another_waiting(server, monkeypatch):
    """The other's frames are answered while handshakes wait that all came before it."""
    monkeypatch.setattr(handshakes, "WAIT_AT_MOST_S", 60)
    monkeypatch.setattr(tls_connection, "HANDSHAKE_WITHIN_S", 60.0)
    one = server(echo, per_s=1)
    flood = []
    for _ in range(40):
        client = ByHand(one.connect())
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.push()
        flood.append(client)
    # All are accepted: who came later would be the other's.
    wait_until(lambda: len(one.protocols) == 40 and sum(waits(protocol) for protocol in one.protocols) >= 30)
    one.account = "tenant02"
    with one.connect_securely() as client:
        for _ in range(20):
            client.sendall(framed(b"x"))
            assert read_exactly(client, 5) == framed(b"x")
    assert any(waits(protocol) for protocol in one.protocols)
    for client in flood:
        client.sock.close()


def test_handshakes_beside_the_loop_go_one_after_the_other(server):
    key = rsa_key()
    leaf = AUTHORITY.issue("rsa", ["localhost"], key=key)
    one = server(echo, context=server_context(leaf.pem, leaf.key_pem), beside=True)
    socks = [one.connect() for _ in range(6)]
    clients = [ByHand(sock) for sock in socks]
    for client in clients:
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.push()
    for client in clients:
        client.shake_hands()
        client.write(framed(b"x"))
        client.push()
        assert client.read(5) == framed(b"x")
    for sock in socks:
        sock.close()


def test_a_connection_that_ends_while_a_thread_has_it_is_let_go(server):
    one = server(beside=True)
    for _ in range(20):
        with one.connect() as sock:
            client = ByHand(sock)
            with pytest.raises(ssl.SSLWantReadError):
                client.tls.do_handshake()
            client.push()
            wait_until(lambda: one.protocols)
            one.on_loop(one.protocols[-1].connection.close)
    wait_until(lambda: all(protocol.closed_for for protocol in one.protocols))
    assert one.loop.accounts.of("tenant01").handshakes.present == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate_is_shown_and_may_be_refused(server, tmp_path, version):
    context = server_context(LEAF.pem, LEAF.key_pem, AUTHORITY.pem, requires_client=True)
    me = AUTHORITY.issue("me")
    one = server(echo, context=context, beside=True)
    with one.connect_securely(client_context(version=version, certificate=me, tmp_path=tmp_path)) as client:
        client.sendall(framed(b"x"))
        assert read_exactly(client, 5) == framed(b"x")
    assert one.protocols[0].certificates == [me.der]
    one.secured = lambda _certificate: "nobody we know"
    with one.connect_securely(client_context(version=version, certificate=me, tmp_path=tmp_path)) as client:
        assert client.recv(1) == b""
    wait_until(lambda: one.protocols[1].closed_for == ["nobody we know"])


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate_is_looked_at_beside_the_loop_before_it_is_judged(server, tmp_path, version):
    context = server_context(LEAF.pem, LEAF.key_pem, AUTHORITY.pem)
    me, happened = AUTHORITY.issue("me"), []
    one = server(
        echo,
        context=context,
        beside=True,
        looks_at=lambda certificate: happened.append((certificate, threading.current_thread())),
        secured=lambda certificate: happened.append((certificate, threading.current_thread())),
    )
    ask(one, client_context(version=version, certificate=me, tmp_path=tmp_path))
    (looked, beside), (judged, loop) = happened
    assert looked == judged == me.der
    assert beside is not one.thread
    assert loop is one.thread
    ask(one, client_context(version=version))  # nothing to look at
    assert happened[2:] == [(None, one.thread)]


def ask(server, context):
    with server.connect_securely(context) as client:
        client.sendall(framed(b"x"))
        assert read_exactly(client, 5) == framed(b"x")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_without_a_certificate_that_is_required_nobody_gets_in(server, tmp_path, version):
    context = server_context(LEAF.pem, LEAF.key_pem, AUTHORITY.pem, requires_client=True)
    one = server(echo, context=context)
    stranger = type(AUTHORITY)("Another CA").issue("me")
    for certificate in (None, stranger, AUTHORITY.issue("late", from_days=-5, to_days=-1)):
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            ask(one, client_context(version=version, certificate=certificate, tmp_path=tmp_path))
    wait_until(lambda: len(one.protocols) == 3 and all(protocol.closed_for for protocol in one.protocols))
    assert [protocol.frames for protocol in one.protocols] == [[], [], []]


def test_a_requested_certificate_may_be_missing(server):
    one = server(echo, context=server_context(LEAF.pem, LEAF.key_pem, AUTHORITY.pem))
    with one.connect_securely() as client:
        client.sendall(framed(b"x"))
        assert read_exactly(client, 5) == framed(b"x")
    assert one.protocols[0].certificates == [None]


def test_a_listener_of_tls_never_serves_in_the_clear(server):
    """Whoever forgets to say how a connection is secured has it closed."""
    one = server(echo)

    def accept(connection):
        one.protocols.append(one.protocol(connection, echo))
        return one.protocols[-1]

    one.listener._accept = accept
    with one.connect() as client:
        assert is_ended(client)
    wait_until(lambda: one.protocols[0].closed_for)
