"""One round: a topic of its own, the workload on it, one fault or several of a kind, healing, reading, checking.

0 s          topic created, clients begin
2 s          the fault, again and again after recoveries while there is time
SECONDS      the producers end; everything is healed; all replicas are read, the consumers read to the end

An outcome says how long each step took: what is not `load` is what a round costs beyond its seconds.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from tests.chaos.checker import Findings, check, check_served
from tests.chaos.clients import DRAINED_WITHIN_S, PARTITIONS
from tests.chaos.replicas import Replica, differences, read_replica
from tests.chaos.views import disagreements
from tests.integration.clients import create_topic, delete_topic
from tests.support.cluster import BROKERS
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.chaos.clients import Client
    from tests.chaos.cluster import ChaosCluster
    from tests.chaos.faults import Faults
    from tests.support.specs import Tenant

_STEADY_S = 2.0
_CONTROLLER_WITHIN_S = 20.0
_ORDER_S = DRAINED_WITHIN_S + 20


@dataclass(slots=True)
class Outcome:
    """What a round shows."""

    number: int
    kind: str
    seed: int
    faults: int = 0
    acknowledged: int = 0
    refused: int = 0
    longest_gap_s: float = 0.0
    seconds: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)  # seconds of each
    findings: Findings = field(default_factory=Findings)


def outcome_of(kept: dict[str, Any]) -> Outcome:
    """One that was written down."""
    return Outcome(**{**kept, "findings": Findings(**kept["findings"])})


class _Steps:
    """A watch with laps."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds, self._since = seconds, time.monotonic()

    def end(self, step: str) -> None:
        """What was done since the last one ended was this."""
        now = time.monotonic()
        self._seconds[step], self._since = round(now - self._since, 2), now


class Round:
    """See the file's text. `whole` never raises but for what is wrong with the tests."""

    def __init__(
        self, cluster: ChaosCluster, tenant: Tenant, clients: list[Client], faults: Faults, folder: Path
    ) -> None:
        self._cluster, self._tenant, self._clients = cluster, tenant, clients
        self._faults, self._folder = faults, folder
        self._steps = _Steps({})

    def whole(self, outcome: Outcome, seconds: float) -> None:
        """Raises SkippedError."""
        began = time.monotonic()
        self._steps = _Steps(outcome.steps)
        topic = f"round-{outcome.number}"
        physical = f"{self._tenant.key}.{topic}"
        self._faults.topic, self._faults.bootstrap = physical, self._tenant.bootstrap
        try:
            _patiently(lambda: create_topic(self._tenant, topic, PARTITIONS, min_insync_replicas="2"))
            self._order(self._clients, do="begin", topic=topic, group=f"readers-{outcome.number}")
            self._steps.end("begin")
            self._make_faults(outcome, time.monotonic() + seconds)
            self._steps.end("load")
            self._finish(outcome, physical)
            if not outcome.findings:
                _patiently(lambda: delete_topic(self._tenant, topic))
                self._steps.end("delete")
        except (AssertionError, KafkaException) as error:
            outcome.findings.add("stuck", str(error))
        outcome.seconds = time.monotonic() - began

    def _make_faults(self, outcome: Outcome, until: float) -> None:
        time.sleep(_STEADY_S)
        for number in itertools.count():
            started = time.monotonic()
            outcome.faults += self._faults.make(outcome.kind, outcome.seed + number)
            self._cluster.heal()
            took = time.monotonic() - started
            if time.monotonic() + 1 + took > until:
                break
            time.sleep(1.0)  # some more records between two faults
        time.sleep(max(0.0, until - time.monotonic()))

    def _finish(self, outcome: Outcome, physical: str) -> None:
        producers = [client for client in self._clients if client.role == "producer"]
        others = [client for client in self._clients if client.role != "producer"]
        reports = self._end(producers, {})
        outcome.acknowledged = sum(len(report["acknowledged"]) for report in reports["producer"].values())
        outcome.refused = sum(len(report["refused"]) for report in reports["producer"].values())
        outcome.longest_gap_s = max(report["longest_gap_s"] for report in reports["producer"].values())
        self._steps.end("drain")
        self._cluster.heal()
        self._steps.end("heal")
        replicas = self._at_rest(physical)
        self._steps.end("copies")
        ends = {partition: min(replica.end for replica in found) for partition, found in replicas.items()}
        reports |= self._end(others, ends)
        self._steps.end("read")
        for partition, found in replicas.items():
            for difference in differences(f"{physical}-{partition}", found, at_rest=True):
                outcome.findings.add("replicas", difference)
        for difference in self._compare_others(physical):
            outcome.findings.add("replicas", difference)
        for disagreement in disagreements(self._cluster, physical):
            outcome.findings.add("views", disagreement)
        # One copy holds what every other holds, or that was found above.
        log = {partition: _records(found[0]) for partition, found in replicas.items()}
        numbering = {partition: found[0].numbering for partition, found in replicas.items()}
        readers = reports["member"], reports["assigned"]
        check(log, reports["producer"], *readers, outcome.findings, self._faults.alone, numbering)
        check_served(reports["producer"], self._faults.served, outcome.findings)
        self._steps.end("compare")

    def _order(self, clients: list[Client], **order: Any) -> None:
        for client in clients:
            client.order(**order)
        for client in clients:
            client.await_ok(_ORDER_S)

    def _end(self, clients: list[Client], ends: dict[int, int]) -> dict[str, dict[str, Any]]:
        files = {client: self._folder / f"{client.name}.json" for client in clients}
        for client, file in files.items():
            client.order(do="end", ends=ends, file=str(file))
        for client in clients:
            client.await_ok(_ORDER_S)
        reports: dict[str, dict[str, Any]] = {}
        for client, file in files.items():
            reports.setdefault(client.role, {})[client.name] = json.loads(file.read_text())
        return reports

    # --- replicas -----------------------------------------------------------------------------------------------------

    def _at_rest(self, physical: str) -> dict[int, list[Replica]]:
        """All copies of the topic, once they end together; at last, also if they do not. The first has the values."""
        found: dict[int, list[Replica]] = {}

        def equal() -> bool:
            found.update({p: self._read(f"{physical}-{p}", whole=True) for p in range(PARTITIONS)})
            return all(len({replica.end for replica in replicas}) == 1 for replicas in found.values())

        with contextlib.suppress(AssertionError):
            wait_for(equal, 10, "replicas to end together")
        return found

    def _read(self, name: str, *, whole: bool) -> list[Replica]:
        return [
            read_replica(broker, self._cluster.data(broker) / name, whole=whole, values=whole and broker == BROKERS[0])
            for broker in BROKERS
        ]

    def _compare_others(self, physical: str) -> list[str]:
        """Everything else on the disks: other topics, the groups' offsets, usage. They may be written meanwhile."""
        found = []
        names = {path.name for broker in BROKERS for path in self._cluster.data(broker).glob("*-[0-9]*")}
        for name in sorted(names):
            topic, _, partition = name.rpartition("-")
            assignment = self._cluster.read(f"/brokers/topics/{topic}")
            if topic != physical and assignment is not None and partition in assignment["partitions"]:
                found += differences(name, self._read(name, whole=False), at_rest=False)
        return found


_DONE_BEFORE = (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.UNKNOWN_TOPIC_OR_PART)


def _patiently(ask: Callable[[], None]) -> None:
    """Again while there is no controller: librdkafka's admin client leaves that to whoever uses it.

    A controller that was deposed while it did what was asked says the same: then it is done when it is asked for again.
    """
    deadline, asked = time.monotonic() + _CONTROLLER_WITHIN_S, False
    while True:
        try:
            return ask()
        except KafkaException as error:
            code = error.args[0].code()
            if asked and code in _DONE_BEFORE:
                return None
            if code != KafkaError.NOT_CONTROLLER or time.monotonic() > deadline:
                raise
            asked = True
            time.sleep(0.5)


def _records(replica: Replica) -> dict[int, tuple[str, int]]:
    found = {}
    for offset, value in replica.values.items():
        producer, number, _ = value.split(b":", 2)
        found[offset] = (producer.decode(), int(number))
    return found
