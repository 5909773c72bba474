"""Who may connect to an instance, and who may use a topic."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.console.forms.instances import WhitelistForm
from controlplane.console.forms.topics import TopicWhitelistForm
from controlplane.console.page import tenant_page
from controlplane.console.views.access.proposal import TRY, tried
from controlplane.core.errors import SluiceError
from controlplane.instances import services as instances
from controlplane.instances.selectors import instance_get
from controlplane.routes.selectors import route_list
from controlplane.topics import services as topics
from controlplane.topics.selectors import topic_get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller

IN_FORCE = "It is in force within 2 seconds, for open connections too."


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def of_instance(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The instance's."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    form = WhitelistForm(request.POST or None, initial={"cidrs": instance.whitelist})
    if request.method == "POST" and form.is_valid():
        try:
            if TRY in request.POST:
                return tried(request, caller, instance, whitelist=form.cleaned_data["cidrs"])
            instances.instance_whitelist_set(
                organisation=caller.organisation,
                actor=caller.actor,
                instance_id=instance.id,
                cidrs=form.cleaned_data["cidrs"],
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"The whitelist was changed. {IN_FORCE}")
            return redirect("console:instance_access", caller.organisation.id, instance.id)
    address = request.META.get("REMOTE_ADDR", "")
    context = {
        "instance": instance,
        "tab": "access",
        "form": form,
        "address": address,
        "covered": covers(instance.whitelist, address),
        "routes": route_list(organisation=caller.organisation, instance_id=instance.id),
    }
    return render(request, "console/instance_access.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def of_topic(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """One topic's, narrower than the instance's."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = topic_get(organisation=caller.organisation, instance_id=instance_id, name=topic)
    now = {"scope": "instance" if view.whitelist is None else "own", "cidrs": view.whitelist or []}
    form = TopicWhitelistForm(request.POST or None, initial=now)
    if request.method == "POST" and form.is_valid():
        try:
            topics.topic_whitelist_set(
                organisation=caller.organisation,
                actor=caller.actor,
                instance_id=instance.id,
                name=topic,
                cidrs=form.blocks(),
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"Who may use {topic} was changed. {IN_FORCE}")
            return redirect("console:topic", caller.organisation.id, instance.id, topic)
    context = {"instance": instance, "tab": "topics", "view": view, "form": form}
    return render(request, "console/topic_access.html", context, status=422 if form.errors else 200)


def covers(whitelist: Sequence[str], address: str) -> bool:
    """Whether a client at this address would be let in."""
    try:
        here = ip_address(address)
    except ValueError:
        return False
    return any(here in ip_network(block) for block in whitelist if ip_network(block).version == here.version)
