"""What an instance does by itself when its disk fills up, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.console.flow import Bar, storage_bar
from controlplane.console.forms.policies import DiskPolicyForm
from controlplane.console.listing import listing
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_where
from controlplane.core.errors import SluiceError
from controlplane.policies import outlook
from controlplane.policies.selectors import acts, disk_get
from controlplane.policies.services import policy_set

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.core.dry_runs import Outlook
    from controlplane.policies.selectors import DiskView

ACTS, FULL = 10, 100


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: "preview" not in request.POST)
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The policy of the disk: choose, look at what it would mean, save; whose retention is shortened, what was done."""
    view = disk_get(organisation=caller.organisation, instance_id=instance_id)
    form, preview = DiskPolicyForm(request.POST or None, view=view), None
    if request.method == "POST" and form.is_valid():
        asked: dict[str, Any] = {
            "organisation": caller.organisation,
            "actor": caller.actor,
            "instance_id": instance_id,
            "admit_paying": caller.limits.admit_paying,
            **form.wanted(),
        }
        try:
            preview = outlook.setting(**asked) if "preview" in request.POST else _set(request, view, asked)
        except SluiceError as error:
            form.refuse(error)
        else:
            if preview is None:
                return redirect("console:instance_policies", caller.organisation.id, instance_id)
    context = {
        "instance": view.instance,
        "tab": "settings",
        "view": view,
        "bar": _bar(view),
        "form": form,
        "preview": preview,
        "shortened": listing(request, view.shortened),
        "acts": list(acts(organisation=caller.organisation, instance_id=instance_id)[:ACTS]),
    }
    return render(request, "console/instance_policies.html", context, status=422 if form.errors else 200)


def _set(request: HttpRequest, view: DiskView, asked: dict[str, Any]) -> Outlook | None:
    policy_set(**asked)
    if asked["wanted"] == view.rule:
        messages.info(request, "Nothing was changed.")
    else:
        messages.success(request, "The policy was changed. It is looked at once a minute.")
    return None


def _bar(view: DiskView) -> Bar | None:
    """How full storage is; None: it is not known now."""
    if view.used_percent is None:
        return None
    return storage_bar(round(view.used_percent), FULL, is_full=view.used_percent >= FULL)
