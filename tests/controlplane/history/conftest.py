"""Samples and waiting as a test wants them, and rows as they came to be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.history.metrics import MEASURED, SET
from controlplane.history.models import Hour, Minute, RequestGap, RequestMark, RequestSample, RolledUp, Sample
from controlplane.history.requests.sampling import mark_name
from controlplane.history.statements import COLUMNS
from controlplane.quotas.models import RecordedInterval
from controlplane.quotas.services import _rows
from quota.contracts.requests import WINDOW_S, ApiCounts, RequestCounts
from tests.controlplane.quotas.conftest import document, interval

NOON = 1_740_830_400  # 2025-03-01T12:00:00Z
MIB = 2**20


def sample(at, instance="ins-k3v9x2qa", **figures):
    """What a sample has, by column."""
    return {
        "instance": instance,
        "at": at,
        "produce_bytes_per_s": MIB,
        "produce_limit_bytes_per_s": 5 * MIB,
        "produce_allocated_bytes_per_s": 4 * MIB,
        "consume_bytes_per_s": 2 * MIB,
        "consume_limit_bytes_per_s": 5 * MIB,
        "consume_allocated_bytes_per_s": 5 * MIB,
        "storage_used_bytes": 10**9,
        "storage_limit_bytes": 10**10,
        "connections": 7,
        **figures,
    }


def rolled(model, at, instance="ins-k3v9x2qa"):
    """A minute or an hour of samples that are all alike."""
    row, minutes = sample(at, instance), 60 if model is Hour else 1
    counts = {"samples": 6 * minutes, "minutes": minutes}
    measured = {f"{name}_sum": row[name] * 6 * minutes for name in MEASURED} | {
        f"{name}_max": row[name] for name in MEASURED
    }
    waited = {name: 0 for name in COLUMNS if "throttled" in name}
    return model(instance=instance, at=at, **{name: row[name] for name in SET}, **counts, **measured, **waited)


def counts_of(requests=1, *, api="Produce", took_us=1_000, errors=None, waited_us=0):
    """So many requests that all took as long; of `took_us` each has waited `waited_us`."""
    found = ApiCounts(errors=errors or {})
    for _ in range(requests):
        if waited_us:
            found.total.observe(took_us)
            found.local.observe(took_us - waited_us)
            found.remote.observe(waited_us)
        else:
            found.at_once.observe(took_us)
    return RequestCounts({api: found})


def keep_requests(instance, windows, *, known_to=None):
    """As the sampler does, without rolling up: counts by the beginning of their window; all before `known_to` is known."""
    RequestSample.objects.bulk_create(
        RequestSample(instance=instance.pk, at=at, windows=1, counts=counts.to_text()) for at, counts in windows.items()
    )
    taken = (max(windows) if known_to is None else known_to - WINDOW_S) if windows or known_to else 0
    RequestMark.objects.update_or_create(
        name=mark_name(instance.cluster_id), defaults={"taken": taken, "rolled": (taken + WINDOW_S) // 60 * 60}
    )


def keep_gaps(instance, *gaps):
    """From when to when nothing is known of requests."""
    name = mark_name(instance.cluster_id)
    RequestGap.objects.bulk_create(RequestGap(name=name, at=at, until=until) for at, until in gaps)


def keep(samples):
    """As the sampler does: the first of a moment stays."""
    Sample.objects.bulk_create([Sample(**each) for each in samples], ignore_conflicts=True)


def keep_waits(waits):
    """As the pull does: (instance, direction, start, end, waited) each, in ms; the last one of a start counts."""
    rows = [
        replace(interval(instance, direction=direction, start=start, throttled_ms=throttled_ms), ended_at_ms=end)
        for instance, direction, start, end, throttled_ms in waits
    ]
    names = ("instance", "rule", "direction", "started_at", "epoch")
    RecordedInterval.objects.bulk_create(
        _rows(document(row) for row in rows),
        update_conflicts=True,
        unique_fields=names,
        update_fields=("throttled_ms", "document"),
    )


def rows_of(model):
    """By (instance, at), without them."""
    names = COLUMNS[2:]
    return {(row["instance"], row["at"]): {name: row[name] for name in names} for row in model.objects.values(*COLUMNS)}


def forget():
    """Everything."""
    for model in (Sample, Minute, Hour, RolledUp, RecordedInterval):
        model.objects.all().delete()


@pytest.fixture
def at_noon(clock):
    clock.time = clock.time.replace(hour=12)
    assert clock.time.timestamp() == NOON
    return clock


def move(clock, at):
    """To a moment, in seconds since 1970."""
    clock.time += timedelta(seconds=at - clock.time.timestamp())
