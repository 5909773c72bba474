"""A tree of before ACLs is closed, looked at and opened again; a secret is replaced; all on a real ZooKeeper."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.security import OPEN_ACL_UNSAFE

from quota.contracts.zookeeper import DIRECTORIES, ROWS, Party, row_of
from quota.contracts.zookeeper_login import access_by_secret
from quota.zookeeper import securing
from quota.zookeeper.client import acl_of, is_open
from quota.zookeeper.securing import Wanted, walk
from tests.support.ports import free_port
from tests.support.processes import SECRET
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer, operator, party_client, started, stranger

pytestmark = pytest.mark.integration

PATIENCE_S = 30
TOPICS = 120  # some batches of nodes


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), free_port()) as server:
        yield server


@pytest.fixture
def hosts(server, request):
    """A cluster of this test's own."""
    return server.chroot(request.node.nodeid)


@pytest.fixture
def connect(hosts):
    made = []

    def connect(party=Party.OPERATORS, *secrets, **options):
        client = party_client(hosts, party, *secrets, **options)
        made.append(client)
        return started(client, PATIENCE_S)

    yield connect
    for client in made:
        client.stop()
        client.close()


@pytest.fixture
def nobody(hosts):
    client = stranger(hosts)
    client.start(timeout=PATIENCE_S)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def old(nobody):
    """What a release without ACLs has left behind; its paths."""
    paths = [row.pattern.replace("/**", "/g/offsets").replace("*", "x") for row in ROWS[1:] if row.pattern[1] != "z"]
    paths += [f"/brokers/topics/t{number}/partitions/0/state" for number in range(TOPICS)]
    for path in paths:
        nobody.ensure_path(path)
    return paths


def keeper(connect, *secrets):
    """A client as `zookeeper_secure` has it, before its founding may be over: it only does what the walk does."""
    return connect(Party.OPERATORS, *secrets)


def is_closed_as_the_table_says(client, path, *secrets):
    row = row_of(path)
    wanted = acl_of(access_by_secret(secrets or (SECRET,), Party.OPERATORS).entries(row))
    return sorted(client.get_acls(path)[0]) == sorted(wanted)


def all_paths(client, path="/"):
    found = [path]
    for name in client.get_children(path):
        found += all_paths(client, f"{path.rstrip('/')}/{name}")
    return found


def test_every_node_of_a_tree_of_before_is_closed(connect, old, nobody):
    client = keeper(connect)
    report = walk(client, Wanted.CLOSED)
    paths = all_paths(client)
    assert set(old) <= set(paths)
    assert [path for path in paths if not is_closed_as_the_table_says(client, path)] == []
    assert report.looked_at >= len(old)
    assert report.unlisted == report.refused == report.shared == []
    for path in old:
        with pytest.raises(NoAuthError):
            nobody.get(path)
    for path in ("/controller2", "/brokers/ids/9"):
        with pytest.raises(NoAuthError):
            nobody.create(path, b"")


def test_without_a_chroot_zookeepers_own_nodes_are_closed_unless_others_share_them(tmp_path):
    with ZooKeeperServer(tmp_path / "zookeeper", free_port()) as server:
        client, nobody = operator(server.hosts), stranger(server.hosts)
        for each in (client, nobody):
            each.start(timeout=PATIENCE_S)
        try:
            wait_for(lambda: not is_open(client.get_acls("/")[0]), PATIENCE_S, "the root to be closed")
            report = walk(client, Wanted.CLOSED)
            assert report.unlisted == report.refused == report.shared == []
            for path in ("/x", "/zookeeper/x", "/zookeeper/quota/x", "/zookeeper/config/x"):
                with pytest.raises(NoAuthError):
                    nobody.create(path, b"")
            walk(client, Wanted.OPEN)
            nobody.create("/of-others", b"")
            report = walk(client, Wanted.CLOSED)
            assert report.shared == ["of-others"]
            assert is_open(client.get_acls("/")[0])
            assert is_open(client.get_acls("/zookeeper/quota")[0])
            assert is_closed_as_the_table_says(client, "/sluice/users")
        finally:
            for each in (client, nobody):
                each.stop()
                each.close()


def test_a_look_changes_nothing_and_says_what_differs(connect, old):
    client = keeper(connect)
    walk(client, Wanted.CLOSED)
    assert walk(client, Wanted.LOOKED_AT).differing == 0
    client.set_acls("/brokers/topics/t7", OPEN_ACL_UNSAFE)
    client.set_acls(
        "/sluice/users", acl_of(access_by_secret(("other",), Party.BROKERS).entries(row_of("/sluice/users")))[:1]
    )
    report = walk(connect(Party.OPERATORS), Wanted.LOOKED_AT)
    assert report.differing + len(report.refused) == 2
    assert report.different["/brokers/topics/*"] == 1
    assert report.examples == ["/brokers/topics/t7"]
    assert report.refused == ["/sluice/users"]
    assert is_open(client.get_acls("/brokers/topics/t7")[0])


def test_what_was_interrupted_goes_on_where_it_was(connect, old):
    client = keeper(connect)

    def interrupt(report):
        if report.differing > TOPICS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        walk(client, Wanted.CLOSED, interrupt)
    first = walk(client, Wanted.LOOKED_AT)
    assert 0 < first.differing < len(old) * 4
    assert walk(client, Wanted.CLOSED).differing == first.differing
    again = walk(client, Wanted.CLOSED)
    assert again.differing == 0
    assert again.looked_at == first.looked_at


def test_what_somebody_changes_meanwhile_is_looked_at_again(connect, old, nobody, monkeypatch):
    """Between a look at a node and its new ACL: a version of the ACL is never overwritten unseen."""
    client = keeper(connect)
    set_acls, meanwhile = client.set_acls_async, ["/brokers/topics/t3", "/brokers/topics/t4"]

    def overtaken(path, acl, version):
        if path in meanwhile:
            meanwhile.remove(path)
            nobody.set_acls(path, OPEN_ACL_UNSAFE)
        return set_acls(path, acl, version)

    monkeypatch.setattr(client, "set_acls_async", overtaken)
    walk(client, Wanted.CLOSED)
    assert meanwhile == []
    assert walk(client, Wanted.LOOKED_AT).differing == 0


def test_what_is_made_below_an_open_node_while_we_walk_is_met(connect, old, nobody, monkeypatch):
    client = keeper(connect)
    get_children, made = client.get_children_async, []

    def late(path):
        if path == "/brokers/topics" and not made:
            made.append(path)
            with pytest.raises(NoAuthError):  # the door is shut before we look
                nobody.create("/brokers/topics/late", b"")
        return get_children(path)

    monkeypatch.setattr(client, "get_children_async", late)
    walk(client, Wanted.CLOSED)
    assert made
    assert client.exists("/brokers/topics/late") is None


def test_nodes_that_no_row_is_about_are_left_and_named(connect, old, nobody):
    nobody.ensure_path("/sluice/of-a-later-release/x")
    client = keeper(connect)
    report = walk(client, Wanted.CLOSED)
    assert report.unlisted == ["/sluice/of-a-later-release"]
    assert is_open(client.get_acls("/sluice/of-a-later-release")[0])


def test_a_root_that_others_share_is_left_to_them(connect, old, nobody):
    nobody.ensure_path("/of-others/x")
    client = keeper(connect)
    report = walk(client, Wanted.CLOSED)
    assert report.shared == ["of-others"]
    assert report.unlisted == []
    for theirs in ("/", "/of-others", "/of-others/x"):
        assert is_open(client.get_acls(theirs)[0]), theirs
    assert is_closed_as_the_table_says(client, "/sluice/users")


def test_the_way_back_opens_everything(connect, old, nobody):
    client = keeper(connect)
    walk(client, Wanted.CLOSED)
    walk(client, Wanted.OPEN)
    for path in ("/", *old):
        assert is_open(nobody.get_acls(path)[0]), path


def test_directories_that_are_missing_are_made(connect):
    client = keeper(connect)
    walk(client, Wanted.CLOSED)
    assert [path for path in DIRECTORIES if not is_closed_as_the_table_says(client, path)] == []


def test_a_tree_below_a_chroot_is_walked_by_its_own_paths(hosts, nobody):
    nobody.ensure_path("/one/brokers/topics/t")
    nobody.ensure_path("/other/brokers/topics/t")
    client = operator(hosts + "/one")
    client.start(timeout=PATIENCE_S)
    try:
        walk(client, Wanted.CLOSED)
        assert is_closed_as_the_table_says(client, "/brokers/topics/t")
        assert is_open(nobody.get_acls("/other/brokers/topics/t")[0])
        assert is_open(nobody.get_acls("/")[0])
    finally:
        client.stop()
        client.close()


def test_batches_are_as_large_as_they_may_be_and_no_larger(connect, old, monkeypatch):
    monkeypatch.setattr(securing, "TOGETHER", 7)
    client = keeper(connect)
    walk(client, Wanted.CLOSED)
    assert walk(client, Wanted.LOOKED_AT).differing == 0


def test_no_step_of_replacing_the_secret_locks_anybody_out(connect):
    """The runbook's steps, processes one after the other: neighbours in time read, replace and delete what each has made."""

    def coexist(*pairs):
        brokers = {secrets: connect(Party.BROKERS, *secrets) for secrets in pairs}
        for maker in brokers.values():
            for other in brokers.values():
                maker.create("/brokers/topics/t", b"")
                assert other.get("/brokers/topics/t")[0] == b""
                other.set("/brokers/topics/t", b"1")
                other.delete("/brokers/topics/t")
            maker.create(f"/brokers/topics/left-by-{len(made)}", b"")
            made.append(maker)

    made = []
    walk(keeper(connect, "old"), Wanted.CLOSED)
    coexist(("old",), ("old", "new"))
    walk(keeper(connect, "old", "new"), Wanted.CLOSED)
    coexist(("old", "new"), ("new", "old"))
    coexist(("new", "old"), ("new",))
    last = keeper(connect, "new")
    walk(last, Wanted.CLOSED)
    coexist(("new",))
    left = last.get_children("/brokers/topics")
    assert len(left) == len(made)
    assert all(is_closed_as_the_table_says(last, f"/brokers/topics/{name}", "new") for name in left)
    with pytest.raises(NoAuthError):
        connect(Party.BROKERS, "old", closed=False).get(f"/brokers/topics/{left[0]}")


def test_with_another_secret_it_is_said_which_nodes_refuse(connect):
    walk(keeper(connect, "first"), Wanted.CLOSED)
    report = walk(keeper(connect, "second"), Wanted.LOOKED_AT)
    assert report.refused == ["/"]


def test_processes_are_closed_one_after_the_other_without_a_pause(connect, old, nobody):
    """`acl = "off"` says who it is already: what another process has closed is open to it."""
    off, on = connect(Party.BROKERS, closed=False), connect(Party.BROKERS)
    on.create("/brokers/topics/by-on", b"1")
    off.create("/brokers/topics/by-off", b"2")
    assert off.get("/brokers/topics/by-on")[0] == b"1"
    assert on.get("/brokers/topics/by-off")[0] == b"2"
    with pytest.raises(NoAuthError):
        nobody.get("/brokers/topics/by-on")
    look = connect(Party.OPERATORS, closed=False)
    wait_for(lambda: not is_open(look.get_acls("/")[0]), PATIENCE_S, "the root to be closed by who is on")
    walk(keeper(connect), Wanted.CLOSED)
    assert off.get("/brokers/topics/by-on")[0] == b"1"
    off.set("/brokers/topics/by-off", b"3")
    with pytest.raises(NoAuthError):
        nobody.get("/brokers/topics/by-off")


def test_what_is_gone_when_it_is_its_turn_is_no_problem(connect, old, nobody, monkeypatch):
    client = keeper(connect)
    get_acls = client.get_acls_async

    def gone(path):
        if path == "/brokers/topics/t5/partitions/0/state":
            for each in (path, path.rpartition("/")[0]):
                try:
                    client.delete(each)
                except NoNodeError:
                    continue
        return get_acls(path)

    monkeypatch.setattr(client, "get_acls_async", gone)
    report = walk(client, Wanted.CLOSED)
    assert report.refused == []


def test_access_that_is_off_is_not_what_the_walk_compares_with(connect, old):
    """`zookeeper_secure` closes nodes whatever the setting of the process says."""
    client = keeper(connect)
    client.access = replace(client.access, closed=False)
    report = walk(client, Wanted.CLOSED)
    assert report.differing > 0
    assert is_closed_as_the_table_says(client, "/brokers/ids")
