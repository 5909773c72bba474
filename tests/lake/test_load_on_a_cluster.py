"""`lake_load` by spark-submit, on threads of one process and on a standalone Master with two Workers: the same table.

A topic of a real broker, with transactions of which one is aborted, in two loads: the second goes on where the first has come
to. Executors run no Python of ours; they read, infer a schema, and write, each on its own, into one commit after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from controlplane.lake.load import PACKAGES
from controlplane.stack.metering import absence
from tests.integration.clients import TIMEOUT_S, Sender, create_topic
from tests.support.delta_tables import rows_in
from tests.support.spark_cluster import WORKERS, SparkCluster, executors_of
from tests.support.spark_submit import NO_DISK, Done, Submitter

from .test_mirror_audit import FIRST_MS
from .world import HEADERS, World, running, told, totals

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]
PROGRAM = "controlplane/lake/load.py"
PARTITIONS, RECORDS = 4, 2000
NAMES = ("alone", "cluster")
DRAWN = {"load", "table"}
"""Of a manifest: ids that each program and each table draw."""


@pytest.fixture
def world(tmp_path):
    folder = tmp_path / "world"
    folder.mkdir()
    with running(folder) as made:
        made.new_tenant()
        yield made


def write(sender: Sender, numbers: Iterable[int]) -> None:
    """A transaction, of records with and without key, value and headers."""
    sender.producer.begin_transaction()
    for number in numbers:
        value = None if number % 9 == 8 else b'{"user": "u%d", "amount": %d}' % (number, number)
        sender.producer.produce(
            "orders", value, b"k%d" % number if number % 3 else None, number % PARTITIONS,
            headers=HEADERS if number % 4 == 0 else None, timestamp=FIRST_MS + number * 1000,
        )  # fmt: skip
    sender.flush()


def manifests(world: World, name: str) -> list[dict[str, Any]]:
    return [{member: value for member, value in each.items() if member not in DRAWN} for each in world.manifests(name)]


def said(done: Done) -> list[str]:
    """Of each partition and commit: offsets, rows, checksum."""
    return [line for line in done.out.splitlines() if line.startswith("  partition ")]


def test_a_load_makes_the_same_table_on_one_machine_and_on_two_workers(world: World, tmp_path: Path):
    create_topic(world.tenant, "orders", PARTITIONS, factor=1, retention_ms="-1")
    sender = Sender(world.tenant, transactional_id="writer")
    sender.producer.init_transactions(TIMEOUT_S)
    ivy, done = world.home / "lake-load" / "ivy", {name: [] for name in NAMES}
    with SparkCluster(tmp_path / "spark") as cluster:
        submitters = {
            "alone": Submitter(tmp_path / "alone", "local[2]", ivy, packages=PACKAGES),
            "cluster": Submitter(
                tmp_path / "apart", cluster.of_jobs["SPARK_MASTER"], ivy, Path(cluster.of_jobs["SPARK_CONF_DIR"]),
                PACKAGES, NO_DISK,
            ),
        }  # fmt: skip
        for first in (0, RECORDS):
            write(sender, range(first, first + RECORDS))
            sender.producer.commit_transaction(TIMEOUT_S)
            write(sender, range(100))
            sender.producer.abort_transaction(TIMEOUT_S)
            for name, submitter in submitters.items():
                words = ("--brokers", world.tenant.bootstrap, "--topic", "orders", "--to", world.uri(name))
                some = ("--schema", "inferred", "--offsets-a-commit", str(RECORDS // 2))
                done[name].append(submitter.run(PROGRAM, *words, *some, environment={}))
    for each in (*done["alone"], *done["cluster"]):
        assert each.status == 0, each.out[-2000:]
    assert [said(each) for each in done["cluster"]] == [said(each) for each in done["alone"]]
    assert all(len(said(each)) >= PARTITIONS for each in done["alone"])

    assert told(world.manifests("alone")) == totals(world.records("orders"))
    assert manifests(world, "cluster") == manifests(world, "alone")
    assert len(manifests(world, "alone")) > 2, "a load of several commits"
    rows = {name: rows_in(Path(world.uri(name).removeprefix("file:"))) for name in NAMES}
    assert len(rows["alone"]) == 2 * RECORDS
    assert rows["cluster"] == rows["alone"]
    for each in done["cluster"]:
        executors = executors_of(tmp_path / "spark", each.application)
        assert len(set(executors.values())) == WORKERS
        assert set(each.tasks()) == set(executors)
        assert "spark.sql.shuffle.partitions" not in each.properties, "options for one machine are not a cluster's"
