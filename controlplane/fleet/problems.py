"""What is the matter anywhere, for operators: what the page *Fleet* says above its tables, as rows.

Each has a key of its own, so that a list of them has pages, and whoever asks again knows which one it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.billing.selectors import invoice_failures
from controlplane.billing.waiting import waiting
from controlplane.clusters import coordination, master, zookeeper
from controlplane.clusters.services import cluster_list
from controlplane.core import kept, pulse
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.fleet.broker_state import state_of
from controlplane.metering import selectors as metering
from controlplane.metering.elastic import journals_unread
from controlplane.quotas.selectors import brokers_get, journals_with_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from controlplane.clusters.models import PhysicalCluster

BROKER, CACHE, CLUSTER, WORKERS, METERING, LOSS = "broker", "cache", "cluster", "workers", "metering", "usage_lost"
INVOICES, INVOICE, ELASTIC, THROTTLED = "invoices_wait", "invoice_failed", "elastic_unread", "throttling_unread"
KINDS = (BROKER, CACHE, CLUSTER, WORKERS, METERING, LOSS, INVOICES, INVOICE, ELASTIC, THROTTLED)
TROUBLED = ("failing", "stalled", "silent")
_CACHE = (
    "Redis does not answer: workers are not told what there is to do, requests by REST are not counted, and attempts to "
    "sign in by each web process for itself"
)
_WORKERS = "no worker is heard: nothing that is asked for begins, no alarms are judged and no mails sent"
_ELASTIC = "what it has counted since it was read last is on no bill and in no budget yet"


@dataclass(frozen=True, slots=True)
class Problem:
    """One of them. What it is not about is None; `since` is None where nobody knows."""

    kind: str  # one of KINDS
    key: str  # the same for the same thing, and no other has it
    detail: str
    cluster: str | None = None
    broker: int | None = None
    instance_id: str | None = None
    month: str | None = None
    since: datetime | None = None


def problems(*, clock: Clock = SYSTEM_CLOCK) -> list[Problem]:
    """All that there are, by their keys."""
    now = clock.now()
    return sorted([*_parts(clock), *_clusters(), *_usage(now), *_bills(now)], key=lambda each: each.key)


def _parts(clock: Clock) -> Iterator[Problem]:
    if kept.is_away():
        yield Problem(CACHE, CACHE, _CACHE)
    since = pulse.away_since(clock=clock)
    if since is not None:
        yield Problem(WORKERS, WORKERS, _WORKERS, since=since)


def _clusters() -> Iterator[Problem]:
    """One of each cluster that does not answer, whose brokers nobody knows then; and the brokers that are known to be away."""
    for cluster in cluster_list():
        name, found = cluster.name, brokers_get(cluster)
        why = _why_away(cluster, found)
        if why:
            yield Problem(CLUSTER, f"{CLUSTER}:{name}", why, cluster=name)
        for broker in found:
            state = state_of(is_registered=broker["is_registered"], is_reporting=broker["is_reporting"])
            if state.level == "failed":
                yield Problem(
                    BROKER,
                    f"{BROKER}:{name}:{broker['id']:010}",
                    state.why,
                    cluster=name,
                    broker=broker["id"],
                    since=broker["known"] and broker["known"].away_since,
                )


def _why_away(cluster: PhysicalCluster, found: Sequence[Mapping[str, Any]]) -> str:
    """What of a cluster does not answer, ZooKeeper or its flow master; empty: both do, by what is known of its brokers."""
    reasons = []
    if not found or any(broker["is_registered"] is None for broker in found):
        reasons.append(_refusal(lambda: coordination.live_brokers(zookeeper.tree(cluster.address))))
    if not found or any(broker["is_reporting"] is None for broker in found):
        reasons.append(_refusal(lambda: master.brokers(cluster.address)))
    # Who is the flow master stands in ZooKeeper: while that is away, both say the same.
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def _refusal(ask: Callable[[], object]) -> str:
    """Empty: it answers again."""
    try:
        ask()
    except Unavailable as error:
        return str(error)
    return ""


def _usage(now: datetime) -> Iterator[Problem]:
    for meter in metering.statuses():
        if meter.state in TROUBLED or (meter.state == "absent" and meter.records):
            yield Problem(METERING, f"{METERING}:{meter.cluster}", meter.reason, cluster=meter.cluster)
    for loss in metering.losses_open():
        yield Problem(
            LOSS,
            f"{LOSS}:{loss.pk:012}",
            loss.sentence,
            cluster=loss.cluster,
            since=metering.moment_of(loss.found_at_ms),
        )
    for elastic in journals_unread(now):
        name = elastic.cluster.name
        yield Problem(
            ELASTIC,
            f"{ELASTIC}:{name}:{elastic.master:010}",
            f"master {elastic.master}: {elastic.problem or 'it does not answer'}; {_ELASTIC}",
            cluster=name,
            since=elastic.read_at,
        )
    for journal in journals_with_problems():
        name = journal.cluster.name
        yield Problem(
            THROTTLED,
            f"{THROTTLED}:{name}:{journal.master:010}",
            f"master {journal.master}: {journal.problem}",
            cluster=name,
            since=journal.read_at,
        )


def _bills(now: datetime) -> Iterator[Problem]:
    for month in waiting(now):
        one = month.invoices == 1
        wait = f"1 invoice of {month.month} waits" if one else f"{month.invoices} invoices of {month.month} wait"
        yield Problem(
            INVOICES,
            f"{INVOICES}:{month.cluster}:{month.month}",
            f"{wait}: {month.why}",
            cluster=month.cluster,
            month=str(month.month),
        )
    for failure in invoice_failures():
        yield Problem(
            INVOICE,
            f"{INVOICE}:{failure.month}:{failure.instance_id}",
            failure.problem,
            instance_id=failure.instance_id,
            month=failure.month,
            since=failure.at,
        )
