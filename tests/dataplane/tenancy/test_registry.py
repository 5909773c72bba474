"""The registry makes listeners and whitelists what the specs in ZooKeeper say, and says what it made of them."""

from dataclasses import replace
from random import Random

import pytest

from dataplane.doors import Create, Delete, Doors, SetData
from dataplane.tenancy.registry import Registry
from quota.contracts.apart import nodes_of, rules_path, whitelists_json, whitelists_path
from quota.contracts.applied import Applied, AppliedInstance
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from tests.simulation.zookeeper import ZooKeeperServer
from tests.support.memory_files import ImmediateBackground, MemoryFiles
from tests.support.virtual_loop import VirtualNetwork

BROKER, HOST, INSTANCE = 1, "10.0.0.1", "ins-aaaabbbb"

RULES = RuleSet(3, (ThrottleRule("r", RuleKind.TOPIC, 1000, None, topics=("orders",)),))


def spec_of(generation=1, port=9100, whitelist=("10.0.0.0/8",), state=InstanceState.RUNNING, instance=INSTANCE):
    endpoint = Endpoint((HOST, port), ("203.0.113.9", port))
    return InstanceSpec(
        instance, generation, state, Limits(None, None, None, None), whitelist, (Route("default", {BROKER: endpoint}),)
    )


class Client:
    """The protocol on an accepted connection; also the open connection that the instance knows."""

    def __init__(self, connection, session):
        self.connection, self.session = connection, session

    def frame(self, frame):
        pass

    def closed(self, reason):
        pass

    def close(self):
        self.connection.close()


class Peer:
    """A client's side of a connection."""

    def __init__(self, loop, port):
        self.opened = False
        self.gone = None
        loop.connect(HOST, port, self.open, self.closed)

    def open(self, connection):
        self.opened = True
        return self

    def frame(self, frame):
        pass

    def closed(self, reason):
        self.gone = reason


class World:
    def __init__(self):
        self.network = VirtualNetwork(3)
        self.loop = self.network.loop(HOST)
        self.server = ZooKeeperServer(self.network.loop("zookeeper").call_later, lambda: 0.001)
        for name in ("", "/instances", "/whitelists", "/rules", "/changes", "/applied"):
            path = f"/sluice{name}"
            self.server.write([Create(path)])
        self.session = self.server.connect(2.0)
        doors = Doors(self.loop, MemoryFiles(), self.session, ImmediateBackground(), Random(1))
        self.changes = []
        self.registry = Registry(
            doors,
            BROKER,
            "boot",
            self.accept,
            lambda instance, present: self.changes.append((instance.spec.id, present)),
        )
        self.serial = 0
        self.written = set()  # paths of nodes that are there

    def accept(self, instance, route, connection):
        from types import SimpleNamespace

        if not instance.admits(connection.peer[0]):
            return None
        client = Client(connection, SimpleNamespace(peer=connection.peer[0]))
        instance.connected(client)
        return client

    def start(self):
        self.registry.start()
        self.network.run_for(1)

    def write(self, spec, *, new=False):
        path, self.serial = f"/sluice/instances/{spec.id}", self.serial + 1
        self.written.add(path)
        operation = Create(path, spec.to_json()) if new else SetData(path, spec.to_json())
        change = Create(f"/sluice/changes/change-{self.serial:010}", f'{{"instance":"{spec.id}"}}'.encode())
        self.server.write([operation, change])
        self.network.run_for(0.5)

    def write_nodes(self, nodes):
        """All of them at once, as the control plane does."""
        self.serial += 1
        instance = next(iter(nodes)).rpartition("/")[2]
        operations = [
            SetData(path, data) if path in self.written else Create(path, data) for path, data in nodes.items()
        ]
        self.written |= nodes.keys()
        change = Create(f"/sluice/changes/change-{self.serial:010}", f'{{"instance":"{instance}"}}'.encode())
        self.server.write([*operations, change])
        self.network.run_for(0.5)

    def applied(self):
        data = self.server.tree.node(f"/sluice/applied/{BROKER}").data
        return Applied.from_json(data).instances

    def connect(self, port=9100, source="10.9.9.9"):
        peer = Peer(self.network.loop(source), port)
        self.network.run_for(0.1)
        return peer


@pytest.fixture
def world():
    return World()


def test_an_instance_that_was_there_before_the_broker_is_served(world):
    world.write(spec_of(), new=True)
    world.start()
    peer = world.connect()
    assert peer.opened
    assert peer.gone is None
    assert world.applied()[INSTANCE].generation == 1
    assert world.changes == [(INSTANCE, True)]


def test_a_new_instance_gets_its_listener_while_the_broker_runs(world):
    world.start()
    assert not world.connect().opened
    world.write(spec_of(), new=True)
    assert world.connect().opened


def test_a_route_that_moves_closes_the_old_port_and_keeps_open_connections(world):
    world.write(spec_of(), new=True)
    world.start()
    before = world.connect()
    world.write(spec_of(generation=2, port=9200))
    assert not world.connect(9100).opened
    assert world.connect(9200).opened
    assert before.gone is None


def test_a_narrower_whitelist_refuses_new_connections_and_closes_open_ones(world):
    world.write(spec_of(), new=True)
    world.start()
    inside, outside = world.connect(source="10.1.0.1"), world.connect(source="10.2.0.1")
    world.write(spec_of(generation=2, whitelist=("10.1.0.0/16",)))
    assert inside.gone is None
    assert outside.gone is not None
    refused = world.connect(source="10.2.0.2")
    assert refused.gone is not None


def test_a_deleted_instance_loses_listener_connections_and_its_place(world):
    world.write(spec_of(), new=True)
    world.start()
    peer = world.connect()
    world.write(spec_of(generation=2, state=InstanceState.DELETED))
    assert peer.gone is not None
    assert not world.connect().opened
    assert world.applied() == {}
    assert world.changes[-1] == (INSTANCE, False)


def test_a_stopped_instance_is_applied_but_not_served(world):
    world.write(spec_of(state=InstanceState.STOPPED), new=True)
    world.start()
    assert not world.connect().opened
    assert world.applied()[INSTANCE].generation == 1


def test_an_older_generation_changes_nothing(world):
    world.write(spec_of(generation=5), new=True)
    world.start()
    world.write(spec_of(generation=4, port=9300))
    assert world.connect(9100).opened
    assert world.applied()[INSTANCE].generation == 5


def test_a_port_that_is_taken_is_reported_and_a_later_generation_heals_it(world):
    world.loop.listen(HOST, 9100, lambda _: None)
    world.write(spec_of(), new=True)
    world.start()
    assert "9100" in world.applied()[INSTANCE].problem
    world.write(spec_of(generation=2, port=9101))
    assert world.applied()[INSTANCE].problem is None
    assert world.connect(9101).opened


def test_changes_made_while_the_session_was_lost_are_found_in_the_new_one(world):
    world.write(spec_of(), new=True)
    world.start()
    world.session.expire()
    world.server.write([SetData(f"/sluice/instances/{INSTANCE}", spec_of(generation=2, port=9400).to_json())])
    world.network.run_for(1)
    world.registry.start()  # what the broker does when it hears of a new session
    world.network.run_for(2)
    assert world.connect(9400).opened
    assert world.applied()[INSTANCE].generation == 2


def test_a_broken_spec_is_no_harm_to_the_others(world):
    world.write(spec_of(), new=True)
    world.start()
    world.server.write([Create("/sluice/instances/ins-ccccdddd", b"not json")])
    world.server.write([Create("/sluice/changes/change-x", b'{"instance":"ins-ccccdddd"}')])
    world.server.write([Create("/sluice/changes/change-y", b"neither")])
    world.network.run_for(0.5)
    world.write(replace(spec_of(generation=2), whitelist=()))
    assert world.applied()[INSTANCE].generation == 2


def test_a_deleted_change_node_makes_it_read_everything(world):
    world.start()
    spec = spec_of()
    world.server.write([Create(f"/sluice/instances/{INSTANCE}", spec.to_json())])
    world.server.write([Create("/sluice/changes/gone", b'{"instance":"ins-aaaabbbb"}')])
    world.server.write([Delete("/sluice/changes/gone")])
    world.server.write([Create("/sluice/changes/another", b'{"instance":"ins-zzzzzzzz"}')])
    world.network.run_for(1)
    world.registry.start()
    world.network.run_for(1)
    assert world.connect().opened


# --- whitelists and rules in nodes of their own -------------------------------------------------------------------------


def whitelists(generation, *cidrs):
    return whitelists_json(generation, cidrs, {})


def test_whitelists_and_rules_are_read_from_nodes_of_their_own(world):
    spec = replace(spec_of(), rules=RULES, topic_whitelists={"orders": ("10.1.0.0/16",)})
    world.write_nodes(nodes_of(spec))
    world.start()
    assert world.connect().opened
    served = world.registry.get(INSTANCE).spec
    assert served == spec
    assert served.whitelists_of == 1
    world.write_nodes(nodes_of(replace(spec, generation=2, whitelist=("10.1.0.0/16",))))
    assert world.connect(source="10.2.0.1").gone is not None
    assert world.applied()[INSTANCE] == AppliedInstance(2)


def test_rules_alone_are_followed_too(world):
    world.write_nodes(nodes_of(spec_of()))
    world.start()
    assert world.registry.get(INSTANCE).spec.rules.items == ()
    world.write_nodes({rules_path(INSTANCE): RULES.to_json()})
    assert world.registry.get(INSTANCE).spec.rules == RULES
    assert world.applied()[INSTANCE] == AppliedInstance(1)


@pytest.mark.parametrize("data", [None, b"{", whitelists(0, "10.0.0.0/8")])
def test_an_instance_whose_whitelists_cannot_be_read_is_not_served(world, data):
    nodes = {**nodes_of(spec_of()), whitelists_path(INSTANCE): data}
    world.write_nodes({path: data for path, data in nodes.items() if data is not None})
    world.start()
    assert not world.connect().opened
    assert INSTANCE not in world.applied()
    world.write_nodes({whitelists_path(INSTANCE): whitelists(1, "10.0.0.0/8")})
    assert world.connect().opened


@pytest.mark.parametrize("data", [b"{", whitelists(1, "10.0.0.0/8")])
def test_one_that_is_served_is_shut_while_its_newer_whitelists_cannot_be_read(world, data):
    world.write_nodes(nodes_of(spec_of()))
    world.start()
    inside = world.connect()
    world.write_nodes({**nodes_of(spec_of(generation=2)), whitelists_path(INSTANCE): data})
    assert inside.gone is not None
    assert not world.connect().opened
    assert world.applied()[INSTANCE].generation == 1
    assert "whitelists" in world.applied()[INSTANCE].problem
    world.write_nodes({whitelists_path(INSTANCE): whitelists(2, "10.0.0.0/8")})
    assert world.connect().opened
    assert world.applied()[INSTANCE] == AppliedInstance(2)


def test_one_that_cannot_be_read_is_no_harm_to_those_behind_it(world):
    world.write_nodes(nodes_of(spec_of()))
    other = spec_of(instance="ins-ccccdddd", port=9200)
    world.write_nodes(nodes_of(other))
    world.write_nodes({whitelists_path(INSTANCE): b"{"})
    world.start()
    assert not world.connect(9100).opened
    assert world.connect(9200).opened


def test_a_specification_of_version_1_becomes_one_of_version_2_while_it_is_served(world):
    spec = replace(spec_of(), rules=RULES)
    world.write(spec, new=True)
    world.start()
    before = world.connect()
    world.write_nodes(nodes_of(replace(spec, generation=2)))
    assert before.gone is None
    assert world.connect().opened
    assert world.registry.get(INSTANCE).spec == replace(spec, generation=2)


def test_rules_that_cannot_be_read_stay_what_they_were_and_no_whitelist_waits_for_them(world):
    world.write_nodes(nodes_of(replace(spec_of(), rules=RULES)))
    world.start()
    inside = world.connect()
    narrower = replace(spec_of(generation=2), whitelist=("10.1.0.0/16",))
    world.write_nodes({**nodes_of(narrower), rules_path(INSTANCE): b"{"})
    assert inside.gone is not None
    assert world.registry.get(INSTANCE).spec.rules == RULES
    assert world.applied()[INSTANCE] == AppliedInstance(2)
