"""An instance as a broker serves it: who may connect, to which topics, and what addresses its clients are told."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dataplane.admission import Admission
from dataplane.records.steps import run_through
from dataplane.tenancy import whitelist
from dataplane.tenancy.headcount import Total
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.secured import NOTHING
from dataplane.tenancy.whitelist import Whitelist
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from quota.contracts.token_issuers import TokenIssuer, TokenIssuerSet, TokenKey
from quota.contracts.users import User, UserSet

NEAR, FAR = "10.0.0.1", "192.0.2.1"
ADDRESS = ("203.0.113.9", 9100)


class Connection:
    def __init__(self, peer, route="default"):
        self.session = SimpleNamespace(peer=peer, route=route)
        self.is_open = True

    def close(self):
        self.is_open = False


def spec_of(whitelist=("0.0.0.0/0",), topics=None, **limits):
    route = Route("default", {1: Endpoint(("10.0.0.1", 9100), ADDRESS)})
    limits = Limits(None, None, None, None, **limits)
    return InstanceSpec("ins-aaaabbbb", 1, InstanceState.RUNNING, limits, whitelist, (route,), topics or {})


def connect(instance, peer, route="default"):
    connection = Connection(peer, route)
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
    assert instance.admits(NEAR, "default")
    assert instance.admits(FAR, "default")
    run_through(instance.apply(spec_of(("10.0.0.0/8",))))
    assert instance.admits(NEAR, "default")
    assert not instance.admits(FAR, "default")
    assert (near.is_open, far.is_open) == (True, False)


def client(user, issuer=None):
    return SimpleNamespace(peer=NEAR, route="default", user=user, issuer=issuer)


def test_who_came_by_a_token_may_go_on_while_its_issuer_is_trusted_by_the_same_rules():
    issuer = TokenIssuer("https://login.example.com/", ("kafka",))
    instance = Instance(replace(spec_of(), token_issuers=TokenIssuerSet(1, (issuer,))))
    carol = client("carol", issuer)  # who is no user
    assert instance.still_lets_in(carol)
    key = TokenKey("one", ("RS256",), b"der")
    run_through(
        instance.apply(replace(instance.spec, token_issuers=TokenIssuerSet(2, (replace(issuer, keys=(key,)),))))
    )
    assert instance.still_lets_in(carol)
    run_through(
        instance.apply(replace(instance.spec, token_issuers=TokenIssuerSet(3, (replace(issuer, scope="kafka"),))))
    )
    assert not instance.still_lets_in(carol)
    run_through(instance.apply(replace(instance.spec, token_issuers=TokenIssuerSet(4))))
    assert not instance.still_lets_in(carol)


def test_who_has_a_connection_may_go_on_while_his_address_route_and_user_are_let_in():
    """For requests that wait: their connection ends as well, but they may be half done."""
    instance = Instance(replace(spec_of(), users=UserSet().changed([User("alice", ())])))
    anonymous, alice = [client(user) for user in (None, "alice")]
    assert instance.still_lets_in(anonymous)
    assert instance.still_lets_in(alice)
    run_through(instance.apply(replace(instance.spec, users=UserSet())))
    assert instance.still_lets_in(anonymous)
    assert not instance.still_lets_in(alice)
    run_through(instance.apply(spec_of(whitelist=())))
    assert not instance.still_lets_in(anonymous)
    run_through(instance.apply(spec_of()))
    run_through(instance.close_route("default"))
    assert not instance.still_lets_in(anonymous)


def test_as_many_connections_as_the_limit_says_and_not_one_more():
    instance = Instance(spec_of(connections=2))
    first = connect(instance, NEAR)
    assert instance.admits(NEAR, "default")
    connect(instance, FAR)
    assert not instance.admits(NEAR, "default")
    instance.disconnected(first)
    assert instance.admits(NEAR, "default")


def test_connections_are_counted_by_address():
    instance = Instance(spec_of(connections_per_address=2))
    first, second = connect(instance, NEAR), None
    assert instance.admits(NEAR, "default")
    second = connect(instance, NEAR)
    assert not instance.admits(NEAR, "default")
    assert instance.admits(FAR, "default")
    for gone in (first, first, second):  # told twice, it counts once
        instance.disconnected(gone)
    connect(instance, NEAR)
    assert instance.admits(NEAR, "default")


def test_an_address_is_forgotten_with_its_last_connection():
    instance = Instance(spec_of())
    one, other = connect(instance, NEAR), connect(instance, NEAR)
    instance.disconnected(one)
    assert list(instance._all.by_address) == [NEAR]
    instance.disconnected(other)
    assert not instance._all.by_address
    assert not instance._by_route


def test_all_are_closed_in_the_end():
    instance = Instance(spec_of())
    connections = [connect(instance, peer) for peer in (NEAR, FAR)]
    run_through(instance.close_connections())
    assert not any(connection.is_open for connection in connections)


@pytest.mark.parametrize(
    "end",
    [
        lambda instance: instance.apply(spec_of(("10.0.0.0/8",))),
        lambda instance: instance.apply(replace(spec_of(), routes=())),
        Instance.close_connections,
        lambda instance: instance.close_route("default"),
    ],
)
def test_very_many_connections_are_closed_one_at_a_time_and_nobody_gets_in_meanwhile(end):
    """In one turn of the loop, ten thousand held up everybody for a quarter of a second."""
    instance = Instance(spec_of())
    near, far = [[connect(instance, peer) for _ in range(100)] for peer in (NEAR, FAR)]
    steps = end(instance)
    assert not instance.admits(FAR, "default")
    closed = [sum(not connection.is_open for connection in (*near, *far)) for _ in steps]
    assert closed[-1] in (100, 200)
    assert max(after - before for before, after in zip([0, *closed], closed, strict=False)) == 1
    assert not any(connection.is_open for connection in far)


def test_one_that_connects_while_others_are_closed_stays():
    instance = Instance(spec_of())
    for _ in range(3):
        connect(instance, FAR)
    steps = instance.apply(spec_of(("10.0.0.0/8",)))
    next(steps)
    late = connect(instance, NEAR)
    run_through(steps)
    assert late.is_open


def test_connections_of_all_instances_together_are_counted_as_they_come_and_go():
    everywhere = Total()
    one, other = [Instance(spec_of(), everywhere=everywhere) for _ in range(2)]
    first, _ = connect(one, NEAR), connect(other, NEAR)
    assert everywhere.connections == 2
    one.disconnected(first)
    one.disconnected(first)
    assert everywhere.connections == 1


def test_whether_a_broker_is_full_is_known_without_asking_each_instance():
    """It is asked whenever somebody connects; of two thousand instances that took a fifth of a millisecond."""
    settings = SimpleNamespace(max_connections=2)
    registry = SimpleNamespace(connections=lambda: 2)
    broker = SimpleNamespace(registry=registry, config=SimpleNamespace(settings=settings))
    assert Admission(broker)._is_full()
    settings.max_connections = 3
    assert not Admission(broker)._is_full()


def test_it_begins_without_limits_certificates_and_a_proposal():
    instance = Instance(spec_of())
    assert instance.produce_bucket is instance.consume_bucket is instance.group_bucket is None
    assert instance.request_bucket is instance.connection_bucket is instance.rules is None
    assert instance.loop_bucket is instance.mutation_bucket is None
    assert (instance.tolls, instance.other_tolls) == ({}, ())
    assert (instance.secured, instance.shadow) == (NOTHING, None)


# --- several routes ---------------------------------------------------------------------------------------------------

PUBLIC = Route("public", {1: Endpoint(("10.0.0.1", 9101), ("198.51.100.7", 443))})


def two_routes(**members):
    """The default one, and a public one with these members."""
    default = spec_of().routes[0]
    return replace(spec_of(), routes=(default, replace(PUBLIC, **members)))


def test_a_route_has_a_whitelist_of_its_own_beside_the_instances():
    instance = Instance(replace(two_routes(whitelist=("192.0.2.0/24", "10.0.0.0/8")), whitelist=("10.0.0.0/8",)))
    assert instance.admits(NEAR, "public")
    assert not instance.admits(FAR, "public")  # not in the instance's
    run_through(instance.apply(two_routes(whitelist=("192.0.2.0/24",))))
    assert instance.admits(NEAR, "default")
    assert not instance.admits(NEAR, "public")
    run_through(instance.apply(two_routes(whitelist=())))
    assert not instance.admits(NEAR, "public")


def test_a_routes_connections_are_closed_when_its_own_whitelist_shrinks_and_the_others_stay():
    instance = Instance(two_routes(whitelist=("0.0.0.0/0",)))
    kept, near, far = connect(instance, FAR), connect(instance, NEAR, "public"), connect(instance, FAR, "public")
    run_through(instance.apply(two_routes(whitelist=("10.0.0.0/8",))))
    assert (kept.is_open, near.is_open, far.is_open) == (True, True, False)


def test_a_routes_limits_are_asked_beside_the_instances():
    instance = Instance(two_routes(connections=2, connections_per_address=1))
    first = connect(instance, NEAR, "public")
    assert not instance.admits(NEAR, "public")  # one an address
    assert instance.admits(NEAR, "default")
    connect(instance, FAR, "public")
    assert not instance.admits("10.0.0.2", "public")  # two in all
    assert instance.admits("10.0.0.2", "default")
    instance.disconnected(first)
    assert instance.admits(NEAR, "public")


def test_a_route_of_no_connections_is_blocked_and_what_the_instance_has_counts_for_all_its_routes():
    assert not Instance(two_routes(connections=0)).admits(NEAR, "public")
    instance = Instance(replace(two_routes(), limits=spec_of(connections=1).limits))
    connect(instance, NEAR)
    assert not instance.admits(FAR, "public")


def test_nobody_gets_in_by_a_route_that_is_gone_or_closed_or_of_an_instance_that_is_shut():
    """A connection may take a while until it is admitted: by then its route need not be there."""
    instance = Instance(two_routes())
    assert not instance.admits(NEAR, "removed")
    client, other = connect(instance, NEAR, "public"), connect(instance, NEAR)
    run_through(instance.close_route("public"))
    assert (client.is_open, other.is_open) == (False, True)
    assert not instance.admits(NEAR, "public")
    assert instance.admits(NEAR, "default")
    run_through(instance.close_connections())
    assert not instance.admits(NEAR, "default")
    run_through(instance.apply(two_routes()))
    assert instance.admits(NEAR, "public")


def test_clients_of_one_route_are_never_told_the_addresses_of_another():
    instance = Instance(two_routes())
    assert instance.advertised("default", 1) == ADDRESS
    assert instance.advertised("public", 1) == ("198.51.100.7", 443)
    run_through(instance.apply(replace(two_routes(), routes=(two_routes().routes[0], replace(PUBLIC, endpoints={})))))
    assert instance.advertised("public", 1) is None


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


def test_who_came_by_a_route_that_wants_another_security_now_is_closed():
    instance = Instance(spec_of())
    client = connect(instance, NEAR)
    run_through(instance.apply(replace(spec_of(), generation=2)))
    assert client.is_open
    run_through(instance.apply(replace(spec_of(), routes=(replace(spec_of().routes[0], security="sasl_plaintext"),))))
    assert not client.is_open


def test_who_came_by_a_route_that_is_gone_is_closed():
    instance = Instance(spec_of())
    client = connect(instance, NEAR)
    run_through(instance.apply(replace(spec_of(), routes=())))
    assert not client.is_open
