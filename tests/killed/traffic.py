"""Tenants' clients: each produces, reads what it has produced once, and counts both.

What is counted is record bytes, as brokers count them: 12 + batchLength of whole batches, as they were fetched. A topic is read
from its first to its last offset, so what was read is also what its log holds.

A broker that is killed takes with it what it had not committed (docs/decisions/0005), and what of an answer has left it may
never arrive. So there are two kinds of clients:

    still   nothing of theirs is under way at the moment in which a broker is killed. What is metered is what they have produced
            and consumed, to the byte
    busy    something of theirs is under way at that moment. What is metered of produce is what the log holds, less at most what
            was under way at each kill; of consume what was read, give or take an answer at each kill

Producers are idempotent and write with acks=all: every record is in the log once, whatever is killed, and its end offset is the
number of records that were acknowledged.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.benchmarks.consume import RawConsumer
from tests.integration.clients import Sender, create_topic
from tests.support.wire import answers

if TYPE_CHECKING:
    from tests.support.cluster import ProcessCluster
    from tests.support.specs import Tenant

TOPICS: Mapping[str, int] = {"orders": 3, "clicks": 2}
"""Of each tenant, with their partitions."""
MESSAGES = 40
"""Of a topic, in a burst."""
LARGEST_BYTES = 900
ANSWER_BYTES = 2**18
BATCH_OVERHEAD_BYTES, RECORD_OVERHEAD_BYTES = 61, 20
BURST_BYTES = len(TOPICS) * MESSAGES * (LARGEST_BYTES + RECORD_OVERHEAD_BYTES + BATCH_OVERHEAD_BYTES)
"""No burst is larger: the next begins when it is acknowledged."""
PAUSE_S = 0.7
_WITHIN_S = 180.0
_UNDER_WAY_WITHIN_S = 10.0


class LostError(AssertionError):
    """A client waits for what does not come."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a tenant has done since the beginning, and by how much less or more may be metered."""

    read_bytes: int
    records: int
    produced_slack: int
    consumed_slack: int

    def problems(self, produced: int, consumed: int) -> list[str]:
        """What is wrong with what was metered."""
        found = []
        if not self.read_bytes - self.produced_slack <= produced <= self.read_bytes:
            found.append(f"produced {produced:,} bytes as metered, {self.read_bytes:,} as the log has it")
        if abs(consumed - self.read_bytes) > self.consumed_slack:
            found.append(f"consumed {consumed:,} bytes as metered, {self.read_bytes:,} as the client counts")
        return found


class Reader:
    """One partition, from its first offset, wherever its leader is."""

    def __init__(self, cluster: ProcessCluster, tenant: Tenant, topic: str, partition: int) -> None:
        self._cluster, self._tenant, self._topic, self._partition = cluster, tenant, topic, partition
        self._raw: RawConsumer | None = None
        self.leader: tuple[str, int] | None = None  # that was read from last
        self.offset = self.bytes = 0

    def read(self, end: int) -> None:
        """Up to an offset. Raises LostError."""
        until = time.monotonic() + _WITHIN_S
        while self.offset < end:
            try:
                raw = self._raw = self._raw or self._opened()
                self.bytes += raw.fetch(ANSWER_BYTES)
                self.offset = raw.offset
            except (OSError, RuntimeError):  # it has moved, or is about to
                self.close()
                time.sleep(0.1)
            if self.offset < end and time.monotonic() > until:
                raise LostError(f"{self._tenant.id}: {self._topic}-{self._partition} is not read from {self.offset} on")

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()
            self._raw = None

    def _opened(self) -> RawConsumer:
        leader = self._cluster.leader(self._tenant, self._topic, self._partition)
        if leader < 0:
            raise RuntimeError("no leader")
        self.leader = self._tenant.addresses[leader]
        raw = RawConsumer(self.leader, self._topic, self._partition)
        raw.offset = self.offset
        return raw


class Client:
    """Of one tenant, on a thread of its own; stands still unless it is told to work."""

    def __init__(self, cluster: ProcessCluster, seed: int, *, is_busy: bool) -> None:
        self.tenant = cluster.tenant()
        self.is_busy = is_busy
        self.error: BaseException | None = None
        self._dice = random.Random(seed)
        for topic, partitions in TOPICS.items():
            create_topic(self.tenant, topic, partitions)
        self._sender = Sender(self.tenant, enable_idempotence=True, linger_ms=5, message_timeout_ms=170_000)
        self._readers = {
            (topic, partition): Reader(cluster, self.tenant, topic, partition)
            for topic, partitions in TOPICS.items()
            for partition in range(partitions)
        }
        self._sent: Counter[tuple[str, int]] = Counter()
        self._broker_kills = 0
        self._turn = threading.Lock()  # held while anything is under way
        self._under_way = threading.Event()  # from the first record of a burst to the last that is read of it
        self._works = threading.Event()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.tenant.id, daemon=True)
        self._thread.start()

    def work(self) -> None:
        self._works.set()

    def pause(self) -> None:
        """Begin nothing more."""
        self._works.clear()

    def rest(self) -> None:
        """Returns when all is acknowledged and read."""
        self.pause()
        with self._turn:
            if self.error is not None:
                raise self.error

    @contextlib.contextmanager
    def meanwhile(self) -> Iterator[None]:
        """A broker is killed within: of those that are still, nothing is under way, and of those that are busy, something is.

        Raises LostError where one that is busy begins nothing.
        """
        with contextlib.nullcontext() if self.is_busy else self._turn:
            if self.is_busy and not self._under_way.wait(_UNDER_WAY_WITHIN_S) and self.error is None:
                raise LostError(f"{self.tenant.id}: it is to be busy, and begins nothing")
            self._broker_kills += 1
            yield

    def counted(self) -> Counted:
        """While it rests."""
        kills = self._broker_kills if self.is_busy else 0
        read = sum(reader.bytes for reader in self._readers.values())
        return Counted(read, self._sent.total(), kills * BURST_BYTES, kills * (ANSWER_BYTES + LARGEST_BYTES))

    def close(self) -> None:
        self._ends.set()
        self._works.set()
        self._thread.join(_WITHIN_S)
        for reader in self._readers.values():
            reader.close()

    def _run(self) -> None:
        try:
            while self._works.wait() and not self._ends.is_set():
                with self._turn:
                    if self._works.is_set():
                        self._burst()
                self._ends.wait(PAUSE_S)
        except BaseException as error:  # noqa: BLE001  # told where the client is waited for
            self.error = error

    def _burst(self) -> None:
        for topic, partitions in TOPICS.items():
            for number in range(MESSAGES):
                partition = number % partitions
                value = self._dice.randbytes(self._dice.randrange(LARGEST_BYTES))
                self._sender.send(topic, value, partition=partition)
                self._sent[topic, partition] += 1
                self._under_way.set()
        self._sender.flush(_WITHIN_S)
        if self._sender.refused:
            raise LostError(f"{self.tenant.id}: a record was refused: {self._sender.refused[0][0]}")
        if len(self._sender.acknowledged) != len(TOPICS) * MESSAGES:
            raise LostError(f"{self.tenant.id}: {len(self._sender.acknowledged)} records were acknowledged")
        self._sender.acknowledged.clear()
        for place, reader in self._readers.items():
            reader.read(self._sent[place])
            if reader.offset != self._sent[place]:
                raise LostError(f"{self.tenant.id}: {place} ends at {reader.offset}, of {self._sent[place]} records")
        for leader in {reader.leader for reader in self._readers.values() if reader.leader}:
            answers(leader)  # a broker counts an answer once it has left: what comes after it, comes after that, too
        self._under_way.clear()
