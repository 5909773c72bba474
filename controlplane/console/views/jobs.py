"""Operators' page of the pipeline's jobs: how each is, its runs, and a button that runs one again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.console.listing import listing
from controlplane.console.page import staff_page
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.metering import jobs
from controlplane.metering.pipeline.quota_days import AGAIN_DAYS
from controlplane.metering.pipeline.schedule import JOBS

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def shown(request: HttpRequest) -> HttpResponse:
    """All jobs above; below the runs of one or of all, each of which can be run again."""
    if request.method == "POST":
        return _asked(request)
    chosen = request.GET.get("job", "")
    if chosen and chosen not in JOBS:
        raise NotFound("there is nothing at this address")
    rows, now = listing(request, jobs.run_list(job=chosen)), SYSTEM_CLOCK.now()
    found = jobs.job_list()
    runs = [jobs.run_shown(row, now) for row in rows.page.object_list]
    context = {
        "absent": jobs.absence(),
        "jobs": found,
        "runner": next(each for each in found if each.name == jobs.RUNNER),
        "chosen": chosen,
        "listing": rows,
        "runs": [(JOBS.get(run.job), run, jobs.can_be_run_again(run, now)) for run in runs],
        "first_day": (now - timedelta(days=AGAIN_DAYS)).date().isoformat(),
        "last_day": (now - timedelta(days=1)).date().isoformat(),
        "again_days": AGAIN_DAYS,
    }
    return render(request, "console/fleet_jobs.html", context)


def _asked(request: HttpRequest) -> HttpResponse:
    actor = request.user.email  # type: ignore[union-attr]  # staff_page has looked
    job, what = request.POST.get("job", ""), request.POST.get("what", "")
    try:
        jobs.job_run(job=job, what=what, actor=actor)
        of = f" of {what}" if what else ""
        messages.success(request, f"{JOBS[job].title}{of} is asked for: it runs as soon as the runner is free.")
    except Invalid as error:
        messages.error(request, f"Say which day: it {error.errors[0].detail}.")
    except Conflict:
        messages.info(request, "The same run waits to be started already.")
    return redirect("console:fleet_jobs")
