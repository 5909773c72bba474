"""The simulator's clients in front of real brokers: a few connections per broker that wait as they are told.

Each connection is a thread with a queue that holds two seconds of demand, from which it sends requests of one size. A
second is the second in which the answer came: then the broker has charged the request.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence

from dataplane.protocol.messages.produce import ProduceRequest
from quota.simulator.demand import Scenario
from quota.simulator.run import BUFFER_S, CONNECTIONS, Trace
from tests.integration import asks
from tests.support.wire import Wire

TOPIC = "flow"
REQUEST_BYTES = 32 * 2**10
SLEEP_S = 0.005
VERSION = 9
_PARTS = 10  # of a second, in which demand is looked at
_noting = threading.Lock()  # += on what several threads share reads and writes

Address = tuple[str, int]


def drive(
    scenario: Scenario, strategy: str, limit: int, addresses: Mapping[int, Address], led: Mapping[int, Sequence[int]]
) -> Trace:
    """Offer what the scenario says to each broker, by the partitions that it leads; what happened."""
    trace = _empty(scenario, strategy, limit)
    places = sorted(addresses)
    began = time.monotonic() + 1.0
    threads = [
        threading.Thread(
            target=_client,
            args=(scenario, place, addresses[broker], led[broker][number % len(led[broker])], began, trace),
            daemon=True,
        )
        for place, broker in enumerate(places)
        for number in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scenario.seconds + 60)
    return trace


def _empty(scenario: Scenario, strategy: str, limit: int) -> Trace:
    seconds = range(int(scenario.seconds))
    moments = [[second + part / _PARTS for part in range(_PARTS)] for second in seconds]
    return Trace(
        scenario.name,
        strategy,
        limit,
        admitted=[[0] * scenario.brokers for _ in seconds],
        demanded=[[sum(column) / _PARTS for column in zip(*map(scenario.demand, row), strict=True)] for row in moments],
        throttled=[False for _ in seconds],
    )


def _client(scenario: Scenario, place: int, address: Address, partition: int, began: float, trace: Trace) -> None:
    request, queued, last = _request(partition), 0.0, 0.0
    with Wire(address, timeout_s=60) as wire:
        while (now := time.monotonic() - began) < scenario.seconds:
            if now < 0:
                time.sleep(SLEEP_S)
                continue
            wanted = scenario.demand(now)[place] / CONNECTIONS
            queued = min(queued + wanted * (now - last), max(wanted * BUFFER_S, queued))
            last = now
            if queued < REQUEST_BYTES:
                time.sleep(SLEEP_S)
                continue
            queued -= REQUEST_BYTES
            told_s = wire.call(request, VERSION).throttle_time_ms / 1000
            _note(trace, place, time.monotonic() - began, told_s)
            time.sleep(told_s)


def _request(partition: int) -> ProduceRequest:
    return asks.produce(TOPIC, asks.batch(os.urandom(REQUEST_BYTES)), acks=1, partition=partition)


def _note(trace: Trace, place: int, answered_s: float, told_s: float) -> None:
    """What an answer says: a request that was let through, and until when its sender waits."""
    seconds = len(trace.admitted)
    with _noting:
        if answered_s < seconds:
            trace.admitted[int(answered_s)][place] += REQUEST_BYTES
        if told_s:
            for second in range(int(answered_s), min(int(answered_s + told_s) + 1, seconds)):
                trace.throttled[second] = True
