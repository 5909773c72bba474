"""Batches and signs of life come from two threads. Each has a connection of its own, on either kind of database."""

from __future__ import annotations

import threading
import time

import pytest

from controlplane.env import Environment
from controlplane.metering.pipeline.jobs import usage
from controlplane.metering.pipeline.jobs.usage import UsageJob
from controlplane.metering.pipeline.settings import Settings
from controlplane.metering.pipeline.tables import Database

from .conftest import wrapper_of

pytestmark = pytest.mark.integration
PATIENCE_S = 1
ROW = ("ins-k3v9x2qa", "b1", "orders")


def row(hour: int, produced: int) -> tuple:
    return (*ROW, f"2026-05-01T{hour:02d}:00:00Z", 1, produced, 0, 0, 3, 100 + hour, 0)


@pytest.fixture
def job(tmp_path, database_url, monkeypatch):
    monkeypatch.setattr(usage, "LIFE_S", PATIENCE_S)
    made = UsageJob(Settings.read({"SLUICE_STACK_DIR": str(tmp_path), "DATABASE_URL": database_url}), spark=None)
    made.sign_of_life(started=True)
    yield made
    made._database.close()
    made._signs.close()


@pytest.fixture
def rows(database_url, django_db_blocker):
    """What anybody else sees in the database."""
    wrapper = wrapper_of(database_url)

    def of(statement: str) -> list[tuple]:
        with django_db_blocker.unblock(), wrapper.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    yield of
    with django_db_blocker.unblock():
        wrapper.close()


def test_a_sign_of_life_neither_breaks_the_batch_under_way_nor_commits_half_of_it(job, rows):
    before = rows("SELECT seen_at_ms FROM metering_pipelinestatus")
    time.sleep(0.002)
    with job._database.transaction() as cursor:
        job._database.maxima_raise(cursor, [row(10, 5)])
        living = threading.Thread(target=job.sign_of_life)
        living.start()
        living.join(0.3)  # SQLite has one writer: there it waits for the batch
        assert rows("SELECT hour FROM metering_usagemaximum") == []
        job._database.maxima_raise(cursor, [row(11, 9)])
    living.join(10)
    assert rows("SELECT produced_bytes FROM metering_usagemaximum ORDER BY hour") == [(5,), (9,)]
    assert rows("SELECT seen_at_ms FROM metering_pipelinestatus") > before


def test_a_sign_of_life_does_not_wait_for_ever_for_a_batch_that_hangs(job, rows, caplog):
    with job._database.transaction() as cursor:
        job._database.batch_note(cursor, query="q", batch=0, seen=1, refused=0, newest_ms=1)
        began = time.monotonic()
        job.sign_of_life("never seen")
        assert time.monotonic() - began < 5 * PATIENCE_S
    assert "does not take a sign of life" in caplog.text
    job.sign_of_life("seen")
    assert rows("SELECT problem, records FROM metering_pipelinestatus") == [("seen", 1)]


def test_a_batch_that_fails_takes_no_sign_of_life_with_it(job, rows):
    job.sign_of_life("the topic is not there")
    broken = [row(10, 5), row(11, 5)[:-1]]
    with pytest.raises(Exception, match="has 11 values, not 10"), job._database.transaction() as cursor:
        job._database.maxima_raise(cursor, broken)
    assert rows("SELECT problem FROM metering_pipelinestatus") == [("the topic is not there",)]
    assert rows("SELECT hour FROM metering_usagemaximum") == []


def test_a_connection_with_a_transaction_under_way_refuses_a_second_one_and_keeps_the_first(database_url, rows):
    database = Database(Environment.read({"DATABASE_URL": database_url}))
    with database.transaction() as cursor:
        database.maxima_raise(cursor, [row(10, 5)])
        with pytest.raises(RuntimeError, match="a connection of its own"), database.transaction():
            pass
    assert rows("SELECT produced_bytes FROM metering_usagemaximum") == [(5,)]
    database.close()
