"""A real ZooKeeper that speaks TLS only to whom it knows: clients of ours, a broker and a master as processes."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest
from kazoo.handlers.threading import KazooTimeoutError

from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import Tls, access_by_secret
from quota.zookeeper.client import Client
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.processes import HOST, SECRET, broker_process, master_process, secrets_file
from tests.support.waiting import promised, wait_for
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.integration

PATIENCE_S = 60
AT_ONCE = 2_000


class Ensemble:
    """A server with a port for TLS, where clients have to show a certificate, and the files of both sides."""

    def __init__(self, folder):
        self.ours, self.theirs = Authority("ours"), Authority("somebody else's")
        self.folder, self.port = folder, free_port()
        self.files = {
            "ca": self._file("ca", self.ours.pem),
            **self._pair("client", self.ours.issue("broker-1")),
        }
        shown = self.ours.issue("zookeeper", [HOST])
        store = self._file("server", shown.key_pem + shown.pem)
        self.server = ZooKeeperServer(
            folder / "zookeeper",
            free_port(),
            serverCnxnFactory="org.apache.zookeeper.server.NettyServerCnxnFactory",
            secureClientPort=self.port,
            secureClientPortAddress=HOST,
            ssl_keyStore_location=store,
            ssl_keyStore_type="PEM",
            ssl_trustStore_location=self.files["ca"],
            ssl_trustStore_type="PEM",
            ssl_clientAuth="need",
        )

    def _file(self, name, text):
        path = self.folder / f"{name}.pem"
        path.write_text(text)
        return str(path)

    def _pair(self, name, issued):
        return {"certificate": self._file(name, issued.pem), "key": self._file(f"{name}-key", issued.key_pem)}

    @property
    def hosts(self):
        return f"{HOST}:{self.port}"

    @property
    def tls(self):
        return Tls(**self.files)

    def strangers(self):
        """Files of whom neither side knows."""
        return {"ca": self._file("other-ca", self.theirs.pem), **self._pair("stranger", self.theirs.issue("broker-1"))}


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    ensemble = Ensemble(tmp_path_factory.mktemp("tls"))
    with ensemble.server:
        yield ensemble


@pytest.fixture
def connect(ensemble):
    made = []

    def connect(tls, within_s=PATIENCE_S, host=HOST):
        access = replace(access_by_secret((SECRET,), Party.OPERATORS), tls=tls)
        made.append(Client(f"{host}:{ensemble.port}", access, timeout=10.0))
        made[-1].start(timeout=within_s)
        return made[-1]

    yield connect
    for client in made:
        client.stop()
        client.close()


def test_a_client_does_over_tls_what_it_does_without(ensemble, connect):
    client = connect(ensemble.tls)
    client.ensure_path("/brokers/topics")
    transaction = client.transaction()
    for number in range(300):
        transaction.create(f"/brokers/topics/t{number}", b"x" * 1_000)
    assert len(transaction.commit()) == 300
    assert len(client.get_children("/brokers/topics")) >= 300


def test_answers_that_come_together_are_all_heard_at_once(ensemble, connect):
    """What TLS has decrypted already wakes nobody: without care the last answer would wait for the next heartbeat."""
    client = connect(ensemble.tls)
    client.ensure_path("/sluice/users")
    client.create("/sluice/users/many", b"x" * 300)
    for _ in range(5):
        began = time.monotonic()
        for answer in [client.get_async("/sluice/users/many") for _ in range(AT_ONCE)]:
            assert len(answer.get(timeout=PATIENCE_S)[0]) == 300
        assert time.monotonic() - began < promised(3.0)
    client.delete("/sluice/users/many")


def test_files_that_were_replaced_count_with_the_next_connection(ensemble, connect, tmp_path):
    ca = tmp_path / "ca.pem"
    ca.write_text(ensemble.theirs.pem)
    access = replace(access_by_secret((SECRET,), Party.OPERATORS), tls=replace(ensemble.tls, ca=str(ca)))
    client = Client(ensemble.hosts, access, timeout=10.0, connection_retry={"max_tries": -1, "max_delay": 0.2})
    try:
        with pytest.raises(KazooTimeoutError):
            client.start(timeout=1)
        ca.write_text(ensemble.ours.pem)
        client.start(timeout=PATIENCE_S)
        assert client.exists("/zookeeper") is not None
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("wrong", ["authority", "no certificate", "stranger's certificate", "host", "no TLS"])
def test_nobody_connects_to_whom_it_does_not_know(ensemble, connect, wrong, caplog):
    strangers = ensemble.strangers()
    tls, host = {
        "authority": (replace(ensemble.tls, ca=strangers["ca"]), HOST),
        "no certificate": (Tls(ensemble.files["ca"]), HOST),
        "stranger's certificate": (Tls(ensemble.files["ca"], strangers["certificate"], strangers["key"]), HOST),
        "host": (ensemble.tls, "localhost"),  # the same server by a name that its certificate does not have
        "no TLS": (None, HOST),
    }[wrong]
    with caplog.at_level(logging.WARNING), pytest.raises(KazooTimeoutError):
        connect(tls, within_s=2, host=host)
    if wrong in ("authority", "host"):
        assert "no TLS to ZooKeeper" in caplog.text


def test_a_broker_and_a_master_know_each_other_over_tls(ensemble, connect, tmp_path):
    tables = {"zookeeper": {"acl": "on"}, "zookeeper.tls": ensemble.files}
    secrets = secrets_file(tmp_path)
    broker = broker_process(tmp_path, 1, zookeeper=ensemble.hosts, secrets=secrets, tables=tables)
    master = master_process(tmp_path, 1, zookeeper=ensemble.hosts, secrets=secrets, lease_ms=4_000, tables=tables)
    client = connect(ensemble.tls)
    try:
        for server in (broker, master):
            server.start()
        wait_for(broker.accepts, PATIENCE_S, "the broker")
        for path in ("/brokers/ids/1", "/controller", "/sluice/master", "/sluice/applied/1"):
            wait_for(lambda path=path: client.exists(path), PATIENCE_S, path)
    finally:
        for server in (broker, master):
            server.kill()
