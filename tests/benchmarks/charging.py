"""What the quota costs a request on the broker: microseconds of one core, in alternation, without sockets.

    python -m tests.benchmarks.charging [--rounds 40] [--requests 1000]

The way of a frame to its answer's parts, with the real gate, agent and buckets, as repeated requests go it:

    not charged      as the cluster's own traffic: no instance, nothing is asked
    unlimited        an instance without limits: its bytes are counted
    below its limit  charged, and never throttled: what nearly every request of a tenant is
    requests too     the same, and its requests are limited as well
    a rule elsewhere below its limit, and the instance has a throttle rule for another topic
    a rule for it    the rule is for this topic (never reached): such requests take the long way and are decoded each time

Every round measures all of them; the figure is the median over the rounds of the difference to "not charged" in the same
round. var/reports/charging.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dataplane.clock import SystemClock
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from dataplane.requests.dispatch import ClientConnection
from dataplane.tenancy.gate import Gate
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from dataplane.throttle.debt_queue import DebtQueues
from quota.agent.agent import Agent
from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from tests.benchmarks.fetch_path import Connection
from tests.benchmarks.fetch_path import frame as fetch_frame
from tests.benchmarks.report import Say, keep, progress
from tests.dataplane.fetching.support import KEY, NAME, Door, single

REPORT = Path("var/reports/charging.json")
BASE = "not charged"
PLENTY = 10**15  # bytes a second
VALUE = b"x" * 100
WRITTEN_BYTES = 16  # of a batch, at its beginning: base offset, length, leader epoch

Serve = Callable[[memoryview], None]
Frames = Callable[[], memoryview]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.charging", description="What the quota costs.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--requests", type=int, default=1_000, help="of each kind in a round")
    options = parser.parse_args(arguments)
    door = a_door()
    ways = {name: a_way(door, spec) for name, spec in _instances().items()}
    figures = {}
    for request, frames in (("fetch", fetch_frames()), ("produce", produce_frames())):
        figures[request] = measured(request, frames, ways, options, progress())
    print(table(figures))
    keep(REPORT, {"options": vars(options), "microseconds": figures})
    return 0


def _instances() -> dict[str, InstanceSpec | None]:
    """By the names of the file's text."""
    limited = Limits(PLENTY, PLENTY, PLENTY, None)
    return {
        BASE: None,
        "unlimited": _spec(Limits(None, None, None, None)),
        "below its limit": _spec(limited),
        "requests too": _spec(replace(limited, requests_per_s=PLENTY)),
        "broker time too": _spec(replace(limited, requests_per_s=PLENTY, loop_ms_per_s=PLENTY)),
        "a rule elsewhere": _spec(limited, "another"),
        "a rule for it": _spec(limited, NAME),
    }


def _spec(limits: Limits, ruled: str | None = None) -> InstanceSpec:
    rule = ThrottleRule("rule-1", RuleKind.TOPIC, PLENTY, PLENTY, topics=(ruled,) if ruled else ())
    rules = RuleSet(1, (rule,) if ruled else ())
    return InstanceSpec(f"ins-{KEY}", 1, InstanceState.RUNNING, limits, (), (), rules=rules)


def a_door() -> Door:
    """A broker with one partition that has a batch to fetch."""
    cluster = single(1)
    cluster.produce(1, VALUE.decode())
    cluster.run(0.01)
    door = Door(cluster)
    loop = door.broker.replicas.loop
    loop.at_turn_end = lambda callback: callback()  # every request in a turn of its own
    door.broker.doors = SimpleNamespace(loop=loop, clock=SystemClock(), files=cluster[1].files)
    return door


def a_way(door: Door, spec: InstanceSpec | None, *, short_cuts: bool = True) -> Serve:
    """Into a connection of such an instance to the door's broker."""
    loop = SimpleNamespace(
        clock=SystemClock(), charge_to=lambda _account, _bucket: None, call_later=door.broker.doors.loop.call_later
    )
    lines = DebtQueues(loop)
    gate = Gate(Agent(broker=1, boot="b", now=loop.clock.monotonic()), loop, lines, group_bytes_per_s=PLENTY)
    instance = None
    if spec is not None:
        instance = Instance(spec)
        gate.configure(instance)
    broker = SimpleNamespace(**{**vars(door.broker), "gate": gate, "lines": lines})
    client = ClientConnection(
        broker, Connection(), Session(instance, "default", door.instance.names, "127.0.0.1", authenticated=True)
    )

    if not short_cuts:
        client._produce = client._fetch = SimpleNamespace(serve=lambda _frame: False, remember=lambda *_: None)

    def serve(frame: memoryview) -> None:
        client.begins(frame[0] << 8 | frame[1], len(frame))
        client.frame(frame)

    return serve


def fetch_frames() -> Frames:
    """A fetch of the batch."""
    made = fetch_frame(12, {0: 0})
    return lambda: made


def produce_frames() -> Frames:
    """The same frame again and again; what the broker has written into its batch is taken back."""
    batch = bytes(build_batch([Record(None, VALUE, (), 1)], now_ms=1))
    data = (TopicProduceData(NAME, (PartitionProduceData(0, batch),)),)
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=data)
    made = memoryview(bytearray(encode_request(APIS[ApiKey.PRODUCE], 7, 7, "rdkafka", request)[4:]))
    head, at = batch[:WRITTEN_BYTES], len(made) - len(batch)

    def again() -> memoryview:
        made[at : at + len(head)] = head
        return made

    return again


def measured(
    request: str,
    frames: Frames,
    ways: dict[str, Serve],
    options: argparse.Namespace,
    say: Say,
    *,
    base: str = BASE,
) -> dict[str, dict[str, float]]:
    """By way: its median, and what it takes more than the base, median and quartiles."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(options.rounds):
        for name, serve in ways.items():
            took[name].append(_microseconds(serve, frames, options.requests))
        if (number + 1) % 10 == 0:
            say(f"{request}: round {number + 1} of {options.rounds}")
    return {name: _row(values, took[base]) for name, values in took.items()}


def _microseconds(serve: Serve, frames: Frames, requests: int) -> float:
    """Of a request. By the thread's own time: others use the machine, too."""
    began = time.thread_time()
    for _ in range(requests):
        serve(frames())
    return (time.thread_time() - began) / requests * 1e6


def _row(values: list[float], base: list[float]) -> dict[str, float]:
    more = [value - other for value, other in zip(values, base, strict=True)]
    low, middle, high = statistics.quantiles(more, n=4)
    row = {"median": statistics.median(values), "more": middle, "more_low": low, "more_high": high}
    return {name: round(value, 2) for name, value in row.items()}


def table(figures: dict[str, Any], base: str = BASE) -> str:
    """For people: by request and way."""
    lines = [f"{'microseconds':<28}{'median':>10}{'more':>10}{'quartiles':>18}"]
    for request, rows in figures.items():
        for name, row in rows.items():
            spread = "" if name == base else f"{row['more_low']:g} - {row['more_high']:g}"
            more = "" if name == base else f"{row['more']:g}"
            lines.append(f"{request + ', ' + name:<28}{row['median']:>10g}{more:>10}{spread:>18}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
