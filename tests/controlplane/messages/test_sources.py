"""From a table into the topic and back: each offset once, in order, wherever topic and table begin and end."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.kafka.group_door import Span
from controlplane.kafka.message_door import Message, Room
from controlplane.messages.looking import Direction, Filter, Look, Position
from controlplane.messages.sources import Below, Both, below, may_be_below
from tests.controlplane.fakes import read_from

NEWER, OLDER = Direction.NEWER, Direction.OLDER


@dataclass
class Source:
    """A topic or a table: the offsets of partition 0 that it has, each with its name as the value."""

    name: bytes
    span: Span
    holes: frozenset[int] = frozenset()

    def at(self, _partition, offset):
        there = self.span.start <= offset < self.span.end and offset not in self.holes
        return Message(0, offset, offset, None, self.name) if there else None

    def read(self, wanted, room):
        for first, end in wanted.values():
            assert self.span.start <= first <= end <= self.span.end, f"the {self.name} was asked for what it has not"
        return read_from(self.at, wanted, room)


@dataclass
class Place:
    """A topic, a table, and looks page after page as `selectors` does them."""

    topic: Source
    table: Source

    def start(self, position):
        if may_be_below(self.topic.span, 0, position):
            return below(0, self.table.span, self.topic.span, position)
        return None

    def page(self, position, limit, messages=5_000):
        found = self.start(position)
        spans = {0: self.topic.span if found is None else found.span(self.topic.span)}
        reader = self.topic if found is None else Both(found, self.table, self.topic, lambda: None)
        return Look(position, spans, Filter(), limit, Room(messages, 2**23, 1.0, lambda: 0.0)).through(reader)

    def pages(self, position, limit, messages):
        shown = []
        for _ in range(300):
            looked = self.page(position, limit, messages)
            shown += [(message.offset, message.value) for message in looked.messages]
            if looked.is_over:
                return shown, looked.position
            assert looked.position != position, "it does not get on"
            position = looked.position
        raise AssertionError("it does not come to an end")


@st.composite
def places(draw):
    first, size = draw(st.integers(0, 40)), draw(st.integers(0, 40))
    begins, loaded = draw(st.integers(0, 40)), draw(st.integers(0, 60))
    holes = frozenset(draw(st.sets(st.integers(0, 80), max_size=20)))
    return Place(
        Source(b"topic", Span(first, first + size), holes), Source(b"table", Span(begins, begins + loaded), holes)
    )


@given(places(), st.integers(0, 80), st.integers(1, 7), st.integers(1, 30))
def test_towards_newer_ones_each_offset_comes_once_and_from_where_it_is(place, at, limit, messages):
    topic, table = place.topic, place.table
    found = place.start(Position(NEWER, {0: at}))
    shown, _ = place.pages(Position(NEWER, {0: at}), limit, messages)
    assert [offset for offset, _ in shown] == sorted({offset for offset, _ in shown})
    assert all(source == (b"table" if offset < topic.span.start else b"topic") for offset, source in shown)
    offsets = {offset for offset, _ in shown}
    in_topic = {n for n in range(max(at, topic.span.start), topic.span.end) if topic.at(0, n)}
    in_table = {n for n in range(at, min(table.span.end, topic.span.start)) if table.at(0, n)}
    is_in_table = table.span.start <= at < min(table.span.end, topic.span.start)
    assert (found is not None) == is_in_table
    if not is_in_table:
        assert offsets == in_topic
    elif table.span.end >= topic.span.start:
        assert offsets == in_table | in_topic
    else:
        assert offsets == in_table


@given(places(), st.integers(0, 80), st.integers(1, 7), st.integers(1, 30))
def test_towards_older_ones_too(place, at, limit, messages):
    topic, table = place.topic, place.table
    shown, _ = place.pages(Position(OLDER, {0: at}), limit, messages)
    offsets = [offset for offset, _ in shown]
    assert offsets == sorted(set(offsets), reverse=True)
    upto = min(table.span.end, topic.span.start)
    if at <= topic.span.start and table.span.start < at <= upto:
        assert set(offsets) == {n for n in range(table.span.start, at) if table.at(0, n)}
    else:
        assert set(offsets) == {n for n in range(topic.span.start, min(at, topic.span.end)) if topic.at(0, n)}


@given(places(), st.integers(0, 80), st.integers(1, 7))
def test_what_lies_behind_a_page_leads_back_to_where_it_began(place, at, limit):
    if place.start(Position(NEWER, {0: at})) is None:
        return
    first = place.page(Position(NEWER, {0: at}), limit)
    second = place.page(first.position, limit)
    back = place.page(Position(OLDER, second.started.offsets), 500)
    if place.table.span.end >= place.topic.span.start:
        own = [message.offset for message in first.messages if message.offset >= back.position.offsets[0]]
        assert own == [m.offset for m in back.messages if m.offset >= at][::-1]


@pytest.mark.parametrize(
    ("table", "position", "found"),
    [
        (Span(0, 50), Position(NEWER, {0: 20}), Below(0, 0, 50, is_joined=False)),
        (Span(0, 80), Position(NEWER, {0: 20}), Below(0, 0, 80, is_joined=True)),
        (Span(0, 95), Position(NEWER, {0: 79}), Below(0, 0, 80, is_joined=True)),
        (Span(0, 95), Position(OLDER, {0: 80}), Below(0, 0, 80, is_joined=True)),
        (Span(0, 50), Position(NEWER, {0: 50}), None),
        (Span(0, 50), Position(OLDER, {0: 51}), None),
        (Span(30, 95), Position(NEWER, {0: 29}), None),
        (Span(30, 95), Position(OLDER, {0: 30}), None),
        (Span(85, 95), Position(NEWER, {0: 20}), None),
        (None, Position(NEWER, {0: 20}), None),
    ],
)
def test_a_table_is_of_use_where_it_has_what_the_look_begins_with(table, position, found):
    assert below(0, table, Span(80, 100), position) == found


def test_before_the_topic_is_asked_it_is_said_and_not_for_what_is_in_the_table():
    asked = []
    topic, table = Source(b"topic", Span(10, 20)), Source(b"table", Span(0, 10))
    both = Both(Below(0, 0, 10, is_joined=True), table, topic, lambda: asked.append("topic"))
    both.read({0: (2, 10)}, Room(100, 1000, 1.0, lambda: 0.0))
    assert asked == []
    taken = both.read({0: (8, 12)}, Room(100, 1000, 1.0, lambda: 0.0))[0]
    assert ([message.offset for message in taken.messages], taken.upto, asked) == ([8, 9, 10, 11], 12, ["topic"])


def test_where_the_room_ends_in_the_table_the_topic_is_not_asked():
    topic, table = Source(b"topic", Span(10, 20)), Source(b"table", Span(0, 10))
    both = Both(Below(0, 0, 10, is_joined=True), table, topic, pytest.fail)
    taken = both.read({0: (8, 12)}, Room(1, 1000, 1.0, lambda: 0.0))[0]
    assert ([message.offset for message in taken.messages], taken.upto) == ([8], 9)
    taken = both.read({0: (8, 12)}, Room(2, 1000, 1.0, lambda: 0.0))[0]
    assert ([message.offset for message in taken.messages], taken.upto) == ([8, 9], 10)
