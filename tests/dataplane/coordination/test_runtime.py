"""The runtime of coordinators, with locks for a state machine: nothing of it is about groups."""

import pytest

from dataplane.coordination.effects import Gradually, Reply, SetTimer
from dataplane.coordination.runtime import LOAD_RETRY_S, REPLIES_AT_ONCE
from dataplane.protocol.errors import ErrorCode
from dataplane.slices import STEPS_PER_SLICE
from tests.dataplane.coordination.locks import LEASE_MS, TOPIC, Ended, World

LEASE_S = LEASE_MS / 1000


@pytest.fixture
def world():
    made = World()
    made.elect()
    return made


def test_a_request_is_answered_when_what_it_depends_on_is_committed(world):
    world.log.slow = True
    asked = world.acquire("ana")
    assert not asked.done
    assert world.holder() is None
    world.log.commit()
    assert asked.result() == ErrorCode.NONE
    assert world.holder() == "ana"
    assert world.log.records[0] == [(b"l", b"ana")]


def test_who_has_to_wait_is_parked_until_a_timer_makes_room(world):
    world.acquire("ana")
    waits = world.acquire("bob")
    world.run(LEASE_S - 1)
    assert not waits.done
    world.run(1)
    assert waits.result() == ErrorCode.NONE
    assert world.holder() == "bob"


def test_a_successor_knows_what_was_committed_and_timers_begin_when_it_is_loaded(world):
    world.acquire("ana")
    world.run(LEASE_S - 1)
    world.runtime.stop()
    world.runtime = world.new_runtime()
    world.elect(2)
    assert world.holder() == "ana"
    world.run(LEASE_S - 1)
    assert world.holder() == "ana"
    world.run(1.1)
    assert world.holder() is None


def test_an_entry_of_which_nothing_is_left_is_forgotten_with_its_timers(world):
    world.acquire("ana")
    [entry] = world.runtime.shard(0).contents.all_entries()
    world.run(LEASE_S + 0.1)
    assert world.runtime.shard(0).contents.entries == {}
    assert not entry.timers._timers


def test_who_waits_when_the_broker_resigns_is_told_once_and_no_timer_rings(world):
    world.acquire("ana")
    waits = world.acquire("bob")
    world.log.slow = True
    unstored = world.acquire("carl", "m")
    world.resign()
    assert (waits.result(), unstored.result()) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)
    world.log.commit()
    world.run(10 * LEASE_S)
    assert world.log.records[0] == [(b"l", b"ana"), (b"m", b"carl")]
    assert world.runtime.shard(0) == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("log_says", "client_hears"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_the_log_refuses_is_an_event_that_says_why(world, log_says, client_hears):
    world.log.error = log_says
    assert world.acquire("ana").result() == client_hears
    world.log.error = ErrorCode.NONE
    assert world.acquire("bob").result() == ErrorCode.NONE


def test_the_same_leader_in_the_next_epoch_goes_on_and_any_later_one_loads_again(world):
    world.acquire("ana")
    waits = world.acquire("bob")
    world.elect(2)
    assert not waits.done
    world.elect(4)
    assert waits.result() == ErrorCode.NOT_COORDINATOR
    assert world.holder() == "ana"


def test_partitions_of_other_topics_are_none_of_its_business(world):
    world.runtime.on_leadership("__other", 0, None)
    world.runtime.on_leadership("__other", 1, 1)
    assert [shard.index for shard in world.runtime.shards()] == [0]


def test_what_cannot_be_loaded_is_known_to_nobody_and_tried_again(world, caplog):
    world.acquire("ana")
    world.resign()
    loaded = []
    world.runtime.on_loaded(lambda shard: loaded.append(shard.index))
    world.log.read_error = OSError("the disk")
    world.elect(5)
    assert world.runtime.has_failed(0)
    assert world.runtime.shard(0) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert f"partition 0 of {TOPIC} cannot be loaded: the disk" in caplog.text
    assert (world.runtime.serving(), loaded) == ([], [])
    world.log.read_error = None
    world.run(LOAD_RETRY_S)
    assert world.holder() == "ana"
    assert loaded == [0]


def test_a_batch_that_cannot_be_read_is_passed_over_with_a_line_in_the_log(world, caplog):
    world.acquire("ana")
    world.log.unreadable = ["CRC (offsets 3 to 4)"]
    world.elect(3)
    assert world.holder() == "ana"
    assert f"a batch of partition 0 of {TOPIC} is passed over: CRC (offsets 3 to 4)" in caplog.text


def test_of_very_many_replies_a_turn_makes_some_and_later_ones_the_others_in_order(world):
    world.acquire("ana")
    waiting = [world.acquire(f"member-{n}") for n in range(3 * REPLIES_AT_ONCE)]
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS  # all who wait are told of it at once, when the lease ends
    answered = []
    for number, future in enumerate(waiting):
        future.then(lambda _, number=number: answered.append((world.loop.turns, number)))
    world.run(LEASE_S + 1)
    turns = [turn for turn, _ in answered]
    assert [number for _, number in answered] == list(range(3 * REPLIES_AT_ONCE))
    assert max(turns.count(turn) for turn in turns) == REPLIES_AT_ONCE


def test_a_reply_that_waits_for_a_later_turn_is_not_made_twice_when_the_broker_resigns(world):
    world.acquire("ana")
    waiting = [world.acquire(f"member-{n}") for n in range(3 * REPLIES_AT_ONCE)]
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    waiting[0].then(lambda _: world.runtime.stop())
    world.run(LEASE_S + 1)
    assert all(future.done for future in waiting)


def test_an_answer_that_fails_keeps_no_other_from_its_own(world, monkeypatch):
    soon = []
    monkeypatch.setattr(world.runtime._loop, "call_soon", soon.append)  # a simulation ends where something fails
    shard = world.runtime.shard(0)
    parked = [world.runtime.park(shard, lambda error: error) for _ in range(3 * REPLIES_AT_ONCE)]
    told = []
    for token, future in parked:
        if token == parked[REPLIES_AT_ONCE][0]:
            future.then(_breaks)
        future.then(lambda answered: told.append(answered.result()))
        world.runtime._reply(shard, Reply(token, token))
    with pytest.raises(ZeroDivisionError):
        soon.pop()()
    while soon:
        soon.pop()()
    assert sorted(told) == [token for token, _ in parked if token != parked[REPLIES_AT_ONCE][0]]


def _breaks(_answered):
    raise ZeroDivisionError


# --- what is carried out gradually ------------------------------------------------------------------------------------

MANY = 1_000


def _begin(world, effects_of):
    """As many requests that wait, and the effects that are made of them; their futures."""
    shard = world.runtime.shard(0)
    parked = [world.runtime.park(shard, lambda error: error) for _ in range(MANY)]
    entry = shard.contents.open("l")
    world.runtime._perform(shard, entry, Gradually(lambda: effects_of([token for token, _ in parked])))
    return [future for _, future in parked]


def _replies(tokens):
    return (Reply(token, token) for token in tokens)


def test_what_follows_for_many_takes_as_many_turns_as_it_needs_and_keeps_its_order(world):
    answered = []
    for future in _begin(world, _replies):
        if future.done:
            answered.append((world.loop.turns, future.result()))
        else:
            future.then(lambda done: answered.append((world.loop.turns, done.result())))
    world.run(1)
    turns = [turn for turn, _ in answered]
    assert len(answered) == MANY
    assert [token for _, token in answered] == sorted(token for _, token in answered)
    assert max(turns.count(turn) for turn in turns) <= STEPS_PER_SLICE


def test_timers_of_many_take_several_turns_too(world):
    entry = world.runtime.shard(0).contents.open("l")
    _begin(world, lambda tokens: (SetTimer(str(token), 60_000, Ended("nobody")) for token in tokens))
    assert 0 < len(entry.timers._timers) < MANY
    world.run(1)
    assert len(entry.timers._timers) == MANY


def test_who_waits_for_a_later_turn_is_told_once_when_the_broker_resigns_and_no_timer_begins(world):
    entry = world.runtime.shard(0).contents.open("l")
    futures = _begin(world, lambda tokens: (e for t in tokens for e in (Reply(t, t), SetTimer(str(t), 1, Ended("x")))))
    world.resign()
    told = [future.result() for future in futures]
    assert told.count(ErrorCode.NOT_COORDINATOR) > MANY / 2
    world.run(1)
    assert not entry.timers._timers


def test_what_fails_for_one_keeps_no_other_from_its_own(world, monkeypatch):
    soon = []
    monkeypatch.setattr(world.runtime._loop, "call_soon", soon.append)  # a simulation ends where something fails
    futures = _begin(world, _replies)
    waiting = [future for future in futures if not future.done]
    waiting[0].then(_breaks)
    failures = 0
    while soon:
        try:
            soon.pop(0)()
        except ZeroDivisionError:
            failures += 1
    assert failures == 1
    assert all(future.done for future in futures)


def test_what_is_carried_out_gradually_is_charged_to_whose_it_is(world, monkeypatch):
    charged = []
    monkeypatch.setattr(world.runtime._gradual, "_charge", lambda owner, _seconds: charged.append(owner))
    _begin(world, _replies)
    world.run(1)
    assert set(charged) == {"l"}
