"""An instance's history: charts of its figures over one of six ranges of time. It outlives the instance, as usage does."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from controlplane.accounts.scopes import ALARMS
from controlplane.alarms.events import MARKED
from controlplane.alarms.timeline import events_of
from controlplane.console.charts import svg
from controlplane.console.over_time import DAY, HOUR, PART_OF_A_JOIN, RANGES, charts_of, is_empty, legend_of
from controlplane.console.page import tenant_page
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import NotFound
from controlplane.history.metrics import METRICS, Kind
from controlplane.history.now import scraping_get
from controlplane.history.requests.brokers import brokers_get
from controlplane.history.requests.selectors import requests_get, rows_of
from controlplane.history.scraping import KEY_FILE
from controlplane.history.selectors import history_get
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.console.charts import Chart
    from controlplane.console.over_time import Range


MOST_MARKS = 500
"""The newest ones."""


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The charts, and behind each a table."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    chosen = range_chosen(request, RANGES)
    now = SYSTEM_CLOCK.now()
    start = now - timedelta(seconds=chosen.length_s)
    found = history_get(
        instance=instance,
        start=start,
        end=now,
        step_s=chosen.step_s,
        metrics=[metric for metric in METRICS.values() if metric.kind is not Kind.COUNTED],
    )
    requests = requests_get(instance=instance, start=start, end=now, step_s=chosen.step_s, known=found)
    with_alarms = caller.limits.covers(ALARMS, changes=False)
    kinds = [kind for kind in MARKED if with_alarms or not kind.startswith("alarm.")]
    marks = events_of(instance, most=MOST_MARKS, start=found.start, end=found.end, kinds=kinds)
    asked = rows_of(requests)
    context = {
        "instance": instance,
        "tab": "history",
        "gone": instance.state == InstanceState.DELETED,
        "too_many_marks": MOST_MARKS if len(marks) == MOST_MARKS else None,
        "ranges": RANGES,
        "chosen": chosen,
        "step_s": found.step_s,
        "store_away": not (found.is_complete and requests.is_complete),
        "charts": [] if is_empty(found) else [drawn(chart) for chart in charts_of(found, chosen, marks, requests)],
        "requests": asked,
        "part_of_a_join": PART_OF_A_JOIN,
        "brokers": (
            brokers_get(instance=instance, start=start, end=now, step_s=longest_step_s(chosen)) if asked else []
        ),
        "key_file": KEY_FILE,
        "scraping": scraping_get(
            organisation=caller.organisation, instance_id=instance_id, asked_at=request.build_absolute_uri("/")
        ),
    }
    return render(request, "console/instance_history.html", context)


def longest_step_s(chosen: Range) -> int:
    """What is added up over the whole range is read from rows of hours, where it has many."""
    return max(chosen.step_s, HOUR) if chosen.length_s >= DAY else chosen.step_s


def range_chosen(request: HttpRequest, ranges: Sequence[Range]) -> Range:
    """That the address names; the first where it names none. Raises NotFound."""
    wanted = request.GET.get("range", ranges[0].name)
    chosen = next((each for each in ranges if each.name == wanted), None)
    if chosen is None:
        raise NotFound("there is nothing at this address")
    return chosen


def drawn(chart: Chart) -> dict[str, Any]:
    """What parts/plots.html shows of a chart."""
    steps = [step for step in range(len(chart.moments)) if chart.is_told(step)]
    titles = [line.title for line in chart.lines]
    return {
        "chart": chart,
        "svg": mark_safe(svg(chart)),  # noqa: S308  # made of numbers and our own words, and escaped
        "legend": legend_of(chart),
        "rows": [
            (
                chart.moment_text(chart.moments[step]),
                list(zip(titles, chart.texts(step), strict=True)),
                chart.marks[chart.moments[step]].texts if chart.moments[step] in chart.marks else (),
            )
            for step in reversed(steps)
        ],
    }
