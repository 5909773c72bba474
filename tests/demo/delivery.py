"""Nothing lost, doubled, reordered or mixed up: two tenants, one topic name, every broker killed in turn.

Each tenant's idempotent producer (acks=all) sends every flight, keyed by carrier. Reading everything back, the sequence
of every carrier must be exactly the sequence that was sent: its count, and a running hash of its values in order.
"""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.demo import flights
from tests.demo.stack import DemoError, Stack, Tenant, wait_for

TOPIC = "flights"
PARTITIONS = 6
SESSION_TIMEOUT_S = 2.0  # of the stack's brokers
MESSAGES_PER_S = 9_000  # so that the run is long enough for every broker to be killed and to come back

Say = Callable[[str], None]


class Digest:
    """Count and hash of one key's values, in order."""

    def __init__(self) -> None:
        self.count = 0
        self._hash = hashlib.sha256()

    def add(self, value: bytes) -> None:
        self.count += 1
        self._hash.update(len(value).to_bytes(4))
        self._hash.update(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and (self.count, self.hex) == (other.count, other.hex)

    __hash__ = None  # type: ignore[assignment]

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()


class Writer(threading.Thread):
    """One tenant's producer."""

    def __init__(self, tenant: Tenant) -> None:
        super().__init__(name=f"producer of {tenant.name}", daemon=True)
        self.tenant = tenant
        self.sent: dict[bytes, Digest] = defaultdict(Digest)
        self.delivered = self.failed = self.bytes = 0
        self.problem: str | None = None
        self.longest_gap_s = 0.0
        self._last = time.monotonic()
        self._producer = Producer(
            {
                "bootstrap.servers": tenant.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "compression.type": "lz4",
                "linger.ms": 20,
                "message.timeout.ms": 120_000,
                "error_cb": self._on_error,
                "log_level": 2,
            }
        )

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.problem = str(error)

    def _on_delivery(self, error: KafkaError | None, _message: Any) -> None:
        now = time.monotonic()
        self.longest_gap_s = max(self.longest_gap_s, now - self._last)
        self._last = now
        if error is None:
            self.delivered += 1
        else:
            self.failed += 1
            self.problem = self.problem or str(error)

    def run(self) -> None:
        began = time.monotonic()
        for number, (key, value) in enumerate(flights.messages(self.tenant.name)):
            self.sent[key].add(value)
            self.bytes += len(key) + len(value)
            while True:
                try:
                    self._producer.produce(TOPIC, value, key, on_delivery=self._on_delivery)
                    break
                except BufferError:
                    self._producer.poll(0.05)
            self._producer.poll(0)
            ahead = number / MESSAGES_PER_S - (time.monotonic() - began)
            if ahead > 0.02:
                self._producer.poll(ahead)
            if self.problem:
                return
        self._producer.flush(150)


def run(stack: Stack, say: Say) -> dict[str, Any]:
    """Produce under kills, read back, compare. Raises DemoError where a promise is broken."""
    for tenant in stack.tenants:
        tenant.fresh_topic(TOPIC, PARTITIONS, **{"min.insync.replicas": "2"})
    writers = [Writer(tenant) for tenant in stack.tenants]
    began = time.monotonic()
    for writer in writers:
        writer.start()
    kills = _kill_each(stack, writers, say)
    while any(writer.is_alive() for writer in writers):
        say("delivered " + ", ".join(f"{w.tenant.name} {w.delivered:,}" for w in writers))
        time.sleep(2)
    seconds = time.monotonic() - began
    rows = []
    for writer in writers:
        if writer.problem or writer.delivered != flights.COUNT:
            raise DemoError(f"{writer.tenant.name}: {writer.delivered:,} delivered, {writer.problem}")
        rows.append(_compare(writer, say))
    return {"seconds": round(seconds, 1), "kills": kills, "tenants": rows}


def _kill_each(stack: Stack, writers: list[Writer], say: Say) -> list[dict[str, Any]]:
    """SIGKILL every broker in turn, and wait each time until it leads and follows again."""
    kills = []
    for broker in stack.brokers:
        wait_for(lambda: min(w.delivered for w in writers) > 5_000, 60, "the producers to get going")
        time.sleep(3)
        pid = stack.broker_pid(broker)
        if pid is None:
            raise DemoError(f"broker {broker} is not running")
        before = [w.delivered for w in writers]
        os.kill(pid, signal.SIGKILL)
        say(f"killed broker {broker} (pid {pid})")
        killed = time.monotonic()
        _await_return(stack, broker, pid, writers)
        back = time.monotonic() - killed
        meanwhile = [w.delivered - b for w, b in zip(writers, before, strict=True)]
        say(f"broker {broker} is in sync again after {back:.1f} s; delivered meanwhile: {meanwhile}")
        kills.append({"broker": broker, "in_sync_after_s": round(back, 1), "delivered_meanwhile": meanwhile})
        if not any(w.is_alive() for w in writers):
            say("note: the producers had finished before this kill was over")
    return kills


def _await_return(stack: Stack, broker: int, killed_pid: int, writers: list[Writer]) -> None:
    """Until a new process runs and follows. It may be so quick that nobody saw it missing: its old session must end first."""
    wait_for(lambda: stack.broker_pid(broker) not in (None, killed_pid), 60, f"broker {broker} to be started again")
    time.sleep(SESSION_TIMEOUT_S)
    in_sync = "every replica to be in sync again"
    wait_for(lambda: all(w.tenant.in_sync(TOPIC) == PARTITIONS for w in writers), 90, in_sync)


def _compare(writer: Writer, say: Say) -> dict[str, Any]:
    began = time.monotonic()
    read = read_back(writer.tenant, say)
    seconds = time.monotonic() - began
    sent = writer.sent
    lost = sum(max(0, sent[key].count - read[key].count) for key in sent)
    extra = sum(max(0, read[key].count - sent[key].count) for key in read)
    wrong = [key.decode() for key in sent if sent[key] != read.get(key)]
    row = {
        "tenant": writer.tenant.name,
        "sent": sum(digest.count for digest in sent.values()),
        "acknowledged": writer.delivered,
        "read": sum(digest.count for digest in read.values()),
        "lost": lost,
        "doubled_or_foreign": extra,
        "keys_whose_sequence_differs": wrong,
        "bytes": writer.bytes,
        "sha256": hashlib.sha256("".join(f"{k!r}{read[k].hex}" for k in sorted(read)).encode()).hexdigest(),
        "longest_gap_between_acknowledgements_s": round(writer.longest_gap_s, 2),
        "read_seconds": round(seconds, 1),
    }
    if lost or extra or wrong:
        raise DemoError(f"{writer.tenant.name}: {row}")
    say(f"{writer.tenant.name}: read back {row['read']:,} messages, sequence of all {len(read)} carriers as sent")
    return row


def read_back(tenant: Tenant, say: Say) -> dict[bytes, Digest]:
    """Everything in the topic, from its beginning to where it ends now, by key."""
    consumer = Consumer(
        {"bootstrap.servers": tenant.bootstrap, "group.id": "demo", "enable.auto.commit": False, "log_level": 2}
    )
    found: dict[bytes, Digest] = defaultdict(Digest)
    try:
        ends = {
            index: consumer.get_watermark_offsets(TopicPartition(TOPIC, index), timeout=20)[1]
            for index in range(PARTITIONS)
        }
        consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
        left = {index for index, end in ends.items() if end}
        deadline = time.monotonic() + 180
        while left:
            if time.monotonic() > deadline:
                raise DemoError(f"{tenant.name}: reading back did not end; partitions left: {sorted(left)}")
            for message in consumer.consume(10_000, 1.0):
                if message.error():
                    say(f"{tenant.name}: {message.error()}")
                    continue
                found[message.key()].add(message.value())
                if message.offset() >= ends[message.partition()] - 1:
                    left.discard(message.partition())
    finally:
        consumer.close()
    return found
