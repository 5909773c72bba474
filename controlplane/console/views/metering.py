"""Operators' page of metering: whether the stream moves, how far it is behind, and what it could never read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.console.page import staff_page
from controlplane.core.errors import NotFound
from controlplane.metering import selectors, services

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def shown(request: HttpRequest) -> HttpResponse:
    """The page; its forms settle a loss each."""
    if request.method == "POST":
        named = request.POST.get("loss", "")
        if not (named.isascii() and named.isdigit() and len(named) < 19):
            raise NotFound("there is no such loss")
        services.loss_settle(loss_id=int(named), actor=request.user.email)  # type: ignore[union-attr]
        messages.success(request, "Settled: usage no longer waits for it.")
        return redirect("console:fleet_metering")
    meter, partitions = selectors.status(), selectors.partitions()
    context = {
        "meter": meter,
        "batch_s": f"{(meter.batch_ms or 0) / 1000:.2f}",
        "partitions": partitions,
        "lag": sum(row.lag for row in partitions),
        "losses": selectors.losses_open(),
        "settled": selectors.losses_settled(),
        "caps": selectors.caps_set(),
    }
    return render(request, "console/fleet_metering.html", context)
