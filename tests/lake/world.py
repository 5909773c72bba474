"""One real broker and ZooKeeper, a tenant's port, a driver that may be killed, and a consumer that knows nothing of Spark."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicCollection, TopicPartition
from kazoo.client import KazooClient

from controlplane.env import ROOT
from controlplane.lake.checksum import Total, record_total
from controlplane.lake.load import PACKAGES
from controlplane.spark.jars import fetched
from controlplane.stack.process import dies_with_parent
from quota.contracts.instance import Limits
from tests.integration.clients import TIMEOUT_S, admin
from tests.support.ports import free_port
from tests.support.processes import broker_process, secrets_file
from tests.support.spark_home import spark_home
from tests.support.specs import UNLIMITED, Specs
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer, operator

SETTINGS = {
    "default_replication_factor": 1,
    "offsets_topic_replication_factor": 1,
    "transaction_state_log_replication_factor": 1,
    "log_cleaner_backoff_ms": 200,
}
HEADERS = [("kind", b"click"), ("kind", None), ("größe", b"\x00\xff")]


class Driver:
    """The process. Started by the first order, and again by the first one after its death."""

    def __init__(self, home: Path, log: Path) -> None:
        self._home = home
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def load(self, *words: str, kill: str | None = None) -> dict[str, Any]:
        """What `load.run` answers; `{"killed": …}` where it died."""
        return self._ask({"load": words, "kill": kill})

    def verify(self, *words: str) -> dict[str, Any]:
        return self._ask({"verify": words})

    def audit(self, *words: str) -> dict[str, Any]:
        return self._ask({"audit": words})

    def moments(self, *moments: int) -> list[int] | str:
        return self._ask({"moments": moments})

    def sql(self, statement: str) -> list[list[Any]]:
        return self._ask({"sql": statement})

    def _ask(self, order: dict[str, Any]) -> Any:
        process = self._process or self._start()
        print(json.dumps(order), file=process.stdin, flush=True)
        answer = process.stdout.readline()
        if not answer:
            self._process = None
            code = process.wait(20)
            close(process)
            assert code == -signal.SIGKILL, self.tail()
            assert order.get("kill"), self.tail()
            return {"killed": order["kill"]}
        return json.loads(answer)

    def _start(self) -> subprocess.Popen[str]:
        had_jars = bool(fetched(self._home / "lake-load", PACKAGES))
        quick = "-XX:TieredStopAtLevel=1"  # small loads on few cores: the better compiler would cost more than it gains
        environment = {
            **os.environ, "SLUICE_STACK_DIR": str(self._home), "SPARK_MASTER": "local[2]", "JAVA_TOOL_OPTIONS": quick,
        }  # fmt: skip
        with self._log.open("ab") as log:
            self._process = process = subprocess.Popen(
                [sys.executable, "-m", "tests.lake.driver"],
                cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )  # fmt: skip
        if not process.stdout.readline():
            self.kill()
            if had_jars:
                raise AssertionError(self.tail())
            pytest.skip("Delta Lake and Spark's Kafka source are not here, and Maven Central does not give them")
        return process

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            close(self._process)
            self._process = None

    def tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


def close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            stream.close()


class World:
    """The parts, and the tenant of the test that runs."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self.folder = home, folder
        self._zookeeper = ZooKeeperServer(folder / "zookeeper", free_port())
        self._broker = broker_process(
            folder, 1, zookeeper=self._zookeeper.hosts, secrets=secrets_file(folder), settings=SETTINGS
        )
        self._client: KazooClient = operator(self._zookeeper.hosts, timeout=10)
        self.driver = Driver(home, folder / "driver.log")

    def start(self) -> None:
        self._zookeeper.start()
        self._broker.start()
        self._client.start(timeout=20)
        wait_for(self._broker.accepts, 30, "the broker")
        wait_for(lambda: self._client.exists("/controller"), 20, "a controller")

    @property
    def inside(self) -> int:
        """The port of the broker's internal listener."""
        return self._broker.ports["internal"]

    @property
    def zookeeper(self) -> str:
        """Its address."""
        return self._zookeeper.hosts

    def new_tenant(self, limits: Limits = UNLIMITED) -> None:
        """An instance without topics, and no tables: as each test finds it."""
        self.tenant = Specs(self._client).create([1], limits=limits)

    def stop(self) -> None:
        self.driver.kill()
        self._broker.kill()
        self._client.stop()
        self._client.close()
        self._zookeeper.stop()

    def load(self, topic: str, *words: str, kill: str | None = None) -> dict[str, Any]:
        """Into the table of the same name."""
        common = ("--brokers", self.tenant.bootstrap, "--topic", topic, "--to", self.uri(topic))
        return self.driver.load(*common, *words, kill=kill)

    def verify(self, topic: str) -> dict[str, Any]:
        return self.driver.verify("--brokers", self.tenant.bootstrap, "--topic", topic, "--to", self.uri(topic))

    def uri(self, topic: str) -> str:
        return f"file:{self.folder}/lake/{self.tenant.key}/{topic}"

    def sql(self, topic: str, statement: str) -> list[list[Any]]:
        """`{}` in the statement is the table."""
        return self.driver.sql(statement.format(f"delta.`{self.uri(topic)}`"))

    def topic_id(self, topic: str) -> str:
        """As Kafka writes it."""
        client = admin(self.tenant)
        [described] = client.describe_topics(TopicCollection([topic])).values()
        return str(described.result(TIMEOUT_S).topic_id).replace("/", "_").replace("+", "-")

    def records(self, topic: str) -> list[tuple[Any, ...]]:
        """All that an independent consumer reads: partition, offset, timestamp, its type, key, value, headers; in order."""
        settings = {"bootstrap.servers": self.tenant.bootstrap, "group.id": "unused", "enable.partition.eof": True,
                    "isolation.level": "read_committed", "log_level": 0}  # fmt: skip
        reader = Consumer(settings)
        try:
            places = [TopicPartition(topic, at) for at in reader.list_topics(topic, TIMEOUT_S).topics[topic].partitions]
            ends = {place.partition: reader.get_watermark_offsets(place, TIMEOUT_S)[1] for place in places}
            reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in ends])
            found = []
            while ends:
                message = reader.poll(TIMEOUT_S)
                assert message is not None, f"partitions {sorted(ends)} of {topic} do not answer"
                if message.error() is not None:
                    is_end = message.error().code() == KafkaError._PARTITION_EOF
                    assert is_end or message.error().retriable(), message.error()
                    if is_end and message.offset() >= ends.get(message.partition(), 0):
                        ends.pop(message.partition(), None)
                    continue
                kind, timestamp_ms = message.timestamp()
                found.append(
                    (message.partition(), message.offset(), timestamp_ms, kind - 1, message.key(), message.value(),
                     message.headers() or [])
                )  # fmt: skip
            return sorted(found)
        finally:
            reader.close()

    def rows(self, topic: str, where: str = "true") -> list[tuple[Any, ...]]:
        """The same columns of the table."""
        chosen = "partition, offset, timestamp_ms, timestamp_type, key, value, headers"
        return sorted(
            (*row[:4], unhex(row[4]), unhex(row[5]), [(header["key"], unhex(header["value"])) for header in row[6]])
            for row in self.sql(topic, f"SELECT {chosen} FROM {{}} WHERE {where}")
        )

    def log(self, topic: str) -> list[Path]:
        """The files of the table's commits, the oldest first."""
        return sorted(Path(self.uri(topic).removeprefix("file:")).glob("_delta_log/*.json"))

    def manifests(self, topic: str) -> list[dict[str, Any]]:
        """Of all loads, the oldest first: as anybody finds them who reads the log's files."""
        actions = [json.loads(line) for path in self.log(topic) for line in path.read_text().splitlines()]
        texts = [action.get("commitInfo", {}).get("userMetadata") for action in actions]
        return [json.loads(text) for text in texts if text]


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def totals(records: list[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    """By partition, in the words of a manifest."""
    found: dict[int, Total] = {}
    for partition, offset, timestamp_ms, _, key, value, headers in records:
        found[partition] = found.get(partition, Total()) + record_total(
            partition, offset, timestamp_ms, key, value, headers
        )
    return {
        str(partition): {"rows": total.rows, "bytes": total.bytes, "checksum": f"{total.checksum:016x}"}
        for partition, total in found.items()
    }


def told(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The sum of commits that only added rows."""
    found: dict[str, Total] = {}
    for manifest in manifests:
        assert manifest["mode"] == "append"
        for partition, part in manifest["partitions"].items():
            total = Total(part["rows"], part["bytes"], int(part["checksum"], 16))
            found[partition] = found.get(partition, Total()) + total
    return {
        partition: {"rows": total.rows, "bytes": total.bytes, "checksum": f"{total.checksum:016x}"}
        for partition, total in found.items()
        if total.rows
    }


@contextmanager
def running(folder: Path) -> Iterator[World]:
    with spark_home() as home:
        shutil.rmtree(home / "lake-load" / "tmp", ignore_errors=True)  # of drivers that were killed
        made = World(home, folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()
