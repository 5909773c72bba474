"""The registry makes listeners and whitelists what the specs in ZooKeeper say, and says what it made of them."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.doors import Create, Delete, Doors, SetData
from dataplane.slices import STEPS_PER_SLICE, Slices
from dataplane.tenancy.certificates import Certificates
from dataplane.tenancy.proxies import NO_PROXIES
from dataplane.tenancy.registry import Registry
from quota.contracts.acls import MOST_ACLS, Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.apart import (
    acls_path,
    certificates_path,
    nodes_of,
    rules_path,
    users_path,
    whitelists_json,
    whitelists_path,
)
from quota.contracts.applied import Applied, AppliedInstance
from quota.contracts.certificates import CertificateSet, RouteCertificate
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from quota.contracts.sealing import route_key_purpose, sealed
from quota.contracts.users import User, UserSet
from tests.simulation.zookeeper import ZooKeeperServer
from tests.support.certificates import Authority, Issued
from tests.support.memory_files import ImmediateBackground, MemoryFiles
from tests.support.virtual_loop import VirtualNetwork

AUTHORITY = Authority()
LEAF, OTHER = (AUTHORITY.issue(name, ["203.0.113.9"]) for name in ("one", "other"))

BROKER, HOST, INSTANCE = 1, "10.0.0.1", "ins-aaaabbbb"
SECRET, EARLIER = "of the cluster", "of the cluster, before it was replaced"

RULES = RuleSet(3, (ThrottleRule("r", RuleKind.TOPIC, 1000, None, topics=("orders",)),))


def spec_of(generation=1, port=9100, whitelist=("10.0.0.0/8",), state=InstanceState.RUNNING, instance=INSTANCE):
    endpoint = Endpoint((HOST, port), ("203.0.113.9", port))
    return InstanceSpec(
        instance, generation, state, Limits(None, None, None, None), whitelist, (Route("default", {BROKER: endpoint}),)
    )


class Client:
    """The protocol on an accepted connection; also the open connection that the instance knows."""

    def __init__(self, connection, session, instance):
        self.connection, self.session, self.instance = connection, session, instance

    def frame(self, frame):
        pass

    def closed(self, reason):
        self.instance.disconnected(self)

    def close(self):
        self.connection.close()

    def look_again(self):
        """Nothing waits on it."""


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
    def __init__(self, proxies=NO_PROXIES):
        self.network = VirtualNetwork(3)
        self.loop = self.network.loop(HOST)
        self.server = ZooKeeperServer(self.network.loop("zookeeper").call_later, lambda: 0.001)
        for name in (
            "",
            "/instances",
            "/whitelists",
            "/rules",
            "/acls",
            "/users",
            "/token_issuers",
            "/certificates",
            "/changes",
            "/applied",
        ):
            path = f"/sluice{name}"
            self.server.write([Create(path)])
        self.session = self.server.connect(2.0)
        doors = Doors(self.loop, MemoryFiles(), self.session, ImmediateBackground(), Random(1))
        self.changes = []
        self.slices = Slices(self.loop, doors.background)
        self.registry = Registry(
            doors,
            BROKER,
            "boot",
            self.accept,
            lambda instance, present: self.changes.append((instance.spec.id, present)),
            Certificates((SECRET, EARLIER), doors.background, lambda: 50),
            proxies,
            slices=self.slices,
        )
        self.serial = 0
        self.written = set()  # paths of nodes that are there

    def accept(self, instance, route, connection):
        from types import SimpleNamespace

        if not instance.admits(connection.peer[0], route):
            return None
        client = Client(connection, SimpleNamespace(peer=connection.peer[0], route=route), instance)
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

    def connects(self, port=9100):
        """Whether somebody new gets in."""
        peer = self.connect(port)
        return peer.opened and peer.gone is None

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


def written(world, when=lambda: None):
    """What is reported from now on; `when` is called each time before it is."""
    said, session = [], world.session
    real = session.set

    def write(path, data, *more):
        if path == f"/sluice/applied/{BROKER}":
            when()
            said.append(Applied.from_json(data).instances)
        return real(path, data, *more)

    session.set = write
    return said


@pytest.mark.parametrize("ends", ["whitelist", "stopped", "deleted"])
def test_very_many_connections_are_closed_over_many_turns_and_what_is_applied_is_told_when_they_are(world, ends):
    world.start()
    world.write(spec_of(), new=True)
    for number in range(300):
        Peer(world.network.loop(f"10.9.{number // 100}.{number % 100 + 1}"), 9100)
    world.network.run_for(1)
    assert world.registry.connections() == 300
    [instance] = world.registry.all()
    closed, left = {}, []
    for client in instance.connections:

        def close(own=client.connection.close):
            closed[world.loop.turn_number] = closed.get(world.loop.turn_number, 0) + 1
            own()

        client.close = close
    said = written(world, lambda: left.append(300 - sum(closed.values())))
    state = {"stopped": InstanceState.STOPPED, "deleted": InstanceState.DELETED}.get(ends, InstanceState.RUNNING)
    told_before = len(world.changes)
    world.write(spec_of(2, whitelist=(), state=state))
    assert sum(closed.values()) == 300
    assert max(closed.values()) <= 2 * STEPS_PER_SLICE
    assert [applied.get(INSTANCE, AppliedInstance(2)).generation for applied in said] == [
        1 if some else 2 for some in left
    ]
    assert left[-1] == 0
    assert world.registry.connections() == 0
    if ends == "deleted":
        assert world.changes[told_before:] == [(INSTANCE, False)]
        assert world.applied() == {}
    else:
        assert world.applied()[INSTANCE].generation == 2


class Busy:
    """A loop that comes to long work every five milliseconds only."""

    def __init__(self, loop):
        self._loop = loop

    def __getattr__(self, name):
        return getattr(self._loop, name)

    def call_soon(self, callback):
        self._loop.call_later(0.005, callback)


LARGE, OTHER_INSTANCE = 1_500, "ins-ccccdddd"


@pytest.fixture
def closing_long(monkeypatch):
    """Two instances, of which the first has so many connections that closing them takes more than a second."""
    monkeypatch.setattr("dataplane.slices.STEPS_PER_SLICE", 4)
    world = World()
    world.slices._loop = Busy(world.loop)
    world.start()
    world.write(spec_of(), new=True)
    world.write(spec_of(port=9200, instance=OTHER_INSTANCE), new=True)
    for number in range(LARGE):
        Peer(world.network.loop(f"10.9.{number // 250}.{number % 250 + 1}"), 9100)
    world.network.run_for(1)
    assert world.registry.connections() == LARGE
    return world


def test_what_others_changed_is_in_force_while_very_many_connections_of_an_instance_are_being_closed(closing_long):
    """A tenant that narrows its whitelist again and again would keep everybody's users, ACLs and whitelists from being read."""
    world = closing_long
    inside, outside = [world.connect(9200, source) for source in ("10.1.0.1", "10.2.0.1")]
    world.write(spec_of(2, whitelist=()))
    world.write(spec_of(2, port=9200, whitelist=("10.1.0.0/16",), instance=OTHER_INSTANCE))
    left = world.registry.connections()
    assert left > LARGE / 5
    assert (inside.gone is None, outside.gone is None) == (True, False)
    assert not world.connect(9200, "10.2.0.2").opened or world.connect(9200, "10.2.0.2").gone is not None
    assert world.applied()[OTHER_INSTANCE].generation == 2
    assert world.applied()[INSTANCE].generation == 1
    world.network.run_for(3)
    assert world.registry.connections() == 1
    assert world.applied()[INSTANCE].generation == 2


def test_an_instance_that_goes_is_reported_as_it_was_and_known_to_others_until_its_connections_are_closed(closing_long):
    world = closing_long
    said, told_before = written(world), len(world.changes)
    world.write(spec_of(2, state=InstanceState.DELETED))
    assert world.registry.connections() > 0
    assert world.registry.get(INSTANCE) is None
    assert world.changes[told_before:] == []
    assert [applied.get(INSTANCE) for applied in said] == [AppliedInstance(1)]
    world.network.run_for(3)
    assert world.changes[told_before:] == [(INSTANCE, False)]
    assert [INSTANCE in applied for applied in said] == [True, False]


def test_a_broker_that_stops_forgets_what_was_removed_without_waiting_for_its_connections(closing_long):
    """What such an instance has used is told when it is forgotten."""
    world = closing_long
    world.write(spec_of(2, state=InstanceState.DELETED))
    told_before = len(world.changes)
    world.registry.let_go()
    assert world.changes[told_before:] == [(INSTANCE, False)]
    world.network.run_for(3)
    assert world.changes[told_before:] == [(INSTANCE, False)]


def test_connections_of_an_instance_that_was_made_again_end_with_the_one_before(closing_long):
    """They have its key, and would reach its topics by the whitelist and the ACLs of before."""
    world = closing_long
    before = next(instance for instance in world.registry.all() if instance.spec.id == INSTANCE)
    world.write(spec_of(2, state=InstanceState.DELETED))
    told_before = len(world.changes)
    world.write(spec_of(3))
    assert world.changes[told_before:] == [(INSTANCE, False), (INSTANCE, True)]
    assert len(before.connections) > LARGE / 10
    assert all(before.ends(client.session) for client in before.connections)
    late = world.connect(source="10.1.0.1")
    world.network.run_for(3)
    assert (len(before.connections), late.gone) == (0, None)
    assert world.applied()[INSTANCE].generation == 3


def test_connections_that_could_not_be_closed_are_a_problem_that_is_reported(world, monkeypatch):
    world.write(spec_of(), new=True)
    world.start()
    world.connect()
    with monkeypatch.context() as patched:
        patched.setattr("dataplane.tenancy.instance.Instance.ends", lambda *_: 1 // 0)
        world.write(spec_of(2, whitelist=()))
    assert "not closed" in world.applied()[INSTANCE].problem
    world.write(spec_of(3, whitelist=()))
    assert world.applied()[INSTANCE] == AppliedInstance(3)
    assert world.registry.connections() == 0


def test_one_connection_that_could_not_be_closed_is_reported_and_an_instance_whose_it_was_goes_all_the_same(world):
    world.write(spec_of(), new=True)
    world.start()
    peer = world.connect()
    [client] = world.registry.get(INSTANCE).connections
    client.close = lambda: 1 // 0
    world.write(spec_of(2, whitelist=()))
    assert "not closed" in world.applied()[INSTANCE].problem
    client.connection.close()
    world.network.run_for(0.1)
    assert (peer.gone is not None, world.registry.connections()) == (True, 0)
    world.write(spec_of(3, state=InstanceState.DELETED))
    assert world.changes[-1] == (INSTANCE, False)
    assert world.applied() == {}


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


# --- certificates -----------------------------------------------------------------------------------------------------


def certificates_node(version, *routes, secret=SECRET, client_ca="", issued=LEAF):
    def item(name):
        key = sealed(issued.key_pem.encode(), secret=secret, purpose=route_key_purpose(INSTANCE, name), nonce=b"n" * 12)
        return RouteCertificate(name, issued.pem, key, client_ca)

    return {certificates_path(INSTANCE): CertificateSet(version, tuple(map(item, routes))).to_json()}


def secure(name="tls", port=9101, **members):
    return route(name, port, **{"security": "ssl", **members})


def test_a_route_of_tls_opens_with_its_certificate_and_others_do_not_wait_for_it(world):
    nodes = nodes_of(routes_of(1, A, secure()))
    world.write_nodes(nodes)
    world.start()
    assert [world.connects(port) for port in (9100, 9101)] == [True, False]
    assert world.applied()[INSTANCE].problem == "route tls: it has no certificate"
    world.write_nodes(certificates_node(1, "tls"))
    assert [world.connects(port) for port in (9100, 9101)] == [True, True]
    assert world.applied()[INSTANCE] == AppliedInstance(1)


def test_one_certificate_may_be_every_routes(world):
    world.write_nodes({**nodes_of(routes_of(1, secure(), secure("other", 9102))), **certificates_node(1, "")})
    world.start()
    assert [world.connects(port) for port in (9101, 9102)] == [True, True]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"{", "its certificates are not legible"),
        (CertificateSet(1, (RouteCertificate("tls", "no PEM", b"no key"),)).to_json(), "not sealed"),
        (certificates_node(1, "tls", secret="another")[certificates_path(INSTANCE)], "sealed with another secret"),
        (
            certificates_node(1, "tls", issued=Issued(LEAF.certificate, OTHER.key))[certificates_path(INSTANCE)],
            "mismatch",
        ),
    ],
)
def test_with_certificates_that_cannot_be_used_routes_of_tls_do_not_open_and_others_do(world, data, sentence):
    world.write_nodes({**nodes_of(routes_of(1, A, secure())), certificates_path(INSTANCE): data})
    world.start()
    assert [world.connects(port) for port in (9100, 9101)] == [True, False]
    assert sentence in world.applied()[INSTANCE].problem.lower()
    world.write_nodes(certificates_node(2, "tls"))
    assert world.connects(9101)


def test_a_key_that_is_sealed_with_the_secret_before_is_good_while_that_is_accepted(world):
    world.write_nodes({**nodes_of(routes_of(1, secure())), **certificates_node(1, "tls", secret=EARLIER)})
    world.start()
    assert world.applied()[INSTANCE].problem is None


def test_what_a_tenant_has_written_looks_like_no_other_routes_problem(world):
    rule = "RULE:(; route default: cannot listen on h:1: taken/x/"
    mapped = secure(client_certificates="required", principal_mapping=(rule,))
    world.write_nodes({**nodes_of(routes_of(1, mapped)), **certificates_node(1, "tls", client_ca=AUTHORITY.pem)})
    world.start()
    applied = world.applied()[INSTANCE]
    assert "route default" in applied.problem
    assert applied.problem_of("default") is None
    assert applied.problem_of("tls") == applied.problem.removeprefix("route tls: ")


def test_a_newer_certificate_is_for_new_connections_and_old_ones_live_on(world):
    world.write_nodes({**nodes_of(routes_of(1, A, secure())), **certificates_node(1, "tls")})
    world.start()
    peers = [world.connect(port) for port in (9100, 9101)]
    listener, before = world.network.listeners[HOST, 9101], world.registry.get(INSTANCE).secured
    world.write_nodes(certificates_node(2, "tls", issued=OTHER))
    after = world.registry.get(INSTANCE).secured
    assert after.servers["tls"].context is not before.servers["tls"].context
    assert [peer.gone for peer in peers] == [None, None]
    assert world.network.listeners[HOST, 9101] is listener


def test_what_did_not_change_is_not_made_again(world):
    world.write_nodes({**nodes_of(routes_of(1, A, secure())), **certificates_node(1, "tls")})
    world.start()
    before = world.registry.get(INSTANCE).secured
    world.write_nodes(nodes_of(replace(routes_of(2, A, secure()), whitelist=("10.0.0.0/9",))))
    assert world.registry.get(INSTANCE).spec.generation == 2
    assert world.registry.get(INSTANCE).secured is before


def test_certificates_that_vanish_close_the_route(world):
    world.write_nodes({**nodes_of(routes_of(1, A, secure())), **certificates_node(1, "tls")})
    world.start()
    world.write_nodes({certificates_path(INSTANCE): CertificateSet(2).to_json()})
    assert [world.connects(port) for port in (9100, 9101)] == [True, False]


@pytest.mark.parametrize("wanted", ["requested", "required"])
def test_without_a_ca_for_clients_a_route_that_wants_their_certificates_does_not_open(world, wanted):
    world.write_nodes({**nodes_of(routes_of(1, secure(client_certificates=wanted))), **certificates_node(1, "tls")})
    world.start()
    assert not world.connects(9101)
    assert "no CA" in world.applied()[INSTANCE].problem
    world.write_nodes(certificates_node(2, "tls", client_ca=AUTHORITY.pem))
    assert world.connects(9101)


def test_rules_that_cannot_be_used_keep_the_route_shut(world):
    mapped = secure(client_certificates="required", principal_mapping=("RULE:(/x/",))
    world.write_nodes({**nodes_of(routes_of(1, mapped)), **certificates_node(1, "tls", client_ca=AUTHORITY.pem)})
    world.start()
    assert not world.connects(9101)
    assert "missing )" in world.applied()[INSTANCE].problem


# --- several routes ---------------------------------------------------------------------------------------------------


def routes_of(generation, *routes):
    return replace(spec_of(generation), routes=routes)


def route(name, port, **members):
    return Route(name, {BROKER: Endpoint((HOST, port), ("203.0.113.9", port))}, **members)


A, B, C = route("default", 9100), route("vpc", 9101), route("public", 9102)


def test_three_routes_have_a_listener_each_and_clients_of_the_others_go_on_when_one_is_removed(world):
    world.write(routes_of(1, A, B, C), new=True)
    world.start()
    peers = [world.connect(port) for port in (9100, 9101, 9102)]
    assert all(peer.opened for peer in peers)
    world.write(routes_of(2, A, C))
    assert [peer.gone is None for peer in peers] == [True, False, True]
    assert [world.connects(port) for port in (9100, 9101, 9102)] == [True, False, True]
    assert world.applied()[INSTANCE] == AppliedInstance(2)


def test_the_default_route_may_go_while_another_stays(world):
    world.write(routes_of(1, A, B), new=True)
    world.start()
    peer = world.connect(9101)
    world.write(routes_of(2, B))
    assert peer.gone is None
    assert not world.connects(9100)


def test_a_route_that_cannot_be_opened_keeps_no_other_from_it(world):
    world.write(routes_of(1, replace(A, security="quantum"), B, route("taken", 9101), C), new=True)
    world.start()
    assert [world.connects(port) for port in (9100, 9101, 9102)] == [False, True, True]
    problem = world.applied()[INSTANCE].problem
    assert "route default: this broker does not serve" in problem
    assert "route taken: cannot listen on 10.0.0.1:9101" in problem


def test_a_route_without_an_address_on_this_broker_is_no_problem(world):
    elsewhere = Route("vpc", {BROKER + 1: Endpoint(("10.0.0.2", 9101), ("203.0.113.9", 9101))})
    world.write(routes_of(1, A, elsewhere), new=True)
    world.start()
    assert world.connects()
    assert world.applied()[INSTANCE] == AppliedInstance(1)


def test_a_listener_is_opened_anew_only_where_its_address_changes_or_how_its_bytes_are_read(world, monkeypatch):
    monkeypatch.setattr("dataplane.tenancy.registry.SERVED", frozenset({"plaintext", "sasl_plaintext", "ssl"}))
    world.write_nodes({**nodes_of(routes_of(1, A, B, C)), **certificates_node(1, "vpc")})
    world.start()
    before = dict(world.network.listeners)
    kept = replace(A, whitelist=("10.0.0.0/8",), connections=7, closes_at_ms=10**15)
    logs_in = replace(B, security="sasl_plaintext", mechanisms=("PLAIN",), allow_plain_in_clear=True)
    world.write_nodes(nodes_of(routes_of(2, kept, logs_in, replace(C, proxy_protocol=True))))
    after = world.network.listeners
    assert [after[HOST, port] is before[HOST, port] for port in (9100, 9101, 9102)] == [True, True, False]
    world.write_nodes(nodes_of(routes_of(3, kept, replace(B, security="ssl"), replace(C, proxy_protocol=True))))
    assert after[HOST, 9101] is not before[HOST, 9101]


def test_routes_may_exchange_their_ports(world):
    world.write(routes_of(1, A, B), new=True)
    world.start()
    world.write(routes_of(2, route("default", 9101), route("vpc", 9100)))
    assert world.connects(9100)
    assert world.connects(9101)
    assert world.applied()[INSTANCE] == AppliedInstance(2)


def ends_in(world, seconds):
    return world.loop.clock.now_ms() + round(seconds * 1000)


def test_a_route_closes_by_itself_when_its_time_has_come_with_its_connections(world):
    world.write(routes_of(1, A, replace(C, closes_at_ms=ends_in(world, 200))), new=True)
    world.start()
    stays, goes = world.connect(9100), world.connect(9102)
    world.network.run_for(195)
    assert goes.gone is None
    world.network.run_for(10)
    assert (stays.gone is None, goes.gone is None) == (True, False)
    assert not world.connects(9102)
    assert world.applied()[INSTANCE] == AppliedInstance(1)  # as was wanted: no problem


def test_it_does_not_open_again_after_a_restart_and_does_where_its_end_is_moved(world):
    spec = routes_of(1, A, replace(C, closes_at_ms=ends_in(world, -1)))
    world.write(spec, new=True)
    world.start()
    assert world.connects(9100)
    assert not world.connects(9102)
    world.write(routes_of(2, A, replace(C, closes_at_ms=ends_in(world, 20))))
    peer = world.connect(9102)
    assert peer.opened
    world.write(routes_of(3, A, replace(C, closes_at_ms=ends_in(world, 100))))
    world.network.run_for(50)
    assert peer.gone is None
    world.write(routes_of(4, A, C))
    world.network.run_for(100)
    assert peer.gone is None  # it has no end any more


def test_an_end_comes_soon_after_the_clock_was_set(world):
    world.write(routes_of(1, A, replace(C, closes_at_ms=ends_in(world, 3600))), new=True)
    world.start()
    world.network.step_clock(HOST, 3_600_000)
    world.network.run_for(61)
    assert not world.connects(9102)


def test_of_several_ends_each_comes_at_its_time_and_none_after_its_instance_is_gone(world):
    world.write(
        routes_of(1, A, replace(B, closes_at_ms=ends_in(world, 5)), replace(C, closes_at_ms=ends_in(world, 15))),
        new=True,
    )
    world.start()
    world.network.run_for(9)
    assert [world.connects(port) for port in (9101, 9102)] == [False, True]
    world.write(replace(spec_of(generation=2), state=InstanceState.DELETED))
    world.network.run_for(20)
    assert world.registry.get(INSTANCE) is None


def test_who_is_being_admitted_when_the_route_closes_is_not(world):
    world.write(routes_of(1, A, replace(C, closes_at_ms=ends_in(world, 5))), new=True)
    world.start()
    instance = world.registry.get(INSTANCE)
    assert instance.admits("10.9.9.9", "public")
    world.network.run_for(10)
    assert not instance.admits("10.9.9.9", "public")
    world.write(replace(spec_of(generation=2), state=InstanceState.STOPPED))
    assert not instance.admits("10.9.9.9", "default")


PORTS = (9100, 9101, 9102, 9103)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        name: st.fixed_dictionaries(
            {
                "security": st.sampled_from(["plaintext", "plaintext", "quantum"]),
                "ends_in_s": st.sampled_from([None, None, -5, 3, 12, 70]),
                "here": st.sampled_from([True, True, True, False]),
            }
        )
        for name in ("default", "r2", "r3")
    },
)


def wished(world, generation, wishes, ports):
    """The spec of routes that are wished for."""
    routes = []
    for (name, wish), port in zip(wishes.items(), ports, strict=False):
        ends_ms = None if wish["ends_in_s"] is None else ends_in(world, wish["ends_in_s"])
        made = replace(route(name, port), security=wish["security"], closes_at_ms=ends_ms)
        routes.append(made if wish["here"] else replace(made, endpoints={}))
    return routes_of(generation, *routes)


def open_now(world, spec):
    """Routes that are to be open, with their ports."""
    now_ms = world.loop.clock.now_ms()
    return {
        (each.id, each.endpoints[BROKER].bind[1])
        for each in spec.routes
        if BROKER in each.endpoints
        and each.security == "plaintext"
        and (each.closes_at_ms is None or each.closes_at_ms > now_ms)
    }


STEPS = st.tuples(WISHES, st.permutations(PORTS), st.sampled_from([0.0, 1.0, 5.0, 30.0, 80.0]))


@given(steps=st.lists(STEPS, min_size=1, max_size=6))
@settings(deadline=None)
def test_whatever_is_wished_those_routes_are_open_that_are_to_be_and_no_connection_is_of_another(steps):
    world = World()
    world.write(routes_of(1, A), new=True)
    world.start()
    for generation, (wishes, ports, wait_s) in enumerate(steps, 2):
        spec = wished(world, generation, wishes, ports)
        world.write(spec)
        peers = {port: world.connect(port) for _, port in sorted(open_now(world, spec))}
        assert all(peer.opened and peer.gone is None for peer in peers.values())
        world.network.run_for(wait_s)
        expected = open_now(world, spec)
        assert {port for host, port in world.network.listeners if host == HOST} == {port for _, port in expected}
        assert {port for port, peer in peers.items() if peer.gone is None} == {port for _, port in expected}
        instance = world.registry.get(INSTANCE)
        assert {each.session.route for each in instance.connections} <= {name for name, _ in expected}


# --- who may do what --------------------------------------------------------------------------------------------------


def test_a_route_of_a_security_that_is_not_served_does_not_open(world):
    unknown = replace(spec_of(), routes=(replace(spec_of().routes[0], security="quantum"),))
    world.write(unknown, new=True)
    world.start()
    assert not world.connects()
    assert "does not serve 'quantum'" in world.applied()[INSTANCE].problem


def test_a_route_that_changes_to_a_security_that_is_not_served_is_closed_with_its_connections(world):
    world.write(spec_of(), new=True)
    world.start()
    peer = world.connect()
    assert peer.opened
    world.write(replace(spec_of(2), routes=(replace(spec_of().routes[0], security="quantum"),)))
    assert peer.gone is not None
    assert not world.connects()


@pytest.mark.parametrize("path", [acls_path(INSTANCE), users_path(INSTANCE)])
def test_an_instance_whose_acls_or_users_are_not_legible_is_shut_until_they_are(world, path):
    world.write_nodes(nodes_of(spec_of()))
    world.start()
    assert world.connects()
    world.write_nodes({path: b"not JSON"})
    assert not world.connects()
    assert "not legible" in world.applied()[INSTANCE].problem
    world.write_nodes({path: b'{"items":[],"version":1}'})
    assert world.connects()
    assert world.applied()[INSTANCE].problem is None


def test_acls_of_an_instance_whose_spec_holds_its_whitelists_itself_are_in_force_as_well(world):
    """They were ignored: what a rule denied was permitted."""
    world.write(spec_of(), new=True)
    acl = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:*", "*", AclOperation.READ, Permission.DENY)
    world.write_nodes({acls_path(INSTANCE): AclSet().changed([acl]).to_json()})
    world.start()
    assert world.registry.get(INSTANCE).spec.acls == AclSet(1, (acl,))
    assert (
        not world.registry.get(INSTANCE)
        .acls.decide("User:x", "10.0.0.1", acl.operation, acl.resource_type, "orders")
        .allowed
    )


def test_thousands_of_acls_are_in_force_within_two_seconds_whatever_others_have_the_broker_do(world):
    world.write_nodes(nodes_of(spec_of()))
    world.start()

    def endless():
        while True:
            yield None

    for number in range(20):
        world.slices.run(f"tenant-{number}", endless())
    acls = [
        Acl(ResourceType.TOPIC, PatternType.LITERAL, f"t{n}", "User:a", "*", AclOperation.READ, Permission.ALLOW)
        for n in range(MOST_ACLS)
    ]
    world.write_nodes({acls_path(INSTANCE): AclSet().changed(acls).to_json()})  # and half a second
    book = world.registry.get(INSTANCE).book
    for name, allowed in (("t0", True), (f"t{MOST_ACLS - 1}", True), ("t", True)):  # of the last there is no ACL
        assert book.decide("User:a", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, name).allowed is allowed
    assert not book.decide("User:b", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "t0").allowed


def test_a_change_that_is_not_of_acls_leaves_their_index_alone(world):
    acl = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:*", "*", AclOperation.READ, Permission.DENY)
    world.write_nodes({**nodes_of(spec_of()), acls_path(INSTANCE): AclSet().changed([acl]).to_json()})
    world.start()
    book = world.registry.get(INSTANCE).book
    world.write_nodes({users_path(INSTANCE): UserSet().changed([User("alice", ())]).to_json()})
    assert world.registry.get(INSTANCE).spec.users.version == 1
    assert world.registry.get(INSTANCE).book is book


def test_what_waits_is_looked_at_after_a_change_of_acls_or_whitelists_of_topics_and_of_nothing_else(world, monkeypatch):
    world.write_nodes(nodes_of(spec_of()))
    world.start()
    assert world.connects()
    looks = []
    monkeypatch.setattr(Client, "look_again", lambda _client: looks.append(1))
    world.write_nodes({users_path(INSTANCE): UserSet().changed([User("alice", ())]).to_json()})
    assert looks == []
    world.write_nodes({acls_path(INSTANCE): AclSet().changed([]).to_json()})
    assert len(looks) == 1
    world.write_nodes(nodes_of(replace(spec_of(generation=2), topic_whitelists={"orders": ()})))
    assert len(looks) == 2


def test_acls_and_users_are_applied_whenever_they_are_of_a_later_version(world):
    world.write_nodes(nodes_of(spec_of()))
    world.start()
    generation = world.registry.get(INSTANCE).permit.generation
    acl = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:alice", "*", AclOperation.READ, Permission.ALLOW)
    world.write_nodes({acls_path(INSTANCE): AclSet().changed([acl]).to_json()})
    assert world.registry.get(INSTANCE).spec.acls == AclSet(1, (acl,))
    assert world.registry.get(INSTANCE).permit.generation > generation  # short cuts ask again
    world.write_nodes({users_path(INSTANCE): UserSet().changed([User("alice", ())]).to_json()})
    assert [user.name for user in world.registry.get(INSTANCE).spec.users.items] == ["alice"]
