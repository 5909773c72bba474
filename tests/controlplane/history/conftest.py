"""Samples and waiting as a test wants them, and rows as they came to be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.history.metrics import MEASURED, SET
from controlplane.history.models import Hour, Minute, RolledUp, Sample
from controlplane.history.statements import COLUMNS
from controlplane.quotas.models import RecordedInterval
from controlplane.quotas.services import _rows
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
