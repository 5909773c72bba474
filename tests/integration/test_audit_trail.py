"""The control plane reads what real brokers have written to an instance's audit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from controlplane.access import trail
from controlplane.access.trail import AuditFilter
from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.kafka import client, group_door
from quota.contracts.audit import AuditKind
from quota.contracts.identity import credential
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.clients import Sender, create_topic
from tests.integration.test_acls import create
from tests.support.processes import HOST, SECRET
from tests.support.waiting import promised, wait_for

pytestmark = pytest.mark.integration

CLUSTER = ClusterAddress(0, "")


def acl(operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:*", "*", operation, permission)


ALLOW, DENY = acl(AclOperation.ALL, AclPermissionType.ALLOW), acl(AclOperation.WRITE, AclPermissionType.DENY)


@pytest.fixture
def read(cluster, monkeypatch, patient_doors):
    """As a process of the control plane reads, but for its database."""
    bootstrap = ",".join(f"{HOST}:{broker.ports['internal']}" for broker in cluster.brokers.values())
    asks = client.KafkaAdmin(bootstrap, Identification(credential(SECRET, "controlplane")))
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    tree = zookeeper.KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    tree.wait_connected(30)
    monkeypatch.setattr(client, "admin", lambda _cluster: asks)
    monkeypatch.setattr(group_door, "door", lambda _cluster: group_door.KafkaGroups(CLUSTER, asks))
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: tree)

    def page(tenant, **asked):
        known = SimpleNamespace(id=tenant.id, config={"audit": True}, cluster=SimpleNamespace(address=CLUSTER))
        monkeypatch.setattr(trail, "instance_get", lambda **_: known)
        members = {name: asked.pop(name) for name in ("before", "most") if name in asked}
        return trail.audit_page(organisation=None, instance_id=tenant.id, wanted=AuditFilter(**asked), **members)

    yield page
    tree.close()


def refused_by(tenant):
    sender = Sender(tenant, message_timeout_ms=20_000)
    sender.send("orders", b"x")
    sender.flush()
    return [error.code() for error, _ in sender.refused]


def test_a_produce_that_was_denied_is_found_with_the_rule_that_denied_it(new_tenant, read):
    tenant = new_tenant(audit=True)
    create_topic(tenant, "orders")
    create(tenant, ALLOW, DENY)
    wait_for(
        lambda: refused_by(tenant) == [KafkaError.TOPIC_AUTHORIZATION_FAILED], promised(2), "the ACL to be in force"
    )
    denials = {"kind": AuditKind.DENIAL, "principal": "ANONYMOUS"}
    wait_for(lambda: bool(read(tenant, **denials).records), 20, "the denial to be written")
    record = read(tenant, **denials).records[-1]
    assert (record.outcome, record.operation, record.resource, record.source) == (
        "TOPIC_AUTHORIZATION_FAILED",
        "WRITE",
        "TOPIC:orders",
        "127.0.0.1",
    )
    assert record.reason == "an ACL denies WRITE on TOPIC orders to User:* from everywhere"
    created = read(tenant, kind=AuditKind.REQUEST)
    assert {"CREATE_TOPICS", "CREATE_ACLS"} <= {each.api for each in created.records}
    everything = read(tenant)
    newest, rest = read(tenant, most=1), read(tenant, most=200, before=everything.looked_at - 1)
    assert newest.looked_at == 1
    assert len(rest.records) == everything.looked_at - 1
    later = datetime.now(UTC) + timedelta(hours=1)
    assert read(tenant, since=later).records == []
    assert len(read(tenant, since=later - timedelta(hours=2), until=later, most=200).records) >= len(everything.records)


def test_before_anything_has_happened_there_is_nothing(new_tenant, read):
    page = read(new_tenant(audit=True))
    assert (page.is_there, page.records, page.following) == (False, [], None)
