"""Operators' page of metering: whether the stream moves, how far it is behind, and what it could never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.billing.services import broker_waive
from controlplane.clusters.services import cluster_named
from controlplane.console.page import staff_page
from controlplane.console.proof import proof_asked
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.metering import finality, folding, selectors, services

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

    from controlplane.metering.finality import BrokerHours
    from controlplane.metering.selectors import MeteringStatus, PartitionProgress


RUNS_SHOWN, DIFFERENCES_SHOWN = 10, 50


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
@proof_asked
def shown(request: HttpRequest) -> HttpResponse:
    """The page; its forms settle a loss each, or say that usage does not wait for a broker."""
    actor = request.user.email  # type: ignore[union-attr]
    if request.method == "POST" and "broker" in request.POST:
        return _waived(request, request.POST["broker"], actor)
    if request.method == "POST":
        named = request.POST.get("loss", "")
        if not (named.isascii() and named.isdigit() and len(named) < 19):
            raise NotFound("there is no such loss")
        services.loss_settle(loss_id=int(named), actor=actor)
        messages.success(request, "Settled: usage no longer waits for it.")
        return redirect("console:fleet_metering")
    partitions = selectors.partitions()
    context = {
        "meters": [_meter(meter, partitions) for meter in selectors.statuses()],
        "losses": selectors.losses_open(),
        "settled": selectors.losses_settled(),
        "waivers": selectors.broker_waivers(),
        "caps": selectors.caps_set(),
        "fold": folding.fold_get(),
        "reconciled": [(row, selectors.moment_of(row.at_ms)) for row in selectors.reconciliations()[:RUNS_SHOWN]],
        "differences": selectors.differences()[:DIFFERENCES_SHOWN],
    }
    return render(request, "console/fleet_metering.html", context)


def _meter(meter: MeteringStatus, partitions: Sequence[PartitionProgress]) -> dict[str, Any]:
    """Of one cluster."""
    now = SYSTEM_CLOCK.now()
    own = [(row, _lag(row, meter, now)) for row in partitions if row.cluster == meter.cluster]
    lags = [lag for _, lag in own if lag is not None]
    is_present = meter.is_reading_the_present(now)
    hours = finality.broker_hours(selectors.complete_to(meter.cluster), meter.cluster)
    return {
        "meter": meter,
        "brokers": [(broker, _owing(broker, now, is_present=is_present)) for broker in hours],
        "batch_s": f"{(meter.batch_ms or 0) / 1000:.2f}",
        "partitions": own,
        "lag": sum(lags) if own and len(lags) == len(own) else None,
    }


def _lag(row: PartitionProgress, meter: MeteringStatus, now: datetime) -> int | None:
    """Records behind the end that was seen last; None: that is no end of today's, as where nothing is read."""
    if meter.state != "running" or row.complete_to is None:
        return None
    return None if row.lag == 0 and selectors.is_behind(row.complete_to, now) else row.lag


def _owing(broker: BrokerHours, now: datetime, *, is_present: bool) -> str:
    """Whether usage waits for a broker, or its records have not been read yet; empty: neither."""
    if not broker.waits(now):
        return ""
    is_here = broker.away_since is None and broker.gap_at is None
    return "unread" if is_here and not is_present else "waits"


def _waived(request: HttpRequest, named: str, actor: str) -> HttpResponse:
    if not (named.isascii() and named.isdigit() and len(named) < 10):
        raise NotFound("there is no such broker")
    cluster = cluster_named(request.POST.get("cluster")).name
    try:
        broker_waive(broker=int(named), reason=request.POST.get("reason", ""), actor=actor, cluster=cluster)
        messages.success(request, f"Usage no longer waits for broker {int(named)}.")
    except Invalid:
        messages.error(request, "Say why usage shall not wait for the broker.")
    except Conflict as error:
        messages.error(request, f"{error}.")
    return redirect("console:fleet_metering")
