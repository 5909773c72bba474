"""Deadlines that pass together are reported a few a turn, and one that waits for its report can still be moved."""

from __future__ import annotations

from collections import Counter

import pytest

from dataplane.coordination.deadlines import PASSED_AT_ONCE, Deadlines
from dataplane.coordination.portions import Portions
from tests.support.virtual_loop import VirtualNetwork

MANY = 5 * PASSED_AT_ONCE


class World:
    def __init__(self):
        self.network = VirtualNetwork()
        self.loop = self.network.loop("a")
        self.passed = []  # (turn, event)
        self.passing = Portions(self.loop, PASSED_AT_ONCE)

    def deadlines(self, passed=None):
        return Deadlines(
            self.loop, passed or (lambda event: self.passed.append((self.loop.turns, event))), self.passing
        )

    def run(self, seconds):
        self.network.run_for(seconds)

    @property
    def events(self):
        return [event for _, event in self.passed]


@pytest.fixture
def world():
    return World()


def together(world, count=MANY):
    """So many, each of an entry of its own, that pass after a second."""
    made = [world.deadlines() for _ in range(count)]
    for number, one in enumerate(made):
        one.set("session", 1.0, number)
    return made


def test_what_passes_together_is_reported_a_few_a_turn_in_order(world):
    together(world)
    world.run(0.999)
    assert world.passed == []
    world.run(0.1)
    assert world.events == list(range(MANY))
    a_turn = Counter(turn for turn, _ in world.passed)
    assert max(a_turn.values()) == PASSED_AT_ONCE
    assert len(a_turn) == MANY // PASSED_AT_ONCE


def test_afterwards_there_is_room_again(world):
    together(world)
    world.run(2)
    world.passed.clear()
    together(world, PASSED_AT_ONCE)
    world.run(2)
    assert len(Counter(turn for turn, _ in world.passed)) == 1


@pytest.mark.parametrize("delay_s", [0.5, 1.0])
def test_what_waits_for_its_report_can_be_moved_and_cancelled_and_set_again(world, delay_s):
    made = []

    def first(event):
        world.passed.append((world.loop.turns, event))
        if event == 0:
            made[-1].set("session", delay_s, "moved")
            made[-2].cancel("session")
            made[-3].cancel("session")
            made[-3].set("session", delay_s, "set again")

    made += [world.deadlines(first) for _ in range(MANY)]
    for number, one in enumerate(made):
        one.set("session", 1.0, number)
    world.run(1.0 + delay_s - 0.01)
    assert world.events == list(range(MANY - 3))
    world.run(0.1)
    assert sorted(world.events[MANY - 3 :]) == ["moved", "set again"]
    assert all(not one._due and not one._timers for one in made)


def test_heartbeats_of_a_thousand_cost_no_turns(world):
    """Timers that fire early are set again at once, and are not among those that wait."""
    made = together(world)
    world.run(0.5)
    for number, one in enumerate(made):
        one.set("session", 1.0, number)
    turns = world.loop.turns
    world.run(0.6)
    assert world.passed == []
    assert not world.passing._waiting
    assert world.loop.turns - turns <= 2
    world.run(0.5)
    assert world.events == list(range(MANY))


def test_one_whose_report_fails_keeps_no_other_from_its_own(world):
    failures = []
    world.network.survives = lambda error: failures.append(error) or True

    def fails(event):
        world.passed.append((world.loop.turns, event))
        if event == PASSED_AT_ONCE + 1:
            raise ZeroDivisionError

    for number in range(MANY):
        world.deadlines(fails).set("session", 1.0, number)
    world.run(2)
    assert sorted(world.events) == list(range(MANY))
    assert len(failures) == 1
