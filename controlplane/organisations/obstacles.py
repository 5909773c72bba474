"""What keeps an organisation from being deleted. Each reason by itself, so that somebody can go through them.

Mirrors and what has topics in a cluster are in the way as parts of their instance. The service knows no payments: what is on an
invoice is settled elsewhere, and the invoice stays. What is used and not invoiced yet is in the way, since whoever deletes the
organisation could not be shown it any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.billing.waiting import unbilled
from controlplane.core.models import Operation, OperationState
from controlplane.instances.models import Instance, InstanceState
from controlplane.loads.claiming import SILENT
from controlplane.loads.models import KeptTable, Load, LoadRun, RunState

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.tenants.models import Organisation

INSTANCES, OPERATIONS, LOADS, USAGE = "instances", "operations", "loads", "usage"
CODES = (INSTANCES, OPERATIONS, LOADS, USAGE)
NAMED = 5
"""So many of a kind are named."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that has to be done, or waited for, first."""

    code: str  # of CODES
    detail: str  # a fragment, as errors have them
    count: int


def obstacles(*, organisation: Organisation, now: datetime) -> list[Obstacle]:
    """All of them, in the order in which one goes about them; none: it can be deleted. In six queries."""
    instances = (
        Instance.objects.for_organisation(organisation).exclude(state=InstanceState.DELETED).order_by("created_at")
    )
    found = [
        _of_instances([f"{name} ({pk})" for pk, name in instances.values_list("pk", "name")]),
        _of_operations(organisation),
        _of_loads(organisation, now),
        _of_usage([str(month) for month in unbilled(organisation=organisation, now=now)]),
    ]
    return [each for each in found if each.count]


def _of_instances(called: list[str]) -> Obstacle:
    names = _named(called)
    return Obstacle(INSTANCES, f"instances that are not destroyed: {names}", len(called))


def _of_operations(organisation: Organisation) -> Obstacle:
    running = Operation.objects.for_organisation(organisation).filter(state=OperationState.RUNNING)
    ids = list(running.order_by("pk").values_list("pk", flat=True))
    names = _named(ids)
    return Obstacle(OPERATIONS, f"operations that are running: {names}", len(ids))


def _of_usage(months: list[str]) -> Obstacle:
    names = _named(months)
    return Obstacle(
        USAGE,
        f"usage that is not on an invoice yet, of {names}: invoices are written some hours after the end of their month, when "
        "all usage has been counted",
        len(months),
    )


def _of_loads(organisation: Organisation, now: datetime) -> Obstacle:
    """Those of instances that are gone are in the way while a runner works on them; their rows go with the organisation else.

    Folders of instances that are gone are removed by the runner, whether a row names them or not; an installation need not have
    one.
    """
    loads: set[str] = set()
    for model in (Load, KeptTable):
        rows = model.objects.for_organisation(organisation).exclude(instance__state=InstanceState.DELETED)
        loads |= set(rows.values_list("pk", flat=True))
    running = LoadRun.objects.for_organisation(organisation).filter(state=RunState.RUNNING, seen_at__gte=now - SILENT)
    loads |= set(running.values_list("load_id", flat=True))
    names = _named(sorted(loads))
    return Obstacle(LOADS, f"loads, and tables of loads, that are not removed yet: {names}", len(loads))


def _named(names: list[str]) -> str:
    """``a, b, c, d, e, … (8)``: some of them, and how many there are."""
    return ", ".join(names[:NAMED]) + (f", … ({len(names)})" if len(names) > NAMED else "")
