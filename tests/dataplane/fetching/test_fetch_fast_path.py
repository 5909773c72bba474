"""The short cut of Fetch answers byte for byte what the slow path answers, and declines whatever is not plain."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.config import Settings
from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.fetch import FetchPartition
from dataplane.requests.dispatch import ClientConnection
from dataplane.tenancy.session import Session
from dataplane.throttle.debt_queue import DebtQueues
from dataplane.throttle.tolls import BYTES_OUT
from quota.contracts.namespace import ClusterNames
from quota.core.bucket import TokenBucket
from tests.dataplane.fetching.support import FETCH, Bucket, Door, request, single
from tests.dataplane.replication.cluster import TOPIC_ID

BATCHES = 6


class Connection:
    """Keeps what is sent."""

    max_frame_bytes = 2**31
    peer = ("127.0.0.1", 1)
    received_bytes = sent_bytes = 0

    def __init__(self):
        self.sent = []
        self.ended = False

    def send(self, parts):
        self.sent.append(b"".join(part if isinstance(part, bytes) else part.read() for part in parts))

    def close(self):
        self.ended = True

    def pause_reading(self):
        pass

    resume_reading = pause_reading


class Client:
    """A connection, with or without the short cut."""

    def __init__(self, door, *, short_cut=True):
        loop = door.broker.replicas.loop
        door.broker.doors = SimpleNamespace(loop=loop, clock=loop.clock, files=door.broker.doors.files)
        session = Session(door.instance, "default", door.instance.names, "127.0.0.1", authenticated=True)
        self.door = door
        self.connection = Connection()
        self.client = ClientConnection(door.broker, self.connection, session)
        self.shapes = self.client._fetch
        if not short_cut:
            self.client._fetch = SimpleNamespace(serve=lambda _: False, remember=lambda *_: None)

    def ask(self, frame):
        before = len(self.connection.sent)
        self.client.frame(memoryview(bytearray(frame)))
        self.door.cluster.run(0.001)
        return b"".join(self.connection.sent[before:])

    @property
    def hits(self):
        return self.shapes._hits


class Gate:
    """Charges nothing, or says always the same."""

    def __init__(self, delay_s=0.0, allowed=None):
        self.delay_s, self.allowed = delay_s, allowed

    def fetch_bytes(self, _instance, _window_s):
        return self.allowed

    def charge_consume(self, _instance, _sender, _size, told_s=0.0):
        return max(told_s, self.delay_s)


@pytest.fixture(scope="module")
def cluster():
    made = single(2)
    for number in range(BATCHES):
        made.produce(1, "x" * 30 * number)
        made.run(0.01)
    return made


def frame_of(version, offset, *, correlation_id=7, index=0, wanted=None, **members):
    members.setdefault("max_wait_ms", 0)
    row = FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=members.pop("partition_max_bytes", 2**20)
    )
    made = request({index: replace(row, **(wanted or {}))}, version, **members)
    if version < 13:
        made = replace(made, topics=(replace(made.topics[0], topic="orders"),))
    return encode_request(FETCH, version, correlation_id, "rdkafka", made, names=ClusterNames())[4:]


def pair(cluster, gate=None, **members):
    """Two clients of one broker: with the short cut, and without."""
    door = Door(cluster, **members)
    if gate is not None:
        door.broker.gate = gate
        door.instance.consume_bucket = Bucket(gate.delay_s)
    return Client(door), Client(door, short_cut=False)


@given(
    version=st.integers(10, 17),
    isolation_level=st.integers(0, 1),
    rack_id=st.sampled_from(["", "a", "r" * 126, "r" * 127, "é" * 64]),
    offsets=st.lists(st.integers(0, BATCHES), min_size=2, max_size=5),
    limits=st.sampled_from([(2**20, 2**20), (1, 2**20), (2**20, 1), (300, 300), (0, 0)]),
    min_bytes=st.sampled_from([0, 1, 500]),
    delay_s=st.sampled_from([0.0, 0.25]),
    allowed=st.sampled_from([None, 0, 250]),
)
@settings(max_examples=150, deadline=None)
def test_answers_are_those_of_the_slow_path(
    cluster, version, isolation_level, rack_id, offsets, limits, min_bytes, delay_s, allowed
):
    quick, slow = pair(cluster, Gate(delay_s, allowed))
    members = {"isolation_level": isolation_level, "min_bytes": min_bytes, "max_bytes": limits[1]}
    if version >= 11:
        members["rack_id"] = rack_id
    for number, offset in enumerate(offsets):
        frame = frame_of(version, offset, correlation_id=number, partition_max_bytes=limits[0], **members)
        assert quick.ask(frame) == slow.ask(frame)
    assert quick.hits == len(offsets) - 1


PLAIN = {"max_wait_ms": 500}


@pytest.mark.parametrize("version", [10, 11, 12, 16])
@pytest.mark.parametrize(
    "other",
    [
        {"offset": BATCHES + 1},  # out of range
        {"min_bytes": 10**6},
        {"index": 1},
        {"session_epoch": 0},
        {"wanted": {"current_leader_epoch": 3}},
    ],
)
def test_what_is_not_plain_goes_the_slow_way(cluster, version, other):
    quick, slow = pair(cluster)
    quick.ask(frame_of(version, 0, **PLAIN))
    assert quick.ask(frame_of(version, 1, **PLAIN)) == slow.ask(frame_of(version, 1, **PLAIN))
    assert quick.hits == 1
    for client in (quick, slow):
        client.ask(frame_of(version, **{"offset": 1, **PLAIN, **other}))
        cluster.run(1)
    assert quick.hits == 1
    assert len(quick.connection.sent) == 3


def test_a_belief_in_an_epoch_holds_only_in_that_epoch():
    cluster = single()
    cluster.produce(1, "x")
    cluster.run(0.1)
    quick, slow = pair(cluster)
    frame = frame_of(12, 0, wanted={"current_leader_epoch": 0})
    assert quick.ask(frame) == quick.ask(frame) == slow.ask(frame)
    assert quick.hits == 1
    cluster.elect(1, (1,))
    assert quick.ask(frame) == slow.ask(frame)
    assert quick.hits == 1


def test_a_whitelist_or_a_new_topic_of_the_name_are_seen_by_the_short_cut_too():
    cluster = single()
    cluster.produce(1, "x")
    cluster.run(0.1)
    quick, slow = pair(cluster)
    frame = frame_of(17, 0)
    quick.ask(frame)
    quick.door.instance.deny("orders")
    assert quick.ask(frame) == slow.ask(frame)
    assert quick.hits == 0
    quick.door.instance.deny()
    assert quick.ask(frame) == slow.ask(frame)
    assert quick.hits == 1


def test_the_id_of_anothers_topic_is_not_learned():
    cluster = single()
    cluster.produce(1, "x")
    cluster.run(0.1)
    from tests.dataplane.fetching.support import Instance

    door = Door(cluster, instance=Instance("ccccdddd"))
    stranger = Client(door)
    frame = frame_of(17, 0, topic_id=TOPIC_ID)
    assert stranger.ask(frame) == stranger.ask(frame)
    assert (stranger.hits, len(stranger.shapes._shapes)) == (0, 0)


def test_a_follower_is_read_the_slow_way_and_a_consumer_with_a_rack_where_racks_count():
    cluster = single()
    cluster.produce(1, "x")
    cluster.run(0.1)
    quick, slow = pair(cluster, settings=Settings(replica_selector_class="rack"))
    frame = frame_of(12, 0, rack_id="a")
    assert quick.ask(frame) == quick.ask(frame) == slow.ask(frame)
    assert quick.hits == 0


def test_shapes_and_lessons_are_bounded():
    cluster = single()
    cluster.produce(1, "x")
    cluster.run(0.1)
    quick, _ = pair(cluster)
    for number in range(300):
        quick.ask(frame_of(12, 0, max_bytes=1000 + number))
    assert len(quick.shapes._shapes) <= 64
    assert quick.shapes._lessons <= 66


@pytest.mark.parametrize("short_cut", [True, False])
def test_a_fetch_that_makes_a_debt_is_the_last_of_its_burst_whichever_way_it_goes(short_cut):
    cluster = single(2)
    cluster.produce(1, "x" * 100)
    cluster.run(0.01)
    door = Door(cluster)
    clock, rate = door.broker.replicas.loop.clock, 100
    door.instance.consume_bucket = bucket = TokenBucket(rate, clock.monotonic())
    door.instance.tolls, door.instance.other_tolls = {1: ((bucket, BYTES_OUT),)}, ()
    client = Client(door, short_cut=short_cut)
    lines = door.broker.debt_queues = DebtQueues(door.broker.replicas.loop)

    def charge_consume(_instance, sender, size, told_s=0.0):
        return max(told_s, lines.charge(bucket, sender, size, clock.monotonic()))

    door.broker.gate = Gate()
    door.broker.gate.charge_consume = charge_consume
    client.connection.pause_for_limit = client.connection.pause_reading
    frame = frame_of(12, 0)
    if short_cut:
        client.ask(frame)  # it is learnt
        cluster.run(60.0)
    begun = 0
    for number in range(20):
        if not client.client.begins(1, len(frame), (19 - number) * (len(frame) + 4)):
            break
        begun += 1
        client.client.frame(memoryview(bytearray(frame)))
    assert begun == 1


def test_a_fetch_that_is_let_in_before_its_turn_brings_nothing(cluster):
    frame = frame_of(12, 0)
    for client in pair(cluster):
        client.ask(frame)  # its shape is known from here on
        full = client.ask(frame)
        client.client.turnstile.reads_nothing = True
        empty = client.ask(frame)
        assert 0 < len(empty) < len(full) - 100
        client.client.turnstile.reads_nothing = False
        assert client.ask(frame) == full
