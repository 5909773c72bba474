"""A real broker under clients that send anything: it lives, it serves the others, it takes no memory and no descriptors.

Everything comes from one seed. What is sent: noise; requests of every API and version that follow the declarations with
senseless values; the same with bits flipped, pieces cut out or doubled; sizes that lie; requests cut at every byte; half
requests that are held open; pipelines that nobody reads. On the tenant's port and, without the secret, on the internal one.
"""

from __future__ import annotations

import contextlib
import random
import re
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import APIS
from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.discovery import FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from dataplane.records.batch import Record, build_batch
from quota.contracts.instance import Limits
from tests.support.ports import free_port
from tests.support.processes import HOST, broker_process, secrets_file
from tests.support.random_messages import random_message
from tests.support.specs import Specs
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire
from tests.support.zookeeper import ZooKeeperServer, operator

pytestmark = pytest.mark.integration

SEED = 20_261_121
WORDS = ("orders", "g", "m", "range", "consumer", "read_committed")
MOST_MEMORY = 96 * 2**20
PATIENCE_S = 60.0
SETTINGS = {
    "default_replication_factor": 1,
    "offsets_topic_replication_factor": 1,
    "transaction_state_log_replication_factor": 1,
    "offsets_topic_num_partitions": 2,
}


class Bystander:
    """Another tenant's client: one connection, produce and fetch and group requests all the time.

    How long it is kept waiting is told in seconds that the broker worked meanwhile, for others: on a busy machine both
    of them wait for a core, and that is nobody's fault.
    """

    def __init__(self, target):
        self._target = target
        self.served = 0
        self.longest_s = 0.0
        self.error = None
        self._offset = None
        self._stop = threading.Event()
        self._wire = Wire(target.minding, timeout_s=PATIENCE_S)
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, failure, *_):
        if failure is None:
            self.is_served()
        self._stop.set()
        self._thread.join(PATIENCE_S)
        self._wire.socket.close()

    def is_served(self):
        """Returns when it was, several times since now."""
        enough = self.served + 10
        wait_for(lambda: self.error is not None or self.served > enough, PATIENCE_S, "the bystander to be served")

    def _run(self):
        try:
            while not self._stop.wait(0.01):
                began = self._target.worked_s()
                self._round()
                self.longest_s = max(self.longest_s, self._target.worked_s() - began)
                self.served += 1
        except Exception as error:  # noqa: BLE001 - told to the test
            self.error = error

    def _round(self):
        batch = build_batch([Record(None, b"mine")], now_ms=1_000)
        data = TopicProduceData("mine", (PartitionProduceData(0, bytes(batch)),))
        produced = self._wire.call(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(data,)), 9)
        row = produced.responses[0].partition_responses[0]
        assert row.error_code == 0
        assert self._offset in (None, row.base_offset)
        self._offset = row.base_offset + 1
        wanted = FetchPartition(partition=0, fetch_offset=row.base_offset, partition_max_bytes=2**16)
        request = FetchRequest(
            replica_id=-1, max_wait_ms=0, max_bytes=2**16, topics=(FetchTopic(topic="mine", partitions=(wanted,)),)
        )
        fetched = self._wire.call(request, 11).responses[0].partitions[0]
        assert bytes(batch[61:]) in bytes(fetched.records)
        topics = (OffsetFetchRequestTopic("mine", (0,)),)
        committed = self._wire.call(OffsetFetchRequest("g", topics), 5)
        assert (committed.error_code, committed.topics[0].partitions[0].committed_offset) == (0, -1), committed


class Target:
    """A broker with two tenants: one attacks, one minds its own business."""

    def __init__(self, folder):
        self.zookeeper = ZooKeeperServer(folder / "zookeeper", free_port())
        hosts = self.zookeeper.hosts
        self.broker = broker_process(folder, 1, zookeeper=hosts, secrets=secrets_file(folder), settings=SETTINGS)
        self.client = operator(hosts, timeout=10)

    def __enter__(self):
        self.zookeeper.start()
        try:
            self.client.start(timeout=20)
            self.broker.start()
            wait_for(self.broker.accepts, PATIENCE_S, "the broker")
            wait_for(lambda: self.client.exists("/brokers/ids/1"), PATIENCE_S, "the registration")
            specs = Specs(self.client)
            self.attacked = specs.create([1], limits=Limits(None, None, None, partitions=20)).addresses[1]
            self.minding = specs.create([1]).addresses[1]
            self.internal = HOST, self.broker.ports["internal"]
            create(self.attacked, "orders")
            create(self.minding, "mine")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.broker.kill()
        self.client.stop()
        self.client.close()
        self.zookeeper.stop()

    def resident_bytes(self):
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.broker.pid}/status").read_text())
        return int(found[1]) * 1024

    def worked_s(self):
        """Seconds of a core that the broker's loop has used."""
        return int(Path(f"/proc/{self.broker.pid}/schedstat").read_text().split()[0]) / 1e9

    def descriptors(self):
        return len(list(Path(f"/proc/{self.broker.pid}/fd").iterdir()))


def create(address, topic):
    with Wire(address) as wire:

        def exists():
            request = CreateTopicsRequest(topics=(CreatableTopic(topic, 1, 1),), timeout_ms=5_000)
            wire.call(request, 5)
            found = wire.call(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 9).topics[0]
            return found.error_code == 0 and found.partitions[0].leader_id == 1

        def has_coordinator():
            return wire.call(FindCoordinatorRequest("g"), 2).error_code == 0

        wait_for(exists, PATIENCE_S, topic)
        wait_for(has_coordinator, PATIENCE_S, "a coordinator")


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    with Target(tmp_path_factory.mktemp("target")) as made:
        yield made


# --- what is sent -----------------------------------------------------------------------------------------------------


def valid(dice, key, version):
    """A frame, size included."""
    request = random_message(dice, APIS[key].request, version, WORDS)
    return encode_request(APIS[key], version, dice.getrandbits(31), dice.choice((None, "", "fuzz")), request)


def framed(body):
    return struct.pack(">i", len(body)) + body


def mutated(dice, frame):
    body = bytearray(frame[4:])
    for _ in range(dice.choice((1, 1, 2, 8))):
        at = dice.randrange(len(body)) if body else 0
        kind = dice.randrange(5)
        if kind == 0 and body:
            body[at] ^= 1 << dice.randrange(8)
        elif kind == 1 and body:
            body[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del body[at : at + dice.choice((1, 4, 50))]
        elif kind == 3:
            body[at:at] = body[at : at + dice.choice((1, 4, 50))]
        elif len(body) > 12:
            at = dice.randrange(8, len(body) - 3)
            body[at : at + 4] = dice.choice(
                (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\0\0\0", b"\0\xff\xff\xff")
            )
    return framed(bytes(body))


def with_a_size_that_lies(dice, frame):
    sizes = (0, 1, -1, -(2**31), 2**31 - 1, 100 * 2**20, 100 * 2**20 + 1, 5 * 2**20, len(frame), len(frame) - 5)
    return struct.pack(">i", dice.choice(sizes)) + frame[4:]


def something(dice, frame):
    kind = dice.randrange(8)
    if kind == 0:
        return dice.randbytes(dice.choice((1, 3, 100, 5_000)))
    if kind == 1:
        return with_a_size_that_lies(dice, frame)
    if kind in (2, 3, 4):
        return mutated(dice, frame)
    if kind == 5:
        return frame * 50
    if kind == 6:
        return frame[: dice.randrange(len(frame))]
    return frame


def send(address, data, *, listen_s=0.0):
    """One connection; whether the broker took it. It is not asked what it thinks."""
    with contextlib.suppress(ConnectionError, TimeoutError), socket.create_connection(address, timeout=5) as sock:
        sock.sendall(data)
        if listen_s:
            sock.settimeout(listen_s)
            sock.recv(2**16)


def attack(target, address, seconds, seed):
    """Everything, for so long; how many connections it were."""
    dice = random.Random(seed)
    rows = [(key, version) for key, row in HANDLERS.items() for version in range(row.low, row.high + 1)]
    held = []
    until = time.monotonic() + seconds
    count = 0
    while time.monotonic() < until:
        dice.shuffle(rows)
        for key, version in rows:
            if time.monotonic() > until:
                break
            count += 1
            data = something(dice, valid(dice, key, version))
            if count % 10 == 0:  # half a request, or answers that nobody takes
                with contextlib.suppress(ConnectionError, TimeoutError):
                    held.append(socket.create_connection(address, timeout=5))
                    held[-1].sendall(data)
                if len(held) > 100:
                    held.pop(dice.randrange(len(held))).close()
            else:
                send(address, data, listen_s=0.02 if count % 7 == 0 else 0.0)
        assert target.broker.is_running
    for sock in held:
        sock.close()
    return count


def is_unharmed(target, bystander, before, descriptors):
    assert target.broker.is_running
    assert bystander.error is None, bystander.error
    assert bystander.longest_s < promised(5.0)
    assert target.resident_bytes() - before < MOST_MEMORY
    wait_for(lambda: target.descriptors() <= descriptors + 25, PATIENCE_S, "the descriptors to be given back")
    complaints = target.broker.log.read_text()
    assert "Traceback" not in complaints, complaints[-6_000:]


def warm(target):
    """What the broker holds once it has compiled every codec."""
    attack(target, target.attacked, 1.0, SEED - 1)
    return target.resident_bytes(), target.descriptors()


# --- the tests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", ["attacked", "internal"])
def test_anything_at_all(target, port):
    before, descriptors = warm(target)
    with Bystander(target) as bystander:
        sent = attack(target, getattr(target, port), 5.0, SEED)
    assert sent > 100
    is_unharmed(target, bystander, before, descriptors)


def test_requests_that_end_at_every_byte(target):
    before, descriptors = warm(target)
    dice = random.Random(SEED)
    with Bystander(target) as bystander:
        for key, row in HANDLERS.items():
            for version in sorted({row.low, row.high}):
                whole = encode_request(
                    APIS[key], version, 1, "c", random_message(dice, APIS[key].request, version, WORDS)
                )
                for end in range(4, min(len(whole), 120)):
                    send(target.attacked, framed(whole[4:end]) + framed(whole[4:]))
    is_unharmed(target, bystander, before, descriptors)


def test_sizes_that_are_announced_by_many_and_never_come(target):
    before, descriptors = warm(target)
    with Bystander(target) as bystander, contextlib.ExitStack() as held:
        for address in (target.attacked, target.internal):
            for _ in range(150):
                sock = held.enter_context(socket.create_connection(address, timeout=5))
                with contextlib.suppress(ConnectionError):
                    sock.sendall(struct.pack(">i", 99 * 2**20) + b"\0\x01\0\x04")
        bystander.is_served()
    is_unharmed(target, bystander, before, descriptors)


def test_answers_that_nobody_reads(target):
    """Of each peer the broker keeps 16 MiB and what one slice of requests adds, and reads no more requests."""
    before, descriptors = warm(target)
    question = encode_request(APIS[32], 4, 1, "c", random_message(random.Random(1), APIS[32].request, 4, WORDS))
    everything = encode_request(APIS[3], 9, 1, "c", MetadataRequest(topics=None))
    with Bystander(target) as bystander, contextlib.ExitStack() as held:
        for _ in range(3):
            sock = held.enter_context(socket.create_connection(target.attacked, timeout=5))
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                sock.sendall((question + everything) * 3_000)
        bystander.is_served()
    is_unharmed(target, bystander, before, descriptors)
