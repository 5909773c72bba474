"""A look over partitions: nothing twice, nothing left out, in order, and never without getting on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.kafka.group_door import Span
from controlplane.kafka.message_door import Message, Room
from controlplane.messages.looking import Direction, Filter, Look, Position
from tests.controlplane.fakes import read_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.kafka.message_door import Stretch, Taken
    from controlplane.messages.looking import Looked

EVERYTHING = Filter()
TEXT = Filter(text=b"x")


class Bounded:
    """A schema that makes \"<x>\" of x, and room for so many messages."""

    def __init__(self, room: int) -> None:
        self.room = room

    def has_room_for(self, _message: Message) -> bool:
        return self.room > 0

    def key(self, _message: Message) -> str:
        return ""

    def value(self, message: Message) -> str:
        self.room -= 1
        return f"<{(message.value or b'').decode()}>"


class Logs:
    """Partitions as lists: None is an offset where nothing is."""

    def __init__(self, *partitions: list[Message | None], start: int = 0) -> None:
        self.partitions, self.start = partitions, start
        self.stretches: list[dict[int, Stretch]] = []
        self.wait_s = 0.0

    @property
    def spans(self) -> dict[int, Span]:
        return {number: Span(self.start, self.start + len(log)) for number, log in enumerate(self.partitions)}

    @property
    def messages(self) -> list[Message]:
        return [message for log in self.partitions for message in log if message is not None]

    def read(self, wanted: Mapping[int, Stretch], room: Room) -> dict[int, Taken]:
        self.stretches.append(dict(wanted))
        return read_from(lambda partition, offset: self.partitions[partition][offset - self.start], wanted, room)

    def position(self, direction: Direction) -> Position:
        offsets = {n: span.end if direction is Direction.OLDER else span.start for n, span in self.spans.items()}
        return Position(direction, offsets)


def never() -> float:
    return 0.0


def look(logs, start, *, wanted=EVERYTHING, limit=20, messages=5_000, size=2**23, clock=never, reading=None) -> Looked:
    found = Look(start, logs.spans, wanted, limit, Room(messages, size, 1.0, clock), reading).through(logs)
    assert len(found.messages) <= limit
    return found


def log_of(partition, count, *, first_ms=0, every_ms=10, value=b"x", start=0):
    return [Message(partition, start + n, first_ms + n * every_ms, None, value) for n in range(count)]


def offsets_of(looked):
    return [(message.partition, message.offset) for message in looked.messages]


@st.composite
def logs(draw):
    start = draw(st.sampled_from((0, 7)))
    made = []
    for partition in range(draw(st.integers(1, 4))):
        log: list[Message | None] = []
        for n in range(draw(st.integers(0, 30))):
            value = draw(st.sampled_from((b"x", b"y", b"xxxxxxxxxxxxxxxxxxxx", None)))
            there = draw(st.integers(0, 4))  # one in five is gone by compaction
            dated = draw(st.one_of(st.none(), st.integers(0, 40)))
            log.append(Message(partition, start + n, dated, None, value) if there else None)
        made.append(log)
    return Logs(*made, start=start)


@given(
    logs(),
    st.sampled_from(Direction),
    st.sampled_from((EVERYTHING, TEXT)),
    st.integers(1, 7),
    st.integers(1, 40),
    st.integers(1, 200),
)
def test_over_pages_each_message_is_shown_once(logs, direction, wanted, limit, messages, size):
    position, shown, pages = logs.position(direction), [], 0
    while True:
        found = look(logs, position, wanted=wanted, limit=limit, messages=messages, size=size)
        shown += offsets_of(found)
        pages += 1
        assert pages <= 200, "it does not come to an end"
        if found.is_over:
            break
        assert found.position != position, "it does not get on"
        position = found.position
    assert sorted(shown) == sorted((m.partition, m.offset) for m in logs.messages if wanted.takes(m))
    for partition in logs.spans:
        own = [offset for at, offset in shown if at == partition]
        assert own == sorted(own, reverse=direction is Direction.OLDER)


@given(logs(), st.sampled_from(Direction), st.integers(1, 7), st.integers(1, 9))
def test_what_schemas_make_of_messages_is_sought_too_and_a_look_ends_where_there_is_no_room_to_make_more(
    logs, direction, limit, room
):
    position, shown, pages = logs.position(direction), [], 0
    while True:
        found = look(logs, position, wanted=Filter(text=b"<x>"), limit=limit, reading=Bounded(room))
        shown += offsets_of(found)
        pages += 1
        assert pages <= 200, "it does not come to an end"
        if found.is_over:
            break
        assert found.position != position, "it does not get on"
        position = found.position
    assert sorted(shown) == sorted((m.partition, m.offset) for m in logs.messages if m.value == b"x")


def test_what_its_bytes_already_say_is_not_read_by_a_schema():
    reading = Bounded(1)
    found = look(Logs(log_of(0, 30)), Position(Direction.NEWER, {0: 0}), wanted=TEXT, limit=30, reading=reading)
    assert (len(found.messages), reading.room) == (30, 1)


def test_a_part_of_a_key_and_a_text_have_both_to_be_there():
    wanted = Filter(text=b"x", key_part=b"ke")
    keys = {b"key": True, b"the key": True, b"k": False, None: False}
    assert {key: wanted.takes(Message(0, 0, None, key, b"axb")) for key in keys} == keys
    assert not wanted.takes(Message(0, 0, None, b"key", b"y"))


@given(logs(), st.integers(1, 7))
def test_what_lies_behind_a_page_is_what_the_pages_before_it_have_shown(logs, limit):
    """Back and forth: older, older, then newer from where the second page began shows the first one again."""
    first = look(logs, logs.position(Direction.OLDER), limit=limit)
    second = look(logs, first.position, limit=limit)
    back = look(logs, Position(Direction.NEWER, second.started.offsets), limit=100)
    assert sorted(offsets_of(back)) == sorted(offsets_of(first))


@given(logs(), st.sampled_from(Direction))
def test_where_timestamps_rise_the_order_over_partitions_is_that_of_time(logs, direction):
    for log in logs.partitions:
        for n, message in enumerate(log):
            if message is not None:
                log[n] = Message(message.partition, message.offset, n * 10 + message.partition, None, message.value)
    found = look(logs, logs.position(direction), limit=200)
    times = [message.timestamp_ms for message in found.messages]
    assert times == sorted(times, reverse=direction is Direction.OLDER)


def test_the_newest_of_a_long_partition_are_found_without_reading_it():
    logs = Logs(log_of(0, 100_000))
    found = look(logs, logs.position(Direction.OLDER))
    assert offsets_of(found) == [(0, offset) for offset in range(99_999, 99_979, -1)]
    assert found.records <= 3 * 20
    assert not found.is_over


def test_a_filter_that_fits_nothing_stops_where_the_room_ends_and_goes_on_there():
    logs = Logs(log_of(0, 20_000, value=b"y"))
    found = look(logs, logs.position(Direction.OLDER), wanted=TEXT)
    assert (found.messages, found.is_over) == ((), False)
    assert 1_000 <= found.records <= 5_000
    assert found.position.offsets == {0: 20_000 - found.records}


def test_large_messages_end_a_look_early_and_lose_nothing():
    logs = Logs(log_of(0, 10, value=b"x" * 1000))
    first = look(logs, logs.position(Direction.OLDER), size=2_500)
    assert 1 <= len(first.messages) <= 3
    rest = look(logs, first.position, size=100_000)
    assert offsets_of(first) + offsets_of(rest) == [(0, offset) for offset in range(9, -1, -1)]


def test_a_message_larger_than_the_room_is_shown_all_the_same():
    logs = Logs(log_of(0, 3, value=b"x" * 1000))
    assert [offsets_of(look(logs, logs.position(way), size=10)) for way in Direction] == [[(0, 2)], [(0, 0)]]


def test_a_gap_of_a_million_offsets_is_passed_in_a_few_stretches():
    log: list[Message | None] = [*log_of(0, 5), *([None] * 1_000_000)]
    logs = Logs(log)
    assert len(look(logs, logs.position(Direction.OLDER)).messages) == 5
    assert len(logs.stretches) <= 12


def test_a_quiet_partition_is_not_asked_again_while_a_busy_one_is_read():
    logs = Logs(log_of(0, 1, first_ms=0), log_of(1, 500, first_ms=1_000))
    look(logs, logs.position(Direction.OLDER))
    assert sum(0 in stretch for stretch in logs.stretches) == 1


def test_without_time_nothing_has_moved_and_its_caller_can_tell():
    logs = Logs(log_of(0, 5))
    late = Look(logs.position(Direction.OLDER), logs.spans, EVERYTHING, 20, Room(100, 100, 1.0, lambda: 2.0))
    assert not late.through(logs).messages
    assert not late.has_moved


class Silent(Logs):
    """Its leader sends nothing."""

    def read(self, wanted, room):
        room.clock = lambda: 2.0
        return super().read(wanted, room)


@pytest.mark.parametrize("way", Direction)
def test_a_leader_that_sends_nothing_in_time_moves_nothing(way):
    logs = Silent(log_of(0, 5))
    silent = Look(logs.position(way), logs.spans, EVERYTHING, 20, Room(100, 100, 1.0, never))
    found = silent.through(logs)
    assert (found.messages, found.position) == ((), logs.position(way))
    assert not silent.has_moved


def test_a_partition_without_a_leader_keeps_its_place_in_the_position():
    logs = Logs(log_of(0, 3))
    start = Position(Direction.OLDER, {0: 3, 1: 77})
    assert look(logs, start).position.offsets == {0: 0, 1: 77}


@pytest.mark.parametrize(
    ("at", "way", "shown"), [(-5, Direction.NEWER, 3), (50, Direction.OLDER, 3), (50, Direction.NEWER, 0)]
)
def test_a_position_outside_of_what_is_kept_begins_at_its_edge(at, way, shown):
    logs = Logs(log_of(0, 3, start=10), start=10)
    assert len(look(logs, Position(way, {0: at})).messages) == shown
