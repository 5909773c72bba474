"""The address of an account: a link to it, the page of that link, and another address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts.identity import addresses
from controlplane.accounts.models import LinkPurpose
from controlplane.console.advice import said
from controlplane.console.forms.accounts import AddressForm
from controlplane.console.page import signed_in
from controlplane.console.proof import proof_asked
from controlplane.core.errors import SluiceError
from controlplane.mail import outbox

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
@signed_in
def send(request: HttpRequest) -> HttpResponse:
    """Another link to the address of the account."""
    try:
        addresses.verification_send(user=request.user)
    except SluiceError as error:
        messages.error(request, said(error))
    else:
        messages.success(request, f"A link was sent to {request.user.email}. It works for 24 hours.")
    return redirect("console:account")


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("token")
@signed_in
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """What a link is about, and a button: programs that look into mails follow links, too, and press nothing."""
    link = addresses.address_link_find(token=token, user=request.user)
    if request.method == "POST":
        addresses.address_link_use(token=token, user=request.user)
        messages.success(request, f"{link.address} is confirmed.")
        return redirect("console:account")
    context = {"link": link, "is_new": link.purpose == LinkPurpose.CHANGE}
    return render(request, "console/address_confirm.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@proof_asked
def change(request: HttpRequest) -> HttpResponse:
    """Another address. It counts once the link that goes there was used."""
    form = AddressForm(request.POST or None)
    status = 200
    if request.method == "POST" and form.is_valid():
        email = form.cleaned_data["email"]
        try:
            addresses.address_change_ask(user=request.user, email=email)
        except SluiceError as error:
            form.refuse(error)
            status = error.http_status
        else:
            messages.success(request, f"A link was sent to {email}. Your address changes when you have opened it.")
            return redirect("console:account")
    if form.errors and status in (200, 400):
        status = 422
    context = {"form": form, "is_mailing": outbox.is_on()}
    return render(request, "console/address_change.html", context, status=status)
