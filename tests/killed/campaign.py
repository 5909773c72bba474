"""Rounds: the job runs while tenants' clients work, things are killed and started again, and in the end all is compared.

One ZooKeeper, three brokers, two flow masters, a Spark cluster, and for each kind of database a `Side`: they are kept from round
to round, so that a database has gone through the kills of all its rounds. One in which something differs is set aside, and
another one, which begins with the first record of the topic, takes its place.
"""

from __future__ import annotations

import json
import random
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from tests.killed.comparing import COMES_WITHIN_S, Comparison
from tests.killed.lake_reader import lake_reader
from tests.killed.oracle import Records
from tests.killed.plan import BROKER, DRIVER, EXECUTOR, LEADER, OF_BROKERS, POINTS, POSTGRESQL, WORKER, Fault, Round
from tests.killed.side import Side
from tests.killed.traffic import Client
from tests.killed.usage_topic import PARTITIONS, TOPIC, UsageTopic
from tests.support.cluster import ProcessCluster
from tests.support.ports import free_port
from tests.support.postgresql import PostgreSQLServer
from tests.support.processes import HOST
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_home import spark_home
from tests.support.waiting import wait_for

SETTINGS = {
    "min_insync_replicas": 2,
    "usage_topic_num_partitions": PARTITIONS,
    "usage_emit_interval_ms": 500,
    "usage_storage_interval_ms": 3_600_000,  # then nothing is told while nobody works
}
CLIENTS = {"still, pro": ("pro", False), "still, traffic": ("traffic", False), "busy": ("traffic", True)}
"""Plan of each, and whether it works on while brokers are killed."""
Say = Callable[[str], None]


@dataclass
class Outcome:
    """What has become of a round."""

    round: Round
    kills: list[str] = field(default_factory=list)  # where they hit
    differences: list[str] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        """For a report."""
        return asdict(self)


class Campaign:
    """A context manager; `folder` is its own."""

    def __init__(self, folder: Path, databases: tuple[str, ...], seed: int, say: Say, bug: str = "") -> None:
        self._folder, self._databases, self._seed, self._say = folder, databases, seed, say
        self._bug = bug  # planted into the job
        self._dice = random.Random(f"whom, {seed}")
        self._stack = ExitStack()
        self._sides: dict[str, Side] = {}
        self._made = 0  # sides
        self._clients: dict[str, Client] = {}

    def __enter__(self) -> Self:
        try:
            self._enter()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _enter(self) -> None:
        enter = self._stack.enter_context
        self._homes = {database: enter(spark_home()) for database in self._databases}
        self._postgresql = None
        if POSTGRESQL in self._databases:
            self._postgresql = enter(PostgreSQLServer(self._folder / "postgresql", free_port()))
        self._brokers = enter(ProcessCluster(self._made_folder("brokers"), SETTINGS))
        self._say("three brokers are up")
        self._spark = enter(SparkCluster(self._made_folder("spark")))
        self._say("Spark's master and workers are up")
        opened = self._opened = datetime.now(UTC)
        for number, (name, (_, is_busy)) in enumerate(CLIENTS.items()):
            self._clients[name] = Client(self._brokers, self._seed + number, is_busy=is_busy)
            self._stack.callback(self._clients[name].close)
        for database in self._databases:
            self._sides[database] = self._side(database)
        records = Records(self._folder / "records.sqlite")
        self._stack.callback(records.close)
        lake = enter(lake_reader(self._homes[self._databases[0]], self._folder / "verifier.log"))
        clients = {name: (client, CLIENTS[name][0]) for name, client in self._clients.items()}
        self._comparison = Comparison(clients, UsageTopic(self._bootstrap), records, lake, opened)
        self._say("databases and lakes are there")

    def _made_folder(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _side(self, database: str) -> Side:
        """With tables and the instances; its stream begins at the first record."""
        self._made += 1
        name = f"{database}-{self._made}"
        folder = self._made_folder(name)
        url = f"sqlite:///{folder}/usage.sqlite3"
        if database == POSTGRESQL:
            assert self._postgresql is not None
            url = self._postgresql.database(name)
        environment = {
            "SLUICE_BROKERS": self._bootstrap,
            "SLUICE_SECRETS_FILE": str(self._folder / "brokers" / "secrets.json"),
            "SLUICE_TESTS_BUG": self._bug,
        }
        side = Side(self._homes[database], folder, url, environment)
        self._stack.callback(side.kill)
        plans = {client.tenant.id: CLIENTS[name][0] for name, client in self._clients.items()}
        side.bills("make", {"opened": self._opened.isoformat(), "plans": plans})
        return side

    @property
    def _bootstrap(self) -> str:
        """Of the brokers' internal listeners."""
        return ",".join(f"{HOST}:{broker.ports['internal']}" for broker in self._brokers.brokers.values())

    # --- a round ------------------------------------------------------------------------------------------------------

    def run(self, each: Round) -> Outcome:
        """One round; whatever happens in it is told, and the next one can begin."""
        outcome, began, side = Outcome(each), time.monotonic(), self._sides[each.database]
        try:
            self._work(each, side, outcome.kills)
            outcome.differences, outcome.figures = self._comparison.differences(side)
        except Exception as error:  # noqa: BLE001  # a finding like others
            last = traceback.extract_tb(error.__traceback__)[-1]
            outcome.differences = [f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {error}"]
        finally:
            side.kill()
            for client in self._clients.values():
                client.pause()
            self._spark.tidy()
        outcome.seconds = round(time.monotonic() - began, 1)
        if outcome.differences:
            self._set_aside(each.database, outcome)
        return outcome

    def _set_aside(self, database: str, outcome: Outcome) -> None:
        side = self._sides[database]
        self._say(f"set aside: {side.folder}")
        (side.folder / "outcome.json").write_text(json.dumps(outcome.document(), indent=1))
        checkpoint = self._homes[database] / "metering" / "checkpoint"
        if checkpoint.exists():
            checkpoint.rename(side.folder / "checkpoint")
        self._brokers.heal()
        self._sides[database] = self._side(database)

    def _work(self, each: Round, side: Side, kills: list[str]) -> None:
        """All of the round's kills, with records that go through the job before, between and after them."""
        before = side.positions()
        side.start(self._spark.of_jobs if each.on_a_cluster else {})
        for client in self._clients.values():
            client.work()
        for fault in each.faults:
            if fault.kind not in OF_BROKERS:  # these may come while Spark does
                side.wait_moved(before, COMES_WITHIN_S)
            time.sleep(fault.pause_s)
            kills.append(self._kill(fault, side))
            self._say(f"  killed: {kills[-1]}")
            before = side.positions()
        side.wait_moved(before, COMES_WITHIN_S)
        for client in self._clients.values():
            client.rest()

    # --- kills --------------------------------------------------------------------------------------------------------

    def _kill(self, fault: Fault, side: Side) -> str:
        """Kill, and start again; where it hit."""
        if fault.kind in POINTS:
            where = side.dies_at(fault)
            side.start()
            return where
        if fault.kind == DRIVER:
            side.kill()
            side.start()
            return DRIVER
        if fault.kind == EXECUTOR:
            wait_for(self._spark.executors, COMES_WITHIN_S, "an executor")
            self._spark.executor_kill(self._dice)
            return EXECUTOR
        if fault.kind == WORKER:
            number = self._spark.worker_kill(self._dice)
            time.sleep(fault.down_s)
            self._spark.worker_start(number)
            self._spark.wait_whole()
            return f"{WORKER} {number}"
        return self._kill_broker(fault)

    def _kill_broker(self, fault: Fault) -> str:
        self._brokers.heal()  # of two that are away at the same time, a partition has no quorum
        number, partition = self._dice.choice(sorted(self._brokers.brokers)), self._dice.randrange(PARTITIONS)
        if fault.kind == LEADER:
            number = int(self._brokers.state(TOPIC, partition)["leader"])
        with ExitStack() as stands:
            for client in self._clients.values():
                stands.enter_context(client.meanwhile())
            self._brokers.brokers[number].kill()
        time.sleep(fault.down_s)
        self._brokers.restart(number)
        self._brokers.heal()
        return f"{BROKER} {number}" + (f", leader of {TOPIC}-{partition}" if fault.kind == LEADER else "")
