"""Exactly once, measured: copiers move a topic while brokers and copiers are killed, and a reader watches what is committed.

    python -m tests.chaos --copy 1000000 --rounds 20 [--seed 7] [--plant "idle copiers"]

In each round a portion of the records comes into the source, and while it is copied a broker or a copier gets SIGKILL and is
started again: the leader of a partition, the coordinator of a copier's transactional id, that of their group, any broker, a
copier, or a broker and a copier at once. When all is copied, the target at read_committed is compared with the source: in each
partition the same records in the same order. The reader had the same sequence while it happened: it saw no record twice, and
none out of order.

Wrong is as well: a round whose fault met copiers with nothing to do, as it shows nothing; and a last stable offset that was stuck
for longer than the transactions' time-out and ten seconds (`stability.py`).

Each judgement can be seen to fail, by a plant: "idle copiers" has faults wait until all is copied, "a transaction that stays"
is left open in the target by a stranger for longer than any may be.
"""

from __future__ import annotations

import contextlib
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from controlplane.stack.process import dies_with_parent
from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination.placement import partition_of
from tests.chaos.copier import TRANSACTION_MS
from tests.chaos.stability import Stability, judged, longest_stuck
from tests.integration.clients import create_topic
from tests.support.cluster import BROKERS, ProcessCluster
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.specs import Tenant

SOURCE, TARGET, GROUP = "numbers", "numbers-copy", "copiers"
TRANSACTIONS_TOPIC = "__transaction_state"
PARTITIONS = 4
COPIERS = ("copier-1", "copier-2")
KINDS = ("leader", "transaction coordinator", "group coordinator", "any broker", "copier", "broker and copier")
SETTINGS = {
    "group_min_session_timeout_ms": 1000,
    "offsets_topic_num_partitions": 4,
    "transaction_state_log_num_partitions": 4,
    "leader_imbalance_check_interval_ms": 5_000,
}
DONE_WITHIN_S = 180.0
"""After the last fault, and how long it may take that nothing new is committed: the copiers' transactions end by themselves
after TRANSACTION_MS."""
STUCK_S = TRANSACTION_MS / 1000 + 10
"""How long a last stable offset may stand still below the end."""
IDLE, STAYS = PLANTS = ("idle copiers", "a transaction that stays")


class Copy:
    """A copier process, started again whenever it ends."""

    def __init__(self, name: str, bootstrap: str, records: int, counts: Counter[str]) -> None:
        self._command = [
            sys.executable,
            "-m",
            "tests.chaos.copier",
            name,
            bootstrap,
            SOURCE,
            TARGET,
            GROUP,
            str(records),
        ]
        self._counts, self._is_over = counts, False
        self._process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
        )

    def _keep(self) -> None:
        while not self._is_over:
            with self._process as process:  # waited for at the end, and its pipes closed
                assert process.stdout is not None
                for line in process.stdout:
                    self._counts[line.strip()[:80]] += 1
            if not self._is_over:
                self._process = self._start()

    def kill(self) -> None:
        """SIGKILL, in the middle of whatever it does; it is started again."""
        self._process.kill()

    def stop(self) -> None:
        """For good."""
        self._is_over = True
        self._process.kill()
        self._keeper.join(10)


class Watch(threading.Thread):
    """Reads the target at read_committed from its beginning, all the while."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.seen: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.longest_still_s = 0.0
        self._over = threading.Event()
        self._consumer = reader(bootstrap)

    def run(self) -> None:
        last = time.monotonic()
        while not self._over.is_set():
            taken = take(self._consumer, self.seen)
            now = time.monotonic()
            if taken:
                self.longest_still_s = max(self.longest_still_s, now - last)
                last = now
        self._consumer.close()

    def count(self) -> int:
        """Records so far."""
        return sum(len(numbers) for numbers in self.seen)

    def stop(self) -> None:
        """Return when it has."""
        self._over.set()
        self.join(20)


def reader(bootstrap: str) -> Consumer:
    """Of everything that is committed in the target."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TARGET, index, 0) for index in range(PARTITIONS)])
    return consumer


def take(consumer: Consumer, seen: list[list[int]]) -> int:
    """What comes within a moment, at the end of its partition's list."""
    messages = [message for message in consumer.consume(5_000, 0.2) if message.error() is None]
    for message in messages:
        seen[message.partition()].append(int(message.value()))
    return len(messages)


def portions(records: int, rounds: int) -> list[range]:
    """What comes into the source in each round: all numbers, in order, about as many each time."""
    bounds = [records * number // rounds for number in range(rounds + 1)]
    return [range(*pair) for pair in pairwise(bounds)]


def is_idle(released: int, committed: int, in_flight: int) -> bool:
    """Whether the copiers have nothing more to do than what they have in their hands, `in_flight` records at most.

    `committed` is what the reader has seen, which may be less than there is.
    """
    return released - committed <= in_flight


def run(records: int, rounds: int, seed: int, say: Callable[[str], None], plant: str | None = None) -> dict[str, Any]:
    """The whole of it: figures, and what was wrong."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-copying-"))
    try:
        with ProcessCluster(folder, SETTINGS) as cluster:
            tenant = cluster.tenant()
            create_topic(tenant, SOURCE, PARTITIONS)
            create_topic(tenant, TARGET, PARTITIONS)
            return _Copying(cluster, tenant, records, say, plant).whole(rounds, random.Random(seed))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(bootstrap: str, numbers: range) -> None:
    refused: queue.Queue[str] = queue.Queue()
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20, "batch.num.messages": 20_000}
    )
    for number in numbers:
        while True:
            try:
                producer.produce(
                    SOURCE,
                    b"%d" % number,
                    partition=number % PARTITIONS,
                    on_delivery=lambda error, _: refused.put(str(error)) if error else None,
                )
            except BufferError:
                producer.poll(0.1)
            else:
                break
    left = producer.flush(120)
    assert not left, f"{left} records of the source were not acknowledged"
    assert refused.empty(), refused.get()


def _leave_open(bootstrap: str) -> Producer:
    """A transaction in the target that readers wait behind, for as long as its producer is kept and longer than they may."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "a-stranger",
            "transaction.timeout.ms": int(1_000 * STUCK_S) + 15_000,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(TARGET, b"-1", partition=0)
    assert not producer.flush(60)
    return producer


class _Copying:
    def __init__(
        self, cluster: ProcessCluster, tenant: Tenant, records: int, say: Callable[[str], None], plant: str | None
    ) -> None:
        self._cluster, self._tenant, self._records, self._say = cluster, tenant, records, say
        self._plant = plant
        self._counts: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._wrong: list[str] = []

    def whole(self, rounds: int, choices: random.Random) -> dict[str, Any]:
        bootstrap = self._tenant.bootstrap
        watch, stability = Watch(bootstrap), Stability(bootstrap, TARGET, PARTITIONS)
        watch.start()
        stability.start()
        size = max(20, min(1_000, self._records // (rounds * 60)))
        began = time.monotonic()
        stranger = _leave_open(bootstrap) if self._plant == STAYS else None
        copies = [Copy(name, bootstrap, size, self._counts) for name in COPIERS]
        try:
            for number, portion in enumerate(portions(self._records, rounds), 1):
                kind = KINDS[(number - 1) % len(KINDS)]
                self._release(portion, watch)
                if is_idle(portion.stop, committed := watch.count(), size * len(COPIERS)):
                    self._wrong.append(f"round {number}, {kind}: the copiers had nothing to do")
                self._say(
                    f"round {number} of {rounds}, {kind}: {committed:,} of {portion.stop:,} in the source are committed"
                )
                self._fault(kind, copies, choices)
                self._faults[kind] += 1
            self._until_all_is_copied(watch)
        finally:
            for copy in copies:
                copy.stop()
        took_s = time.monotonic() - began
        # what the copiers that have just been stopped left open ends by itself: nothing of it may show
        wait_for(stability.is_settled, TRANSACTION_MS / 1000 + 30, "every transaction to have ended")
        del stranger
        watch.stop()
        stability.stop()
        return self._figures(watch, stability, took_s)

    def _release(self, portion: range, watch: Watch) -> None:
        """More comes into the source. Return when it is being copied."""
        before = watch.count()
        _fill(self._tenant.bootstrap, portion)
        wanted = portion.stop if self._plant == IDLE else before + 1
        wait_for(lambda: watch.count() >= wanted, DONE_WITHIN_S, "what came into the source to be copied")

    def _fault(self, kind: str, copies: list[Copy], choices: random.Random) -> None:
        if kind in ("copier", "broker and copier"):
            choices.choice(copies).kill()
        if kind != "copier":
            victim = self._victim(kind, choices)
            self._cluster.brokers[victim].kill()
            time.sleep(choices.uniform(0.2, 4.0))
            self._cluster.brokers[victim].start()
        time.sleep(choices.uniform(1.0, 4.0))
        if kind != "copier":
            self._cluster.heal()

    def _victim(self, kind: str, choices: random.Random) -> int:
        key = self._tenant.key
        name, partition = {
            "leader": (f"{key}.{TARGET}", choices.randrange(PARTITIONS)),
            "transaction coordinator": (
                TRANSACTIONS_TOPIC,
                partition_of(f"{key}.{choices.choice(COPIERS)}", SETTINGS["transaction_state_log_num_partitions"]),
            ),
            "group coordinator": (
                OFFSETS_TOPIC,
                partition_of(f"{key}.{GROUP}", SETTINGS["offsets_topic_num_partitions"]),
            ),
        }.get(kind, ("", 0))
        leader = int(self._cluster.state(name, partition)["leader"]) if name else -1
        return leader if leader in BROKERS else choices.choice(BROKERS)

    def _until_all_is_copied(self, watch: Watch) -> None:
        count, since = watch.count(), time.monotonic()
        while watch.count() < self._records:
            assert time.monotonic() - since < DONE_WITHIN_S, f"nothing is committed any more: {watch.count():,}"
            if watch.count() != count:
                count, since = watch.count(), time.monotonic()
                self._say(f"{count:,} of {self._records:,} are committed")
            time.sleep(2)

    def _figures(self, watch: Watch, stability: Stability, took_s: float) -> dict[str, Any]:
        again: list[list[int]] = [[] for _ in range(PARTITIONS)]
        consumer = reader(self._tenant.bootstrap)
        with contextlib.closing(consumer):
            still = time.monotonic()
            while time.monotonic() - still < 3:
                if take(consumer, again):
                    still = time.monotonic()
        wanted = [list(range(index, self._records, PARTITIONS)) for index in range(PARTITIONS)]
        return {
            "records": self._records,
            "faults": dict(self._faults),
            "seconds": round(took_s, 1),
            "records_per_s": round(self._records / took_s),
            "copiers": dict(self._counts),
            "longest_still_s": round(watch.longest_still_s, 1),
            "longest_stuck_s": round(longest_stuck(stability.looks).seconds, 1),
            "wrong": [
                *self._wrong,
                *judged(stability.looks, PARTITIONS, STUCK_S),
                *_differences("then", watch.seen, wanted),
                *_differences("afterwards", again, wanted),
            ],
        }


def _differences(when: str, read: list[list[int]], wanted: list[list[int]]) -> list[str]:
    found = []
    for index, (numbers, whole) in enumerate(zip(read, wanted, strict=True)):
        if numbers != whole:
            doubled = sum(count - 1 for count in Counter(numbers).values())
            missing = len(set(whole) - set(numbers))
            found.append(
                f"read {when}, partition {index}: {missing} records are missing, {doubled} doubled, "
                f"{'in another order' if not missing and not doubled else 'of'} {len(whole)}"
            )
    return found


def table(figures: dict[str, Any]) -> str:
    """For people."""
    faults = ", ".join(f"{count} x {kind}" for kind, count in figures["faults"].items())
    copiers = ", ".join(f"{count} x {what}" for what, count in sorted(figures["copiers"].items())) or "no aborts"
    return "\n".join(
        [
            f"{figures['records']:,} records copied in {figures['seconds']} s ({figures['records_per_s']:,} a second)",
            f"faults: {faults}",
            f"copiers: {copiers}",
            f"the longest time in which nothing new was committed: {figures['longest_still_s']} s",
            f"the longest time in which a last stable offset stood below the end: {figures['longest_stuck_s']} s",
            *(
                figures["wrong"]
                or ["each record is there once, in order, to whoever read then and to whoever reads now"]
            ),
        ]
    )
