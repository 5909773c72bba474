"""Receivers of both kinds that really are there, on loopback, which the installation allows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from controlplane.history.models import Sample
from controlplane.history.resolutions import SAMPLES, floor
from controlplane.history.rows import figures_of
from controlplane.instances.models import Instance
from tests.support.smtp import MailServer, mailing_by
from tests.support.webhooks import WebhookServer

GIB = 2**30
FLOW = {"limit": 1000, "flow": 100, "brokers": [{"flow": 100, "allocation": 1000}]}


@pytest.fixture
def hook():
    with WebhookServer() as server:
        yield server


@pytest.fixture
def mail(settings, inside):
    """A mail server, and an installation that knows it."""
    with MailServer() as server:
        mailing_by(settings, server, sender="alarms@sluice.example.com")
        yield server


@pytest.fixture
def inside(settings):
    """Webhooks may go to loopback."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, webhook_networks="127.0.0.0/8")


class Storage:
    """What the flow master says of one instance's storage, which has 10 GiB; `percent` None: no master answers."""

    def __init__(self, answers, name) -> None:
        self._answers, self._name = answers, name
        self.percent = 10

    @property
    def percent(self) -> float | None:
        return self._percent

    @percent.setter
    def percent(self, value: float | None) -> None:
        self._percent = value
        self._answers.pop(self._name, None)
        if value is not None:
            self._answers[self._name] = {
                "storage_used_bytes": round(10 * GIB * value / 100),
                "storage_full": value >= 100,
                "partitions_without_leader": 0,
                "partitions_under_replicated": 0,
                "produce": FLOW,
                "consume": FLOW,
                "connections": 3,
            }


@pytest.fixture
def storage(instance, flow_master):
    return Storage(flow_master.answers, instance.id)


@pytest.fixture
def sampled(flow_master):
    """`sampled(clock)`: be the history's sampler, of what the flow master says now. What it does not understand is a gap."""

    def sampled(clock) -> None:
        at = floor(int(clock.now().timestamp()), SAMPLES.step_s)
        rows = []
        for instance in Instance.objects.unscoped("a test").filter(pk__in=list(flow_master.answers)):
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                figures = figures_of(flow_master.answers[instance.pk], instance.storage_gib)
                rows.append(Sample(instance=instance.pk, at=at, **figures))
        Sample.objects.bulk_create(rows, ignore_conflicts=True)

    return sampled
