"""An instance's history: charts of its figures over a time that the reader chooses. It outlives the instance, as usage does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.accounts.scopes import ALARMS
from controlplane.alarms.events import MARKED
from controlplane.alarms.timeline import events_of
from controlplane.certificates.readers import MARK
from controlplane.console.over_time import PART_OF_A_JOIN, broker_charts_of, charts_of, is_empty, legend_of
from controlplane.console.page import tenant_page
from controlplane.console.times import DAY, HOUR, RANGES, times_chosen
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.history.metrics import EVERY, Kind
from controlplane.history.now import scraping_at, takes_certificates
from controlplane.history.requests.brokers import broker_history_get, brokers_get
from controlplane.history.requests.selectors import requests_get, rows_of
from controlplane.history.scraping import BY_CERTIFICATE, KEY_FILE
from controlplane.history.selectors import history_get
from controlplane.history.together import asked_together
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.alarms.events import Event
    from controlplane.console.charts import Chart
    from controlplane.console.times import Times
    from controlplane.history.selectors import History
    from controlplane.instances.models import Instance


MOST_MARKS = 500
"""The newest ones."""
AWAY = "broker.away"
"""Of another broker it is no news of this one."""
MOST_ROWS = 100
"""Of the table behind a chart, the newest ones; all are one link further. Ten tables of a thousand rows make a page slow."""


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The charts, and behind each a table."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    chosen = times_chosen(request, SYSTEM_CLOCK.now())
    context = {
        "instance": instance,
        "tab": "history",
        "gone": instance.state == InstanceState.DELETED,
        "part_of_a_join": PART_OF_A_JOIN,
        "key_file": KEY_FILE,
        "scraping": scraping_at(instance=instance, asked_at=request.build_absolute_uri("/")),
        "by_certificate": takes_certificates()
        and scraping_at(instance=instance, asked_at=request.build_absolute_uri("/"), by=BY_CERTIFICATE).config,
        "mark": MARK.format(instance=instance.pk),
        **times_shown(chosen),
        **({} if chosen.is_wrong else _over_time(request, caller, instance, chosen)),
    }
    return render(request, "console/instance_history.html", context, status=422 if chosen.is_wrong else 200)


@require_safe
@tenant_page
def broker(request: HttpRequest, caller: Caller, instance_id: str, broker: int) -> HttpResponse:
    """What the instance asked of one broker of its cluster, in charts over the same times."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    chosen = times_chosen(request, SYSTEM_CLOCK.now())
    found = broker_history_get(
        instance=instance,
        broker=broker,
        start=chosen.start,
        end=chosen.end,
        step_s=chosen.counted_step_s,
    )
    is_shown = not (chosen.is_wrong or is_empty(found))
    events = events_marked(caller, instance, found) if is_shown else []
    marked = [event for event in events if event.kind != AWAY or event.told.object == str(broker)]
    context = {
        "instance": instance,
        "tab": "history",
        "gone": instance.state == InstanceState.DELETED,
        "broker": broker,
        "step_s": found.step_s,
        "store_away": not found.is_complete,
        "too_many_marks": MOST_MARKS if len(events) == MOST_MARKS else None,
        "charts": all_drawn(request, broker_charts_of(found, chosen, events=marked)) if is_shown else [],
        **times_shown(chosen),
    }
    return render(request, "console/instance_broker.html", context, status=422 if chosen.is_wrong else 200)


def _over_time(request: HttpRequest, caller: Caller, instance: Instance, chosen: Times) -> dict[str, Any]:
    start, end = chosen.start, chosen.end
    metrics = [metric for metric in EVERY.values() if metric.kind is not Kind.COUNTED]
    counted_s = chosen.counted_step_s
    with asked_together():
        found = history_get(instance=instance, start=start, end=end, metrics=metrics, counts_requests=counted_s is None)
        requests = requests_get(instance=instance, start=start, end=end, step_s=counted_s, known=found)
        asked, step_s = rows_of(requests), _longest_step_s(found.step_s, chosen)
        brokers = brokers_get(instance=instance, start=start, end=end, step_s=step_s) if asked else []
    events = events_marked(caller, instance, found)
    charts = [] if is_empty(found) else charts_of(found, chosen, events, requests)
    return {
        "too_many_marks": MOST_MARKS if len(events) == MOST_MARKS else None,
        "step_s": found.step_s,
        "events_since": start if caller.limits.covers(ALARMS, changes=False) else None,
        "events_until": end,
        "store_away": not (found.is_complete and requests.is_complete),
        "charts": all_drawn(request, charts),
        "requests": asked,
        "requests_step_s": requests.step_s,
        "brokers": brokers,
    }


def _longest_step_s(step_s: int, chosen: Times) -> int:
    """What is added up over all of the time is read from rows of hours, where it has many."""
    return max(step_s, chosen.counted_step_s or (HOUR if chosen.length_s >= DAY else 0))


def events_marked(caller: Caller, instance: Instance, history: History) -> list[Event]:
    """What happened to an instance over a history, as far as this person may know it: the newest first."""
    with_alarms = caller.limits.covers(ALARMS, changes=False)
    kinds = [kind for kind in MARKED if with_alarms or not kind.startswith("alarm.")]
    return events_of(instance, most=MOST_MARKS, start=history.start, end=history.end, kinds=kinds)


def times_shown(chosen: Times) -> dict[str, Any]:
    """What parts/time_ranges.html shows."""
    return {"ranges": RANGES, "chosen": chosen}


def all_drawn(request: HttpRequest, charts: Sequence[Chart]) -> list[dict[str, Any]]:
    """What parts/plots.html shows of charts; the address may ask for one table as a whole."""
    return [_drawn(chart, is_whole=request.GET.get("whole") == chart.name) for chart in charts]


def _drawn(chart: Chart, *, is_whole: bool) -> dict[str, Any]:
    steps = [step for step in reversed(range(len(chart.moments))) if chart.is_told(step)]
    return {
        "chart": chart,
        "data": chart.document(),
        "data_id": f"{chart.name}-data",
        "legend": legend_of(chart),
        "is_whole": is_whole,
        "all": len(steps) if len(steps) > MOST_ROWS else None,
        "most": MOST_ROWS,
        "rows": [
            (
                chart.moment_text(chart.moments[step]),
                chart.texts(step),
                chart.marks[chart.moments[step]].texts if chart.moments[step] in chart.marks else (),
            )
            for step in (steps if is_whole else steps[:MOST_ROWS])
        ],
    }
