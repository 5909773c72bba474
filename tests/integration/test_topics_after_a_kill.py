"""A topic asked of the control plane in the moment in which the controller is killed: made, once, and nobody has to ask again."""

from __future__ import annotations

import time

import pytest
from django.conf import settings

from controlplane.clusters import coordination
from controlplane.clusters.address import ClusterAddress
from controlplane.core.errors import AlreadyExists
from controlplane.kafka import client, patience, running, topics
from quota.contracts.identity import Keys
from tests.support.processes import HOST, SECRET
from tests.support.waiting import promised

ADDRESS = ClusterAddress(1, "")
pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture
def doors(cluster, monkeypatch):
    """The control plane's client of the brokers that are registered at the moment, with no ZooKeeper but the cluster's own."""
    monkeypatch.setattr(
        running.coordination, "live_brokers", lambda _tree: [_broker(cluster, n) for n in cluster.registered()]
    )
    monkeypatch.setattr(running.zookeeper, "tree", lambda _cluster: None)
    monkeypatch.setattr(type(settings.ENVIRONMENT), "keys", lambda _environment: Keys(SECRET))
    yield
    client._clients.clear()


def _broker(cluster, number):
    return coordination.LiveBroker(number, HOST, cluster.brokers[number].ports["internal"])


@pytest.mark.parametrize("pause_s", [0.0, 1.0])
def test_a_topic_is_made_right_after_the_controller_was_killed(cluster, tenant, doors, pause_s):
    before = cluster.controller()
    topics.create(ADDRESS, tenant.id, "before", partitions=1, replication_factor=2, config={})
    began = time.monotonic()
    cluster.brokers[before].kill()
    time.sleep(pause_s)
    for name in ("first", "second"):
        topics.create(ADDRESS, tenant.id, name, partitions=2, replication_factor=2, config={"retention.ms": "1000"})
        layout = topics.get(ADDRESS, tenant.id, name).layout
        assert [len(partition.replicas) for partition in layout] == [2, 2]
        assert topics.config(ADDRESS, tenant.id, name) == {"retention.ms": "1000"}
        with pytest.raises(AlreadyExists):
            topics.create(ADDRESS, tenant.id, name, partitions=2, replication_factor=2, config={})
    assert time.monotonic() - began < promised(patience.PATIENCE_S + 10)
    assert cluster.controller() != before
