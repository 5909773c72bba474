"""Loads as tenants set them up: the real runner starts the real program, which reads real brokers on the tenant's behalf.

The rows are in the test's database; the cluster knows the instance by its specification in ZooKeeper.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.clusters.coordination import LiveBroker
from controlplane.clusters.identification import Identification
from controlplane.core.sealed import sealed
from controlplane.loads import running as runs
from controlplane.loads.models import Load, LoadRun, RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.runner import Runner
from controlplane.loads.serializers import reason_of
from controlplane.loads.services import run_ask
from controlplane.stack.metering import absence
from quota.contracts.identity import credential
from quota.contracts.instance import MIB, Limits
from tests.controlplane.conftest import alice  # noqa: F401  # a fixture
from tests.controlplane.loads.rows import LONG_AGO, load_row
from tests.controlplane.rows import instance_row
from tests.integration.clients import Sender, create_topic, delete_topic
from tests.support.processes import HOST, SECRET

from .fake_s3 import ACCESS_KEY, SECRET_KEY, FakeS3

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # once, when Delta and Spark's Kafka source must be fetched first; a minute without
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]

LIMIT = MIB // 2
"""Bytes a second that the instance may consume."""
PADDING = b"x" * 900


@pytest.fixture
def world(parts, monkeypatch, alice):  # noqa: F811  # the fixture of this name
    """The tenant's instance, in the cluster and in the database; `ask` and `run` as REST and the runner do."""
    parts.new_tenant(Limits(None, LIMIT, None, None))
    parts.instance = instance_row(alice.organisation, parts.tenant.id)
    inside = LiveBroker(1, HOST, parts.inside)
    monkeypatch.setattr(runs.brokers, "brokers", lambda _address: [inside])
    monkeypatch.setattr(runs, "to_brokers", lambda: Identification(credential(SECRET, "controlplane")))
    monkeypatch.setenv("SLUICE_STACK_DIR", str(parts.home))
    monkeypatch.setenv("SPARK_MASTER", "local[2]")
    return parts


def write(world, topic, count):
    sender = Sender(world.tenant)
    for number in range(count):
        sender.producer.produce(topic, b"%d %s" % (number, PADDING), b"k%d" % number, number % 2)
    sender.flush()


def run(world, load, asked=Asked()) -> LoadRun:  # noqa: B008  # it is frozen
    """Ask for it, and have a runner of its own do it."""
    wanted = run_ask(load, asked_by="alice", asked=asked, now=LONG_AGO)
    runner = Runner(home=world.folder / "runs")
    said = set()
    try:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            runner.turn()
            wanted.refresh_from_db()
            said.add(wanted.says)
            if wanted.state not in (RunState.WAITING, RunState.RUNNING):
                return wanted
            time.sleep(0.2)
        raise AssertionError(f"the run says {sorted(said)}")
    finally:
        runner.close()


@pytest.fixture
def store(settings):
    """Where the tenant's bucket is."""
    with FakeS3() as made:
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders="file:/", lake_buckets=made.url)
        yield made


def in_folder(world):
    """What a copy of the table has, by its key: all but what readers can do without: checksums, and VACUUM's note."""
    folder = Path(world.uri("orders").removeprefix("file:"))
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".crc"]
    files = [path for path in files if path.name != "_last_vacuum_info"]
    return {f"lake/orders/load-000000000001/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}


def bucket_load(world, store):
    return load_row(
        world.instance, folder=world.uri("orders"), kind="bucket", bucket=store.bucket, path="lake/orders", region="us-east-1",
        access_key=ACCESS_KEY, secret_key=sealed(Load, "secret_key", SECRET_KEY.encode(), id="load-000000000001"),
    )  # fmt: skip


def test_a_topic_without_records_is_a_table_without_rows_in_the_bucket(world, store):
    create_topic(world.tenant, "orders", 2, factor=1)
    load = bucket_load(world, store)
    first = run(world, load)
    assert (first.state, first.row_count, first.commits) == (RunState.SUCCEEDED, 0, 1), first.says
    named = {
        key: content for key, content in in_folder(world).items() if not key.endswith(".parquet")
    }  # Spark leaves one
    assert store.objects == named
    assert list(named) == ["lake/orders/load-000000000001/_delta_log/00000000000000000000.json"]
    load.refresh_from_db()
    assert load.copied_version == 0


@pytest.mark.long  # minutes
def test_a_tenant_s_load_from_its_first_run_to_a_topic_that_was_made_again(world, store):
    create_topic(world.tenant, "orders", 2, factor=1)
    count = 9000
    write(world, "orders", count)
    load = bucket_load(world, store)
    began = time.monotonic()
    first = run(world, load)
    took_s = time.monotonic() - began
    assert (first.state, first.row_count, first.exit_status) == (RunState.SUCCEEDED, count, 0), first.says
    # Spark takes some seconds before it reads anything, so this bound is a loose one; without the limit it is over sooner.
    assert took_s > first.byte_count / LIMIT - 2, took_s
    assert [manifest["topic"] for manifest in world.manifests("orders")] == ["orders"], "as the tenant knows it"
    compared = world.verify("orders")
    assert (compared["status"], len(compared["lines"])) == (0, 2), compared
    print(f"{first.byte_count:,} bytes in {took_s:.1f} s")
    assert store.objects == in_folder(world), "the bucket has the table"

    again = run(world, load, Asked(offsets={0: (0, 10)}))
    assert (again.state, again.row_count) == (RunState.SUCCEEDED, 10), again.says
    assert world.verify("orders")["status"] == 0

    delete_topic(world.tenant, "orders")
    create_topic(world.tenant, "orders", 2, factor=1)
    write(world, "orders", 7)
    refused = run(world, load)
    assert (refused.state, reason_of(refused)) == (RunState.FAILED, "another_topic")
    assert "new_topic" in refused.says
    assert world.tenant.key not in refused.says
    fresh = run(world, load, Asked(new_topic=True))
    assert (fresh.state, fresh.row_count) == (RunState.SUCCEEDED, 7), fresh.says
    load.refresh_from_db()
    assert (load.failures, load.copied_version) == (0, len(world.log("orders")) - 1)
    assert store.objects == in_folder(world), "the bucket has the table, as it is now"
