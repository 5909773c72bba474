"""Jobs of two clusters write to one database, on SQLite and PostgreSQL: brokers with the same id are two."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controlplane.env import Environment
from controlplane.metering.pipeline.tables import Database

pytestmark = pytest.mark.integration
HOURS = [f"2026-05-01T{hour:02}:00:00Z" for hour in range(10)]


@pytest.fixture
def jobs(database_url) -> Iterator[dict[str, Database]]:
    environment = Environment.read({"DATABASE_URL": database_url})
    made = {cluster: Database(environment, cluster=cluster) for cluster in ("default", "east")}
    yield made
    for database in made.values():
        database.close()


def told(database: Database, boot: str, hour: int, *, at_ms: int) -> None:
    """Broker 1 has told usage of these hours, then that this is all of them."""
    with database.transaction() as cursor:
        database.boots_note(cursor, [(1, boot, HOURS[0], HOURS[hour], 1)])
        statement = (1, HOURS[hour], boot, "", at_ms, 0, at_ms)
        database.statements_note(cursor, f"topic of {database.cluster}", [statement])


def all_of(database: Database, statement: str) -> list[tuple]:
    return list(database.read(statement))


def test_statements_settle_by_the_boots_of_their_own_cluster(jobs):
    for number, (cluster, database) in enumerate(jobs.items()):
        told(database, f"boot of {cluster}", 3, at_ms=100 + number)
        told(database, f"boot of {cluster}", 4 + number, at_ms=200 + number)
    with jobs["default"].transaction() as cursor:
        jobs["default"].statements_settle(cursor, 1000)
    rows = "SELECT cluster, broker, hour FROM metering_statement ORDER BY cluster, hour"
    assert all_of(jobs["east"], rows) == [
        ("default", 1, HOURS[4]), ("east", 1, HOURS[3]), ("east", 1, HOURS[5]),
    ]  # fmt: skip
    boots = "SELECT cluster, boot, is_told FROM metering_boot ORDER BY cluster"
    assert [(*row[:2], bool(row[2])) for row in all_of(jobs["east"], boots)] == [
        ("default", "boot of default", True), ("east", "boot of east", False),
    ]  # fmt: skip


def test_a_boot_of_the_same_name_is_each_clusters_own(jobs):
    """Nobody draws the same name twice; a restored disk may have it twice all the same."""
    for number, database in enumerate(jobs.values()):
        with database.transaction() as cursor:
            database.boots_note(cursor, [(1, "b", HOURS[1 + number], HOURS[2 + number], 5)])
    rows = "SELECT cluster, first_hour, last_hour FROM metering_boot ORDER BY cluster"
    assert all_of(jobs["default"], rows) == [("default", HOURS[1], HOURS[2]), ("east", HOURS[2], HOURS[3])]
