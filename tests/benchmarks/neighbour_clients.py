"""The clients of `neighbours`: nine tenants at a steady rate, and one that offers ten times what it bought.

Each side is a process of its own, so that neither waits for the other's interpreter. What they did is told at the end,
with the moments by the machine's monotonic clock, so that it can be divided into phases afterwards.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self

from confluent_kafka import KafkaError, Message, Producer

STEADY_RECORD_BYTES = 1024
GREEDY_RECORD_BYTES = 16 * 1024
TICK_S = 0.005
_QUIET = {"log_level": 0, "acks": "all", "compression.type": "none"}
_GREEDY = {"batch.size": 32 * 1024, "queue.buffering.max.kbytes": 2048, "linger.ms": 5}


class Tenant(NamedTuple):
    """What a tenant's clients are told."""

    topic: str
    settings: dict[str, str]


class Sent(NamedTuple):
    """A record that was acknowledged."""

    tenant: int
    made_s: float
    took_ms: float


class Client:
    """A process that works from entering the context until `stop`; `offering` lets a greedy one begin and pause."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._ends = context.Event()
        self.offering = context.Event()
        self._process = context.Process(target=work, args=(*arguments, self.offering, self._ends, theirs), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        assert self._pipe.poll(60), "a client did not start"
        self._pipe.recv()
        return self

    def stop(self) -> list[Sent]:
        """Everything that was acknowledged, as it came."""
        self._ends.set()
        assert self._pipe.poll(120), "a client does not answer"
        return [Sent(*row) for row in self._pipe.recv()]

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._process.join(10)
        self._process.kill()


def steady(tenants: Sequence[Tenant], bytes_per_s: float, offering: Any, ends: Any, pipe: Connection) -> None:
    """One producer for each tenant, all at this rate."""
    del offering
    sent: list[Sent] = []
    producers = [Producer({**tenant.settings, "linger.ms": 5, **_QUIET}) for tenant in tenants]
    _ready(producers, pipe)
    value, began, made = os.urandom(STEADY_RECORD_BYTES), time.monotonic(), 0
    while not ends.is_set():
        due = int((time.monotonic() - began) * bytes_per_s / STEADY_RECORD_BYTES)
        for _ in range(due - made):
            for number, (tenant, producer) in enumerate(zip(tenants, producers, strict=True)):
                producer.produce(tenant.topic, value, on_delivery=_taken(sent, number))
        made = due
        for producer in producers:
            producer.poll(0)
        time.sleep(TICK_S)
    for producer in producers:
        producer.flush(30)
    pipe.send(sent)


def greedy(tenant: Tenant, clients: int, bytes_per_s: float, offering: Any, ends: Any, pipe: Connection) -> None:
    """One tenant with many clients. What does not fit into their queues was offered all the same, and is let go."""
    sent: list[Sent] = []
    producers = [Producer({**tenant.settings, **_GREEDY, **_QUIET}) for _ in range(clients)]
    _ready(producers, pipe)
    value, number, last = os.urandom(GREEDY_RECORD_BYTES), 0, time.monotonic()
    while not ends.is_set():
        if not offering.is_set():
            for producer in producers:
                producer.purge(in_queue=True, in_flight=False, blocking=False)
                producer.poll(0)
            time.sleep(0.05)
            last = time.monotonic()
            continue
        now = time.monotonic()
        for _ in range(int((now - last) * bytes_per_s / GREEDY_RECORD_BYTES)):
            last += GREEDY_RECORD_BYTES / bytes_per_s
            number += 1
            _offer(producers[number % clients], tenant.topic, value, sent)
        for producer in producers:
            producer.poll(0)
        time.sleep(TICK_S)
    pipe.send(sent)


def _ready(producers: Sequence[Producer], pipe: Connection) -> None:
    for producer in producers:
        producer.list_topics(timeout=30)
    pipe.send("ready")


def _offer(producer: Producer, topic: str, value: bytes, sent: list[Sent]) -> None:
    try:
        producer.produce(topic, value, on_delivery=_taken(sent, 0))
    except BufferError:
        return


def _taken(sent: list[Sent], tenant: int) -> Callable[[KafkaError | None, Message], None]:
    made = time.monotonic()

    def taken(error: KafkaError | None, message: Message) -> None:
        del message
        if error is None:
            sent.append(Sent(tenant, made, (time.monotonic() - made) * 1000))

    return taken
