"""Keeping brokers in step with their registrations, and giving out ports.

A port outlives its listener in the configurations of clients. One that was let go, or was another process's, therefore rests
before it is anybody's again: at least SLUICE_PORT_REST_S, and longer the more ports are free, since the next one given out is
always the one that has rested longest. Those that were never used come first.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.db import IntegrityError, OperationalError, transaction

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.models import Broker, BrokerAbsence, ClusterState, PhysicalCluster, PortAllocation, PortState
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import CapacityExhausted, ClusterUnavailable, ConcurrentChange, Invalid, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.clusters.coordination import LiveBroker, ObservedCluster

LOG = logging.getLogger(__name__)
DEFAULT_CLUSTER = "default"
TRIES = 20
T = TypeVar("T")


def cluster_ensure(*, name: str = DEFAULT_CLUSTER) -> PhysicalCluster:
    """The physical cluster of this name."""
    cluster, _ = PhysicalCluster.objects.get_or_create(name=name)
    return cluster


def cluster_list() -> list[PhysicalCluster]:
    """Every physical cluster that is in use, the oldest first; at least the default one."""
    return list(PhysicalCluster.objects.exclude(state=ClusterState.RETIRED).order_by("pk")) or [cluster_ensure()]


def for_each_cluster(look: Callable[[PhysicalCluster], T], what: str) -> list[T]:
    """What `look` gives of each that is in use; `what` it looks for is said where that fails.

    An unexpected error of one is logged, and keeps no other from its look. Raises OperationalError: that the database is away is
    no cluster's fault.
    """
    found: list[T] = []
    for cluster in cluster_list():
        try:
            found.append(look(cluster))
        except OperationalError:
            raise
        except Exception:
            LOG.exception("%s of cluster %s", what, cluster)
    return found


def clusters_known() -> list[PhysicalCluster]:
    """Those, and those that are retired: for what is told of the past, and asks no cluster."""
    return list(PhysicalCluster.objects.order_by("pk")) or [cluster_ensure()]


def cluster_named(name: str | None) -> PhysicalCluster:
    """The cluster of this name, in use or not; None or empty: the only one that is in use.

    Raises NotFound, and Invalid where none is named and there are several.
    """
    if name:
        found = PhysicalCluster.objects.filter(name=name).first()
        if found is None:
            raise NotFound(f"no cluster {name}")
        return found
    clusters = cluster_list()
    if len(clusters) > 1:
        names = ", ".join(cluster.name for cluster in clusters)
        raise Invalid.field("cluster", f"must say which of the clusters: {names}")
    return clusters[0]


def cluster_observe(cluster: PhysicalCluster) -> ObservedCluster | None:
    """What a cluster's ZooKeeper shows now, for a round over its instances; None where it does not answer, or speaks oddly."""
    try:
        return coordination.observe(zookeeper.tree(cluster.address))
    except ClusterUnavailable as error:
        LOG.warning("cluster %s: %s", cluster, error)
        return None
    except Exception:  # rounds go over the instances of other clusters, too
        LOG.exception("what the ZooKeeper of cluster %s shows", cluster)
        return None


def brokers_sync(*, cluster: PhysicalCluster, live: Sequence[LiveBroker]) -> list[Broker]:
    """Write down what is registered now, and return every broker known, the absent ones too."""
    known = {broker.broker_id: broker for broker in Broker.objects.filter(cluster=cluster)}
    for seen in live:
        row = known.get(seen.id)
        if row is None or (row.host, row.port, row.rack) != (seen.host, seen.port, seen.rack):
            known[seen.id], _ = Broker.objects.update_or_create(
                cluster=cluster,
                broker_id=seen.id,
                defaults={"host": seen.host, "port": seen.port, "rack": seen.rack},
            )
    return [known[broker_id] for broker_id in sorted(known)]


def brokers_watch(
    *,
    cluster: PhysicalCluster,
    live: Sequence[LiveBroker],
    led_by: Callable[[int], Collection[str] | None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Write down which brokers are registered now, and since when the others have been away; and when they were, for events.

    `led_by`: the instances of which a broker led partitions a moment ago; None: not known.
    """
    rows = brokers_sync(cluster=cluster, live=live)
    there = {broker.id for broker in live}
    back = [row.pk for row in rows if row.broker_id in there and row.away_since is not None]
    gone = [row.pk for row in rows if row.broker_id not in there and row.away_since is None]
    now = clock.now()
    if back:
        Broker.objects.filter(pk__in=back).update(away_since=None)
    if gone:
        Broker.objects.filter(pk__in=gone, away_since__isnull=True).update(away_since=now)
    away = {row.broker_id: row.away_since or now for row in rows if row.broker_id not in there}
    _absences_kept(cluster, away, led_by or (lambda _broker: None), now)


def _absences_kept(
    cluster: PhysicalCluster,
    away: Mapping[int, datetime],
    led_by: Callable[[int], Collection[str] | None],
    now: datetime,
) -> None:
    """`away`: since when. Whoever was away before there were rows of it has one from then on."""
    rows = BrokerAbsence.objects.filter(cluster=cluster, ended_at=None)
    begun = set(rows.values_list("broker_id", flat=True))
    if begun - away.keys():
        rows.filter(broker_id__in=begun - away.keys()).update(ended_at=now)
    new = [
        BrokerAbsence(cluster=cluster, broker_id=each, began_at=began, led=BrokerAbsence.led_text(led_by(each)))
        for each, began in sorted(away.items())
        if each not in begun
    ]
    if new:
        BrokerAbsence.objects.bulk_create(new, ignore_conflicts=True)  # of two workers that see it one begins it


def absences_purge(*, before: datetime) -> int:
    """Forget when brokers were away, of those that have been back since before then; how many rows went."""
    return BrokerAbsence.objects.filter(ended_at__lt=before).delete()[0]


def port_ensure(*, broker: Broker, owner: str, route: str, clock: Clock = SYSTEM_CLOCK) -> PortAllocation:
    """The port on which a broker serves a route of an instance, given out at the first call.

    Raises CapacityExhausted when all of the host's are held, or have not rested long enough.
    """
    for _ in range(TRIES):
        held = PortAllocation.objects.filter(broker=broker, owner=owner, route=route, state=PortState.HELD).first()
        if held:
            return held
        taken = _take(broker, owner, route, clock)
        if taken:
            return taken
    raise ConcurrentChange("ports are being given out to others")


def _take(broker: Broker, owner: str, route: str, clock: Clock) -> PortAllocation | None:
    """One attempt at the best free port; None if another writer was faster."""
    host = settings.ENVIRONMENT.listen_host or broker.host
    now = clock.now()
    values = {"broker": broker, "owner": owner, "route": route, "state": PortState.HELD, "changed_at": now}
    port = _never_used(host)
    try:
        with transaction.atomic():
            if port is not None:
                return PortAllocation.objects.create(host=host, port=port, **values)
            candidate = _resting(host).first()
            if candidate is None or candidate.changed_at > now - _rest():
                raise CapacityExhausted(_exhausted_text(host, candidate))
            PortAllocation.objects.filter(
                pk=candidate.pk, state=candidate.state, changed_at=candidate.changed_at
            ).update(**values)
            return None  # the caller looks whether it was this one
    except IntegrityError:
        return None


def _rest() -> timedelta:
    return timedelta(seconds=settings.ENVIRONMENT.port_rest_s)


def _resting(host: str) -> QuerySet[PortAllocation]:
    """Ports of a host that nobody holds, the one that has rested longest first."""
    rows = PortAllocation.objects.filter(host=host, port__range=settings.ENVIRONMENT.port_range)
    return rows.exclude(state=PortState.HELD).order_by("changed_at", "port")


def _exhausted_text(host: str, next_free: PortAllocation | None) -> str:
    low, high = settings.ENVIRONMENT.port_range
    resting = _resting(host).count()
    text = f"no port is left on {host}: of {low}-{high}, {high - low + 1 - resting} are held"
    if next_free is None:
        return text
    until = next_free.changed_at + _rest()
    return f"{text} and {resting} rest after their last use; the first can be used again at {until:%Y-%m-%d %H:%M} UTC"


def _never_used(host: str) -> int | None:
    low, high = settings.ENVIRONMENT.port_range
    known = set(PortAllocation.objects.filter(host=host, port__range=(low, high)).values_list("port", flat=True))
    return next((port for port in range(low, high + 1) if port not in known), None)


def port_block(*, broker: Broker, owner: str, port: int, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Give up a port that another process holds. False if this instance no longer has it."""
    rows = PortAllocation.objects.filter(broker=broker, owner=owner, port=port, state=PortState.HELD)
    return bool(rows.update(state=PortState.BLOCKED, owner="", route="", broker=None, changed_at=clock.now()))


def ports_release(*, owner: str, route: str | None = None, clock: Clock = SYSTEM_CLOCK) -> int:
    """Give back every port of an instance, or of one of its routes; says how many."""
    rows = PortAllocation.objects.filter(owner=owner, state=PortState.HELD)
    if route is not None:
        rows = rows.filter(route=route)
    return rows.update(state=PortState.RELEASED, owner="", route="", broker=None, changed_at=clock.now())
