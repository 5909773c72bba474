"""What the control plane reads for a tenant is charged to the topic's owner; what it reads for itself, to nobody."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.protocol.headers import decode_response, encode_request
from dataplane.requests.dispatch import ClientConnection
from dataplane.tenancy.session import Session
from quota.contracts.identity import CONTROL_PLANE, OPERATOR
from quota.contracts.namespace import ClusterNames
from quota.contracts.on_behalf import CLIENT_ID
from tests.dataplane.fetching.support import FETCH, KEY, Door, request, single
from tests.dataplane.fetching.test_fetch_fast_path import Connection

VERSION = 12
WAIT_S = 0.25


class Gate:
    """Keeps what is charged to whom, and has them wait."""

    def __init__(self):
        self.charged = []

    def fetch_bytes(self, _instance, _window_s):
        return None

    def charge_consume(self, instance, _sender, size, told_s=0.0):
        if instance is None:
            return told_s
        self.charged.append((instance.spec.id, size))
        return WAIT_S


@pytest.fixture
def ask():
    """Fetches three times at the internal listener, as (identity, client id): what is charged, and what each answer says."""
    cluster = single(2)
    for number in range(3):
        cluster.produce(1, "x" * 100 * (number + 1))
        cluster.run(0.01)

    def asked(identity, client_id):
        door, connection = Door(cluster), Connection()
        loop = door.broker.replicas.loop
        door.broker.doors = SimpleNamespace(loop=loop, clock=loop.clock, files=door.broker.doors.files)
        door.broker.registry = SimpleNamespace(by_key={KEY: door.instance}.get)
        door.broker.gate = gate = Gate()
        session = Session(None, "internal", ClusterNames(), "127.0.0.1", authenticated=True, identity=identity)
        client = ClientConnection(door.broker, connection, session)
        for offset in range(3):
            made = request({0: offset}, VERSION, max_wait_ms=0)
            frame = encode_request(FETCH, VERSION, offset, client_id, made, names=ClusterNames())[4:]
            client.frame(memoryview(bytearray(frame)))
            cluster.run(0.001)
        answers = [decode_response(FETCH, VERSION, sent[4:])[1] for sent in connection.sent]
        return gate.charged, answers

    return asked


def records_of(answer):
    return len(answer.responses[0].partitions[0].records)


def test_each_answer_is_charged_by_its_records_the_ones_that_are_alike_too(ask):
    charged, answers = ask(CONTROL_PLANE, CLIENT_ID)
    assert charged == [(f"ins-{KEY}", records_of(answer)) for answer in answers]
    assert len(charged) == 3
    assert all(size > 100 for _, size in charged)
    assert [answer.throttle_time_ms for answer in answers] == [1000 * WAIT_S] * 3


@pytest.mark.parametrize(
    ("identity", "client_id"),
    [(CONTROL_PLANE, "sluice-controlplane"), (OPERATOR, CLIENT_ID)],
    ids=["for itself", "an operator who says so"],
)
def test_what_others_read_is_charged_to_nobody(ask, identity, client_id):
    charged, answers = ask(identity, client_id)
    assert charged == []
    assert [answer.throttle_time_ms for answer in answers] == [0, 0, 0]
    assert all(records_of(answer) for answer in answers)
