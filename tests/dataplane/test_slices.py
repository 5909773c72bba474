"""Long work shares the loop: a slice a turn, owners by turns, one piece of an owner at a time."""

import pytest

from dataplane import slices as slices_module
from dataplane.slices import Slices
from tests.support.memory_files import ImmediateBackground


class Turns:
    """A loop whose turns are counted by hand."""

    def __init__(self):
        self.callbacks = []

    def call_soon(self, callback):
        self.callbacks.append(callback)

    def turn(self):
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()
        return len(callbacks)


@pytest.fixture
def loop():
    return Turns()


@pytest.fixture
def background():
    return ImmediateBackground()


@pytest.fixture
def slices(loop, background):
    return Slices(loop, background)


def work(seen, name, pauses):
    for number in range(pauses):
        seen.append(f"{name}{number}")
        yield None
    seen.append(f"{name} done")
    return name


def test_what_does_not_pause_is_done_at_once(slices, loop):
    seen = []
    future = slices.run("x", work(seen, "a", 0))
    assert (future.done, future.result(), seen, loop.callbacks) == (True, "a", ["a done"], [])


def test_one_slice_a_turn_and_owners_take_turns(slices, loop):
    seen = []
    futures = [slices.run(owner, work(seen, owner, 2)) for owner in "ab"]
    assert seen == ["a0", "b0"]
    for expected in ("a1", "b1", "a done", "b done"):
        assert loop.turn() == 1
        assert seen[-1] == expected
    assert [future.result() for future in futures] == ["a", "b"]
    assert loop.turn() == 0


def test_a_second_piece_of_an_owner_begins_when_the_first_is_over(slices, loop):
    seen = []
    first, second = slices.run("x", work(seen, "a", 1)), slices.run("x", work(seen, "b", 0))
    assert not second.done
    loop.turn()
    assert (first.done, second.done) == (True, False)
    loop.turn()
    assert seen == ["a0", "a done", "b done"]
    assert second.done


def test_so_many_are_under_way_in_all(slices, loop, monkeypatch):
    monkeypatch.setattr(slices_module, "MAX_UNDER_WAY", 2)
    seen = []
    futures = [slices.run(owner, work(seen, owner, 1)) for owner in "abcab"]
    assert seen == ["a0", "b0"]
    while loop.turn():
        pass
    assert all(future.done for future in futures)
    assert seen.index("c0") > seen.index("a done")


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
    assert future.result() == 21


def test_an_error_ends_its_piece_only(slices, loop):
    def failing():
        yield None
        raise KeyError("bad")

    seen = []
    bad, good = slices.run("x", failing()), slices.run("x", work(seen, "a", 1))
    while loop.turn():
        pass
    assert isinstance(bad.error, KeyError)
    assert good.result() == "a"
