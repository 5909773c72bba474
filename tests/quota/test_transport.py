"""The link's behaviour in time, on a loop whose clock the test turns."""

import json
from itertools import pairwise

from quota.agent.agent import Agent, InstanceFacts
from quota.agent.transport import NO_ANSWER_S, MasterLink
from quota.wire import Decoder, frame
from tests.quota.samples import INSTANCE

GRANTS = {"version": 3, "type": "grants", "epoch": 1, "sequence": 1, "lease_ms": 10_000, "instances": {}}


class Conn:
    def __init__(self, address, on_open, on_data, on_closed):
        self.address, self.on_open, self.on_data, self.on_closed = address, on_open, on_data, on_closed
        self.sent, self.closed = b"", False

    def send(self, data):
        assert not self.closed
        self.sent += data

    def close(self):
        self.closed = True

    def documents(self):
        return [document["type"] for document in Decoder().feed(self.sent)]

    def answer(self):
        self.on_data(frame(json.dumps(GRANTS).encode()))


class Timer:
    def __init__(self):
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


class Door:
    def __init__(self):
        self.time, self.timers, self.conns = 0.0, [], []

    def connect(self, host, port, on_open, on_data, on_closed):
        self.conns.append(Conn((host, port), on_open, on_data, on_closed))
        return self.conns[-1]

    def call_later(self, seconds, fn):
        timer = Timer()
        self.timers.append((self.time + seconds, len(self.timers), fn, timer))
        return timer

    def now(self):
        return self.time

    def run(self, seconds):
        end = self.time + seconds
        while due := [entry for entry in self.timers if entry[0] <= end + 1e-9 and not entry[3].cancelled]:
            entry = min(due, key=lambda each: each[:2])
            self.timers.remove(entry)
            self.time = max(self.time, entry[0])
            entry[2]()
        self.time = end


def new_link():
    door = Door()
    agent = Agent(broker=1, boot="b", now=0.0)
    agent.configure(INSTANCE, 1000, 1000, 0.0)
    facts = {INSTANCE: InstanceFacts(1, 1, 0, 0)}
    link = MasterLink(door, agent, broker=1, secret="s", facts=facts.items, log=lambda line: None)
    link.start()
    return door, agent, link


def test_a_connection_begins_with_hello_and_a_report_and_reports_every_period():
    door, _, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    door.conns[0].on_open()
    assert door.conns[0].documents() == ["hello", "report"]
    for _ in range(3):
        door.run(1.05)
        door.conns[0].answer()
    assert door.conns[0].documents() == ["hello", *["report"] * 4]


def test_throttling_is_reported_at_once():
    door, agent, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    door.run(0.01)
    door.conns[0].on_open()
    door.run(0.5)
    agent.bucket(INSTANCE, "produce").charge(900, door.now())
    door.run(0.1)
    assert door.conns[0].documents() == ["hello", "report", "report"]


def test_refused_connections_are_tried_again_with_longer_and_longer_pauses():
    door, _, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    times = []
    for _ in range(8):
        times.append(door.time)
        before = len(door.conns)
        door.conns[-1].on_closed()
        while len(door.conns) == before:
            door.run(0.1)
    pauses = [round(after - before, 1) for before, after in pairwise(times)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_an_answer_resets_the_pause():
    door, _, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    for _ in range(4):
        door.conns[-1].on_closed()
        door.run(2.0)
    door.conns[-1].on_open()
    door.conns[-1].answer()
    count = len(door.conns)
    door.conns[-1].on_closed()
    door.run(0.1)
    assert len(door.conns) == count + 1


def test_a_master_that_does_not_answer_is_left():
    door, _, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    door.conns[0].on_open()
    door.run(NO_ANSWER_S - 0.1)
    assert not door.conns[0].closed
    door.run(0.5)
    assert door.conns[0].closed
    assert len(door.conns) == 2


def test_a_new_master_replaces_the_connection_and_the_old_one_is_not_heard_any_more():
    door, agent, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    door.conns[0].on_open()
    link.set_master("127.0.0.1", 6, 2)
    assert door.conns[0].closed
    assert door.conns[1].address == ("127.0.0.1", 6)
    door.conns[0].on_closed()
    door.conns[0].answer()
    door.run(5.0)
    assert len(door.conns) == 2
    assert agent.epoch == 2


def test_half_a_frame_of_the_old_connection_does_not_spoil_the_new_one():
    door, _, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    link.set_master("127.0.0.1", 6, 1)
    door.conns[0].on_data(b"\x00\x00")
    door.conns[1].on_open()
    door.conns[1].answer()
    assert link.connected


def test_without_a_master_the_link_is_quiet_and_leases_expire():
    door, agent, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    link.set_master(None)
    assert door.conns[0].closed
    door.run(30.0)
    assert len(door.conns) == 1
    assert not link.connected
    assert agent.epoch == 1


def test_the_first_report_after_a_gap_covers_a_period_and_not_the_gap():
    door, agent, link = new_link()
    agent.bucket(INSTANCE, "produce").charge(50, 0.0)
    door.run(60.0)
    link.set_master("127.0.0.1", 5, 1)
    door.run(0.5)
    door.conns[0].on_open()
    reports = [document for document in Decoder().feed(door.conns[0].sent) if document["type"] == "report"]
    assert reports[0]["period_ms"] <= 1100
    assert reports[0]["instances"][INSTANCE][0][0] == 0


def test_after_stop_nothing_is_called():
    door, _, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    link.stop()
    door.run(60.0)
    assert len(door.conns) == 1
    assert not [entry for entry in door.timers if not entry[3].cancelled]


def test_garbage_from_a_master_closes_the_connection():
    door, _, link = new_link()
    link.set_master("127.0.0.1", 5, 1)
    for data in (b"\xff" * 8, frame(b"{}"), frame(b'{"type":"grants","version":2}')):
        door.conns[-1].on_open()
        bad = door.conns[-1]
        bad.on_data(data)
        assert bad.closed
        door.run(2.0)
        assert door.conns[-1] is not bad
