"""What the connection's fuzzer plays against: one broker on virtual time, one tenant with topics and a coordinator.

An input's requests name a member of a group as `MEMBER`; they are sent with the id that the world's last JoinGroup was
answered with, or nothing would come past the first look at it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from dataplane.handlers.table import HANDLERS, served
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import decode_response
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from dataplane.protocol.primitives import DecodeError
from dataplane.records.batch import Record, build_batch
from tests.fuzz.declared import MEMBER
from tests.simulation import cluster as simulated

SETTINGS = replace(
    simulated.SETTINGS,
    default_replication_factor=1,
    offsets_topic_replication_factor=1,
    transaction_state_log_replication_factor=1,
)
PAUSE_S = 0.05
MOST_TRIES = 5
KEYS = [row.api.key for row in served(tenant=True)]
MAX_SEGMENTS = 12
STRICT = {
    "cleanup_policy": "compact",
    "compression_type": "gzip",
    "message_timestamp_before_max_ms": "9000000000000",
}
"""A topic whose records are looked at."""


class Client:
    """The fuzzer's end of a connection."""

    def __init__(self, network: object, port: int) -> None:
        self.connection = None
        self.is_closed = False
        self.joins: dict[int, int] = {}  # correlation id -> version
        self.member_id = ""
        network.loop("10.0.1.9").connect("10.0.0.1", port, self._opened, self.closed)
        network.run_until(lambda: self.connection is not None or self.is_closed, 5)

    def _opened(self, connection: object) -> Client:
        self.connection = connection
        connection.max_frame_bytes = 2**31 - 1
        return self

    def frame(self, frame: memoryview) -> None:
        version = self.joins.get(int.from_bytes(frame[:4]))
        if version is not None:
            with suppress(DecodeError):  # the correlation id may be another request's too
                answer = decode_response(HANDLERS[ApiKey.JOIN_GROUP].api, version, frame)[1]
                self.member_id = answer.member_id or self.member_id

    def closed(self, _reason: str) -> None:
        self.is_closed = True


class World:
    """One broker, one tenant with a topic, and what was sent to it so far."""

    def __init__(self) -> None:
        self.cluster = simulated.SimulatedCluster(seed=1, brokers=1, settings=SETTINGS)
        self.network = self.cluster.network
        self.cluster.until(self.cluster.up)
        self.sent: list[bytes] = []
        self.member_id = ""
        self._create("orders")
        self._create("strict", **STRICT)
        while self._ask(FindCoordinatorRequest(key="group"), 2).error_code:
            self.network.run_for(PAUSE_S)
        self.look()

    def _create(self, name: str, **config: str) -> None:
        configs = tuple(CreatableTopicConfig(key.replace("_", "."), value) for key, value in config.items())
        request = CreateTopicsRequest(topics=(CreatableTopic(name, 2, 1, (), configs),), timeout_ms=5_000)
        code = self._ask(request, 5).topics[0].error_code
        for _ in range(MOST_TRIES):
            if (
                code != ErrorCode.REQUEST_TIMED_OUT
            ):  # what was sent before may have used up the instance's changes for seconds
                break
            code = self._ask(request, 5).topics[0].error_code
        assert code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), code
        physical = f"simulate.{name}"
        self.cluster.until(lambda: not isinstance(self.broker.replicas.registry.leader(physical, 0), ErrorCode), 20)

    @property
    def broker(self) -> object:
        return self.cluster.brokers[1]

    def _ask(self, request: object, version: int) -> object:
        answer = self.cluster.client.call(1, request, version)
        self.cluster.until(lambda: answer.done, 20)
        assert answer.result() is not None, "an ordinary client was cut off"
        return answer.result()

    def look(self) -> None:
        """An ordinary client is served; connections that are gone are forgotten."""
        self._create("healthy")
        batch = bytes(build_batch([Record(b"k", b"v")], now_ms=1))
        data = TopicProduceData("healthy", (PartitionProduceData(0, batch),))
        produced = self._ask(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(data,)), 9)
        row = produced.responses[0].partition_responses[0]
        assert row.error_code == 0, row
        for version in (1, 11):
            wanted = FetchPartition(partition=0, fetch_offset=row.base_offset, partition_max_bytes=2**20)
            topics = (FetchTopic(topic="healthy", partitions=(wanted,)),)
            request = FetchRequest(replica_id=-1, max_wait_ms=100, min_bytes=1, max_bytes=2**20, topics=topics)
            data = self._ask(request, version).responses[0].partitions[0]
            assert (data.error_code, len(data.records) > 0) == (0, True), data
        loop = self.network.loop("10.0.0.1")
        assert sum(connection.is_open for connection in loop.connections) < 20

    def play(self, data: bytes) -> None:
        """One connection's life."""
        self.sent.append(data)
        port = simulated.INTERNAL_PORT if data[0] == 1 else simulated.TENANT_PORT
        client = Client(self.network, port)
        client.member_id = self.member_id
        position, correlation_id = 1, 0
        for _ in range(MAX_SEGMENTS):
            if position + 3 > len(data) or client.is_closed:
                break
            control, size = data[position], int.from_bytes(data[position + 1 : position + 3])
            payload = data[position + 3 : position + 3 + size]
            position += 3 + size
            correlation_id += not control & 8
            self._send(client, control & 3, payload, correlation_id)
            if control & 4:
                self.network.run_for(PAUSE_S)
        self.network.run_for(PAUSE_S)
        if not client.is_closed:
            client.connection.close()
        self.network.run_for(PAUSE_S)
        self.member_id = client.member_id

    def _send(self, client: Client, kind: int, payload: bytes, correlation_id: int) -> None:
        if kind == 3:
            if len(payload) < 2:
                return
            payload = self._request(client, payload, correlation_id)
        if kind == 1:
            client.connection.send([payload])
            return
        frame = len(payload).to_bytes(4) + payload
        if kind == 2:
            client.connection.send([frame[: len(frame) // 2]])
            self.network.run_for(PAUSE_S)
            if client.is_closed:
                return
            frame = frame[len(frame) // 2 :]
        client.connection.send([frame])

    @staticmethod
    def _request(client: Client, payload: bytes, correlation_id: int) -> bytes:
        """Key and version, header, body."""
        row = HANDLERS[KEYS[payload[0] % len(KEYS)]]
        version = payload[1] % (row.high + 2)
        body = payload[2:]
        if MEMBER.encode() in body and version <= row.high:
            with suppress(DecodeError, ValueError):
                request = decode(row.api.request, version, body)
                if getattr(request, "member_id", None) == MEMBER:
                    body = encode(replace(request, member_id=client.member_id), version)
        if row.api.key == ApiKey.JOIN_GROUP and version <= row.high:
            client.joins[correlation_id] = version
        header = row.api.request_header_version(min(version, row.high))
        head = bytes((0, row.api.key, 0, version)) + correlation_id.to_bytes(4)
        return head + (b"\0\4fuzz" if header else b"") + (b"\0" if header == 2 else b"") + body
