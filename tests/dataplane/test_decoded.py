"""Long requests take room before they are decoded, and who finds none waits; what was taken is always given back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.decoded import MOST_BYTES, MOST_INTERNAL_BYTES, MOST_OF_ALL_BYTES, Decoded
from dataplane.slices import CONTROLLER, INTERNAL
from dataplane.tasks import CancelledError, Later

HALF = MOST_BYTES // 2


class Work(Later):
    """Says when it began, and ends when the test says so."""

    begun = False

    def give_up(self):
        self.fail(CancelledError())

    def __call__(self):
        self.begun = True
        return self


@pytest.fixture
def decoded():
    return Decoded()


def begin(decoded, owner="one", size=HALF):
    work = Work()
    return decoded.begin(owner, size, work), work


def test_who_has_room_begins_at_once_and_has_the_works_own_outcome(decoded):
    begun, work = begin(decoded)
    assert work.begun
    work.resolve("answer")
    assert begun.result() == "answer"


def test_an_error_is_the_works_own_too(decoded):
    begun, work = begin(decoded)
    work.fail(LookupError("gone"))
    assert isinstance(begun.error, LookupError)


def test_who_finds_no_room_waits_for_it_in_order(decoded):
    first, second, third, fourth = [begin(decoded)[1] for _ in range(4)]
    assert [work.begun for work in (first, second, third, fourth)] == [True, True, False, False]
    second.resolve(None)
    assert [work.begun for work in (third, fourth)] == [True, False]
    first.resolve(None)
    assert fourth.begun


def test_a_small_one_does_not_overtake_a_large_one(decoded):
    held = begin(decoded)[1]
    large, small = begin(decoded, size=MOST_BYTES)[1], begin(decoded, size=1)[1]
    assert not small.begun
    held.resolve(None)
    assert (large.begun, small.begun) == (True, False)


def test_one_that_is_larger_than_all_begins_alone(decoded):
    assert begin(decoded, size=10 * MOST_BYTES)[1].begun


def test_others_do_not_wait_for_it_and_all_have_an_end(decoded):
    owners = [f"owner-{n}" for n in range(MOST_OF_ALL_BYTES // HALF + 3)]
    firsts = [begin(decoded, owner)[1] for owner in owners]
    assert all(work.begun for work in firsts)  # who has nothing waits for nobody
    seconds = [begin(decoded, owner)[1] for owner in owners]
    assert not any(work.begun for work in seconds)
    for work in firsts:
        work.resolve(None)
    assert all(work.begun for work in seconds)


def test_the_clusters_own_has_room_of_its_own_and_the_controller_as_well(decoded):
    begin(decoded, size=MOST_OF_ALL_BYTES)
    for owner in (INTERNAL, CONTROLLER):
        works = [begin(decoded, owner, MOST_INTERNAL_BYTES // 4)[1] for _ in range(5)]
        assert [work.begun for work in works] == [True] * 4 + [False]


def test_who_gives_up_while_he_waits_never_begins(decoded):
    held = begin(decoded, size=MOST_BYTES)[1]
    (gone, work), (_, behind) = begin(decoded), begin(decoded)
    gone.give_up()
    assert isinstance(gone.error, CancelledError)
    held.resolve(None)
    assert (work.begun, behind.begun) == (False, True)


def test_what_a_handler_keeps_while_it_waits_has_room_after_the_work_is_over(decoded):
    """As `dispatch` does: the outcome is a coroutine, which takes room in the same breath."""
    begun, work = begin(decoded, size=MOST_BYTES)
    begun.then(lambda _: decoded.take("one", MOST_BYTES))
    waiting = begin(decoded)[1]
    work.resolve("a coroutine")
    assert not waiting.begun
    decoded.give_back("one", MOST_BYTES)
    assert waiting.begun


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, MOST_BYTES), st.sampled_from(["begin", "end", "go"]))))
def test_whatever_happens_all_of_it_is_given_back_and_nobody_waits_for_ever(moves):
    decoded, under_way = Decoded(), []
    for owner, size, move in moves:
        if move == "begin":
            under_way.append(begin(decoded, owner, size))
        elif under_way:
            begun, work = under_way.pop(size % len(under_way))
            if move == "go" or not work.begun:
                begun.give_up()
            else:
                work.resolve(None)
    while under_way:
        ready = next(((begun, work) for begun, work in under_way if work.begun), None)
        assert ready is not None
        under_way.remove(ready)
        ready[1].resolve(None)
    assert (decoded._taken, decoded._lines, decoded._of_all) == ({}, {}, 0)


def test_who_comes_while_the_line_is_let_in_is_not_forgotten(decoded):
    _, first = begin(decoded, size=MOST_BYTES)
    came = []

    class Quick(Work):
        """Over at once; what it has answered brings another of the same owner."""

        def __call__(self):
            came.append(begin(decoded, size=MOST_BYTES)[1])
            return super().__call__()

    quick, last = Quick(), Work()
    decoded.begin("one", HALF, quick)
    decoded.begin("one", MOST_BYTES, last)
    first.resolve(None)
    quick.resolve(None)
    last.resolve(None)
    assert [work.begun for work in (last, *came)] == [True, True]
