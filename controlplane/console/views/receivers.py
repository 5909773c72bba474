"""Receivers of an instance's alarms: added, confirmed, tested, given another secret, deleted. A secret is shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts.scopes import BILLING
from controlplane.alarms import receivers, selectors
from controlplane.console.forms.alarms import CodeForm, ReceiverChangeForm, ReceiverForm
from controlplane.console.listing import listing, order_asked, ordered
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked, proof_asked_where
from controlplane.core.errors import SluiceError
from controlplane.instances.selectors import instance_get
from controlplane.mail import sender

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.alarms.models import Receiver

MESSAGE_ROWS = 20
NEW_SECRET = "secret"  # noqa: S105  # the button that asks for another one
SORTED = {"name": "name"}
"""The column that the list can be sorted by."""
CHANGED = "change"
"""The button that saves another name or address."""


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """All of them, ten at most, and a new one. The answer to the form is the page itself, with the secret in it."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    form, made, secret, remark = ReceiverForm(request.POST or None), None, None, None
    if request.method == "POST" and form.is_valid():
        try:
            made, secret = receivers.receiver_create(**caller.place(instance.id), **form.cleaned_data)
        except SluiceError as error:
            form.refuse(error)
        else:
            if secret is None:
                messages.success(request, f"A code was sent to {made.address}.")
                return redirect("console:receiver", caller.organisation.id, instance.id, made.pk)
            typed = form.cleaned_data
            remark = receivers.address_problem(kind=typed["kind"], address=typed["address"])
            form = ReceiverForm()
    order = order_asked(request, SORTED)
    every = selectors.receiver_list(organisation=caller.organisation, instance_id=instance.id)
    rows = list(every.order_by("created_at") if order is None else ordered(every, order, SORTED))
    last = selectors.last_deliveries(rows)
    context = {
        "instance": instance,
        "tab": "alarms",
        "part": "receivers",
        "form": form,
        "made": made,
        "secret": secret,
        "remark": remark,
        "email_off": not sender.is_installed(),
        "rows": [(row, last.get(row.pk)) for row in rows],
        "order": order,
    }
    return render(request, "console/receivers.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: NEW_SECRET in request.POST)
def shown(request: HttpRequest, caller: Caller, instance_id: str, receiver_id: str) -> HttpResponse:
    """One of them: the code that confirms it, another secret, what became of its messages."""
    place = {"organisation": caller.organisation, "instance_id": instance_id}
    instance = instance_get(**place)
    row = selectors.receiver_get(**place, receiver_id=receiver_id)
    form, change, secret = CodeForm(), ReceiverChangeForm(receiver=row), None
    if request.method == "POST" and NEW_SECRET in request.POST:
        row, secret = receivers.receiver_rotate(**caller.place(instance.id), receiver_id=row.pk)
    elif request.method == "POST" and CHANGED in request.POST:
        change = ReceiverChangeForm(request.POST, receiver=row)
        if change.is_valid():
            try:
                _change(request, caller, row, change.changes())
            except SluiceError as error:
                change.refuse(error)
            else:
                return redirect("console:receiver", caller.organisation.id, instance.id, row.pk)
    elif request.method == "POST":
        form = CodeForm(request.POST)
        if form.is_valid():
            try:
                receivers.receiver_confirm(**caller.place(instance.id), receiver_id=row.pk, **form.cleaned_data)
            except SluiceError as error:
                form.refuse(error)
            else:
                messages.success(request, f"{row.address} is confirmed: alarms can go there.")
                return redirect("console:receiver", caller.organisation.id, instance.id, row.pk)
    sent = selectors.delivery_list(**place, receiver_id=row.pk).order_by("-created_at", "-pk")
    context = {
        "instance": instance,
        "tab": "alarms",
        "part": "receivers",
        "row": row,
        "form": form,
        "change": change,
        "secret": secret,
        "with_costs": caller.limits.covers(BILLING, changes=False),
        "listing": listing(request, sent, size=MESSAGE_ROWS),
    }
    return render(request, "console/receiver.html", context, status=422 if form.errors or change.errors else 200)


def _change(request: HttpRequest, caller: Caller, row: Receiver, changes: Mapping[str, str]) -> None:
    """Saved as it was it stays as it is; what was done is said. Raises SluiceError."""
    if not changes:
        messages.info(request, "Nothing was changed.")
        return
    changed = receivers.receiver_update(**caller.place(row.instance_id), receiver_id=row.pk, changes=changes)
    if "address" in changes and not changed.is_confirmed:
        messages.success(request, f"A code was sent to {changed.address}.")
    else:
        messages.success(request, "The receiver was changed.")


@require_POST
@tenant_page
def test(request: HttpRequest, caller: Caller, instance_id: str, receiver_id: str) -> HttpResponse:
    """A message that says that it is a test."""
    receivers.receiver_test(**caller.place(instance_id), receiver_id=receiver_id)
    messages.success(request, "It is on its way; below stands what becomes of it.")
    return redirect("console:receiver", caller.organisation.id, instance_id, receiver_id)


@require_POST
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str, receiver_id: str) -> HttpResponse:
    """No message goes there any more."""
    place = {"organisation": caller.organisation, "instance_id": instance_id}
    row = selectors.receiver_get(**place, receiver_id=receiver_id)
    receivers.receiver_delete(**caller.place(instance_id), receiver_id=receiver_id)
    messages.success(request, f"{row.name} is told nothing any more.")
    return redirect("console:receivers", caller.organisation.id, instance_id)
