"""The short cut of Produce answers byte for byte what the slow path answers, and declines whatever it does not know."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.handlers.context import RequestContext
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.codec import decoder
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import encode_frame, encode_request, parse_request_header
from dataplane.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from dataplane.records.batch import Record, build_batch, check_batch, read_header
from dataplane.replication.appending import Appended, Turn
from dataplane.replication.replica.partition_state import PartitionState, ReplicaRules
from dataplane.requests.fastpath.produce import ProduceFastPath
from dataplane.tenancy.access import Permit
from dataplane.tenancy.session import Session
from dataplane.tenancy.talkers import Talkers
from quota.contracts.namespace import InstanceNames
from tests.support.virtual_loop import VirtualClock

PRODUCE = APIS[ApiKey.PRODUCE]
NAMES = InstanceNames("k3v9x2qa")


class Replicas:
    """Takes every batch, at offset 500."""

    def __init__(self):
        self.registry = self.appending = self
        self.turn = Turn()
        self.batches = []
        self.error = ErrorCode.NONE
        self.leader_error = None
        self.partition = SimpleNamespace(
            log=SimpleNamespace(start_offset=17), state=PartitionState(ReplicaRules(1, 1.0, bool), 0)
        )
        self.partition.state.is_leader = True

    def leader(self, topic, index):
        return self.leader_error or self.partition

    def append(self, partition, batch, acks):
        error = self.error or check_batch(batch, read_header(batch), 2**20)
        if error:
            return Appended(error)
        self.batches.append((bytes(batch), acks))
        return Appended(ErrorCode.NONE, 500, 501, -1, 17)

    def after_commit(self, partition, last_offset, acks, timeout_s, done):
        done(ErrorCode.NONE)


class Client:
    """A connection that keeps what is sent."""

    def __init__(self, delay_s=0.0):
        self.sent = []
        self.answers, self.turnstile = self, SimpleNamespace(told_s=delay_s)
        gate = SimpleNamespace(produce_refusal=lambda _: None)
        doors = SimpleNamespace(clock=VirtualClock())
        self.broker = SimpleNamespace(replicas=Replicas(), gate=gate, doors=doors)
        instance = SimpleNamespace(
            topic_denied=lambda _t, _p: False,
            permit=Permit(1),
            rules=None,
            acls=None,
            shadow=None,
            talkers=Talkers(),
            ends=lambda _session: False,
        )
        self.session = Session(instance, "default", NAMES, "127.0.0.1", authenticated=True)
        self.shapes = ProduceFastPath(self)

    def append_slot(self, slot):
        assert slot.parts is None
        slot.asked = (0, 0.0)

    def unanswered(self):
        """Nobody counts here."""

    def fill_soon(self, _slot, parts):
        self.sent.append(b"".join(parts))

    def learn(self, frame):
        header = parse_request_header(frame)
        request = decoder(PRODUCE.request, header.api_version)(frame, header.position, self.session.names)[0]
        ctx = RequestContext(self.broker, self.session, ApiKey.PRODUCE, header.api_version, 0, header.client_id, 0)
        self.shapes.remember(ctx, request, frame)


def batch_of(value):
    return bytes(build_batch([Record(b"k", value, (), 1)], now_ms=1))


def frame_of(version, batch, *, topic="orders", index=3, acks=-1, correlation_id=7, topics=1, transactional_id=None):
    data = tuple(TopicProduceData(topic + "x" * i, (PartitionProduceData(index, batch),)) for i in range(topics))
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1500, topic_data=data)
    return memoryview(bytearray(encode_request(PRODUCE, version, correlation_id, "client", request)[4:]))


def expected(version, correlation_id, delay_ms, topic="orders", index=3):
    row = PartitionProduceResponse(
        index=index, error_code=0, base_offset=500, log_append_time_ms=-1, log_start_offset=17
    )
    response = ProduceResponse((TopicProduceResponse(NAMES.topic_in(topic), (row,)),), throttle_time_ms=delay_ms)
    return b"".join(encode_frame(PRODUCE, version, correlation_id, response, NAMES))


@given(
    version=st.integers(5, 11),
    topic=st.text("abc.-_", min_size=1, max_size=200),
    index=st.integers(0, 2**31 - 1),
    sizes=st.lists(st.integers(0, 40_000), min_size=1, max_size=4),
    delay_ms=st.sampled_from([0, 250]),
)
def test_answers_are_those_of_the_slow_path(version, topic, index, sizes, delay_ms):
    client = Client(delay_ms / 1000)
    client.learn(frame_of(version, batch_of(b"first"), topic=topic, index=index))
    for number, size in enumerate(sizes):
        batch = batch_of(b"v" * size)
        assert client.shapes.serve(frame_of(version, batch, topic=topic, index=index, correlation_id=number))
        assert client.broker.replicas.batches[-1] == (batch, -1)
        assert client.sent[-1] == expected(version, number, delay_ms, topic, index)


@pytest.mark.parametrize("version", [5, 7, 8, 9])
@pytest.mark.parametrize(
    "other", [{"topic": "order2"}, {"index": 4}, {"acks": 1}, {"topics": 2}, {"transactional_id": "t"}]
)
def test_another_shape_is_declined(version, other):
    client = Client()
    client.learn(frame_of(version, batch_of(b"first")))
    assert not client.shapes.serve(frame_of(version, batch_of(b"first"), **other))
    assert client.sent == []


@pytest.mark.parametrize("version", [5, 8, 9])
@pytest.mark.parametrize("size", range(120))
def test_a_truncated_frame_of_a_known_shape_is_declined(version, size):
    client = Client()
    frame = frame_of(version, batch_of(b"first"))
    client.learn(frame)
    assert not client.shapes.serve(frame[: min(size, len(frame) - 1)])
    assert client.broker.replicas.batches == []


def test_another_version_is_declined():
    client = Client()
    client.learn(frame_of(7, batch_of(b"first")))
    assert not client.shapes.serve(frame_of(8, batch_of(b"first")))


def test_errors_are_left_to_the_slow_path():
    client = Client()
    client.learn(frame_of(9, batch_of(b"first")))
    client.broker.replicas.error = ErrorCode.CORRUPT_MESSAGE
    assert not client.shapes.serve(frame_of(9, batch_of(b"first")))
    client.broker.replicas.error = ErrorCode.NONE
    client.broker.replicas.leader_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    client.broker.replicas.partition.state.is_leader = False
    assert not client.shapes.serve(frame_of(9, batch_of(b"first")))


def test_a_topic_whose_whitelist_changed_is_left_to_the_slow_path():
    client = Client()
    client.learn(frame_of(9, batch_of(b"first")))
    assert client.shapes.serve(frame_of(9, batch_of(b"first")))
    client.session.instance.topic_denied = lambda _t, _p: True
    client.session.instance.permit = Permit(2)
    assert not client.shapes.serve(frame_of(9, batch_of(b"first")))


def test_full_storage_is_left_to_the_slow_path():
    client = Client()
    client.learn(frame_of(9, batch_of(b"first")))
    assert client.shapes.serve(frame_of(9, batch_of(b"first")))
    client.broker.gate.produce_refusal = lambda _: "storage is full"
    client.session.instance.permit = Permit(2)
    assert not client.shapes.serve(frame_of(9, batch_of(b"first")))


def test_two_batches_in_one_partition_are_declined():
    client = Client()
    client.learn(frame_of(9, batch_of(b"first")))
    assert not client.shapes.serve(frame_of(9, batch_of(b"first") * 2))


def test_acks_0_is_served_without_an_answer():
    client = Client()
    client.learn(frame_of(9, batch_of(b"first"), acks=0))
    assert client.shapes.serve(frame_of(9, batch_of(b"first"), acks=0))
    assert client.sent == []
    assert len(client.broker.replicas.batches) == 1


def test_a_partition_below_zero_has_no_shape():
    client = Client()
    client.learn(frame_of(9, batch_of(b"first"), index=-1))
    assert not client.shapes.serve(frame_of(9, batch_of(b"x"), index=-1))
