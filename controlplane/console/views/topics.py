"""Topics of an instance, as the cluster has them at this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.accounts.scopes import INSTANCES
from controlplane.api.sorting import in_order
from controlplane.console.flow import bar
from controlplane.console.forms.instances import DeletionForm
from controlplane.console.forms.topic_batches import TopicNoteForm
from controlplane.console.forms.topic_settings import TopicSettingsForm
from controlplane.console.forms.topics import TopicForm
from controlplane.console.listing import kept, listing, order_asked, searched
from controlplane.console.over_time import is_empty, topic_charts_of
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.console.times import times_chosen
from controlplane.console.views.history import all_drawn, events_marked, times_shown
from controlplane.console.views.instances import running
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import NotFound, SluiceError, Unavailable
from controlplane.history.requests.topics import topic_is_kept, topic_moved_get
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import config_of
from controlplane.policies.selectors import shortened_get
from controlplane.topic_insights.figures import topic_figures
from controlplane.topics import selectors, services
from controlplane.topics.notes import LONGEST_TAG, note_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.console.times import Times
    from controlplane.instances.models import Instance

PARTITION_ROWS = 100
NOT_YET = (InstanceState.CREATING, InstanceState.FAILED)
SORTED: dict[str, Callable[[selectors.TopicView], Any]] = {
    "name": lambda view: view.topic.name,
    "partitions": lambda view: view.topic.partitions,
    "replication_factor": lambda view: view.topic.replication_factor,
    "stored_bytes": lambda view: view.stored_bytes,
}
"""Columns that the list can be sorted by; for the last of them brokers are asked, and only then it is a column."""


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Every topic, and how many of the partitions bought they take. A cluster that is away is said calmly."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    search, tag, views, away = searched(request), tag_chosen(request), [], None
    try:
        views = selectors.topic_list(organisation=caller.organisation, instance_id=instance_id)
    except Unavailable as error:
        away = error
    found = [view for view in views if fits(view, search, tag)]
    order = order_asked(request, SORTED)
    sized = order is not None and order.field == "stored_bytes"
    if sized:
        found = selectors.topics_sized(instance, found)
    if order is not None:
        found = in_order(found, order, value=SORTED[order.field], key=SORTED["name"])
    context = {
        "instance": instance,
        "tab": "topics",
        "listing": listing(request, found, search=search, size=50),
        "tag": tag,
        "tags": tags_of(views),
        "order": order,
        "sized": sized,
        "keeps": [*([("tag", tag)] if tag else []), *kept(request, "sort")],
        "partitions": bar(sum(view.topic.replicas for view in views), instance.partitions),
        "away": away,
        "running": instance.state == InstanceState.RUNNING,
        "none_at_all": not views and away is None,
    }
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/topic_rows.html" if part else "console/topics.html"
    return render(request, template, context, status=503 if away and not part else 200)


def tag_chosen(request: HttpRequest) -> str:
    """The tag that a list is narrowed to; empty: none."""
    return request.GET.get("tag", "").replace("\x00", "")[:LONGEST_TAG]


def tags_of(views: list[selectors.TopicView]) -> list[str]:
    """All that there are, sorted."""
    return sorted({tag for view in views for tag in view.note.tags})


def fits(view: selectors.TopicView, search: str, tag: str) -> bool:
    """Whether the text is in the topic's name or in one of its tags, and the topic has the tag."""
    texts = (view.topic.name, *view.note.tags)
    return (not tag or tag in view.note.tags) and any(search.lower() in text.lower() for text in texts)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def new(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """A new topic, there when this answers. While its instance is being created, how far that is stands in the form's place.

    Of one that could not be created its own page says so; to a role that sees topics alone neither is open.
    """
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    is_seen = caller.limits.covers(INSTANCES, changes=False)
    if instance.state in NOT_YET and is_seen and request.method != "POST":
        operation = running(caller, instance)
        if operation is None:
            return redirect("console:instance", caller.organisation.id, instance.id)
        context = {"instance": instance, "tab": "topics", "operation": operation}
        return render(request, "console/topic_new.html", context)
    defaults = config_of(instance.config)
    initial = {
        "partitions": defaults["default_partitions"],
        "replication_factor": defaults["default_replication_factor"],
    }
    form = TopicForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        wanted = form.cleaned_data
        try:
            services.topic_create(
                organisation=caller.organisation,
                actor=caller.actor,
                instance_id=instance.id,
                name=wanted["name"],
                partitions=wanted["partitions"],
                replication_factor=wanted["replication_factor"],
                config=form.config(),
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"Topic {wanted['name']} is ready.")
            page = "console:topic_message_new" if request.POST.get("then") == "message" else "console:topic"
            return redirect(page, caller.organisation.id, instance.id, wanted["name"])
    context = {"instance": instance, "tab": "topics", "form": form}
    return render(request, "console/topic_new.html", context, status=422 if form.errors else 200)


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """A topic with each partition's leader, replicas and in-sync replicas, and what it took in and gave out over time.

    The latter is of the database: it is shown while the cluster is away, and when the topic is gone.
    """
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    context: dict[str, Any] = {"instance": instance, "tab": "topics", "name": topic, "view": None, "away": None}
    try:
        view = selectors.topic_get(organisation=caller.organisation, instance_id=instance_id, name=topic)
    except Unavailable as error:
        context |= {"away": error, "note": note_named(instance, topic)}
    except NotFound:
        if not topic_is_kept(instance=instance, name=topic):
            raise
        context["gone"] = True
    else:
        context |= {
            "view": view,
            "note": view.note,
            "listing": listing(request, view.topic.layout, size=PARTITION_ROWS),
            "shortened": shortened_get(instance, topic),
        }
    chosen = times_chosen(request, SYSTEM_CLOCK.now())
    context |= times_shown(chosen) | ({} if chosen.is_wrong else _over_time(request, caller, instance, topic, chosen))
    status = 503 if context["away"] else 422 if chosen.is_wrong else 200
    return render(request, "console/topic.html", context, status=status)


def _over_time(request: HttpRequest, caller: Caller, instance: Instance, topic: str, chosen: Times) -> dict[str, Any]:
    found = topic_moved_get(
        instance=instance, name=topic, start=chosen.start, end=chosen.end, step_s=chosen.counted_step_s
    )
    events = [] if is_empty(found) else events_marked(caller, instance, found)
    charts = [] if is_empty(found) else topic_charts_of(found, chosen, events)
    return {"step_s": found.step_s, "store_away": not found.is_complete, "charts": all_drawn(request, charts)}


@require_safe
@tenant_page
def figures(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """What it holds, who reads it, and hints: a part of the topic's page that comes behind it, or a page of its own."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    context = {"instance": instance, "tab": "topics", "topic": topic, "figures": None, "away": None}
    try:
        found = topic_figures(organisation=caller.organisation, instance_id=instance_id, name=topic)
    except Unavailable as error:
        context["away"] = error
    else:
        context |= {"figures": found, "listing": listing(request, found.partitions, size=PARTITION_ROWS)}
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/topic_figures.html" if part else "console/topic_figures.html"
    return render(request, template, context, status=503 if context["away"] and not part else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def note(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """Write about the topic, or give it tags."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.topic_get(organisation=caller.organisation, instance_id=instance_id, name=topic)
    form = TopicNoteForm(request.POST or None, note=view.note)
    if request.method == "POST" and form.is_valid():
        changes = form.changes
        if not changes:
            messages.info(request, "Nothing was changed.")
            return redirect("console:topic", caller.organisation.id, instance.id, topic)
        try:
            services.topic_note_set(
                organisation=caller.organisation,
                actor=caller.actor,
                instance_id=instance.id,
                name=topic,
                **changes,
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"The note of topic {topic} was saved.")
            return redirect("console:topic", caller.organisation.id, instance.id, topic)
    context = {"instance": instance, "tab": "topics", "view": view, "form": form}
    return render(request, "console/topic_note.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def settings(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """More partitions, other configurations; what cannot be undone is confirmed."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.topic_get(organisation=caller.organisation, instance_id=instance_id, name=topic)
    form = TopicSettingsForm(request.POST or None, view=view)
    if request.method == "POST" and form.is_valid():
        try:
            services.topic_update(
                organisation=caller.organisation,
                actor=caller.actor,
                instance_id=instance.id,
                name=topic,
                partitions=form.more_partitions,
                config=form.changes,
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"The settings of topic {topic} were saved.")
            return redirect("console:topic", caller.organisation.id, instance.id, topic)
    context = {"instance": instance, "tab": "topics", "view": view, "form": form}
    return render(request, "console/topic_settings.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """Delete, once its name was typed."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.topic_get(organisation=caller.organisation, instance_id=instance_id, name=topic)
    form = DeletionForm(request.POST or None, name=topic)
    if request.method == "POST" and form.is_valid():
        try:
            services.topic_delete(
                organisation=caller.organisation, actor=caller.actor, instance_id=instance.id, name=topic
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"Topic {topic} was deleted.")
            return redirect("console:topics", caller.organisation.id, instance.id)
    context = {"instance": instance, "tab": "topics", "view": view, "form": form}
    return render(request, "console/topic_delete.html", context, status=422 if form.errors else 200)
