"""Samples of lag, each ten seconds for an hour: of groups, of topics, and of the instance, in one row of an instance.

An *item* is a group, a topic (of which there is the largest that any group has to read of it), or the instance (the largest of
any group). A row is a text with all items of an instance, by `key`: three numbers as `Figures` has them, or 0 where nothing is
left to read. It is a run of steps in which nothing has changed, like rows of minutes, RUN_S at most.

Whoever has many items has several rows, so that who asks for one of 10,000 groups does not read all. Items are dealt out by
their keys over 1, 2, 4 … rows, numbered as a heap: of so many rows those from that number on. A reader looks in every row that
may have its item, one of each size, and so need not know how many items there were then.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from controlplane.core.portions import portions
from controlplane.history.lag.rows import MS, NOTHING_LEFT, Step, age_s, minute
from controlplane.history.models import LagSample
from controlplane.history.resolutions import SAMPLES, floor
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from controlplane.groups.rounds import Lag, Round
    from controlplane.history.resolutions import Plan

RUN_S = 600
ITEMS_IN_A_ROW = 128
MOST_ROWS = 256
MOST_TOPICS = 200
"""Of an instance those that are furthest behind: as many as brokers name of what has moved."""
LATE_APART_S = 5
"""A step that was measured so much later after its beginning than the one before is no part of its run: ages would be wrong."""
AT_ONCE = 200
INSTANCE = ""


class Figures(NamedTuple):
    """What a row has of a group; as `groups.rounds.Lag` has it."""

    messages: int
    oldest_ms: int | None
    size: int | None = None


NOTHING = Figures(0, NOTHING_LEFT, 0)


class Text(NamedTuple):
    """A row before it is one."""

    instance: str
    part: int
    figures: str

    @property
    def digest(self) -> int:
        """What stands for it where two are compared."""
        data = f"{self.instance} {self.part} {self.figures}".encode()
        return int.from_bytes(hashlib.sha256(data).digest()[:7])


def group_key(name: str) -> str:
    """Of a group, by its tenant's name."""
    return _key(f"g{name}")


def topic_key(name: str) -> str:
    """Of a topic, likewise."""
    return _key(f"t{name}")


def _key(text: str) -> str:
    """48 bits in eight letters: of 10,000 items of an instance two are one in three of ten million."""
    return urlsafe_b64encode(hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:6]).decode()


def figures_of(lag: Lag, taken_s: int) -> Figures:
    """A record whose producer's clock is ahead is as old as now: an age then never goes through 0 while nothing changes."""
    if lag.oldest_ms in (None, NOTHING_LEFT):
        return Figures(lag.messages, lag.oldest_ms, lag.size)
    return Figures(lag.messages, min(lag.oldest_ms or 0, taken_s * MS), lag.size)


def samples_keep(found: Round, at: int, taken_s: int) -> None:
    """What a round has found, as the step that began at `at`. A step that is there stays as it is."""
    texts: list[Text] = []
    for instance, groups in found.lags.items():
        items = _of_groups(groups, taken_s)
        if instance not in found.untold:  # else the largest is perhaps that of a group that is left out
            items |= _largest(groups, found.by_topic[instance], found.read[instance], taken_s)
        texts += _texts(instance, items)
    for part in portions(texts, AT_ONCE):
        _written(part, at, taken_s - at)


def _of_groups(groups: Mapping[str, Lag], taken_s: int) -> dict[str, Figures]:
    """By key."""
    return {group_key(name): figures_of(lag, taken_s) for name, lag in groups.items()}


def _largest(
    groups: Mapping[str, Lag],
    by_topic: Mapping[str, Mapping[str, Lag]],
    read: Iterable[str],
    taken_s: int,
) -> dict[str, Figures]:
    """Of the instance and its topics, likewise."""
    of_topics: dict[str, list[Figures]] = {topic: [] for topic in read}
    for topics in by_topic.values():
        for topic, lag in topics.items():
            sizes = [part.size for part in lag.parts]
            size = None if None in sizes else sum(filter(None, sizes))
            of_topics[topic].append(figures_of(lag, taken_s)._replace(size=size))
    most = {topic: largest(some) for topic, some in of_topics.items()}
    worst = sorted(most, key=lambda topic: (-most[topic].messages, topic))[:MOST_TOPICS]
    return {
        INSTANCE: largest(figures_of(lag, taken_s) for lag in groups.values()),
        **{topic_key((split_physical(topic) or ("", topic))[1]): most[topic] for topic in worst},
    }


def largest(some: Iterable[Figures]) -> Figures:
    """Of each figure the largest that is known; an age of 0 only where all have none. Of none: nothing is left."""
    them = list(some)
    if not them:
        return NOTHING
    stamps = [each.oldest_ms for each in them if each.oldest_ms not in (None, NOTHING_LEFT)]
    nothing = NOTHING_LEFT if all(each.oldest_ms == NOTHING_LEFT for each in them) else None
    return Figures(
        max(each.messages for each in them),
        min((stamp for stamp in stamps if stamp is not None), default=nothing),
        max((each.size for each in them if each.size is not None), default=None),
    )


def _texts(instance: str, items: Mapping[str, Figures]) -> Iterator[Text]:
    rows = 1
    while rows * ITEMS_IN_A_ROW < len(items) and rows < MOST_ROWS:
        rows *= 2
    dealt: dict[int, dict[str, Any]] = {}
    for key, figures in sorted(items.items()):
        dealt.setdefault(_row(key, rows), {})[key] = 0 if figures == NOTHING else list(figures)
    for part, some in sorted(dealt.items()):
        yield Text(instance, part, orjson.dumps(some).decode())


def _row(key: str, rows: int) -> int:
    """Of so many rows the one that has an item."""
    return rows + int.from_bytes(key.encode()[:8]) * 0x9E3779B97F4A7C15 % 2**64 // (2**64 // rows)


def _rows(key: str) -> list[int]:
    """All that may have it."""
    return [_row(key, 2**power) for power in range(MOST_ROWS.bit_length())]


def _written(texts: Sequence[Text], at: int, late_s: int) -> None:
    before, begins = at - SAMPLES.step_s, floor(at, RUN_S)
    ours = LagSample.objects.filter(instance__in={text.instance for text in texts}, at__gte=begins)
    known = ours.filter(until__in=(before, at)).values_list("instance", "part", "until", "late_s", "digest")
    taken = {(instance, part) for instance, part, until, _, _ in known if until == at}
    going_on = {digest for _, _, until, late, digest in known if until == before and abs(late - late_s) <= LATE_APART_S}
    left = [(text, text.digest) for text in texts if (text.instance, text.part) not in taken]
    same = [digest for _, digest in left if digest in going_on]
    others = [
        LagSample(at=at, until=at, late_s=late_s, digest=digest, **text._asdict())
        for text, digest in left
        if digest not in going_on
    ]
    if same:
        ours.filter(until=before, digest__in=same).update(until=at)
    if others:
        LagSample.objects.bulk_create(others, ignore_conflicts=True)


def samples_of(instance: str, key: str, plan: Plan) -> dict[int, Step]:
    """Of an item: each ten seconds of the plan of which anything is known, by their beginning."""
    rows = LagSample.objects.filter(
        instance=instance, part__in=_rows(key), at__gte=floor(plan.start, RUN_S), at__lt=plan.end
    )
    found: dict[int, Step] = {}
    for at, until, late_s, text in rows.values_list("at", "until", "late_s", "figures"):
        figures = orjson.loads(text).get(key)
        if figures is None:
            continue
        messages, oldest_ms, size = figures or NOTHING
        for step in range(max(at, floor(plan.start, SAMPLES.step_s)), min(until + 1, plan.end), SAMPLES.step_s):
            found[step] = minute(messages, age_s(step + late_s, oldest_ms), size)
    return found


def largest_of(instance: str, key: str, plan: Plan) -> list[tuple[float | None, ...]]:
    """Of an item: of each step of the plan the most records, bytes and seconds; None: not known, as all before samples."""
    steps = steps_of(samples_of(instance, key, plan), plan) if plan.resolution is SAMPLES else {}
    return [most_of(steps.get(at)) for at in plan.moments]


def most_of(step: Step | None) -> tuple[float | None, ...]:
    """In the order of `metrics.OF_GROUPS`."""
    if step is None:
        return None, None, None
    return (
        step.messages_most,
        step.size_most if step.sized else None,
        round(step.seconds_most, 1) if step.dated else None,
    )


def steps_of(samples: Mapping[int, Step], plan: Plan) -> dict[int, Step]:
    """In the steps of a plan."""
    found: dict[int, Step] = {}
    for at, step in samples.items():
        found.setdefault(floor(at, plan.step_s), Step()).add(step)
    return found
