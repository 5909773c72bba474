"""The whole way of a byte, killed twice: a real broker counts real traffic, Spark's Kafka source reads `__usage`, the
database shows the hours. SIGKILL to the driver and to the broker in the middle, records repeated, late and out of order:
afterwards the hours are what the counting client counted and what the topic says, without any difference.
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from controlplane.metering import selectors
from controlplane.stack.metering import absence
from quota.contracts.usage import UsageRecord, parse_value
from tests.benchmarks.consume import RawConsumer
from tests.integration.clients import Sender, create_topic
from tests.support.ports import free_port
from tests.support.processes import HOST, broker_process, secrets_file
from tests.support.spark_home import spark_home
from tests.support.specs import Specs
from tests.support.waiting import wait_for
from tests.support.wire import answers
from tests.support.zookeeper import ZooKeeperServer, operator

from .stream import (
    StreamJob,
    complete_since,
    hours_shown,
    hours_told,
    losses,
    moved_s_ago,
    status,
    usage_make_again,
    usage_values,
    usage_write,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # once, when Spark's Kafka source must be fetched first; a minute without
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]

PARTITIONS = 3
METERED_WITHIN_S = 180
SETTINGS = {
    "default_replication_factor": 1,
    "offsets_topic_replication_factor": 1,
    "transaction_state_log_replication_factor": 1,
    "usage_topic_num_partitions": 4,
    "usage_emit_interval_ms": 500,
}
PAUSE_S = 0.6  # longer than the interval: a round is told of before the next
MESSAGES = 500
ELSEWHERE = "ins-latelate"


class World:
    """ZooKeeper, one broker, one tenant with a topic, the job, and the database as the site reads it."""

    def __init__(self, home, folder, database_file, certificates=None) -> None:
        secrets = secrets_file(folder)
        securing, environment = securing_of(certificates)
        self.zookeeper = ZooKeeperServer(folder / "zookeeper", free_port())
        self.broker = broker_process(
            folder, 1, zookeeper=self.zookeeper.hosts, secrets=secrets, settings=SETTINGS, **securing
        )
        self.inside = f"{HOST}:{self.broker.ports['internal']}"
        self.job = StreamJob(
            home, folder, brokers=self.inside, secrets=secrets, database=database_file, environment=environment
        )
        self.database = DatabaseWrapper(
            {**connections["default"].settings_dict, "NAME": str(database_file)}, alias="usage"
        )
        self.client = operator(self.zookeeper.hosts, timeout=10)
        self.readers: list[RawConsumer] = []
        self.ends = [0] * PARTITIONS
        self.source = random.Random(4)
        self.counted = 0
        self.began = datetime.now(UTC)

    def start(self) -> None:
        self.job.fetch()
        self.job.start()  # Spark comes up while the rest does; the topic is not there yet
        self.zookeeper.start()
        self.broker.start()
        self.client.start(timeout=20)
        wait_for(self.broker.accepts, 30, "the broker")
        wait_for(lambda: self.client.exists("/controller"), 20, "a controller")
        self.tenant = Specs(self.client).create([1])
        create_topic(self.tenant, "orders", PARTITIONS, factor=1)
        address = self.tenant.addresses[1]
        self.sender = Sender(self.tenant, enable_idempotence=True, linger_ms=5, message_timeout_ms=60_000)
        self.readers = [RawConsumer(address, "orders", partition) for partition in range(PARTITIONS)]

    def traffic(self, rounds: int, pause_s: float = PAUSE_S) -> None:
        """Produce, and read it once: what one has read is what was produced and consumed. A broker tells of each round."""
        for _ in range(rounds):
            for number in range(MESSAGES):
                self.sender.send(
                    "orders", self.source.randbytes(self.source.randrange(900)), partition=number % PARTITIONS
                )
            self.sender.flush()
            for partition, offset, _ in self.sender.acknowledged:
                self.ends[partition] = max(self.ends[partition], offset + 1)
            self.sender.acknowledged.clear()
            for partition, reader in enumerate(self.readers):
                while reader.offset < self.ends[partition]:
                    self.counted += reader.fetch(2**18)
            time.sleep(pause_s)

    def restart_broker(self) -> None:
        """SIGKILL; the counters of what was never told lie in its mapped file.

        A broker counts what a client reads once it has left. One that is killed between the two has not counted the
        last answer, so it answers something else first.
        """
        assert answers(self.tenant.addresses[1])
        offsets = [reader.offset for reader in self.readers]
        self.broker.kill()
        self.broker.start()
        wait_for(self.broker.accepts, 30, "the broker")
        wait_for(lambda: self._reads_again(offsets), 30, "the partitions to have leaders")

    def _reads_again(self, offsets: list[int]) -> bool:
        for reader in self.readers:
            reader.close()
        self.readers = [RawConsumer(self.tenant.addresses[1], "orders", partition) for partition in range(PARTITIONS)]
        for reader, offset in zip(self.readers, offsets, strict=True):
            reader.offset = offset
            assert reader.fetch(1000) == 0  # raises RuntimeError for a partition without a leader
        return True

    def hours(self, instance_id: str) -> dict[str, tuple[int, ...]]:
        instance = SimpleNamespace(pk=instance_id)
        return hours_shown(self.database, instance, self.began - timedelta(days=1), self.began + timedelta(days=1))

    def totals(self) -> tuple[int, ...]:
        """Produced and consumed, as the hours add up."""
        rows = self.hours(self.tenant.id).values()
        return tuple(map(sum, zip(*rows, strict=True)))[:2]

    def stop(self) -> None:
        for reader in self.readers:
            reader.close()
        self.job.kill()
        self.broker.kill()
        self.client.stop()
        self.client.close()
        self.zookeeper.stop()
        self.database.close()


def securing_of(certificates):
    """What the broker's configuration says of TLS, and the job's environment."""
    if certificates is None:
        return {}, {}
    return (
        {"internal_security": "ssl", "tls_folder": str(certificates.folder("broker-1"))},
        {"SLUICE_CLUSTER_SECURITY": "ssl", "SLUICE_CLUSTER_TLS": str(certificates.folder("metering"))},
    )


@pytest.fixture
def world(tmp_path, database_file, django_db_blocker, monkeypatch):
    with spark_home() as home, django_db_blocker.unblock():
        made = World(home, tmp_path, database_file)
        monkeypatch.setattr(selectors, "connection", made.database)
        try:
            made.start()
            yield made
        finally:
            made.stop()


@pytest.mark.long  # minutes; `make killed` kills everything on the way
def test_no_kill_no_repetition_and_no_delay_changes_what_was_counted(world):
    began = time.monotonic()

    def metered() -> bool:
        return world.totals() == (world.counted, world.counted)

    world.traffic(4)
    wait_for(metered, METERED_WITHIN_S, "the first traffic to be metered")
    print(f"first metered after {time.monotonic() - began:.1f} s")

    world.traffic(3)  # batches are under way
    world.job.kill()
    world.traffic(3)
    assert not metered(), "the driver was killed too late to show anything"
    world.job.start()
    world.restart_broker()  # while Spark comes up: its source meets a broker that comes and goes
    world.traffic(3)
    wait_for(metered, METERED_WITHIN_S, "the traffic around the driver's death to be metered")

    world.traffic(2)
    world.traffic(1, pause_s=0)
    world.restart_broker()  # within the emit interval: nobody has been told of the last of it
    wait_for(metered, METERED_WITHIN_S, "what the broker told after its death")
    world.traffic(2)
    wait_for(metered, METERED_WITHIN_S, "the traffic after the broker's death to be metered")

    told = usage_values(world.inside)
    assert len({parse_value(value).boot.split(".")[0] for value in told}) == 3, "one boot per start"
    broker, hour, _ = whole_hours(world)[-1]
    began_hour = selectors.hour_text(world.began - timedelta(hours=1))
    assert (broker, began_hour <= hour < selectors.hour_text(datetime.now(UTC))) == (1, True)
    again = told * 2 + late(world.began)
    random.Random(7).shuffle(again)
    usage_write(world.inside, [*again, b"broken"])
    wait_for(
        lambda: status(world.database)["records"] >= len(usage_values(world.inside)),
        METERED_WITHIN_S,
        "the repetitions",
    )
    assert metered()
    wait_for(lambda: told_and_shown_are_equal(world), 20, "the hours of the topic and of the database to be equal")
    assert status(world.database)["bad"] == 1
    hours = sorted(world.hours(ELSEWHERE).items())
    assert [row for _, row in hours] == [(5, 1, 10), (4, 0, 10), (3, 2, 10)]
    assert losses(world.database) == []
    assert moved_s_ago(world.database) < 30

    asked_at_ms = time.time() * 1000
    wait_for(lambda: complete_since(world.database, asked_at_ms), 30, "the database to be complete up to a moment ago")
    usage_make_again(world.inside, partitions=2)
    usage_write(
        world.inside, [UsageRecord(1, "again", hour, ELSEWHERE, "clicks", 7, 7, 7).value() for hour, _ in hours]
    )
    wait_for(lambda: [row[0] for row in losses(world.database)] == ["made again"], 60, "the job to notice")
    wait_for(
        lambda: [row for _, row in sorted(world.hours(ELSEWHERE).items())] == [(12, 8, 17), (4, 0, 10), (3, 2, 10)],
        METERED_WITHIN_S,
        "the records of the topic that was made again, from the first one on",
    )
    assert metered()
    print(f"{world.counted:,} record bytes, {len(told):,} usage records, {time.monotonic() - began:.1f} s")


def whole_hours(world) -> list[tuple[int, str, str]]:
    """What brokers have said of whole hours, in the database."""
    with world.database.cursor() as cursor:
        cursor.execute("SELECT broker, hour, boot FROM metering_statement ORDER BY id")
        return cursor.fetchall()


def told_and_shown_are_equal(world) -> bool:
    """All hours, byte-seconds included; and the job has counted each record of the topic once, whatever was killed."""
    values = usage_values(world.inside)
    expected = hours_told(values)
    assert set(expected) == {world.tenant.id, ELSEWHERE}
    shown = {instance: world.hours(instance) for instance in expected}
    return shown == expected and status(world.database)["records"] == len(values)


def late(now: datetime) -> list[bytes]:
    """Another instance's counters over three hours, with older values of each among them."""
    hours = [selectors.hour_text(now - timedelta(hours=back)) for back in (5, 4, 3)]
    rows = [(0, 2, 0, 4), (0, 5, 1, 10), (1, 5, 1, 12), (1, 9, 1, 20), (2, 9, 1, 21), (2, 12, 3, 30)]
    return [UsageRecord(1, "late", hours[hour], ELSEWHERE, "orders", *counters).value() for hour, *counters in rows]
