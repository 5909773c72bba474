"""Faults of a machine that goes on working: its disk, its clock, its connections, its own code; and configurations that change.

late           what a broker has sent to another is delayed, the connection ends for the sender: new ones overtake it
disk           a broker's disk refuses (EIO, ENOSPC, at what it does, or part of that) until the broker is started again
busy           a broker's disk takes up to a second for each job in the background
step           a broker's date moves, forwards or back, up to an hour
raise          a callback of a broker raises, while other partitions are still to be written in the same turn
configure      a topic becomes durable, or is not any more, or its records get other times
stop           SIGTERM of a broker, and a new start
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from dataplane.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from dataplane.replication.manager import Replicas
from dataplane.tasks import Future, Task
from tests.simulation.faults import Faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.protocol.errors import ErrorCode
    from dataplane.replication.replica.partition import Partition

HOUR_MS = 3_600_000
TOPIC_RESOURCE = 2
SET, DELETE = 0, 1
STOP_WITHIN_S = 10.0
CONFIGURATIONS = {"flush.messages": ("1", "3"), "flush.ms": ("200",), "message.timestamp.type": ("LogAppendTime",)}
WRITES = ("append", "sync", "truncate", "write_file", "open", "rename", "remove", "sync_directory")


class PlannedError(Exception):
    """The one that a loop survives here: it belongs to the plan of a run."""


class Disturbances(Faults):
    """Those of a campaign."""

    async def campaign(self, rounds: int) -> None:
        """As ever; then topics are configured as they were."""
        await super().campaign(rounds)
        while not await self._configured(dict.fromkeys(CONFIGURATIONS)):
            await self._sleep(0.1, 0.5)

    async def _late(self) -> None:
        cluster = self._cluster
        one, other = self._random.sample(cluster.ids, 2)
        if self._random.random() < 0.5 and self._active() != other:
            one = self._active()
        cluster.note(f"late b{one} -> b{other}")
        cluster.network.delay(cluster.host(one), cluster.host(other), self._random.uniform(0.2, 5.0))
        await self._sleep(0.0, 1.5)
        cluster.network.reset(cluster.host(one), cluster.host(other))

    async def _disk(self) -> None:
        """Once is enough: what is in doubt is so until the next start."""
        victim, files = self._any(), self._cluster.files
        code = self._random.choice((errno.EIO, errno.ENOSPC))
        operations = self._random.sample(WRITES, self._random.choice((1, 3, len(WRITES))))
        self._cluster.note(f"disk of b{victim}: {os.strerror(code)} at {operations}")

        def refuse(operation: str, path: str) -> None:
            if operation in operations:
                raise OSError(code, os.strerror(code), path)

        if victim in self._cluster.brokers:
            files[victim].fault = refuse
            await self._sleep(0.1, 5.0)
        self._die(victim)
        files[victim].fault = None
        await self._sleep(0.0, 2.0)
        self._start(victim)

    async def _busy(self) -> None:
        background = self._cluster.background[self._any()]
        background.slow = (0.05, 1.0)
        await self._sleep(1.0, 5.0)
        background.slow = None

    async def _step(self) -> None:
        victim = self._any()
        by_ms = int(
            self._random.choice((-1, 1)) * self._random.choice((1_500, 60_000, HOUR_MS)) * self._random.random()
        )
        self._cluster.note(f"date of b{victim} {by_ms:+} ms")
        self._cluster.network.step_clock(self._cluster.host(victim), by_ms)

    async def _raise(self) -> None:
        """A bug that all of them have, as often as it comes to that in a few seconds."""
        answers = self._random.random() < 0.5
        traps = [
            _Trap(each.replicas, 3, self._cluster.note, answers=answers) for each in self._cluster.brokers.values()
        ]
        await self._sleep(2.0, 6.0)
        for trap in traps:
            trap.times = 0

    async def _configure(self) -> None:
        name = self._random.choice(list(CONFIGURATIONS))
        await self._configured({name: self._random.choice((None, *CONFIGURATIONS[name]))})

    async def _configured(self, values: dict[str, str | None]) -> bool:
        """Whether somebody has taken it on. None: the default again."""
        rows = tuple(
            IncrementalAlterConfigsRequestAlterableConfig(name, DELETE if value is None else SET, value)
            for name, value in values.items()
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(TOPIC_RESOURCE, self._topic, rows)
        asked = self._random.choice(self._cluster.ids)
        answer = await self._cluster.client.call(asked, IncrementalAlterConfigsRequest(resources=(resource,)), 1)
        done = answer is not None and not answer.responses[0].error_code
        self._cluster.note(f"{'configured' if done else 'did not configure'} {values}")
        return done

    async def _stop(self) -> None:
        victim, cluster = self._any(), self._cluster
        if victim in cluster.brokers:
            running, over = cluster.brokers[victim], Future[Any]()
            Task(cluster.stop(victim)).then(over.resolve)
            cluster.client.sleep(STOP_WITHIN_S).then(over.resolve)
            await over
            if cluster.brokers.get(victim) is running:
                self._die(victim)
        await self._sleep(0.0, 3.0)
        self._start(victim)


class _Trap:
    """Raises in a broker's callbacks, so many times, whenever another partition waits for the end of the same commit."""

    def __init__(self, replicas: Replicas, times: int, note: Callable[[str], None], *, answers: bool) -> None:
        self.times = times
        self._replicas, self._note, self._answers = replicas, note, answers
        self._after_commit, self._arrived = replicas.appending.after_commit, replicas.waiting.arrived
        replicas.appending.after_commit = self._trapped_after_commit  # type: ignore[method-assign]
        replicas.waiting.arrived = self._trapped_arrived  # type: ignore[method-assign]

    def _trapped_after_commit(
        self, partition: Partition, last: int, acks: int, timeout_s: float, done: Callable[[ErrorCode], None]
    ) -> None:
        """Who waits hears of it before, or never: then its client loses patience."""
        is_internal = partition.instance_key is None

        def trapped(code: ErrorCode) -> None:
            springs = self.springs(partition)
            if not springs or self._answers or is_internal:
                done(code)
            if springs:
                raise PlannedError(f"an answer of {partition.topic}-{partition.index}")

        self._after_commit(partition, last, acks, timeout_s, trapped)

    def _trapped_arrived(self, place: dict[Any, None], size: int) -> None:
        self._arrived({_Raising(watcher, self): None for watcher in place}, size)

    def springs(self, partition: Partition | None = None) -> bool:
        """Whether it comes to that now."""
        if not self.times or not any(
            other.queues.dirty for other in self._replicas.registry.partitions() if other is not partition
        ):
            return False
        self.times -= 1
        self._note("raises")
        return True


class _Raising:
    """Somebody who is woken, and raises when that is done."""

    def __init__(self, watcher: Any, trap: _Trap) -> None:
        self._watcher, self._trap = watcher, trap

    def arrived(self, size: int) -> None:
        self._watcher.arrived(size)
        if self._trap.springs():
            raise PlannedError("somebody who was woken")
