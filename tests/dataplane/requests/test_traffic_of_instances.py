"""What an instance has moved: its connections add to it when they are looked at, and at their end, each byte once."""

from types import SimpleNamespace

import pytest

from dataplane.requests.dispatch import ClientConnection
from dataplane.slices import Slices
from dataplane.tenancy.instance import Traffic
from dataplane.tenancy.request_figures import RequestFigures
from dataplane.tenancy.session import Session
from quota.contracts.identity import ANYBODY
from quota.contracts.namespace import ClusterNames, InstanceNames
from tests.support.memory_files import ImmediateBackground
from tests.support.virtual_loop import VirtualNetwork


class Socket:
    """Counts, and is never finished."""

    def __init__(self):
        self.received_bytes = self.sent_bytes = 0
        self.is_closed = False

    def moves(self, came, went):
        self.received_bytes += came
        self.sent_bytes += went

    def peer_has_finished(self):
        return False

    def close(self):
        self.is_closed = True


@pytest.fixture
def broker():
    loop = VirtualNetwork(1).loop("b1")
    return SimpleNamespace(
        doors=SimpleNamespace(loop=loop, clock=loop.clock),
        slices=Slices(loop, ImmediateBackground()),
        replicas=SimpleNamespace(registry=None, appending=None, waiting=None),
    )


@pytest.fixture
def instance():
    return SimpleNamespace(traffic=Traffic(), figures=RequestFigures(), disconnected=lambda connection: None)


def connected(broker, instance):
    session = Session(instance, "route", InstanceNames("aaaabbbb"), "10.1.2.3", authenticated=True)
    return ClientConnection(broker, Socket(), session)


def moved(instance):
    traffic = instance.traffic
    return traffic.received_bytes, traffic.sent_bytes, traffic.requests


def test_a_connection_adds_what_came_and_went_since_it_was_looked_at_last(broker, instance):
    client = connected(broker, instance)
    client._connection.moves(100, 40)
    client._requests += 2
    client.look(10)
    assert moved(instance) == (100, 40, 2)
    client.look(10)
    assert moved(instance) == (100, 40, 2)
    client._connection.moves(5, 0)
    client._requests += 1
    client.look(10)
    assert moved(instance) == (105, 40, 3)


def test_the_last_of_it_is_added_when_the_connection_ends(broker, instance):
    first, second = connected(broker, instance), connected(broker, instance)
    for client in (first, second):
        client._connection.moves(10, 1)
        client._requests += 1
    first.tell_traffic()
    first._connection.moves(7, 7)
    for client in (first, second):
        client.closed("gone")
    assert moved(instance) == (27, 9, 2)


def test_connections_of_the_cluster_are_nobodys(broker):
    session = Session(None, "internal", ClusterNames(), "127.0.0.1", authenticated=True, identity=ANYBODY)
    client = ClientConnection(broker, SimpleNamespace(), session)
    client.tell_traffic()
