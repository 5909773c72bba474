"""Several ways into one instance, with real brokers and clients: opened and removed while others go on, and one that ends."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from dataplane.protocol.messages.discovery import ApiVersionsRequest
from quota.contracts.instance import Endpoint, Route
from tests.integration.clients import Sender, admin, create_topic, read_all
from tests.support.ports import free_port
from tests.support.processes import HOST
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire, answers

if TYPE_CHECKING:
    from tests.support.specs import Tenant

pytestmark = pytest.mark.integration
LASTS_S = 8  # a route that is to end: so long, that the end is known everywhere before it comes
BROKERS = (1, 2, 3)


def route(name: str, **members: object) -> Route:
    endpoints = {broker: (HOST, free_port()) for broker in BROKERS}
    return Route(name, {broker: Endpoint(at, at) for broker, at in endpoints.items()}, **members)  # type: ignore[arg-type]


@dataclass
class Way:
    """What clients of an instance have of it that come by one route."""

    tenant: Tenant
    route: Route

    @property
    def key(self) -> str:
        return self.tenant.key

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        return {broker: endpoint.advertised for broker, endpoint in self.route.endpoints.items()}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses.values())


@pytest.fixture
def ways(new_tenant):
    """An instance with three routes."""
    routes = (route("default"), route("r2"), route("r3"))
    tenant = new_tenant(routes=routes)
    create_topic(tenant, "orders", partitions=6)
    return [Way(tenant, each) for each in routes]


def test_clients_are_told_the_addresses_of_the_route_that_they_came_by(ways):
    for way in ways:
        told = {(broker.host, broker.port) for broker in admin(way).list_topics(timeout=10).brokers.values()}
        assert told == set(way.addresses.values())


def test_one_is_removed_while_clients_of_the_others_work(ways, cluster):
    first, removed, third = ways
    with Wire(first.addresses[1]) as kept, Wire(third.addresses[2]) as also_kept, Wire(removed.addresses[1]) as cut_off:
        for wire in (kept, also_kept, cut_off):
            assert wire.call(ApiVersionsRequest(), 0).error_code == 0
        senders = [Sender(first), Sender(third)]
        for number in range(400):
            for at, sender in enumerate(senders):
                sender.send("orders", f"{at} {number}".encode())
            if number == 100:
                cluster.specs.change(first.tenant, routes=(first.route, third.route))
            time.sleep(0.002)
        for sender in senders:
            sender.flush()
            assert not sender.refused
        assert cut_off.is_closed()
        assert not answers(removed.addresses[1], HOST)
        assert kept.call(ApiVersionsRequest(), 0).error_code == also_kept.call(ApiVersionsRequest(), 0).error_code == 0
    records = [value for values in read_all(third, "orders").values() for value in values]
    assert sorted(records) == sorted(f"{at} {number}".encode() for at in (0, 1) for number in range(400))


def test_one_is_added_while_clients_of_the_others_work(ways, cluster):
    first = ways[0]
    with Wire(first.addresses[1]) as kept:
        assert kept.call(ApiVersionsRequest(), 0).error_code == 0
        new = Way(first.tenant, route("r4"))
        cluster.specs.change(first.tenant, routes=(*first.tenant.spec.routes, new.route))
        assert all(answers(address, HOST) for address in new.addresses.values())
        assert kept.call(ApiVersionsRequest(), 0).error_code == 0


def test_one_closes_when_its_end_comes_and_opens_where_the_end_is_moved(ways, cluster):
    first, ending, third = ways
    with Wire(first.addresses[1]) as kept, Wire(ending.addresses[1]) as cut_off:
        lasts_s = promised(LASTS_S)
        ends_ms = round((time.time() + lasts_s) * 1000)
        closing = replace(ending.route, closes_at_ms=ends_ms)
        cluster.specs.change(first.tenant, routes=(first.route, closing, third.route))
        assert cut_off.call(ApiVersionsRequest(), 0).error_code == 0  # the end is told, and not there yet
        wait_for(lambda: not answers(ending.addresses[1], HOST), lasts_s + promised(2), "the route to close")
        assert time.time() * 1000 >= ends_ms
        assert cut_off.is_closed()
        assert kept.call(ApiVersionsRequest(), 0).error_code == 0
    later = replace(closing, closes_at_ms=ends_ms + 3_600_000)
    cluster.specs.change(first.tenant, routes=(first.route, later, third.route))
    assert all(answers(address, HOST) for address in ending.addresses.values())


def test_a_broker_that_starts_again_opens_the_routes_that_have_not_ended(ways, cluster):
    first, ended, third = ways
    over = replace(ended.route, closes_at_ms=round(time.time() * 1000) - 1)
    cluster.specs.change(first.tenant, routes=(first.route, over, third.route))
    cluster.brokers[1].kill()
    cluster.heal()
    wait_for(lambda: answers(first.addresses[1], HOST) and answers(third.addresses[1], HOST), 30, "its routes")
    assert not answers(ended.addresses[1], HOST)


def test_a_route_has_a_whitelist_and_a_limit_of_its_own(ways, cluster):
    first, narrow, third = ways
    with Wire(narrow.addresses[1]) as cut_off, Wire(first.addresses[1]) as kept:
        assert cut_off.call(ApiVersionsRequest(), 0).error_code == 0
        routes = (first.route, replace(narrow.route, whitelist=("10.0.0.0/8",)), replace(third.route, connections=1))
        cluster.specs.change(first.tenant, routes=routes)
        assert cut_off.is_closed()
        assert kept.call(ApiVersionsRequest(), 0).error_code == 0
    assert not answers(narrow.addresses[2], HOST)
    with Wire(third.addresses[2]) as only:
        assert only.call(ApiVersionsRequest(), 0).error_code == 0
        assert not answers(third.addresses[2], HOST)
        assert answers(first.addresses[2], HOST)
