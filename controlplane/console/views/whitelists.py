"""Who may connect to an instance, and who may use a topic."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.accounts.scopes import TOPICS
from controlplane.api.sorting import in_order
from controlplane.console.forms.instances import WhitelistForm
from controlplane.console.forms.topics import TopicWhitelistForm
from controlplane.console.listing import order_asked
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_if
from controlplane.console.views.access.proposal import TRY, tried
from controlplane.core import origin
from controlplane.core.addresses import address_of
from controlplane.core.errors import SluiceError
from controlplane.core.whitelist import whitelist_widens
from controlplane.instances import services as instances
from controlplane.instances.selectors import instance_get
from controlplane.routes.selectors import SORTED, place_of, route_list
from controlplane.topics import services as topics
from controlplane.topics.selectors import topic_get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance

ADD = "add"
"""The button that puts an address on the list, beside what stands there: what was typed is not looked at. It is the caller's
own, or the one that a form names (`ADDRESS`), as the page of connections does for one that was refused."""
ADDRESS = "address"
IN_FORCE = "It is in force within 2 seconds, for open connections too."


def _lets_more_connect(request: HttpRequest, caller: Caller, instance_id: str) -> bool:
    if ADD in request.POST:
        return True
    form = WhitelistForm(request.POST)
    if TRY in request.POST or not form.is_valid():
        return False
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    return whitelist_widens(instance.whitelist, form.cleaned_data["cidrs"])


def _lets_more_use(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> bool:
    form = TopicWhitelistForm(request.POST)
    if not form.is_valid():
        return False
    view = topic_get(organisation=caller.organisation, instance_id=instance_id, name=topic)
    return whitelist_widens(view.whitelist, form.blocks())


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_if(_lets_more_connect)
def of_instance(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The instance's."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    address = origin.seen_at(request)
    covered = covers(instance.whitelist, address)
    adds = ADD in request.POST
    form = WhitelistForm(None if adds else request.POST or None, initial={"cidrs": instance.whitelist})
    if adds:
        refused = _add(request, caller, instance, address)
        if refused is None:
            return redirect("console:instance_access", caller.organisation.id, instance.id)
        form = WhitelistForm({"cidrs": "\n".join(instance.whitelist)}, initial={"cidrs": instance.whitelist})
        form.refuse(refused)
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
    order, found = order_asked(request, SORTED), route_list(organisation=caller.organisation, instance_id=instance.id)
    if order is not None:
        found = in_order(found, order, value=SORTED[order.field], key=place_of)
    context = {
        "instance": instance,
        "tab": "access",
        "form": form,
        "address": address,
        "covered": covered,
        "routes": found,
        "order": order,
    }
    return render(request, "console/instance_access.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_if(_lets_more_use)
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
            page = "topic" if caller.limits.covers(TOPICS, changes=False) else "topic_access"
            return redirect(f"console:{page}", caller.organisation.id, instance.id, topic)
    context = {"instance": instance, "tab": "topics", "view": view, "form": form}
    return render(request, "console/topic_access.html", context, status=422 if form.errors else 200)


def _add(request: HttpRequest, caller: Caller, instance: Instance, own: str) -> SluiceError | None:
    """Beside what stands there now, and not what was read before: somebody else may add one meanwhile. Says what refused it."""
    wanted, why = _wanted(request, instance.whitelist, own)
    if why is not None:
        messages.info(request, f"Nothing was changed: {why}.")
        return None
    try:
        instances.instance_whitelist_change(**caller.place(instance.id), add=[wanted])
    except SluiceError as error:
        return error
    messages.success(request, f"The whitelist was changed. {IN_FORCE}")
    return None


def _wanted(request: HttpRequest, whitelist: Sequence[str], own: str) -> tuple[str, str | None]:
    """The address that is to be added, and why it cannot be."""
    if ADDRESS not in request.POST:
        if not own:
            return own, "this server does not see your address"
        return own, "your address is on the list already" if covers(whitelist, own) else None
    try:
        wanted = str(address_of(request.POST[ADDRESS]))
    except ValueError:
        return "", "what was named is no address"
    return wanted, f"{wanted} is on the list already" if covers(whitelist, wanted) else None


def covers(whitelist: Sequence[str], address: str) -> bool:
    """Whether a client at this address would be let in."""
    try:
        here = ip_address(address)
    except ValueError:
        return False
    return any(here in ip_network(block) for block in whitelist if ip_network(block).version == here.version)
