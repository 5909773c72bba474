"""A whole connection against a whole broker in this process, on virtual time: frames, halves of frames, pipelines.

An input is the kind of listener (a tenant's, or the internal one before authentication) and segments, each of them::

    control byte | length uint16 | payload

The control byte's low two bits: a frame around the payload; the payload as it is; a frame in two halves with a pause
between; a request whose API key and version are the payload's first two bytes and whose body is the rest. The others say
whether something is to happen before the next segment (else they are pipelined), and whether the correlation id repeats.

What must hold: no exception leaves a callback or is logged as an error, the loop comes to rest, connections that are gone
are forgotten, and after every `LOOK_AFTER` inputs an ordinary client of the tenant produces and fetches. The cluster is made
anew every `ANEW_AFTER` inputs; those that came before in the same one are kept with a failure (`history-*`).

    python tests/fuzz/fuzz_connection.py CORPUS… [libFuzzer's options]      run by tests.fuzz
"""

from __future__ import annotations

import logging
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from random import Random

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(
    include=["dataplane.handlers", "dataplane.network", "dataplane.groups", "dataplane.records"]
):
    from tests.simulation import cluster as simulated

from dataplane.handlers.table import HANDLERS, served
from dataplane.protocol.codec import encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from dataplane.records.batch import Record, build_batch
from tests.fuzz import seeds
from tests.fuzz.segments import bent_input

simulated.SETTINGS = replace(simulated.SETTINGS, default_replication_factor=1, offsets_topic_replication_factor=1)
ANEW_AFTER = 400
LOOK_AFTER = 25
PAUSE_S = 0.05
HISTORY = Path("var/fuzz/connection")
KEYS = [row.api.key for row in served(tenant=True)]
MAX_SEGMENTS = 12
STRICT = {
    "cleanup_policy": "compact",
    "compression_type": "gzip",
    "message_timestamp_before_max_ms": "9000000000000",
}
"""A topic whose records are looked at."""


class _Errors(logging.Handler):
    """What is logged as an error is one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(logging.Formatter().format(record))


class Client:
    """The fuzzer's end of a connection."""

    def __init__(self, network: object, port: int) -> None:
        self.connection = None
        self.is_closed = False
        self.answers = 0
        network.loop("10.0.1.9").connect("10.0.0.1", port, self._opened, self.closed)
        network.run_until(lambda: self.connection is not None or self.is_closed, 5)

    def _opened(self, connection: object) -> Client:
        self.connection = connection
        connection.max_frame_bytes = 2**31 - 1
        return self

    def frame(self, _frame: memoryview) -> None:
        self.answers += 1

    def closed(self, _reason: str) -> None:
        self.is_closed = True


class World:
    """One broker, one tenant with a topic, and what was sent to it so far."""

    def __init__(self) -> None:
        self.cluster = simulated.SimulatedCluster(seed=1, brokers=1)
        self.network = self.cluster.network
        self.cluster.until(self.cluster.up)
        self.sent: list[bytes] = []
        self._create("orders")
        self._create("strict", **STRICT)
        self.look()

    def _create(self, name: str, **config: str) -> None:
        configs = tuple(CreatableTopicConfig(key.replace("_", "."), value) for key, value in config.items())
        request = CreateTopicsRequest(topics=(CreatableTopic(name, 2, 1, (), configs),), timeout_ms=5_000)
        code = self._ask(request, 5).topics[0].error_code
        assert code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), code
        physical = f"simulate.{name}"
        self.cluster.until(lambda: not isinstance(self.broker.replicas.leader(physical, 0), ErrorCode), 20)

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

    def _send(self, client: Client, kind: int, payload: bytes, correlation_id: int) -> None:
        if kind == 3:
            if len(payload) < 2:
                return
            key = KEYS[payload[0] % len(KEYS)]
            version = payload[1] % (HANDLERS[key].high + 2)
            header_version = HANDLERS[key].api.request_header_version(min(version, HANDLERS[key].high))
            head = bytes((0, key, 0, version)) + correlation_id.to_bytes(4)
            payload = (
                head + (b"\0\4fuzz" if header_version else b"") + (b"\0" if header_version == 2 else b"") + payload[2:]
            )
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


errors = _Errors()
logging.getLogger().addHandler(errors)
logging.getLogger().setLevel(logging.ERROR)
worlds: list[World] = []


def one_input(data: bytes) -> None:
    """One input of the fuzzer."""
    if len(data) < 4:
        return
    if not worlds or len(worlds[0].sent) >= ANEW_AFTER:
        worlds[:] = [World()]
    world = worlds[0]
    try:
        world.play(data)
        if len(world.sent) % LOOK_AFTER == 0:
            world.look()
        if errors.texts:
            raise AssertionError(errors.texts[0])
    except BaseException:
        HISTORY.mkdir(parents=True, exist_ok=True)
        for number, each in enumerate(world.sent):
            (HISTORY / f"history-{number:04}").write_bytes(each)
        raise


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Another input: segments bent by what they are, and now and then bytes altered blindly."""
    random = Random(seed)
    if random.random() < 0.2:
        return atheris.Mutate(data, max_size)
    for _ in range(random.choice((1, 1, 2, 3))):
        data = bent_input(data, KEYS, random, atheris.Mutate)
    return data[:max_size]


def write_seeds(folder: Path) -> None:
    """The first corpus: every golden request alone, and in pairs behind each other."""
    made = []
    for key, version, body in seeds.requests():
        if key in KEYS:
            payload = bytes((KEYS.index(key), version)) + body
            made.append(bytes((7,)) + len(payload).to_bytes(2) + payload)
    for number, records in enumerate((*seeds.batches(), *seeds.message_sets())):
        for version in (0, 2, 3, 9):
            data = TopicProduceData(("orders", "strict")[version & 1], (PartitionProduceData(0, records),))
            request = ProduceRequest(acks=(-1, 0, 1)[number % 3], timeout_ms=100, topic_data=(data,))
            payload = bytes((KEYS.index(0), version)) + encode(request, version)
            made.append(bytes((7,)) + len(payload).to_bytes(2) + payload)
    for version in (0, 2, 4, 11, 12):
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=10,
            min_bytes=1,
            max_bytes=5000,
            topics=(FetchTopic(topic="orders", partitions=(wanted,)),),
        )
        payload = bytes((KEYS.index(1), version)) + encode(request, version)
        made.append(bytes((7,)) + len(payload).to_bytes(2) + payload)
    for number, segment in enumerate(made):
        following = made[(number * 7 + 3) % len(made)]
        for data in (b"\0" + segment, b"\0" + bytes((segment[0] & ~4,)) + segment[1:] + following, b"\1" + segment):
            (folder / f"{zlib.crc32(data):08x}").write_bytes(data)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input, custom_mutator=mutate)
    atheris.Fuzz()
