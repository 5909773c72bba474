"""The Python clients on routes that other tests have not: the part of `make clients` that is quick, and needs nothing fetched."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clients.cells import run_cell
from tests.clients.checks import DENIED, EXCHANGE, REAUTHENTICATION, STRANGER
from tests.clients.clients import CLIENTS
from tests.clients.instance import Served
from tests.clients.rows import ROWS
from tests.support.cluster import ProcessCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PYTHON = ("librdkafka", "kafka-python", "aiokafka")
BY_NAME = {row.name: row for row in ROWS}
LIFETIME_MS = 6_000


def outcomes(cell):
    """By check; with what went wrong, where something did."""
    return {one.check: one.outcome if one.outcome != "fail" else one.problems for one in cell.findings}


@pytest.mark.parametrize(
    "row",
    [
        "plaintext",
        pytest.param("ssl", marks=pytest.mark.long),
        "mtls",
        pytest.param("sasl_ssl SCRAM-SHA-512", marks=pytest.mark.long),
    ],
)
def test_python_clients_exchange_records_and_hear_why_they_are_refused(new_tenant, tmp_path, row):
    served = Served(new_tenant, tmp_path)
    checks = (EXCHANGE, DENIED, STRANGER)
    for name in PYTHON:
        log = tmp_path / f"{name}.log"
        cell = run_cell(CLIENTS[name], BY_NAME[row], served, lifetime_ms=LIFETIME_MS, log=log, wanted=checks)
        expected = checks if row != "plaintext" else (EXCHANGE, DENIED)
        assert outcomes(cell) == dict.fromkeys(expected, "pass"), f"{name}: {log.read_text()[-2000:]}"


def test_python_clients_log_in_again_while_they_send(tmp_path):
    """aiokafka cannot, and loses nothing by it: its connections end and it comes again."""
    settings = {"connections_max_reauth_ms": LIFETIME_MS, "offsets_topic_num_partitions": 4}
    ways = dict(
        zip(PYTHON, ("sasl_ssl SCRAM-SHA-256", "sasl_plaintext PLAIN", "sasl_plaintext SCRAM-SHA-512"), strict=True)
    )
    with ProcessCluster(tmp_path, settings) as cluster, ThreadPoolExecutor() as threads:
        served = {name: Served(cluster.tenant, tmp_path / name) for name in PYTHON}

        def cell(name):
            return run_cell(
                CLIENTS[name],
                BY_NAME[ways[name]],
                served[name],
                lifetime_ms=LIFETIME_MS,
                log=tmp_path / f"{name}.log",
                wanted=(REAUTHENTICATION,),
            )

        found = {
            name: outcomes(done)[REAUTHENTICATION] for name, done in zip(PYTHON, threads.map(cell, PYTHON), strict=True)
        }
    assert found == {"librdkafka": "pass", "kafka-python": "pass", "aiokafka": "not supported"}
