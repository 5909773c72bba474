"""Kafka Streams with processing.guarantee=exactly_once_v2: two instances count words, and one of them is killed.

A transaction for each commit, around counts, changelogs and offsets. What readers of committed records see of a word must be
1, 2, 3, … up to how often it was produced: nothing twice, nothing left out, whoever was killed in the midst of it.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from controlplane.stack.process import dies_with_parent
from tests.conformance import fixtures
from tests.conformance.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable

TEST = "a_word_count_is_exact_though_one_of_two_is_killed"
LIMIT_S = 120
_SOURCE = Path(__file__).parents[1] / "java_streams" / "WordCount.java"
_PARTITIONS, _REPLICAS = 4, 3
_WORDS = [f"word-{number}" for number in range(50)]
_LINES_S, _KILLED_AT_S, _BACK_AT_S = 25, 10, 14


def run(bootstrap: str, scratch: Path, say: Callable[[str], None], only: str = "") -> list[Result]:
    """The one test."""
    if only not in TEST:
        return []
    began = time.monotonic()
    problem = _problem(bootstrap, scratch)
    result = Result(TEST, "fail" if problem else "pass", time.monotonic() - began, problem)
    say(f"{result.outcome:8} {result.test:52} {result.seconds:6.1f} s  {result.remark[:100]}")
    return [result]


def _problem(bootstrap: str, scratch: Path) -> str:
    """What is wrong; nothing where all counts are exact."""
    _create(bootstrap)
    counters = {number: _start(bootstrap, scratch, number) for number in (1, 2)}
    try:
        wanted = _produce_and_kill(bootstrap, scratch, counters)
        found = _read(bootstrap, wanted.total())
    finally:
        for process in counters.values():
            process.kill()
            process.wait()
    wrong = sorted(word for word in wanted if found[word] != list(range(1, wanted[word] + 1)))
    if not wrong:
        return ""
    word = wrong[0]
    return f"{len(wrong)} words are not exact; {word} came {wanted[word]} times, and was counted {found[word][-5:]}"


def _create(bootstrap: str) -> None:
    topics = [NewTopic(name, _PARTITIONS, _REPLICAS) for name in ("lines", "counts")]
    admin = AdminClient({"bootstrap.servers": bootstrap})  # must outlive its futures
    for future in admin.create_topics(topics).values():
        future.result(30)


def _start(bootstrap: str, scratch: Path, number: int) -> subprocess.Popen[bytes]:
    """An instance; its state stays where it is when it is started again."""
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", quiet]
    state = scratch / f"state-{number}"
    with (scratch / f"instance-{number}.log").open("ab") as log:
        return subprocess.Popen(
            [
                *(*java, "-cp", fixtures.streams_classes(_SOURCE), "WordCount"),
                *(bootstrap, "word-count", str(state), str(_REPLICAS), "lines", "counts"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
        )


def _produce_and_kill(bootstrap: str, scratch: Path, counters: dict[int, subprocess.Popen[bytes]]) -> Counter[str]:
    """Lines all the time; how often each word came."""
    chance, wanted = random.Random(7), Counter[str]()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    began, number = time.monotonic(), 0
    is_killed = is_back = False
    while (passed := time.monotonic() - began) < _LINES_S:
        words = chance.choices(_WORDS, k=4)
        wanted.update(words)
        producer.produce("lines", key=str(number), value=" ".join(words))
        producer.poll(0.01)
        number += 1
        if passed > _KILLED_AT_S and not is_killed:
            counters[1].kill()
            counters[1].wait()
            is_killed = True
        if passed > _BACK_AT_S and not is_back:
            counters[1] = _start(bootstrap, scratch, 1)
            is_back = True
    producer.flush(30)
    return wanted


def _read(bootstrap: str, wanted: int) -> dict[str, list[int]]:
    """What was counted of each word, in order; a little longer than until all is there, for what there is too much."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("counts", partition, 0) for partition in range(_PARTITIONS)])
    found: dict[str, list[int]] = defaultdict(list)
    total, until = 0, time.monotonic() + LIMIT_S - _LINES_S
    while time.monotonic() < until:
        messages = [message for message in consumer.consume(500, 1) if not message.error()]
        for message in messages:
            found[(message.key() or b"").decode()].append(int(message.value() or b"0"))
        total += len(messages)
        if total >= wanted:
            until = min(until, time.monotonic() + 3)
    consumer.close()
    return found
