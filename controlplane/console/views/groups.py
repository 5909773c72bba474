"""Consumer groups of an instance: who reads, how far behind, and moving them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.api.sorting import in_order
from controlplane.console.forms.groups import GroupForm, OffsetsForm
from controlplane.console.forms.instances import DeletionForm
from controlplane.console.listing import chosen, kept, listing, order_asked, searched
from controlplane.console.once import made_once
from controlplane.console.over_time import is_empty, lag_charts_of
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked, proof_asked_where
from controlplane.console.times import times_chosen
from controlplane.console.views.history import all_drawn, events_marked, times_shown
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import NotFound, SluiceError, Unavailable
from controlplane.core.text import visible
from controlplane.groups import selectors, services
from controlplane.history.lag.selectors import lag_get, lag_is_kept
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.kafka import group_door

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.api.sorting import Order
    from controlplane.console.times import Times
    from controlplane.groups.selectors import GroupSummary
    from controlplane.instances.models import Instance

STATES = [*group_door.STATES.values(), group_door.UNKNOWN]
"""That the list can be narrowed to."""
SORTED = ("name", "state", "lag_messages", "lag_seconds")
"""Columns that the list can be sorted by."""
ROWS = 100
"""Partitions, and members, at a time."""
PREVIEW_ROWS = 200
EVERY_S = 5
"""Between two looks of a page that stays open; the first two make a rate."""


def _in_order(names: list[str], order: Order, states: Mapping[str, str], at: dict[str, Any]) -> list[str]:
    """By a column of the list; lag is that of a minute ago."""
    lags = selectors.group_lags(**at) if order.field.startswith("lag_") else {}
    values: dict[str, Callable[[str], Any]] = {
        "name": lambda name: name,
        "state": states.get,
        "lag_messages": lambda name: getattr(lags.get(name), "messages", None),
        "lag_seconds": lambda name: getattr(lags.get(name), "seconds", None),
    }
    return in_order(names, order, value=values[order.field], key=lambda name: name)


def _lags_at(views: Sequence[GroupSummary]) -> tuple[datetime, datetime] | None:
    """From when to when the ages of lag on a page are, by the minute; None: none is of an earlier moment."""
    moments = sorted(view.lag_seconds_at.replace(second=0) for view in views if view.lag_seconds_at is not None)
    return (moments[0], moments[-1]) if moments else None


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Every group; state and lag of those on this page. A cluster that is away, or a part of it, is said calmly."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    search, state, names, views, away = searched(request), chosen(request, "state", STATES), [], [], None
    states: dict[str, str] = {}
    at = {"organisation": caller.organisation, "instance_id": instance_id}
    by_lag, order = request.GET.get("by") == "lag", order_asked(request, SORTED)
    found, missing = None, ()
    try:
        seen = selectors.groups_seen(**at)
        states, missing = {group.name: group.state for group in seen.groups}, seen.missing
        names = [group.name for group in seen.groups]
        wanted = [name for name in names if search.lower() in name.lower() and state in ("", states[name])]
        if order is not None:
            wanted = _in_order(wanted, order, states, at)
        elif by_lag:
            wanted = selectors.group_order(**at, names=wanted)
        found = listing(request, wanted, search=search)
        views = selectors.group_summaries_known(**at, names=list(found.page.object_list))
    except Unavailable as error:
        away = error
    context = {
        "instance": instance,
        "tab": "groups",
        "listing": found or listing(request, [], search=search),
        "views": views,
        "lags_at": _lags_at(views),
        "away": away,
        "running": instance.state == InstanceState.RUNNING,
        "none_at_all": not names and not missing and away is None,
        "missing": missing,
        "by_lag": by_lag,
        "order": order,
        "state": state,
        "states": [each for each in STATES if each == state or each in states.values()],
        "keeps": [*([("by", "lag")] if by_lag else []), *kept(request, "state", "sort")],
    }
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/group_rows.html" if part else "console/groups.html"
    return render(request, template, context, status=503 if away and not part else 200)


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str, group: str) -> HttpResponse:
    """Lag by partition, rates and members; the page looks again by itself. Behind it the lag over time, which outlives it."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    part = request.htmx  # type: ignore[attr-defined]
    context = {"instance": instance, "tab": "groups", "name": group, "every_s": EVERY_S, "away": None, "view": None}
    try:
        view = selectors.group_get(
            organisation=caller.organisation, instance_id=instance_id, name=group, with_removable=caller.may_change
        )
        context |= {
            "view": view,
            "listing": listing(request, _worst_first(view), size=ROWS),
            "members": listing(request, view.members, size=ROWS, parameter="members"),
        }
    except Unavailable as error:
        context["away"] = error
    except NotFound:
        if not lag_is_kept(instance=instance, name=group):
            raise
        context["gone"] = True
    if part:
        return render(request, "console/parts/group_now.html", context)
    chosen = times_chosen(request, SYSTEM_CLOCK.now())
    context |= times_shown(chosen) | ({} if chosen.is_wrong else _over_time(request, caller, instance, group, chosen))
    status = 503 if context["away"] else 422 if chosen.is_wrong else 200
    return render(request, "console/group.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: "move" in request.POST)
def reset(request: HttpRequest, caller: Caller, instance_id: str, group: str) -> HttpResponse:
    """Choose, look at what it means, and only then move: once, since a shift that is sent twice would go twice as far."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.group_get(organisation=caller.organisation, instance_id=instance_id, name=group, paced=False)
    topics = selectors.topic_names(organisation=caller.organisation, instance_id=instance_id)
    others = [topic for topic in topics if topic not in view.topics]
    form, preview = OffsetsForm(request.POST or None, topics=view.topics, others=others), None
    if request.method == "POST" and form.is_valid():
        asked = {**caller.place(instance.id), "name": group, **form.wanted()}
        try:
            if "move" in request.POST:
                said = made_once(request, caller, form, lambda: _moved(services.offsets_reset(**asked)))
                messages.success(request, said)
                return redirect("console:group", caller.organisation.id, instance.id, group)
            preview = services.offsets_reset(**asked, dry_run=True)
            form.begin_anew()  # whoever looks once more after a move means another one
        except SluiceError as error:
            form.refuse(error)
    context = {
        "instance": instance,
        "tab": "groups",
        "view": view,
        "topics": [*view.topics, *others],
        "form": form,
        "preview": preview,
        "rows": preview.moves[:PREVIEW_ROWS] if preview else (),
    }
    return render(request, "console/group_reset.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def new(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Make a group that begins with what comes to its topics from now on."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    topics = selectors.topic_names(organisation=caller.organisation, instance_id=instance_id)
    form = GroupForm(request.POST or None, topics=topics)
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        try:
            services.group_create(**caller.place(instance.id), name=name, topic_names=form.cleaned_data["topics"])
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"Group {name} was created.")
            return redirect("console:group", caller.organisation.id, instance.id, name)
    context = {"instance": instance, "tab": "groups", "topics": topics, "form": form}
    return render(request, "console/group_new.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def topic_delete(request: HttpRequest, caller: Caller, instance_id: str, group: str, topic: str) -> HttpResponse:
    """Delete a group's offsets of one topic, once its name was typed."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.group_get(organisation=caller.organisation, instance_id=instance_id, name=group, paced=False)
    form = DeletionForm(request.POST or None, name=topic)
    if request.method == "POST" and form.is_valid():
        try:
            services.topic_forget(**caller.place(instance.id), name=group, topic=topic)
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"The offsets of {group} in {topic} were deleted.")
            return redirect("console:groups", caller.organisation.id, instance.id)
    rows = [row for row in view.partitions if row.topic == topic and row.offset is not None]
    context = {
        "instance": instance,
        "tab": "groups",
        "view": view,
        "topic": topic,
        "rows": rows,
        "is_last": view.topics == [topic],
        "form": form,
    }
    return render(request, "console/group_topic_delete.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str, group: str) -> HttpResponse:
    """Delete, once its name was typed."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.group_get(organisation=caller.organisation, instance_id=instance_id, name=group, paced=False)
    name, group = group, visible(group)  # nobody types a line end into a field
    form = DeletionForm(request.POST or None, name=group)
    if request.method == "POST" and form.is_valid():
        try:
            services.group_delete(
                organisation=caller.organisation, actor=caller.actor, instance_id=instance.id, name=name
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"Group {group} was deleted.")
            return redirect("console:groups", caller.organisation.id, instance.id)
    context = {"instance": instance, "tab": "groups", "view": view, "form": form}
    return render(request, "console/group_delete.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def removal(request: HttpRequest, caller: Caller, instance_id: str, group: str, member: str) -> HttpResponse:
    """Take a member out, once that was confirmed."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.group_get(
        organisation=caller.organisation, instance_id=instance_id, name=group, paced=False, with_removable=True
    )
    found = next((each for each in view.members if each.id == member), None)
    if request.method == "POST":
        services.member_remove(
            organisation=caller.organisation, actor=caller.actor, instance_id=instance.id, name=group, member_id=member
        )
        messages.success(request, f"{found.client_id if found else member} was taken out of the group.")
        return redirect("console:group", caller.organisation.id, instance.id, group)
    context = {"instance": instance, "tab": "groups", "view": view, "member": found, "member_id": member}
    return render(request, "console/group_removal.html", context)


def _over_time(request: HttpRequest, caller: Caller, instance: Instance, group: str, chosen: Times) -> dict[str, Any]:
    """Of the database: it is shown when the cluster is away, too."""
    found = lag_get(instance=instance, name=group, start=chosen.start, end=chosen.end)
    events = [] if is_empty(found) else events_marked(caller, instance, found)
    charts = [] if is_empty(found) else lag_charts_of(found, chosen, events)
    return {"step_s": found.step_s, "charts": all_drawn(request, charts)}


def _worst_first(view: selectors.GroupView) -> list[selectors.PartitionLag]:
    """What is not known stands above what is: it may be worse."""
    most = 2**63
    return sorted(
        view.partitions,
        key=lambda row: (-(most if row.lag_messages is None else row.lag_messages), row.topic, row.partition),
    )


def _moved(done: services.Reset) -> str:
    if not done.changes:
        return "Nothing had to be moved: the offsets are there already."
    return "1 offset was moved." if done.changes == 1 else f"{done.changes} offsets were moved."
