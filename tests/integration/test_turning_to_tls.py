"""From plaintext to TLS by rolling restarts, while records flow: no acknowledged record is lost and none is refused."""

from __future__ import annotations

import threading

import pytest

from quota.contracts.internal_security import InternalSecurity
from tests.integration.clients import Sender, create_topic, read_all
from tests.support.cluster import ProcessCluster
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


@pytest.fixture
def running_cluster(tmp_path):
    with ProcessCluster(tmp_path) as cluster:
        yield cluster


def test_a_cluster_turns_to_tls_step_by_step_while_records_flow(cluster, tenant):
    create_topic(tenant, "flow", 6, min_insync_replicas="2")
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
        for step in (InternalSecurity.SSL_ACCEPTED, InternalSecurity.SSL_SAID, InternalSecurity.SSL):
            for number, server in cluster.brokers.items():
                server.stop()
                server.configure(**cluster.securing(f"broker-{number}", step))
                cluster.restart(number)
                wait_for(lambda: not cluster.behind(), 60, "all replicas to be in sync")
            if step is InternalSecurity.SSL_SAID:  # brokers have certificates, and go to masters with and without TLS
                for number, server in cluster.masters.items():
                    server.stop()
                    server.configure(**cluster.securing(f"master-{number}", InternalSecurity.SSL))
                    server.start()
                cluster.is_secured = True
                cluster.heal()
    finally:
        done.set()
        flowing.join(10)
    sender.flush()
    cluster.heal()
    assert sender.refused == []
    found = [value for values in read_all(tenant, "flow").values() for value in values]
    assert sorted(found) == sorted(b"%d" % number for number in range(sent))
    assert len(sender.acknowledged) == sent > 0
