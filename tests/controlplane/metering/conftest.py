"""The people and their instance come from tests/controlplane; here is how usage gets into the database."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.db import connection

from controlplane.metering.pipeline.tables import RAISE

Row = tuple[str, str, str, str, int, int, int, int, int, int, int]


def raised(rows: Iterable[Row]) -> None:
    """What the stream job does with a batch, by the statement that it uses."""
    with connection.cursor() as cursor:
        for row in rows:
            cursor.execute(RAISE.replace("?", "%s"), row)


def row(
    instance_id: str, hour: str, produced: int, *, boot: str = "b1", topic: str = "orders", consumed: int = 0,
    stored: int = 0, broker: int = 1, partition: int = 0, offset: int = 0,
) -> Row:  # fmt: skip
    """`hour` as "2026-05-01T10"."""
    return (instance_id, boot, topic, f"{hour}:00:00Z", broker, produced, consumed, stored, partition, offset, 0)


@pytest.fixture
def usage(instance):
    """Two hours of alice's instance on two brokers, and a stranger's in between."""
    raised(
        [
            row(instance.id, "2026-05-01T10", 1000, consumed=10, stored=7200, offset=4, partition=3),
            row(instance.id, "2026-05-01T11", 1500, consumed=10, stored=9000, offset=9, partition=3),
            row(instance.id, "2026-05-01T11", 400, boot="b2", broker=2, offset=7, partition=5),
            row("ins-stranger", "2026-05-01T11", 9_999_999),
        ]
    )
    return instance
