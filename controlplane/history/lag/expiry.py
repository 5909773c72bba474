"""Records that a group has not read and that are about to expire: noticed by the rounds of lag, and kept as spells.

A round knows of a group in each topic how much is unread and when the oldest of it was written (of what it has dated). With the
topic's retention that says when the oldest may expire, *at the earliest*: brokers remove whole segments, so a record goes with
the last one of its segment, whose time nobody but they know. When it is a tenth of the retention away, and an hour at most, a
spell begins. It ends when the group has read on, or what was oldest is gone, so that the next has twice as long; in between
nothing changes, so that a group that is always so far away does not begin one each minute. Where a round does not know a group,
or the age of the next record of one of its partitions in the topic, nothing changes either (but what is dated and about to
expire is); what no round has seen for a day has ended when it was last seen.

Where a topic keeps so many bytes (`retention.bytes`), what is written pushes out what is oldest: `paces` estimates when, for
topics of which a round knows the bytes that are unread and has seen twice where partitions end. It is about to be pushed out when
a tenth of the time is left in which the whole partition is, and an hour at most. Whichever is sooner, that or the age, is told.

Groups are as many as a tenant likes, and rows are not: of an instance, MOST_SPELLS at most are open or began in the last hour.
Those with most unread come first; what is one too many begins when there is room, if it still is about to expire.

Retention stands with the cluster. It is asked for, of those topics whose unread records are oldest, MOST_TOPICS in a round at
most, and kept for RETENTION_S.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Count, Exists, F, OuterRef, Q, Sum

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import SluiceError
from controlplane.core.kept import keep, kept
from controlplane.core.portions import portions
from controlplane.history.lag.paces import FORGOTTEN_S as PACES_FORGOTTEN_S
from controlplane.history.lag.paces import paced, pushed_out
from controlplane.history.lag.rows import GONE_AFTER_S, MS, NOTHING_LEFT
from controlplane.history.models import ExpiringUnread, LagGroup
from controlplane.kafka import client
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.db.models import QuerySet

    from controlplane.clusters.address import ClusterAddress
    from controlplane.groups.rounds import Lag, Part, Round
    from controlplane.history.lag.paces import Pace
    from controlplane.kafka.group_door import Place

LOG = logging.getLogger(__name__)
HORIZON_MS = 3_600_000
MOST_TOPICS = 500
RETENTION_S = 600
AT_ONCE = 500
UNSEEN = timedelta(days=1)
SEEN_LATELY_S = 180
KEPT = timedelta(days=90)
PORTION, PORTIONS = 2_000, 20
MOST_SPELLS = 200
"""Of an instance, open or begun within LATELY."""
LATELY = timedelta(hours=1)

Key = tuple[str, str]
"""An instance, and the digest of a group and a topic."""


@dataclass(frozen=True, slots=True)
class Unread:
    """What a group has not read of a topic (by its name in the cluster), as far as it is dated."""

    instance: str
    group: str
    topic: str
    messages: int
    oldest_ms: int
    is_whole: bool = True  # all of it is dated
    parts: tuple[Part, ...] = ()
    expires_ms: int = 0  # at the earliest; 0: not known yet
    is_by_size: bool = False  # then it is an estimate

    @property
    def key(self) -> Key:
        return self.instance, digest_of(self.group, name_of(self.topic))


def name_of(topic: str) -> str:
    """As its tenant has it."""
    return (split_physical(topic) or ("", topic))[1]


def digest_of(group: str, topic: str) -> str:
    """What stands for both in an index: no name has NUL in it."""
    return hashlib.sha256(f"{group}\0{topic}".encode(errors="surrogatepass")).hexdigest()[:32]


def expiry_keep(cluster: ClusterAddress, found: Round, now: datetime) -> None:
    """Begin and end spells by what a round has found. A cluster that does not say its retentions leaves them as they are."""
    try:
        soon, undecided = _judged(cluster, found, now)
    except SluiceError as error:
        LOG.warning("what expires unread in cluster %s is not known: %s", cluster.id, error)
        return
    names = sorted(found.lags)
    for part in portions(names, AT_ONCE):
        _written(part, found, soon, undecided, now)


def expiry_purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """End what no round has seen for a day, and forget what ended 90 days ago."""
    now = clock.now()
    ExpiringUnread.objects.filter(ended_at=None, seen_at__lt=now - UNSEEN).update(ended_at=F("seen_at"))
    old = ExpiringUnread.objects.filter(ended_at__lt=now - KEPT)
    for _ in range(PORTIONS):  # the rest is for the next call
        keys = list(old.order_by("pk").values_list("pk", flat=True)[:PORTION])
        if not keys:
            break
        old.filter(pk__in=keys).delete()


def unread_lately(names: Sequence[str], now_s: int) -> dict[str, tuple[int, str]]:
    """Of those of these instances in which records are about to expire unread: how many there were when that was noticed.

    With the name of the group that has most of them. Only what rounds of the last minutes have seen: no group that is gone.
    """
    seen = datetime.fromtimestamp(now_s - SEEN_LATELY_S, UTC)
    rows = ExpiringUnread.objects.filter(instance__in=names, ended_at=None, seen_at__gte=seen)
    return _of_groups(rows)


def _of_groups(rows: QuerySet[ExpiringUnread]) -> dict[str, tuple[int, str]]:
    """By instance: how many all its groups have together, and the name of that which has most. Without groups that are gone."""
    found: dict[str, tuple[int, str]] = {}
    gone = LagGroup.objects.filter(instance=OuterRef("instance"), name=OuterRef("group"), deleted_at__isnull=False)
    ordered = (
        rows.filter(~Exists(gone))
        .order_by("instance", "group")
        .values_list("instance", "group")
        .annotate(unread=Sum("messages"))
    )
    most: dict[str, int] = {}
    for instance, group, messages in ordered:
        total, worst = found.get(instance, (0, ""))
        if messages > most.get(instance, -1):
            most[instance], worst = messages, group
        found[instance] = total + messages, worst
    return found


def unread_unseen(names: Sequence[str], now_s: int) -> dict[str, tuple[int, str]]:
    """Of those of these instances: how many records were about to expire in groups that rounds have not seen lately.

    With the name of the group that has most of them.

    Only those that were seen within the last hour: whether they still are about to expire, nobody knows.
    """
    lately, oldest = (datetime.fromtimestamp(now_s - seconds, UTC) for seconds in (SEEN_LATELY_S, GONE_AFTER_S))
    rows = ExpiringUnread.objects.filter(instance__in=names, ended_at=None, seen_at__gte=oldest, seen_at__lt=lately)
    return _of_groups(rows)


def _judged(cluster: ClusterAddress, found: Round, now: datetime) -> tuple[dict[Key, Unread], dict[Key, bool]]:
    """What is about to expire, and of what nobody can say, or need say now, whether it is. All else is not.

    Of the latter whether its age is undecided; else it is what is written behind it alone.
    """
    undecided: dict[Key, bool] = {}
    dated: list[Unread] = []
    for instance, group, topic, lag in _each(found):
        if lag.oldest_ms is None:
            undecided[instance, digest_of(group, name_of(topic))] = True
        elif lag.oldest_ms != NOTHING_LEFT:
            dated.append(Unread(instance, group, topic, lag.messages, lag.oldest_ms, lag.is_whole, lag.parts))
    dated.sort(key=lambda each: each.oldest_ms)
    now_s = int(now.timestamp())
    limits = _limits(cluster, list(dict.fromkeys(each.topic for each in dated)), now_s)
    paces = _paces(cluster, [each for each in dated if limits.get(each.topic, FOR_EVER).size is not None], now_s)
    soon: dict[Key, Unread] = {}
    for each in dated:
        if each.topic not in limits:  # it was one too many, or is gone
            undecided[each.key] = True
            continue
        kept_for = limits[each.topic]
        by_age = _by_age(each, kept_for.age_ms, now)
        ways = [by_age, _by_size(each, kept_for.size, paces, now)]
        sooner = min((way for way in ways if isinstance(way, Unread)), key=lambda way: way.expires_ms, default=None)
        if sooner is not None:
            soon[each.key] = sooner
        elif None in ways:
            undecided[each.key] = by_age is None
    return soon, undecided


def _by_age(each: Unread, retention_ms: int | None, now: datetime) -> Unread | bool | None:
    """With its moment, where it is about to expire; False: it is not; None: nobody can say, or need say now."""
    if retention_ms is None:
        return False
    left_ms = each.oldest_ms + retention_ms - round(now.timestamp() * MS)
    if left_ms <= horizon_ms(retention_ms):
        return replace(each, expires_ms=each.oldest_ms + retention_ms)
    return None if left_ms <= 2 * horizon_ms(retention_ms) or not each.is_whole else False


def _by_size(each: Unread, size: int | None, paces: Mapping[Place, Pace], now: datetime) -> Unread | bool | None:
    """The same, of what is written behind it."""
    if size is None:
        return False
    pushed, is_whole = pushed_out(each.topic, each.parts, size, paces)
    horizon = min(HORIZON_MS, pushed.whole_ms / 10)
    if pushed.left_ms <= horizon:
        expires_ms = round(now.timestamp() * MS + pushed.left_ms)
        return replace(each, expires_ms=expires_ms, is_by_size=True)
    return None if pushed.left_ms <= 2 * horizon or not is_whole else False


def horizon_ms(retention_ms: int) -> int:
    """How long before it a record is about to expire."""
    return min(HORIZON_MS, retention_ms // 10)


def _each(found: Round) -> Iterator[tuple[str, str, str, Lag]]:
    for instance, groups in found.by_topic.items():
        for group, topics in groups.items():
            for topic, lag in topics.items():
                yield instance, group, topic, lag


class Limits(NamedTuple):
    """How long records of a topic are kept, in ms, and how many bytes of a partition; None: without end."""

    age_ms: int | None
    size: int | None


FOR_EVER = Limits(None, None)


def _limits(cluster: ClusterAddress, topics: Sequence[str], now_s: int) -> Mapping[str, Limits]:
    """Raises ClusterUnavailable."""
    key = f"lag:limits:{cluster.id}"
    before = kept(key, LOG, "retentions are asked for again") or {"at": now_s, "of": {}}
    if not 0 <= now_s - before["at"] < RETENTION_S:
        before = {"at": now_s, "of": {}}
    known: dict[str, Limits] = before["of"]
    wanted = [topic for topic in topics if topic not in known][:MOST_TOPICS]
    if wanted:
        found = client.admin(cluster).settings_in_force(wanted)
        known = known | {
            topic: Limits(client.retention_of(settings), client.size_kept_of(settings))
            for topic, settings in found.items()
        }
        keep(key, {"at": before["at"], "of": known}, RETENTION_S, LOG, "retentions will be asked for again")
    return known


def _paces(cluster: ClusterAddress, bounded: Sequence[Unread], now_s: int) -> Mapping[Place, Pace]:
    """Of the partitions of topics that keep so many bytes; for the next round as well."""
    key = f"lag:paces:{cluster.id}"
    ends = {(each.topic, part.number): part.end for each in bounded for part in each.parts}
    if not ends:
        return {}
    found = paced(kept(key, LOG, "how fast topics are written to is not known") or {}, ends, now_s)
    keep(key, found, PACES_FORGOTTEN_S, LOG, "how fast topics are written to will not be known")
    return found


def _written(
    names: Sequence[str], found: Round, soon: Mapping[Key, Unread], undecided: Mapping[Key, bool], now: datetime
) -> None:
    """Of these instances. What began by its age ends by its age, whatever is not known of bytes."""
    rows = ExpiringUnread.objects.filter(instance__in=names, ended_at=None)
    open_ = {(row.instance, row.digest): row for row in rows}
    seen: list[int] = []
    over: list[int] = []
    for key, row in open_.items():
        if row.group in found.lags[row.instance]:
            is_open = key in soon or undecided.get(key, False) or (row.is_by_size and key in undecided)
            (seen if is_open else over).append(row.pk)
    for some, changes in ((seen, {"seen_at": now}), (over, {"seen_at": now, "ended_at": now})):
        for part in portions(some, AT_ONCE):
            rows.filter(pk__in=part).update(**changes)
    ours = set(names)
    new = [each for key, each in soon.items() if key[0] in ours and key not in open_]
    if new:
        begun = [_row(each, now) for each in _as_many_as_fit(new, now)]
        ExpiringUnread.objects.bulk_create(begun, batch_size=AT_ONCE, ignore_conflicts=True)


def _as_many_as_fit(new: Sequence[Unread], now: datetime) -> list[Unread]:
    """Of each instance those with most unread, as long as there is room for a spell."""
    rows = ExpiringUnread.objects.filter(Q(ended_at=None) | Q(began_at__gt=now - LATELY))
    counts = rows.filter(instance__in={each.instance for each in new}).order_by().values("instance")
    taken = Counter(dict(counts.annotate(number=Count("pk")).values_list("instance", "number")))
    begun: list[Unread] = []
    left_out: Counter[str] = Counter()
    for each in sorted(new, key=lambda each: -each.messages):
        if taken[each.instance] < MOST_SPELLS:
            taken[each.instance] += 1
            begun.append(each)
        else:
            left_out[each.instance] += 1
    for instance, number in left_out.items():
        LOG.info("%d spells of %s do not begin: it has %d", number, instance, MOST_SPELLS)
    return begun


def _moment(expires_ms: int, now: datetime) -> datetime:
    """Not before now: a producer may have dated a record to long before there was time."""
    return datetime.fromtimestamp(max(expires_ms, round(now.timestamp() * MS)) / MS, UTC)


def _row(each: Unread, now: datetime) -> ExpiringUnread:
    instance, digest = each.key
    return ExpiringUnread(
        instance=instance,
        digest=digest,
        group=each.group,
        topic=name_of(each.topic),
        messages=each.messages,
        expires_at=_moment(each.expires_ms, now),
        is_by_size=each.is_by_size,
        began_at=now,
        seen_at=now,
    )
