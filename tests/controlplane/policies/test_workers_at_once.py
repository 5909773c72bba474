"""Several workers at the same time, on real databases: each step is bought once."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of
from tests.support.ports import free_port
from tests.support.postgresql import PostgreSQLServer, is_installed

from .at_once import INSTANCES, ROUNDS


def found(directory, database):
    return answer_of("tests.controlplane.policies.at_once", directory, database)


def once() -> dict:
    return {
        "failed": [],
        "operations": {"succeeded": ROUNDS * INSTANCES},
        "purchases": ROUNDS * INSTANCES,
        "sizes": [15.0] * INSTANCES,  # by 10 %, whole GiB: 11, 13, 15
        "recorded": ROUNDS * INSTANCES,
    }


@pytest.mark.timeout(180)
def test_on_sqlite(tmp_path):
    assert found(tmp_path, f"sqlite:///{tmp_path}/db.sqlite3") == once()


@pytest.mark.integration
@pytest.mark.timeout(240)
@pytest.mark.skipif(not is_installed(), reason="no PostgreSQL here: apt-get install postgresql")
def test_on_postgresql(tmp_path):
    with PostgreSQLServer(tmp_path / "postgresql", free_port()) as server:
        assert found(tmp_path, server.database("policies")) == once()
