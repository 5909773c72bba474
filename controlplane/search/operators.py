"""What operators of the service find: clusters, brokers, everybody's instances, organisations, operations, rebalances, jobs.

Only pages of operators lead here. Every tenant's names are looked through, as their list of all instances does; what stands in
instances is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.clusters.models import Broker, PhysicalCluster, PortAllocation, PortState
from controlplane.core.models import Operation
from controlplane.instances.models import Instance, InstanceState
from controlplane.metering.pipeline.schedule import JOBS
from controlplane.rebalancing.models import Rebalance
from controlplane.search.hits import Hit, page, together
from controlplane.search.matching import Best
from controlplane.search.of_books import NEWEST
from controlplane.search.sql import RANK, fitting
from controlplane.tenants.models import Organisation

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.search.matching import Wanted

WHY = "operators see every tenant's"
PORT = re.compile(r"(?:.*:)?([0-9]{4,5})")


@dataclass(frozen=True, slots=True)
class FleetFound:
    """Of one kind; `more`: the page with all of them that fit; empty: there is none."""

    kind: str
    title: str
    hits: list[Hit]
    has_more: bool
    more: str = ""


def fleet_search(*, wanted: Wanted, most: int) -> list[FleetFound]:
    """What fits, by kind, the best first. The caller has asked whether it is an operator who asks."""
    found = []
    for kind, title, look, list_page in KINDS:
        hits = look(wanted, most + 1)
        more = page(list_page, q=wanted.whole) if list_page else ""
        found.append(FleetFound(kind, title, hits[:most], len(hits) > most, more))
    return found


def _clusters(wanted: Wanted, most: int) -> list[Hit]:
    rows = fitting(PhysicalCluster.objects.all(), wanted, names=["name"]).order_by(RANK, "name")
    return [
        Hit("cluster", row.name, row.name, row.state, "", "", page("fleet_cluster", row.name)) for row in rows[:most]
    ]


def _brokers(wanted: Wanted, most: int) -> list[Hit]:
    """By id, host and zone, or as `broker 2`."""
    best = Best[Hit](wanted, most - 1)
    rows = Broker.objects.order_by("cluster__name", "broker_id")
    for cluster, number, host, port, rack in rows.values_list("cluster__name", "broker_id", "host", "port", "rack"):
        address, shown = f"{host}:{port}", page("fleet_broker", cluster, number)
        hit = Hit("broker", str(number), f"broker {number}", together([cluster, address, rack]), "", "", shown)
        best.add(hit, str(number), hit.name, address, f"{rack} {host} {hit.name} {cluster}")
    return best.found


def _instances(wanted: Wanted, most: int) -> list[Hit]:
    """By id, name, and the port of one of their listeners."""
    rows = Instance.objects.unscoped(WHY).exclude(state=InstanceState.DELETED)
    fits = fitting(rows, wanted, names=["name", "id"], beside=["organisation__name"])
    found = list(fits.select_related("organisation").order_by(RANK, "name", "pk")[:most])
    if asked := PORT.fullmatch(wanted.whole):
        held = PortAllocation.objects.filter(port=int(asked[1]), state=PortState.HELD).values("owner")
        found = list(rows.filter(pk__in=held).select_related("organisation").order_by("name", "pk")[:most]) + found
    return [
        Hit(
            "instance", row.pk, row.name, together([row.pk, row.organisation.name, row.state]), row.pk, "",
            page("fleet_instance", row.pk),
        )
        for row in list(dict.fromkeys(found))[:most]
    ]  # fmt: skip


def _organisations(wanted: Wanted, most: int) -> list[Hit]:
    rows = fitting(Organisation.objects.filter(deleted_at=None), wanted, names=["name", "id"]).order_by(
        RANK, "name", "pk"
    )
    return [
        Hit("organisation", row.pk, row.name, row.pk, "", "", page("fleet_organisation", row.pk)) for row in rows[:most]
    ]


def _operations(wanted: Wanted, most: int) -> list[Hit]:
    """The newest on an instance, whosever: what they work on has a page."""
    rows = Operation.objects.unscoped(WHY)
    newest = list(rows.order_by("-created_at").values_list("pk", flat=True)[:NEWEST])  # within it all would be read
    known = rows.filter(pk__in=[*newest, wanted.whole], target__startswith="ins-")
    fits = fitting(known, wanted, names=["id", "target", "kind"]).order_by(RANK, "-created_at", "pk")
    return [
        Hit(
            "operation",
            row.pk,
            row.pk,
            together([row.kind, row.target, row.state]),
            "",
            "",
            page("fleet_instance", row.target),
        )
        for row in fits[:most]
    ]


def _rebalances(wanted: Wanted, most: int) -> list[Hit]:
    rows = fitting(Rebalance.objects.all(), wanted, names=["id"], beside=["cluster__name", "state"])
    found = rows.select_related("cluster").order_by(RANK, "-created_at", "pk")[:most]
    return [
        Hit(
            "rebalance",
            row.pk,
            row.pk,
            together([row.cluster.name, row.state]),
            "",
            "",
            page("fleet_rebalance", row.pk),
        )
        for row in found
    ]


def _jobs(wanted: Wanted, most: int) -> list[Hit]:
    best = Best[Hit](wanted, most - 1)
    for job in JOBS.values():
        best.add(Hit("job", job.name, job.name, "", "", "", page("fleet_jobs", job=job.name)), job.name)
    return best.found


KINDS: tuple[tuple[str, str, Callable[[Wanted, int], list[Hit]], str], ...] = (
    ("cluster", "Clusters", _clusters, ""),
    ("broker", "Brokers", _brokers, ""),
    ("instance", "Instances", _instances, "fleet"),
    ("organisation", "Organisations", _organisations, ""),
    ("operation", "Operations", _operations, ""),
    ("rebalance", "Rebalances", _rebalances, ""),
    ("job", "Jobs", _jobs, ""),
)
"""Name, title, how it is looked for, and the page that has all of them by a text."""
