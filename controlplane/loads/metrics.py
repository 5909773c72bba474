"""What Prometheus reads of loads: whether anybody runs them, and how long one has to wait."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Min, Sum

from controlplane.loads.models import KeptTable, Load, LoadRun, RunState

if TYPE_CHECKING:
    from datetime import datetime

LATELY = timedelta(hours=24)
"""Runs that ended longer ago say nothing of today."""
_SHOWN = (RunState.WAITING, RunState.RUNNING)
_ENDED = (RunState.SUCCEEDED, RunState.FAILED, RunState.STOPPED)


def loads_text(now: datetime) -> str:
    """One line for each sample. Alert on `waiting_seconds`: no runner is there, or too few."""
    runs = LoadRun.objects.unscoped("operators see how loads are, and of nobody")
    counts = dict(runs.filter(state__in=_SHOWN).values_list("state").annotate(Count("pk")))
    ended = dict(runs.filter(ended_at__gt=now - LATELY).values_list("state").annotate(Count("pk")))
    oldest = runs.filter(state=RunState.WAITING).aggregate(oldest=Min("asked_at"))["oldest"]
    in_vain = Load.objects.unscoped("likewise").filter(failures__gt=0).count()
    kept = (
        KeptTable.objects.unscoped("likewise").filter(removed_at=None).aggregate(n=Count("pk"), bytes=Sum("byte_count"))
    )
    lines = ["# TYPE sluice_loads gauge"]
    lines += [f'sluice_loads{{state="{state}"}} {counts.get(state, 0)}' for state in _SHOWN]
    lines += ["# TYPE sluice_loads_ended_24h gauge"]
    lines += [f'sluice_loads_ended_24h{{state="{state}"}} {ended.get(state, 0)}' for state in _ENDED]
    lines += ["# TYPE sluice_loads_in_vain gauge", f"sluice_loads_in_vain {in_vain}"]
    lines += ["# TYPE sluice_loads_kept_tables gauge", f"sluice_loads_kept_tables {kept['n']}"]
    lines += ["# TYPE sluice_loads_kept_tables_bytes gauge", f"sluice_loads_kept_tables_bytes {kept['bytes'] or 0}"]
    waiting_s = 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())
    lines += ["# TYPE sluice_loads_waiting_seconds gauge", f"sluice_loads_waiting_seconds {waiting_s:.3f}"]
    return "\n".join(lines) + "\n"
