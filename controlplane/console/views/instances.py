"""Instances: the list, a new one, the page of one, its settings, its end."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Case, Q, When
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.accounts.scopes import ALARMS, TOPICS_CHANGE
from controlplane.admission import endings, prepaid, purchases, scheduling
from controlplane.admission.models import ScheduledState
from controlplane.admission.places import zones_offered
from controlplane.alarms.selectors import alarms_firing
from controlplane.billing import selectors as billing
from controlplane.clusters.selectors import ports_by_owner, ports_of
from controlplane.clusters.services import cluster_list
from controlplane.console.advice import said
from controlplane.console.connecting import guide
from controlplane.console.flow import directions, flow_of, transactions_of
from controlplane.console.forms.base import plain
from controlplane.console.forms.instances import (
    InstanceChangeForm,
    InstanceConfigForm,
    InstanceCreateForm,
    InstanceDeletionForm,
    InstanceSettingsForm,
)
from controlplane.console.listing import chosen, kept, listing, order_asked, ordered, searched
from controlplane.console.once import made_once
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked, proof_asked_where
from controlplane.console.views.access.certificates import certificate_of
from controlplane.core import operations, origin
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict, Invalid, NotFound, SluiceError
from controlplane.core.models import OperationState
from controlplane.core.selectors import operation_list
from controlplane.health.rules import HEALTH_STATES
from controlplane.health.selectors import SEEN, health_get, with_health_seen
from controlplane.instances import lifecycle, selectors, validation
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.spec import config_of
from controlplane.instances.windows import hours_text
from controlplane.policies.rules import KINDS
from controlplane.policies.selectors import problem_get
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import allocation_of, flows_get

if TYPE_CHECKING:
    from django.http import HttpRequest

    from controlplane.accounts.selectors import Caller
    from controlplane.core.models import Operation

CHANGING = (InstanceState.CREATING, InstanceState.RESTORING, InstanceState.DELETING)
SIZES = ("bandwidth_mib_per_s", "storage_gib", "partitions")
COLUMNS = ("name", "state", "health", "bandwidth_mib_per_s", "storage_gib", "created_at")
SORTED = {name: name for name in COLUMNS} | {"health": SEEN}
"""What the list can be sorted by, and where the database has it: its column *State* by health, the worst first."""
MOST_OTHERS = 50
PROPOSED = ("bandwidth_mib_per_s", "storage_gib")
FIRST_SIZE = {"bandwidth_mib_per_s": 20, "storage_gib": 100, "partitions": 300}


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Every instance with its state, size and use. While one changes its state, the rows come again every 2 s."""
    search, health = searched(request), chosen(request, "health", HEALTH_STATES)
    rows = selectors.instance_list(organisation=caller.organisation, only=caller.limits.instances)
    if search:
        rows = rows.filter(Q(name__icontains=search) | Q(id__icontains=search))
    order = order_asked(request, SORTED)
    if health or (order is not None and order.field == "health"):
        rows = with_health_seen(rows, state=health)
    rows = rows.order_by("-created_at", "pk") if order is None else ordered(rows, order, SORTED)
    shown = listing(request, rows, search=search)
    instances: list[Instance] = list(shown.page.object_list)
    names = [instance.id for instance in instances]
    routes, ports = selectors.routes_by_instance(names), ports_by_owner(names)
    figures = figures_get(instances, flows_get)
    flows = figures.documents
    healths = health_get(instances, figures=figures)
    context = {
        "listing": shown,
        "rows": [
            (
                instance,
                selectors.bootstrap_of(routes.get(instance.id, []), ports.get(instance.id, [])),
                flows.get(instance.id),
                healths.get(instance.id),
            )
            for instance in instances
        ],
        "order": order,
        "health_chosen": health,
        "health_states": HEALTH_STATES,
        "keeps": kept(request, "health", "sort"),
        "figures": figures,
        "changing": any(instance.state in CHANGING for instance in instances),
    }
    part = request.htmx and not request.htmx.boosted  # type: ignore[attr-defined]
    makes_first = not (instances or search or health) and caller.may_change and caller.limits.instances is None
    if makes_first and not part:
        first = _form_of_new(request, caller)
        context |= first | _estimate(caller, first["form"], first["form"].initial)
    return render(request, "console/parts/instance_rows.html" if part else "console/instances.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: bool(request.POST.get("prepaid_months")))
def new(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Choose a size, see the price, create. The first one leads on to its first topic."""
    context = _form_of_new(request, caller)
    form = context["form"]
    if request.method == "POST" and form.is_valid():
        try:
            made = made_once(request, caller, form, lambda: _bought(caller, form))
        except SluiceError as error:
            form.refuse(error)
        else:
            is_first = not selectors.instance_list(organisation=caller.organisation).exclude(pk=made).exists()
            goes_on = is_first and caller.may_do(TOPICS_CHANGE)
            return redirect("console:topic_new" if goes_on else "console:instance", caller.organisation.id, made)
    context |= _estimate(caller, form, form.initial)
    return render(request, "console/instance_new.html", context, status=422 if form.errors else 200)


def _form_of_new(request: HttpRequest, caller: Caller) -> dict[str, Any]:
    """The form of a new instance: of its page, and of the list as long as there is none."""
    form = InstanceCreateForm(
        request.POST or None,
        initial={**FIRST_SIZE, "name": ""},
        pays=caller.limits.pays,
        **_places_to_choose(caller),
    )
    return {"form": form, "address": origin.address_of(request)}


def _bought(caller: Caller, form: InstanceCreateForm) -> str:
    """The id of what was bought. Raises SluiceError."""
    instance, _ = purchases.instance_buy(organisation=caller.organisation, actor=caller.actor, **form.bought)
    return str(instance.id)


def _places_to_choose(caller: Caller) -> dict[str, Any]:
    """Zones and instances that a wish can name; nothing where there is one cluster and no zone."""
    zones = [name for name, takes_new in zones_offered().items() if takes_new]
    if len(cluster_list()) == 1:
        return {"zones": zones}
    rows = selectors.instance_list(organisation=caller.organisation, only=caller.limits.instances)
    rows = rows.order_by("-created_at", "pk")
    return {"zones": zones, "others": list(rows.values_list("pk", "name")[:MOST_OTHERS])}


@require_safe
@tenant_page
def estimate(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The price slip beside a form, while its numbers are being typed.

    Where one is empty as yet, the last slip stays; what can be no size has no price, and the slip says so.
    """
    form = InstanceSettingsForm(request.GET)
    form.is_valid()
    context = _estimate(caller, form, {})
    if context["price"] is None:
        context["wrong"] = [
            (form[name].label, error) for name in SIZES if form.data.get(name) for error in form[name].errors
        ]
        if not context["wrong"] and request.htmx:  # type: ignore[attr-defined]
            return HttpResponse(status=204)
    instance_id = request.GET.get("instance", "").replace("\x00", "")
    if instance_id:
        rows = selectors.instance_list(organisation=caller.organisation, only=caller.limits.instances)
        instance = rows.filter(pk=instance_id).first()
        if instance is None:
            raise NotFound(f"no instance {instance_id}")
        context["price_now"] = _price_of(caller, _sizes_now(instance))
    return render(request, "console/parts/price.html", context)


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The page of one instance: how to connect, and how much of it is used."""
    instance = selectors.instance_get(organisation=caller.organisation, instance_id=instance_id)
    ports = ports_of(instance.id)
    routes = selectors.routes_wanted(instance.id)
    bootstrap = selectors.bootstrap_of(routes, ports)
    figures = figures_get([instance], allocation_of)
    document = figures.documents.get(instance.id, {})
    flow = flow_of(instance, document)
    last = _last(caller, instance)
    is_tls = routes[0].security.endswith("ssl")
    context = {
        "instance": instance,
        "is_tls": is_tls,
        "certificate": certificate_of(instance, routes[0].key) if is_tls else None,
        "health": health_get([instance], figures=figures).get(instance.id),
        "tab": "overview",
        "bootstrap": bootstrap,
        "limits": selectors.limits_shown(instance, ports),
        "transactions": transactions_of(document),
        "config": config_of(instance.config),
        "window": instance.maintenance_window,
        "window_hours": hours_text(instance.maintenance_window),
        **guide(instance, routes[0], bootstrap),
        "firing": alarms_firing(instance) if caller.limits.covers(ALARMS, changes=False) else [],
        "policy_problem": problem_get(instance),
        "paid_until": prepaid.paid_until(instance) if caller.limits.pays else None,
        "has_expired": instance.state == InstanceState.ISOLATED
        and prepaid.prepaid_of(instance, SYSTEM_CLOCK.now()).has_expired,
        "scheduled": scheduling.change_list(organisation=caller.organisation, instance_id=instance.id)
        .filter(state=ScheduledState.WAITING)
        .order_by("at")
        .first(),
        "flow": flow,
        "directions": directions(flow),
        "figures": figures,
        "operation": last if last and last.state == OperationState.RUNNING else None,
        "failed": last if last and last.state == OperationState.FAILED else None,
    }
    return render(request, "console/instance.html", context)


@require_safe
@tenant_page
def health(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """How an instance is: this part of its page asks again every 5 s, and takes the state beside its name along."""
    instance = selectors.instance_get(organisation=caller.organisation, instance_id=instance_id)
    context = {
        "instance": instance,
        "health": health_get([instance]).get(instance.id),
        "again": True,
        "health_url": request.path,
    }
    return render(request, "console/parts/health.html", context)


@require_safe
@tenant_page
def status(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The part of an instance's page that shows what is being done to it. At the end the whole page comes again."""
    instance = selectors.instance_any(organisation=caller.organisation, instance_id=instance_id)
    operation = running(caller, instance)
    response = render(request, "console/parts/status.html", {"instance": instance, "operation": operation})
    if instance.state == InstanceState.DELETED:
        messages.success(request, f"{instance.name} was deleted. Its bill stays under Bills.")
        response.headers["HX-Redirect"] = reverse("console:instances", args=[caller.organisation.id])
    elif operation is None:
        response.headers["HX-Refresh"] = "true"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def settings(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Another name or size, deletion protection, maintenance window. Only what was changed is sent on."""
    instance = selectors.instance_get(organisation=caller.organisation, instance_id=instance_id)
    window = instance.maintenance_window
    now = {
        **_sizes_now(instance),
        "deletion_protection": instance.deletion_protection,
        "maintenance_window": window,
    }
    first = {f"window_{name}": value for name, value in (window or {"hour_utc": 3, "length_hours": 2}).items()}
    form = InstanceChangeForm(request.POST or None, now=now, initial={**now, **first, **_proposed(request)})
    if request.method == "POST" and form.is_valid():
        changes = form.changed({name: form.cleaned_data[name] for name in now})
        if not changes:
            messages.info(request, "Nothing was changed.")
            return redirect("console:instance_settings", caller.organisation.id, instance.id)
        try:
            _change(request, caller, instance, form, changes)
        except SluiceError as error:
            form.refuse(error)
        else:
            is_later = form.cleaned_data["at"] or form.cleaned_data["in_next_window"]
            page = "instance_settings" if is_later else "instance"
            return redirect(f"console:{page}", caller.organisation.id, instance.id)
    scheduled = scheduling.change_list(organisation=caller.organisation, instance_id=instance.id)
    waiting_first = Case(When(state=ScheduledState.WAITING, then=0), default=1)
    context = {
        "instance": instance,
        "tab": "settings",
        "form": form,
        "scheduled": scheduled.order_by(waiting_first, "-created_at")[: scheduling.MOST_WAITING],
        "price_of": instance,
        "price_now": _price_of(caller, now),
        **_estimate(caller, form, now),
    }
    return render(request, "console/instance_settings.html", context, status=422 if form.errors else 200)


def _proposed(request: HttpRequest) -> dict[str, Any]:
    """Sizes that the address proposes (`?bandwidth_mib_per_s=12`); what is no size is left out. Nothing is bought by looking."""
    found: dict[str, Any] = {}
    for name in PROPOSED:
        with suppress(ValueError):
            size = float(request.GET.get(name, ""))
            if not validation.RULES[name](size):
                found[name] = plain(size)
    return found


def _change(
    request: HttpRequest, caller: Caller, instance: Instance, form: InstanceChangeForm, changes: dict[str, Any]
) -> None:
    """Now, or at the moment that was typed. Raises SluiceError."""
    at = form.cleaned_data["at"]
    asked = {
        "organisation": caller.organisation,
        "actor": caller.actor,
        "instance_id": instance.id,
        "changes": changes,
        "accept_full_storage": form.cleaned_data["accept_full_storage"],
        "confirm_price": form.cleaned_data["confirm_price"],
        "admit_paying": caller.limits.admit_paying,
    }
    if form.cleaned_data["in_next_window"]:
        at = scheduling.next_window(organisation=caller.organisation, instance_id=instance.id)
    if not at:
        purchases.instance_change(**asked)
        messages.success(request, "The change is on its way to the brokers; clients stay connected.")
        return
    if set(changes) - set(SIZES):
        raise Invalid.field("at", "only sizes are changed later: change name, protection and window without it")
    scheduling.change_schedule(**asked, at=at, in_window=form.cleaned_data["in_next_window"])
    messages.success(request, f"The change is scheduled for {at:%Y-%m-%d %H:%M} UTC.")


@require_POST
@tenant_page
def unschedule(request: HttpRequest, caller: Caller, instance_id: str, change_id: str) -> HttpResponse:
    """Cancel a change that waits for its time."""
    try:
        scheduling.change_cancel(
            organisation=caller.organisation, actor=caller.actor, instance_id=instance_id, change_id=change_id
        )
    except Conflict as error:
        messages.error(request, said(error))
    else:
        messages.success(request, "The change is cancelled.")
    return redirect("console:instance_settings", caller.organisation.id, instance_id)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def config(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The defaults that topics of an instance have, and a form for others."""
    instance = selectors.instance_get(organisation=caller.organisation, instance_id=instance_id)
    form = InstanceConfigForm(request.POST or None, instance=instance)
    if request.method == "POST" and form.is_valid():
        changes = form.changes
        if not changes:
            messages.info(request, "Nothing was changed.")
            return redirect("console:instance_config", caller.organisation.id, instance.id)
        try:
            caller.limits.admit_config(changes)
            purchases.instance_change(
                organisation=caller.organisation,
                actor=caller.actor,
                instance_id=instance.id,
                changes={"config": changes},
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, "The change is on its way to the brokers; clients stay connected.")
            return redirect("console:instance", caller.organisation.id, instance.id)
    context = {"instance": instance, "tab": "settings", "form": form}
    return render(request, "console/instance_config.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Delete, once its name was typed: for the grace period, or at once where there is none or an owner says so."""
    instance = selectors.instance_get(organisation=caller.organisation, instance_id=instance_id)
    grace = lifecycle.grace_period()
    keeps = bool(grace) and instance.state in lifecycle.HAVE_DATA
    asks_at_once = keeps and caller.may_manage
    form = InstanceDeletionForm(request.POST or None, name=instance.name, asks_at_once=asks_at_once)
    if request.method == "POST" and form.is_valid():
        try:
            if instance.state == InstanceState.ISOLATED or form.cleaned_data.get("at_once"):
                name = form.cleaned_data["confirmation"]
                endings.instance_destroy(caller=caller, instance_id=instance.id, confirmation=name)
            else:
                endings.instance_delete(organisation=caller.organisation, actor=caller.actor, instance_id=instance.id)
        except SluiceError as error:
            form.refuse(error)
        else:
            return redirect("console:instance", caller.organisation.id, instance.id)
    context = {
        "instance": instance,
        "tab": "settings",
        "form": form,
        "keeps_until": SYSTEM_CLOCK.now() + grace if keeps else None,
    }
    return render(request, "console/instance_delete.html", context, status=422 if form.errors else 200)


@require_POST
@tenant_page
def restore(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Open an isolated instance again."""
    try:
        lifecycle.instance_restore(organisation=caller.organisation, actor=caller.actor, instance_id=instance_id)
    except Conflict as error:
        messages.error(request, said(error))
    return redirect("console:instance", caller.organisation.id, instance_id)


def running(caller: Caller, instance: Instance) -> Operation | None:
    """What is being done to it."""
    last = _last(caller, instance)
    return last if last and last.state == OperationState.RUNNING else None


def _last(caller: Caller, instance: Instance) -> Operation | None:
    """What is being done, or was done last: a running one before any that came after it.

    Of what a policy did or could not do, only what is under way: no person has asked for it.
    """
    rows = operation_list(organisation=caller.organisation).filter(target=instance.id)
    rows = rows.exclude(~Q(state=OperationState.RUNNING), kind__in=KINDS).exclude(kind__in=operations.kinds_beside())
    running = Case(When(state=OperationState.RUNNING, then=0), default=1)
    return rows.order_by(running, "-created_at").first()


def _sizes_now(instance: Instance) -> dict[str, Any]:
    """The name as well: all that the form of settings has."""
    return {name: plain(getattr(instance, name)) for name in InstanceSettingsForm.base_fields}


def _estimate(caller: Caller, form: InstanceSettingsForm, otherwise: dict[str, Any]) -> dict[str, Any]:
    """The price, and what it is of: the sizes in a form, or others where these are no sizes."""
    sizes = getattr(form, "cleaned_data", {}) if form.is_bound else form.initial
    price = _price_of(caller, sizes)
    if price is None:
        price, sizes = _price_of(caller, otherwise), otherwise
    return {"price": price, "sizes": sizes, "in_advance": _in_advance(caller, sizes) if price else None}


def _in_advance(caller: Caller, sizes: dict[str, Any]) -> prepaid.Quote | None:
    """A month of it; None: under the plan of the organisation, or by the role, none can be paid in advance."""
    if not caller.limits.pays:
        return None
    try:
        return prepaid.prepaid_quote(
            organisation=caller.organisation, months=1, sizes={name: sizes[name] for name in SIZES}
        )
    except Conflict:
        return None


def _price_of(caller: Caller, members: dict[str, Any]) -> billing.Estimate | None:
    sizes = {name: members.get(name) for name in SIZES}
    if any(validation.RULES[name](size) for name, size in sizes.items()):
        return None
    plan = billing.plan_counted(organisation=caller.organisation, at=SYSTEM_CLOCK.now())
    return billing.estimate(**sizes, plan=plan)  # type: ignore[arg-type]  # the rules have looked at them
