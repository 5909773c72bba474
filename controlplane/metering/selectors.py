"""Reading usage: hours, the records behind an hour, and how the meter itself is.

The usage of an hour is the largest counter of its key minus the largest of the same (boot, instance, topic) in any
earlier hour, which stands in the same row (pipeline/tables.py). Whatever order maxima came in, the hours of a key add up to
its last counter. Of days that are over there are sums of these, by instance and hour and by topic and day (pipeline/folded.py): a
statement reads sums before the horizon and keys from it on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Sum

from controlplane.clusters.models import ClusterState
from controlplane.clusters.services import cluster_list, clusters_known
from controlplane.core.errors import NotFound
from controlplane.metering import finality
from controlplane.metering.elastic import unread_since
from controlplane.metering.jobs import reported_to
from controlplane.metering.models import (
    BrokerWaiver,
    Cap,
    Difference,
    Fold,
    Loss,
    PipelineStatus,
    Progress,
    Reconciliation,
)
from controlplane.metering.pipeline.comparable import DAY_LENGTH, MIDNIGHT
from controlplane.metering.pipeline.folded import (
    FOLDED_TO,
    INSTANCE_HOURS,
    SCOPE,
    TOPIC_DAYS,
    TOPIC_HOURS,
    USER_DAYS,
    USER_HOURS,
    Folded,
    grown,
)
from controlplane.metering.pipeline.maxima import MAXIMUM_TABLE
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER
from controlplane.metering.sharing import shared_out
from quota.contracts.usage import COUNTERS, USER_COUNTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from controlplane.instances.models import Instance

SECONDS_PER_HOUR = 3600
SILENT_AFTER_S = 7
"""Signs of life come every two seconds (pipeline/signs.py): within ten it is said that none does."""
SILENT_FOR_ALARMS_S = 60
"""Nobody is woken by a meter that is begun anew, which takes half a minute."""
STALLED_AFTER_S = 120
"""A full batch takes a minute at most; while there is nothing to read Spark says so every ten seconds."""
TOLD_WITHIN = timedelta(minutes=10)
"""How long after an hour's end brokers may still be telling of it: changed topics at once, quiet ones one by one."""
_DAY_HOUR = f"day || '{MIDNIGHT}'"
_COUNTED_BY_NAME = len(COUNTERS)
assert len(USER_COUNTERS) == _COUNTED_BY_NAME


@dataclass(frozen=True, slots=True)
class UsageHour:
    """What an instance used in one UTC hour."""

    hour: str  # its beginning, "2026-11-21T09:00:00Z"
    produced_bytes: int
    consumed_bytes: int
    stored_byte_seconds: int
    so_far: bool  # the hour is not over

    @property
    def stored_byte_hours(self) -> int:
        """To the nearest one; bills are computed from the seconds."""
        return (2 * self.stored_byte_seconds + SECONDS_PER_HOUR) // (2 * SECONDS_PER_HOUR)


@dataclass(frozen=True, slots=True)
class InstanceHour:
    """What belongs to no topic, of one instance and hour; the hour's edge is a minute or two wide."""

    wire_in_bytes: int  # all that came by its clients' sockets
    wire_out_bytes: int
    requests: int
    loop_us: int  # of the brokers' loops
    throttled_ms: int  # in which somebody waited for a limit: of what flows in, and of what flows out, added up


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """What a topic used in some hours."""

    topic: str
    produced_bytes: int
    consumed_bytes: int
    stored_byte_seconds: int


@dataclass(frozen=True, slots=True)
class TopicHour:
    """What a topic used in one hour; or on a day, where hours are folded. Beginnings of hours, as usage records write them."""

    hour: str
    last_hour: str  # the same; of a day its last one
    produced_bytes: int
    consumed_bytes: int
    stored_byte_seconds: int


@dataclass(frozen=True, slots=True)
class UsageRecordRow:
    """One broker's share of an hour: the difference of two counters, and the record that carried the larger."""

    hour: str
    topic: str
    broker: int
    boot: str
    produced_bytes: int
    consumed_bytes: int
    stored_byte_seconds: int
    produced_bytes_since_boot: int
    consumed_bytes_since_boot: int
    stored_byte_seconds_since_boot: int
    partition: int  # of `__usage`
    offset: int


STATES = {
    "running": "it reads what brokers tell",
    "starting": "it has not come up yet",
    "failing": "something keeps it from working",
    "stalled": "it lives, and no batch ends",
    "silent": "it gives no sign of life",
    "absent": "this installation runs without it",
}


_SEVERITY = ("running", "absent", "starting", "stalled", "failing", "silent")
"""Of STATES, the last the worst."""


@dataclass(frozen=True, slots=True)
class MeteringStatus:
    """How the meter of a cluster is: one of STATES, and a sentence unless it is running."""

    state: str
    reason: str
    last_record_at: datetime | None = None
    seen_at: datetime | None = None  # the last sign of life
    complete_to: datetime | None = None
    final_to: datetime | None = None  # hours that ended up to then do not change any more
    moved_at: datetime | None = None  # when a batch ended last, or there was nothing to read
    batch_ms: int | None = None  # of the last batch, as below
    batch_records: int | None = None
    records: int = 0
    bad_records: int = 0
    early_records: int = 0
    cluster: str = DEFAULT_CLUSTER
    behind_since: datetime | None = (
        None  # it runs, and usage is complete up to then only; None: it keeps up, or does not run
    )

    def is_reading_the_present(self, now: datetime) -> bool:
        """Whether what brokers say now is known: otherwise they seem to owe what has not been read yet."""
        return self.state == "running" and self.last_record_at is not None and now - self.last_record_at < TOLD_WITHIN


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """One partition of `__usage`; offsets, and records that are not in the database yet."""

    partition: int
    next_offset: int
    end_offset: int
    lag: int
    complete_to: datetime | None  # all that was written before is in the database
    cluster: str = DEFAULT_CLUSTER


def usage_hours(*, instance: Instance, start: datetime, end: datetime, now: datetime | None = None) -> list[UsageHour]:
    """Hours that begin in [start's hour, end) and saw any usage record, in order."""
    open_hour = hour_text(now or datetime.now(UTC))
    return [
        UsageHour(hour, produced, consumed, stored, so_far=hour >= open_hour)
        for hour, produced, consumed, stored in _sums(instance, start, end)
    ]


def instance_hours(*, instance: Instance, start: datetime, end: datetime) -> dict[str, InstanceHour]:
    """What is counted of a whole instance, by the hours that begin in [start's hour, end) and saw a record of it."""
    return {hour: InstanceHour(*counters) for hour, *counters in _hours(INSTANCE_HOURS, instance, start, end)}


def usage_total(*, instance: Instance, start: datetime, end: datetime) -> tuple[int, int, int]:
    """Produced bytes, consumed bytes and stored byte-seconds of all hours that begin in [start's hour, end)."""
    # Summed here: byte-seconds of a large instance's month are more than SQLite's integers hold.
    rows = [sums for _, *sums in _sums(instance, start, end)]
    produced, consumed, stored = (sum(column) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
    return produced, consumed, stored


def topics_used(*, instance: Instance, start: datetime, end: datetime) -> list[TopicUsage]:
    """What each topic, by name, used in the hours that begin in [start's hour, end), topics that are gone included."""
    [used] = usage_by_topic(instance=instance, bounds=(start, end))
    return [TopicUsage(topic, *sums) for topic, sums in sorted(used.items())]


def topic_hours(*, instance: Instance, topic: str, start: datetime, end: datetime) -> list[TopicHour]:
    """Of one topic, hours that begin in [start's hour, end) and saw any usage record of it, in order.

    Where hours are folded there are their days, also one of which the range has a part.
    """
    of_days = ", ".join(TOPIC_DAYS.columns[len(TOPIC_DAYS.key) + 1 :])
    statement = (
        f"SELECT hour, last_hour, {TOPIC_DAYS.summed()} FROM ("  # noqa: S608  # values are bound
        f"SELECT {_DAY_HOUR} AS hour, day || 'T23:00:00Z' AS last_hour, {of_days} FROM {TOPIC_DAYS.table}"
        f" WHERE instance = %s AND topic = %s AND day >= %s AND {_DAY_HOUR} < %s UNION ALL"
        f" SELECT hour, hour, {TOPIC_DAYS.counted()} FROM {MAXIMUM_TABLE}"
        f" WHERE {_bound(SCOPE)} AND topic = %s AND hour >= {FOLDED_TO}"
        ") AS used GROUP BY hour, last_hour ORDER BY hour"
    )
    first, until = hour_text(start), _first_hour_from(end)
    with connection.cursor() as cursor:
        cursor.execute(statement, [instance.pk, topic, first[:DAY_LENGTH], until, instance.pk, first, until, topic])
        return [TopicHour(hour, last, *TOPIC_DAYS.counters_of(sums)) for hour, last, *sums in cursor]


def usage_by_topic(*, instance: Instance, bounds: Sequence[datetime]) -> list[dict[str, tuple[int, int, int]]]:
    """Produced bytes, consumed bytes and stored byte-seconds of each topic, in the hours that begin between each two of these.

    Of a folded day that is cut by one of them, each part has so much of each topic as is its share (`sharing`).
    """
    return _by_name(instance, bounds, TOPIC_DAYS, TOPIC_HOURS)


def usage_by_user(*, instance: Instance, bounds: Sequence[datetime]) -> list[dict[str, tuple[int, int, int]]]:
    """Bytes on the wire, in and out, and requests of each user, likewise.

    Names are as usage records have them (`quota.contracts.usage`).
    """
    return _by_name(instance, bounds, USER_DAYS, USER_HOURS)


def _by_name(
    instance: Instance, bounds: Sequence[datetime], by_day: Folded, by_hour: Folded
) -> list[dict[str, tuple[int, int, int]]]:
    """The three counters of each topic or user."""
    parts: list[dict[str, tuple[int, int, int]]] = [{} for _ in bounds[1:]]
    if not parts:
        return []
    edges = [hour_text(bounds[0]), *map(_first_hour_from, bounds[1:])]
    cut: dict[str, dict[str, tuple[int, ...]]] = {}  # day: name, or hour, to counters
    hours: dict[str, dict[str, tuple[int, ...]]] = {}
    for kind, part, day, name, *counters in _of_names(instance, edges, by_day, by_hour):
        used = by_day.counters_of(counters)
        if kind == _WHOLE:
            parts[part][name] = _added(parts[part].get(name), used)
        else:
            (cut if kind == _CUT else hours).setdefault(day, {})[name] = used
    for day, names in sorted(cut.items()):
        for part, shares in enumerate(_shares(names, hours.get(day, {}), edges)):
            for name, used in shares.items():
                if any(used):
                    parts[part][name] = _added(parts[part].get(name), used)
    return parts


_WHOLE, _CUT, _HOUR = "whole", "cut", "hour"


def _of_names(instance: Instance, edges: Sequence[str], by_day: Folded, by_hour: Folded) -> list[tuple[Any, ...]]:
    """(kind, part, day, name, columns): what topics or users used in a part; of days that are cut, and not, they and the hours.

    In one statement: a fold between two of them would take from one what it gives the other.
    """
    first, last = edges[0], edges[-1]
    days = sorted({edge[:DAY_LENGTH] for edge in edges if not edge.endswith(MIDNIGHT)}) or [""]
    of_days = ", ".join(["%s"] * len(days))
    of_hour = " ".join(f"WHEN hour < %s THEN {number}" for number in range(len(edges) - 1))
    of_day = of_hour.replace("hour", _DAY_HOUR)
    name, of_keys = by_day.key[1], ", ".join(f"SUM({each})" for each in by_day.of_keys().values())
    statement = (
        f"SELECT '{_WHOLE}', CASE {of_day} END, '', {name}, {by_day.summed()} FROM {by_day.table}"  # noqa: S608
        f" WHERE instance = %s AND day >= %s AND {_DAY_HOUR} < %s AND day NOT IN ({of_days}) GROUP BY 2, 4 UNION ALL"
        f" SELECT '{_WHOLE}', CASE {of_hour} END, '', {name}, {of_keys} FROM {by_day.source.table}"
        f" WHERE {_bound(SCOPE)} AND hour >= {FOLDED_TO} GROUP BY 2, 4 UNION ALL"
        f" SELECT '{_CUT}', 0, day, {name}, {', '.join(by_day.columns[3:])} FROM {by_day.table}"
        f" WHERE instance = %s AND day IN ({of_days}) UNION ALL"
        f" SELECT '{_HOUR}', 0, SUBSTR(hour, 1, {DAY_LENGTH}), hour, {', '.join(by_hour.columns[2:])}"
        f" FROM {by_hour.table} WHERE instance = %s AND SUBSTR(hour, 1, {DAY_LENGTH}) IN ({of_days})"
    )
    about = [instance.pk, *days]
    values = [
        *edges[1:], instance.pk, first[:DAY_LENGTH], last, *days, *edges[1:], instance.pk, first, last, *about, *about,
    ]  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _shares(
    names: Mapping[str, tuple[int, ...]], hours: Mapping[str, tuple[int, ...]], edges: Sequence[str]
) -> list[dict[str, tuple[int, ...]]]:
    """What each topic or user of a day used in each part between two edges, by what the instance used in the hours there."""
    found: list[dict[str, list[int]]] = [{name: [] for name in names} for _ in edges[1:]]
    for number in range(_COUNTED_BY_NAME):
        parts = [0] * (len(edges) + 1)  # before the first edge, between them, behind the last
        for hour, used in hours.items():
            parts[sum(edge <= hour for edge in edges)] += used[number]
        shares = shared_out({name: used[number] for name, used in names.items()}, parts)
        for part, of_part in zip(found, shares[1:-1], strict=True):
            for name, share in of_part.items():
                part[name].append(share)
    return [{name: tuple(used) for name, used in part.items()} for part in found]


def _added(before: tuple[int, ...] | None, used: Iterable[int]) -> tuple[int, int, int]:
    first, second, third = (a + b for a, b in zip(before or (0,) * _COUNTED_BY_NAME, used, strict=True))
    return first, second, third


def counted_until(now: datetime, *, read_to: datetime | None) -> datetime:
    """The full hour up to which hours are counted, as far as is known. `read_to`: `complete_to()`; None: nothing is known."""
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if read_to is None:
        return hour
    told = (read_to - TOLD_WITHIN).astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return min(hour, told)


def usage_records(
    *,
    instance: Instance,
    start: datetime,
    end: datetime,
    after: tuple[str, str, int, str] | None = None,
    limit: int | None = None,
) -> list[UsageRecordRow]:
    """What the hours of a range are made of, by hour, topic, broker and boot: `limit` rows behind the row `after`.

    Of folded hours there are none: see `records_away`.
    """
    statement = (
        f"SELECT hour, topic, broker, boot, {', '.join(grown(name) for name in COUNTERS)}, {', '.join(COUNTERS)},"  # noqa: S608
        f" source_partition, source_offset FROM {MAXIMUM_TABLE} WHERE {_bound(SCOPE)} AND hour >= {FOLDED_TO}"
    )
    values: list[Any] = [instance.pk, hour_text(start), _first_hour_from(end)]
    if after is not None:
        statement += " AND hour >= %s AND (hour, topic, broker, boot) > (%s, %s, %s, %s)"
        values += [after[0], *after]
    statement += " ORDER BY hour, topic, broker, boot"
    if limit is not None:
        statement += " LIMIT %s"
        values.append(limit)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [UsageRecordRow(*row) for row in cursor.fetchall()]


def records_away(start: datetime) -> str:
    """Where the records behind hours from a moment on are, as far as they are not kept, in a sentence; empty: all are."""
    folded_to = Fold.objects.filter(pk=1).values_list("folded_to", flat=True).first() or ""
    if hour_text(start) >= folded_to:
        return ""
    return (
        f"records behind hours before {folded_to[:DAY_LENGTH]} are not kept here, where their sums are; each of them is in the"
        " table usage_raw of the service's lake, from which its operators can show them"
    )


def statuses() -> list[MeteringStatus]:
    """How the meter of each cluster is now, the oldest cluster first."""
    return [status_of(cluster.name) for cluster in cluster_list()]


def status() -> MeteringStatus:
    """How the meters are, all together: what is told for the one that is worst is told for all.

    Moments are those up to which all have come; what is not known of one is not known.
    """
    found = statuses()
    worst = max(found, key=lambda each: _SEVERITY.index(each.state))
    if len(found) == 1:
        return worst
    return replace(
        worst,
        last_record_at=max(filter(None, (each.last_record_at for each in found)), default=None),
        seen_at=_least(each.seen_at for each in found),
        complete_to=_least(each.complete_to for each in found),
        final_to=_least(each.final_to for each in found),
        moved_at=_least(each.moved_at for each in found),
        records=sum(each.records for each in found),
        bad_records=sum(each.bad_records for each in found),
        early_records=sum(each.early_records for each in found),
    )


def _least(moments: Iterable[datetime | None]) -> datetime | None:
    known = list(moments)
    return None if None in known else min(moment for moment in known if moment is not None)


def state_of(cluster: str, *, silent_after_s: float = SILENT_AFTER_S) -> tuple[str, str]:
    """Of a cluster's meter, and why it is that: one question, where its status is many."""
    return _state(PipelineStatus.objects.filter(cluster=cluster).first(), time.time() * 1000, silent_after_s)


def status_of(cluster: str) -> MeteringStatus:
    """How the meter of a cluster is now."""
    row = PipelineStatus.objects.filter(cluster=cluster).first()
    state, reason = _state(row, time.time() * 1000, SILENT_AFTER_S)
    if row is None:
        return MeteringStatus(state, reason, cluster=cluster)
    read_to = complete_to(cluster)
    final_to = (
        finality.final_to(finality.broker_hours(read_to, cluster), read_to=read_to)
        if not losses_open(cluster).exists()
        else None
    )
    return MeteringStatus(
        state, reason, _moment(row.last_record_at_ms), _moment(row.seen_at_ms), read_to, final_to, _moment(row.moved_at_ms),
        row.batch_ms, row.batch_records, row.records, row.bad_records, row.early_records, cluster,
        read_to if state == "running" and read_to is not None and is_behind(read_to, datetime.now(UTC)) else None,
    )  # fmt: skip


def _state(row: PipelineStatus | None, now_ms: float, silent_after_s: float) -> tuple[str, str]:
    if settings.ENVIRONMENT.metering_absent:
        return "absent", settings.ENVIRONMENT.metering_absent
    if row is None:
        return "starting", "the meter has not come up yet"
    if now_ms - row.seen_at_ms > silent_after_s * 1000:
        return "silent", "the meter gives no sign of life"
    if row.problem:
        return "failing", row.problem
    # A job whose query never began has not moved since it came up: it may hang there.
    still_s = (now_ms - (row.started_at_ms if row.moved_at_ms is None else row.moved_at_ms)) / 1000
    if still_s > STALLED_AFTER_S:
        return "stalled", f"no batch has ended for {int(still_s // 60)} minutes"
    return "running", ""


def is_behind(read_to: datetime, now: datetime) -> bool:
    """Whether usage that is complete up to a moment is missing more than what brokers may still be telling."""
    return now - read_to > TOLD_WITHIN


def partitions() -> list[PartitionProgress]:
    """How far each partition of each cluster's `__usage` has been read, as last seen."""
    return [
        PartitionProgress(
            row.partition, row.next_offset, row.end_offset, max(0, row.end_offset - row.next_offset),
            _moment(row.complete_to_ms), row.cluster,
        )
        for row in Progress.objects.order_by("cluster", "partition")
    ]  # fmt: skip


def complete_to(cluster: str = DEFAULT_CLUSTER) -> datetime | None:
    """Every usage record of a cluster that was written before this moment is in the database; None: nothing is known yet."""
    rows = Progress.objects.filter(cluster=cluster)
    found = rows.aggregate(rows=Count("pk"), known=Count("complete_to_ms"), least=Min("complete_to_ms"))
    return _moment(found["least"]) if found["rows"] == found["known"] else None


def complete_to_everywhere() -> datetime | None:
    """The same of all clusters; None: nothing is known of one of them."""
    return _least(complete_to(cluster.name) for cluster in cluster_list())


@dataclass(frozen=True, slots=True)
class Completeness:
    """All that decides whether usage before any moment may still change, read once."""

    absent: str  # why there is no metering; "": there is
    read_to: datetime | None
    loss: str  # the first that nobody has judged; "": none
    brokers: list[finality.BrokerHours]
    unread: Mapping[int, datetime | None]  # masters whose journals are, and since when (`elastic.unread_since`)
    is_retired: bool = False  # its meter is off for good: nothing more will come
    reported_to: datetime | None = (
        None  # up to when days have a quota report; None: nothing waits for one (`jobs.reported_to`)
    )

    def why_not(self, *, until: datetime) -> str:
        """Why usage before a moment may still change, in a sentence for operators; empty: it is complete.

        What comes after all is late, and moves the hours all the same.
        """
        return self.why_open(until=until) or ("" if self.is_retired else self._why_unread(until))

    def why_open(self, *, until: datetime) -> str:
        """The same of what brokers tell: every record must have been read, and every broker have told all (`finality`)."""
        wanted = until + TOLD_WITHIN
        if self.is_retired:
            return ""
        if self.absent:
            return self.absent
        if self.read_to is None:
            return "the meter has not said yet how far it has come"
        if self.read_to < wanted:
            return f"metering has come to {self.read_to:%Y-%m-%d %H:%M} UTC; it must come to {wanted:%Y-%m-%d %H:%M}"
        if self.loss:
            return f"{self.loss}; an operator has to judge it"
        return finality.why_not_final(self.brokers, until=until)

    def why_unreported(self, *, until: datetime) -> str:
        """Why it is not known yet whether the bandwidth that was bought could be had; empty: it is known, or never will be."""
        if self.is_retired or self.absent or self.reported_to is None or self.reported_to >= until:
            return ""
        return f"the quota report has come to {self.reported_to:%Y-%m-%d}; it must come to {until:%Y-%m-%d}"

    def _why_unread(self, until: datetime) -> str:
        for master, since in self.unread.items():
            if since is None:
                return f"the elastic bandwidth that master {master} has counted was never read"
            if since < until:
                return f"the elastic bandwidth that master {master} has counted since {since:%Y-%m-%d %H:%M} UTC was not read"
        return ""

    def has_waived(self, *, until: datetime) -> bool:
        """Whether usage before a moment is complete only because some broker is not waited for."""
        return finality.has_waived(self.brokers, until=until)

    def waivers_applied(self, *, until: datetime) -> list[BrokerWaiver]:
        """Those of brokers without which usage before a moment would not be complete."""
        return finality.waivers_applied(self.brokers, until=until)

    def waiting_for(self, *, until: datetime) -> list[finality.Waiting]:
        """Brokers that usage before a moment waits for, each with its hours and boots."""
        return [] if self.absent or self.is_retired else finality.waiting_for(self.brokers, until=until)


def completeness(cluster: str = DEFAULT_CLUSTER) -> Completeness:
    """How it is now, of usage on a cluster."""
    return _completeness(cluster, reported_to())


def _completeness(cluster: str, reported: datetime | None) -> Completeness:
    read_to, loss = complete_to(cluster), losses_open(cluster).first()
    return Completeness(
        settings.ENVIRONMENT.metering_absent,
        read_to,
        loss.sentence if loss else "",
        finality.broker_hours(read_to, cluster),
        unread_since(cluster),
        reported_to=reported,
    )


def completeness_by_cluster() -> dict[str, Completeness]:
    """Of each cluster, by its name, the oldest first; of those that are retired as well, though nothing of them waits.

    A cluster is retired when every invoice of its instances is written; what these still get are adjustments.
    """
    reported = reported_to()  # one report is of all clusters
    return {
        cluster.name: replace(_completeness(cluster.name, reported), is_retired=cluster.state == ClusterState.RETIRED)
        for cluster in clusters_known()
    }


def why_incomplete(*, until: datetime, cluster: str = DEFAULT_CLUSTER) -> str:
    """See `Completeness.why_not`."""
    return completeness(cluster).why_not(until=until)


def losses_open(cluster: str | None = None) -> QuerySet[Loss]:
    """What nobody has judged yet, oldest first: of a cluster, or (None) of all."""
    rows = Loss.objects.filter(settled_at=None).order_by("pk")
    return rows if cluster is None else rows.filter(cluster=cluster)


MOST_KEY = 2**63
"""No row has a larger one, and no database is asked for it."""


def losses(*, is_settled: bool | None = None, cluster: str = "") -> QuerySet[Loss]:
    """All that were found, the last first: those that somebody has judged, or nobody (None: both), and of a cluster."""
    rows = Loss.objects.order_by("-pk")
    if is_settled is not None:
        rows = rows.filter(settled_at__isnull=not is_settled)
    return rows.filter(cluster=cluster) if cluster else rows


def loss_get(loss_id: int) -> Loss:
    """One of them. Raises NotFound."""
    found = Loss.objects.filter(pk=loss_id).first() if loss_id < MOST_KEY else None
    if found is None:
        raise NotFound("there is no such loss")
    return found


def losses_settled(most: int = 20) -> QuerySet[Loss]:
    """What operators have judged, the last one first."""
    return Loss.objects.exclude(settled_at=None).order_by("-settled_at", "-pk")[:most]


def broker_waivers(most: int = 100) -> QuerySet[BrokerWaiver]:
    """Brokers that operators did not wait for, the last one first."""
    return BrokerWaiver.objects.order_by("-pk")[:most]


def caps_set(most: int = 100) -> QuerySet[Cap]:
    """What operators have ruled out, the last one first."""
    return Cap.objects.order_by("-set_at", "-pk")[:most]


def caps() -> QuerySet[Cap]:
    """All that operators have ruled out."""
    return Cap.objects.all()


def cap_get(*, instance_id: str, boot: str, topic: str) -> Cap:
    """The one of a topic on a broker's boot. Raises NotFound."""
    found = Cap.objects.filter(instance=instance_id, boot=boot, topic=topic).first()
    if found is None:
        raise NotFound("there is no such cap")
    return found


def reconciliations() -> QuerySet[Reconciliation]:
    """Hours that were recomputed from the raw records and compared, the last run first."""
    return Reconciliation.objects.order_by("-pk")


def differences(*, reconciliation: int | None = None) -> QuerySet[Difference]:
    """Counters that were not what the records say: of one run, or of all that are kept; the last found first."""
    rows = Difference.objects.order_by("-reconciliation_id", "pk")
    return rows if reconciliation is None else rows.filter(reconciliation=reconciliation)


def differences_now() -> int:
    """How many counters differed at the last run, in all parts that it had; 0 before the first."""
    last = reconciliations().first()
    if last is None:
        return 0
    found: int = Reconciliation.objects.filter(at_ms=last.at_ms).aggregate(sum=Sum("different"))["sum"]
    return found


def hour_text(moment: datetime) -> str:
    """The beginning of a moment's UTC hour, as usage records write it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="hours") + ":00:00Z"


def _sums(instance: Instance, start: datetime, end: datetime) -> list[tuple[Any, ...]]:
    """(hour, produced, consumed, stored) of each hour in the range that saw a record, in order."""
    return _hours(TOPIC_HOURS, instance, start, end)


def _hours(folded: Folded, instance: Instance, start: datetime, end: datetime) -> list[tuple[Any, ...]]:
    """(hour, counters) of an instance, in order, on both sides of the horizon."""
    scope = [instance.pk, hour_text(start), _first_hour_from(end)]
    with connection.cursor() as cursor:
        cursor.execute(_bound(folded.hours_sql()), [*scope, *scope])
        return [(hour, *folded.counters_of(columns)) for hour, *columns in cursor.fetchall()]


def _bound(statement: str) -> str:
    """A statement of the pipeline, for Django's cursor."""
    return statement.replace("?", "%s")


def _first_hour_from(end: datetime) -> str:
    """The first hour that does not begin before `end`."""
    floor = hour_text(end)
    moment = end.astimezone(UTC)
    if (moment.minute, moment.second, moment.microsecond) == (0, 0, 0):
        return floor
    try:
        return hour_text(moment + timedelta(hours=1))
    except OverflowError:  # the end of the calendar
        return floor


def moment_of(at_ms: int) -> datetime:
    """Of milliseconds since 1970."""
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else moment_of(at_ms)
