"""The audit log of an organisation: who asked for which change, from where; whether it is as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from controlplane.console.forms.audit import KeptForm, LogForm
from controlplane.console.listing import kept, listing, searched
from controlplane.console.page import tenant_page
from controlplane.core.audit_file import audit_file
from controlplane.core.audit_sealing import verify
from controlplane.core.audit_sides import value_text
from controlplane.core.errors import Invalid
from controlplane.core.selectors import audit_list
from controlplane.instances.kafka_changes import some_have_told_none

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    from controlplane.accounts.selectors import Caller
    from controlplane.core.models import AuditEntry


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Newest first, by whom, what, on what, or from where."""
    search, form = searched(request), _form(request)
    rows = _found(caller, search, form.wanted()) if form.is_valid() else ()
    page = listing(request, rows, search=search)
    entries = [(entry, _told(entry.detail)) for entry in page.page.object_list]
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/audit_log_rows.html" if part else "console/organisation_audit.html"
    context = {
        "listing": page,
        "entries": entries,
        "form": form,
        "filtered": any(form.data.values()),
        "keeps": kept(request, *LogForm.base_fields),
        "none_by_clients": not part and some_have_told_none(caller.organisation),
    }
    return render(request, template, context, status=422 if form.errors else 200)


@require_safe
@tenant_page
def file(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """All of what the page shows with this search and filter, as CSV. The page says what is wrong with a filter."""
    form = _form(request)
    if not form.is_valid():
        return redirect(
            f"{reverse('console:organisation_audit', args=[caller.organisation.id])}?{request.GET.urlencode()}"
        )
    return audit_file(_found(caller, searched(request), form.wanted()))


@require_safe
@tenant_page
def verified(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The chain of the log, computed again; some thousand entries a page."""
    form = KeptForm(request.GET or None)
    found, (after, kept_hash) = None, (0, "")
    if not form.is_bound or form.is_valid():
        after, kept_hash = form.kept() if form.is_bound else (0, "")
        try:
            found = verify(organisation=caller.organisation, after=after, kept_hash=kept_hash)
        except Invalid as error:
            form.refuse(error)
    context = {"form": form, "found": found, "after": after, "is_kept": bool(kept_hash)}
    return render(request, "console/organisation_audit_verify.html", context, status=422 if form.errors else 200)


def _form(request: HttpRequest) -> LogForm:
    return LogForm({name: request.GET.get(name, "") for name in LogForm.base_fields})


def _found(caller: Caller, search: str, wanted: Mapping[str, Any]) -> QuerySet[AuditEntry]:
    rows = audit_list(organisation=caller.organisation, **wanted)
    if not search:
        return rows
    words = ("actor__icontains", "action__icontains", "target__icontains", "address", "key", "request_id")
    return rows.filter(Q(*((word, search) for word in words), _connector=Q.OR))


def _told(detail: Mapping[str, object], within: str = "") -> list[tuple[str, str]]:
    """What was asked for, a line each, without what is empty; of a change what it was before and is now."""
    lines = []
    for name, value in detail.items():
        title = f"{within} {name}" if within else name.replace("_", " ")
        if isinstance(value, dict) and set(value) == {"from", "to"}:
            lines.append((title, f"{value_text(value['from'])} → {value_text(value['to'])}"))
        elif isinstance(value, dict):
            lines += _told(value, title)
        elif text := _text(value):
            lines.append((title, text))
    return lines


def _text(value: object) -> str:
    many = value if isinstance(value, list) else [value]
    return ", ".join(value_text(each) for each in many if each not in (None, "", {}))
