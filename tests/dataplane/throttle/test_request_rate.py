"""The limit of an instance's requests: it holds whatever they ask and on however many connections, and says so (KIP-219)."""

import pytest

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response
from dataplane.protocol.messages.discovery import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from dataplane.protocol.messages.groups import HeartbeatRequest, LeaveGroupRequest
from quota.contracts.grant import Grant, Grants, InstanceGrant
from quota.contracts.rows import REQUEST, Row, Unit
from tests.dataplane.handlers.asking import Tenant, Wire
from tests.dataplane.throttle.test_throttle_rules import KIB, RuledCluster, batch, produces
from tests.simulation.cluster import INSTANCE

ROW = Row(INSTANCE, unit=Unit.REQUESTS).key
METADATA = MetadataRequest(topics=())
HEARTBEAT = HeartbeatRequest(group_id="readers", generation_id=1, member_id="nobody")


def cluster_with(requests_per_s):
    """Three brokers, of which each has a third."""
    cluster = RuledCluster()
    cluster.set_limits(requests_per_s=requests_per_s)
    return cluster


def introduced(cluster):
    """A connection of which the broker knows whose it is."""
    wire = Wire(Tenant(cluster))
    wire.send(ApiVersionsRequest(), 2)
    cluster.network.run_for(0.01)
    wire.answers.clear()
    return wire


def told_ms(wire, api, version):
    """What the last answer says."""
    return decode_response(APIS[api], version, wire.answers[-1])[1].throttle_time_ms


# --- how many ---------------------------------------------------------------------------------------------------------


def test_requests_of_every_kind_are_held_to_the_rate():
    cluster = cluster_with(30)
    wire = Wire(Tenant(cluster))
    for _ in range(25):
        wire.send(METADATA, 5)
        wire.send(FindCoordinatorRequest(key="readers", key_type=0), 2)
    cluster.network.run_for(2.95)
    assert len(wire.answers) == 31  # ten a second, and one that was saved up
    cluster.network.run_for(2.0)
    assert len(wire.answers) == 50


def test_another_connection_is_no_way_around_it():
    cluster = cluster_with(30)
    wires = [introduced(cluster) for _ in range(10)]
    for wire in wires:
        for _ in range(5):
            wire.send(METADATA, 5)
    cluster.network.run_for(1.95)
    assert sum(len(wire.answers) for wire in wires) == 21
    assert all(1 <= len(wire.answers) <= 4 for wire in wires)  # they take turns


def test_requests_of_known_shapes_count_as_well():
    cluster = cluster_with(30)
    assert cluster.seconds(produces(cluster, "orders", KIB, count=12)) == pytest.approx(1.05, abs=0.15)


def test_a_request_that_was_parked_for_another_reason_counts_once():
    cluster = cluster_with(30)
    cluster.set_limits(produce_bytes_per_s=30 * KIB)
    produces(cluster, "orders", 20 * KIB)()
    counted = bucket_of_leader(cluster).charged_bytes
    produces(cluster, "orders", KIB)()
    assert bucket_of_leader(cluster).charged_bytes == counted + REQUEST


def test_an_instance_without_the_limit_has_no_bucket_and_one_that_loses_it_none_any_more():
    cluster = cluster_with(3)
    produces(cluster, "orders", KIB, count=2)()
    cluster.set_limits(requests_per_s=None)
    assert all(broker.registry.get(INSTANCE).request_bucket is None for broker in cluster.brokers.values())
    assert cluster.seconds(produces(cluster, "orders", KIB, count=20)) < 0.5


def test_introductions_are_free():
    cluster = cluster_with(3)
    wire = Wire(Tenant(cluster))
    for _ in range(20):
        wire.send(ApiVersionsRequest(), 2)
    cluster.network.run_for(0.1)
    assert len(wire.answers) == 20
    assert told_ms(wire, ApiKey.API_VERSIONS, 2) == 0


def bucket_of_leader(cluster):
    leader = Tenant(cluster).partition("orders").state.leader_id
    return cluster.brokers[leader].registry.get(INSTANCE).request_bucket


# --- what the client is told ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "told"), [(5, 900), (1, 0)])
def test_the_answer_to_one_too_many_comes_at_once_and_says_how_long_to_wait(version, told):
    cluster = cluster_with(3)
    wire = Wire(Tenant(cluster))
    wire.send(METADATA, version)
    wire.send(METADATA, version)
    cluster.network.run_for(0.05)
    assert len(wire.answers) == 1
    assert told_ms(wire, ApiKey.METADATA, version) == pytest.approx(told, abs=10)  # version 1 has no place for it


def test_produce_and_fetch_say_it_too_the_first_time_and_when_their_shape_is_known():
    cluster = cluster_with(3)
    tenant = Tenant(cluster)
    for _ in range(3):
        answer = tenant.ask(tenant.produce_request(batch(KIB)), 9)
        assert answer.throttle_time_ms == pytest.approx(950, abs=60)


def test_nobody_is_told_to_wait_below_the_rate():
    cluster = cluster_with(300)
    tenant = Tenant(cluster)
    for _ in range(5):
        assert tenant.ask(tenant.produce_request(batch(KIB)), 9).throttle_time_ms == 0


# --- members of groups ------------------------------------------------------------------------------------------------


def test_a_heartbeat_is_never_parked_however_much_is_owed():
    cluster = cluster_with(3)
    busy = Wire(Tenant(cluster))
    for _ in range(30):
        busy.send(METADATA, 5)
    cluster.network.run_for(0.1)
    member = Wire(Tenant(cluster))
    member.send(HEARTBEAT, 3)
    cluster.network.run_for(0.1)
    assert len(member.answers) == 1
    assert told_ms(member, ApiKey.HEARTBEAT, 3) > 0


def test_a_members_other_requests_are_parked_for_half_a_session_at_most():
    cluster = cluster_with(3)
    busy = [introduced(cluster) for _ in range(20)]
    for wire in busy:
        wire.send(METADATA, 5)
    member = introduced(cluster)
    member.send(HEARTBEAT, 3)
    member.send(LeaveGroupRequest(group_id="readers", member_id="nobody"), 2)
    member.send(HEARTBEAT, 3)
    cluster.network.run_for(2.9)
    assert len(member.answers) == 1
    cluster.network.run_for(0.2)
    assert len(member.answers) == 3
    cluster.network.run_for(60)
    assert [len(wire.answers) for wire in busy] == [1] * 20  # the line went on behind it
    assert len(member.answers) == 3


# --- over the cluster -------------------------------------------------------------------------------------------------


def test_every_broker_with_a_listener_reports_requests_as_a_flow_that_it_has_a_third_of():
    cluster = cluster_with(30)
    produces(cluster, "orders", KIB, count=5)()
    facts = {broker: dict(room.facts())[ROW] for broker, room in cluster.brokers.items()}
    assert {(fact.leaders, fact.all_leaders, fact.storage_bytes) for fact in facts.values()} == {(1, 3, 0)}
    assert {room.agent.rate(ROW, "produce") for room in cluster.brokers.values()} == {10 * REQUEST}


def test_what_the_master_grants_is_in_force():
    cluster = cluster_with(30)
    grant = InstanceGrant(Grant(28 * REQUEST, "headroom"), Grant(None, "unlimited"), 0)
    for broker in cluster.brokers.values():
        broker.agent.apply(Grants(1, 1, 10_000, {ROW: grant}), cluster.now)
    assert cluster.seconds(produces(cluster, "orders", KIB, count=31)) == pytest.approx(1, abs=0.15)
