"""How many connections an instance may have on a broker: in all, from one address, and how fast they begin."""

from types import SimpleNamespace

import pytest

from dataplane.tenancy.gate import Gate
from dataplane.tenancy.instance import Instance
from quota.agent.agent import Agent
from quota.contracts.instance import InstanceSpec, InstanceState, Limits, Route

ANYWHERE = ("0.0.0.0/0",)
A, B = "10.0.0.1", "10.0.0.2"


class Clock:
    time = 0.0

    def monotonic(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(clock):
    loop = SimpleNamespace(clock=clock, charge_to=lambda _account, _bucket: None)
    return Gate(Agent(broker=1, boot="b", now=0.0), loop, None, group_bytes_per_s=1)


def instance_with(**limits):
    limits = Limits(None, None, None, None, **limits)
    return Instance(InstanceSpec("ins-aaaabbbb", 1, InstanceState.RUNNING, limits, ANYWHERE, (Route("default", {}),)))


class Connection:
    def __init__(self, peer):
        self.session = SimpleNamespace(peer=peer, route="default")


def connect(instance, peer):
    connection = Connection(peer)
    instance.connected(connection)
    return connection


def test_one_address_leaves_room_for_the_others():
    instance = instance_with(connections=3, connections_per_address=2)
    first = [connect(instance, A), connect(instance, A)]
    assert not instance.admits(A, "default")
    assert instance.admits(B, "default")
    connect(instance, B)
    assert not instance.admits("10.0.0.3", "default")
    instance.disconnected(first[0])
    instance.disconnected(first[0])  # told twice, gone once
    assert instance.admits(A, "default")
    connect(instance, A)
    assert not instance.admits(A, "default")


def test_without_limits_everybody_may_connect():
    instance = instance_with()
    for _ in range(10):
        connect(instance, A)
    assert instance.admits(A, "default")


def test_a_seconds_worth_of_connections_begins_at_once_and_then_as_many_a_second(gate, clock):
    instance = instance_with(connections_per_s=10)
    gate.configure(instance)
    at_once = sum(gate.admits_connection(instance) for _ in range(100))
    assert at_once == 11  # and a slice of 100 ms
    clock.time = 2.0
    assert sum(gate.admits_connection(instance) for _ in range(100)) == at_once
    later = 0
    for tick in range(1, 101):
        clock.time = 2.0 + tick / 10
        later += sum(gate.admits_connection(instance) for _ in range(5))
    assert later == pytest.approx(100, abs=1)


def test_who_comes_when_a_seconds_worth_has_begun_waits_in_the_systems_line(gate, clock):
    instance = instance_with(connections_per_s=10)
    gate.configure(instance)
    assert gate.connection_wait_s(instance) == 0.0
    while gate.connection_wait_s(instance) == 0.0:
        assert gate.admits_connection(instance)
    assert not gate.admits_connection(instance)
    clock.time += gate.connection_wait_s(instance) + 0.1
    assert gate.connection_wait_s(instance) == 0.0
    assert gate.admits_connection(instance)


def test_nobody_waits_for_a_connection_that_there_will_never_be(gate):
    instance = instance_with(connections_per_s=0)
    gate.configure(instance)
    assert gate.connection_wait_s(instance) == 0.0
    assert not gate.admits_connection(instance)


def test_a_rate_of_nothing_lets_nobody_in_and_none_everybody(gate):
    instance = instance_with(connections_per_s=0)
    gate.configure(instance)
    assert not gate.admits_connection(instance)
    instance = instance_with()
    gate.configure(instance)
    assert all(gate.admits_connection(instance) for _ in range(1000))
