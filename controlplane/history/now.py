"""The newest of the history of one instance, as a tenant's Prometheus reads it. The answer is kept for CACHED_S."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict
from controlplane.core.kept import keep, kept
from controlplane.history.exposition import GroupLag, exposition
from controlplane.history.latest import lags_of, latest_get
from controlplane.history.requests.brokers import totals_by_broker
from controlplane.history.requests.reading import totals_of
from controlplane.history.requests.topics import totals_by_topic
from controlplane.history.scraping import BY_CERTIFICATE, BY_KEY, Scraping, scraping_of
from controlplane.instances.selectors import instance_any

if TYPE_CHECKING:
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
CACHED_S = 5
MOST_GROUPS = 1_000
"""In one answer, those furthest behind."""


def exposition_get(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> str:
    """See `exposition`. Raises NotFound."""
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    key = f"exposition:{instance.pk}"
    before = kept(key, LOG, "figures of now are put together again")
    if before is not None:
        return str(before)
    text = _text(instance, int(clock.now().timestamp()))
    keep(key, text, CACHED_S, LOG, "figures of now are not kept")
    return text


def scraping_get(*, organisation: Organisation, instance_id: str, asked_at: str, by: str = BY_KEY) -> Scraping:
    """Where the figures are read: where nothing is configured, `asked_at`, where this service was asked.

    Raises NotFound; Conflict for client certificates that the service does not take.
    """
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    if by == BY_CERTIFICATE and not takes_certificates():
        raise Conflict(
            "this service takes no client certificates: use an API key", code="client_certificates_not_taken"
        )
    return scraping_at(instance=instance, asked_at=asked_at, by=by)


def scraping_at(*, instance: Instance, asked_at: str, by: str = BY_KEY) -> Scraping:
    """The same; the caller has the instance from its organisation's scope."""
    environment = settings.ENVIRONMENT
    return scraping_of(environment.scrape_url or environment.console_url or asked_at, instance.pk, by)


def takes_certificates() -> bool:
    """Whether a proxy tells what client certificates callers have shown."""
    return bool(settings.ENVIRONMENT.client_certificates_from)


def _text(instance: Instance, now_s: int) -> str:
    found = latest_get([instance.pk], now_s)[instance.pk]
    groups = [
        GroupLag(name, lag.messages, lag.seconds, lag.size, lag.consumed, lag.produced)
        for name, lag in lags_of(instance.pk, now_s, MOST_GROUPS).items()
    ]
    ordered = sorted(groups, key=lambda each: each.name)
    requests, topics = totals_of(instance.pk), totals_by_topic(instance.pk)
    return exposition(
        instance.pk,
        found.values,
        ordered,
        is_known=found.at is not None,
        requests=requests,
        topics=topics,
        brokers=totals_by_broker(instance.pk),
    )
