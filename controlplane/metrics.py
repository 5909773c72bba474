"""/metrics: what Prometheus reads of the control plane, given to callers with the `metrics_token` of the secrets file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import Http404, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe

from controlplane.admission.metrics import clusters_text
from controlplane.api import rates
from controlplane.billing.metrics import billing_text
from controlplane.billing.selectors import invoice_failures
from controlplane.billing.waiting import waiting
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.loads.metrics import loads_text
from controlplane.metering import selectors as metering
from controlplane.metering.folding import fold_get
from controlplane.metering.jobs import job_list
from controlplane.metering.metrics import CONTENT_TYPE, jobs_text, metrics_text
from controlplane.rebalancing.metrics import rebalancing_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest


@require_safe
def shown(request: HttpRequest, parts_text: Callable[[], str]) -> HttpResponse:
    """Prometheus' text format; without the token the address is not found. `parts_text`: of what answers and what is away."""
    token = settings.ENVIRONMENT.secret("metrics_token")
    given = request.headers.get("Authorization", "")
    if not token or not constant_time_compare(given, f"Bearer {token}"):
        raise Http404
    now = SYSTEM_CLOCK.now()
    usage = metrics_text(
        metering.status(),
        metering.partitions(),
        open_losses=metering.losses_open().count(),
        now=now,
        differences=metering.differences_now(),
        fold=fold_get(),
    )
    bills = billing_text(waiting(now), invoice_failures().values_list("month", flat=True))
    jobs = jobs_text(job_list(), now=now)
    rest = loads_text(now) + clusters_text() + rebalancing_text() + rates.metrics_text() + parts_text()
    return HttpResponse(usage + jobs + bills + rest, content_type=CONTENT_TYPE)
