"""Every request is counted once and timed, by the short cuts as by the handlers, and what it waited for is told apart."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.handlers.outcome import Encoded
from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.groups import HeartbeatResponse
from dataplane.replication.appending import Turn
from dataplane.requests.answers import Answers
from dataplane.requests.fastpath.produce import _Answer
from dataplane.tasks import Future, Later
from tests.dataplane.fetching.support import Door, single
from tests.dataplane.fetching.test_fetch_fast_path import Client, Gate, frame_of
from tests.dataplane.handlers.doors import tenant
from tests.dataplane.requests.test_replies import Socket, World
from tests.support.virtual_loop import VirtualClock

MESSAGE = HeartbeatResponse(error_code=27)


class Connection(Socket):
    """Where answers go."""


class Loop:
    """A clock that the test turns, and ends of turns that it makes."""

    def __init__(self):
        self.clock = VirtualClock()
        self.ends = []

    def at_turn_end(self, callback):
        self.ends.append(callback)

    def end_turn(self):
        ends, self.ends = self.ends, []
        for each in ends:
            each()


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def answers(loop):
    return Answers(loop, Connection(), tenant())


def taken(answers):
    return answers._session.instance.figures.take()


def begin(answers, key=ApiKey.METADATA):
    answers.begin(key)
    return answers.reserve()


def sums_of(api):
    return {phase: api.times(phase).sum_us for phase in ("total", "local", "remote", "throttle")}


def test_an_answer_is_timed_from_when_the_request_came_until_it_is_given_to_the_connection(answers, loop):
    for took_s in (0.002, 0.003):
        slot = begin(answers)
        loop.clock.seconds += took_s
        answers.fill_soon(slot, (b"x",))
        loop.end_turn()
    api = taken(answers).of("Metadata")
    assert (api.requests, sums_of(api)) == (2, {"total": 5_000, "local": 5_000, "remote": 0, "throttle": 0})


def test_what_came_together_is_timed_from_when_it_came_and_counted_in_one_sum(answers, loop):
    slots = [begin(answers), answers.reserve(), answers.reserve()]
    loop.clock.seconds += 0.002
    for slot in slots:
        answers.fill_soon(slot, (b"x",))
    last = begin(answers, ApiKey.HEARTBEAT)
    loop.clock.seconds += 0.001
    answers.fill_soon(last, (b"y",))
    loop.end_turn()
    counts = taken(answers)
    assert (counts.of("Metadata").requests, sums_of(counts.of("Metadata"))["total"]) == (3, 9_000)
    assert (counts.of("Heartbeat").requests, sums_of(counts.of("Heartbeat"))["total"]) == (1, 1_000)


def test_an_answer_that_waits_for_one_before_it_has_waited_for_others(answers, loop):
    first = begin(answers, ApiKey.FETCH)
    second = begin(answers)
    loop.clock.seconds += 0.001
    answers.fill(second, (b"2",))
    loop.clock.seconds += 0.5
    first.waited(0.5)
    answers.fill(first, (b"1",))
    counts = taken(answers)
    assert sums_of(counts.of("Metadata")) == {"total": 501_000, "local": 1_000, "remote": 500_000, "throttle": 0}
    assert sums_of(counts.of("Fetch"))["local"] == 1_000


def test_a_request_without_an_answer_is_a_request(answers, loop):
    answers.fill(begin(answers, ApiKey.PRODUCE), ())
    answers.begin(ApiKey.PRODUCE)
    answers.unanswered()
    assert taken(answers).of("Produce").unanswered == 2


def test_what_is_never_answered_is_not_counted(answers, loop):
    begin(answers)
    answers.drop()
    assert taken(answers) is None


def test_a_produce_waits_for_others_from_the_end_of_the_turn_in_which_it_was_written(answers, loop):
    for is_over in (False, True):
        turn = Turn()
        client = SimpleNamespace(answers=answers, broker=SimpleNamespace(doors=SimpleNamespace(clock=loop.clock)))
        partition = SimpleNamespace(log=SimpleNamespace(start_offset=0))
        shape = SimpleNamespace(answer=lambda *_: b"x")
        slot = _Answer(client, shape, b"", partition, 5, turn)
        answers.begin(ApiKey.PRODUCE)
        answers.append_slot(slot)
        loop.clock.seconds += 0.001
        if is_over:
            turn.ended_s = loop.clock.seconds
            loop.clock.seconds += 0.004
        slot(7 if is_over else 0)
        loop.end_turn()
    counts = taken(answers)
    assert sums_of(counts.of("Produce")) == {"total": 6_000, "local": 2_000, "remote": 4_000, "throttle": 0}
    assert counts.errors == {"REQUEST_TIMED_OUT": 1}


# --- handlers' replies ------------------------------------------------------------------------------------------------


@pytest.fixture
def world():
    made = World()
    made.session = tenant()
    made.client = type(made.client)(made.broker, made.socket, made.session)
    return made


def counted(world):
    return world.session.instance.figures.take()


def take(world, reply, *, is_long=False):
    world.client.answers.begin(ApiKey.HEARTBEAT)
    world.take(reply, is_long=is_long)


def test_error_codes_of_answers_are_counted_now_later_and_in_slices(world):
    def steps():
        for _ in range(100):
            yield None
        return MESSAGE

    later = Future()
    for reply in (MESSAGE, later, steps()):
        take(world, reply)
    later.resolve(MESSAGE)
    world.run()
    counts = counted(world)
    assert counts.of("Heartbeat").requests == 3
    assert counts.errors == {"REBALANCE_IN_PROGRESS": 3}


def test_a_reply_that_comes_later_has_waited_for_others_and_one_that_was_worked_on_has_not(world):
    waits = Later()
    take(world, waits)
    world.network.run_for(0.25)
    waits.resolve(MESSAGE)
    assert sums_of(counted(world).of("Heartbeat"))["remote"] == 250_000
    job = world.broker.slices.run("k3v9x2qa", iter_of(MESSAGE), at_once=False)
    assert (waits.waited_s(1.0, 6.0), job.waited_s(1.0, 6.0)) == (5.0, 0.0)


def iter_of(result):
    yield None
    return result


def test_what_an_answer_tells_its_client_to_wait_is_throttling(world):
    take(world, HeartbeatResponse(throttle_time_ms=120))
    take(world, Encoded([b"x"], 30))
    assert sums_of(counted(world).of("Heartbeat"))["throttle"] == 150_000


# --- fetches ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fetching():
    cluster = single(2)
    for _ in range(3):
        cluster.produce(1, "x" * 30)
        cluster.run(0.01)
    return cluster


def fetched(client):
    return client.door.instance.figures.take().of("Fetch")


@pytest.mark.parametrize("short_cut", [True, False])
def test_a_fetch_is_counted_once_whichever_way_it_goes(fetching, short_cut):
    client = Client(Door(fetching), short_cut=short_cut)
    for _ in range(3):
        client.ask(frame_of(12, 0))
    assert client.hits == (2 if short_cut else 0)
    assert fetched(client).requests == 3


@pytest.mark.parametrize("short_cut", [True, False])
def test_the_time_that_a_fetch_waits_for_records_is_told_apart(fetching, short_cut):
    client = Client(Door(fetching), short_cut=short_cut)
    client.ask(frame_of(12, 0, max_wait_ms=500))
    fetched(client)
    client.ask(frame_of(12, 3, max_wait_ms=500))
    fetching.run(0.6)
    api = fetched(client)
    assert api.requests == 1
    assert 499_000 <= sums_of(api)["remote"] <= 520_000
    assert sums_of(api)["local"] <= 10_000


@pytest.mark.parametrize("version", [10, 12])
def test_errors_of_a_fetch_are_counted(fetching, version):
    client = Client(Door(fetching))
    client.ask(frame_of(version, 10**6, max_wait_ms=0))
    fetching.run(0.01)
    assert fetched(client).errors == {"OFFSET_OUT_OF_RANGE": 1}


@pytest.mark.parametrize("short_cut", [True, False])
def test_a_fetch_that_is_throttled_says_for_how_long(fetching, short_cut):
    door = Door(fetching)
    door.broker.gate = Gate(0.25)
    door.instance.consume_bucket.delay_s = 0.25
    client = Client(door, short_cut=short_cut)
    for _ in range(2):
        client.ask(frame_of(12, 0))
    assert sums_of(fetched(client))["throttle"] == 500_000


def test_the_internal_listener_counts_nobodys_requests():
    world = World()
    world.take(MESSAGE)
    assert world.client.answers._figures is None


def test_a_request_that_waits_for_nothing_has_no_delays(answers, loop):
    assert begin(answers).asked == (ApiKey.METADATA, loop.clock.seconds)
