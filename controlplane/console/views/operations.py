"""Operations: what was asked for and how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q
from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.listing import listing, searched
from controlplane.console.page import tenant_page
from controlplane.core.models import OperationState
from controlplane.core.selectors import operation_get, operation_list
from controlplane.instances.models import Instance

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Newest first, by the name of what they work on. The rows come again every 2 s while one is under way."""
    search = searched(request)
    rows = operation_list(organisation=caller.organisation, only_on=caller.limits.instances).order_by(
        "-created_at", "pk"
    )
    if search:
        named = _instances(caller).filter(name__icontains=search).values("pk")
        rows = rows.filter(Q(target__icontains=search) | Q(id__icontains=search) | Q(target__in=named))
    shown = listing(request, rows, search=search)
    operations = list(shown.page.object_list)
    names = dict(_instances(caller).filter(pk__in={row.target for row in operations}).values_list("pk", "name"))
    context = {
        "listing": shown,
        "rows": [(operation, names.get(operation.target)) for operation in operations],
        "changing": any(operation.state == OperationState.RUNNING for operation in operations),
    }
    part = request.htmx  # type: ignore[attr-defined]
    return render(request, "console/parts/operation_rows.html" if part else "console/operations.html", context)


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, operation_id: str) -> HttpResponse:
    """One operation, step by step."""
    return _render(request, caller, operation_id, "console/operation.html")


@require_safe
@tenant_page
def steps(request: HttpRequest, caller: Caller, operation_id: str) -> HttpResponse:
    """Its steps alone: this part of the page asks again until the operation is over."""
    return _render(request, caller, operation_id, "console/parts/operation_steps.html")


def _render(request: HttpRequest, caller: Caller, operation_id: str, template: str) -> HttpResponse:
    operation = operation_get(
        organisation=caller.organisation, operation_id=operation_id, only_on=caller.limits.instances
    )
    instance = _instances(caller).filter(pk=operation.target).first()
    return render(request, template, {"operation": operation, "instance": instance})


def _instances(caller: Caller):  # type: ignore[no-untyped-def]  # noqa: ANN202  # a QuerySet, deleted ones included
    return Instance.objects.for_organisation(caller.organisation)
