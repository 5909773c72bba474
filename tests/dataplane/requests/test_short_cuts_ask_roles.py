"""On the internal listener, too, the short cuts serve nobody whom the slow path refuses, however often he asks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.requests.dispatch import ClientConnection
from dataplane.requests.fastpath.produce import ProduceFastPath
from dataplane.tenancy.session import Session
from quota.contracts.identity import CONTROL_PLANE, METERING, OPERATOR, broker
from quota.contracts.namespace import ClusterNames
from quota.contracts.usage import USAGE_TOPIC
from tests.dataplane.fetching.support import FETCH, Door, request, single
from tests.dataplane.fetching.test_fetch_fast_path import Connection
from tests.dataplane.requests.test_produce_fast_path import Client, batch_of, frame_of

VERSION = 12
TENANTS = "k3v9x2qa.orders"


@pytest.fixture
def fetch():
    """Three fetches of a tenant's topic that differ in their offset: (error code, bytes of records) of each."""
    cluster = single(2)
    for number in range(3):
        cluster.produce(1, "x" * 100 * (number + 1))
        cluster.run(0.01)

    def asked(identity, *, session_epoch=-1):
        door, connection = Door(cluster), Connection()
        loop = door.broker.replicas.loop
        door.broker.doors = SimpleNamespace(loop=loop, clock=loop.clock, files=door.broker.doors.files)
        session = Session(None, "internal", ClusterNames(), "127.0.0.1", authenticated=True, identity=identity)
        client = ClientConnection(door.broker, connection, session)
        for offset in range(3):
            made = request({0: offset}, VERSION, max_wait_ms=0, session_epoch=session_epoch)
            frame = encode_request(FETCH, VERSION, offset, "reader", made, names=ClusterNames())[4:]
            client.frame(memoryview(bytearray(frame)))
            cluster.run(0.001)
        rows = [decode_response(FETCH, VERSION, sent[4:])[1].responses[0].partitions[0] for sent in connection.sent]
        return [(row.error_code, len(row.records or b"")) for row in rows], client._fetch._hits

    return asked


def test_metering_reads_no_tenants_topic_by_asking_twice(fetch):
    assert fetch(METERING) == ([(ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)] * 3, 0)


def test_who_may_read_takes_the_short_cut(fetch):
    rows, hits = fetch(CONTROL_PLANE)
    assert all(size > 100 for _, size in rows)
    assert hits == 2


@pytest.mark.parametrize(
    ("identity", "topic", "is_served"),
    [
        (OPERATOR, TENANTS, False),
        (OPERATOR, "own", True),
        (CONTROL_PLANE, TENANTS, True),
        (CONTROL_PLANE, USAGE_TOPIC, False),
        (CONTROL_PLANE, f"{TENANTS[:9]}__sluice_audit", False),
        (METERING, USAGE_TOPIC, False),
        (broker(1), USAGE_TOPIC, True),
    ],
)
def test_a_produce_of_a_known_shape_is_appended_only_for_whom_the_role_lets_write(identity, topic, is_served):
    client = Client()
    client.session = Session(None, "internal", ClusterNames(), "127.0.0.1", authenticated=True, identity=identity)
    client.shapes = ProduceFastPath(client)
    client.learn(frame_of(9, batch_of(b"first"), topic=topic))
    assert client.shapes.serve(frame_of(9, batch_of(b"second"), topic=topic)) == is_served
    assert bool(client.broker.replicas.batches) == is_served
