"""Routes with PROXY protocol, as a registry opens them: a client's own address is judged, a balancer's is not."""

from dataclasses import replace

import pytest

from dataplane.tenancy.proxies import Proxies
from tests.dataplane.network.proxied import v1
from tests.dataplane.tenancy.test_registry import BROKER, HOST, INSTANCE, World, spec_of

BALANCER, INSIDE, OUTSIDE = "10.77.0.1", "10.1.0.5", "10.2.0.5"


class Speaker:
    """A peer that says something first."""

    def __init__(self, loop, said, port=9100):
        self.gone, self.said = None, said
        loop.connect(HOST, port, self.open, pytest.fail)

    def open(self, connection):
        connection.send(self.said)
        return self

    def frame(self, frame):
        pass

    def closed(self, reason):
        self.gone = reason


@pytest.fixture
def world():
    made = World(Proxies((f"{BALANCER}/32",)))
    made.write(proxied(1), new=True)
    made.start()
    return made


def proxied(generation, *, proxy_protocol=True, whitelist=("10.1.0.0/16",)):
    spec = spec_of(generation, whitelist=whitelist)
    return replace(spec, routes=(replace(spec.routes[0], proxy_protocol=proxy_protocol),))


def says(world, *parts, source=BALANCER):
    peer = Speaker(world.network.loop(source), parts)
    world.network.run_for(0.1)
    return peer


def peers(world):
    return [connection.session.peer for connection in world.registry.get(INSTANCE).connections]


def test_the_client_that_a_header_names_is_judged(world):
    assert says(world, v1(INSIDE)).gone is None
    assert says(world, v1(OUTSIDE)).gone is not None
    assert peers(world) == [INSIDE]


def test_a_header_of_somebody_else_is_not_believed(world):
    assert says(world, v1(INSIDE), source=INSIDE).gone is not None
    assert says(world, v1(INSIDE), source=OUTSIDE).gone is not None
    assert peers(world) == []


def test_limits_of_an_address_count_the_clients(world):
    spec = proxied(2)
    world.write(replace(spec, limits=replace(spec.limits, connections_per_address=1)))
    assert says(world, v1("10.1.0.1")).gone is None
    assert says(world, v1("10.1.0.2")).gone is None
    assert says(world, v1("10.1.0.1")).gone is not None


def test_a_narrower_whitelist_closes_the_clients_that_it_leaves_out(world):
    one, other = says(world, v1("10.1.1.1")), says(world, v1("10.1.2.1"))
    world.write(proxied(2, whitelist=("10.1.1.0/24",)))
    assert (one.gone, other.gone is not None) == (None, True)


def test_turned_on_or_off_the_route_is_opened_anew_and_its_connections_are_closed(world):
    through = says(world, v1(INSIDE))
    world.write(proxied(2, proxy_protocol=False))
    assert through.gone is not None
    direct = says(world, source=INSIDE)
    assert direct.gone is None
    assert peers(world)[-1] == INSIDE
    world.write(proxied(3))
    assert direct.gone is not None
    assert says(world, source=INSIDE).gone is not None
    assert says(world, v1(INSIDE)).gone is None


def test_who_says_nothing_has_five_seconds(world):
    silent = says(world)
    assert silent.gone is None
    world.network.run_for(5.1)
    assert silent.gone is not None


def test_a_broker_without_proxies_opens_the_route_to_nobody():
    world = World()
    world.write(proxied(1, whitelist=("0.0.0.0/0",)), new=True)
    world.start()
    assert says(world, v1(INSIDE)).gone is not None
    assert BROKER in world.registry.get(INSTANCE).route("default").endpoints
    assert peers(world) == []
