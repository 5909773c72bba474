"""What members of a group must not do is found in what they say, and nothing where all went well."""

from dataclasses import replace

import pytest

from tests.chaos.members.kept import Beginning, Commit, Taken, wrong

ENDS = {0: 20, 1: 5}
WELL = [
    Beginning("a", 1.0, 0, 0),
    Taken("a", 0, 0, 9),
    Commit("a", 2.0, 2.1, 0, 10),
    Taken("a", 0, 10, 14),  # and then it is killed: nothing of it is committed
    Beginning("b", 3.0, 0, 10),
    Taken("b", 0, 10, 19),
    Commit("b", 4.0, 4.1, 0, 20),
    Beginning("b", 1.0, 1, 0),
    Taken("b", 1, 0, 4),
    Commit("b", 4.0, 4.1, 1, 5),
]


def test_where_all_is_well_nothing_is_found():
    assert wrong(WELL, ENDS, {0: 20, 1: 5}) == []


def test_a_commit_that_was_on_its_way_when_the_partition_was_assigned_need_not_be_known():
    beginning = Beginning("c", 4.05, 0, 10)  # asked for at 4.0, acknowledged at 4.1
    assert wrong([*WELL, beginning], ENDS, {0: 20, 1: 5}) == []


@pytest.mark.parametrize("gone", [WELL[1], WELL[5], WELL[8]], ids=["the first", "the last", "all"])
def test_records_that_nobody_read_are_counted(gone):
    [sentence] = wrong([what for what in WELL if what is not gone], ENDS, {0: 20, 1: 5})
    assert (
        f"partition {gone.partition}: {gone.last - gone.first + 1 - (5 if gone is WELL[5] else 0)} records" in sentence
    )


def test_what_is_read_again_after_its_commit_was_acknowledged_is_found():
    said = [replace(what, offset=9) if what == WELL[4] else what for what in WELL]
    [sentence] = wrong(said, ENDS, {0: 20, 1: 5})
    assert sentence.startswith("partition 0: b began at 9, a had committed 10 0.900 s before")


def test_a_commit_for_a_generation_that_is_over_is_found():
    [sentence] = wrong([*WELL, Commit("a", 4.2, 4.3, 0, 15)], ENDS, {0: 20, 1: 5})
    assert sentence == "partition 0: a committed 15 after b had committed 20"


def test_a_group_that_has_not_come_to_the_end_is_found():
    [sentence] = wrong(WELL, ENDS, {0: 20})
    assert sentence == "partition 1: 0 is committed at last, of 5"
