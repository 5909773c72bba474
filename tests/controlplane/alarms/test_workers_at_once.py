"""Several workers look and send at the same time, on real databases: everything happens once, and every message is sent once."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from controlplane.env import ROOT
from tests.support.ports import free_port
from tests.support.postgresql import PostgreSQLServer, is_installed

from .at_once import ALARMS, ROUNDS


def found(directory, database):
    program = [sys.executable, "-m", "tests.controlplane.alarms.at_once", str(directory), database]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


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
