"""What a load reads, whatever the table has and wherever it is killed: the rules, on tables that are sets of offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.lake.errors import AnotherTopicError, ExpiredError, RequestError, ShorterTopicError
from controlplane.lake.planning import Gap, Loaded, Plan, Span, TopicState, Wanted, check_still_there, plan

PARTITIONS = st.integers(0, 3)


def topic(*spans: tuple[int, int], topic_id: str = "one") -> TopicState:
    """Partitions by their first and end offsets."""
    return TopicState(topic_id, dict(enumerate(first for first, _ in spans)), dict(enumerate(end for _, end in spans)))


def loaded(*spans: tuple[int, int]) -> Loaded:
    return Loaded("one", {partition: Span(*span) for partition, span in enumerate(spans)})


def test_the_first_load_takes_all_that_is_kept():
    assert plan(Wanted(), None, topic((5, 9), (0, 0))) == Plan("one", {0: Span(5, 9), 1: Span(0, 0)})


def test_the_next_one_goes_on_where_the_table_ends_and_takes_new_partitions_whole():
    made = plan(Wanted(), loaded((5, 9)), topic((6, 12), (0, 3)))
    assert made == Plan("one", {0: Span(9, 12), 1: Span(0, 3)})


def test_a_table_that_has_all_needs_nothing():
    assert plan(Wanted(), loaded((5, 9)), topic((9, 9))).is_nothing


def test_what_expired_before_it_was_loaded_is_named_and_passed_over_if_that_is_wanted():
    with pytest.raises(ExpiredError, match=r"offsets 9 to 10 of partition 0"):
        plan(Wanted(), loaded((5, 9)), topic((11, 12)))
    made = plan(Wanted(skip_expired=True), loaded((5, 9)), topic((11, 12)))
    assert (made.spans, made.gaps) == ({0: Span(11, 12)}, (Gap(0, Span(9, 11)),))
    assert loaded((5, 9)).after(made.gaps, made.spans).spans == {0: Span(5, 12)}


def test_a_gap_is_noted_even_if_there_is_nothing_behind_it():
    made = plan(Wanted(skip_expired=True), loaded((5, 9)), topic((11, 11)))
    assert not made.is_nothing
    assert made.steps(loaded((5, 9)), 10) == [{0: Span(11, 11)}]


def test_another_topic_is_named_by_both_ids_and_loaded_from_its_beginning_if_that_is_wanted():
    with pytest.raises(AnotherTopicError, match=r"(?s)one.*two.*--new-topic"):
        plan(Wanted(), loaded((5, 9)), topic((0, 3), topic_id="two"))
    made = plan(Wanted(new_topic=True), loaded((5, 9)), topic((0, 3), topic_id="two"))
    assert made == Plan("two", {0: Span(0, 3)}, is_new_topic=True)
    assert not plan(Wanted(new_topic=True), loaded((5, 9)), topic((0, 0), topic_id="two")).is_nothing


def test_a_table_that_has_nothing_goes_on_with_a_topic_that_was_made_again():
    made = plan(Wanted(), loaded((0, 0), (5, 5)), topic((0, 3), topic_id="two"))
    assert made == Plan("two", {0: Span(0, 3)}, is_new_topic=True)


def test_a_topic_that_has_lost_its_end_is_refused():
    with pytest.raises(ShorterTopicError, match="partition 1 ends at offset 4, and the table has it up to 9"):
        plan(Wanted(), loaded((0, 3), (5, 9)), topic((0, 3), (0, 4)))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ((3, 0, 5), "no partition 3"),
        ((0, 5, 21), "no range of offsets up to 20"),
        ((0, 15, 18), "would leave a hole"),
        ((0, 0, 3), "would leave a hole"),
    ],
)
def test_ranges_that_make_no_sense(asked, sentence):
    partition, first, end = asked
    with pytest.raises(RequestError, match=sentence):
        plan(Wanted({partition: Span(first, end)}), loaded((5, 9)), topic((0, 20)))


def test_rows_of_a_range_whose_records_expired_are_not_replaced_by_nothing():
    wanted = {0: Span(2, 8)}
    with pytest.raises(ExpiredError, match="offsets 2 to 4 of partition 0"):
        plan(Wanted(wanted), loaded((0, 9)), topic((5, 20)))
    made = plan(Wanted(wanted, skip_expired=True), loaded((0, 9)), topic((5, 20)))
    assert made == Plan("one", {0: Span(5, 8)}, replaces=True)


@pytest.mark.parametrize(
    ("asked", "spans"),
    [
        ((5, 20), {0: Span(9, 20)}),  # cut off at 9, it goes on there
        ((5, 9), {}),
        ((6, 7), {}),
        ((9, 12), {0: Span(9, 12)}),
    ],
)
def test_once_leaves_out_what_the_table_has_and_replaces_nothing(asked, spans):
    made = plan(Wanted({0: Span(*asked)}, once=True), loaded((5, 9)), topic((0, 20)))
    assert (made.spans, made.replaces) == (spans, False)


def test_once_does_not_pass_over_in_silence_what_lies_before_the_table():
    with pytest.raises(RequestError, match="the table begins at 5"):
        plan(Wanted({0: Span(2, 8)}, once=True), loaded((5, 9)), topic((0, 20)))


def test_once_from_a_time_goes_on_where_the_table_ends():
    made = plan(Wanted(starts={0: 4}, once=True), loaded((0, 9)), topic((0, 20)))
    assert (made.spans, made.replaces) == ({0: Span(9, 20)}, False)
    assert plan(Wanted(starts={0: 4}, once=True), None, topic((0, 20))).spans == {0: Span(4, 20)}


def test_a_start_in_time_loads_again_from_there_and_never_leaves_a_hole():
    state = topic((0, 20), (0, 20), (0, 20), (0, 20))
    made = plan(Wanted(starts={0: 4, 1: 15, 3: 2}), loaded((0, 9), (0, 9), (0, 9)), state)
    assert made.spans == {0: Span(4, 20), 1: Span(9, 20), 2: Span(9, 20), 3: Span(2, 20)}
    assert made.replaces


def test_a_first_load_from_a_time_says_where_partitions_without_newer_records_go_on():
    made = plan(Wanted(starts={0: 4}), None, topic((0, 20), (0, 7)))
    assert made.spans == {0: Span(4, 20), 1: Span(7, 7)}
    assert made.steps(Loaded("one", {}), 10)[0][1] == Span(7, 7)


def test_a_start_within_a_transaction_that_is_open_waits_for_its_end():
    made = plan(Wanted(starts={0: 9}), None, topic((0, 7)))
    assert made.spans == {0: Span(7, 7)}


def test_what_expires_or_is_made_again_while_it_is_read_is_not_taken():
    step = {0: Span(3, 5), 1: Span(0, 0)}
    check_still_there(step, "one", topic((3, 9), (4, 9)))
    with pytest.raises(ExpiredError, match="offsets 3 to 3 of partition 0"):
        check_still_there(step, "one", topic((4, 9), (4, 9)))
    with pytest.raises(AnotherTopicError):
        check_still_there(step, "one", topic((3, 9), (4, 9), topic_id="two"))


@st.composite
def topics(draw: st.DrawFn) -> TopicState:
    pairs = [sorted(draw(st.tuples(st.integers(0, 40), st.integers(0, 40)))) for _ in range(draw(st.integers(1, 3)))]
    return topic(*((first, end) for first, end in pairs))


@st.composite
def wanted_of(draw: st.DrawFn, state: TopicState) -> Wanted:
    partition = draw(st.sampled_from(sorted(state.first)))
    first, end = sorted(draw(st.tuples(st.integers(0, 45), st.integers(0, 45))))
    kind = draw(st.sampled_from(["onward", "offsets", "time"]))
    skips = draw(st.booleans())
    if kind == "offsets" and first < end:
        return Wanted({partition: Span(first, end)}, skip_expired=skips)
    if kind == "time":
        starts = {at: first for at in state.first if first < state.end[at] + 3}
        return Wanted(starts=starts, skip_expired=skips)
    return Wanted(skip_expired=skips)


class Model:
    """A table as the set of (partition, offset) in it; every offset that the topic has is a record."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []
        self.loaded: Loaded | None = None
        self.gaps: set[tuple[int, int]] = set()

    def load(self, wanted: Wanted, state: TopicState, most: int, dies_after: int) -> bool:
        """Whether it came to its end: it is killed after so many commits."""
        made = plan(wanted, self.loaded, state)
        if made.is_nothing:
            return True
        known = self.loaded or Loaded(state.id, {})
        for number, step in enumerate(made.steps(known, most)):
            if number == dies_after:
                return False
            assert sum(span.size for span in step.values()) <= most + len(step)
            new = {(at, offset) for at, span in step.items() for offset in range(span.first, span.end)}
            assert all(state.first[at] <= offset < state.end[at] for at, offset in new)
            if made.replaces:
                self.rows = [row for row in self.rows if row not in new]
            self.rows += sorted(new)
            gaps = made.gaps if number == 0 else ()
            self.gaps |= {(gap.partition, at) for gap in gaps for at in range(gap.span.first, gap.span.end)}
            known = self.loaded = known.after(gaps, step)
        return True


@given(st.data())
def test_whatever_is_asked_for_expires_and_is_killed_each_record_is_there_once(data):
    """What the table says it has, it has once, but for gaps that are noted; and it has nothing else."""
    state = data.draw(topics())
    model = Model()
    for _ in range(data.draw(st.integers(1, 5))):
        wanted = data.draw(wanted_of(state))
        most = data.draw(st.integers(1, 20))
        try:
            model.load(wanted, state, most, data.draw(st.integers(0, 4)))
        except (ExpiredError, RequestError):
            continue
        finally:
            assert len(model.rows) == len(set(model.rows)), "a record is there twice"
            spans = model.loaded.spans if model.loaded else {}
            claimed = {(at, offset) for at, span in spans.items() for offset in range(span.first, span.end)}
            assert claimed - model.gaps <= set(model.rows) <= claimed
        grown = {at: end + data.draw(st.integers(0, 10)) for at, end in state.end.items()}
        state = TopicState("one", {at: data.draw(st.integers(state.first[at], grown[at])) for at in grown}, grown)


@given(topics(), st.integers(1, 20), st.integers(0, 4))
def test_a_load_that_was_killed_is_ended_by_the_next_one(state, most, dies_after):
    model = Model()
    model.load(Wanted(), state, most, dies_after)
    assert model.load(Wanted(), state, most, dies_after=100)
    assert sorted(model.rows) == [
        (at, offset) for at in state.first for offset in range(state.first[at], state.end[at])
    ]
