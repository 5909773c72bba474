"""Topics that come into being and grow: what `creation` allows is written, and its partitions get their first leaders."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from dataplane.controller.context import Context, Holdings, Topic
from dataplane.controller.decisions.creation import (
    MorePartitions,
    NewTopic,
    TopicOutcome,
    assign,
    grow,
)
from dataplane.controller.deletion import Deletions
from dataplane.controller.leaders import Leaders
from dataplane.controller.store import Store, new_partitions
from dataplane.doors import NodeExistsError
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tasks import Future, in_steps
from dataplane.throttle.mutations import Toll
from quota.contracts.namespace import split_physical


class Topics:
    """Those of one term of office. Its coroutines are events of the controller, or parts of one."""

    def __init__(
        self,
        context: Context,
        store: Store,
        leaders: Leaders,
        deletions: Deletions,
        random: Random,
        pause: Callable[[], Future[None]],
    ) -> None:
        self._context = context
        self._store = store
        self._leaders = leaders
        self._deletions = deletions
        self._random = random
        self._pause = pause  # until the next turn of the loop

    async def start(self, topic: Topic) -> None:
        """A topic has appeared."""
        self._context.add_topic(topic)
        await self._leaders.elect(topic.partitions.values())  # a topic brought back by hand may have states
        await self._leaders.start(topic)

    async def create(
        self, wanted: NewTopic, defaults: tuple[int, int], toll: Toll, *, validate_only: bool
    ) -> TopicOutcome:
        """Write it, and start it. `defaults`: partitions and replicas where it does not say."""
        try:
            if wanted.name in self._context.topics:
                raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, self._exists_sentence(wanted.name))
            held = self._held_by_owner(wanted.name)
            asked = assign(wanted, self._context.racks, held, defaults, self._random)
            assignment = await in_steps(asked, self._pause)
            if not validate_only:
                toll.pay(len(assignment.partitions))
                await self.start(await self._store.create_topic(wanted.name, assignment, dict(wanted.config)))
        except NodeExistsError:
            return TopicOutcome(wanted.name, ErrorCode.TOPIC_ALREADY_EXISTS, "the topic exists already")
        except ApiError as refusal:
            return TopicOutcome(wanted.name, refusal.code, refusal.message)
        return TopicOutcome(
            wanted.name,
            topic_id=assignment.topic_id,
            partitions=len(assignment.partitions),
            replication_factor=len(assignment.partitions[0]),
        )

    async def grow(self, wanted: MorePartitions, toll: Toll, *, validate_only: bool) -> TopicOutcome:
        """Once the assignment is written it is done, by this controller or the next: no partition is left without a start."""
        try:
            topic = self._that_may_grow(wanted.name)
            present = {index: partition.replicas for index, partition in topic.partitions.items()}
            asked = grow(wanted, present, self._context.racks, self._held_by_owner(wanted.name), self._random)
            added = await in_steps(asked, self._pause)
            if not validate_only:
                toll.pay(len(added))
                if not await self._store.grow_topic(wanted.name, added):
                    raise ApiError(ErrorCode.INVALID_REQUEST, "the topic was changed at the same time")
        except ApiError as refusal:
            return TopicOutcome(wanted.name, refusal.code, refusal.message)
        if not validate_only:
            self._context.add_partitions(topic, new_partitions(topic, added))
            await self._leaders.start(topic)
        return TopicOutcome(wanted.name, topic_id=topic.topic_id, partitions=wanted.count)

    def _that_may_grow(self, name: str) -> Topic:
        """Raises ApiError."""
        topic = self._context.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist")
        if name in self._deletions:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic is being deleted")
        if any(partition.assignment.is_moving for partition in topic.partitions.values()):
            raise ApiError(ErrorCode.REASSIGNMENT_IN_PROGRESS, "replicas of the topic are being moved: try again later")
        return topic

    def _held_by_owner(self, name: str) -> Holdings:
        """What the instance that a topic belongs to has already."""
        key = split_physical(name)
        return self._context.holdings(key[0]) if key is not None else Holdings()

    def _exists_sentence(self, name: str) -> str:
        return "the topic is being deleted" if name in self._deletions else "the topic exists already"
