"""The audit log of an organisation: who asked for which change, from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q
from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.listing import listing, searched
from controlplane.console.page import tenant_page
from controlplane.core.selectors import audit_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Newest first, by whom, what, on what, or from where."""
    search = searched(request)
    rows = audit_list(organisation=caller.organisation)
    if search:
        words = ("actor__icontains", "action__icontains", "target__icontains", "address", "key", "request_id")
        rows = rows.filter(Q(*((word, search) for word in words), _connector=Q.OR))
    page = listing(request, rows, search=search)
    entries = [(entry, _told(entry.detail)) for entry in page.page.object_list]
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/audit_log_rows.html" if part else "console/organisation_audit.html"
    return render(request, template, {"listing": page, "entries": entries})


def _told(detail: Mapping[str, object]) -> list[tuple[str, str]]:
    """What it was changed to, a line each, without what is empty."""
    lines = []
    for name, value in detail.items():
        many = value if isinstance(value, list) else [value]
        text = ", ".join(str(each) for each in many if each not in (None, "", {}))
        if text:
            lines.append((name.replace("_", " "), text))
    return lines
