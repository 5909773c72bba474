"""Alarms of an instance: how they are, their rules, what happened to them and to the instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.alarms import selectors, services, timeline
from controlplane.alarms.delivery.words import duration_text, name_shown, value_text
from controlplane.alarms.evaluation import is_silenced
from controlplane.alarms.events import KINDS
from controlplane.alarms.machine import Phase
from controlplane.alarms.models import Alarm
from controlplane.alarms.rules import FIGURES, MISSING, OF_ANY_BROKER, OF_GROUPS, OF_TOPICS, REASONS, Missing
from controlplane.console.forms.alarms import AlarmForm, SilenceForm
from controlplane.console.forms.times import TimesForm
from controlplane.console.listing import listing
from controlplane.console.once import made_once
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.console.times import times_chosen
from controlplane.console.wording import filled, worded
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid, NotFound, SluiceError
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_any, instance_get

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.alarms.rules import Rule

HISTORY_ROWS, EVENT_ROWS = 20, 50
ALL = "all"
SHOWN = {
    ALL: "All",
    "health": "Health",
    "operation": "Operations",
    "alarm": "Alarms",
    "instance": "Sizes",
    "throttling": "Throttling",
    "broker": "Brokers",
    "unread": "Groups",
}
"""What of the events, by how their kinds begin."""
TOGETHER = {"broker": ("broker", "rebalance"), "unread": ("unread", "group")}
"""Of which one name stands for several beginnings."""
WORDS = {"ok": "OK", "pending": "Pending", "firing": "Firing", "no_data": "No data"}


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Every alarm with its state, the loudest first; the list comes again every 10 s."""
    place = {"organisation": caller.organisation, "instance_id": instance_id}
    instance = instance_get(**place)
    rows = sorted((_row(alarm) for alarm in selectors.alarm_list(**place)), key=_loudest)
    context = {
        **_page(instance, "alarms"),
        "rows": rows,
        "silence": SilenceForm(),
        "any_silenced": any(row["silenced"] for row in rows),
        "receivers": list(selectors.receiver_list(**place).order_by("created_at")),
    }
    part = request.htmx and not request.htmx.boosted  # type: ignore[attr-defined]
    return render(request, "console/parts/alarm_rows.html" if part else "console/alarms.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def new(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Choose what is watched, and who is told."""
    place = {"organisation": caller.organisation, "instance_id": instance_id}
    instance = instance_get(**place)
    form = AlarmForm(
        request.POST or None,
        receivers=list(selectors.receiver_list(**place).order_by("created_at")),
        suggested=_suggested(request),
    )
    if request.method == "POST" and form.is_valid():
        try:
            name = made_once(
                request, caller, form, lambda: services.alarm_create(**caller.place(instance.id), **form.wanted()).name
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"{name} is looked at within 30 seconds.")
            return redirect("console:alarms", caller.organisation.id, instance.id)
    context = {**_page(instance, "alarms"), "form": form}
    return render(request, "console/alarm_new.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str, alarm_id: str) -> HttpResponse:
    """One alarm: how it is, what happened to it, its rule."""
    place = {"organisation": caller.organisation, "instance_id": instance_id}
    instance = instance_get(**place)
    alarm = selectors.alarm_get(**place, alarm_id=alarm_id)
    receivers = list(selectors.receiver_list(**place).order_by("created_at"))
    form = AlarmForm(request.POST or None, receivers=receivers, alarm=alarm)
    if request.method == "POST" and form.is_valid():
        try:
            changes = form.changes
            if changes:
                services.alarm_update(**caller.place(instance.id), alarm_id=alarm.pk, changes=changes)
        except SluiceError as error:
            form.refuse(error)
        else:
            if changes:
                messages.success(request, "The rule was changed.")
            else:
                messages.info(request, "Nothing was changed.")
            return redirect("console:alarm", caller.organisation.id, instance.id, alarm.pk)
    history = selectors.event_list(**place, alarm_id=alarm.pk).order_by("-at", "-pk")
    context = {
        **_page(instance, "alarms"),
        "form": form,
        "row": _row(alarm),
        "silence": SilenceForm(),
        "told": [each for each in receivers if each.pk in alarm.receivers],
        "listing": listing(request, history, size=HISTORY_ROWS),
    }
    return render(request, "console/alarm.html", context, status=422 if form.errors else 200)


@require_POST
@tenant_page
def silence(request: HttpRequest, caller: Caller, instance_id: str, alarm_id: str) -> HttpResponse:
    """Messages are held back, or come again."""
    until = _silence_wanted(request)
    alarm = services.alarm_silence(**caller.place(instance_id), alarm_id=alarm_id, until=until)
    said = "are held back" if until is not None else "come again"
    messages.success(request, f"Messages of {alarm.name} {said}.")
    return redirect("console:alarm", caller.organisation.id, instance_id, alarm_id)


@require_POST
@tenant_page
def silence_all(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The same of all alarms that the instance has now."""
    until = _silence_wanted(request)
    services.alarms_silence(**caller.place(instance_id), until=until)
    held = "Messages of all alarms are held back."
    messages.success(request, held if until is not None else "Messages of all alarms come again.")
    return redirect("console:alarms", caller.organisation.id, instance_id)


def _silence_wanted(request: HttpRequest) -> datetime | None:
    """Until when; None: it is to end. Raises Invalid."""
    if "end" in request.POST:
        return None
    form = SilenceForm(request.POST)
    if not form.is_valid():
        raise Invalid.field("silence_s", "is none of the choices")
    return SYSTEM_CLOCK.now() + form.wanted


@require_POST
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str, alarm_id: str) -> HttpResponse:
    """It is looked at no more."""
    alarm = selectors.alarm_get(organisation=caller.organisation, instance_id=instance_id, alarm_id=alarm_id)
    services.alarm_delete(**caller.place(instance_id), alarm_id=alarm_id)
    messages.success(request, f"{alarm.name} was deleted.")
    return redirect("console:alarms", caller.organisation.id, instance_id)


@require_safe
@tenant_page
def events(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """What happened to the instance, the newest first."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    show = request.GET.get("show", ALL)
    if show not in SHOWN:
        raise NotFound("there is nothing at this address")
    names = ("at", "of", "key")
    after = timeline.place_of(*(request.GET[name] for name in names)) if set(names) <= set(request.GET) else None
    form, span = _span_chosen(request, SYSTEM_CLOCK.now())
    found = []
    if not form.errors:
        found = timeline.events_of(instance, **span, after=after, most=EVENT_ROWS + 1, kinds=kinds_shown(show))
    rows, more = found[:EVENT_ROWS], len(found) > EVENT_ROWS
    context = {
        **_page(instance, "events"),
        "rows": rows,
        "older": dict(zip(names, timeline.place_text(rows[-1].place), strict=True)) if more else None,
        "further": after is not None,
        "shown": SHOWN,
        "show": show,
        "gone": instance.state == InstanceState.DELETED,
        "form": form,
        "ranged": bool(span) or bool(form.errors),
    }
    return render(request, "console/instance_events.html", context, status=422 if form.errors else 200)


def _span_chosen(request: HttpRequest, now: datetime) -> tuple[TimesForm, dict[str, datetime]]:
    """From a moment to another, as the charts' address says it, and what `events_of` takes of it; none: all that is kept."""
    if not {"since", "until"} & request.GET.keys():
        return TimesForm(now=now), {}
    chosen = times_chosen(request, now)
    return chosen.form, {} if chosen.is_wrong else {"start": chosen.start, "end": chosen.end}


def kinds_shown(show: str) -> list[str]:
    """Of one of SHOWN."""
    beginnings = TOGETHER.get(show, (show,))
    return [kind for kind in KINDS if show == ALL or kind.partition(".")[0] in beginnings]


def _suggested(request: HttpRequest) -> dict[str, str]:
    """A figure of a group or a topic, which its page has a link with."""
    watch = request.GET.get("watch", "")
    name = "group" if watch in OF_GROUPS else "topic" if watch in OF_TOPICS else ""
    called = request.GET.get(name, "")
    return {"watch": watch, name: called} if called else {}


def _page(instance: Instance, part: str) -> dict[str, Any]:
    running = instance.state == InstanceState.RUNNING
    return {"instance": instance, "tab": "alarms", "part": part, "running": running}


def _row(alarm: Alarm) -> dict[str, Any]:
    """What a list says of it: an alarm that fires and has no value says both; one without is not said to be OK."""
    rule = alarm.rule
    value = None
    if alarm.value is not None:
        is_figure = rule.watch in FIGURES
        value = value_text(rule.watch, alarm.value) if is_figure else "there" if alarm.value else "not there"
    phase = Phase.NO_DATA.value if alarm.missing and alarm.phase == Phase.OK else alarm.phase
    return {
        "alarm": alarm,
        "rule": _rule_words(rule),
        "state": phase if alarm.enabled else "off",
        "word": WORDS[phase] if alarm.enabled else "Off",
        "value": value,
        "value_of": _whose(alarm),
        "missing": MISSING[Missing(alarm.missing)] if alarm.missing and alarm.enabled else "",
        "silenced": is_silenced(alarm, SYSTEM_CLOCK.now()),
    }


def _whose(alarm: Alarm) -> str:
    """``group billing``, ``broker 3``: of a figure of any; empty: nobody's."""
    if not alarm.value_of:
        return ""
    if alarm.watch in OF_ANY_BROKER:
        return filled("broker {name}", name=alarm.value_of)
    return filled("group {name}", name=name_shown(alarm.value_of))


def _rule_words(rule: Rule) -> str:
    """``Storage used at least 75 % for 5 min``, in the language of the page."""
    if rule.watch in REASONS:
        said = str(worded(REASONS[rule.watch]))
    else:
        title = str(worded(FIGURES[rule.watch].title))
        if rule.group is not None:
            title = filled("{title} of group {name}", title=title, name=name_shown(rule.group))
        if rule.topic is not None:
            title = filled("{title} of topic {name}", title=title, name=name_shown(rule.topic))
        compared = worded((rule.comparison or "").replace("_", " "))
        said = f"{title} {compared} {worded(value_text(rule.watch, rule.threshold or 0))}"
    return filled("{rule} for {time}", rule=said, time=duration_text(rule.duration_s)) if rule.duration_s else said


def _loudest(row: dict[str, Any]) -> tuple[bool, int, str]:
    alarm: Alarm = row["alarm"]
    phases: Iterable[str] = [phase.value for phase in selectors.LOUDEST]
    return not alarm.enabled, list(phases).index(alarm.phase), alarm.name.lower()
