"""Reading loads and their runs, within an organisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Max

from controlplane.core.errors import NotFound
from controlplane.instances.selectors import instance_get
from controlplane.loads.models import KeptTable, Load, LoadRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

SORTED: Mapping[str, Callable[[Load], str | int | datetime | None]] = {
    "topic": lambda load: load.topic,
    "kind": lambda load: load.kind,
    "every_minutes": lambda load: load.every_minutes,
    "next_start_at": lambda load: load.next_start_at,
    "failures": lambda load: load.failures,
    "created_at": lambda load: load.created_at,
}
"""What a list can be sorted by, in the words of REST. Last runs are read for those on the page alone."""


def load_list(*, organisation: Organisation, instance_id: str) -> list[Load]:
    """All of an instance, in the order of their ids. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return list(Load.objects.for_organisation(organisation).filter(instance=instance).order_by("pk"))


def load_get(*, organisation: Organisation, instance_id: str, load_id: str) -> Load:
    """One of them. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    rows = Load.objects.for_organisation(organisation).select_related("instance__cluster", "organisation")
    load = rows.filter(instance=instance, pk=load_id).first()
    if load is None:
        raise NotFound(f"no load {load_id}")
    return load


def kept_tables_of(instance: Instance) -> QuerySet[KeptTable]:
    """Of its loads that were deleted; not those that are being removed."""
    return KeptTable.objects.for_organisation(instance.organisation).filter(instance=instance, removed_at=None)


def kept_table_list(*, organisation: Organisation, instance_id: str) -> list[KeptTable]:
    """All of an instance, in the order of their ids. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return list(kept_tables_of(instance).order_by("pk"))


def kept_table_get(*, organisation: Organisation, instance_id: str, load_id: str) -> KeptTable:
    """That of a load. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    table = kept_tables_of(instance).filter(pk=load_id).first()
    if table is None:
        raise NotFound(f"no table of a deleted load {load_id}")
    return table


def run_list(load: Load) -> QuerySet[LoadRun]:
    """Its runs, the newest first."""
    return LoadRun.objects.unscoped("the load was found within its organisation").filter(load=load).order_by("-pk")


def latest_of(loads: list[Load]) -> dict[str, LoadRun]:
    """The newest run of each load that has one, by the load's id."""
    rows = LoadRun.objects.unscoped("the loads were found within their organisation")
    newest = rows.filter(load__in=loads).values("load").annotate(newest=Max("pk")).values("newest")
    return {run.load_id: run for run in rows.filter(pk__in=newest)}
