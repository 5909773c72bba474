"""Whoever reaches ZooKeeper's port and has no secret of the cluster, beside real brokers and masters.

He can be no broker, controller or master, so nobody tells him a credential; he reads nothing and takes nothing away. And all
that the cluster itself has made is as the table says.
"""

from __future__ import annotations

import json

import pytest
from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError, SessionExpiredError
from kazoo.security import OPEN_ACL_UNSAFE

from quota.contracts.acls import AclSet
from quota.contracts.apart import acls_path, certificates_path, spec_path, users_path
from quota.contracts.mastership import Mastership
from quota.contracts.users import UserSet
from quota.contracts.zookeeper import Party
from quota.zookeeper.securing import Wanted, walk
from tests.integration.clients import create_topic
from tests.support.processes import HOST
from tests.support.waiting import wait_for
from tests.support.zookeeper import party_client, started, stranger

pytestmark = pytest.mark.integration

FORGED = json.dumps(
    {"version": 5, "host": HOST, "port": 1, "endpoints": [f"INTERNAL://{HOST}:1"], "features": {}, "timestamp": "1"}
).encode()
MASTER = Mastership(9, f"{HOST}:1", f"http://{HOST}:1", 10**6).to_json()
PATIENCE_S = 20
NOT_ANSWERED = (ConnectionLoss, SessionExpiredError)  # of what was asked when a machine stood still for a moment
OF_ZOOKEEPER = ("/", "/zookeeper", "/zookeeper/quota")


@pytest.fixture
def hosts(cluster):
    return ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)


@pytest.fixture(params=["no login", "a login that was guessed", "another cluster's login"])
def intruder(request, hosts):
    clients = {
        "no login": lambda: stranger(hosts),
        "a login that was guessed": lambda: stranger(hosts, auth_data=[("digest", "sluice-operators:guessed")]),
        "another cluster's login": lambda: party_client(hosts, Party.OPERATORS, "of another cluster", closed=False),
    }
    client = clients[request.param]()
    yield started(client, PATIENCE_S)
    client.stop()
    client.close()


@pytest.fixture
def tenant(cluster, new_tenant):
    """An instance with a topic, and nodes beside its specification."""
    tenant = new_tenant()
    create_topic(tenant, "orders", 2)
    for path, data in (
        (users_path, UserSet().to_json()),
        (acls_path, AclSet().to_json()),
        (certificates_path, b"sealed"),
    ):
        cluster.zookeeper.ensure_path(path(tenant.id))
        cluster.zookeeper.set(path(tenant.id), data)
    return tenant


def all_paths(client, path="/"):
    try:
        names = client.get_children(path)
    except NoNodeError:  # of a topic that goes while we look
        return []
    return [path, *(below for name in names for below in all_paths(client, f"{path.rstrip('/')}/{name}"))]


def refused(act, *arguments, **options):
    with pytest.raises(NoAuthError):
        act(*arguments, **options)


def test_he_cannot_register_as_a_broker(cluster, intruder):
    before = cluster.registered()
    for broker in (1, 9):
        refused(intruder.create, f"/brokers/ids/{broker}", FORGED, ephemeral=True)
        refused(intruder.create, f"/brokers/ids/{broker}", FORGED, ephemeral=True, makepath=True)
    refused(intruder.set, "/brokers/ids/1", FORGED)
    refused(intruder.delete, "/brokers/ids/1")
    assert cluster.registered() == before


def test_he_cannot_be_the_controller(cluster, intruder):
    before = cluster.controller()
    document = json.dumps({"version": 1, "brokerid": 9, "timestamp": "1"}).encode()
    refused(intruder.create, "/controller", document, ephemeral=True)
    refused(intruder.delete, "/controller")
    refused(intruder.set, "/controller", document)
    refused(intruder.set, "/controller_epoch", b"1000000")
    transaction = intruder.transaction()
    transaction.delete("/controller")
    transaction.create("/controller", document)
    assert any(isinstance(each, NoAuthError) for each in transaction.commit())
    assert cluster.controller() == before


def test_he_cannot_be_the_master(cluster, intruder):
    before = cluster.master()
    refused(intruder.create, "/sluice/master", MASTER, ephemeral=True)
    refused(intruder.set, "/sluice/master", MASTER)
    refused(intruder.delete, "/sluice/master")
    refused(intruder.set, "/sluice/master_epoch", b"1000000")
    assert cluster.master() == before


def test_not_even_when_there_is_none(cluster, intruder):
    """Between two masters, and two controllers: who is quick finds a door that is shut."""
    for master in cluster.masters.values():
        master.kill()
    controller = cluster.controller()
    cluster.brokers[controller].kill()
    tried = 0

    def tries() -> bool:
        nonlocal tried
        tried += 1
        refused(intruder.create, "/sluice/master", MASTER, ephemeral=True)
        refused(intruder.create, "/controller", b"{}", ephemeral=True)
        return cluster.read("/sluice/master") is None and cluster.controller() not in (None, controller)

    wait_for(tries, PATIENCE_S, "another controller, and no master")
    assert tried > 1
    cluster.heal()


def test_he_reads_nothing_that_is_an_instances(cluster, intruder, tenant):
    for path in (users_path, acls_path, certificates_path, spec_path):
        assert cluster.zookeeper.exists(path(tenant.id))
        refused(intruder.get, path(tenant.id))
        refused(intruder.get_acls, path(tenant.id))
        refused(intruder.get_children, path(tenant.id).rpartition("/")[0])


def test_of_no_node_that_there_is_he_reads_changes_or_deletes_anything(cluster, intruder, tenant):
    paths = [path for path in all_paths(cluster.zookeeper) if path != "/zookeeper/config"]
    assert len(paths) > 40
    asked = [
        (path, what, act, act())
        for path in paths
        for what, act in {
            "get": lambda path=path: intruder.get_async(path),
            "list": lambda path=path: intruder.get_children_async(path),
            "look at the ACL": lambda path=path: intruder.get_acls_async(path),
            "set": lambda path=path: intruder.set_async(path, b"forged"),
            "delete": lambda path=path: intruder.delete_async(path),
            "create below": lambda path=path: intruder.create_async(f"{path.rstrip('/')}/forged", b""),
            "set the ACL": lambda path=path: intruder.set_acls_async(path, OPEN_ACL_UNSAFE),
        }.items()
        if not (what == "delete" and path in OF_ZOOKEEPER)  # which nobody can
    ]
    let = []
    for path, what, act, answer in asked:
        try:
            try:
                answer.get(timeout=PATIENCE_S)
            except NOT_ANSWERED:
                intruder.retry(lambda act=act: act().get(timeout=PATIENCE_S))
        except (NoAuthError, NoNodeError):  # some nodes come and go
            continue
        let.append((path, what))
    assert let == []


def test_all_that_brokers_and_masters_have_made_is_as_the_table_says(cluster, tenant):
    report = walk(cluster.zookeeper, Wanted.LOOKED_AT)
    assert report.examples == report.unlisted == report.refused == report.shared == []
    assert report.differing == 0
    for row in ("/", "/controller", "/brokers/ids/*", "/brokers/topics/*/partitions/*/state", "/sluice/applied/*",
                "/sluice/master", "/sluice/master_epoch", "/config/changes/*", "/config/topics/*"):  # fmt: skip
        assert report.nodes[row] >= 1, row


def test_nobody_of_the_cluster_was_refused_anything(cluster, tenant):
    logs = {server.name: server.log.read_text() for server in (*cluster.brokers.values(), *cluster.masters.values())}
    assert [name for name, text in logs.items() if "ZooKeeper refuses" in text] == []
