"""What an instance and its users have moved: connections add to it when they are looked at, and at their end, each byte once."""

from types import SimpleNamespace

import pytest

from dataplane.requests.dispatch import ClientConnection
from dataplane.slices import Slices
from dataplane.tenancy.instance import Traffic
from dataplane.tenancy.request_figures import RequestFigures
from dataplane.tenancy.session import Session
from dataplane.tenancy.user_traffic import UserTraffics
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
    return served()


def served():
    return SimpleNamespace(
        traffic=Traffic(), user_traffic=UserTraffics(), figures=RequestFigures(), disconnected=lambda connection: None
    )


def connected(broker, instance, *, authenticated=True):
    session = Session(instance, "route", InstanceNames("aaaabbbb"), "10.1.2.3", authenticated=authenticated)
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


def by_user(instance):
    return {user.name: user.counted for user in instance.user_traffic.changed}


def moves(client, came, went, requests=1):
    client._connection.moves(came, went)
    client._requests += requests


def test_users_add_up_to_their_instance_and_another_instances_of_the_same_name_are_others(broker, instance):
    other = served()
    clients = [connected(broker, each, authenticated=False) for each in (instance, instance, instance, other)]
    for client, name in zip(clients, ("alice", "bob", "alice", "alice"), strict=True):
        client.session.log_in(name, "PLAIN", None)
        moves(client, 100 + len(name), 10)
    for client in clients:
        client.look(10)
    assert by_user(instance) == {"alice": (210, 20, 2), "bob": (103, 10, 1)}
    assert by_user(other) == {"alice": (105, 10, 1)}
    assert moved(instance) == (313, 30, 3)


def test_who_has_not_signed_in_is_nobody_and_what_came_before_a_login_is_the_users(broker, instance):
    open_to_all, failed, late = (connected(broker, instance, authenticated=is_open) for is_open in (True, False, False))
    for client in (open_to_all, failed, late):
        moves(client, 10, 1)
    late.session.log_in("alice", "SCRAM-SHA-256", 5.0)
    for client in (open_to_all, failed, late):
        client.closed("gone")
    assert by_user(instance) == {"": (20, 2, 2), "alice": (10, 1, 1)}


def test_a_certificates_name_counts_once_the_handshake_is_over(broker, instance):
    client = connected(broker, instance)
    moves(client, 5, 5, 0)
    client.look(10)  # in the middle of it
    client.session.principal = "User:CN=app"
    moves(client, 100, 50)
    client.look(10)
    assert by_user(instance) == {"": (5, 5, 0), "CN=app": (100, 50, 1)}


def test_a_login_that_has_expired_or_failed_the_second_time_leaves_what_moves_with_its_user(broker, instance):
    client = connected(broker, instance, authenticated=False)
    client.session.log_in("alice", "PLAIN", 5.0)
    moves(client, 1, 0)
    client.look(10)
    client.session.authenticated = False
    moves(client, 10, 0)
    client.closed("gone")
    assert by_user(instance) == {"alice": (11, 0, 2)}


def test_a_connection_that_moves_nothing_leaves_nothing_to_tell(broker, instance):
    client = connected(broker, instance)
    client.session.principal = "User:alice"
    client.look(10)
    client.closed("gone")
    assert by_user(instance) == {}
