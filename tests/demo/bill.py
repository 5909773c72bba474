"""The meter counts what a counting client counts: to the byte without kills, to the bytes in flight with them.

The counting client adds up 12 + batchLength of every record batch that it reads, partition by partition, each once. That is
what was produced (batches are stored as they were sent) and, since nobody else reads the topic, what was consumed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.consume import RawConsumer
from tests.demo import flights
from tests.demo.stack import DemoError, Stack, Tenant, wait_for

PARTITIONS = 6
MESSAGES = 60_000
METERED_WITHIN_S = 120.0
IN_FLIGHT_BYTES = 5 * 1_000_000 * PARTITIONS
"""What an idempotent librdkafka producer has under way at most: five requests of a million bytes per connection."""

Say = Callable[[str], None]


def run(stack: Stack, say: Say) -> list[dict[str, Any]]:
    """Both cases, on the first tenant. Raises DemoError where the meter is wrong, or there is none."""
    tenant = stack.tenants[1]
    return [_measure(stack, tenant, say, kill=False), _measure(stack, tenant, say, kill=True)]


def _measure(stack: Stack, tenant: Tenant, say: Say, *, kill: bool) -> dict[str, Any]:
    topic = f"metered-{int(time.time())}"
    began = datetime.now(UTC)
    tenant.fresh_topic(topic, PARTITIONS, **{"min.insync.replicas": "2"})
    _produce(stack, tenant, topic, say, kill=kill)
    wait_for(lambda: tenant.in_sync(topic) == PARTITIONS, 60, "every replica to be in sync")
    counted = _count(tenant, topic)
    say(f"{topic}: the counting client has read {counted:,} record bytes; waiting for the meter")
    seconds, produced, consumed = _await_meter(tenant, topic, began, counted, exact=not kill)
    bill = tenant.call("GET", f"/bill?month={began:%Y-%m}")
    row = {
        "case": "with a broker killed" if kill else "without kills",
        "counted_bytes": counted,
        "produced_bytes": produced,
        "consumed_bytes": consumed,
        "produced_difference": produced - counted,
        "consumed_difference": consumed - counted,
        "metered_after_s": round(seconds, 1),
        "bill_so_far": f"{bill['total']} {bill['currency']}",
    }
    allowed = IN_FLIGHT_BYTES if kill else 0
    if abs(produced - counted) > allowed or abs(consumed - counted) > 0:
        raise DemoError(f"the meter differs: {row}")
    say(f"{row['case']}: produced {produced - counted:+,} and consumed {consumed - counted:+,} bytes of difference")
    return row


def _produce(stack: Stack, tenant: Tenant, topic: str, say: Say, *, kill: bool) -> None:
    producer = Producer(
        {"bootstrap.servers": tenant.bootstrap, "enable.idempotence": True, "linger.ms": 20, "log_level": 2}
    )
    for number, (key, value) in enumerate(islice(flights.messages(tenant.name), MESSAGES)):
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
        if kill and number == MESSAGES // 3:
            producer.poll(0.5)
            broker = tenant.leaders(topic)[0]
            pid = stack.broker_pid(broker)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            say(f"killed broker {broker}, leader of {topic}-0")
    if producer.flush(120):
        raise DemoError("messages were not delivered")


def _count(tenant: Tenant, topic: str) -> int:
    """Record bytes of the whole topic, read once from its leaders."""
    consumer = Consumer({"bootstrap.servers": tenant.bootstrap, "group.id": "count", "log_level": 2})
    brokers = consumer.list_topics(topic, timeout=20).brokers
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=20)[1] for p in range(PARTITIONS)}
    consumer.close()
    total = 0
    for partition, leader in tenant.leaders(topic).items():
        raw = RawConsumer((brokers[leader].host, brokers[leader].port), topic, partition)
        while raw.offset < ends[partition]:
            total += raw.fetch(2**20)
        raw.close()
    return total


def _await_meter(tenant: Tenant, topic: str, began: datetime, counted: int, *, exact: bool) -> tuple[float, int, int]:
    """(seconds waited, produced, consumed) once the meter shows the whole reading, and no longer changes."""
    start = time.monotonic()
    before = (-1, -1)
    while True:
        now = _metered(tenant, topic, began)
        settled = now == (counted, counted) if exact else now == before and now[1] >= counted
        if settled or time.monotonic() - start > METERED_WITHIN_S:
            return time.monotonic() - start, *now
        before = now
        time.sleep(2 if exact else 12)


def _metered(tenant: Tenant, topic: str, began: datetime) -> tuple[int, int]:
    produced = consumed = 0
    path = f"/usage/records?from={began:%Y-%m-%dT%H}:00:00Z"
    page = tenant.call("GET", path)
    while True:
        for row in page["items"]:
            if row["topic"] == topic:
                produced += row["produced_bytes"]
                consumed += row["consumed_bytes"]
        if not page["next"]:
            return produced, consumed
        page = tenant.call("GET", f"{path}&cursor={page['next']}")
