"""What a reassignment writes to ZooKeeper, and the two nodes by which operators ask without a request (SPEC RP9).

/admin/reassign_partitions stands until every partition in it has got where it shall, or cannot; it loses partitions on
the way. /admin/preferred_replica_election goes as soon as the election was held. What cannot be read is deleted: it
would stand in everybody's way forever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from dataplane.cluster.paths import (
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    PartitionState,
    parse_preferred_election,
    parse_reassignment,
    parse_topic,
    reassignment_json,
    state_json,
    state_path,
    topic_json,
    topic_path,
)
from dataplane.controller.assignment import Assignment
from dataplane.controller.channel import Key
from dataplane.controller.context import Partition
from dataplane.controller.store import Store
from dataplane.doors import Delete, NoNodeError, Operation, SetData

logger = logging.getLogger(__name__)
T = TypeVar("T")
Targets = dict[Key, tuple[int, ...]]


class Step(NamedTuple):
    """Another assignment of a partition, and the state that goes with it; None: nobody has ever led it."""

    partition: Partition
    assignment: Assignment
    state: PartitionState | None


@dataclass(frozen=True, slots=True)
class AdminNodes:
    """Of one term of office."""

    store: Store

    async def write_steps(self, topic: str, steps: Sequence[Step]) -> list[PartitionState | None]:
        """All of them or none. Nobody but a controller writes these nodes: if somebody has, the term ends."""
        data, stat = await self.store.zookeeper.get(topic_path(topic))
        before = parse_topic(data)
        after = replace(
            before,
            partitions={**before.partitions, **{step.partition.index: step.assignment.replicas for step in steps}},
            adding={**before.adding, **{step.partition.index: step.assignment.adding for step in steps}},
            removing={**before.removing, **{step.partition.index: step.assignment.removing for step in steps}},
        )
        operations: list[Operation] = [SetData(topic_path(topic), topic_json(after), stat.version)]
        operations += [
            SetData(state_path(topic, step.partition.index), state_json(step.state), step.state.partition_epoch)
            for step in steps
            if step.state is not None
        ]
        stats = iter((await self.store.fenced(operations))[1:])
        return [
            None if step.state is None else replace(step.state, partition_epoch=next(stats).version) for step in steps
        ]

    async def reassignment(self) -> Targets:
        """What is asked for; nothing where there is no node."""
        return await self._read(REASSIGN_PARTITIONS, parse_reassignment) or {}

    async def note_reassignment(self, left: Mapping[Key, tuple[int, ...]]) -> None:
        """What is left of it. With nothing left the node goes."""
        if left:
            await self._write(SetData(REASSIGN_PARTITIONS, reassignment_json(left)))
        else:
            await self._write(Delete(REASSIGN_PARTITIONS))

    async def preferred_election(self) -> list[Key]:
        """The partitions whose preferred replica shall lead."""
        return await self._read(PREFERRED_ELECTION, parse_preferred_election) or []

    async def end_preferred_election(self) -> None:
        """It was held."""
        await self._write(Delete(PREFERRED_ELECTION))

    async def _read(self, path: str, parse: Callable[[bytes], T]) -> T | None:
        try:
            data, _ = await self.store.zookeeper.get(path)
            return parse(data)
        except NoNodeError:
            return None
        except ValueError as error:
            logger.warning("%s is deleted: %s", path, error)
            await self._write(Delete(path))
            return None

    async def _write(self, operation: Operation) -> None:
        with suppress(NoNodeError):  # somebody's hand was faster
            await self.store.fenced([operation])
