"""Connections that we open over TLS, to a listener of ours in another loop; and a listener that takes plaintext as well."""

from __future__ import annotations

import socket
import ssl
import struct
import threading

import pytest

from dataplane.background import ThreadBackground
from dataplane.clock import SystemClock
from dataplane.doors import TlsClient
from dataplane.network import tls_connection
from dataplane.network.loop import EpollLoop
from quota.contracts.identity import broker
from quota.tls.contexts import client_context, server_context
from quota.tls.material import read_material as material_of
from quota.tls.shown import refusal
from tests.dataplane.network.tls_server import Recorder, Server, echo, framed, read_exactly, wait_until
from tests.support.certificates import Authority
from tests.support.inside import Certificates, put, read


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("tls"))


class Client:
    """The loop that opens a connection."""

    def __init__(self, *, beside=False):
        self.loop = EpollLoop(SystemClock())
        self.said = []
        self.loop.refusals._report = self.said.append
        self.background = ThreadBackground(self.loop)
        self.beside = self.background.run if beside else None
        self.opened, self.failed = [], []
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def connect(self, address, context, why_not=lambda _: None):
        """How to give up."""
        tls = TlsClient(context, self.beside, why_not)
        return self.on_loop(lambda: self.loop.connect(*address, self.take, self.failed.append, tls))

    def take(self, connection):
        self.opened.append(Recorder(connection))
        return self.opened[-1]

    def send(self, *payloads):
        self.on_loop(lambda: self.opened[-1].connection.send([framed(payload) for payload in payloads]))

    def on_loop(self, call):
        return Server.on_loop(self, call)

    def stop(self):
        self.loop.call_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.background.close()
        self.loop.close()


@pytest.fixture
def started():
    made = []

    def start(thing):
        made.append(thing)
        return thing

    yield start
    for thing in made:
        thing.stop()


@pytest.fixture
def server(started, certificates):
    def start(name="broker-2", **more):
        return started(Server(echo, context=server_context(certificates.material(name)), account="", **more))

    return start


@pytest.fixture
def client(started):
    return lambda **more: started(Client(**more))


def as_broker(certificates, name="broker-1"):
    return client_context(certificates.material(name), checks_host=False)


def should_be(number):
    return lambda certificate: refusal(certificate, broker(number))


@pytest.mark.parametrize("beside", [False, True])
def test_frames_go_both_ways_and_each_end_knows_the_other(server, client, certificates, beside):
    listening, one = server(beside=beside), client(beside=beside)
    one.connect(listening.listener.address, as_broker(certificates), should_be(2))
    wait_until(lambda: one.opened)
    payloads = [b"", b"x", bytes(100_000), bytes(range(256)) * 20_000]
    one.send(*payloads)
    wait_until(lambda: len(one.opened[0].frames) == len(payloads))
    assert one.opened[0].frames == payloads
    assert one.failed == []
    (protocol,) = listening.protocols
    assert refusal(protocol.certificates[0], broker(1)) is None
    assert protocol.connection._layer.version() == "TLSv1.3"


def test_what_is_sent_as_soon_as_it_is_open_arrives(server, client, certificates):
    listening, one = server(), client()

    def opened(connection):
        connection.send([framed(b"at once")])
        return Client.take(one, connection)

    tls = TlsClient(as_broker(certificates), None, should_be(2))
    one.on_loop(lambda: one.loop.connect(*listening.listener.address, opened, one.failed.append, tls))
    wait_until(lambda: one.opened and one.opened[0].frames == [b"at once"])


def test_the_address_of_one_broker_that_shows_anothers_certificate_is_not_believed(server, client, certificates):
    listening, one = server("broker-3"), client()
    one.connect(listening.listener.address, as_broker(certificates), should_be(2))
    wait_until(lambda: one.failed)
    assert one.failed == ["it should be broker-2, and its certificate is broker-3's"]
    assert one.opened == []
    assert "its certificate is broker-3's" in one.said[0]
    assert listening.protocols[0].frames == []


def test_a_listener_of_another_authority_is_not_believed(server, client, certificates, tmp_path):
    listening, one = server(), client()
    stranger = Certificates(tmp_path, "CA of another cluster")
    one.connect(listening.listener.address, as_broker(stranger), should_be(2))
    wait_until(lambda: one.failed)
    assert one.failed[0].startswith("TLS handshake failed (certificate verify failed")
    assert one.opened == []


def test_a_certificate_for_who_connects_is_not_believed_of_a_listener(server, client, certificates):
    listening, one = server("metering"), client()
    one.connect(listening.listener.address, as_broker(certificates))
    wait_until(lambda: one.failed)
    assert one.failed[0].startswith("TLS handshake failed (certificate verify failed")


@pytest.mark.parametrize("shown", ["another authority's", "expired", "none"])
def test_who_connects_with_what_is_not_good_is_let_go(server, client, certificates, tmp_path, shown):
    listening, one = server(), client()
    authority = Authority("CA of the cluster")
    trusted = certificates.material("broker-1").authorities
    if shown == "none":
        context = ssl.create_default_context(cadata=trusted)
        context.check_hostname = False
    else:
        if shown == "expired":
            listening.context.load_verify_locations(cadata=authority.pem)
        days = {"from_days": -3, "to_days": -1} if shown == "expired" else {}
        folder = put(tmp_path, authority.issue("broker-1", **days), trusted)
        context = client_context(material_of(str(folder), read), checks_host=False)
    one.connect(listening.listener.address, context, should_be(2))
    wait_until(lambda: one.failed or (one.opened and one.opened[0].closed_for))
    wait_until(lambda: listening.protocols[0].closed_for)
    assert listening.protocols[0].closed_for[0].startswith("TLS handshake failed (")
    assert listening.protocols[0].frames == []
    assert listening.protocols[0].certificates == []


def test_who_says_nothing_is_given_up(client, certificates, monkeypatch):
    monkeypatch.setattr(tls_connection, "HANDSHAKE_WITHIN_S", 0.2)
    one = client()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        one.connect(silent.getsockname(), as_broker(certificates))
        wait_until(lambda: one.failed)
    assert one.failed[0].startswith("the TLS handshake took longer than")
    assert one.opened == []


def test_who_answers_without_tls_is_given_up(client, certificates):
    one = client()
    with socket.create_server(("127.0.0.1", 0)) as plain:
        one.connect(plain.getsockname(), as_broker(certificates))
        accepted, _ = plain.accept()
        with accepted:
            accepted.sendall(b"\0\0\0\4\0\0\0\1")
            wait_until(lambda: one.failed)
    assert one.opened == []


def test_given_up_in_the_middle_neither_is_called(client, certificates):
    one = client()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        give_up = one.connect(silent.getsockname(), as_broker(certificates))
        accepted, _ = silent.accept()
        with accepted:
            accepted.settimeout(10)
            assert accepted.recv(5)[0] == 0x16  # the handshake has begun
            one.on_loop(give_up)
            while accepted.recv(4096):
                pass
    one.on_loop(lambda: None)
    assert (one.opened, one.failed) == ([], [])


def test_a_listener_on_the_way_serves_who_speaks_tls_and_who_does_not(server, client, certificates):
    taking_both, one = server(takes_plaintext=True), client()
    one.connect(taking_both.listener.address, as_broker(certificates), should_be(2))
    with taking_both.connect() as plain:
        for payload in (b"in the clear", bytes(3_000_000)):
            plain.sendall(framed(payload))
            assert read_exactly(plain, 4 + len(payload)) == struct.pack(">i", len(payload)) + payload
        wait_until(lambda: one.opened)
        one.send(b"over TLS")
        wait_until(lambda: one.opened[0].frames == [b"over TLS"])
    shown = sorted(len(protocol.certificates) for protocol in taking_both.protocols)
    assert shown == [0, 1]  # nobody has said who it is in the clear
    assert taking_both.loop.accounts.of("").handshakes.present == 0
