"""Throttle rules of an instance: made, changed, deleted. The page Quota lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.console.forms.throttle_rules import FORMS
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.console.rules import whom
from controlplane.core.errors import SluiceError
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.throttle_rules import selectors, services
from quota.contracts.rules import RuleKind

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance

KINDS = {RuleKind.TOPIC: "Topics", RuleKind.CLIENT: "Clients", RuleKind.GROUP: "Consumer groups"}


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def new(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """A rule for topics, clients or consumer groups: which of them, the address says."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    asked = request.GET.get("kind")
    kind = RuleKind(asked) if asked in tuple(RuleKind) else RuleKind.TOPIC
    form = FORMS[kind](request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            rule = services.throttle_rule_create(**caller.place(instance.id), kind=kind, **form.cleaned_data)
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"{whom(rule)}: the limit is in force within 2 seconds.")
            return _to_quota(caller, instance)
    context = {**_frame(instance), "form": form, "kind": kind.value, "kinds": KINDS.items()}
    return render(request, "console/throttle_rule_new.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str, rule_id: str) -> HttpResponse:
    """One rule: whom it is for, and how much they may."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    rule = selectors.throttle_rule_get(organisation=caller.organisation, instance_id=instance.id, rule_id=rule_id)
    form_class = FORMS[rule.kind]
    known = form_class.of(rule)
    form = None if known is None else form_class(request.POST or None, initial=known)
    if request.method == "POST" and form is not None and form.is_valid():
        try:
            rule = services.throttle_rule_update(
                **caller.place(instance.id), rule_id=rule_id, changes=form.cleaned_data
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"{whom(rule)}: the limit is in force within 2 seconds.")
            return _to_quota(caller, instance)
    context = {**_frame(instance), "form": form, "rule": rule, "whom": whom(rule)}
    return render(request, "console/throttle_rule.html", context, status=422 if form and form.errors else 200)


@require_POST
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str, rule_id: str) -> HttpResponse:
    """It limits nobody any more."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    services.throttle_rule_delete(**caller.place(instance.id), rule_id=rule_id)
    messages.success(request, "The throttle rule was deleted. Within 2 seconds it limits nobody any more.")
    return _to_quota(caller, instance)


def _frame(instance: Instance) -> dict[str, object]:
    return {"instance": instance, "tab": "quota", "running": instance.state == InstanceState.RUNNING}


def _to_quota(caller: Caller, instance: Instance) -> HttpResponse:
    return redirect("console:instance_quota", caller.organisation.id, instance.id)
