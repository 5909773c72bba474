"""An instance as a broker serves it: who may connect, to which topics, and what addresses its clients are told."""

from types import SimpleNamespace

import pytest

from dataplane.tenancy import whitelist
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.whitelist import Whitelist
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route

NEAR, FAR = "10.0.0.1", "192.0.2.1"
ADDRESS = ("203.0.113.9", 9100)


class Connection:
    def __init__(self, peer):
        self.session = SimpleNamespace(peer=peer)
        self.is_open = True

    def close(self):
        self.is_open = False


def spec_of(whitelist=("0.0.0.0/0",), topics=None, **limits):
    route = Route("default", {1: Endpoint(("10.0.0.1", 9100), ADDRESS)})
    limits = Limits(None, None, None, None, **limits)
    return InstanceSpec("ins-aaaabbbb", 1, InstanceState.RUNNING, limits, whitelist, (route,), topics or {})


def connect(instance, peer):
    connection = Connection(peer)
    instance.connected(connection)
    return connection


# --- topics -----------------------------------------------------------------------------------------------------------


def test_a_topic_with_a_whitelist_is_denied_to_all_others():
    instance = Instance(spec_of(topics={"orders": ("10.0.0.0/8",), "closed": ()}))
    assert not instance.topic_denied("aaaabbbb.orders", NEAR)
    assert instance.topic_denied("aaaabbbb.orders", FAR)
    assert instance.topic_denied("aaaabbbb.closed", NEAR)


def test_a_topic_without_one_is_denied_to_nobody():
    instance = Instance(spec_of(topics={"orders": ("10.0.0.0/8",)}))
    assert not instance.topic_denied("aaaabbbb.events", FAR)
    without = Instance(spec_of())
    assert without.topic_denied("aaaabbbb.orders", FAR) is False


# --- connections ------------------------------------------------------------------------------------------------------


def test_who_is_not_in_the_whitelist_is_not_admitted_and_closed_when_it_shrinks():
    instance = Instance(spec_of())
    near, far = connect(instance, NEAR), connect(instance, FAR)
    assert instance.admits(NEAR)
    assert instance.admits(FAR)
    instance.apply(spec_of(("10.0.0.0/8",)))
    assert instance.admits(NEAR)
    assert not instance.admits(FAR)
    assert (near.is_open, far.is_open) == (True, False)


def test_as_many_connections_as_the_limit_says_and_not_one_more():
    instance = Instance(spec_of(connections=2))
    first = connect(instance, NEAR)
    assert instance.admits(NEAR)
    connect(instance, FAR)
    assert not instance.admits(NEAR)
    instance.disconnected(first)
    assert instance.admits(NEAR)


def test_connections_are_counted_by_address():
    instance = Instance(spec_of(connections_per_address=2))
    first, second = connect(instance, NEAR), None
    assert instance.admits(NEAR)
    second = connect(instance, NEAR)
    assert not instance.admits(NEAR)
    assert instance.admits(FAR)
    for gone in (first, first, second):  # told twice, it counts once
        instance.disconnected(gone)
    connect(instance, NEAR)
    assert instance.admits(NEAR)


def test_an_address_is_forgotten_with_its_last_connection():
    instance = Instance(spec_of())
    one, other = connect(instance, NEAR), connect(instance, NEAR)
    instance.disconnected(one)
    assert list(instance._by_address) == [NEAR]
    instance.disconnected(other)
    assert not instance._by_address


def test_all_are_closed_in_the_end():
    instance = Instance(spec_of())
    connections = [connect(instance, peer) for peer in (NEAR, FAR)]
    instance.close_connections()
    assert not any(connection.is_open for connection in connections)


def test_it_begins_without_limits():
    instance = Instance(spec_of())
    assert instance.produce_bucket is instance.consume_bucket is instance.group_bucket is None
    assert instance.request_bucket is instance.connection_bucket is instance.rules is None
    assert instance.loop_bucket is instance.mutation_bucket is None
    assert (instance.tolls, instance.other_tolls) == ({}, ())


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("route", "broker", "told"), [("default", 1, ADDRESS), ("default", 2, None), ("public", 1, None)]
)
def test_clients_are_told_the_address_of_their_route(route, broker, told):
    assert Instance(spec_of()).advertised(route, broker) == told


# --- what a whitelist remembers ---------------------------------------------------------------------------------------


class Counting(Whitelist):
    __slots__ = ("asked",)

    def _judge(self, text):
        self.asked = [*getattr(self, "asked", ()), text]
        return super()._judge(text)


def test_an_address_is_judged_once_and_not_for_another():
    found = Counting(["10.0.0.0/8"])
    assert [found.allows(peer) for peer in (NEAR, FAR, NEAR, FAR)] == [True, False, True, False]
    assert found.asked == [NEAR, FAR]


def test_it_remembers_only_so_many(monkeypatch):
    monkeypatch.setattr(whitelist, "_REMEMBERED", 2)
    found = Counting(["10.0.0.0/8"])
    for peer in (NEAR, FAR, "10.0.0.2", "10.0.0.2"):
        found.allows(peer)
    assert found.asked == [NEAR, FAR, "10.0.0.2"]
    assert list(found._answers) == ["10.0.0.2"]
