"""OUT_OF_ORDER_SEQUENCE_NUMBER ends an idempotent producer: only who is the leader for sure may say so."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch
from tests.dataplane.handlers.asking import Tenant
from tests.simulation.cluster import SimulatedCluster


def numbered(sequence: int) -> bytearray:
    return build_batch([Record(b"k", b"v")], now_ms=1, producer_id=7, producer_epoch=0, base_sequence=sequence)


@pytest.fixture
def tenant() -> Tenant:
    cluster = SimulatedCluster(seed=5)
    cluster.until(cluster.up)
    cluster.create_topic("orders", 1)
    tenant = Tenant(cluster)
    assert tenant.produce(9, numbered(0)).base_offset == 0
    return tenant


@pytest.mark.parametrize("acks", [1, -1])
def test_a_leader_that_is_followed_says_so(tenant, acks):
    before = tenant.cluster.network.clock.seconds
    assert tenant.produce(9, numbered(5), acks=acks).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert tenant.cluster.network.clock.seconds - before < 0.1
    assert tenant.produce(9, numbered(1)).base_offset == 1


def test_a_leader_that_hears_from_nobody_has_the_producer_ask_again(tenant):
    leader = tenant.partition().state.leader_id
    hosts = {broker: tenant.cluster.host(broker) for broker in tenant.cluster.brokers}
    for broker, host in hosts.items():
        if broker != leader:
            tenant.cluster.network.cut(hosts[leader], host)
    refused = tenant.produce(9, numbered(5))
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.base_offset == -1
