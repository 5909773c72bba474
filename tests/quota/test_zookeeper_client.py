"""Clients of a real ZooKeeper: what they make has the table's ACL, they say who they are again whenever they connect."""

from __future__ import annotations

import logging
import socket
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NodeExistsError, NoNodeError
from kazoo.protocol.serialization import Create
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from quota.contracts.zookeeper import DIRECTORIES, ROWS, Party, Right, UnlistedPathError, row_of
from quota.contracts.zookeeper_login import OPEN, access_by_secret, login
from quota.zookeeper.client import Client, acl_of, is_open
from tests.support.ports import free_port
from tests.support.processes import SECRET
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer, operator, party_client, started, stranger

pytestmark = pytest.mark.integration

PATIENCE_S = 30


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
    """Makes clients of this test's cluster that are connected."""
    made = []

    def connect(party=Party.OPERATORS, *secrets, **options):
        options = {"connection_retry": KazooRetry(max_tries=-1, delay=0.05, max_delay=0.2), **options}
        made.append(stranger(hosts, **options) if party is None else party_client(hosts, party, *secrets, **options))
        return started(made[-1], PATIENCE_S)

    yield connect
    for client in made:
        client.stop()
        client.close()


def ids_of(client, path):
    acl, _ = client.get_acls(path)
    return sorted((entry.id.id, entry.perms) for entry in acl)


def expected(path, *secrets):
    access = access_by_secret(secrets or (SECRET,), Party.OPERATORS)
    return sorted((entry.id, int(entry.rights)) for entry in access.entries(row_of(path)))


def founded(client):
    """When its root is no more everybody's."""
    wait_for(lambda: not is_open(client.get_acls("/")[0]), PATIENCE_S, "the root to be closed")
    return client


def test_however_a_node_comes_about_it_has_the_acl_of_its_row(connect):
    client = founded(connect())
    client.create("/brokers/ids/1", b"", ephemeral=True)
    client.create("/config/changes/config_change_", b"", sequence=True)
    client.create("/brokers/topics/t/partitions/0/state", b"", makepath=True)
    client.ensure_path("/consumers/g/offsets")
    client.create("/latest_producer_id_block", b"", include_data=True)
    transaction = client.transaction()
    transaction.create("/sluice/users/ins-a")
    transaction.create("/sluice/changes/change-", sequence=True)
    transaction.create("/sluice/master", ephemeral=True)
    made = [each for each in transaction.commit() if isinstance(each, str)]
    assert len(made) == 3
    for path in (
        "/",
        "/brokers",
        "/brokers/ids/1",
        "/config/changes/config_change_0000000000",
        "/brokers/topics/t",
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/0/state",
        "/consumers",
        "/consumers/g",
        "/latest_producer_id_block",
        *DIRECTORIES,
        *made,
    ):
        assert ids_of(client, path) == expected(path), path


def test_an_acl_that_a_caller_gives_is_not_taken_for_the_tables(connect):
    client = founded(connect())
    client.create("/controller", b"", acl=acl_of(OPEN))
    assert ids_of(client, "/controller") == expected("/controller")


def test_a_node_without_a_row_is_not_made(connect):
    client = founded(connect())
    for make in (client.create, client.ensure_path, lambda path: client.create(f"{path}/below", makepath=True)):
        with pytest.raises(UnlistedPathError):
            make("/of-nobody")
    transaction = client.transaction()
    transaction.create("/of-nobody")
    with pytest.raises(UnlistedPathError):
        transaction.commit()
    assert client.exists("/of-nobody") is None


def test_with_acls_off_nodes_are_everybodys_and_the_root_stays_so(connect):
    client = connect(closed=False)
    client.create("/anything", b"")
    assert is_open(client.get_acls("/anything")[0])
    assert is_open(client.get_acls("/")[0])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_each_party_may_do_what_its_row_says_and_no_more(row, connect):
    """Asked of ZooKeeper, with a node of the row's ACL and a child below it."""
    path = row.pattern.replace("**", "a/b").replace("*", "x")
    if path.startswith("/zookeeper") or path == "/":
        pytest.skip("the root and ZooKeeper's own nodes: test_zookeeper_securing.py")
    master = founded(connect())
    master.ensure_path(path)
    for party in Party:
        client = connect(party)
        with_child = f"{path}/child-of-{party}"
        _make_openly(master, with_child)
        allowed = {
            Right.READ: _is_let(lambda client=client: client.get(path)),
            Right.WRITE: _is_let(lambda client=client: client.set(path, b"1")),
            Right.DELETE: _is_let(lambda client=client, child=with_child: client.delete(child)),
            Right.ADMIN: _is_let(lambda client=client: client.set_acls(path, master.get_acls(path)[0])),
            Right.CREATE: _is_let(lambda client=client, party=party: _make_openly(client, f"{path}/made-by-{party}")),
        }
        assert {right for right, is_allowed in allowed.items() if is_allowed} == {
            right for right in Right if row.allows(party, right)
        }, party


def _make_openly(client, path):
    """A node of nobody's, which the client would not make by itself: what is asked is the right of its parent."""
    asked = client.handler.async_result()
    KazooClient._call(client, Create(client.chroot + path, b"", acl_of(OPEN), 0), asked)
    return asked.get(timeout=PATIENCE_S)


def _is_let(act):
    try:
        act()
    except NoAuthError:
        return False
    except (NoNodeError, NodeExistsError):
        return True
    return True


def test_who_proves_nothing_may_do_nothing(connect):
    client = founded(connect())
    for directory in DIRECTORIES:
        client.create(f"{directory}/x", b"secret")
    nobody, guesser = connect(None), connect(Party.OPERATORS, "guessed", closed=False)
    for one in (nobody, guesser):
        for path in ("/", *DIRECTORIES, *(f"{directory}/x" for directory in DIRECTORIES)):
            for act in (
                lambda path=path: one.get(path),  # noqa: B023 - called at once
                lambda path=path: one.get_children(path),  # noqa: B023
                lambda path=path: one.get_acls(path),  # noqa: B023
                lambda path=path: one.set(path, b"forged"),  # noqa: B023
                lambda path=path: one.create(f"{path.rstrip('/')}/forged", b"forged"),  # noqa: B023
                lambda path=path: one.set_acls(path, acl_of(OPEN)),  # noqa: B023
            ):
                with pytest.raises(NoAuthError):
                    act()
        for directory in DIRECTORIES:
            with pytest.raises(NoAuthError):
                one.delete(f"{directory}/x")
    assert client.get(f"{DIRECTORIES[0]}/x")[0] == b"secret"


# --- connections that break ----------------------------------------------------------------------------------------


class States:
    """The states of a client, to be waited for."""

    def __init__(self, client):
        self.seen, self._changed = [], threading.Condition()
        client.add_listener(self._add)

    def _add(self, state):
        with self._changed:
            self.seen.append(state)
            self._changed.notify_all()

    def wait(self, *wanted):
        with self._changed:
            assert self._changed.wait_for(lambda: self.seen[-len(wanted) :] == list(wanted), PATIENCE_S), self.seen


def test_after_a_connection_that_was_killed_we_are_who_we_were(connect):
    client = founded(connect())
    client.create("/controller", b"1")
    broker = connect(Party.BROKERS)
    assert broker.get("/controller")[0] == b"1"
    session, states = broker.client_id, States(broker)
    broker._connection._socket.shutdown(socket.SHUT_RDWR)
    states.wait(KazooState.SUSPENDED, KazooState.CONNECTED)
    assert broker.client_id == session
    assert broker.get("/controller")[0] == b"1"


def test_after_a_server_that_started_again_we_are_who_we_were(tmp_path):
    with ZooKeeperServer(tmp_path / "zookeeper", free_port()) as server:
        client = operator(server.hosts, connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.2))
        client.start(timeout=PATIENCE_S)
        try:
            founded(client).create("/controller", b"1")
            states = States(client)
            server.restart()
            wait_for(lambda: KazooState.SUSPENDED in states.seen and client.connected, PATIENCE_S, "the connection")
            assert client.retry(client.get, "/controller")[0] == b"1"
        finally:
            client.stop()
            client.close()


def test_with_a_new_session_we_are_who_we_were(server, connect):
    client = founded(connect())
    client.create("/controller", b"1")
    broker = connect(Party.BROKERS)
    session, states = broker.client_id, States(broker)
    thief = KazooClient(server.hosts, client_id=session, timeout=2.0)  # who closes it has ended it
    thief.start(PATIENCE_S)
    thief.stop()
    thief.close()
    states.wait(KazooState.LOST, KazooState.CONNECTED)
    assert broker.client_id != session
    assert broker.get("/controller")[0] == b"1"


# --- founding ------------------------------------------------------------------------------------------------------


def test_the_first_client_of_an_empty_cluster_makes_its_directories_and_closes_its_root(connect):
    connect(Party.MASTERS)
    look = founded(connect(Party.OPERATORS, closed=False))
    assert ids_of(look, "/") == expected("/")
    assert [path for path in DIRECTORIES if look.exists(path) is None] == []


@pytest.mark.parametrize("party", [Party.MASTERS, Party.CONTROL_PLANE])
def test_whoever_comes_first_nobody_is_shut_out(party, connect):
    connect(party)
    broker = connect(Party.BROKERS)
    wait_for(lambda: broker.exists("/sluice/applied"), PATIENCE_S, "the directories")
    broker.create("/brokers/ids/1", b"", ephemeral=True)
    broker.create("/controller", b"", ephemeral=True)


def test_a_root_that_others_share_stays_open_and_it_is_said(connect, caplog):
    other = connect(None)
    other.create("/somebody-elses", b"")
    with caplog.at_level(logging.WARNING, "quota.zookeeper.client"):
        client = connect()
        wait_for(lambda: "somebody-elses" in caplog.text, PATIENCE_S, "the warning")
    assert is_open(client.get_acls("/")[0])
    assert ids_of(client, "/sluice/users") == expected("/sluice/users")


# --- what is said in logs ------------------------------------------------------------------------------------------


def test_passwords_do_not_reach_the_log_at_any_level(connect, caplog):
    with caplog.at_level(1), caplog.at_level(1, "kazoo.client"):
        founded(connect())
    assert "Sending request" in caplog.text  # kazoo's own words, at level DEBUG
    assert login(SECRET, Party.OPERATORS).partition(":")[2] not in caplog.text


def test_a_refusal_is_said_once_in_a_while(connect, caplog):
    founded(connect())
    guesser = connect(Party.BROKERS, "guessed", closed=False)
    with caplog.at_level(logging.ERROR, "quota.zookeeper.client"):
        for _ in range(3):
            with pytest.raises(NoAuthError) as refused:
                guesser.get_children("/brokers/ids")
            guesser.complain(refused.value)
        guesser.complain(KazooException("something else"))
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1
    assert "sluice-brokers" in caplog.text


def test_a_client_below_a_chroot_that_callers_write_themselves_has_the_same_acls(server):
    chroot = "/of-callers/own"
    client = Client(server.hosts, access_by_secret((SECRET,), Party.OPERATORS), chroot=chroot)
    client.start(timeout=PATIENCE_S)
    try:
        wait_for(lambda: not is_open(client.get_acls(chroot)[0]), PATIENCE_S, "the root to be closed")
        client.create(f"{chroot}/controller", b"")
        assert ids_of(client, f"{chroot}/controller") == expected("/controller")
        assert client.get_acls(f"{chroot}/brokers")[0] == acl_of(client.access.entries(row_of("/brokers")))
    finally:
        client.stop()
        client.close()
