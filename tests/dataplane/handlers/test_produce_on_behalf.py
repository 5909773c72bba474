"""What the control plane writes for a tenant is charged to the instance that owns the topic, whose full storage refuses it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.handlers.context import RequestContext
from dataplane.handlers.records.produce import handle_produce
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from quota.contracts.identity import CONTROL_PLANE, OPERATOR, Identity
from quota.contracts.namespace import ClusterNames
from quota.contracts.on_behalf import CLIENT_ID

from .doors import KEY, SPEC

FULL = "storage is full: 3 MiB used of 3 MiB"
WAIT_S = 0.5
VERSION = 9


class Gate:
    """The storage of every instance is full; of nobody's traffic nothing is known."""

    def __init__(self) -> None:
        self.charged: list[tuple[str, int]] = []
        self.refused_bytes: list[str] = []

    def charge_produce(self, instance: Instance | None, _sender: object, size: int) -> float:
        if instance is None:
            return 0.0
        self.charged.append((instance.spec.id, size))
        return WAIT_S

    def produce_refusal(self, instance: Instance | None) -> str | None:
        return None if instance is None else FULL

    def refused(self, instance: Instance, _size: int) -> None:
        self.refused_bytes.append(instance.spec.id)


def produced(identity: Identity, client_id: str, topic: str) -> tuple[Gate, tuple[int, str | None, int]]:
    """What was charged, and (error, text, throttle_time_ms) of the answer; no partition has a leader here."""
    gate, instance = Gate(), Instance(SPEC)
    broker = SimpleNamespace(
        gate=gate,
        doors=SimpleNamespace(loop=SimpleNamespace(turn_number=1)),
        registry=SimpleNamespace(by_key={KEY: instance}.get),
        replicas=SimpleNamespace(
            registry=SimpleNamespace(leader=lambda _topic, _index: ErrorCode.NOT_LEADER_OR_FOLLOWER)
        ),
    )
    session = Session(None, "internal", ClusterNames(), "10.0.1.1", authenticated=True, identity=identity)
    ctx = RequestContext(broker, session, ApiKey.PRODUCE, VERSION, 1, client_id, 200)  # type: ignore[arg-type]
    data = PartitionProduceData(0, memoryview(bytearray(123)))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(topic, (data,)),))
    answer = handle_produce(ctx, request).result()  # type: ignore[union-attr]
    row = answer.responses[0].partition_responses[0]
    return gate, (row.error_code, row.error_message, answer.throttle_time_ms)


def test_the_owner_of_the_topic_is_charged_and_its_fence_holds():
    gate, told = produced(CONTROL_PLANE, CLIENT_ID, f"{KEY}.orders")
    assert gate.charged == [(SPEC.id, 123)]
    assert told == (ErrorCode.POLICY_VIOLATION, FULL, 1000 * WAIT_S)
    assert gate.refused_bytes == [SPEC.id]


@pytest.mark.parametrize(
    ("identity", "client_id", "topic", "code"),
    [
        (CONTROL_PLANE, "sluice-controlplane", f"{KEY}.orders", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (CONTROL_PLANE, CLIENT_ID, "zzzzzzzz.orders", ErrorCode.NOT_LEADER_OR_FOLLOWER),  # no instance has this key
        (CONTROL_PLANE, CLIENT_ID, "__usage", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (OPERATOR, CLIENT_ID, f"{KEY}.orders", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_what_is_nobodys_is_charged_to_nobody(identity, client_id, topic, code):
    gate, told = produced(identity, client_id, topic)
    assert gate.charged == []
    assert told == (code, None, 0)
