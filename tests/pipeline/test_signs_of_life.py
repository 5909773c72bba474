"""That the meter's process is there is written down whatever the job is doing, and says nothing else of it."""

from __future__ import annotations

import time

import pytest

from controlplane.metering.pipeline import signs
from controlplane.metering.pipeline.settings import Settings
from controlplane.metering.pipeline.tables import Database
from tests.support.waiting import wait_for

from .conftest import wrapper_of

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(tmp_path, database_url):
    return Settings.read({"SLUICE_STACK_DIR": str(tmp_path), "DATABASE_URL": database_url})


@pytest.fixture
def rows(database_url, django_db_blocker):
    wrapper = wrapper_of(database_url)

    def of() -> list[tuple]:
        with django_db_blocker.unblock(), wrapper.cursor() as cursor:
            cursor.execute("SELECT seen_at_ms, problem FROM metering_pipelinestatus")
            return cursor.fetchall()

    yield of
    with django_db_blocker.unblock():
        wrapper.close()


def test_signs_come_while_the_job_says_nothing_and_leave_what_it_has_said(settings, rows):
    database = Database(settings.environment, cluster=settings.cluster)
    with database.transaction() as cursor:
        database.sign_of_life(cursor, now_ms=7, problem="the topic is away")
    began_ms = int(time.time() * 1000)
    with signs.given(settings, every_s=0.05):
        wait_for(lambda: rows()[0][0] >= began_ms, 30, "a sign of life")
        first = rows()[0][0]
        wait_for(lambda: rows()[0][0] > first, 30, "another")
    assert rows()[0][1] == "the topic is away"
    last = rows()
    time.sleep(0.3)
    assert rows() == last
    database.close()


def test_a_job_that_hangs_gives_none(settings, rows, monkeypatch):
    """Its thread would go on for ever."""
    database = Database(settings.environment, cluster=settings.cluster)
    with database.transaction() as cursor:
        database.sign_of_life(cursor, now_ms=7)
    database.close()
    monkeypatch.setattr(signs, "HANGS_AFTER_S", 0.0)
    with signs.given(settings, every_s=0.05):
        time.sleep(0.3)
        assert rows()[0][0] == 7
        monkeypatch.setattr(signs, "HANGS_AFTER_S", 60.0)
        wait_for(lambda: rows()[0][0] > 7, 30, "a sign of life")


def test_before_the_job_has_said_anything_there_is_nothing_to_add_to(settings, rows):
    with signs.given(settings, every_s=0.05):
        time.sleep(0.3)
    assert rows() == []


def test_a_database_that_is_away_is_tried_again(settings, rows, monkeypatch, caplog):
    database = Database(settings.environment, cluster=settings.cluster)
    with database.transaction() as cursor:
        database.sign_of_life(cursor, now_ms=7)
    database.close()
    told = Database.still_there
    refused = []

    def refuse_once(self, cursor, *, now_ms):
        if not refused:
            refused.append(now_ms)
            raise OSError("no such host")
        told(self, cursor, now_ms=now_ms)

    monkeypatch.setattr(Database, "still_there", refuse_once)
    with signs.given(settings, every_s=0.05):
        wait_for(lambda: rows()[0][0] > 7, 30, "a sign of life")
    assert "does not take a sign of life: no such host" in caplog.text
