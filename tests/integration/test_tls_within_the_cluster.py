"""A cluster whose processes speak TLS to each other: what it does is what it does without, and nobody else gets in."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from cryptography.x509.oid import NameOID

from controlplane.clusters import coordination, master, zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import MasterUnavailable
from controlplane.kafka import client, groups
from dataplane.protocol.messages.control import AlterPartitionRequest, ControlledShutdownRequest
from dataplane.protocol.messages.discovery import ApiVersionsRequest, MetadataRequest
from quota.contracts.identity import CONTROL_PLANE, Keys
from quota.contracts.internal_security import InternalSecurity
from quota.contracts.usage import USAGE_TOPIC
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from quota.tls.contexts import client_context
from quota.tls.material import read_material
from tests.integration.clients import Sender, consumer, create_topic, produce, read_all, take
from tests.support.certificates import Authority, name
from tests.support.cluster import ProcessCluster
from tests.support.inside import put, read
from tests.support.processes import HOST, SECRET
from tests.support.waiting import wait_for
from tests.support.wire import Wire

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
CLUSTER = ClusterAddress(0, "")


@pytest.fixture(scope="module")
def running_cluster(tmp_path_factory):
    settings = {"group_min_session_timeout_ms": 1000, "offsets_topic_num_partitions": 4, "usage_emit_interval_ms": 500}
    with ProcessCluster(tmp_path_factory.mktemp("secured"), settings, security=InternalSecurity.SSL) as cluster:
        cluster.make_coordinators()
        yield cluster


def inside(cluster, broker=1):
    return HOST, cluster.brokers[broker].ports["internal"]


def bootstrap(cluster):
    return ",".join(f"{HOST}:{broker.ports['internal']}" for broker in cluster.brokers.values())


def test_records_are_replicated_and_groups_read_on_while_a_broker_dies(cluster, tenant):
    create_topic(tenant, "orders", 6, min_insync_replicas="2")
    sent = produce(tenant, "orders", [b"a%d" % n for n in range(500)])
    cluster.brokers[2].kill()
    with consumer(tenant, "readers") as reader:
        reader.subscribe(["orders"])
        assert len(take(reader, 500)) == 500
        sent += produce(tenant, "orders", [b"b%d" % n for n in range(500)])
        assert len(take(reader, 500)) == 500
        reader.commit(asynchronous=False)
    cluster.heal()
    found = [value for values in read_all(tenant, "orders").values() for value in values]
    assert sorted(found) == sorted(value for _, _, value in sent)


def test_masters_hear_of_all_brokers_and_are_read_by_who_shows_a_certificate(cluster, tenant):
    wait_for(lambda: tenant.id in json.dumps(cluster.master_says("/v1/instances")), 20, "the instance at the master")
    assert cluster.read("/sluice/master")["http"].startswith("https://")
    port = cluster.masters[cluster.master()].ports["http"]
    trusting = ssl.create_default_context(cadata=cluster.certificates.material("operator").authorities)
    bearer = {"Authorization": Keys(SECRET).bearer(CONTROL_PLANE)}
    for context, headers, status in [
        (cluster.certificates.context("controlplane"), {}, 200),
        (trusting, bearer, 200),  # Prometheus may have nothing but a token
        (trusting, {}, 401),
        (cluster.certificates.context("metering"), {}, 401),
        (cluster.certificates.context("broker-1"), {}, 401),
    ]:
        assert asked(f"https://{HOST}:{port}/v1/brokers", context, headers) == status
    with pytest.raises(OSError):
        asked(f"http://{HOST}:{port}/v1/brokers", None, bearer)


def asked(url, context, headers):
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=10, context=context
        ) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


OTHERS = Authority("CA of an instance")


def stranger(cluster, folder, issued):
    """A context of somebody who trusts the cluster, and whom it should not trust."""
    put(folder, issued, cluster.certificates.material("broker-1").authorities)
    return client_context(read_material(str(folder), read), checks_host=True)


STRANGERS = {
    "another authority's broker": lambda: OTHERS.issue("broker-1", [HOST]),
    "a tenant's client": lambda: OTHERS.issue(name("me", (NameOID.ORGANIZATION_NAME, "Tenant"))),
    "one that is over": lambda: OTHERS.issue("operator", from_days=-3, to_days=-1),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_a_strangers_certificate_lets_nobody_in(who, cluster, tmp_path):
    context = stranger(cluster, tmp_path, STRANGERS[who]())
    with pytest.raises((ssl.SSLError, ConnectionError)), Wire(inside(cluster), context=context) as wire:
        wire.call(ApiVersionsRequest(), 0)
    report = HOST, cluster.masters[cluster.master()].ports["report"]
    with pytest.raises((ssl.SSLError, ConnectionError)), Wire(report, context=context) as wire:
        wire.call(ApiVersionsRequest(), 0)  # whatever is said: nobody reads it


def test_the_right_authority_and_nobodys_name_lets_nobody_in(cluster, tmp_path):
    authority = cluster.certificates.store._pair(("tls.crt", "tls.key"))
    context = stranger(cluster, tmp_path, signed_by(authority, "somebody"))

    def said():
        with pytest.raises((ssl.SSLError, ConnectionError)), Wire(inside(cluster), context=context) as wire:
            wire.call(ApiVersionsRequest(), 0)
        return "somebody is no identity of the cluster" in cluster.brokers[1].log.read_text()

    wait_for(said, 30, "the broker's word, which it has once in ten seconds for all that it refuses")


def signed_by(authority, subject):
    """What the cluster's own authority would issue to somebody by another tool."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    made = Authority()
    made.certificate = x509.load_pem_x509_certificate(authority.certificate.encode())
    made.key = load_pem_private_key(authority.key.encode(), None)
    return made.issue(subject)


def test_without_a_certificate_or_without_tls_nobody_gets_in(cluster):
    trusting = ssl.create_default_context(cadata=cluster.certificates.material("operator").authorities)
    with pytest.raises((ssl.SSLError, ConnectionError)), Wire(inside(cluster), context=trusting) as wire:
        wire.call(ApiVersionsRequest(), 0)
    with Wire(inside(cluster)) as wire:
        wire.send(ApiVersionsRequest(), 0)
        assert wire.is_closed()


def test_a_certificate_is_who_one_is_whatever_one_says(cluster):
    for said in (1, 3):
        for request, version in [
            (AlterPartitionRequest(broker_id=said), 3),
            (ControlledShutdownRequest(broker_id=said), 3),
        ]:
            with cluster.wire(cluster.brokers[1], "broker-2") as wire:
                wire.send(request, version)
                assert wire.is_closed()
    for shown, said in [("broker-2", "broker-1"), ("metering", "operator")]:
        with cluster.wire(cluster.brokers[1], shown) as wire, pytest.raises(ConnectionError):
            wire.log_in(SECRET, said)


def test_metering_reads_usage_by_its_certificate_and_nothing_else(cluster, tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"x"])
    wait_for(lambda: cluster.read(f"/brokers/topics/{USAGE_TOPIC}") is not None, 30, "the usage topic")
    with cluster.wire(cluster.brokers[1], "metering") as wire:
        assert [topic.name for topic in wire.call(MetadataRequest(topics=None), 12).topics] == [USAGE_TOPIC]
    reader = Consumer({
        "bootstrap.servers": bootstrap(cluster), "group.id": "none", "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "log_level": 0, **cluster.certificates.librdkafka("metering"),
    })  # fmt: skip
    try:
        # librdkafka asks for the coordinator of its group at once. Metering may not, so the broker ends that connection, now
        # and then with this request on it.
        partitions: dict[int, Any] = {}
        wait_for(
            lambda: partitions.update(reader.list_topics(USAGE_TOPIC, 5).topics[USAGE_TOPIC].partitions) or partitions,
            30,
            "the partitions of the usage topic",
        )
        reader.assign([TopicPartition(USAGE_TOPIC, number, 0) for number in partitions])
        found: list[Any] = []
        wait_for(lambda: found.extend(reader.consume(10, 0.5)) or found, 30, "a usage record")
    finally:
        reader.close()


def test_kafkas_client_does_not_believe_who_may_not_be_a_server(cluster):
    """The console's and the control plane's: what stands at an address has to be a broker, not merely of the cluster."""
    folder = cluster.certificates.folder("metering")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    met = []

    def serve(listening):
        accepted, _ = listening.accept()
        accepted.settimeout(10)
        try:
            context.wrap_socket(accepted, server_side=True).close()
        except OSError as error:
            met.append(str(error))
            accepted.close()

    with socket.create_server((HOST, 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        address = f"{HOST}:{listening.getsockname()[1]}"
        asks = AdminClient(
            {"bootstrap.servers": address, "log_level": 0, **cluster.certificates.librdkafka("controlplane")}
        )
        with pytest.raises(KafkaException):
            asks.list_topics(timeout=2)
        thread.join(10)
    assert len(met) == 1


@pytest.fixture
def control_plane(cluster, monkeypatch, settings):
    """A process of the control plane as its environment has it."""
    from dataclasses import replace

    folder = cluster.certificates.folder("controlplane")
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT,
        cluster_security=InternalSecurity.SSL,
        cluster_tls=folder,
        secrets_file=Path("/nowhere"),
    )
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    tree = zookeeper.KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    tree.wait_connected(30)
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: tree)
    client._clients.clear()
    yield settings
    client._clients.clear()
    tree.close()


def test_the_control_plane_reaches_brokers_coordinators_and_masters(cluster, tenant, control_plane):
    door = client.admin(CLUSTER)
    topic = f"{tenant.key}.made"
    door.create(topic, partitions=2, replication_factor=3, config={})
    wait_for(lambda: door.layout(topic) is not None, 30, "the topic")
    assert client.admin(CLUSTER) is door
    produce(tenant, "made", [b"x"] * 10)
    with consumer(tenant, "readers") as reader:
        reader.subscribe(["made"])
        take(reader, 10)
        reader.commit(asynchronous=False)
        (group,) = groups.read(CLUSTER, tenant.id, ["readers"])
        assert sum(group.committed.values()) == 10
        (member,) = group.described.members
        groups.remove(CLUSTER, tenant.id, "readers", member.id)
    wait_for(lambda: master.short(CLUSTER, [tenant.id]), 20, "the instance at the master")
    assert isinstance(door.who, Identification)
    assert door.who.credential == ""


def test_in_tls_only_the_control_plane_says_nothing_to_a_master_without(cluster, control_plane, monkeypatch):
    found = coordination.master(zookeeper.tree(CLUSTER))
    with pytest.raises(MasterUnavailable, match="speaks no TLS"):
        master.throttled(found.http.replace("https", "http"), 0)


def test_the_authority_is_replaced_while_records_flow_and_nobody_notices(cluster, tenant):
    create_topic(tenant, "flow", 6, min_insync_replicas="2")
    store, servers = cluster.certificates.store, [*cluster.brokers.values(), *cluster.masters.values()]

    def times_read(server):
        return server.log.read_text(errors="replace").count("is read again")

    def everywhere(step):
        before = {server.name: times_read(server) for server in servers}
        step()
        wait_for(lambda: all(times_read(s) > before[s.name] for s in servers), 40, "everybody to have read the files")

    sender, done = Sender(tenant, linger_ms=5, enable_idempotence=True), threading.Event()
    sent = 0

    def flow():
        nonlocal sent
        while not done.wait(0.005):
            sender.send("flow", b"%d" % sent)
            sent += 1

    flowing = threading.Thread(target=flow)
    flowing.start()
    try:
        everywhere(lambda: store.replace("the next CA"))
        everywhere(store.renew)
        cluster.brokers[3].stop()  # those that go and come shake hands with what is new
        cluster.restart(3)
        everywhere(store.forget)
        cluster.brokers[1].stop()
        cluster.restart(1)
        wait_for(lambda: not cluster.behind(), 60, "all replicas to be in sync")
    finally:
        done.set()
        flowing.join(10)
    sender.flush()
    cluster.heal()
    assert sender.refused == []
    assert len(sender.acknowledged) == sent
    found = [value for values in read_all(tenant, "flow").values() for value in values]
    assert sorted(found) == sorted(b"%d" % number for number in range(sent))
    with cluster.wire(cluster.brokers[2]) as wire:
        shown = wire.socket.getpeercert()
    assert shown["issuer"] == ((("commonName", "the next CA"),),)
