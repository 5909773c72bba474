"""The quota report: an instance's last days beside what was bought; and of operators one day of everybody."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.listing import listing, searched
from controlplane.console.page import staff_page, tenant_page
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import NotFound
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_any
from controlplane.metering.pipeline.quota_days import RESOURCES
from controlplane.quotas import report
from controlplane.quotas.report import Outlook

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller

DAYS, NEWEST = 30, 7
"""A table of 30 days is long on a phone: the newest stand first, all of them one link away."""
FLEET_ROWS = 20
WORDS = {"all": "All", "missed": "Guarantee missed", "soon": f"At the limit within {report.SOON_DAYS} days"}


@require_safe
@tenant_page
def of_instance(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """A table for each resource, the newest day first. It outlives the instance, as usage does."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    now = SYSTEM_CLOCK.now()
    rows = report.report_days(instance=instance, start=now - timedelta(days=DAYS), end=now)
    rows.sort(key=lambda row: RESOURCES.index(row.resource))  # stays by day within
    gone = instance.state == InstanceState.DELETED
    shown_days = DAYS if request.GET.get("days") == str(DAYS) else NEWEST
    context = {
        "instance": instance,
        "tab": "quota",
        "part": "report",
        "gone": gone,
        "resources": [
            (resource, (days := list(of))[:shown_days], Outlook.NONE if gone else days[0].outlook(now.date()))
            for resource, of in groupby(rows, key=lambda row: row.resource)
        ],
        "shown_days": shown_days,
        "all_days": DAYS,
    }
    return render(request, "console/instance_quota_report.html", context)


@require_safe
@staff_page
def of_all(request: HttpRequest) -> HttpResponse:
    """One day, those first that used most of their limit."""
    newest = report.newest_day()
    day = _day(request.GET.get("day")) or newest
    show, search = request.GET.get("show", "all"), searched(request)
    if show not in report.SHOWN:
        raise NotFound("there is nothing at this address")
    found = report.report_of_day(day=day, show=show, search=search) if day else []
    shown = listing(request, found, search=search, size=FLEET_ROWS)
    rows = [report.row_of(row) for row in shown.page.object_list]
    ids = {row.instance for row in rows}
    instances = Instance.objects.unscoped("operators see every tenant's").select_related("organisation").in_bulk(ids)
    today = SYSTEM_CLOCK.now().date()
    context = {
        "day": day,
        "before": None if day is None else date.fromisoformat(day) - timedelta(days=1),
        "following": None
        if day is None or newest is None or day >= newest
        else date.fromisoformat(day) + timedelta(days=1),
        "listing": shown,
        "rows": [(row, instances.get(row.instance), _outlook(row, instances.get(row.instance), today)) for row in rows],
        "kept": [(name, request.GET[name]) for name in ("day", "show") if name in request.GET],
        "shows": [(name, WORDS[name]) for name in report.SHOWN],
        "show": show,
    }
    part = request.htmx and day is not None  # type: ignore[attr-defined]
    return render(
        request, "console/parts/quota_report_rows.html" if part else "console/fleet_quota_report.html", context
    )


def _outlook(row: report.ReportRow, instance: Instance | None, today: date) -> Outlook:
    is_there = instance is not None and instance.state != InstanceState.DELETED
    return row.outlook(today) if is_there else Outlook.NONE


def _day(text: str | None) -> str | None:
    if not text:
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError as error:
        raise NotFound("there is nothing at this address") from error
    if not date.min < found < date.max - timedelta(days=report.SOON_DAYS):
        raise NotFound("there is nothing at this address")
    return found.isoformat()
