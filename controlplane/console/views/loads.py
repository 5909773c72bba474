"""Loads of topics into a lake: the list, a new one, one with its runs; run, stopped, changed, deleted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.api.sorting import in_order
from controlplane.console.forms.loads import LoadChangeForm, LoadForm, LoadRunForm
from controlplane.console.listing import listing, order_asked
from controlplane.console.load_words import in_page_words
from controlplane.console.once import made_once
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.console.templatetags.console import duration
from controlplane.console.wording import filled, worded
from controlplane.core.errors import SluiceError, Unavailable
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.kafka import topics
from controlplane.loads import installed, selectors, services
from controlplane.loads.destinations import Kind
from controlplane.loads.destinations import shown as folder_shown
from controlplane.loads.models import UNDER_WAY, Load, LoadRun, RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.reading import reading
from controlplane.loads.serializers import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.forms import Form
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller

RUNS = 15
MOST_TOPICS = 500
"""That a select offers; of more, the name is typed."""
MINUTE_S = 60
MOST_SPANS = 5
"""That a line of the list of runs names."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a failed run needs next. `asks`: the member of the form of runs that does it, and what its button says."""

    sentence: str
    asks: str = ""
    button: str = ""


ADVICE: Mapping[str, Advice] = {
    "another_topic": Advice(
        "The next run has to be told to load the new topic. Its rows stand beside those of the old one.",
        "new_topic",
        "Run with: new topic",
    ),
    "expired": Advice(
        "The next run has to be told to skip what has expired. The table notes the gap.",
        "skip_expired",
        "Run with: skip expired",
    ),
    "request_refused": Advice(
        "Run it without that range, or with one that the topic still has and that touches what the table has."
    ),
    "schema_refused": Advice("Set up another load of the topic, with another schema or with none."),
    "no_bucket": Advice(
        "Make a bucket of this name, or delete this load and set up another: its place cannot be changed."
    ),
    "shorter_topic": Advice(
        "This table stays as it is. Set up another load of the topic, which goes into another table."
    ),
    "overtaken": Advice("Something else wrote into the table at the same time. Run it again."),
    "failed": Advice("When that is mended, run it again: it goes on where the table ends."),
}


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """All of an instance, by topic, each with its last run; the list comes again every 10 s."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    loads = selectors.load_list(organisation=caller.organisation, instance_id=instance.id)
    order = order_asked(request, selectors.SORTED)
    if order is not None:
        loads = in_order(loads, order, value=selectors.SORTED[order.field], key=lambda load: load.pk)
    latest = selectors.latest_of(loads)
    kept = selectors.kept_table_list(organisation=caller.organisation, instance_id=instance.id)
    rows = [_row(load, latest.get(load.pk)) for load in loads]
    context = {**_page(instance), "rows": rows, "kept": kept, "order": order}
    return render(request, f"console/{'parts/load_rows' if _is_part(request) else 'instance_loads'}.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def new(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Which topic, where to, how often."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    page = _page(instance)
    names = _topics(instance) if page["running"] else None
    offered = names if names is not None and len(names) <= MOST_TOPICS else ()
    form = LoadForm(request.POST or None, topics=offered, kinds=installed.kinds())
    if request.method == "POST" and form.is_valid():
        try:
            wanted = form.wanted()
            topic = wanted["topic"]
            caller.limits.admit_topic(topic)
            made = made_once(
                request, caller, form, lambda: services.load_create(**caller.place(instance.id), **wanted).pk
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            said = "The first run begins at once." if wanted["every_minutes"] else "It runs when you ask for it."
            messages.success(request, f"The load of {topic} was set up. {said}")
            return redirect("console:instance_load", caller.organisation.id, instance.id, made)
    context = {**page, "form": form, "no_topic": names == []}
    return render(request, "console/instance_load_new.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str, load_id: str) -> HttpResponse:
    """One load with its runs, which come again while one looks; its forms ask for a run, or change the schedule or the key."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    load = selectors.load_get(organisation=caller.organisation, instance_id=instance.id, load_id=load_id)
    is_run = "run" in request.POST
    run_form = LoadRunForm(request.POST if is_run else None)
    form = LoadChangeForm(request.POST if request.POST and not is_run else None, load=load)
    sent: Form = run_form if is_run else form
    if request.method == "POST" and sent.is_valid():
        try:
            said = _run(caller, load, run_form.wanted()) if is_run else _change(caller, load, form.wanted())
        except SluiceError as error:
            (run_form if is_run else form).refuse(error)
        else:
            messages.success(request, said)
            return redirect("console:instance_load", caller.organisation.id, instance.id, load.pk)
    latest = selectors.latest_of([load]).get(load.pk)
    runs = listing(request, selectors.run_list(load), size=RUNS)
    context = {
        **_page(instance),
        **_row(load, latest),
        "form": form,
        "run_form": run_form,
        "listing": runs,
        "runs": [_run_row(load, run, latest) for run in runs.page.object_list],
    }
    template = "console/parts/load_now.html" if _is_part(request) else "console/instance_load.html"
    return render(request, template, context, status=422 if form.errors or run_form.errors else 200)


@require_POST
@tenant_page
def stop(request: HttpRequest, caller: Caller, instance_id: str, load_id: str) -> HttpResponse:
    """The run that waits or is under way ends."""
    services.load_stop(**caller.place(instance_id), load_id=load_id)
    messages.success(request, "The run stops within seconds. What it has committed stays in the table.")
    return redirect("console:instance_load", caller.organisation.id, instance_id, load_id)


@require_POST
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str, load_id: str) -> HttpResponse:
    """It runs no more."""
    load = selectors.load_get(organisation=caller.organisation, instance_id=instance_id, load_id=load_id)
    removes = request.POST.get("table") == "remove"
    services.load_delete(**caller.place(instance_id), load_id=load_id, removes_table=removes)
    if removes:
        messages.success(request, f"The load of {load.topic} was deleted. Its table is removed within a minute.")
    else:
        messages.success(request, f"The load of {load.topic} was deleted. Its table stays as it is.")
    return redirect("console:instance_loads", caller.organisation.id, instance_id)


@require_POST
@tenant_page
@proof_asked
def remove_table(request: HttpRequest, caller: Caller, instance_id: str, load_id: str) -> HttpResponse:
    """Of a load that was deleted before."""
    services.kept_table_remove(**caller.place(instance_id), load_id=load_id)
    messages.success(request, "The table is removed within a minute.")
    return redirect("console:instance_loads", caller.organisation.id, instance_id)


def _run(caller: Caller, load: Load, asked: Asked) -> str:
    services.load_run(**caller.place(load.instance_id), load_id=load.pk, asked=asked)
    return "The run was asked for. It begins as soon as its turn comes."


def _change(caller: Caller, load: Load, changes: dict[str, Any]) -> str:
    services.load_update(**caller.place(load.instance_id), load_id=load.pk, changes=changes)
    return "The load was changed."


def _is_part(request: HttpRequest) -> bool:
    return bool(request.htmx and not request.htmx.boosted)  # type: ignore[attr-defined]


def _page(instance: Instance) -> dict[str, Any]:
    running = instance.state == InstanceState.RUNNING
    return {"instance": instance, "tab": "topics", "running": running, "absence": installed.absence()}


def _topics(instance: Instance) -> list[str] | None:
    """Their names, those of the service's own topics last; None while the cluster does not say them."""
    try:
        names = topics.names_listed(instance.cluster.address, [instance.pk]).get(instance.pk, [])
    except Unavailable:
        return None
    return sorted(names, key=lambda name: (name.startswith("__"), name))


def _row(load: Load, run: LoadRun | None) -> dict[str, Any]:
    every = None if load.every_minutes is None else duration(load.every_minutes * MINUTE_S)
    return {
        "load": load,
        "run": run,
        "under_way": run is not None and run.state in UNDER_WAY,
        **(_counts(load, run) if run is not None else {"counted": False}),
        "place": load.uri if load.kind == Kind.BUCKET else folder_shown(load.folder, installed.folders()),
        "reading": reading(load.kind, load.uri, load.region, installed.buckets(), load.format),
        "every": every,
        "own_schema": load.schema not in ("raw", "inferred"),
        "advice": None if run is None else ADVICE.get(reason_of(run) or ""),
    }


def _run_row(load: Load, run: LoadRun, latest: LoadRun | None) -> dict[str, Any]:
    """Of the last run, if it failed, with what is to be done next."""
    took = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
    is_last = latest is not None and latest.pk == run.pk
    return {
        "run": run,
        "took_s": took,
        **_counts(load, run),
        "says": in_page_words(run.says),
        "asked": _asked_words(Asked.from_json(run.asked)),
        "advice": ADVICE.get(reason_of(run) or "") if is_last else None,
        "gaps": [worded(gap) for gap in run.gaps],
    }


def _counts(load: Load, run: LoadRun) -> dict[str, Any]:
    """Whether rows are shown, and what is said beside them.

    Of one that did not succeed they are those of what ended well before: of programs that were killed nobody knows.
    """
    if run.state == RunState.SUCCEEDED:
        return {"counted": True, "beside": ""}
    is_copied_behind = load.kind == Kind.BUCKET and run.state == RunState.FAILED
    return {
        "counted": run.row_count > 0,
        "beside": "loaded, not all copied by this run" if is_copied_behind else "at least",
    }


def _asked_words(asked: Asked) -> list[str]:
    """What a run was to load beyond what is new, in the language of the page."""
    said = []
    if asked.from_time_ms is not None:
        moment = datetime.fromtimestamp(asked.from_time_ms / 1000, UTC)
        said.append(filled("again from {moment} UTC", moment=f"{moment:%Y-%m-%d %H:%M:%S}"))
    if asked.offsets:
        spans = [f"{partition}:{first}-{end}" for partition, (first, end) in sorted(asked.offsets.items())]
        shown = ", ".join(spans[:MOST_SPANS]) + (" …" if len(spans) > MOST_SPANS else "")
        said.append(filled("offsets {spans} again", spans=shown))
    if asked.new_topic:
        said.append(filled("new topic"))
    if asked.skip_expired:
        said.append(filled("skip expired"))
    return said
