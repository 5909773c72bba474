"""A run: the brokers' own agents and buckets, the master's own ledger, and clients that wait as they are told (KIP-219).

Nothing here decides an allocation or a delay: time and demand come from here, everything else is the code that brokers
and master run. What is modelled is the world around it:

    clients    a few connections per broker; each sends requests of at most 64 KiB from a queue that holds two seconds
               of demand (a producer whose buffer is full blocks), and after a throttled answer waits as long as it says,
               and on for what the instance owes then: as `dataplane.throttle.debt_queue` lets them
    network    a report reaches the master, and grants the broker, a few milliseconds later
    clocks     every broker ticks at moments of its own

The strategy `static` has no master: every broker stays at its initial share forever, as per-broker quotas do.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from quota.agent.agent import Agent, InstanceFacts
from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from quota.core.ledger import Ledger
from quota.master.service import GATHER_S
from quota.steps import run_through

if TYPE_CHECKING:
    from collections.abc import Callable

    from quota.simulator.demand import Scenario

STATIC = "static"
STEP_S = 0.01
CONNECTIONS = 4
REQUEST_BYTES = 64 * 2**10
BUFFER_S = 2.0
LEADERS = 2
TICK_S = 0.1
PERIOD_MS = 1_000
LEASE_MS = 10_000
INSTANCE = "ins-simulate"
_OWES_NOTHING_S = 0.001


@dataclass(slots=True)
class Trace:
    """What happened, second by second: rows by second, columns by broker."""

    scenario: str
    strategy: str
    limit: int
    admitted: list[list[int]] = field(default_factory=list)  # bytes let through
    demanded: list[list[float]] = field(default_factory=list)  # bytes that clients wanted to send
    throttled: list[bool] = field(default_factory=list)  # some client was told to wait
    allocated: list[list[int | None]] = field(default_factory=list)  # bytes/s in force at the end of the second


class _Client:
    __slots__ = ("free_at", "queued")

    def __init__(self) -> None:
        self.queued = 0.0
        self.free_at = 0.0


class _Broker:
    """An agent, its clients, and the moments at which it ticks."""

    def __init__(self, number: int, limit: int, random: Random) -> None:
        self.number = number
        self.agent = Agent(broker=number, boot="simulated", now=-random.random(), period_ms=PERIOD_MS)
        self.agent.configure(INSTANCE, limit, None, 0.0)
        self.clients = [_Client() for _ in range(CONNECTIONS)]
        self.next_tick = random.random() * TICK_S
        bucket = self.agent.bucket(INSTANCE, "produce")
        assert bucket is not None
        self.bucket = bucket

    def send(self, demand: float, now: float) -> tuple[int, bool]:
        """(bytes let through in this step, whether somebody has to wait)."""
        sent, waits = 0, False
        arrived = demand * STEP_S / CONNECTIONS
        room = demand * BUFFER_S / CONNECTIONS
        for client in self.clients:
            client.queued = min(client.queued + arrived, max(room, client.queued))
            if now < client.free_at:
                waits = waits or client.queued >= 1
                continue
            if client.free_at and (owed := self.bucket.delay(now)) > _OWES_NOTHING_S:
                client.free_at = now + owed
                waits = True
                continue
            client.free_at = 0.0
            while client.queued >= 1 and not client.free_at:
                size = int(min(client.queued, REQUEST_BYTES))
                client.queued -= size
                sent += size
                delay = self.bucket.charge(size, now)
                if delay:
                    client.free_at = now + delay
                    waits = True
        return sent, waits


def run(scenario: Scenario, limit: int, strategy: str, random: Random) -> Trace:
    """Run a scenario under a strategy: a name of `quota.core.model.Strategy`, or `static`."""
    return _Run(scenario, limit, strategy, random).trace()


class _Run:
    def __init__(self, scenario: Scenario, limit: int, strategy: str, random: Random) -> None:
        self._scenario, self._limit, self._random = scenario, limit, random
        self._trace = Trace(scenario.name, strategy, limit)
        self._brokers = [_Broker(number + 1, limit, random) for number in range(scenario.brokers)]
        self._facts = {INSTANCE: InstanceFacts(LEADERS, LEADERS * scenario.brokers, 0, CONNECTIONS)}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = count()
        self._waiting: dict[int, _Broker] = {}
        self._now = 0.0
        self._ledger: Ledger | None = None
        for broker in self._brokers:  # they have known their leaders for long
            broker.agent.set_leaders(INSTANCE, LEADERS, LEADERS * scenario.brokers, 0.0)
        if strategy != STATIC:
            self._ledger = Ledger(epoch=1, now=-LEASE_MS / 1000, period_ms=PERIOD_MS, lease_ms=LEASE_MS)
            self._ledger.set_specs({INSTANCE: _spec(limit, strategy)}, 0.0)

    def trace(self) -> Trace:
        steps = round(1 / STEP_S)
        for second in range(int(self._scenario.seconds)):
            admitted, demanded = [0] * len(self._brokers), [0.0] * len(self._brokers)
            throttled = False
            for part in range(steps):
                self._now = second + part * STEP_S
                self._deliver()
                demand = self._scenario.demand(self._now)
                for place, broker in enumerate(self._brokers):
                    sent, waits = broker.send(demand[place], self._now)
                    admitted[place] += sent
                    demanded[place] += demand[place] * STEP_S
                    throttled = throttled or waits
                    self._tick(broker)
            self._trace.admitted.append(admitted)
            self._trace.demanded.append(demanded)
            self._trace.throttled.append(throttled)
            self._trace.allocated.append([broker.bucket.rate for broker in self._brokers])
        return self._trace

    def _tick(self, broker: _Broker) -> None:
        if self._now < broker.next_tick:
            return
        broker.next_tick += TICK_S
        broker.agent.tick(self._now)
        if self._ledger is not None and broker.agent.report_due(self._now):
            report = run_through(broker.agent.report_steps(self._facts.items(), lambda: self._now))
            self._later(self._delay_s(), lambda: self._reported(broker, report))

    def _reported(self, broker: _Broker, report: object) -> None:
        assert self._ledger is not None
        if self._ledger.report(report, self._now):  # type: ignore[arg-type]
            if not self._waiting:
                self._later(GATHER_S, self._answer)
            self._waiting[broker.number] = broker

    def _answer(self) -> None:
        assert self._ledger is not None
        waiting, self._waiting = self._waiting, {}
        for number, broker in waiting.items():
            grants = self._ledger.grants(number, self._now)
            self._later(self._delay_s(), lambda to=broker, what=grants: to.agent.apply(what, self._now))  # type: ignore[misc]

    def _delay_s(self) -> float:
        return self._random.uniform(0.001, 0.01)

    def _later(self, delay_s: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + delay_s, next(self._serial), callback))

    def _deliver(self) -> None:
        while self._events and self._events[0][0] <= self._now:
            heapq.heappop(self._events)[2]()


def _spec(limit: int, strategy: str) -> InstanceSpec:
    limits = Limits(limit, None, None, None)
    return InstanceSpec(INSTANCE, 1, InstanceState.RUNNING, limits, (), (), strategy=strategy)
