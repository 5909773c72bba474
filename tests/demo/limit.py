"""A producer that offers 20 MB/s to an instance of 5 MiB/s is held to its limit, however its traffic is spread.

Measured on the wire by librdkafka's own count of transmitted bytes, over 30 s after the allocation has settled.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from tests.demo.stack import DemoError, Stack, Tenant

TOPIC = "burst"
PARTITIONS = 6
LIMIT = 5 * 2**20
OFFERED = 20_000_000
MESSAGE_BYTES = 10_000
SETTLE_S = 10.0
WINDOW_S = 30.0
TOLERANCE = 0.05


class Offerer(threading.Thread):
    """Offers bytes at a steady rate and lets what does not fit wait."""

    def __init__(self, tenant: Tenant, partitions: list[int]) -> None:
        super().__init__(daemon=True)
        self.sent_bytes = self.offered = self.refused = 0
        self.stop = False
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": tenant.bootstrap,
                "acks": "all",
                "linger.ms": 5,
                "queue.buffering.max.kbytes": 20_000,
                "message.timeout.ms": 300_000,
                "statistics.interval.ms": 100,
                "stats_cb": self._on_statistics,
            }
        )

    def _on_statistics(self, text: str) -> None:
        self.sent_bytes = json.loads(text)["tx_bytes"]

    def run(self) -> None:
        payload = os.urandom(MESSAGE_BYTES)
        began = time.monotonic()
        number = 0
        while not self.stop:
            due = (time.monotonic() - began) * OFFERED
            while self.offered < due:
                number += 1
                self.offered += MESSAGE_BYTES
                try:
                    self._producer.produce(TOPIC, payload, partition=self._partitions[number % len(self._partitions)])
                except BufferError:
                    self.refused += MESSAGE_BYTES
            self._producer.poll(0.005)
        self._producer.purge()
        self._producer.flush(5)


def run(stack: Stack, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Spread over all brokers, then all of it to one."""
    tenant = next(t for t in stack.tenants if t.call("GET", "")["bandwidth_mib_per_s"] == LIMIT // 2**20)
    tenant.fresh_topic(TOPIC, PARTITIONS)
    leaders = tenant.leaders(TOPIC)
    say(f"leaders of {TOPIC}: {leaders}")
    one = leaders[0]
    cases = {
        "all partitions": sorted(leaders),
        f"only those led by broker {one}": sorted(p for p, leader in leaders.items() if leader == one),
    }
    return [_measure(tenant, name, partitions, say) for name, partitions in cases.items()]


def _measure(tenant: Tenant, name: str, partitions: list[int], say: Callable[[str], None]) -> dict[str, Any]:
    offerer = Offerer(tenant, partitions)
    offerer.start()
    say(f"{name}: offering {OFFERED / 1e6:.0f} MB/s, settling for {SETTLE_S:.0f} s")
    time.sleep(SETTLE_S)
    began, before, offered = time.monotonic(), offerer.sent_bytes, offerer.offered
    while time.monotonic() - began < WINDOW_S:
        time.sleep(5)
        rate = (offerer.sent_bytes - before) / (time.monotonic() - began)
        say(f"{name}: {rate / 2**20:.3f} MiB/s after {time.monotonic() - began:.0f} s")
    seconds = time.monotonic() - began
    rate = (offerer.sent_bytes - before) / seconds
    offered_rate = (offerer.offered - offered) / seconds
    allocation = tenant.call("GET", "/allocation")["produce"]
    offerer.stop = True
    offerer.join(20)
    deviation = rate / LIMIT - 1
    row = {
        "traffic": name,
        "offered_mb_per_s": round(offered_rate / 1e6, 2),
        "limit_mib_per_s": LIMIT / 2**20,
        "measured_mib_per_s": round(rate / 2**20, 3),
        "deviation_percent": round(100 * deviation, 2),
        "seconds": round(seconds, 1),
        "branch": allocation["branch"],
        "allocation": {b["broker"]: b["allocation"] for b in allocation["brokers"]},
    }
    if abs(deviation) > TOLERANCE:
        raise DemoError(f"held to {rate / 2**20:.3f} MiB/s, {100 * deviation:+.1f} % of the limit: {row}")
    return row
