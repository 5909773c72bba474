"""Long work shares the loop: a millisecond a turn, owners by turns, one piece of an owner at a time."""

import pytest

from dataplane import slices as slices_module
from dataplane.clock import SystemClock
from dataplane.network.loop import EpollLoop
from dataplane.records.steps import resumed, run_through
from dataplane.slices import AT_ONCE_S, CONTROLLER, INTERNAL, SLICE_S, STEPS_PER_SLICE, Slices
from dataplane.tasks import CancelledError
from tests.support.memory_files import ImmediateBackground

STEP_S = SLICE_S / 9.99


class Turns:
    """A loop whose turns are counted by hand, and its clock, which moves when work is done."""

    def __init__(self):
        self.callbacks, self.clock, self.seconds, self.turn_number = [], self, 0.0, 1

    def monotonic(self):
        return self.seconds

    def call_soon(self, callback):
        self.callbacks.append(callback)

    def turn(self):
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()
        self.end()
        return len(callbacks)

    def end(self):
        self.turn_number += 1


@pytest.fixture
def loop():
    return Turns()


@pytest.fixture
def background():
    return ImmediateBackground()


@pytest.fixture
def charged():
    return []


@pytest.fixture
def slices(loop, background, charged):
    return Slices(loop, background, lambda owner, seconds: charged.append((owner, round(seconds / SLICE_S, 1))))


@pytest.fixture
def work(loop):
    """`work(seen, name, slices)`: so many slices of ten steps, and at the end nothing more."""

    def steps(seen, name, slices):
        for number in range(slices):
            seen.append(f"{name}{number}")
            for _ in range(10):
                loop.seconds += STEP_S
                yield None
        seen.append(f"{name} done")
        return name

    return steps


def test_what_takes_less_than_a_slice_is_done_at_once(slices, loop):
    def short():
        for _ in range(9):
            loop.seconds += STEP_S
            yield None
        return "short"

    future = slices.run("x", short())
    assert (future.done, future.result(), loop.callbacks) == (True, "short", [])


def test_a_slice_a_turn_and_owners_take_turns(slices, loop, work):
    seen = []
    futures = [slices.run(owner, work(seen, owner, 3)) for owner in "ab"]
    assert seen == ["a0", "b0"]
    for expected in (["a1"], ["b1"], ["a2"], ["b2"]):
        seen.clear()
        before = loop.seconds
        assert loop.turn() == 1
        assert seen == expected
        assert loop.seconds - before == pytest.approx(SLICE_S, rel=0.01)
    loop.turn()
    assert [future.result() for future in futures] == ["a", "b"]
    assert loop.turn() == 0


def test_what_needs_less_than_a_slice_leaves_the_rest_of_it_to_others(slices, loop, work):
    seen = []
    slices.run("a", work(seen, "a", 1))
    slices.run("b", work(seen, "b", 2))
    loop.turn()
    assert seen == ["a0", "b0", "a done", "b1"]


def test_what_begins_in_one_turn_is_bounded_as_well(slices, loop, work):
    seen = []
    for owner in "abcd":
        slices.run(owner, work(seen, owner, 1))
    assert seen == ["a0", "b0"]
    loop.end()
    slices.run("e", work(seen, "e", 1))
    assert seen == ["a0", "b0", "e0"]


def test_what_the_ends_of_one_turn_bring_one_after_the_other_is_part_of_it():
    """As the portions of a large commit: each is over at the end of a turn, which begins the next."""
    loop = EpollLoop(SystemClock())
    slices, turns = Slices(loop, ImmediateBackground()), []

    def busy():
        yield None
        until = loop.clock.monotonic() + AT_ONCE_S / 2
        while loop.clock.monotonic() < until:
            pass

    def again(_=None):
        turns.append(loop.turn_number)
        if len(turns) == 40:
            loop.stop()
        else:
            slices.run("x", busy()).then(lambda _: loop.at_turn_end(again))

    loop.call_soon(again)
    loop.run()
    loop.close()
    assert len(set(turns)) >= 13  # two at once, and one in the turn's slice


def test_a_second_piece_of_an_owner_begins_when_the_first_is_over(slices, loop, work):
    seen = []
    first, second = slices.run("x", work(seen, "a", 1)), slices.run("x", work(seen, "b", 0))
    assert not second.done
    loop.turn()
    assert seen == ["a0", "a done", "b done"]
    assert first.done
    assert second.done


def test_so_many_are_under_way_in_all(slices, loop, work, monkeypatch):
    monkeypatch.setattr(slices_module, "MAX_UNDER_WAY", 2)
    monkeypatch.setattr(slices_module, "AT_ONCE_S", 1.0)
    seen = []
    futures = [slices.run(owner, work(seen, owner, 1)) for owner in "abcab"]
    assert seen == ["a0", "b0"]
    while loop.turn():
        pass
    assert all(future.done for future in futures)
    assert seen.index("c0") > seen.index("a done")


def test_the_clusters_own_work_has_every_second_slice_and_its_own_places(slices, loop, work, monkeypatch):
    monkeypatch.setattr(slices_module, "MAX_UNDER_WAY", 2)
    monkeypatch.setattr(slices_module, "AT_ONCE_S", 1.0)
    seen = []
    for owner in "abc":
        slices.run(owner, work(seen, owner, 4))
    slices.run(INTERNAL, work(seen, "i", 4))
    slices.run(INTERNAL, work(seen, "j", 4))
    assert seen == ["a0", "b0", "i0", "j0"]
    for _ in range(6):
        loop.turn()
    assert seen[4:] == ["i1", "a1", "j1", "b1", "i2", "a2"]


def test_the_clusters_own_work_is_bounded_too(slices, loop, work, monkeypatch):
    monkeypatch.setattr(slices_module, "MAX_INTERNAL_UNDER_WAY", 1)
    seen = []
    slices.run(INTERNAL, work(seen, "i", 2))
    slices.run(INTERNAL, work(seen, "j", 1))
    slices.run("a", work(seen, "a", 1))
    assert seen == ["i0", "a0"]
    while loop.turn():
        pass
    assert seen.index("j0") > seen.index("i done")


def test_a_controllers_word_waits_for_no_other_work_of_the_cluster(slices, loop, work, charged, monkeypatch):
    monkeypatch.setattr(slices_module, "MAX_UNDER_WAY", 1)
    monkeypatch.setattr(slices_module, "MAX_INTERNAL_UNDER_WAY", 2)
    monkeypatch.setattr(slices_module, "AT_ONCE_S", 1.0)
    seen = []
    slices.run("a", work(seen, "a", 9))
    for _ in range(3):
        slices.run(INTERNAL, work(seen, "i", 9))
    slices.run(CONTROLLER, work(seen, "c", 3))
    assert seen == ["a0", "i0", "i0", "c0"]
    for _ in range(8):
        loop.turn()
    assert seen[4:] == ["i1", "a1", "c1", "a2", "i1", "a3", "c2", "a4"]
    assert {owner for owner, _ in charged} == {"a", INTERNAL}


def test_a_clock_that_stands_still_does_not_make_a_slice_endless(slices, loop):
    steps = []

    def forever():
        while True:
            steps.append(None)
            yield None

    slices.run("x", forever())
    assert len(steps) == STEPS_PER_SLICE
    loop.turn()
    assert len(steps) == 2 * STEPS_PER_SLICE


def test_owners_are_charged_for_slices_but_not_for_what_runs_in_their_callers_time(slices, loop, work, charged):
    slices.run("a", work([], "a", 2))
    slices.run("b", work([], "b", 1))
    assert charged == []
    while loop.turn():
        pass
    assert charged == [("a", 1.0), ("b", 0.0), ("a", 0.0)]


@pytest.mark.parametrize(("owner", "part"), [("greedy", 0.5), ("modest", 1.0), (CONTROLLER, 1.0), (INTERNAL, 1.0)])
def test_a_greedy_tenants_slice_is_as_short_as_its_share_and_none_of_the_clusters_own_is(
    loop, background, work, owner, part
):
    """Whitelists and ACLs are in force within two seconds by what is INTERNAL, whatever it costs."""
    slices = Slices(loop, background, share=lambda owner: 1.0 if owner == "modest" else 0.5)
    slices.run(owner, work([], owner, 3), at_once=False)
    before = loop.seconds
    loop.turn()
    assert loop.seconds - before == pytest.approx(part * SLICE_S, abs=1.1 * STEP_S)


def test_a_greedy_tenants_share_is_not_left_to_others_of_its_kind(loop, background, work):
    slices, seen = Slices(loop, background, share=lambda _: 0.5), []
    for owner in ("one", "two"):
        slices.run(owner, work(seen, owner, 3), at_once=False)
    before = loop.seconds
    loop.turn()
    assert loop.seconds - before == pytest.approx(0.5 * SLICE_S, abs=1.1 * STEP_S)
    loop.turn()
    assert seen == ["one0", "two0"]


def test_calls_are_made_in_the_background_and_their_errors_come_back(slices, loop, background):
    def calling():
        got = yield lambda: 20
        try:
            yield lambda: 1 // 0
        except ZeroDivisionError:
            got += 1
        return got

    background.held = True
    future = slices.run("x", calling())
    loop.turn()
    assert not future.done
    background.held = False
    background.release()
    while loop.turn():
        pass
    assert future.result() == 21


def test_an_error_ends_its_piece_only(slices, loop, work):
    def failing():
        yield None
        raise KeyError("bad")

    bad, good = slices.run("x", failing()), slices.run("x", work([], "a", 1))
    while loop.turn():
        pass
    assert isinstance(bad.error, KeyError)
    assert good.result() == "a"


def turns_until(loop, job):
    while not job.done:
        assert loop.turn(), "nobody goes on with it"


def test_a_bug_in_what_waits_for_one_piece_keeps_no_other_waiting(slices, loop, work):
    def breaks(_done):
        raise ZeroDivisionError

    first, second = slices.run("x", work([], "a", 3)), slices.run("y", work([], "b", 5))
    first.then(breaks)
    with pytest.raises(ZeroDivisionError):
        turns_until(loop, first)
    assert first.done
    loop.end()
    turns_until(loop, second)


class Witness:
    """Steps that say when they were closed."""

    def __init__(self):
        self.steps, self.is_closed = 0, False

    def run(self):
        try:
            while True:
                self.steps += 1
                yield None
        finally:
            self.is_closed = True


def test_what_nobody_wants_any_more_is_dropped_and_the_next_begins(slices, loop, work):
    witness, seen = Witness(), []
    dropped, following = slices.run("x", witness.run()), slices.run("x", work(seen, "a", 1))
    before = witness.steps
    dropped.give_up()
    loop.turn()
    assert witness.is_closed
    assert isinstance(dropped.error, CancelledError)
    while loop.turn():
        pass
    assert witness.steps == before
    assert following.result() == "a"


def test_what_waits_is_dropped_as_well(slices, loop, work):
    seen = []
    slices.run("x", work(seen, "a", 1))
    dropped, third = slices.run("x", work(seen, "b", 1)), slices.run("x", work(seen, "c", 0))
    dropped.give_up()
    while loop.turn():
        pass
    assert seen == ["a0", "a done", "c done"]
    assert third.done


def test_what_is_dropped_while_the_background_works_for_it_stays_dropped(slices, loop, background, work):
    def calling():
        yield lambda: 1
        raise AssertionError("went on")

    background.held = True
    job, following = slices.run("x", calling()), slices.run("x", work([], "a", 0))
    job.give_up()
    background.held = False
    background.release()
    while loop.turn():
        pass
    assert isinstance(job.error, CancelledError)
    assert following.done


def test_steps_that_have_begun_go_on_where_they_are():
    def steps():
        got = yield lambda: 3
        try:
            yield lambda: 1 // 0
        except ZeroDivisionError:
            got += 1
        yield None
        return got

    begun = steps()
    assert run_through(resumed(begun, next(begun))) == 4


def test_of_what_was_dropped_one_piece_is_closed_in_a_turn(slices, loop, charged):
    """What each has made of its request so far is let go at once, which takes its time."""
    witnesses = [Witness() for _ in range(4)]
    jobs = [slices.run(INTERNAL, witness.run()) for witness in witnesses]
    for job in jobs:
        job.give_up()
    closed = []
    for _ in witnesses:
        loop.turn()
        closed.append(sum(witness.is_closed for witness in witnesses))
    assert closed == [1, 2, 3, 4]
    assert len([owner for owner, _ in charged if owner == INTERNAL]) >= 4
