"""`manage.py zookeeper_secure` and `zookeeper_login`, on a real ZooKeeper."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from controlplane.clusters.zookeeper import Create, KazooTree
from controlplane.core.errors import ClusterUnavailable
from controlplane.env import Environment, EnvironmentProblem
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret, document_given, login
from quota.zookeeper.client import is_open
from quota.zookeeper.securing import Wanted, walk
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer, operator, stranger

SECRET = "of the cluster"
PATIENCE_S = 30


def environment_of(tmp_path, document, **variables):
    path = tmp_path / "secrets.json"
    path.write_text(json.dumps(document))
    return Environment.read({"SLUICE_SECRETS_FILE": str(path), **variables})


@pytest.fixture
def said(settings, tmp_path):
    """Runs a command with a secrets file; what it printed."""

    def run(*arguments, document=None, **variables):
        settings.ENVIRONMENT = environment_of(tmp_path, document or {"cluster_secret": SECRET}, **variables)
        out = StringIO()
        call_command(*arguments, stdout=out, stderr=StringIO())
        return out.getvalue()

    return run


def test_a_partys_login_is_printed_and_nothing_else(said):
    assert said("zookeeper_login", "operators") == login(SECRET, Party.OPERATORS) + "\n"


def test_a_secrets_file_without_the_secret_is_printed_for_who_shall_not_have_it(said):
    printed = json.loads(said("zookeeper_login", "controlplane", "--file"))
    assert printed == {"zookeeper": document_given((SECRET,), Party.CONTROL_PLANE)}
    assert SECRET not in json.dumps(printed)


def test_who_does_not_know_it_says_so(said):
    given = {"zookeeper": document_given((SECRET,), Party.CONTROL_PLANE)}
    assert said("zookeeper_login", "controlplane", document=given) == login(SECRET, Party.CONTROL_PLANE) + "\n"
    for arguments in (
        ("zookeeper_login", "operators"),
        ("zookeeper_login", "controlplane", "--file"),
        ("zookeeper_secure",),
    ):
        with pytest.raises(CommandError, match=r"secrets\.json"):
            said(*arguments, document=given)
    with pytest.raises(CommandError, match="cluster_secret"):
        said("zookeeper_secure", document={"other": 1})


def test_what_the_environment_says_of_zookeeper_is_read_as_a_brokers_file_is(tmp_path):
    assert environment_of(tmp_path, {"cluster_secret": SECRET}).zookeeper_access() == access_by_secret(
        (SECRET,), Party.CONTROL_PLANE
    )
    both = environment_of(
        tmp_path, {"cluster_secret": SECRET, "accepted_cluster_secrets": ["other"]}
    ).zookeeper_access()
    assert both.logins == (login(SECRET, Party.CONTROL_PLANE), login("other", Party.CONTROL_PLANE))
    off = environment_of(tmp_path, {}, SLUICE_ZOOKEEPER_ACL="off").zookeeper_access()
    assert (off.closed, off.logins) == (False, ())
    for variables in ({}, {"SLUICE_ZOOKEEPER_ACL": "maybe"}, {"SLUICE_ZOOKEEPER_CA": "/nowhere"}):
        with pytest.raises(EnvironmentProblem, match="SLUICE_ZOOKEEPER_"):
            environment_of(tmp_path, {}, **variables).zookeeper_access()


# --- on a real server ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), free_port()) as server:
        yield server


@pytest.fixture
def hosts(server, request):
    """Of a cluster that a release without ACLs has left behind."""
    hosts = server.chroot(request.node.nodeid)
    client = stranger(hosts)
    client.start(timeout=PATIENCE_S)
    for path in ("/brokers/topics/t/partitions/0/state", "/sluice/users/ins-a", "/sluice/other"):
        client.ensure_path(path)
    client.stop()
    client.close()
    return hosts


@pytest.mark.integration
def test_a_tree_is_looked_at_closed_and_opened_again(said, hosts):
    def run(*arguments):
        return said("zookeeper_secure", *arguments, ZOOKEEPER_HOSTS=hosts)

    with pytest.raises(SystemExit) as found:
        run("--check")
    assert found.value.code == 1
    table = run()
    assert "/brokers/topics/*/partitions/*/state" in table
    assert "changed" in table
    assert "left as they are, no row of the table is about them: /sluice/other" in table
    assert "not so" in run("--check")  # and the status is 0
    run("--open")
    client = stranger(hosts)
    client.start(timeout=PATIENCE_S)
    try:
        assert is_open(client.get_acls("/sluice/users/ins-a")[0])
    finally:
        client.stop()
        client.close()


@pytest.mark.integration
def test_where_nobody_answers_the_command_says_so(said):
    with pytest.raises(CommandError, match="does not answer"):
        said("zookeeper_secure", ZOOKEEPER_HOSTS=f"127.0.0.1:{free_port()}")


@pytest.mark.integration
def test_what_zookeeper_refuses_is_an_error_that_names_it(hosts):
    client = operator(hosts, SECRET)
    client.start(timeout=PATIENCE_S)
    walk(client, Wanted.CLOSED)
    tree = KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    stranger_tree = KazooTree(hosts, replace(access_by_secret(("another",), Party.CONTROL_PLANE), closed=False))
    try:
        for each in (tree, stranger_tree):
            each.wait_connected(PATIENCE_S)
        client.create("/sluice/instances/ins-a", b"1")
        assert tree.get("/sluice/instances/ins-a") == (b"1", 0)
        for refused in (
            lambda: stranger_tree.get("/sluice/instances/ins-a"),
            lambda: stranger_tree.get_many(["/sluice/instances/ins-a"]),
            lambda: stranger_tree.write([Create("/sluice/instances/ins-b", b"")]),
            lambda: tree.write([Create("/sluice/master", b"")]),
            lambda: tree.write([Create("/brokers/ids/1", b"")]),
        ):
            with pytest.raises(ClusterUnavailable):
                refused()
    finally:
        for each in (tree, stranger_tree):
            each.close()
        client.stop()
        client.close()
