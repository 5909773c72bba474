"""Ports: one owner each, a rest between two owners, and an end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.clusters import services
from controlplane.clusters.coordination import LiveBroker
from controlplane.core.errors import CapacityExhausted


@pytest.fixture
def small_range(settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, port_range=(20100, 20102))


@pytest.fixture
def broker(db, small_range):
    live = [LiveBroker(1, "127.0.0.1", 19001)]
    return services.brokers_sync(cluster=services.cluster_ensure(), live=live)[0]


def take(broker, owner, clock):
    return services.port_ensure(broker=broker, owner=owner, route="default", clock=clock).port


def test_asking_again_gives_the_same_port(broker, clock):
    assert take(broker, "ins-a", clock) == take(broker, "ins-a", clock) == 20100
    assert take(broker, "ins-b", clock) == 20101


def test_a_released_port_rests_before_it_serves_another(broker, clock):
    take(broker, "ins-a", clock)
    services.ports_release(owner="ins-a", clock=clock)
    assert [take(broker, owner, clock) for owner in ("ins-b", "ins-c")] == [20101, 20102]
    with pytest.raises(CapacityExhausted, match="no port is left"):
        take(broker, "ins-d", clock)
    clock.advance(services.REST_S + 1)
    assert take(broker, "ins-d", clock) == 20100


def test_a_blocked_port_is_tried_again_after_a_while(broker, clock):
    take(broker, "ins-a", clock)
    assert services.port_block(broker=broker, owner="ins-a", port=20100, clock=clock)
    assert not services.port_block(broker=broker, owner="ins-a", port=20100, clock=clock)
    assert take(broker, "ins-a", clock) == 20101


def test_brokers_on_hosts_of_their_own_may_use_the_same_port(db, settings, clock):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, listen_host="")
    live = [LiveBroker(1, "10.0.0.1", 9092), LiveBroker(2, "10.0.0.2", 9092)]
    brokers = services.brokers_sync(cluster=services.cluster_ensure(), live=live)
    assert [take(broker, "ins-a", clock) for broker in brokers] == [20100, 20100]


def test_a_broker_that_moved_is_known_at_its_new_address(broker):
    moved = services.brokers_sync(cluster=broker.cluster, live=[LiveBroker(1, "127.0.0.9", 19001, "rack-b")])
    assert [(row.host, row.rack) for row in moved] == [("127.0.0.9", "rack-b")]
    assert services.brokers_sync(cluster=broker.cluster, live=[]) == moved
