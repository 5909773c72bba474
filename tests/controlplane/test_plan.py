"""Whatever brokers, ports and ZooKeeper are like, step after step leads to brokers that serve every route that is wanted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.instances.plan import Advance, Allocate, Await, Observed, Publish, Replace, Settled, next_step
from controlplane.instances.spec import Bought, Listener, WantedRoute, spec_of
from quota.contracts.applied import AppliedInstance
from quota.contracts.instance import InstanceSpec, InstanceState, Route

BOUGHT = Bought(5, 10, 60, ["127.0.0.0/8"], {})
ROUTES = ("default", "r2", "r3", "r4", "r5")


def as_published(spec: InstanceSpec) -> InstanceSpec:
    return replace(spec, whitelists_of=spec.generation)


@dataclass
class World:
    """The row with its routes and ports, what stands in ZooKeeper, and what brokers have made of it."""

    routes: tuple[str, ...]
    live: tuple[int, ...]
    taken: frozenset[int]  # ports of other programs
    generation: int = 1
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    published: InstanceSpec | None = None
    given: int = 20_000

    @property
    def wanted(self) -> InstanceSpec:
        return spec_of(
            instance_id="ins-aaaabbbb",
            generation=self.generation,
            state=InstanceState.RUNNING,
            bought=BOUGHT,
            routes=[WantedRoute(Route(route, {})) for route in self.routes],
            listeners=[Listener(broker, "127.0.0.1", port, route) for (route, broker), port in self.ports.items()],
        )

    def observed(self) -> Observed:
        return Observed(self.published, {broker: self._applied(broker) for broker in self.live})

    def _applied(self, broker: int) -> AppliedInstance | None:
        if self.published is None:
            return None
        found = [
            f"route {route.id}: cannot listen on 127.0.0.1:{endpoint.bind[1]}: Address already in use"
            for route in self.published.routes
            if (endpoint := route.endpoints.get(broker)) is not None and endpoint.bind[1] in self.taken
        ]
        return AppliedInstance(self.published.generation, "; ".join(found) or None)

    def _port(self) -> int:
        self.given += 1
        return self.given

    def take(self, step: object) -> None:
        if isinstance(step, Allocate):
            for at in step.listeners:
                assert at not in self.ports, "nothing is given out twice"
                self.ports[at] = self._port()
            self.generation += 1
        elif isinstance(step, Advance):
            assert step.generation > self.generation
            self.generation = step.generation
        elif isinstance(step, Publish):
            assert self.published is None or self.generation > self.published.generation
            self.published = as_published(self.wanted)
        else:
            assert isinstance(step, Replace)
            assert self.ports[step.route, step.broker] == step.port
            assert step.port in self.taken, "a port that brokers have is left to them"
            self.ports[step.route, step.broker] = self._port()
            self.generation += 1

    def settle(self) -> int:
        """How many steps it takes."""
        for count in range(200):
            step = next_step(self.wanted, self.observed())
            if isinstance(step, Settled):
                return count
            self.take(step)
        raise AssertionError("it never settles")

    def check(self) -> None:
        assert self.published == as_published(self.wanted)
        assert {route.id for route in self.published.routes} == set(self.routes)
        bound = [endpoint.bind for route in self.published.routes for endpoint in route.endpoints.values()]
        assert len(set(bound)) == len(bound), "no two routes share a port"
        for route in self.published.routes:
            assert set(self.live) <= set(route.endpoints)
            assert not {route.endpoints[broker].bind[1] for broker in self.live} & self.taken


SETS_OF_ROUTES = st.lists(st.sampled_from(ROUTES), min_size=1, unique=True).map(tuple)
BROKERS = st.lists(st.integers(1, 4), min_size=1, unique=True).map(tuple)
TAKEN = st.frozensets(st.integers(20_001, 20_020), max_size=8)


@given(worlds=st.lists(st.tuples(SETS_OF_ROUTES, BROKERS), min_size=1, max_size=4), taken=TAKEN, lost=st.booleans())
def test_every_route_is_served_by_every_live_broker_in_the_end(worlds, taken, lost):
    """Routes come and go, brokers as well, and ZooKeeper may forget."""
    world = World(*worlds[0], taken=taken)
    world.settle()
    world.check()
    for routes, live in worlds[1:]:
        kept = {at: port for at, port in world.ports.items() if at[0] in routes}
        world.routes, world.live, world.generation = routes, live, world.generation + 1
        world.ports = dict(kept)
        if lost:
            world.published = None
        world.settle()
        world.check()
        assert {at: world.ports[at] for at, port in kept.items() if port not in taken} == {
            at: port for at, port in kept.items() if port not in taken
        }, "routes that stay keep their ports"
        assert isinstance(next_step(world.wanted, world.observed()), Settled)


@given(routes=SETS_OF_ROUTES, live=BROKERS)
def test_without_trouble_it_takes_two_steps(routes, live):
    assert World(routes, live, frozenset()).settle() == 2  # ports for all at once, and the specification


def test_a_route_that_cannot_be_served_is_waited_for_with_the_brokers_words_and_costs_no_port():
    world = World(("default", "r2"), (1,), frozenset())
    world.settle()
    problem = "route r2: this broker does not serve 'ssl'"
    step = next_step(world.wanted, Observed(world.published, {1: AppliedInstance(world.generation, problem)}))
    assert step == Await(f"broker 1: {problem}")


@pytest.mark.parametrize(
    "problem",
    [
        "route default: its certificate cannot be used: ValueError: 20001 is no rule",
        "route default: this broker does not serve 20001",
        "route default: see: cannot listen on 127.0.0.1:20001: Address already in use",
        "route default: cannot listen on 127.0.0.1:200011: Address already in use",
        "route default: cannot listen on 127.0.0.1:2000: Address already in use",
        "route r2: cannot listen on 127.0.0.1:20001: Address already in use",
    ],
)
def test_only_a_broker_that_cannot_listen_there_gives_back_a_port(problem):
    """A number in another sentence is no port: a tenant could write one into a rule, and take port after port."""
    world = World(("default", "r2"), (1,), frozenset())
    world.settle()
    assert world.ports["default", 1] == 20_001
    step = next_step(world.wanted, Observed(world.published, {1: AppliedInstance(world.generation, problem)}))
    assert step == Await(f"broker 1: {problem}")


@pytest.mark.parametrize("address", ["127.0.0.1:20001", "[::1]:20001", "broker-1.example.com:20001"])
def test_a_port_that_is_taken_is_replaced_whatever_the_host_is(address):
    world = World(("default", "r2"), (1,), frozenset())
    world.settle()
    problem = f"route r2: this broker does not serve 'ssl'; route default: cannot listen on {address}: Address in use"
    step = next_step(world.wanted, Observed(world.published, {1: AppliedInstance(world.generation, problem)}))
    assert step == Replace("default", 1, 20_001)
