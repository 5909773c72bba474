"""The stream job as a process beside one real broker and a real ZooKeeper; every one of them may be killed.

What the topic says is read a second time here, in plain Python, to compare with.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from django.db.backends.sqlite3.base import DatabaseWrapper

from controlplane.env import ROOT
from controlplane.metering import selectors
from controlplane.metering.pipeline.session import kafka_jars
from controlplane.stack.process import dies_with_parent
from quota.contracts.identity import credential
from quota.contracts.instance import ContractError
from quota.contracts.usage import COUNTERS, USAGE_TOPIC, UsageRecord
from tests.support.processes import SECRET
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FETCH_WITHIN_S = 180
TIMEOUT_S = 20


class StreamJob:
    """`python -m controlplane.metering.pipeline.jobs.usage`, with its JVM in one process group."""

    def __init__(
        self,
        home: Path,
        folder: Path,
        *,
        brokers: str,
        secrets: Path,
        database: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home / "metering"
        self.log = folder / "job.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "SPARK_MASTER"},
            "SLUICE_BROKERS": brokers,
            "SLUICE_SECRETS_FILE": str(secrets),
            "SLUICE_STACK_DIR": str(home),
            "SLUICE_LAKE": str(folder / "lake"),
            "DATABASE_URL": f"sqlite:///{database}",
            "SLUICE_USAGE_TRIGGER_S": "1",
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns at once."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "controlplane.metering.pipeline.jobs.usage"],
                cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL to driver and JVM."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def has_its_source(self) -> bool:
        return bool(kafka_jars(self.home))

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def fetch(self) -> None:
        """Have Spark's Kafka source here, once for all runs; skips the test where it cannot be had."""
        if self.has_its_source:
            return
        self.start()
        try:
            wait_for(lambda: self.has_its_source, FETCH_WITHIN_S, "Spark's Kafka source")
        except AssertionError:
            pytest.skip("Spark's Kafka source is not here, and Maven Central does not give it")
        finally:
            self.kill()


def _inside(bootstrap: str) -> dict[str, object]:
    """The internal listener, where `__usage` can be seen."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "operator",
        "sasl.password": credential(SECRET, "operator"),
        "log_level": 0,
    }


def usage_values(bootstrap: str) -> list[bytes]:
    """Every record of `__usage` up to now."""
    reader = Consumer({**_inside(bootstrap), "group.id": "unused", "enable.partition.eof": True})
    try:
        partitions = sorted(reader.list_topics(USAGE_TOPIC, TIMEOUT_S).topics[USAGE_TOPIC].partitions)
        reader.assign([TopicPartition(USAGE_TOPIC, partition, 0) for partition in partitions])
        values: list[bytes] = []
        open_ends = set(partitions)
        while open_ends:
            message = reader.poll(TIMEOUT_S)
            assert message is not None, f"partitions {sorted(open_ends)} of {USAGE_TOPIC} do not answer"
            if message.error() is None:
                values.append(message.value())
            else:
                open_ends.discard(message.partition())
        return values
    finally:
        reader.close()


def usage_write(bootstrap: str, values: Iterable[bytes]) -> None:
    """Put records into `__usage` as a broker does, in this order and into any partition."""
    writer = Producer({**_inside(bootstrap), "acks": "all"})
    for value in values:
        writer.produce(USAGE_TOPIC, value)
        writer.poll(0)
    assert writer.flush(TIMEOUT_S) == 0


def usage_make_again(bootstrap: str, *, partitions: int) -> None:
    """Delete the topic and create it, as somebody might who wants it tidy."""
    admin = AdminClient(_inside(bootstrap))
    admin.delete_topics([USAGE_TOPIC])[USAGE_TOPIC].result(TIMEOUT_S)
    wait_for(lambda: USAGE_TOPIC not in admin.list_topics(timeout=TIMEOUT_S).topics, TIMEOUT_S, "the topic to go")

    def made() -> bool:
        try:
            admin.create_topics([NewTopic(USAGE_TOPIC, partitions, 1)])[USAGE_TOPIC].result(TIMEOUT_S)
        except KafkaException as refused:
            return refused.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS  # the broker was first
        return True

    wait_for(made, TIMEOUT_S, "the topic to be made again")


def hours_told(values: Iterable[bytes]) -> dict[str, dict[str, tuple[int, ...]]]:
    """By instance and hour, what the records say: the contract's rule without Spark or SQL."""
    largest: dict[tuple[str, str, str], dict[str, tuple[int, ...]]] = defaultdict(dict)
    for value in values:
        try:
            record = UsageRecord.from_value(value)
        except ContractError:
            continue
        counters = tuple(getattr(record, name) for name in COUNTERS)
        of_key = largest[(record.instance, record.boot, record.topic)]
        of_key[record.hour] = tuple(map(max, of_key.get(record.hour, counters), counters))
    found: dict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for (instance, _, _), by_hour in largest.items():
        before = (0,) * len(COUNTERS)
        for hour in sorted(by_hour):
            step = tuple(now - earlier for now, earlier in zip(by_hour[hour], before, strict=True))
            known = found[instance].get(hour, (0,) * len(COUNTERS))
            found[instance][hour] = tuple(map(sum, zip(known, step, strict=True)))
            before = by_hour[hour]
    return dict(found)


def hours_shown(wrapper: DatabaseWrapper, instance, start, end) -> dict[str, tuple[int, ...]]:
    """By hour, what REST and console would show; `selectors.connection` must be the wrapper."""
    assert selectors.connection is wrapper
    hours = selectors.usage_hours(instance=instance, start=start, end=end)
    return {hour.hour: (hour.produced_bytes, hour.consumed_bytes, hour.stored_byte_seconds) for hour in hours}


def status(wrapper: DatabaseWrapper) -> Mapping[str, int]:
    """Records and bad records that the job has counted."""
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT records, bad_records FROM metering_pipelinestatus")
        row = cursor.fetchone() or (0, 0)
    return {"records": row[0], "bad": row[1]}


def complete_since(wrapper: DatabaseWrapper, at_ms: float) -> bool:
    """Whether all that had been written to `__usage` at a moment is in the database, as the job says."""
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), COUNT(complete_to_ms), MIN(complete_to_ms) FROM metering_progress")
        rows, known, least = cursor.fetchone()
    return rows == known and rows > 0 and least >= at_ms


def losses(wrapper: DatabaseWrapper) -> list[tuple[object, ...]]:
    """What the job could never read."""
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT kind, partition, start_offset, end_offset FROM metering_loss ORDER BY id")
        return cursor.fetchall()


def moved_s_ago(wrapper: DatabaseWrapper) -> float:
    """How long ago Spark last said that the query moves."""
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT moved_at_ms, batch_ms FROM metering_pipelinestatus")
        moved_at_ms, batch_ms = cursor.fetchone()
    assert batch_ms > 0
    return time.time() - moved_at_ms / 1000
