"""Fetching keys from a real server: bounded in size and time, no redirects, no address that was not judged."""

from __future__ import annotations

import socket
import ssl
import threading
import time

import pytest

from controlplane.token_issuers import fetching
from controlplane.token_issuers.allowed import key_address, places_of
from controlplane.token_issuers.keys import KeySetProblem
from tests.support.certificates import Authority


def fetched(url, hosts, **options):
    return fetching.fetched(key_address(url, places_of(hosts)), **options)


def from_it(server, **options):
    return fetched(server.url, f"http://127.0.0.1:{server.port}", **options)


def test_what_is_there_comes(server):
    server.data = b'{"keys": [1]}'
    assert from_it(server) == server.data
    assert server.asked == [("/jwks.json", "127.0.0.1")]


@pytest.mark.parametrize("status", [201, 204, 301, 302, 307, 404, 500])
def test_any_other_answer_is_a_problem_and_no_redirect_is_followed(server, status):
    server.status, server.headers = status, {"Location": f"http://127.0.0.1:{server.port}/elsewhere"}
    with pytest.raises(KeySetProblem, match=f"answers {status}"):
        from_it(server)
    assert len(server.asked) == 1


def test_no_more_is_read_than_a_key_set_can_have(server):
    server.data = b" " * fetching.MOST_BYTES
    assert len(from_it(server)) == fetching.MOST_BYTES
    server.data += b" "
    with pytest.raises(KeySetProblem, match="more than 65536 bytes"):
        from_it(server)


def test_a_server_that_sends_a_byte_now_and_then_holds_nobody(server):
    server.drips.set()
    server.headers = {"Content-Length": "1000000"}
    began = time.monotonic()
    with pytest.raises(KeySetProblem, match="not answered within"):
        from_it(server, within_s=0.3)
    assert time.monotonic() - began < 5


def test_one_that_says_nothing_likewise():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(KeySetProblem):
            fetched(f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}", within_s=0.3)


def test_nobody_there_is_said():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(KeySetProblem, match="cannot be asked"):
        fetched(f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}")


def test_a_name_that_points_inside_is_never_connected_to(server, monkeypatch):
    monkeypatch.setattr(
        fetching.socket, "getaddrinfo", lambda *_args, **_options: [(2, 1, 6, "", ("127.0.0.1", server.port))]
    )
    with pytest.raises(KeySetProblem, match="may not be fetched"):
        fetched(f"http://login.example.com:{server.port}/", f"http://login.example.com:{server.port}")
    assert not server.asked


def test_the_address_that_was_judged_is_the_one_that_is_asked(server, monkeypatch):
    """A name that changes its mind between the two look-ups: there is only one."""
    asked = []

    def looked_up(host, port, **_options):
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if len(asked) == 1 else "127.0.0.9", server.port))]

    monkeypatch.setattr(fetching.socket, "getaddrinfo", looked_up)
    connected = []
    monkeypatch.setattr(
        fetching.socket, "create_connection", lambda address, timeout: connected.append(address) or _connect(address)
    )
    entry = f"http://keys.internal:{server.port}=127.0.0.1/32"
    fetched(f"http://keys.internal:{server.port}/", entry)
    assert (asked, connected) == (["keys.internal"], [("127.0.0.1", server.port)])


def _connect(address):
    found = socket.socket()
    found.connect(address)
    return found


def test_a_name_that_nobody_has_is_said(monkeypatch):
    def nobody(*_args, **_options):
        raise socket.gaierror(-2, "no")

    monkeypatch.setattr(fetching.socket, "getaddrinfo", nobody)
    with pytest.raises(KeySetProblem, match="there is no host"):
        fetched("https://login.example.com/", "login.example.com")


@pytest.fixture
def tls_server(tmp_path):
    """One answer inside TLS; what it shows is of an authority in ca.pem."""
    authority = Authority()
    own = authority.issue("keys", ["127.0.0.1"])
    (tmp_path / "chain.pem").write_text(own.pem)
    (tmp_path / "key.pem").write_text(own.key_pem)
    (tmp_path / "ca.pem").write_text(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as inside:
                inside.recv(4096)
                inside.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except OSError:
            return

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1], tmp_path / "ca.pem"
    listener.close()
    thread.join(5)


def test_certificates_are_verified(tls_server, monkeypatch):
    port, _ = tls_server
    with pytest.raises(KeySetProblem, match="not trusted"):
        fetched(f"https://127.0.0.1:{port}/", f"127.0.0.1:{port}")


def test_by_the_authorities_that_the_system_names(tls_server, monkeypatch):
    port, authorities = tls_server
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
    assert fetched(f"https://127.0.0.1:{port}/", f"127.0.0.1:{port}") == b"{}"


def test_a_name_with_very_many_addresses_is_left_alone_when_the_time_is_over(monkeypatch):
    """Its thread would go on for as long as each of them does not answer, and a minute later there is another."""
    many = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(1_000)]
    tried, goes_on = [], threading.Event()

    def no_answer(address, _timeout):
        tried.append(address[0])
        goes_on.wait(10)
        raise TimeoutError

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (each, 80)) for each in many])
    monkeypatch.setattr(socket, "create_connection", no_answer)
    with pytest.raises(KeySetProblem, match="has not answered"):
        fetched("http://keys.example.com/", "http://keys.example.com=127.0.0.0/8", within_s=0.05)
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name == "keys of keys.example.com":
            thread.join(10)
    assert tried == many[:1]


def test_a_few_addresses_of_a_name_are_tried(monkeypatch):
    tried = []

    def refused(address, _timeout):
        tried.append(address[0])
        raise ConnectionRefusedError

    many = [f"127.1.0.{number}" for number in range(1, 200)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (each, 80)) for each in many])
    monkeypatch.setattr(socket, "create_connection", refused)
    with pytest.raises(KeySetProblem, match="cannot be asked"):
        fetched("http://keys.example.com/", "http://keys.example.com=127.0.0.0/8")
    assert tried == many[: fetching.MOST_ADDRESSES]
