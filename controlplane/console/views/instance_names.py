"""The way to instances for whoever has a role that shows no figures of them: names, ids, and the pages that are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.listing import listing
from controlplane.console.page import tenant_page
from controlplane.console.places import pages_open
from controlplane.instances.selectors import instance_list

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Those that the role is for."""
    rows = instance_list(organisation=caller.organisation, only=caller.limits.instances)
    found = listing(request, rows.order_by("name", "pk"))
    context = {"listing": found, "pages": pages_open(caller.limits)}
    return render(request, "console/instance_names.html", context)
