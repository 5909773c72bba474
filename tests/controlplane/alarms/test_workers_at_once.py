"""Several workers look and send at the same time, on real databases: everything happens once, and every message is sent once."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of
from tests.support.ports import free_port
from tests.support.postgresql import PostgreSQLServer, is_installed

from .at_once import ALARMS, ROUNDS


def found(directory, database):
    return answer_of("tests.controlplane.alarms.at_once", directory, database)


def once() -> dict:
    each = ALARMS * ROUNDS // 2
    return {
        "failed": [],
        "events": {"fired": each, "resolved": each},
        "messages": {"sent": 2 * each},
        "taken": 2 * each,
        "different": 2 * each,
    }


@pytest.mark.timeout(180)
def test_on_sqlite(tmp_path):
    assert found(tmp_path, f"sqlite:///{tmp_path}/db.sqlite3") == once()


@pytest.mark.integration
@pytest.mark.timeout(240)
@pytest.mark.skipif(not is_installed(), reason="no PostgreSQL here: apt-get install postgresql")
def test_on_postgresql(tmp_path):
    with PostgreSQLServer(tmp_path / "postgresql", free_port()) as server:
        assert found(tmp_path, server.database("alarms")) == once()


@pytest.mark.integration
@pytest.mark.timeout(240)
@pytest.mark.skipif(not is_installed(), reason="no PostgreSQL here: apt-get install postgresql")
def test_a_receiver_is_deleted_while_its_alarm_is_looked_at_and_neither_ends_the_other(tmp_path):
    """A database that ends one of two that wait for each other would say so: both take the alarm first."""
    with PostgreSQLServer(tmp_path / "postgresql", free_port()) as server:
        answer = answer_of("tests.controlplane.alarms.deleting_at_once", tmp_path, server.database("alarms"))
    assert answer == {
        "failed": [],
        "phase": "firing",
        "told": [],
        "receivers": 0,
        "messages": [["failed", "the receiver was deleted"]],
    }
