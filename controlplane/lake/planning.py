"""What a load reads: a span of offsets of each partition, cut into steps of one commit each. Pure.

What a table has of a partition is one span, from where it was first loaded up to where the next load begins. Offsets in
it that hold no record are no matter: compaction and transaction markers leave such holes. A range that is loaded (again)
must touch the span, so that it stays one and a hole is never taken for records that were loaded.

*Onward* is a load that goes on where the table ends. *Again* is one whose rows take the place of those that the table
has in the same span; *once* leaves out what the table has, so that nothing is replaced. Steps are ordered so that what is
loaded is one span after each of them, whenever a load is killed: first upward from within the table's span, then downward
from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from controlplane.lake.errors import AnotherTopicError, ExpiredError, RequestError, ShorterTopicError


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Offsets [first, end)."""

    first: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.first)

    def touches(self, other: Span) -> bool:
        """Whether the two together are one span."""
        return self.first <= other.end and other.first <= self.end

    def hull(self, other: Span) -> Span:
        return Span(min(self.first, other.first), max(self.end, other.end))


Spans = Mapping[int, Span]
"""By partition."""


def offsets_of(spans: Spans) -> int:
    """How many; at most so many records."""
    return sum(span.size for span in spans.values())


@dataclass(frozen=True, slots=True)
class TopicState:
    """What Kafka says of the topic; offsets by partition."""

    id: str
    first: Mapping[int, int]  # the oldest record that is kept
    end: Mapping[int, int]  # the last stable offset: nothing of an open transaction


@dataclass(frozen=True, slots=True)
class Gap:
    """Records of a partition that expired before they were loaded, and never will be."""

    partition: int
    span: Span

    @property
    def sentence(self) -> str:
        """For whoever started the load."""
        return f"offsets {self.span.first} to {self.span.end - 1} of partition {self.partition}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the table has of the topic that it is loaded from."""

    topic_id: str
    spans: Spans

    def after(self, gaps: tuple[Gap, ...], step: Spans) -> Loaded:
        """With these gaps passed over and this step committed."""
        spans = dict(self.spans)
        for gap in gaps:
            spans[gap.partition] = Span(spans[gap.partition].first, gap.span.end)
        for partition, span in step.items():
            known = spans.get(partition, span)
            assert known.touches(span), f"partition {partition}: {span} would leave a hole behind {known}"
            spans[partition] = known.hull(span)
        return Loaded(self.topic_id, spans)


@dataclass(frozen=True, slots=True)
class Plan:
    """What one load reads. Spans may be empty: the next load knows by them where to begin."""

    topic_id: str
    spans: Spans
    replaces: bool = False
    gaps: tuple[Gap, ...] = ()
    is_new_topic: bool = False  # the table has another one's records

    @property
    def size(self) -> int:
        return offsets_of(self.spans)

    @property
    def is_nothing(self) -> bool:
        """Whether the table, where there is one, would say the same after it."""
        return not self.size and not self.gaps and not self.is_new_topic

    def steps(self, loaded: Loaded, most_offsets: int) -> list[Spans]:
        """One commit each, of `most_offsets` or a few more; at least one."""
        upward: dict[int, Span] = {}
        downward: dict[int, Span] = {}
        for partition, span in self.spans.items():
            known = loaded.spans.get(partition)
            begins = known.first if known is not None else span.first
            upward[partition] = Span(max(span.first, begins), max(span.end, begins))
            if span.first < begins:
                downward[partition] = Span(span.first, begins)
        first, *rest = [*_cut(upward, most_offsets), *reversed(list(_cut(downward, most_offsets)))] or [{}]
        empty = {partition: span for partition, span in upward.items() if not span.size and partition not in downward}
        return [{**empty, **first}, *rest]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records are asked for: all that is new; or spans; or, by partition, from an offset on."""

    spans: Spans = field(default_factory=dict)
    starts: Mapping[int, int] | None = None  # partitions that are not in it have nothing new enough
    skip_expired: bool = False
    new_topic: bool = False
    once: bool = False  # only what lies behind what the table has: no row is replaced


def plan(wanted: Wanted, loaded: Loaded | None, topic: TopicState) -> Plan:
    """What to load. Raises the errors of a topic that is another one, has expired or ends too early; RequestError."""
    is_new_topic = False
    if loaded is not None and loaded.topic_id != topic.id:
        if not wanted.new_topic and offsets_of(loaded.spans):  # of a table that has nothing, nothing is lost
            raise AnotherTopicError(
                f"the table was loaded from the topic with the id {loaded.topic_id}, and the topic of this name has the id"
                f" {topic.id}: it was deleted and made again. --new-topic goes on with the new one, from its beginning;"
                " the rows of the old one stay, under its id."
            )
        loaded, is_new_topic = None, True
    known = loaded.spans if loaded is not None else {}
    _check_ends(known, topic)
    made = _again(wanted, known, topic) if wanted.spans else _onward(wanted, known, topic)
    return Plan(topic.id, made.spans, made.replaces, made.gaps, is_new_topic)


def _check_ends(known: Spans, topic: TopicState) -> None:
    for partition, span in sorted(known.items()):
        end = topic.end.get(partition, 0)
        if span.end > end:
            raise ShorterTopicError(
                f"partition {partition} ends at offset {end}, and the table has it up to {span.end}: the topic has lost its"
                " end (an unclean leader election?). Load into another table; this one keeps what it has."
            )


def _onward(wanted: Wanted, known: Spans, topic: TopicState) -> Plan:
    """From where the table ends, or from an earlier start, to the end of the topic."""
    spans: dict[int, Span] = {}
    gaps: list[Gap] = []
    replaces = False
    for partition, oldest in sorted(topic.first.items()):
        end = topic.end[partition]
        # A record that is new enough may stand behind the end, in a transaction that is still open.
        start = oldest if wanted.starts is None else min(end, max(oldest, wanted.starts.get(partition, end)))
        if partition in known:
            following = known[partition].end
            # A later start would leave a hole; an earlier one is loaded again.
            start = following if wanted.starts is None or wanted.once else min(start, following)
            replaces = replaces or start < following
        if start < oldest:
            gaps.append(Gap(partition, Span(start, oldest)))
        spans[partition] = Span(max(start, oldest), end)
    _refuse(gaps, wanted, "goes on behind them, and notes in the table what is missing")
    return Plan(topic.id, spans, replaces, tuple(gaps))


def _again(wanted: Wanted, known: Spans, topic: TopicState) -> Plan:
    spans: dict[int, Span] = {}
    expired: list[Gap] = []
    gaps: list[Gap] = []
    for partition, span in sorted(wanted.spans.items()):
        if partition not in topic.first:
            raise RequestError(f"the topic has no partition {partition}")
        oldest, end = topic.first[partition], topic.end[partition]
        if not 0 <= span.first < span.end <= end:
            raise RequestError(f"partition {partition}: {span.first}-{span.end} is no range of offsets up to {end}")
        if partition in known and not span.touches(known[partition]):
            has = known[partition]
            raise RequestError(
                f"partition {partition}: the table has {has.first}-{has.end}, and {span.first}-{span.end} would leave a hole"
                " between the two"
            )
        if wanted.once and partition in known:
            # From where the table ends: a run that was cut off goes on, and rows that were copied elsewhere stay as they are.
            has = known[partition]
            if span.first < has.first:
                raise RequestError(
                    f"partition {partition}: the table begins at {has.first}, and only what lies behind its end is loaded once"
                )
            first = max(span.first, has.end)
            if first >= span.end:
                continue
            span = Span(first, span.end)  # noqa: PLW2901  # what is left of it
        if span.first < oldest:
            expired.append(Gap(partition, Span(span.first, min(oldest, span.end))))
            following = known[partition].end if partition in known else oldest
            if following < oldest < span.end:
                gaps.append(Gap(partition, Span(following, oldest)))  # the table does not have them either
            span = Span(oldest, span.end)  # noqa: PLW2901  # what the table has of the rest is all there is
        if span.size:
            spans[partition] = span
    _refuse(expired, wanted, "loads the rest of the range; rows that the table has of them stay")
    return Plan(topic.id, spans, bool(known) and not wanted.once, tuple(gaps))


def _refuse(gaps: list[Gap], wanted: Wanted, otherwise: str) -> None:
    if gaps and not wanted.skip_expired:
        raise ExpiredError(
            f"no longer in the topic: {'; '.join(gap.sentence for gap in gaps)}. They expired, or were deleted."
            f" --skip-expired {otherwise}."
        )


def check_still_there(step: Spans, topic_id: str, topic: TopicState) -> None:
    """After a step was read: it was of this topic from the first to the last record. Raises as `plan` does."""
    if topic.id != topic_id:
        raise AnotherTopicError(f"the topic {topic_id} was deleted and made again, as {topic.id}, while it was read")
    gone = [
        Gap(partition, Span(span.first, topic.first[partition]))
        for partition, span in sorted(step.items())
        if span.size and topic.first[partition] > span.first
    ]
    if gone:
        raise ExpiredError(
            f"expired while they were read: {'; '.join(gap.sentence for gap in gone)}. Nothing was written."
        )


def _cut(spans: Spans, most_offsets: int) -> Iterator[Spans]:
    """Equal parts of every partition, so that all brokers have work in each."""
    count = -(-offsets_of(spans) // most_offsets)
    for number in range(count):
        step = {
            partition: Span(span.first + span.size * number // count, span.first + span.size * (number + 1) // count)
            for partition, span in spans.items()
        }
        if offsets_of(step):
            yield {partition: span for partition, span in step.items() if span.size}
