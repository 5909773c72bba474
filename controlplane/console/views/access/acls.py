"""ACLs of an instance: listed, made one by one or as a program needs them, deleted."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.access import acls, selectors
from controlplane.access.cut_off import acls_cut_off
from controlplane.admission import purchases
from controlplane.api.sorting import in_order
from controlplane.console.forms.access import AclForm, AclRulesForm, PresetForm
from controlplane.console.listing import kept, listing, order_asked, searched
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_if, proof_asked_where
from controlplane.console.views.access.proposal import TRY, tried
from controlplane.core.errors import Conflict, SluiceError, Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import config_of
from quota.contracts.acls import Permission

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.http import HttpRequest, HttpResponse

    from controlplane.access.cut_off import ClientsCutOff
    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance
    from quota.contracts.acls import Acl

SHOWN = "cut_off_shown"
IN_FORCE = "in force within 2 seconds, on open connections too."


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Every ACL, those of Kafka's clients too."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    search, away = searched(request), None
    found: list[Acl] = []
    try:
        found = selectors.acl_list(organisation=caller.organisation, instance_id=instance.id)
    except (Unavailable, Conflict) as error:
        away = error
    order = order_asked(request, selectors.ACLS_SORTED)
    if order is not None:
        found = in_order(found, order, value=selectors.ACLS_SORTED[order.field], key=selectors.acl_key)
    rows = [acl for acl in found if search.lower() in " ".join(acl.document().values()).lower()]
    context = {
        "instance": instance,
        "tab": "access",
        "part": "acls",
        "running": instance.state == InstanceState.RUNNING,
        "away": away,
        "none_at_all": not found,
        "config": config_of(instance.config),
        "listing": listing(request, rows, search=search),
        "order": order,
        "keeps": kept(request, "sort"),
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "console/parts/acl_rows.html", context)
    return render(request, "console/acls.html", context, status=503 if isinstance(away, Unavailable) else 200)


def _lets_in(request: HttpRequest) -> bool:
    return TRY not in request.POST and request.POST.get("permission") != Permission.DENY.name


def _loosens(request: HttpRequest, caller: Caller, instance_id: str) -> bool:
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    now = config_of(instance.config)
    form = AclRulesForm(request.POST, now=now)
    if not form.is_valid():
        return False
    changes = form.changes
    return bool(
        changes.get("allow_everyone_if_no_acl_found") or set(changes.get("super_users", ())) - set(now["super_users"])
    )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(_lets_in)
def new(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """One ACL."""
    form = AclForm(request.POST or None)
    return _made(
        request,
        caller,
        instance_id,
        form,
        lambda place: acls.acls_create(**place, acls=[form.acl()]),
        lambda: [form.acl()],
        "acl_new",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: TRY not in request.POST)
def preset(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The ACLs that a producer or a consumer needs."""
    form = PresetForm(request.POST or None)
    return _made(
        request,
        caller,
        instance_id,
        form,
        lambda place: acls.acls_preset(**place, **form.wanted()),
        lambda: acls.preset_wanted(**form.wanted()),
        "acl_preset",
    )


def _made(
    request: HttpRequest,
    caller: Caller,
    instance_id: str,
    form: AclForm | PresetForm,
    make: Callable[[dict[str, Any]], list[Acl]],
    wanted: Callable[[], list[Acl]],
    template: str,
) -> HttpResponse:
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    cut: list[ClientsCutOff] = []
    if request.method == "POST" and form.is_valid():
        try:
            if TRY in request.POST:
                return tried(request, caller, instance, acls_added=wanted())
            cut = acls_cut_off(organisation=caller.organisation, instance_id=instance.id, added=wanted())
            if form.cleaned_data["accept_cut_off"] and request.POST.get(SHOWN) == _digest(cut):
                cut = []
            found = [] if cut else make(caller.place(instance.id))
        except SluiceError as error:
            form.refuse(error)
        else:
            if cut:
                return _shown(request, instance, form, template, cut)
            said = f"1 ACL is {IN_FORCE}" if len(found) == 1 else f"{len(found)} ACLs are {IN_FORCE}"
            messages.success(request, said)
            return redirect("console:acls", caller.organisation.id, instance.id)
    return _shown(request, instance, form, template, cut)


def _digest(cut: Sequence[ClientsCutOff]) -> str:
    """What was confirmed is the list that was shown, and no other that has come about since.

    Which clients there are is left out: where many come and go, no two lists would be the same.
    """
    shown = [(each.topic, each.principal, each.operation, each.is_let_in) for each in cut]
    return hashlib.sha256(repr(shown).encode()).hexdigest()


def _shown(
    request: HttpRequest, instance: Instance, form: AclForm | PresetForm, template: str, cut: list[ClientsCutOff]
) -> HttpResponse:
    """The form, with the clients that it would cut off: then they are confirmed first."""
    context = {
        "instance": instance,
        "tab": "access",
        "part": "acls",
        "form": form,
        "cut": cut,
        "cut_digest": _digest(cut),
    }
    return render(request, f"console/{template}.html", context, status=422 if form.errors or cut else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_if(_loosens)
def rules(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """What holds where no ACL decides: for what has none, and for super users."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    form = AclRulesForm(request.POST or None, now=config_of(instance.config))
    if request.method == "POST" and form.is_valid():
        try:
            if form.changes:
                caller.limits.admit_config(form.changes)
                at = {"organisation": caller.organisation, "actor": caller.actor, "instance_id": instance.id}
                purchases.instance_change(**at, changes={"config": form.changes})
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.info(request, f"It is {IN_FORCE}" if form.changes else "Nothing was changed.")
            return redirect("console:acls", caller.organisation.id, instance.id)
    context = {"instance": instance, "tab": "access", "part": "acls", "form": form}
    return render(request, "console/acl_rules.html", context, status=422 if form.errors else 200)


@require_POST
@tenant_page
@proof_asked_where(lambda request: TRY not in request.POST)
def delete(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The one whose row it was; clients that would be cut off or let in by it are confirmed first."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    form = AclForm(request.POST)
    if TRY in request.POST and form.is_valid():
        return tried(request, caller, instance, acls_removed=[form.acl()])
    if form.is_valid():
        cut = acls_cut_off(organisation=caller.organisation, instance_id=instance.id, removed=form.just_this().takes)
        if cut and not (form.cleaned_data["accept_cut_off"] and request.POST.get(SHOWN) == _digest(cut)):
            form.fields["accept_cut_off"].label = "I know that these clients will be refused, or let in"
            return _shown(request, instance, form, "acl_delete", cut)
    gone = form.is_valid() and acls.acls_delete(**caller.place(instance.id), wanted=form.just_this())
    if gone:
        messages.success(request, f"1 ACL was deleted, {IN_FORCE}")
    else:
        messages.info(request, "There is no such ACL any more.")
    return redirect("console:acls", caller.organisation.id, instance.id)
