"""The workload's clients: each a process of its own that lives for a whole campaign and works round by round.

    python -m tests.chaos.clients producer|member|assigned NAME BOOTSTRAP

Orders come on stdin as JSON lines, `{"do": "begin", "topic": …, "group": …}` and `{"do": "end", "ends": {…}, "file": …}`;
after each the client says `ok` on stdout. At the end of a round it writes what it saw into `file`:

producer    rows [partition, number, offset, when] of what was acknowledged, [partition, number, error] of what was refused,
            the longest time in which a partition acknowledged nothing while it was written to, and the epochs that it
            gave up: [producer id, epoch, the broker's error that it names, or nothing] (`epochs.py`)
member      polls [partition, offset, producer, number], commits [partition, offset, when], and what a new assignment
            found committed: [partition, offset, when asked]
assigned    polls alone

A record is `<producer>:<number>:<padding>`; its partition is number modulo the partitions, so each producer's numbers
rise in each partition. Times are of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from controlplane.stack.process import dies_with_parent
from tests.chaos.epochs import Epochs

PARTITIONS = 8
PER_S = 300
DRAINED_WITHIN_S = 60.0
REQUEST_S = 10.0  # so long a client waits for an answer, and sends no more to that broker when five are due
_COMMIT_EVERY_S = 0.5
_LARGE_EVERY = 97  # records


class Orders:
    """What the driver says."""

    def __init__(self) -> None:
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def next(self) -> dict[str, Any] | None:
        return self._lines.get()

    def peek(self) -> bool:
        """Whether there is a next one."""
        return not self._lines.empty()


class Writing:
    """One round of an idempotent producer."""

    def __init__(self, name: str, bootstrap: str, topic: str) -> None:
        self._name, self._topic = name, topic
        self._acknowledged: list[tuple[int, int, int, float]] = []
        self._refused: list[tuple[int, int, str]] = []
        self._fatal: list[str] = []
        self._epochs = Epochs()
        self._last: dict[int, float] = {}
        self._gaps: dict[int, float] = defaultdict(float)
        self._number = 0
        self._began = time.monotonic()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "message.timeout.ms": 120_000,
                "socket.timeout.ms": int(1000 * REQUEST_S),
                "retry.backoff.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "queue.buffering.max.messages": 1_000_000,
                "error_cb": self._on_error,
                "debug": "eos",  # why it raised its epoch, should it have: a duplicate may have begun with that
                "log_level": 7,
            },
            logger=self._epochs.logger(name),
        )

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal.append(str(error))

    def step(self) -> None:
        """Send what is due."""
        ahead = self._number / PER_S - (time.monotonic() - self._began)
        if ahead > 0:
            self._poll(min(ahead, 0.05))
            return
        number = self._number
        padding = "x" * (3000 if number % _LARGE_EVERY == 0 else 60)
        try:
            self._producer.produce(
                self._topic,
                f"{self._name}:{number}:{padding}".encode(),
                partition=number % PARTITIONS,
                on_delivery=lambda error, message: self._done(number, error, message),
            )
        except BufferError:
            self._poll(0.05)
            return
        except KafkaException as error:  # fatal: the producer takes nothing any more
            self._refused.append((number % PARTITIONS, number, str(error)))
            time.sleep(0.1)
        self._number += 1
        self._poll(0)

    def _poll(self, within_s: float) -> None:
        """A fatal error comes out of here, whatever `error_cb` does; or its callbacks run into it, as a SystemError."""
        try:
            self._producer.poll(within_s)
        except (KafkaException, SystemError) as error:
            self._fatal.append(str(error))
            time.sleep(0.1)

    def _done(self, number: int, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self._refused.append((number % PARTITIONS, number, str(error)))
            return
        now, partition = time.monotonic(), message.partition()
        self._gaps[partition] = max(self._gaps[partition], now - self._last.get(partition, self._began))
        self._last[partition] = now
        self._acknowledged.append((partition, number, message.offset(), now))

    def end(self, _order: dict[str, Any]) -> dict[str, Any]:
        left = self._flush()
        return {
            "acknowledged": self._acknowledged,
            "refused": self._refused,
            "fatal": self._fatal,
            "epochs_ended": self._epochs.ended,
            "unanswered": left,
            "sent": self._number,
            "longest_gap_s": max(self._gaps.values(), default=0.0),
        }

    def _flush(self) -> int:
        """How many records are left; what is fatal ends it sooner."""
        try:
            return int(self._producer.flush(DRAINED_WITHIN_S))
        except (KafkaException, SystemError) as error:
            self._fatal.append(str(error))
            return len(self._producer)


class Reading:
    """One round of a consumer: a group's member, or one that assigns itself everything."""

    def __init__(self, name: str, bootstrap: str, topic: str, group: str | None) -> None:
        self._topic, self._group = topic, group
        self._polls: list[tuple[int, int, str, int]] = []
        self._commits: list[tuple[int, int, float]] = []
        self._found: list[tuple[int, int, float]] = []
        self._errors: dict[str, int] = defaultdict(int)
        self._positions: dict[int, int] = {}  # to be committed
        self._seen: dict[int, int] = {}
        self._next_commit = 0.0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group or f"none-{name}",
                "auto.offset.reset": "earliest" if group else "error",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 1000,
                "socket.timeout.ms": int(1000 * REQUEST_S),
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 2000,
                "log_level": 0,
            }
        )
        if group:
            self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        else:
            self._consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._positions.clear()
        asked = time.monotonic()
        try:
            for found in self._consumer.committed(partitions, 5):
                if found.error is None:
                    self._found.append((found.partition, found.offset, asked))
        except KafkaException as error:
            self._errors[str(error)] += 1

    def _revoked(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self._commit()

    def step(self) -> None:
        for message in self._consumer.consume(500, 0.1):
            error = message.error()
            if error is not None:
                self._errors[f"{error.name()}: {error.str()}"] += 1
                continue
            producer, number, _ = message.value().split(b":", 2)
            self._polls.append((message.partition(), message.offset(), producer.decode(), int(number)))
            self._positions[message.partition()] = self._seen[message.partition()] = message.offset() + 1
        if self._group and time.monotonic() > self._next_commit:
            self._commit()
            self._next_commit = time.monotonic() + _COMMIT_EVERY_S

    def _commit(self) -> None:
        """What was read; a refusal is no loss: then others read it again."""
        if not self._positions:
            return
        wanted = [TopicPartition(self._topic, p, offset) for p, offset in sorted(self._positions.items())]
        self._positions.clear()
        try:
            for done in self._consumer.commit(offsets=wanted, asynchronous=False) or ():
                if done.error is None:
                    self._commits.append((done.partition, done.offset, time.monotonic()))
        except KafkaException as error:
            self._errors[f"commit: {error.args[0].name()}"] += 1

    def end(self, order: dict[str, Any]) -> dict[str, Any]:
        """Read on to the given ends, within bounds."""
        ends = {int(partition): offset for partition, offset in order["ends"].items()}
        deadline = time.monotonic() + DRAINED_WITHIN_S
        reached = False
        while time.monotonic() < deadline and not reached:
            self.step()
            reached = self._has_reached(ends)
        self._consumer.close()
        return {
            "polls": self._polls,
            "commits": self._commits,
            "found": self._found,
            "errors": self._errors,
            "reached": reached,
        }

    def _has_reached(self, ends: dict[int, int]) -> bool:
        if not self._group:
            return all(self._seen.get(partition, 0) >= end for partition, end in ends.items())
        try:
            everywhere = [TopicPartition(self._topic, partition) for partition in ends]
            return all(found.offset >= ends[found.partition] for found in self._consumer.committed(everywhere, 5))
        except KafkaException:
            return False


def main(role: str, name: str, bootstrap: str) -> None:
    """Work until stdin ends."""
    orders = Orders()
    work: Writing | Reading | None = None
    while (order := orders.next()) is not None:
        if order["do"] == "begin":
            topic = order["topic"]
            group = order["group"] if role == "member" else None
            work = Writing(name, bootstrap, topic) if role == "producer" else Reading(name, bootstrap, topic, group)
            print("ok", flush=True)
            while not orders.peek():
                work.step()
        elif work is not None:
            Path(order["file"]).write_text(json.dumps(work.end(order)))
            work = None
            print("ok", flush=True)


class Client:
    """The driver's side of one."""

    def __init__(self, role: str, name: str, bootstrap: str, log: Path) -> None:
        self.role, self.name, self._log = role, name, log
        with log.open("ab") as opened:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.clients", role, name, bootstrap],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=opened,
                text=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )
        self._said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(line)
        self._said.put("")

    def order(self, **order: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise AssertionError(f"{self.role} {self.name} is gone: {self._last_words()}") from error

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return " / ".join([line for line in lines if not line.startswith("%7")][-2:])

    def await_ok(self, within_s: float) -> None:
        """AssertionError when it does not come."""
        try:
            said = self._said.get(timeout=within_s)
        except queue.Empty:
            said = "nothing"
        assert said == "ok\n", f"{self.role} {self.name} said {said!r} within {within_s:.0f} s: {self._last_words()}"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(10)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
