"""Throttle rules of an instance: listed, made, changed, deleted. The page Quota shows the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.api.sorting import in_order
from controlplane.console.forms.throttle_rules import FORMS, KINDS, RulesForm
from controlplane.console.listing import kept, listing, order_asked
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.console.rules import whom
from controlplane.core.errors import SluiceError, Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.throttle_rules import selectors, services
from quota.contracts.rules import RuleKind

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Those that fit the filter in the address. A cluster that is away is said calmly."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    form, away = RulesForm({name: request.GET.get(name, "") for name in RulesForm.base_fields}), None
    order, rules, found = order_asked(request, selectors.SORTED), [], []
    try:
        rules = selectors.throttle_rule_list(organisation=caller.organisation, instance_id=instance.id)
    except Unavailable as error:
        away = error
    if form.is_valid():
        found = selectors.fitting(rules, **form.cleaned_data)
    if order is not None:
        found = in_order(found, order, value=selectors.SORTED[order.field], key=lambda rule: rule.id)
    page = listing(request, found)
    context = {
        **_frame(instance),
        "form": form,
        "filtered": any(form.data.values()),
        "listing": page,
        "rules": [(rule, whom(rule)) for rule in page.page.object_list],
        "none_at_all": not rules and away is None,
        "away": away,
        "order": order,
        "keeps": kept(request, "sort"),
    }
    status = 503 if away else 422 if form.errors else 200
    return render(request, "console/throttle_rules.html", context, status=status)


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
            return _to_rules(caller, instance)
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
            return _to_rules(caller, instance)
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
    return _to_rules(caller, instance)


def _frame(instance: Instance) -> dict[str, object]:
    return {"instance": instance, "tab": "quota", "part": "rules", "running": instance.state == InstanceState.RUNNING}


def _to_rules(caller: Caller, instance: Instance) -> HttpResponse:
    return redirect("console:throttle_rules", caller.organisation.id, instance.id)
