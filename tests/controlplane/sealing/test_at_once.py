"""Keys are replaced while processes write and read, on databases that know waiting for each other."""

from __future__ import annotations

import pytest

from tests.support import postgresql
from tests.support.django_process import answer_of
from tests.support.ports import free_port

from .at_once import ROWS


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/db.sqlite3"
        return
    if not postgresql.is_installed():
        pytest.skip("PostgreSQL is not installed")
    with postgresql.PostgreSQLServer(tmp_path / "postgresql", free_port()) as server:
        yield server.database("sealed")


@pytest.mark.timeout(180)
def test_nothing_is_lost_overwritten_or_unreadable(tmp_path, database_url):
    found = answer_of("tests.controlplane.sealing.at_once", tmp_path, database_url, within_s=150)
    assert found == {"problems": [], "lost": [], "by": {"new": ROWS, "all": ROWS}, "overwritten": []}
