"""`mirror_audit` by spark-submit, on threads of one process and on a standalone Master with two Workers: it says the same.

A topic beside its copy with a fault in one of the partitions, on a real broker. Executors run no Python of ours; they read both
topics, and keep what they have read on their own disks until the other side is there.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from controlplane.lake.load import PACKAGES
from controlplane.stack.metering import absence
from tests.support.spark_cluster import WORKERS, SparkCluster, executors_of
from tests.support.spark_submit import Submitter

from .test_mirror_audit import DIFFERENT, changed, marked, put, written
from .world import World, running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]
PARTITIONS = 4


@pytest.fixture
def world(tmp_path):
    folder = tmp_path / "world"
    folder.mkdir()
    with running(folder) as made:
        made.new_tenant()
        yield made


def test_a_mirror_is_audited_alike_on_one_machine_and_on_two_workers(world: World, tmp_path: Path):
    records = written(2000, PARTITIONS)
    put(world, "orders", records, PARTITIONS)
    put(world, "copy", marked(changed(21, 3, b"other")(records), b"source")[:-6], PARTITIONS)
    words = (
        "--brokers", world.tenant.bootstrap, "--topic", "orders", "--target-brokers", world.tenant.bootstrap,
        "--target-topic", "copy",
    )  # fmt: skip
    program = "controlplane/lake/mirror_audit.py"
    alone = Submitter(tmp_path / "alone", "local[2]", world.home / "lake-load" / "ivy", packages=PACKAGES)
    local = alone.run(program, *words, environment={})
    with SparkCluster(tmp_path / "spark") as cluster:
        told = cluster.of_jobs
        apart = dataclasses.replace(
            alone, folder=tmp_path / "apart", master=told["SPARK_MASTER"], spark_conf=Path(told["SPARK_CONF_DIR"])
        )
        remote = apart.run(program, *words, environment={})
    lines, remote_lines = (
        [line for line in done.out.splitlines() if line.startswith("partition ")] for done in (local, remote)
    )
    assert (local.status, remote.status) == (DIFFERENT, DIFFERENT), (local.out[-2000:], remote.out[-2000:])
    assert remote_lines == lines
    assert ["DIFFERENT" in line for line in lines] == [False, True, False, False]
    assert "another value" in lines[1]
    executors = executors_of(tmp_path / "spark", remote.application)
    assert len(set(executors.values())) == WORKERS
    assert set(remote.tasks()) == set(executors)
    assert "spark.sql.shuffle.partitions" not in remote.properties, "options for one machine are not a cluster's"
