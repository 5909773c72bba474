"""Several workers at the same time, on real databases: costs are computed and thresholds told once."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of
from tests.support.ports import free_port
from tests.support.postgresql import PostgreSQLServer, is_installed

from .at_once import BUDGETS, GB, INSTANCES


def found(directory, database):
    return answer_of("tests.controlplane.budgets.at_once", directory, database)


def once() -> dict:
    each = {str(percent): BUDGETS for percent in (25, 50, 75, 100)}
    return {
        "failed": [],
        "costs": ["240.00"] * INSTANCES,
        "alerts": each,
        "messages": {"sent": 4 * BUDGETS},
        "told": each,
        "different": 4 * BUDGETS,
        "huge": [0, 0, 3 * (2**62 + 1)],
        "orders": 400 * GB,
    }


@pytest.mark.timeout(180)
def test_on_sqlite(tmp_path):
    assert found(tmp_path, f"sqlite:///{tmp_path}/db.sqlite3") == once()


@pytest.mark.integration
@pytest.mark.timeout(240)
@pytest.mark.skipif(not is_installed(), reason="no PostgreSQL here: apt-get install postgresql")
def test_on_postgresql(tmp_path):
    with PostgreSQLServer(tmp_path / "postgresql", free_port()) as server:
        assert found(tmp_path, server.database("budgets")) == once()
