"""How fast partitions are written to follows from where they ended; when unread records are pushed out, from that and bytes."""

from __future__ import annotations

import math

import pytest

from controlplane.groups.rounds import Part
from controlplane.history.lag.paces import FORGOTTEN_S, Pace, Pushed, paced, pushed_out

PLACE, OTHER = ("k.orders", 0), ("k.orders", 1)


def looks(*ends, every_s=60):
    """The pace after looks at one partition that ended there."""
    found: dict = {}
    for number, end in enumerate(ends):
        found = paced(found, {PLACE: end}, 1_000 + every_s * number)
    return found[PLACE].per_s


def test_one_look_says_nothing_and_two_do():
    assert looks(600) is None
    assert looks(600, 1_200) == 10.0
    assert looks(600, 600) == 0.0


def test_the_newest_minute_counts_a_fifth():
    assert looks(0, 600, 600) == pytest.approx(8.0)
    assert looks(0, 600, 600, 600) == pytest.approx(6.4)


def test_an_end_that_went_back_or_was_not_seen_for_a_while_begins_anew():
    assert looks(600, 1_200, 100) is None
    assert looks(600, 1_200, every_s=FORGOTTEN_S + 1) is None
    assert looks(600, 1_200, every_s=0) is None
    assert looks(600, 1_200, every_s=-60) is None


def test_what_is_not_behind_in_one_round_keeps_its_pace_for_a_while():
    before = {OTHER: Pace(1, 1_000, 1.0)}
    assert paced(before, {PLACE: 5}, 1_000 + FORGOTTEN_S) == {PLACE: Pace(5, 1_000 + FORGOTTEN_S)} | before
    assert paced(before, {PLACE: 5}, 1_001 + FORGOTTEN_S) == {PLACE: Pace(5, 1_001 + FORGOTTEN_S)}
    assert paced(before, {OTHER: 121}, 1_120)[OTHER].per_s == 1.0, "behind again two minutes later"


def pushed(*parts, limit=1_000, paces=None):
    return judged(*parts, limit=limit, paces=paces)[0]


def judged(*parts, limit=1_000, paces=None):
    return pushed_out("k.orders", parts, limit, {PLACE: Pace(9, 0, 2.0), OTHER: Pace(9, 0, 0.0)} | (paces or {}))


def test_the_room_that_is_left_is_filled_at_the_pace_with_records_of_that_size():
    """80 records of 10 bytes are unread; 20 bytes a second come: 200 bytes are left for 10 s."""
    assert pushed(Part(0, 80, 800, 9)) == Pushed(10_000, 50_000)


def test_what_is_beyond_the_limit_may_go_at_once():
    assert pushed(Part(0, 80, 1_600, 9)).left_ms == 0


def test_nothing_is_pushed_out_where_nothing_is_written():
    assert pushed(Part(1, 80, 1_600, 9)) == Pushed(math.inf, math.inf)
    assert pushed() == Pushed(math.inf, math.inf)


def test_the_soonest_partition_counts():
    slow = Pace(9, 0, 0.1)
    assert pushed(Part(1, 80, 800, 9), Part(0, 80, 800, 9), paces={OTHER: slow}).left_ms == 10_000


@pytest.mark.parametrize("unknown", [Part(0, 80, None, 9), Part(7, 80, 800, 9)])
def test_what_is_not_known_of_one_is_said_and_hides_no_other(unknown):
    assert judged(Part(1, 80, 800, 9), unknown) == (Pushed(math.inf, math.inf), False)
    assert judged(unknown, Part(0, 80, 800, 9)) == (Pushed(10_000, 50_000), False)
    assert judged(Part(0, 80, 800, 9)) == (Pushed(10_000, 50_000), True)
