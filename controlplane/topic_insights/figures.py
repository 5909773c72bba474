"""What a topic holds: sizes, offsets, records, the last write, what flows, who reads it; and hints.

A few questions, whatever the number of partitions: offsets and timestamps to their leaders, sizes to each broker, groups to their
coordinators, the last hours to the meter's table. Each is bounded by its door, and stands by itself: what was not answered is
named in `unknown`, and the rest is shown.

Records are offsets between the first and the end: in a compacted topic, and where there are transactions, fewer are there.
The last write is the largest timestamp of the records, which is the producers' clock unless the topic says LogAppendTime: a
producer may write any number, and one that is no moment of the calendar is said to be impossible.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.kafka import groups, size_door, topics
from controlplane.metering import selectors as metering
from controlplane.topic_insights.groups import near_ms, readers_of
from controlplane.topic_insights.hints import UNUSED_DAYS, Hint, Known, hints_of
from controlplane.topic_insights.skew import Skew, skew_of
from controlplane.topic_insights.written import written_of
from controlplane.topics.configs import configs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controlplane.instances.models import Instance
    from controlplane.kafka.client import Partition
    from controlplane.kafka.group_door import Place, Span
    from controlplane.kafka.topics import Topic
    from controlplane.tenants.models import Organisation
    from controlplane.topic_insights.groups import Reader, Readers

LOG = logging.getLogger(__name__)
T = TypeVar("T")
HOUR_S = 3600
MS = 1000
SIZES, OFFSETS, LAST_WRITE, GROUPS, CONFIGS, USAGE = "sizes", "offsets", "last_write", "groups", "configs", "usage"
WRITTEN = "written"
PARTS = (SIZES, OFFSETS, LAST_WRITE, GROUPS, CONFIGS, USAGE, WRITTEN)
"""What may be unknown."""
IMPOSSIBLE = "impossible_time"
"""Why there is no last write: the largest timestamp of the records is no moment of the calendar."""
LAST_MS = 253_370_764_800_000
"""The beginning of the year 9999: what is later is no moment everywhere on earth."""


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """One partition. None is what is not known."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    first_offset: int | None
    end_offset: int | None
    bytes: int | None  # at its leader
    last_write_at: datetime | None
    last_write_problem: str | None = None  # or IMPOSSIBLE
    written_bytes: int | None = None  # in the last hour, by the records' timestamps

    @property
    def written_bytes_per_s(self) -> float | None:
        """On average over that hour."""
        return None if self.written_bytes is None else round(self.written_bytes / HOUR_S, 3)

    @property
    def records(self) -> int | None:
        """Offsets from the first to before the end."""
        if self.first_offset is None or self.end_offset is None:
            return None
        return self.end_offset - self.first_offset


@dataclass(frozen=True, slots=True)
class Flow:
    """What the meter has counted, as bytes of records a second; of the last hour that is full and known, and of a day."""

    hour: datetime  # its beginning
    hour_produced_bytes_per_s: float
    hour_consumed_bytes_per_s: float
    day_produced_bytes_per_s: float
    day_consumed_bytes_per_s: float
    age_s: int  # since that hour ended


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """All of it. `unknown` names the PARTS that nobody could say now."""

    topic: Topic
    partitions: tuple[PartitionFigures, ...]
    bytes: int | None  # at the leaders
    stored_bytes: int | None  # of all replicas, as the instance's storage counts them
    records: int | None
    last_write_at: datetime | None
    flow: Flow | None
    skew: Skew
    readers: tuple[Reader, ...] | None
    hints: tuple[Hint, ...]
    missing_brokers: tuple[int, ...]
    unknown: tuple[str, ...]
    more_groups: int = 0  # of the instance, that were not looked at: they may read it as well

    @property
    def last_write_problem(self) -> str | None:
        """IMPOSSIBLE where that is so of some partition."""
        return next((each.last_write_problem for each in self.partitions if each.last_write_problem), None)


@dataclass(slots=True)
class _Asking:
    """Questions, of which some have no answer."""

    unknown: list[str]

    def __call__(self, part: str, ask: Callable[[], T]) -> T | None:
        try:
            found = ask()
        except Unavailable as error:
            LOG.info("a topic is shown without its %s: %s", part, error)
            found = None
        if found is None:
            self.unknown.append(part)
        return found


def topic_figures(
    *, organisation: Organisation, instance_id: str, name: str, clock: Clock = SYSTEM_CLOCK
) -> TopicFigures:
    """Of one topic. Raises NotFound, ClusterUnavailable where not even its partitions are known."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    cluster, now = instance.cluster.address, clock.now()
    topic = topics.get(cluster, instance.id, name)
    places: list[Place] = [(name, partition.partition) for partition in topic.layout]
    led: list[Place] = [(name, each.partition) for each in topic.layout if each.leader is not None]
    asking = _Asking([])
    spans = asking(OFFSETS, lambda: groups.spans(cluster, instance.id, led))
    newest = asking(LAST_WRITE, lambda: groups.newest(cluster, instance.id, led))
    sizes = asking(SIZES, lambda: size_door.read(cluster, instance.id, places))
    rows = asking(CONFIGS, lambda: configs_of(instance, name))
    config = None if rows is None else {row.name: row.value for row in rows}
    readers = asking(GROUPS, lambda: _readers(instance, name, spans, config, now))
    usage = asking(USAGE, lambda: _usage(instance, name, now))
    now_ms = int(now.timestamp() * MS)
    written = asking(
        WRITTEN, lambda: None if spans is None else written_of(cluster, instance.id, spans, newest or {}, now_ms)
    )
    partitions = tuple(
        _partition(name, each, spans or {}, newest or {}, sizes or {}, written or {}) for each in topic.layout
    )
    held_bytes = [each.bytes for each in partitions]
    held_records = [each.records for each in partitions]
    taken = [each.written_bytes for each in partitions]
    known = Known(
        topic.layout,
        config,
        taken,
        held_bytes if _whole(held_bytes) is not None else None,
        held_records if _whole(held_records) is not None else None,
        None if readers is None else readers.shown,
        0 if readers is None else readers.more_groups,
        None if usage is None else usage.unused_days,
    )
    return TopicFigures(
        topic,
        partitions,
        _whole(held_bytes),
        None if sizes is None else size_door.stored(topic, sizes),
        _whole(held_records),
        max((each.last_write_at for each in partitions if each.last_write_at is not None), default=None),
        None if usage is None else usage.flow,
        skew_of(topic.layout, held_bytes if _whole(held_bytes) is not None else held_records, taken),
        None if readers is None else tuple(readers.shown),
        tuple(hints_of(known)),
        tuple(sorted(broker for broker, found in (sizes or {}).items() if found is None)),
        tuple(asking.unknown),
        0 if readers is None else readers.more_groups,
    )


def _partition(
    name: str,
    partition: Partition,
    spans: Mapping[Place, Span],
    newest: Mapping[Place, int | None],
    sizes: Mapping[int, Mapping[Place, int] | None],
    written: Mapping[Place, int],
) -> PartitionFigures:
    place = (name, partition.partition)
    span, last_ms = spans.get(place), newest.get(place)
    last = None if last_ms is None else _moment(last_ms)
    at_leader = None if partition.leader is None else sizes.get(partition.leader)
    return PartitionFigures(
        partition.partition,
        partition.leader,
        partition.replicas,
        partition.isr,
        None if span is None else span.start,
        None if span is None else span.end,
        None if at_leader is None else at_leader.get(place),
        last,
        IMPOSSIBLE if last_ms is not None and last is None else None,
        written.get(place),
    )


def _moment(ms: int) -> datetime | None:
    """A producer may write any number as its time; None: it is no moment of the calendar."""
    return datetime.fromtimestamp(ms / MS, UTC) if 0 <= ms < LAST_MS else None


def _whole(amounts: Sequence[int | None]) -> int | None:
    """The sum, where all of them are known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _readers(
    instance: Instance,
    name: str,
    spans: Mapping[Place, Span] | None,
    config: Mapping[str, str | None] | None,
    now: datetime,
) -> Readers | None:
    if spans is None:
        return None
    cluster, before_ms = instance.cluster.address, None
    deadlines: dict[Place, int | None] = {}
    if config is not None and spans:
        now_ms = int(now.timestamp() * 1000)
        before_ms = near_ms(config.get("retention.ms"), config.get("cleanup.policy"), now_ms)
    if before_ms is not None and before_ms > 0:
        try:
            deadlines |= groups.offsets_at(cluster, instance.id, list(spans), before_ms)
        except Unavailable as error:  # who reads it is known all the same
            LOG.info("a topic is shown without what is near its end: %s", error)
    return readers_of(cluster, instance.id, name, spans, deadlines)


@dataclass(frozen=True, slots=True)
class _Usage:
    flow: Flow
    unused_days: int | None


def _usage(instance: Instance, name: str, now: datetime) -> _Usage | None:
    """None where the meter does not run, has not come so far, or has heard nothing of the topic."""
    read_to = metering.complete_to(instance.cluster.name)
    if read_to is None:
        return None
    end = metering.counted_until(now, read_to=read_to)
    if now - end > timedelta(hours=3):  # it stands: what it has not read is not zero
        return None
    start = end - timedelta(days=UNUSED_DAYS)
    # With the hour that is not over: what is used now is used.
    # And with the day before: of days that are folded it is not known in which of their hours a topic was there.
    found = metering.topic_hours(instance=instance, topic=name, start=start - timedelta(days=1), end=now)
    if not found:
        return None
    hour, day, until = (metering.hour_text(end - back) for back in (timedelta(hours=1), timedelta(days=1), timedelta()))
    last = [each for each in found if each.hour == hour]
    days = [each for each in found if day <= each.hour < until]  # hours: SLUICE_METERING_KEEP_DAYS is 2 or more
    age_s = max(0, int((now - end).total_seconds()))
    flow = Flow(end - timedelta(hours=1), *_per_s(last, HOUR_S), *_per_s(days, 24 * HOUR_S), age_s=age_s)
    is_known_long = found[0].last_hour <= metering.hour_text(start + timedelta(hours=1))
    within = (each for each in found if each.last_hour >= metering.hour_text(start))
    used = any(each.produced_bytes or each.consumed_bytes for each in within)
    return _Usage(flow, UNUSED_DAYS if is_known_long and not used else None)


def _per_s(hours: Sequence[metering.TopicHour], seconds: int) -> tuple[float, float]:
    produced, consumed = sum(each.produced_bytes for each in hours), sum(each.consumed_bytes for each in hours)
    return round(produced / seconds, 3), round(consumed / seconds, 3)
