"""A change of access tried on real brokers: listed within seconds, nobody cut off, and in force within two seconds."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from controlplane.access import proposals as services
from controlplane.clusters import proposals as store
from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from dataplane.protocol.messages.discovery import ApiVersionsRequest, MetadataRequest, MetadataRequestTopic
from dataplane.tenancy.session import ANONYMOUS
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.apart import acls_from_json
from quota.contracts.proposals import Proposal
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.clients import create_topic, produce
from tests.support.processes import SECRET
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire

pytestmark = pytest.mark.integration

INSIDE, OUTSIDE = "127.0.0.1", "127.0.0.99"
CLUSTER = ClusterAddress(0, "")
DENY = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:*", "*", AclOperation.WRITE, Permission.DENY)
READ = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:*", "*", AclOperation.ALL, Permission.ALLOW)


@pytest.fixture
def tree(cluster, monkeypatch):
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    made = zookeeper.KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    made.wait_connected(30)
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: made)
    yield made
    made.close()


def propose(tree, tenant, **members):
    now_ms = int(time.time() * 1000)
    proposal = Proposal("prp-integration0", now_ms, now_ms + 600_000, **members)
    store.proposal_write(tree, tenant.id, proposal)
    return proposal


def view(tenant, proposal):
    known = SimpleNamespace(id=tenant.id, cluster=SimpleNamespace(address=CLUSTER))
    return services._view(known, proposal)


def test_a_client_that_a_whitelist_would_cut_off_is_listed_and_not_cut_until_it_is_in_force(new_tenant, cluster, tree):
    tenant = new_tenant()
    with Wire(tenant.addresses[1], source=OUTSIDE) as strange, Wire(tenant.addresses[2], source=INSIDE) as held:
        assert strange.call(ApiVersionsRequest(), 0).error_code == held.call(ApiVersionsRequest(), 0).error_code == 0
        proposal = propose(tree, tenant, whitelist=(f"{INSIDE}/32",))
        wait_for(lambda: bool(view(tenant, proposal).cut_off), promised(5), "the open connection to be listed")
        wait_for(lambda: view(tenant, proposal).silent == [], promised(5), "every broker to say that it judges")
        found = view(tenant, proposal)
        assert [(each.cut.principal, each.cut.source, each.cut.operation) for each in found.cut_off] == [
            (ANONYMOUS, OUTSIDE, "CONNECT")
        ]
        assert found.connections == 2
        assert strange.call(ApiVersionsRequest(), 0).error_code == 0
        began = time.monotonic()
        cluster.specs.change(tenant, whitelist=(f"{INSIDE}/32",))
        store.proposal_remove(tree, tenant.id)
        assert strange.is_closed()
        assert time.monotonic() - began < promised(2)
        assert held.call(ApiVersionsRequest(), 0).error_code == 0


def test_acls_are_judged_and_put_in_force_in_one_transaction(new_tenant, tree):
    tenant = new_tenant()
    create_topic(tenant, "orders")
    proposal = propose(tree, tenant, acls_added=(DENY, READ))
    wait_for(lambda: view(tenant, proposal).silent == [], promised(5), "every broker to judge")
    produce(tenant, "orders", [b"1", b"2"])
    wait_for(lambda: bool(view(tenant, proposal).cut_off), promised(5), "who writes to be listed")
    assert {(each.cut.operation, each.cut.resource) for each in view(tenant, proposal).cut_off} == {
        ("WRITE", "TOPIC:orders")
    }
    produce(tenant, "orders", [b"3"])

    def after(data):
        before = acls_from_json(data)
        return before.changed(proposal.acls_after(before.items)).to_json()

    store.proposal_put_in_force(tree, tenant.id, proposal.id, spec=None, acls=after)
    assert store.proposal_read(tree, tenant.id) is None

    def refused():
        with Wire(tenant.addresses[1]) as wire:
            row = MetadataRequestTopic(name="orders")
            operations = wire.call(MetadataRequest(topics=(row,), include_topic_authorized_operations=True), 9)
            return not operations.topics[0].topic_authorized_operations & (1 << AclOperation.WRITE)

    wait_for(refused, promised(2), "the ACLs to be in force")


def test_one_that_cuts_nobody_says_how_much_was_judged(new_tenant, tree):
    tenant = new_tenant()
    create_topic(tenant, "orders")
    proposal = propose(tree, tenant, acls_added=(READ,), whitelist=("127.0.0.0/8",))
    wait_for(lambda: view(tenant, proposal).silent == [], promised(5), "every broker to judge")
    produce(tenant, "orders", [b"1"])
    wait_for(lambda: view(tenant, proposal).requests > 0, promised(5), "what was asked to be counted")
    found = view(tenant, proposal)
    assert found.cut_off == []
    assert found.connections > 0
    store.proposal_remove(tree, tenant.id)
