"""Ports: one owner each, a rest between two owners, and an end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from controlplane.clusters import services
from controlplane.clusters.coordination import LiveBroker
from controlplane.clusters.models import PortAllocation
from controlplane.core.errors import CapacityExhausted

from .fakes import ManualClock


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
    clock.advance(7 * 24 * 3600 - 1)
    said = "no port is left on 127.0.0.1: of 20100-20102, 2 are held and 1 rest .* can be used again at 2025-03-08 00:00 UTC"
    with pytest.raises(CapacityExhausted, match=said):
        take(broker, "ins-d", clock)
    clock.advance(1)
    assert take(broker, "ins-d", clock) == 20100


def test_a_range_that_is_held_whole_says_so(broker, clock):
    for owner in ("ins-a", "ins-b", "ins-c"):
        take(broker, owner, clock)
    with pytest.raises(CapacityExhausted, match=r"of 20100-20102, 3 are held$"):
        take(broker, "ins-d", clock)


def test_an_installation_may_have_its_ports_rest_for_another_time(broker, clock, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, port_rest_s=10, port_range=(20100, 20100))
    take(broker, "ins-a", clock)
    services.ports_release(owner="ins-a", clock=clock)
    clock.advance(10)
    assert take(broker, "ins-b", clock) == 20100


def test_the_ports_of_one_route_are_given_back_alone(broker, clock):
    take(broker, "ins-a", clock)
    public = services.port_ensure(broker=broker, owner="ins-a", route="r2", clock=clock)
    assert services.ports_release(owner="ins-a", route="r2", clock=clock) == 1
    public.refresh_from_db()
    assert (public.state, public.owner, public.route) == ("released", "", "")
    assert take(broker, "ins-a", clock) == 20100


CALLS = st.one_of(
    st.tuples(st.just("take"), st.integers(0, 5)),
    st.tuples(st.just("release"), st.integers(0, 5)),
    st.tuples(st.just("block"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.integers(1, 4 * 24 * 3600)),
)


@given(calls=st.lists(CALLS, max_size=40))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_next_port_is_always_the_one_that_rested_longest_and_never_one_that_rested_too_little(broker, calls):
    """Against a model: the ports of the range with when each was let go; whoever was never used has rested for ever."""
    PortAllocation.objects.all().delete()
    clock, rest = ManualClock(), timedelta(days=7)
    held, let_go = {}, dict.fromkeys((20100, 20101, 20102))
    for name, number in calls:
        owner = f"ins-{number}"
        if name == "wait":
            clock.advance(number)
        elif name == "take" and owner not in held:
            rested = sorted(
                (port for port in let_go), key=lambda port: (let_go[port] or clock.time - 1000 * rest, port)
            )
            if rested and (let_go[rested[0]] is None or clock.time - let_go[rested[0]] >= rest):
                held[owner] = take(broker, owner, clock)
                assert held[owner] == rested[0]
                del let_go[rested[0]]
            else:
                with pytest.raises(CapacityExhausted):
                    take(broker, owner, clock)
        elif name == "take":
            assert take(broker, owner, clock) == held[owner]
        elif name == "release":
            assert services.ports_release(owner=owner, clock=clock) == (owner in held)
            if owner in held:
                let_go[held.pop(owner)] = clock.time
        elif owner in held:
            assert services.port_block(broker=broker, owner=owner, port=held[owner], clock=clock)
            let_go[held.pop(owner)] = clock.time
        assert sorted([*held.values(), *let_go]) == [20100, 20101, 20102]


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
