"""Librdkafka, Java and kafkajs in one group while members and brokers are killed.

    python -m tests.chaos --members 50 [--seed 7]

A third of the rounds with eager assignors, with cooperative ones, and by the consumer protocol (KIP-848), each with a group and a
topic of its own. In each round a member gets SIGKILL, or the group's coordinator, or any broker, or a member and the coordinator,
and is started again; then the group must come to rest within two session time-outs: every partition is one member's, and every
member has one. A producer writes all the while. At the end everything has been read and committed, nothing was read again that
had been committed before its partition was assigned, and no commit went back (`kept`).
"""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination.placement import partition_of
from tests.chaos.members.kept import Said, Taken, wrong
from tests.chaos.members.running import CLIENTS, Member, Programs
from tests.integration.clients import create_topic
from tests.support.cluster import BROKERS, ProcessCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.specs import Tenant

PARTITIONS = 6
SESSION_MS = 8_000
AT_REST_WITHIN_S = 2 * SESSION_MS / 1000
KINDS = ("member", "group coordinator", "member and coordinator", "any broker")
PER_SECOND = 200
SETTINGS = {
    "group_min_session_timeout_ms": 1000,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "group_consumer_heartbeat_interval_ms": 500,
    "offsets_topic_num_partitions": 4,
    "leader_imbalance_check_interval_ms": 5_000,
}
BEGINS_WITHIN_S, ENDS_WITHIN_S = 90.0, 120.0


class Source(threading.Thread):
    """Writes at an even rate until it is told to stop; then everything it wrote is acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._topic, self._over = topic, threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self.refused: Counter[str] = Counter()

    def run(self) -> None:
        number = 0
        while not self._over.wait(1 / PER_SECOND):
            self._producer.produce(
                self._topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._delivered
            )
            self._producer.poll(0)
            number += 1

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self.refused[error.name()] += 1

    def stop(self) -> None:
        """Raises AssertionError where something is not acknowledged."""
        self._over.set()
        self.join(30)
        left = self._producer.flush(60)
        assert not left, f"{left} records were not acknowledged"


def run(rounds: int, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The whole of it: figures by assignors, and what was wrong."""
    programs, choices = Programs(), random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="sluice-members-"))
    try:
        with ProcessCluster(folder, SETTINGS) as cluster:
            tenant = cluster.tenant()
            shares = [rounds // 3 + (at < rounds % 3) for at in range(3)]
            groups = {
                mode: _Group(cluster, tenant, mode, programs, choices, say).whole(share)
                for mode, share in zip(CLIENTS, shares, strict=True)
                if share
            }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"groups": groups, "wrong": [f"{mode}: {what}" for mode, group in groups.items() for what in group["wrong"]]}


class _Group:
    def __init__(
        self,
        cluster: ProcessCluster,
        tenant: Tenant,
        mode: str,
        programs: Programs,
        choices: random.Random,
        say: Callable[[str], None],
    ) -> None:
        self._cluster, self._tenant, self._mode, self._choices, self._say = cluster, tenant, mode, choices, say
        self._topic = self._name = f"members-{mode}"
        self._said: list[Said] = []
        self._refused: Counter[str] = Counter()
        create_topic(tenant, self._topic, PARTITIONS)
        arguments = [tenant.bootstrap, self._name, self._topic, mode, str(SESSION_MS)]
        self._members = [
            Member(
                f"{client}-{number}",
                programs.command(client, arguments),
                programs.environment,
                self._said,
                self._refused,
            )
            for number, client in enumerate(CLIENTS[mode], 1)
        ]

    def whole(self, rounds: int) -> dict[str, Any]:
        source = Source(self._tenant.bootstrap, self._topic)
        at_rest, found = [], []
        try:
            source.start()
            self._rest(BEGINS_WITHIN_S)
            for number in range(1, rounds + 1):
                kind = KINDS[(number - 1) % len(KINDS)]
                took_s = self._round(kind)
                at_rest.append(took_s)
                self._say(f"{self._mode}, round {number} of {rounds}, {kind}: at rest after {took_s:.1f} s")
                if took_s > AT_REST_WITHIN_S:
                    found.append(f"round {number}, {kind}: at rest only after {took_s:.1f} s: {self._shares()}")
            self._cluster.heal()
            source.stop()
            found += [f"{count} records were refused: {why}" for why, count in source.refused.items()]
            ends = self._ends()
            self._until_committed(ends)
            found += wrong(self._said, ends, self._committed())
        finally:
            for member in self._members:
                member.stop()
        return {
            "rounds": rounds,
            "records": sum(ends.values()),
            "read_again": sum(w.last - w.first + 1 for w in self._said if isinstance(w, Taken)) - sum(ends.values()),
            "longest_to_rest_s": round(max(at_rest), 1),
            "refused": dict(self._refused),
            "wrong": found,
        }

    def _round(self, kind: str) -> float:
        """Seconds until the group was at rest, from when everything ran again."""
        if "member" in kind:
            victim = self._choices.choice(self._members)
            victim.held = frozenset()
            victim.kill()
        if kind != "member":
            broker = self._coordinator() if "coordinator" in kind else self._choices.choice(BROKERS)
            self._cluster.brokers[broker].kill()
            time.sleep(self._choices.uniform(0.2, 4.0))
            self._cluster.brokers[broker].start()
        began = time.monotonic()
        self._rest(4 * AT_REST_WITHIN_S)
        took_s = time.monotonic() - began
        time.sleep(self._choices.uniform(0.5, 2.0))
        if kind != "member":
            self._cluster.heal()
        return took_s

    def _coordinator(self) -> int:
        partition = partition_of(f"{self._tenant.key}.{self._name}", SETTINGS["offsets_topic_num_partitions"])
        leader = int(self._cluster.state(OFFSETS_TOPIC, partition)["leader"])
        return leader if leader in BROKERS else self._choices.choice(BROKERS)

    def _rest(self, within_s: float) -> None:
        """Wait until the group is at rest, and stays so for a moment; or until the time is over."""
        until, since = time.monotonic() + within_s, None
        while time.monotonic() < until:
            now = time.monotonic()
            since = (since or now) if self._is_at_rest() else None
            if since is not None and now - since > 1.0:
                return
            time.sleep(0.05)

    def _is_at_rest(self) -> bool:
        shares = [member.held for member in self._members]
        return all(shares) and sorted(place for share in shares for place in share) == list(range(PARTITIONS))

    def _shares(self) -> str:
        return "; ".join(f"{member.name} has {sorted(member.held)}" for member in self._members)

    def _until_committed(self, ends: dict[int, int]) -> None:
        until = time.monotonic() + ENDS_WITHIN_S
        while self._committed() != ends and time.monotonic() < until:
            time.sleep(0.5)

    def _consumer(self) -> Consumer:
        return Consumer({"bootstrap.servers": self._tenant.bootstrap, "group.id": self._name, "log_level": 0})

    def _committed(self) -> dict[int, int]:
        consumer = self._consumer()
        try:
            places = consumer.committed([TopicPartition(self._topic, index) for index in range(PARTITIONS)], 20)
        finally:
            consumer.close()
        return {place.partition: max(place.offset, 0) for place in places}

    def _ends(self) -> dict[int, int]:
        consumer = self._consumer()
        try:
            places = [TopicPartition(self._topic, index) for index in range(PARTITIONS)]
            return {place.partition: consumer.get_watermark_offsets(place, 20, cached=False)[1] for place in places}
        finally:
            consumer.close()


def table(figures: dict[str, Any]) -> str:
    """For people."""
    lines = [
        f"{'assignors':<14}{'rounds':>7}{'records':>9}{'read again':>12}{'to rest s':>11}  commits that were refused"
    ]
    for mode, group in figures["groups"].items():
        refused = ", ".join(f"{count} x {why}" for why, count in sorted(group["refused"].items())) or "none"
        lines.append(
            f"{mode:<14}{group['rounds']:>7}{group['records']:>9}{group['read_again']:>12}"
            f"{group['longest_to_rest_s']:>11}  {refused}"
        )
    return "\n".join(
        [*lines, *(figures["wrong"] or ["everything was read and committed, and nothing again after its commit"])]
    )
