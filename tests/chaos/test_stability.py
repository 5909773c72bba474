"""A last stable offset that stands still is found, and told from one that waits for one transaction after the other."""

import pytest

from tests.chaos.stability import NEVER, Look, Stuck, judged, longest_stuck


def looks(*rows, partition=0):
    return [Look(float(at_s), partition, stable, end) for at_s, stable, end in rows]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0, 0, 0), (30, 0, 0), (60, 0, 0)],  # nobody writes
        [(0, 5, 9), (10, 7, 20), (20, 12, 30), (30, 30, 30)],  # it never is at the end, and moves
        [(0, 5, 9)],
        [(0, 5, 5), (30, 5, 9), (30.5, 9, 9)],  # what came is new
    ],
)
def test_one_that_moves_or_is_at_the_end_is_never_stuck(rows):
    assert longest_stuck(looks(*rows)) == NEVER


def test_it_is_stuck_from_the_first_look_below_the_end_to_the_last_at_the_same_offset():
    rows = looks((0, 0, 0), (1, 4, 6), (2, 4, 8), (9, 4, 8), (10, 8, 8), (11, 8, 9), (12, 8, 9))
    assert longest_stuck(rows) == Stuck(8.0, 0, 4)


def test_the_end_reached_at_the_same_offset_begins_the_time_anew():
    assert longest_stuck(looks((0, 4, 6), (5, 4, 6), (6, 4, 4), (7, 4, 6), (9, 4, 6))) == Stuck(5.0, 0, 4)


def test_looks_that_nobody_answers_do_not_shorten_the_time():
    assert longest_stuck(looks((0, 4, 6), (25, 4, 6))) == Stuck(25.0, 0, 4)


def test_nor_does_a_new_leader_that_does_not_know_yet_how_far_it_may_go():
    assert longest_stuck(looks((0, 4, 6), (5, 4, 6), (6, 2, 2), (6.5, 3, 6), (7, 4, 6), (25, 4, 9))) == Stuck(
        25.0, 0, 4
    )


def test_each_partition_has_its_own_time():
    first, second = looks((0, 4, 6), (8, 4, 6), (9, 6, 6)), looks((1, 4, 6), (5, 4, 6), (12, 4, 6), partition=1)
    together = sorted([*first, *second])
    assert longest_stuck(together) == Stuck(11.0, 1, 4)


def test_what_was_stuck_for_too_long_is_wrong_and_so_is_what_nobody_saw():
    rows = looks((0, 4, 6), (10, 4, 6), (20, 4, 6))
    assert list(judged(rows, 1, most_s=20)) == []
    assert list(judged(rows, 1, most_s=19.9)) == [
        "partition 0: the last stable offset stood at 4 for 20.0 s, and may for 20"
    ]
    assert list(judged(rows, 3, most_s=20)) == [
        "partition 1: nobody saw its last stable offset",
        "partition 2: nobody saw its last stable offset",
    ]


def test_what_nobody_saw_for_too_long_is_wrong_wherever_it_stood():
    rows = looks((0, 4, 4), (5, 4, 4), (26, 9, 9))
    assert list(judged(rows, 1, most_s=21)) == []
    assert list(judged(rows, 1, most_s=20)) == ["partition 0: nobody saw its last stable offset for 21.0 s"]
