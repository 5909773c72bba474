"""Runs as the runner sees them: what is due, which is next, signs of life, ends. Rows only; several runners may look at once.

A run belongs to the runner that has taken it, until that runner says that it has ended or says nothing for SILENT. What it
writes later finds that the run is no longer its own.

Which run is next: of the organisation that has the fewest under way, and among these of the one whose last began longest ago;
so a tenant with twenty loads holds up nobody by more than one of them.
"""

from __future__ import annotations

from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Count, Max, Q

from controlplane.instances.models import Instance, InstanceState
from controlplane.loads import schedule
from controlplane.loads.models import KeptTable, Load, LoadRun, RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.services import run_ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from typing import Any

    from django.db.models import QuerySet

SILENT = timedelta(seconds=60)
"""A run without a sign of life for longer has no runner any more."""
DIED = "the program that ran this load is gone, and did not say why"
STOPPED = "stopped; what was committed by then stays, and the next run goes on there"


def bury(now: datetime) -> None:
    """Runs whose runner is gone have failed."""
    for run in _runs().filter(state=RunState.RUNNING, seen_at__lt=now - SILENT):
        end(run, run.runner, now, state=RunState.FAILED, members={"says": DIED})


def gone_of(instance_ids: Iterable[str]) -> set[str]:
    """Which of these instances are gone, and none of their loads runs any more."""
    found = set(_gone().filter(pk__in=list(instance_ids)).values_list("pk", flat=True))
    running = _runs().filter(state=RunState.RUNNING, load__instance__in=found)
    return found - set(running.values_list("load__instance_id", flat=True))


def forget_gone() -> None:
    """Loads of instances that are gone go, with the keys of their buckets; and what is known of tables that were kept."""
    kept = KeptTable.objects.unscoped("the runner serves all")
    for rows in (_loads(), kept):
        of_gone = rows.filter(instance__in=_gone().values("pk"))
        if of_gone.exists():
            of_gone.delete()


def ask_due(now: datetime) -> int:
    """Have what is due by its schedule wait; how many runs do so now. An instance that is not running loads nothing."""
    due = _loads().filter(enabled=True, next_start_at__lte=now, instance__state=InstanceState.RUNNING)
    asked = 0
    for pk in list(due.values_list("pk", flat=True)):
        with transaction.atomic():
            load = _loads().select_for_update(of=("self",)).filter(pk=pk, enabled=True, next_start_at__lte=now).first()
            if load is None:
                continue
            run = run_ask(load, asked_by="", asked=Asked(), now=now)
            asked += run is not None
            load.next_start_at = schedule.after(load.every_minutes, load.scheduled_at, now, 0)
            load.save(update_fields=["next_start_at"])
    return asked


def claim(runner: str, now: datetime) -> LoadRun | None:
    """The next run, which is this runner's from now on; None: nothing waits, or another runner was faster."""
    waiting = list(
        _runs().filter(state=RunState.WAITING).order_by("asked_at", "pk").values_list("pk", "organisation_id")
    )
    if not waiting:
        return None
    figures = {
        organisation_id: (under_way, last)
        for organisation_id, under_way, last in _runs()
        .filter(organisation_id__in={organisation_id for _, organisation_id in waiting})
        .values_list("organisation_id")
        .annotate(under_way=Count("pk", filter=Q(state=RunState.RUNNING)), last=Max("started_at"))
    }

    def turn(place: int) -> tuple[int, float, int]:
        under_way, last = figures.get(waiting[place][1], (0, None))
        return under_way, last.timestamp() if last else 0.0, place

    pk = waiting[min(range(len(waiting)), key=turn)][0]
    taken = _runs().filter(pk=pk, state=RunState.WAITING)
    if not taken.update(state=RunState.RUNNING, runner=runner, started_at=now, seen_at=now, says=""):
        return None
    return _runs().select_related("load__instance__cluster", "load__organisation").get(pk=pk)


def beat(run: LoadRun, runner: str, now: datetime, says: str) -> str | None:
    """A sign of life; why the run is to end. None: it goes on."""
    own = _runs().filter(pk=run.pk, runner=runner, state=RunState.RUNNING)
    if not own.update(seen_at=now, says=says):
        return DIED
    if own.filter(stop_asked=True).exists():
        return STOPPED
    state = (
        Instance.objects.unscoped("the runner serves all").values_list("state", flat=True).get(pk=run.load.instance_id)
    )
    return None if state == InstanceState.RUNNING else f"stopped: the instance is {state}, not running"


def others_wait(run: LoadRun) -> bool:
    """Whether another organisation's run waits."""
    return _runs().filter(state=RunState.WAITING).exclude(organisation=run.organisation_id).exists()


def again(
    run: LoadRun,
    runner: str,
    *,
    members: Mapping[str, Any] = MappingProxyType({}),
    copied_version: int | None = None,
    at: datetime | None = None,
) -> bool:
    """The run waits for a runner again, and goes on where the table is; whether it does. `at`: behind those that wait by then.

    One that somebody has asked to stop does not.
    """
    own = _runs().filter(pk=run.pk, runner=runner, state=RunState.RUNNING, stop_asked=False)
    moved = {} if at is None else {"asked_at": at}
    waits = own.update(state=RunState.WAITING, runner="", seen_at=None, **members, **moved)
    if waits and copied_version is not None:
        _loads().filter(pk=run.load_id).update(copied_version=copied_version)
    return bool(waits)


@transaction.atomic
def end(
    run: LoadRun,
    runner: str,
    now: datetime,
    *,
    state: str,
    members: Mapping[str, Any],
    copied_version: int | None = None,
) -> bool:
    """How it went; whether it was still this runner's to say. After one in vain the load is tried again sooner."""
    load = _loads().select_for_update(of=("self",)).filter(pk=run.load_id).first()  # before its run, as services do
    own = _runs().filter(pk=run.pk, runner=runner, state=RunState.RUNNING)
    if load is None or not own.update(state=state, ended_at=now, **members):
        return False
    load.failures = {RunState.SUCCEEDED: 0, RunState.FAILED: load.failures + 1}.get(RunState(state), load.failures)
    if state == RunState.FAILED and load.enabled and load.next_start_at is not None:
        load.next_start_at = schedule.after(load.every_minutes, load.scheduled_at, now, load.failures)
    if copied_version is not None:
        load.copied_version = copied_version
    load.save(update_fields=["failures", "next_start_at", "copied_version"])
    return True


def _gone() -> QuerySet[Instance]:
    return Instance.objects.unscoped("loads of all instances that are gone").filter(state=InstanceState.DELETED)


def _runs() -> QuerySet[LoadRun]:
    return LoadRun.objects.unscoped("the runner serves all")


def _loads() -> QuerySet[Load]:
    return Load.objects.unscoped("the runner serves all")
