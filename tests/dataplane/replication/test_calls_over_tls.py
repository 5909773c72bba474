"""`dataplane.peers` over real TLS: the broker that was meant answers, and one that is refused is asked less and less often."""

from __future__ import annotations

import random
import threading
from types import SimpleNamespace

import pytest

from dataplane.background import ThreadBackground
from dataplane.clock import SystemClock
from dataplane.doors import Doors
from dataplane.network.loop import EpollLoop
from dataplane.peers.internal_tls import InternalTls
from dataplane.peers.outbound import LAST_BACKOFF_S, PeerError, Peers
from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.control import UpdateMetadataRequest, UpdateMetadataResponse
from quota.contracts.identity import broker, identity_of
from quota.contracts.internal_security import InternalSecurity
from quota.tls.current import Current
from tests.support.broker_server import BrokerServer
from tests.support.inside import Certificates, read
from tests.support.waiting import wait_for

VERSION = 8
REQUEST = UpdateMetadataRequest(controller_id=1, controller_epoch=7)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("tls"))


class World:
    """One loop with all ends in it."""

    def __init__(self, certificates):
        self.certificates = certificates
        self.asked = []  # the servers to which requests came, in their order
        self.loop = EpollLoop(SystemClock())
        self.loop.refusals._report = lambda _text: None
        self.background = ThreadBackground(self.loop)
        self.doors = Doors(self.loop, SimpleNamespace(), SimpleNamespace(), self.background, random.Random(1))
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def tls(self, name, certificates=None):
        identity = identity_of(name)
        folder = (certificates or self.certificates).folder(name)
        return InternalTls(Current(str(folder), identity, read), self.doors, InternalSecurity.SSL, print)

    def serve(self, name):
        """Somebody who listens as this broker does, and where he is."""
        tls = self.tls(name)

        def handle(_request, _version):
            self.asked.append(name)
            return UpdateMetadataResponse(error_code=7)

        handlers = {ApiKey.UPDATE_METADATA: handle}
        server = self.on_loop(lambda: BrokerServer(self.loop, "127.0.0.1", 0, "", handlers, tls))
        return server, server.listener.address

    def peers(self, name, address, certificates=None):
        tls = self.tls(name, certificates)
        return Peers(self.loop, name, "", lambda _: address, lambda number: tls.client(broker(number)))

    def call(self, peers, number, timeout_s=5.0):
        """What comes of it: an answer or an error."""
        done = threading.Event()
        found = []

        def told(future):
            found.append(future)
            done.set()

        self.loop.call_threadsafe(lambda: peers.call(number, REQUEST, VERSION, timeout_s).then(told))
        assert done.wait(20)
        return found[0]

    def on_loop(self, call):
        done, found = threading.Event(), []
        self.loop.call_threadsafe(lambda: (found.append(call()), done.set()))
        assert done.wait(10)
        return found[0]

    def stop(self):
        self.loop.call_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.background.close()
        self.loop.close()


@pytest.fixture
def world(certificates):
    made = World(certificates)
    yield made
    made.stop()


def test_the_broker_that_was_meant_answers_and_knows_who_asks(world):
    server, address = world.serve("broker-2")
    peers = world.peers("broker-1", address)
    for _ in range(3):
        assert world.call(peers, 2).result().error_code == 7
    assert server.let_in == ["broker-1"]
    assert world.asked == ["broker-2"] * 3


def test_nothing_is_said_to_another_broker_at_its_address(world):
    _, address = world.serve("broker-3")
    answer = world.call(world.peers("broker-1", address), 2)
    assert isinstance(answer.error, PeerError)
    assert str(answer.error) == "it should be broker-2, and its certificate is broker-3's"
    assert world.call(world.peers("broker-2", address), 3).result().error_code == 7  # by now the first would have come
    assert world.asked == ["broker-3"]


def test_who_is_refused_waits_longer_and_longer(world, tmp_path):
    """A handshake that is over at our end may have failed at the other: only an answer says that all is well."""
    _, address = world.serve("broker-2")
    stranger = Certificates(tmp_path, "CA of another cluster")
    folder = stranger.folder("broker-1")
    (folder / "ca.crt").write_text((world.certificates.folder("broker-1") / "ca.crt").read_text())
    tls = InternalTls(Current(str(folder), broker(1), read), world.doors, InternalSecurity.SSL, print)
    peers = Peers(world.loop, "broker-1", "", lambda _: address, lambda number: tls.client(broker(number)))
    for _ in range(7):
        assert isinstance(world.call(peers, 2).error, PeerError)
    assert peers._peers[2]._backoff_s == LAST_BACKOFF_S


def test_a_new_connection_has_what_was_renewed(world, certificates):
    server, address = world.serve("broker-2")
    tls = world.tls("broker-1")
    peers = Peers(world.loop, "broker-1", "", lambda _: address, lambda number: tls.client(broker(number)))
    assert world.call(peers, 2).error is None
    before = tls._current.made.material
    certificates.store.issue(broker(1), ["127.0.0.1"])
    world.on_loop(tls._look)
    wait_for(lambda: tls._current.made.material != before, 10, "the new certificate")
    assert world.call(peers, 2).error is None  # by the connection that is open
    assert server.let_in == ["broker-1"]
    world.on_loop(peers.close)
    other = Peers(world.loop, "broker-1", "", lambda _: address, lambda number: tls.client(broker(number)))
    assert world.call(other, 2).error is None
    assert server.let_in == ["broker-1", "broker-1"]
