"""Usage in Django's database, put there as the stream job does: by its own statements.

usage_raise([usage_row("ins-k3v9x2qa", "2026-05-01T10", 1000, stored=7200)])
usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))  # so that months before may be invoiced
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import connection

from controlplane.clusters.models import Broker
from controlplane.metering.models import Progress, Statement
from controlplane.metering.pipeline.maxima import INSTANCES, TOPICS, USERS, Maxima, merging, staging
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

Row = tuple[str, str, str, str, int, int, int, int, int, int, int]


def usage_raise(rows: Iterable[Row]) -> None:
    """Batches of topics' usage."""
    _raise(TOPICS, rows)


def instances_raise(rows: Iterable[tuple[str | int, ...]]) -> None:
    """Batches of what is counted of whole instances, in the order of `INSTANCES.columns`."""
    _raise(INSTANCES, rows)


def users_raise(rows: Iterable[tuple[str | int, ...]]) -> None:
    """Batches of what is counted of users, in the order of `USERS.columns`."""
    _raise(USERS, rows)


def _raise(kind: Maxima, rows: Iterable[Sequence[str | int]]) -> None:
    with connection.cursor() as cursor:
        for batch in batches(kind, rows):
            values = [("tests", DEFAULT_CLUSTER, *kind.staged(row), row[-1]) for row in batch]
            cursor.executemany(staging().replace("?", "%s"), values)
            for statement, given in merging("tests"):
                cursor.execute(statement.replace("?", "%s"), given)


def batches(kind: Maxima, rows: Iterable[Sequence[str | int]]) -> Iterator[list[Sequence[str | int]]]:
    """A batch has one row of each key: what names one again comes in the next."""
    left = list(rows)
    while left:
        seen, batch, again = set(), [], []
        for row in left:
            key = tuple(row[: len(kind.owner) + 1])
            (again if key in seen else batch).append(row)
            seen.add(key)
        yield batch
        left = again


def user_row(
    instance_id: str, hour: str, user: str, came: int, went: int = 0, requests: int = 1, *, boot: str = "b1",
    broker: int = 1, offset: int = 0,
) -> tuple[str | int, ...]:  # fmt: skip
    """Counters since the boot; `hour` as "2026-05-01T10"."""
    return (instance_id, boot, user, f"{hour}:00:00Z", broker, came, went, requests, 0, offset, 0)


def usage_row(
    instance_id: str, hour: str, produced: int, *, boot: str = "b1", topic: str = "orders", consumed: int = 0,
    stored: int = 0, broker: int = 1, partition: int = 0, offset: int = 0,
) -> Row:  # fmt: skip
    """Counters since the boot; `hour` as "2026-05-01T10"."""
    return (instance_id, boot, topic, f"{hour}:00:00Z", broker, produced, consumed, stored, partition, offset, 0)


def hours_told(broker: int, hour: str, said_at: datetime, *, boot: str = "b1", after: str = "") -> None:
    """A broker has told all that it counted up to an hour, "2026-05-01T10"."""
    Statement.objects.create(
        broker=broker, hour=f"{hour}:00:00Z", boot=boot, after=after, said_at_ms=int(said_at.timestamp() * 1000),
        topic_id="t", source_partition=0, source_offset=Statement.objects.count(),
    )  # fmt: skip


def usage_complete(to: datetime) -> None:
    """Metering has come to this moment, as the stream job says it, and so have all brokers (at least one)."""
    for broker in Broker.objects.values_list("broker_id", flat=True) or [1]:
        hours_told(broker, f"{to - timedelta(hours=1):%Y-%m-%dT%H}", to)
    about = {"topic_id": "t", "next_offset": 1, "end_offset": 1, "looked_at_ms": 0}
    Progress.objects.update_or_create(partition=0, defaults={**about, "complete_to_ms": int(to.timestamp() * 1000)})
