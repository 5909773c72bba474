"""Configurations: all of one topic, and the same ones changed for several topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.console.forms.topic_batches import TopicsConfigureForm, lines_asked
from controlplane.console.listing import searched
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_where
from controlplane.console.views.topics import fits, tag_chosen, tags_of
from controlplane.core.errors import SluiceError
from controlplane.instances.selectors import instance_get
from controlplane.topics import batches, configs, selectors
from quota.contracts.namespace import AUDIT_TOPIC

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_safe
@tenant_page
def of_topic(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """Every configuration with its value, its default, where it comes from, and what it does."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    rows = configs.topic_configs(organisation=caller.organisation, instance_id=instance_id, name=topic)
    context = {"instance": instance, "tab": "topics", "topic": topic, "rows": rows}
    return render(request, "console/topic_configs.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: "change" in request.POST)
def of_several(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Choose topics and values, see what would change for each, and change them by one operation."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    views = [
        view
        for view in selectors.topic_list(organisation=caller.organisation, instance_id=instance_id)
        if view.topic.name != AUDIT_TOPIC
    ]
    search, tag = searched(request), tag_chosen(request)
    fitting = [view.topic.name for view in views if fits(view, search, tag)]
    chosen = request.POST.getlist("topics") if request.method == "POST" else []
    offered = fitting[: batches.MOST_TOPICS]
    # What was chosen stays on the page, whatever it is narrowed to now.
    there = {view.topic.name for view in views}
    offered += [name for name in dict.fromkeys(chosen) if name in there and name not in set(offered)]
    context: dict[str, Any] = {
        "instance": instance,
        "tab": "topics",
        "search": search,
        "tag": tag,
        "tags": tags_of(views),
        "more": len(fitting) - len(fitting[: batches.MOST_TOPICS]),
        "none_at_all": not views,
        "form": None,
        "preview": None,
    }
    if not offered:
        return render(request, "console/topics_configure.html", context)
    rows = configs.configs_of(instance, offered[0])
    # More lines are no change yet: what was typed comes back unjudged.
    grows = request.method == "POST" and "more" in request.POST
    form = TopicsConfigureForm(
        None if grows else request.POST or None,
        topics=offered,
        settable=[row.name for row in rows if not row.is_read_only],
        lines=lines_asked(request.POST),
        initial=request.POST.dict() | {"topics": chosen or request.GET.getlist("topic")},
    )
    if request.method == "POST" and not grows and form.is_valid():
        asked = {
            "organisation": caller.organisation,
            "instance_id": instance.id,
            "names": form.cleaned_data["topics"],
            "config": form.changes,
        }
        try:
            if "change" in request.POST:
                operation = batches.topics_configure(actor=caller.actor, **asked)
                messages.success(request, "The topics are being changed.")
                return redirect("console:operation", caller.organisation.id, operation.id)
            context["preview"] = batches.topics_configure_preview(**asked)
        except SluiceError as error:
            form.refuse(error)
    preview = context["preview"] or ()
    context |= {"form": form, "first": offered[0], "changing": sum(each.outcome == batches.CHANGED for each in preview)}
    return render(request, "console/topics_configure.html", context, status=422 if form.errors else 200)
