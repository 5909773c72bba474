"""What is known of what happened to an instance, each from where it stands.

=====================  ===========================================================================================
what                   from where
=====================  ===========================================================================================
health                 reasons that came and went: `health.HealthSpell`
operations             begun, done, failed: `core.Operation`
alarms                 fired and resolved: `AlarmEvent`
resizes                sizes before and after: `instances.SpecChange`, which the bill is computed from
throttling             times in which its own limits made clients wait: `ThrottledSpell` (`throttling`)
brokers                that led its partitions, away and back: `clusters.BrokerAbsence`
moved partitions       what operators have moved between brokers, counted: `rebalancing.RebalanceMove`
unread records         of a group, about to expire: `history.ExpiringUnread`
groups                 that rebalanced, by the hour: `history.GroupRebalances`
=====================  ===========================================================================================

What nobody writes down is not here: single elections of leaders, where no broker went away.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, Subquery

from controlplane.alarms.delivery.words import amount, duration_text
from controlplane.alarms.events import Few, Rows, Told
from controlplane.alarms.machine import EventKind
from controlplane.alarms.models import AlarmEvent, ThrottledSpell
from controlplane.alarms.throttling import OVER_AFTER
from controlplane.clusters.models import BrokerAbsence
from controlplane.core.models import Operation, OperationState
from controlplane.health.models import HealthSpell
from controlplane.history.models import ExpiringUnread, GroupRebalances
from controlplane.instances.history import SIZES
from controlplane.instances.models import SpecChange, SpecChangeKind
from controlplane.rebalancing.models import ACTIVE, MoveState, RebalanceMove

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.alarms.events import Sizes, Source, Span
    from controlplane.instances.models import Instance

OF_TEXT = (3, 4, 10, 11)
"""Sources by their number, those whose keys are texts: operations and rebalances."""
NUMBERS = {str(number): number for number in range(15)}
"""Of sources. They stay as they are: cursors have them."""
SIZE_WORDS = {
    "bandwidth_mib_per_s": ("bandwidth", " MiB/s"),
    "storage_gib": ("storage", " GiB"),
    "partitions": ("partitions", ""),
}
MINUTE_S = 60
AT_ONCE = timedelta(minutes=1)
"""Between two rows that are written for one thing: the end of a reason and the worse one that took its place, a size and its
operation."""
CLIENTS = {"produce": "Producers", "consume": "Consumers"}
_REASON = "the caller found the instance in its organisation"


def sources_of(instance: Instance, span: Span, now: datetime) -> list[Source]:
    """By their numbers."""
    begun, ended = _moved(instance, span)
    return [
        *_of_alarms(instance),
        *_of_health(instance),
        *_of_operations(instance),
        Rows({"instance.resized": Q()}, _resizes(instance), "at", lambda row: _resized(instance, row)),
        *_of_throttling(instance, now),
        *_of_brokers(instance),
        Few("rebalance.ended", ended),
        Few("rebalance.began", begun),
        *_of_unread(instance, now),
        Rows({"group.rebalanced": Q()}, GroupRebalances.objects.filter(instance=instance.pk), "began_at", _rebalanced),
    ]


def _of_alarms(instance: Instance) -> list[Source]:
    rows = AlarmEvent.objects.unscoped(_REASON).filter(instance=instance)
    kinds = {f"alarm.{kind.value}": Q(kind=kind.value) for kind in (EventKind.FIRED, EventKind.RESOLVED)}
    return [Rows(kinds, rows, "at", lambda row: Told(f"alarm.{row.kind}", row.name, row.alarm_id, row.actor))]


def _of_health(instance: Instance) -> list[Source]:
    rows = HealthSpell.objects.filter(instance=instance.pk)
    # What has become worse has not ended: storage that is full is no longer nearly full, which nobody has to be told.
    worse = HealthSpell.objects.filter(
        instance=instance.pk,
        code="storage_full",
        began_at__gt=OuterRef("ended_at") - AT_ONCE,
        began_at__lt=OuterRef("ended_at") + AT_ONCE,
    )
    over = rows.exclude(Q(code="storage_nearly_full") & Exists(worse))
    return [
        Rows({"health.ended": Q()}, over, "ended_at", lambda row: Told("health.ended", row.title, row.code)),
        Rows({"health.began": Q()}, rows, "began_at", lambda row: Told("health.began", row.title, row.code)),
    ]


def _of_operations(instance: Instance) -> list[Source]:
    """Those of its organisation: what operators do to it is theirs."""
    rows = Operation.objects.unscoped(_REASON).filter(organisation=instance.organisation_id, target=instance.pk)
    over = {f"operation.{state.value}": Q(state=state) for state in (OperationState.SUCCEEDED, OperationState.FAILED)}
    return [
        Rows(
            over,
            rows,
            "finished_at",
            lambda row: Told(f"operation.{row.state}", row.kind, row.pk, row.actor, row.error or _said(row)),
        ),
        Rows(
            {"operation.began": Q()},
            rows,
            "created_at",
            lambda row: Told("operation.began", row.kind, row.pk, row.actor),
        ),
    ]


def _said(operation: Operation) -> str:
    """What an operation of a policy has to say when it has done its work."""
    said = (operation.result or {}).get("said", "")
    return said if isinstance(said, str) else ""


def _of_throttling(instance: Instance, now: datetime) -> list[Source]:
    rows = ThrottledSpell.objects.filter(instance=instance.pk)

    def began(row: ThrottledSpell) -> Told:
        return Told("throttling.began", CLIENTS[row.direction], row.direction)

    def ended(row: ThrottledSpell) -> Told:
        seconds = max(1, round((row.until_at - row.began_at).total_seconds()))
        lasted = duration_text(seconds if seconds < 10 * MINUTE_S else round(seconds / MINUTE_S) * MINUTE_S)
        return Told("throttling.ended", CLIENTS[row.direction], row.direction, detail=f"it lasted {lasted}")

    over = rows.filter(until_at__lt=now - OVER_AFTER)
    return [
        Rows({"throttling.ended": Q()}, over, "until_at", ended),
        Rows({"throttling.began": Q()}, rows, "began_at", began),
    ]


def _of_brokers(instance: Instance) -> list[Source]:
    """Of its cluster, while there was the instance: those that led partitions of it, or of which that is not known.

    Who had but replicas on a broker sees no failover: that they are out of sync is health's.
    """
    of_cluster = BrokerAbsence.objects.filter(cluster=instance.cluster_id, began_at__gte=instance.created_at)
    rows = of_cluster.filter(BrokerAbsence.met(instance.pk))
    if instance.deleted_at is not None:
        rows = rows.filter(began_at__lt=instance.deleted_at)

    def told(kind: str, row: BrokerAbsence) -> Told:
        said = "it led partitions of the instance" if kind == "broker.away" and row.led is not None else ""
        return Told(kind, str(row.broker_id), str(row.broker_id), detail=said)

    return [
        Rows({"broker.back": Q()}, rows, "ended_at", lambda row: told("broker.back", row)),
        Rows({"broker.away": Q()}, rows, "began_at", lambda row: told("broker.away", row)),
    ]


def _of_unread(instance: Instance, now: datetime) -> list[Source]:
    rows = ExpiringUnread.objects.filter(instance=instance.pk)

    def expiring(row: ExpiringUnread) -> Told:
        if row.is_by_size:
            return Told("unread.expiring", row.group, row.topic, detail=_by_size(row, now))
        number, topic, moment = amount(row.messages), row.topic, f"{row.expires_at:%Y-%m-%d %H:%M}"
        is_one = row.messages == 1
        said = f"{number} records of topic {topic} may expire unread from {moment} UTC on"
        if is_one:
            said = f"1 record of topic {topic} may expire unread from {moment} UTC on"
        left = row.expires_at - now
        if row.ended_at is None and left >= timedelta(
            minutes=1
        ):  # what is over, or was to be by now, is in no time from now
            time = duration_text(left // timedelta(minutes=1) * MINUTE_S)
            said = f"{number} records of topic {topic} may expire unread from {moment} UTC on, in {time}"
            if is_one:
                said = f"1 record of topic {topic} may expire unread from {moment} UTC on, in {time}"
        return Told("unread.expiring", row.group, topic, detail=said)

    def over(row: ExpiringUnread) -> Told:
        if row.ended_at is None or row.ended_at < row.expires_at:
            return Told("unread.safe", row.group, row.topic)
        # What was oldest is gone: whether it was read in time, or expired, no round can tell.
        said = f"records of topic {row.topic} may have expired unread"
        return Told("unread.safe", row.group, row.topic, detail=said, may_be_lost=True)

    return [
        Rows({"unread.safe": Q()}, rows, "ended_at", over),
        Rows({"unread.expiring": Q()}, rows, "began_at", expiring),
    ]


def _by_size(row: ExpiringUnread, now: datetime) -> str:
    """An estimate, and said to be one."""
    number, topic, moment = amount(row.messages), row.topic, f"{row.expires_at:%Y-%m-%d %H:%M}"
    left = row.expires_at - now
    if row.ended_at is None and left >= timedelta(minutes=1):
        time = duration_text(left // timedelta(minutes=1) * MINUTE_S)
        return (
            f"{number} records of topic {topic} may be pushed out unread by newer ones from about {moment} UTC on, "
            f"in about {time} at the rate seen then: an estimate by retention.bytes"
        )
    return (
        f"{number} records of topic {topic} may be pushed out unread by newer ones from about {moment} UTC on, "
        "at the rate seen then: an estimate by retention.bytes"
    )


def _rebalanced(row: GroupRebalances) -> Told:
    """Once at least: where a look found it in the middle, or others in it than the look before, a minute earlier or more."""
    if row.times == 1:
        return Told("group.rebalanced", row.group, "")
    hour, last, times = f"{row.hour:%H:%M}", f"{row.seen_at:%H:%M}", row.times
    said = f"{times} times in the hour from {hour} UTC on, last at {last} UTC"
    return Told("group.rebalanced", row.group, "", detail=said)


def _resizes(instance: Instance) -> QuerySet[SpecChange]:
    """With what was in force before each. One to the same size is none."""
    rows = SpecChange.objects.unscoped(_REASON).filter(instance=instance)
    earlier = rows.filter(Q(at__lt=OuterRef("at")) | Q(at=OuterRef("at"), pk__lt=OuterRef("pk"))).order_by("-at", "-pk")
    before = {f"before_{name}": Subquery(earlier.values(name)[:1]) for name in SIZES}
    differs = Q(before_partitions__isnull=True)  # not known: what is comes first
    for name in SIZES:
        differs |= ~Q(**{f"before_{name}": F(name)})
    # Its operation is begun behind it while the instance's row is locked: of those that came later it is the first.
    begun = Operation.objects.unscoped(_REASON).filter(
        organisation=instance.organisation_id,
        target=instance.pk,
        kind="instance.update",
        created_at__gte=OuterRef("at"),
        created_at__lt=OuterRef("at") + AT_ONCE,
    )
    by = Subquery(begun.order_by("created_at", "pk").values("actor")[:1])
    return rows.filter(kind=SpecChangeKind.RESIZED).annotate(**before, by=by).filter(differs)


def _resized(instance: Instance, row: SpecChange) -> Told:
    after: Sizes = {name: getattr(row, name) for name in SIZES}
    known = {name: getattr(row, f"before_{name}") for name in SIZES}
    before = None if None in known.values() else known
    said = "; ".join(f"{SIZE_WORDS[name][0]} {text}" for name, text in sizes_changed(before, after))
    by = row.by or ""  # type: ignore[attr-defined]  # annotated
    return Told("instance.resized", instance.name, instance.pk, by, said, before=before, after=after)


def sizes_changed(before: Sizes | None, after: Sizes) -> list[tuple[str, str]]:
    """Each size that is another one, by its name in REST, as ``5 → 10 MiB/s``; all of them, where before is not known."""
    if before is None:
        return [(name, f"{amount(after[name])}{unit}") for name, (_, unit) in SIZE_WORDS.items()]
    return [
        (name, f"{amount(before[name])} → {amount(after[name])}{unit}")
        for name, (_, unit) in SIZE_WORDS.items()
        if before[name] != after[name]
    ]


Found = list[tuple["datetime", str, Told]]


def _moved(instance: Instance, span: Span) -> tuple[Found, Found]:
    """When operators' rebalances began and ended to move partitions of the instance, and how many: no broker, no name."""
    if not span.kinds & {"rebalance.began", "rebalance.ended"}:
        return [], []
    rows = RebalanceMove.objects.filter(instance=instance.pk).order_by().values("rebalance")
    found = rows.annotate(
        began=Min("begun_at"),
        ended=Max("finished_at", filter=Q(begun_at__isnull=False)),  # however: what failed is over, too
        copied=Count("pk", filter=Q(state=MoveState.DONE, copies=True)),
        led=Count("pk", filter=Q(state=MoveState.DONE, copies=False)),
        left=Count("pk", filter=Q(state__in=(MoveState.WAITING, *ACTIVE))),
    )
    begun: Found = []
    ended: Found = []
    for row in found.filter(began__isnull=False):
        begun.append((row["began"], row["rebalance"], Told("rebalance.began", "", "")))
        if row["ended"] is not None and not row["left"]:
            copied, led = row["copied"], row["led"]
            said = f"{copied} copied to other brokers, {led} led by another replica"
            ended.append((row["ended"], row["rebalance"], Told("rebalance.ended", "", "", detail=said)))
    return begun, ended
