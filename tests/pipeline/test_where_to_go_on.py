"""Where a query begins, what is reported as lost, and up to when the database is complete: the rules, without Spark."""

from __future__ import annotations

import random

import pytest

from controlplane.metering.pipeline.positions import (
    MOST_LOOKS,
    WHOLE_TOPIC,
    Looks,
    Loss,
    Position,
    TopicState,
    starting,
)

TOPIC = TopicState("t1", first={0: 10, 1: 0}, end={0: 50, 1: 30})


def known(*next_offsets: int, topic: str = "t1", end: int = 60) -> dict[int, Position]:
    return {partition: Position(topic, offset, end) for partition, offset in enumerate(next_offsets)}


def test_the_checkpoint_says_where_to_go_on_while_it_and_the_database_agree_with_the_topic():
    assert starting(known(10, 30), TOPIC, has_checkpoint=True) == starting(known(50, 0), TOPIC, has_checkpoint=True)
    start = starting(known(50, 0), TOPIC, has_checkpoint=True)
    assert (start.offsets, start.losses) == (None, ())


def test_a_first_start_reads_from_the_beginning():
    start = starting({}, TOPIC, has_checkpoint=False)
    assert (start.offsets, start.losses) == (None, ())


def test_a_checkpoint_is_not_followed_into_a_database_that_has_never_seen_a_record():
    assert starting({}, TOPIC, has_checkpoint=True).offsets == {0: 10, 1: 0}


def test_records_that_expired_unread_are_a_loss_and_the_stream_goes_on_behind_them():
    start = starting(known(4, 20), TOPIC, has_checkpoint=True)
    assert start.offsets == {0: 10, 1: 20}
    assert start.losses == (Loss("expired", 0, 4, 10),)
    assert start.losses[0].sentence == "records 4 to 9 of partition 0 of __usage expired before they were read"


def test_a_topic_that_was_made_again_is_read_from_its_beginning_whatever_its_offsets():
    start = starting(known(50, 28, topic="t0", end=50), TOPIC, has_checkpoint=True)
    assert start.offsets == {0: 10, 1: 0}
    assert start.losses == (Loss("made again", WHOLE_TOPIC, 0, 22),)
    assert "22 records that had been seen in it were not read" in start.losses[0].sentence


def test_a_log_that_lost_its_end_is_read_again_for_what_was_written_in_its_place_is_not_known():
    start = starting(known(51, 30), TOPIC, has_checkpoint=True)
    assert start.offsets == {0: 10, 1: 30}
    assert start.losses == (Loss("cut", 0, 50, 51),)


def test_a_partition_that_was_added_begins_at_its_first_record():
    assert starting(known(9), TOPIC, has_checkpoint=True).offsets == {0: 10, 1: 0}


def test_a_database_that_is_behind_the_checkpoint_is_followed():
    start = starting(known(20, 0), TOPIC, has_checkpoint=True, follow_database=True)
    assert (start.offsets, start.losses) == ({0: 20, 1: 0}, ())


class TestUpToWhenItIsComplete:
    """Looks."""

    def test_a_look_counts_when_everything_it_saw_has_been_read(self):
        looks = Looks()
        looks.add(1000, {0: 5, 1: 7})
        assert looks.complete({0: 4, 1: 7}) == {1: 1000}
        assert looks.complete({0: 5, 1: 7}) == {0: 1000}
        assert looks.complete({0: 9, 1: 9}) == {}

    def test_a_topic_that_is_never_read_to_its_end_is_complete_up_to_a_while_ago(self):
        looks = Looks()
        for second in range(20):
            looks.add(1000 * second, {0: 100 * (second + 1)})
            found = looks.complete({0: 100 * second - 50})
            assert found == ({0: 1000 * (second - 2)} if second > 1 else {})

    def test_an_empty_partition_is_complete_and_one_that_the_database_does_not_know_is_not(self):
        looks = Looks()
        looks.add(1000, {0: 0, 1: 0})
        assert looks.complete({0: 0}) == {0: 1000}

    @pytest.mark.parametrize("seed", range(5))
    def test_it_never_says_more_than_what_has_been_read(self, seed):
        source, looks = random.Random(seed), Looks()
        end = read = 0
        written_at: list[int] = []
        complete = -1
        for at_ms in range(5 * MOST_LOOKS):
            for _ in range(source.randrange(4)):
                written_at.append(at_ms)
                end += 1
            looks.add(at_ms + 1, {0: end})
            if source.random() < 0.02:
                read = source.randint(read, end)
            complete = looks.complete({0: read}).get(0, complete)
            assert all(at >= complete for at in written_at[read:])
        looks.complete({0: end})
        looks.add(10**6, {0: end})
        assert looks.complete({0: end}) == {0: 10**6}
