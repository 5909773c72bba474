"""How long a cluster of 5,000 partitions is without a working controller after it was killed, ours and Apache Kafka's.

    python -m tests.benchmarks.controller [--partitions 5000] [--rounds 3] [--alone]

Three brokers, every partition on all of them. SIGKILL for the active controller, which leads a third; each moment counts
from the signal:

    elected      ZooKeeper names another controller: mostly the dead broker's session, of SESSION_S (Apache Kafka's: of 18 s)
    all led      both who live tell clients of living leaders, for all partitions: the new controller has read every
                 state, decided, written and told
    topic made   a topic that is asked for then has leaders that clients can see

So what the controllers have to be compared by is the time from the election until all are led.
Then the broker comes back, all replicas get in sync again, and the next round begins. var/reports/controller.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kazoo.exceptions import NoNodeError

from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from quota.zookeeper.client import Client
from tests.benchmarks.apache import ApacheRig
from tests.benchmarks.report import Figures, Say, keep, progress, table
from tests.benchmarks.rig import Rig
from tests.benchmarks.server import Server, create_topic
from tests.support.apache_kafka import NotAvailableError
from tests.support.wire import Wire
from tests.support.zookeeper import operator

REPORT = Path("var/reports/controller.json")
BROKERS = 3
PARTITIONS = 5_000
PER_TOPIC = 100
SESSION_S = 2.0
TOPIC = "full-{:04d}"
_METADATA = 8
_WITHIN_S = 120.0

Topics = tuple[MetadataRequestTopic, ...] | None
"""Of a question; None: all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one after the other, print a table, write the figures."""
    options = _options(arguments)
    say = progress()
    figures = Figures()
    _measure(Rig(brokers=BROKERS), figures, options, say)
    if not options.alone:
        try:
            _measure(ApacheRig(brokers=BROKERS), figures, options, say)
        except (NotAvailableError, AssertionError, TimeoutError) as error:
            say(f"without Apache Kafka: {error}")
    rows = figures.rows()
    print(table(rows))
    keep(REPORT, {"options": vars(options), "brokers": BROKERS, "session_timeout_s": SESSION_S, "rows": rows})
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.controller", description="A controller's death.")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    return parser.parse_args(arguments)


def _measure(server: Server, figures: Figures, options: argparse.Namespace, say: Say) -> None:
    with server:
        zookeeper = operator(server.zookeeper, closed=False, timeout=10)
        zookeeper.start(timeout=20)
        try:
            _fill(server, options.partitions)
            say(f"{server.name}: {options.partitions} partitions on {BROKERS} brokers")
            for number in range(options.rounds):
                _until(lambda: _in_sync(server), "all replicas to be in sync")
                found = _round(server, zookeeper, number, options.partitions)
                for name, seconds in found.items():
                    figures.add(f"controller killed: {name}, s", server.name, seconds)
                shown = ", ".join(f"{name} after {seconds:.2f} s" for name, seconds in found.items())
                say(f"{server.name}, round {number + 1} of {options.rounds}: {shown}")
        finally:
            zookeeper.stop()
            zookeeper.close()


def _fill(server: Server, partitions: int) -> None:
    for number in range(partitions // PER_TOPIC):
        create_topic(server.bootstrap, TOPIC.format(number), PER_TOPIC, BROKERS)


def _round(server: Server, zookeeper: Client, number: int, partitions: int) -> dict[str, float]:
    victim = _controller(zookeeper)
    living = [broker for broker in server.brokers if broker != victim]
    last = (MetadataRequestTopic(name=TOPIC.format(partitions // PER_TOPIC - 1)),)
    server.kill(victim)
    began = time.monotonic()
    _until(lambda: _controller(zookeeper) not in (None, victim), "another controller")
    moments = {"elected": time.monotonic() - began}
    for names in (last, None):  # all of them are looked at once the last topic is known: looking costs the brokers much
        for broker in living:
            _until(lambda: victim not in _leaders(server, broker, names), f"broker {broker} to know all leaders")  # noqa: B023
    moments["all led"] = time.monotonic() - began
    moments["from elected to all led"] = moments["all led"] - moments["elected"]
    create_topic(_bootstrap(server, living), f"after-{number}", 1, len(living))
    moments["topic made"] = time.monotonic() - began
    server.restart(victim)
    return moments


def _controller(zookeeper: Client) -> int | None:
    try:
        return int(json.loads(zookeeper.get("/controller")[0])["brokerid"])
    except NoNodeError:
        return None


def _bootstrap(server: Server, brokers: Sequence[int]) -> str:
    return ",".join(f"{host}:{port}" for host, port in map(server.address, brokers))


def _leaders(server: Server, broker: int, topics: Topics) -> set[int]:
    """Who leads partitions of these topics, as this broker tells clients."""
    return {partition.leader_id for partition in _partitions(server, broker, topics)}


def _in_sync(server: Server) -> bool:
    return all(
        len(partition.isr_nodes) == len(partition.replica_nodes)
        for broker in server.brokers
        for partition in _partitions(server, broker, None)
    )


def _partitions(server: Server, broker: int, topics: Topics) -> list[Any]:
    with Wire(server.address(broker)) as wire:
        answer = wire.call(MetadataRequest(topics=topics, allow_auto_topic_creation=False), _METADATA)
    return [partition for topic in answer.topics for partition in topic.partitions]


def _until(condition: Callable[[], bool], what: str) -> None:
    """Looks again at once: what it waits for is measured. A broker that does not answer just now counts as no."""
    deadline = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise TimeoutError(f"waited {_WITHIN_S:.0f} s for {what}")


if __name__ == "__main__":
    sys.exit(main())
