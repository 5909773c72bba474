"""Moving replicas to other brokers while clients go on: begun, replaced, cancelled, finished (KIP-455).

The steps of one partition:

    begin     old and new replicas together are the assignment; the leader hears of its new followers
    copy      followers copy and join the ISR as ever (`alter_partition_queue`)
    finish    with all of the target in sync: the others leave the ISR, the lead moves if it was theirs, and they are
              told to delete what they have

A step is one transaction on the topic's node and the state nodes (`admin_nodes`), and brokers are told afterwards, again
and again while they live. So a controller may die anywhere: its successor finds a reassignment that is under way, and
goes on when the ISR says so. A broker that was to delete a replica and was not told learns it from the next
controller's first LeaderAndIsr, which names all that it hosts.

A reassignment waits forever for a broker that does not return. To cancel it, or to ask for another one, is the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dataplane.controller.assignment import Assignment, finished, restricted
from dataplane.controller.channel import Channels, Key
from dataplane.controller.context import Context, Partition
from dataplane.controller.deletion import Deletions
from dataplane.controller.leaders import chosen
from dataplane.controller.operators.admin_nodes import (
    AdminNodes,
    Step,
    Targets,
)
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tasks import Future

_STEPS_PER_TRANSACTION = 200
_LOOKED_AT_PER_TURN = 25

Outcomes = dict[Key, ApiError | None]
"""None: it is done, or has begun."""


class Reassignments:
    """Those of one term of office. Its coroutines are events of the controller, or parts of one."""

    def __init__(
        self,
        context: Context,
        nodes: AdminNodes,
        channels: Channels,
        deletions: Deletions,
        pause: Callable[[], Future[None]],
    ) -> None:
        self._pause = pause  # until the next turn of the loop
        self._context = context
        self._nodes = nodes
        self._channels = channels
        self._deletions = deletions
        self._epoch = nodes.store.epoch
        self._noted: Targets = {}  # what stands in /admin/reassign_partitions

    async def alter(self, wanted: Mapping[Key, Sequence[int] | None]) -> Outcomes:
        """Begin, replace, or (None) cancel. The latest word holds: what the node says of these partitions is void."""
        outcomes = await self._begin(wanted)
        await self._strike(key for key, refusal in outcomes.items() if refusal is None)
        return outcomes

    async def ongoing(self) -> list[Partition]:
        """The partitions that are on their way."""
        return await chosen(self._context.partitions(), lambda each: each.assignment.is_moving, self._pause)

    async def advance(self, partitions: Iterable[Partition]) -> None:
        """Finish those of which the whole target is in sync."""
        steps = [step for partition in partitions if (step := self._last_step(partition)) is not None]
        await self._take(steps)
        await self._strike((step.partition.topic, step.partition.index) for step in steps)

    async def follow_node(self) -> None:
        """Begin what /admin/reassign_partitions asks for, as far as it has not begun."""
        noted = await self._nodes.reassignment()
        if not noted:
            return
        outcomes = await self._begin({key: target for key, target in noted.items() if not self._goes_to(key, target)})
        self._noted = {key: target for key, target in noted.items() if not outcomes.get(key) and self._is_moving(key)}
        if self._noted != noted:
            await self._nodes.note_reassignment(self._noted)

    async def forget(self, topic: str) -> None:
        """A topic has gone."""
        await self._strike([key for key in self._noted if key[0] == topic])

    # --- steps --------------------------------------------------------------------------------------------------------

    async def _begin(self, wanted: Mapping[Key, Sequence[int] | None]) -> Outcomes:
        outcomes: Outcomes = dict.fromkeys(wanted)
        steps = []
        for place, (key, target) in enumerate(wanted.items(), 1):
            try:
                steps.append(self._first_step(key, target))
            except ApiError as refusal:
                outcomes[key] = refusal.kept()
            if place % _LOOKED_AT_PER_TURN == 0:
                await self._pause()
        await self._take(steps)
        await self.advance([step.partition for step in steps])
        return outcomes

    def _first_step(self, key: Key, target: Sequence[int] | None) -> Step:
        """Raises ApiError."""
        partition = self._standing(key)
        if target is None:
            if partition is None or not partition.assignment.is_moving:
                raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no reassignment of the partition is in progress")
            target = partition.assignment.origin
        if partition is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the partition does not exist")
        _check_target(target)
        assignment = partition.assignment.toward(target)
        if any(broker not in self._context.brokers for broker in assignment.adding):
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a replica is assigned to a broker that is not alive")
        if partition.state is None:
            return Step(partition, assignment, None)
        state = restricted(partition.state, assignment.replicas, self._context.alive(partition), self._epoch)
        if state is None:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "no replica that would be left can lead: none is alive and in sync",
            )
        return Step(partition, assignment, state)

    def _last_step(self, partition: Partition) -> Step | None:
        assignment = partition.assignment
        if not assignment.is_moving or partition.state is None or not self._is_standing(partition):
            return None
        state = finished(partition.state, assignment, self._context.alive(partition), self._epoch)
        return None if state is None else Step(partition, Assignment(assignment.target), state)

    async def _take(self, steps: Sequence[Step]) -> None:
        """Write steps, remember them, tell the brokers."""
        by_topic: dict[str, list[Step]] = {}
        for step in steps:
            by_topic.setdefault(step.partition.topic, []).append(step)
        for topic, all_of_it in by_topic.items():
            for first in range(0, len(all_of_it), _STEPS_PER_TRANSACTION):
                some = all_of_it[first : first + _STEPS_PER_TRANSACTION]
                written = await self._nodes.write_steps(topic, some)
                for step, state in zip(some, written, strict=True):
                    self._taken(step._replace(state=state))

    def _taken(self, step: Step) -> None:
        partition = step.partition
        gone = [replica for replica in partition.replicas if replica not in step.assignment.replicas]
        self._context.reassign(partition, step.assignment)
        if step.state is not None:
            partition.take(step.state)
        self._channels.leadership(partition)
        for broker_id in gone:
            self._channels.remove(broker_id, partition)
        self._channels.metadata_of(partition)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _standing(self, key: Key) -> Partition | None:
        """A partition that exists and is not being deleted."""
        return None if key[0] in self._deletions else self._context.partition(*key)

    def _is_standing(self, partition: Partition) -> bool:
        return self._standing((partition.topic, partition.index)) is partition

    def _is_moving(self, key: Key) -> bool:
        partition = self._standing(key)
        return partition is not None and partition.assignment.is_moving

    def _goes_to(self, key: Key, target: tuple[int, ...]) -> bool:
        """Whether it is on its way there, or has got there."""
        partition = self._standing(key)
        return partition is not None and partition.assignment.target == target

    async def _strike(self, keys: Iterable[Key]) -> None:
        """The node need not say this any more."""
        struck = {key: None for key in keys if self._noted.pop(key, None) is not None}
        if struck:
            await self._nodes.note_reassignment(self._noted)


def _check_target(target: Sequence[int]) -> None:
    if not target:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition needs a replica")
    if len(set(target)) != len(target):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition names a broker twice")
    if any(broker < 0 for broker in target):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a broker's id is not negative")
