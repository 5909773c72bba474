"""Operators' pages of rebalancing: how evenly clusters are loaded, proposals, and how far one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.clusters.services import cluster_list, cluster_named
from controlplane.console.advice import said
from controlplane.console.forms.rebalancing import BalanceRuleForm, PaceForm, RebalanceForm
from controlplane.console.listing import listing
from controlplane.console.page import staff_page
from controlplane.console.templatetags.console import amount, in_bytes, rate
from controlplane.core.errors import SluiceError
from controlplane.rebalancing import automatic, selectors, services
from controlplane.rebalancing.causes import Cause
from controlplane.rebalancing.kept import seen_last
from controlplane.rebalancing.metrics import skew_percent
from controlplane.rebalancing.models import OVER, UNDER_WAY, BalanceMode, Rebalance, RebalanceState
from controlplane.rebalancing.planner.model import Goal
from controlplane.rebalancing.summaries import MIB, returned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

    from controlplane.rebalancing.models import RebalanceEvent

MOVES = 50
MOST_SENTENCES = 8
GOALS = {
    Goal.LEADERS: "Leaders",
    Goal.PRODUCE: "Produce",
    Goal.CONSUME: "Consume",
    Goal.REPLICAS: "Replicas",
    Goal.DISK: "Disk",
    Goal.BANDWIDTH: "Sold",
}
"""As columns; the form has room for more words. Sold is the bandwidth that tenants have bought, where their leaders are."""
EVENTS = {
    "propose": "Proposed",
    "approve": "Approved",
    "carry_out": "Carrying out begun",
    "pause": "Paused",
    "resume": "Resumed",
    "cancel": "Cancelled",
    "pace": "Pace changed",
    "roll_back": "Proposed to roll back",
}
MODES = {
    BalanceMode.OFF: "Nothing begins by itself.",
    BalanceMode.PROPOSE: "Proposals are made by themselves.",
    BalanceMode.CARRY_OUT: "Rebalances begin by themselves.",
}
CAUSES = {
    Cause.NEW_BROKER: "A broker without replicas",
    Cause.SKEW: "A broker above the average",
}
COUNTED = (Goal.LEADERS, Goal.REPLICAS)
STORED = (Goal.DISK,)


@dataclass(frozen=True, slots=True)
class Act:
    """What can be done with a proposal, and the button that does it."""

    name: str
    title: str
    done: str
    act: Callable[..., Rebalance]
    states: tuple[str, ...]
    kind: str = ""
    asks: str = ""  # what happens, where it is asked for twice


ACTS = (
    Act("approve", "Approve", "Approved.", services.rebalance_approve, (RebalanceState.PROPOSED,)),
    Act(
        "carry_out",
        "Carry out",
        "It has begun.",
        services.rebalance_carry_out,
        (RebalanceState.PROPOSED,),
        "primary",
        "Partitions begin to move. Clients go on; where a leader changes they turn to the new one. You can pause and cancel it.",
    ),
    Act(
        "discard",
        "Discard",
        "Discarded: nothing was moved.",
        services.rebalance_cancel,
        (RebalanceState.PLANNING, RebalanceState.PROPOSED),
    ),
    Act(
        "pause",
        "Pause",
        "Paused: what is being copied is finished, nothing else begins.",
        services.rebalance_pause,
        (RebalanceState.RUNNING,),
    ),
    Act("resume", "Resume", "It goes on.", services.rebalance_resume, (RebalanceState.PAUSED,), "primary"),
    Act(
        "cancel",
        "Cancel",
        "What is under way is called back.",
        services.rebalance_cancel,
        (RebalanceState.RUNNING, RebalanceState.PAUSED),
        "danger",
        "Moves under way are called back, and nothing else begins. Moves that are done stay: roll back to undo them too.",
    ),
    Act(
        "roll_back",
        "Propose to roll back",
        "This is a proposal that undoes it. Nothing moves until it is carried out.",
        services.rebalance_roll_back,
        OVER,
    ),
)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def overview(request: HttpRequest) -> HttpResponse:
    """How evenly clusters are loaded, proposals, and a form for the next."""
    form = RebalanceForm(request.POST or None)
    if form.is_valid():
        try:
            row = services.rebalance_propose(actor=request.user.email, **form.wishes)  # type: ignore[union-attr]
        except SluiceError as error:
            form.refuse(error)
        else:
            return redirect("console:fleet_rebalance", row.id)
    modes = automatic.modes()
    shown = listing(request, selectors.rebalance_list().order_by("-created_at", "-pk"))
    context = {
        "clusters": [
            {
                **_balance(cluster.name, seen_last(cluster)),
                "by_itself": MODES[BalanceMode(modes.get(cluster.pk, "off"))],
            }
            for cluster in cluster_list()
        ],
        "goals": GOALS.values(),
        "listing": shown,
        "rows": list(shown.page.object_list),
        "form": form,
    }
    return render(request, "console/fleet_rebalancing.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def shown(request: HttpRequest, rebalance_id: str) -> HttpResponse:
    """One proposal: what it comes to, how far it is, and what can be done with it."""
    row = selectors.rebalance_get(rebalance_id)
    actor = request.user.email  # type: ignore[union-attr]  # staff_page has looked
    act = next((each for each in ACTS if each.name == request.POST.get("act")), None)
    pace = PaceForm(
        request.POST if request.POST.get("act") == "pace" else None,
        initial={"throttle_mib_per_s": f"{row.throttle_bytes_per_s / MIB:.6g}", "at_once": row.at_once},
    )
    try:
        if act is not None:
            changed = act.act(rebalance_id=row.id, actor=actor)
            messages.success(request, act.done)
            return redirect("console:fleet_rebalance", changed.id)
        if pace.is_valid():
            services.rebalance_pace(rebalance_id=row.id, actor=actor, **pace.pace)
            messages.success(request, "Changed. Brokers hear of it within seconds.")
            return redirect("console:fleet_rebalance", row.id)
    except SluiceError as error:
        pace.refuse(error) if act is None else messages.error(request, said(error))
        row = selectors.rebalance_get(rebalance_id)
    status = 422 if pace.errors else 409 if act is not None else 200
    return render(request, "console/fleet_rebalance.html", {**_context(request, row), "pace": pace}, status=status)


@require_safe
@staff_page
def now(request: HttpRequest, rebalance_id: str) -> HttpResponse:
    """How far it is: this part of its page asks again until it is over. In another state the whole page comes again."""
    row = selectors.rebalance_get(rebalance_id)
    response = render(request, "console/parts/rebalance_now.html", _progress(row))
    if request.GET.get("seen", row.state) != row.state:
        response.headers["HX-Refresh"] = "true"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def by_itself(request: HttpRequest, cluster: str) -> HttpResponse:
    """When a cluster is rebalanced by itself, and what it waits for."""
    found = cluster_named(cluster)
    rule = automatic.rule_of(found)
    now = {name: getattr(rule, name) for name in automatic.MEMBERS}
    form = BalanceRuleForm(
        request.POST or None, initial={**now, "throttle_mib_per_s": f"{rule.throttle_bytes_per_s / MIB:.6g}"}
    )
    if form.is_valid():
        try:
            automatic.rule_set(
                cluster=found,
                actor=request.user.email,  # type: ignore[union-attr]  # staff_page has looked
                changes=form.changes,
                reason=form.cleaned_data["reason"],
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, "Set. It holds from now on; what is under way goes on.")
            return redirect("console:fleet_by_itself", found.name)
    context = {
        "cluster": found,
        "rule": rule,
        "mode": MODES[BalanceMode(rule.mode)],
        "waits_for": CAUSES[Cause(rule.waiting_for)] if rule.waiting_for else "",
        "only_proposes": automatic.only_proposes(rule),
        "form": form,
    }
    return render(request, "console/fleet_by_itself.html", context, status=422 if form.errors else 200)


def _progress(row: Rebalance) -> dict[str, Any]:
    progress = selectors.progress_of(row)
    return {
        "row": row,
        "progress": progress,
        "left_s": _left_s(row, progress),
        "took_s": (row.finished_at - row.begun_at).total_seconds() if row.begun_at and row.finished_at else None,
        "changing": row.state in (*UNDER_WAY, RebalanceState.PLANNING),
        "note": _note(row),
    }


def _left_s(row: Rebalance, progress: selectors.Progress) -> float | None:
    """Of one that is under way: the estimate, less what is copied already."""
    if row.estimated_s is None or row.state not in UNDER_WAY:
        return None
    if not progress.bytes_to_copy:
        return 0
    return row.estimated_s * max(0, progress.bytes_to_copy - progress.copied_bytes) / progress.bytes_to_copy


def _wished(row: Rebalance) -> list[tuple[str, str]]:
    """What was asked for, in words; a rollback is asked for nothing."""
    if row.rollback_of_id:
        return []
    wishes = row.wishes
    named = (("draining", "Drain brokers"), ("cordoned", "Cordon brokers"), ("demoted", "Demote brokers"))
    found = [(title, ", ".join(map(str, wishes[name]))) for name, title in named if wishes.get(name)]
    found.append(("Goals", ", ".join(GOALS[Goal(name)].lower() for name in wishes["goals"]) or "none"))
    found.append(("Instances", ", ".join(wishes.get("instances", ())) or "all"))
    if wishes.get("leaders_only"):
        found.append(("Copies", "only off drained brokers: leaders change elsewhere"))
    if wishes.get("in_windows"):
        found.append(("When", "in the maintenance windows of instances that have one"))
    if "margin_percent" in wishes:
        found.append(("Tolerance", f"{wishes['margin_percent']} % of the average"))
    return found


def _told(event: RebalanceEvent) -> str:
    """What an event adds to its title."""
    if event.action != "pace":
        return ""
    return f"to {in_bytes(event.detail['throttle_bytes_per_s'])}/s, {event.detail['at_once']} partitions at once"


def _acts(row: Rebalance, actor: str) -> list[Act]:
    """Those that its state allows, without those that would be refused."""
    refused = set()
    if row.approved_by or row.created_by == actor:
        refused.add("approve")
    if _waits_for_approval(row) or not (row.summary or {}).get("moves"):
        refused.add("carry_out")
    return [act for act in ACTS if row.state in act.states and act.name not in refused]


def _waits_for_approval(row: Rebalance) -> bool:
    needed = settings.ENVIRONMENT.rebalance_approval and not row.approved_by
    return needed and row.state == RebalanceState.PROPOSED


def _note(row: Rebalance) -> str:
    """What the operation says of itself."""
    if row.operation is None or row.state in (*OVER, RebalanceState.PROPOSED):
        return ""
    notes = [step["note"] for step in row.operation.steps if step["note"]]
    return notes[-1] if notes else ""


def _context(request: HttpRequest, row: Rebalance) -> dict[str, Any]:
    summary = row.summary or {"brokers": [], "tenants": [], "scores": {}, "stuck": [], "notes": []}
    limits = {each["instance"]: each["limit"] for each in summary["tenants"]}
    giving = selectors.moves_of(row).filter(returns_bytes_per_s__gt=0, instance__in=limits)[:MOST_SENTENCES]
    page = listing(request, selectors.moves_of(row), size=MOVES)
    return {
        **_progress(row),
        "summary": summary,
        "brokers": [(each["broker"], _cells(each["before"], each["after"])) for each in summary["brokers"]],
        "tenants": summary["tenants"],
        "goals": GOALS.values(),
        "sentences": [
            returned(
                move.instance,
                move.topic.partition(".")[2],
                move.partition,
                move.returns_bytes_per_s,
                limits[move.instance],
            )
            for move in giving
        ],
        "acts": _acts(row, request.user.email),  # type: ignore[union-attr]  # staff_page has looked
        "waits_for_approval": _waits_for_approval(row),
        "wished": _wished(row),
        "may_pace": row.state in (RebalanceState.PROPOSED, *UNDER_WAY),
        "events": [(EVENTS.get(event.action, event.action), _told(event), event) for event in selectors.events_of(row)],
        "listing": page,
        "moves": list(page.page.object_list),
    }


def _cells(before: Mapping[str, int], after: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """By goal: its title, and both numbers as they are shown: what is too little to be seen is no change."""
    return [(title, _shown(goal, before[goal]), _shown(goal, after[goal])) for goal, title in GOALS.items()]


def _shown(goal: Goal, value: int) -> str:
    return {"amount": amount, "bytes": in_bytes, "rate": rate}[_written(goal)](value)


def _balance(name: str, seen: dict[str, Any] | None) -> dict[str, Any]:
    if seen is None:
        return {"name": name, "at": None}
    document = seen["document"]
    most = {goal: max((row["loads"][goal] for row in document["brokers"]), default=0) for goal in GOALS}
    return {
        "name": name,
        "at": seen["at"],
        "brokers": [
            {
                "id": row["broker"],
                "away": row["away"],
                "cells": [(title, _written(goal), row["loads"][goal], most[goal]) for goal, title in GOALS.items()],
            }
            for row in document["brokers"]
        ],
        "skews": [(title, skew_percent(document, goal)) for goal, title in GOALS.items()],
        "short": document["short"],
        "short_count": document["short_count"],
        "notes": document["notes"],
    }


def _written(goal: Goal) -> str:
    return "amount" if goal in COUNTED else "bytes" if goal in STORED else "rate"
