"""Routes of an instance: another one, the page of one with what to paste into a client, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.console.connecting import guide
from controlplane.console.forms.routes import RouteForm, RouteRemovalForm
from controlplane.console.once import made_once
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked, proof_asked_if
from controlplane.console.views.access.certificates import certificate_of
from controlplane.core.errors import SluiceError
from controlplane.core.whitelist import whitelist_widens
from controlplane.instances.models import RouteState
from controlplane.instances.selectors import instance_get
from controlplane.routes import selectors, services

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller

COUNTS = {"connections", "connections_per_address"}
"""Members of a route that let in no other clients than before, only more or fewer of them."""


def _lets_in(request: HttpRequest, caller: Caller, instance_id: str, route_id: str) -> bool:
    """Whether a change may let others in, or lead clients elsewhere: all but those of which it is plain that they do not."""
    route = selectors.route_get(organisation=caller.organisation, instance_id=instance_id, route_id=route_id)
    form = RouteForm(request.POST, route=route)
    if not form.is_valid():
        return False
    changes = form.changes()
    narrower: dict[str, Callable[[Any], bool]] = {
        "whitelist": lambda wanted: not whitelist_widens(route.whitelist, wanted),
        "public": lambda wanted: not wanted,
        "closes_at": lambda wanted: _is_no_later(wanted, route.closes_at),
    }
    return any(
        name not in narrower or not narrower[name](value) for name, value in changes.items() if name not in COUNTS
    )


def _is_no_later(wanted: datetime | None, now: datetime | None) -> bool:
    return wanted is not None and (now is None or wanted <= now)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def new(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Another way in."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    form = RouteForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            operation_id = made_once(
                request,
                caller,
                form,
                lambda: services.route_create(**caller.place(instance_id), members=form.members())[1].id,
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            return redirect("console:operation", caller.organisation.id, operation_id)
    context = {"instance": instance, "tab": "access", "form": form}
    return render(request, "console/route_new.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_if(_lets_in)
def shown(request: HttpRequest, caller: Caller, instance_id: str, route_id: str) -> HttpResponse:
    """One route: how to connect, and a form for its members. Only what was changed is sent on."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    route = selectors.route_get(organisation=caller.organisation, instance_id=instance_id, route_id=route_id)
    form = RouteForm(request.POST or None, route=route)
    if request.method == "POST" and form.is_valid():
        failed = route.state == RouteState.FAILED
        changes = form.changes() or (form.members() if failed else {})  # that one is tried again as it is
        if not changes:
            messages.info(request, "Nothing was changed.")
            return redirect("console:route", caller.organisation.id, instance.id, route_id)
        try:
            _, operation = services.route_update(**caller.place(instance_id), route_id=route_id, changes=changes)
        except SluiceError as error:
            form.refuse(error)
        else:
            return redirect("console:operation", caller.organisation.id, operation.id)
    context = {
        "instance": instance,
        "tab": "access",
        "form": form,
        "route": route,
        "failed": route.state == RouteState.FAILED,
        **guide(instance, route, route.bootstrap),  # type: ignore[attr-defined]
        "is_tls": route.security.endswith("ssl"),
        "certificate": certificate_of(instance, route_id) if route.security.endswith("ssl") else None,
    }
    return render(request, "console/route.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def removal(request: HttpRequest, caller: Caller, instance_id: str, route_id: str) -> HttpResponse:
    """Remove one, once it was said that this is meant."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    route = selectors.route_get(organisation=caller.organisation, instance_id=instance_id, route_id=route_id)
    form = RouteRemovalForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            operation = services.route_delete(**caller.place(instance_id), route_id=route_id)
        except SluiceError as error:
            form.refuse(error)
        else:
            return redirect("console:operation", caller.organisation.id, operation.id)
    context = {"instance": instance, "tab": "access", "form": form, "route": route}
    return render(request, "console/route_remove.html", context, status=422 if form.errors else 200)
