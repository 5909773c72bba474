"""A fetch is no way around the boundary between tenants: topics of others by their ids, and what only replicas read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import fetch
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.simulation.cluster import SETTINGS, SimulatedCluster

OFFSETS_TOPIC = "__consumer_offsets"


@pytest.fixture(scope="module")
def cluster():
    """With a topic of the tenant's, and the cluster's own, which has the offsets of all tenants."""
    made = SimulatedCluster(
        seed=11,
        brokers=1,
        settings=replace(SETTINGS, offsets_topic_replication_factor=1, transaction_state_log_replication_factor=1),
    )
    made.until(made.up)
    made.until(lambda: made.brokers[1].controller.is_active)
    request = CreateTopicsRequest((CreatableTopic("orders", 1, 1, (), ()),), 5_000)
    answer = made.client.call(1, request, 5)
    made.until(lambda: answer.done)
    made.run(made.client.commit("readers", "orders", 0, 0, [1]))
    metadata = made.brokers[1].metadata
    made.until(lambda: metadata.has_topic(OFFSETS_TOPIC) and metadata.has_topic("simulate.orders"))
    return made


def asked(cluster, request, version):
    """The answer; None: the connection was closed."""
    answer = cluster.client.call(1, request, version)
    cluster.until(lambda: answer.done, 30)
    return answer.result()


def fetching(topic, **members):
    row = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topics = (fetch.FetchTopic(topic_id=topic, partitions=(row,)),)
    return fetch.FetchRequest(**{"replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "topics": topics, **members})


@pytest.mark.parametrize("version", [13, 17])
def test_a_topic_of_others_by_its_id(cluster, version):
    """As unknown as one that was never given; what is one's own is there."""
    metadata = cluster.brokers[1].metadata
    codes = []
    for name in ("simulate.orders", OFFSETS_TOPIC):
        answer = asked(cluster, fetching(metadata.topic_id(name)), version)
        codes.append(answer.error_code or answer.responses[0].partitions[0].error_code)
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize("version", [13, 15])
def test_a_tenant_is_no_replica(cluster, version):
    """Whoever says that he is one has his connection closed: followers read beyond the high watermark."""
    metadata = cluster.brokers[1].metadata
    mine = metadata.topic_id("simulate.orders")
    claim = {"replica_state": fetch.ReplicaState(replica_id=2)} if version >= 15 else {"replica_id": 2}
    assert asked(cluster, fetching(mine, **claim), version) is None
    assert asked(cluster, fetching(mine), version) is not None
