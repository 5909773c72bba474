"""Masters whose journals hold what a test puts there."""

from __future__ import annotations

import json

import pytest

from controlplane.quotas.models import RecordedInterval
from controlplane.quotas.services import _rows
from quota.contracts.instance import MIB
from quota.contracts.throttled import BrokerInputs, Moment, ThrottledInterval

NINE = 1_763_715_600_000  # 2025-11-21T09:00:00Z


def interval(instance="ins-k3v9x2qa", *, start=NINE, seconds=20, throttled_ms=12_000, under_limit_ms=0, **members):
    brokers = (
        BrokerInputs(1, 2, MIB, MIB, 2 * MIB, 2 * MIB, "headroom", 0, 0),
        BrokerInputs(2, 4, 2 * MIB, 2 * MIB, 2 * MIB, 3 * MIB, "headroom", 900, 4096),
    )
    return ThrottledInterval(
        instance=instance,
        started_at_ms=start,
        ended_at_ms=start + seconds * 1000,
        throttled_ms=throttled_ms,
        under_limit_ms=under_limit_ms,
        waits_ms={2: throttled_ms},
        moment=Moment(start + 1000, brokers),
        **{
            "rule": None,
            "direction": "produce",
            "epoch": 3,
            "strategy": "ckafka",
            "limit": 5 * MIB,
            "over_percent": (17.0, 3.1, 0.4),
            **members,
        },
    )


def document(recorded):
    return json.loads(recorded.to_json())


@pytest.fixture
def record(db):
    """Put intervals where the pull puts them."""

    def record(*intervals):
        RecordedInterval.objects.bulk_create(_rows(document(each) for each in intervals))

    return record
