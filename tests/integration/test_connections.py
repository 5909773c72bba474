"""The control plane's question about connections, against real brokers and real clients."""

from __future__ import annotations

import socket

import pytest

from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.kafka import connection_door, connections
from quota.contracts.identity import credential
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.clients import consumer, create_topic, produce, take
from tests.support.processes import HOST, SECRET
from tests.support.waiting import wait_for

pytestmark = pytest.mark.integration

CLUSTER = ClusterAddress(0, "")
VALUE = b"v" * 10_000


@pytest.fixture(autouse=True)
def door(cluster, monkeypatch, patient_doors):
    """As a process of the control plane has it."""
    who = Identification(credential(SECRET, "controlplane"))
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    tree = zookeeper.KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    tree.wait_connected(30)
    monkeypatch.setattr(connection_door, "to_brokers", lambda: who)
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: tree)
    yield
    tree.close()


def everything(instance_id, topic=None):
    told = connections.read(CLUSTER, instance_id, most_connections=100, most_talkers=100, topic=topic)
    assert told.missing == ()
    return told.answers.values()


def test_a_real_client_is_seen_with_its_software_and_what_it_moves(tenant, new_tenant):
    create_topic(tenant, "orders", 3)
    produce(tenant, "orders", [VALUE] * 30)
    with consumer(tenant, "readers") as reader:
        reader.subscribe(["orders"])
        assert len(take(reader, 30)) == 30
        rows = [row for answer in everything(tenant.id) for row in answer.connections]
        assert {row.address for row in rows} == {HOST}
        assert "confluent-kafka-python" in {row.software_name for row in rows}
        assert all(row.software_version for row in rows if row.software_name)
        assert sum(row.sent_bytes for row in rows) > 30 * len(VALUE)
    talkers = [row for answer in everything(tenant.id, "orders") for row in answer.talkers]
    assert {row.topic for row in talkers} == {"orders"}
    assert 30 * len(VALUE) < sum(row.produced_bytes for row in talkers) < 40 * len(VALUE)
    assert sum(row.consumed_bytes for row in talkers) > 30 * len(VALUE)
    assert not [row for answer in everything(new_tenant().id) for row in (*answer.connections, *answer.talkers)]


def test_a_client_that_speaks_tls_on_a_port_without_it_is_told(tenant):
    host, _, port = tenant.bootstrap.partition(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as sock:
        sock.sendall(bytes.fromhex("160301020001000000"))
        assert sock.recv(1) == b""

    def told():
        return [(row.address, row.reason) for answer in everything(tenant.id) for row in answer.refused]

    wait_for(lambda: told() == [(HOST, "tls_in_clear")], 30, "the broker to tell")
