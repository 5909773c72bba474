"""One term of office of a controller, from its election to its end (SPEC RP6-RP8).

Everything it does is an event of one queue, so no two decisions overlap. What it needs to know comes from watches
(brokers, topics, deletions), from requests (creation, deletion, AlterPartition, controlled shutdown) and from a clock
(preferred leaders). The term ends when the session is lost, when a write meets a newer epoch, or when anything
unexpected happens: the next controller loads everything afresh, and that is the only kind of recovery there is.

At the start, in this order: load brokers, topics and states; open a channel to every broker; choose leaders where they
are missing; send leadership to all live brokers; take up unfinished deletions; then watch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dataplane.cluster.paths import (
    ADMIN,
    BROKER_IDS,
    DELETE_TOPICS,
    LOG_DIR_EVENTS,
    NO_LEADER,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
)
from dataplane.cluster.watching import ChildrenWatch, OthersChildren
from dataplane.controller.alter_partition_queue import AlterPartitionQueue
from dataplane.controller.brokers import Brokers
from dataplane.controller.channel import Call, Channels, Key
from dataplane.controller.context import Context, Partition
from dataplane.controller.decisions.creation import (
    MorePartitions,
    NewTopic,
    TopicOutcome,
)
from dataplane.controller.deletion import Deletions
from dataplane.controller.events import EventQueue, TermEndedError
from dataplane.controller.leaders import Leaders
from dataplane.controller.operators.admin_nodes import AdminNodes
from dataplane.controller.operators.reassignments import Outcomes, Reassignments
from dataplane.controller.operators.requested_elections import ElectionType, RequestedElections
from dataplane.controller.removal import Removal
from dataplane.controller.store import KEPT_CONFIG_CHANGES, DeposedError, Store
from dataplane.controller.topics import Topics
from dataplane.doors import Doors, Timer
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import control
from dataplane.tasks import Future, Task, failed, resolved, sleep
from dataplane.throttle.mutations import Toll

logger = logging.getLogger(__name__)
_RETRY_REMOVAL_S = 1.0
_TRIM_S = 60.0
_NEW_PER_TRIM = 250
_DELETED_TOGETHER = 100
_ADDED_PER_TURN = 100
"""Topics, of few partitions as a rule: half a millisecond."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings that the controller follows."""

    partitions: int = 1
    replication_factor: int = 3
    unclean_election: bool = False
    rebalance_interval_s: float = 5.0
    min_insync_replicas: Callable[[str], int] = lambda _topic: 1
    """Of a topic. May be a moment old: leaders commit nothing while others are eligible, whatever they believe it to be."""


class Term:
    """The controller while it is in office. `ended` is resolved with the reason when it is not."""

    def __init__(self, doors: Doors, broker_id: int, store: Store, call: Call, rules: Rules) -> None:
        self.epoch = store.epoch
        self.broker_id = broker_id
        self.context = Context()
        self.ended: Future[str] = Future()
        self._doors = doors
        self._store = store
        self._rules = rules
        self._channels = Channels(doors.loop, call, broker_id, store.epoch, self.context.brokers, self)
        self._leaders = Leaders(self.context, store, self._channels, self._leaders_changed, self.pause)
        self._leaders.unclean_by_default = rules.unclean_election
        self.context.min_insync_replicas = rules.min_insync_replicas
        self._deletions = Deletions(self.context, self._channels)
        self._topics = Topics(self.context, store, self._leaders, self._deletions, doors.random, self.pause)
        nodes = AdminNodes(store)
        self._reassignments = Reassignments(self.context, nodes, self._channels, self._deletions, self.pause)
        self._brokers = Brokers(self.context, store, self._channels, self._leaders, self._deletions)
        self._removal = Removal(self.context, store, self._deletions, self._reassignments, self.pause)
        self._elections = RequestedElections(self.context, self._leaders, self._deletions, nodes, self.pause)
        self._events = EventQueue(doors.loop, self._event_failed)
        self._timers: dict[str, Timer] = {}
        self._created = 0  # topics, since notifications were trimmed
        self._trimmed: Future[None] = resolved(None)  # because there were many
        self._proposals = AlterPartitionQueue(self.context, self._deletions, store.epoch)
        self._watches: list[ChildrenWatch | OthersChildren] = [
            self._watch(BROKER_IDS, lambda _: self._brokers_changed()),
            self._follow_others(TOPICS, self._topics_changed),
            self._follow_others(DELETE_TOPICS, self._deletions_changed),
            self._watch(LOG_DIR_EVENTS, self._log_dirs_changed),
            self._watch(ADMIN, self._admin_changed),
        ]

    def pause(self) -> Future[None]:
        """Until the next turn of the loop."""
        return sleep(self._doors.loop, 0.0)

    def begin(self) -> None:
        """Take office."""
        self._events.submit(self._start)

    def end(self, reason: str) -> None:
        """Leave office at once: nothing is sent or written any more. Not to be called from within an event."""
        if self.ended.done:
            return
        for watch in self._watches:
            watch.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._channels.close_all()
        error = TermEndedError(reason)
        self._events.close(error)
        self._proposals.fail(error)
        self.ended.resolve(reason)

    # --- requests -----------------------------------------------------------------------------------------------------

    def create_topics(
        self, wanted: Sequence[NewTopic], toll: Toll, *, validate_only: bool
    ) -> Future[list[TopicOutcome]]:
        """Written, leaders chosen, brokers about to be told. An event for each: a broker's death does not wait for all."""
        return Task(self._create_topics(wanted, toll, validate_only=validate_only), "create topics")

    def create_partitions(
        self, wanted: Sequence[MorePartitions], toll: Toll, *, validate_only: bool
    ) -> Future[list[TopicOutcome]]:
        """The same for topics that grow."""
        return Task(self._create_partitions(wanted, toll, validate_only=validate_only), "create partitions")

    def delete_topics(self, names: Sequence[str], toll: Toll) -> Future[list[TopicOutcome]]:
        """Noted, and begun. An event for each `_DELETED_TOGETHER`."""
        return Task(self._delete_topics(names, toll), "delete topics")

    def settled(self) -> Future[Any]:
        """Resolved when all live brokers know what was decided before now."""
        return self._channels.settled()

    def deleted(self, topic: str) -> Future[Any]:
        """Resolved when a topic that is being deleted has gone, or waits for a broker that is away."""
        if topic not in self._deletions or self._deletions.blocked(topic):
            return self.settled()
        return self._deletions.finished(topic)

    def alter_partition(
        self, request: control.AlterPartitionRequest, version: int
    ) -> Future[control.AlterPartitionResponse]:
        """Proposals that come while one is being written are written together next."""
        if self.ended.done:
            return failed(TermEndedError(self.ended.result()))
        first, future = self._proposals.add(request, version)
        if first:
            # The leader learns the new state from its answer, so nobody but clients has to be told.
            self._events.submit(
                lambda: self._proposals.decide(lambda changes: self._leaders.change(changes, tell=False))
            )
        return future

    def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> Future[list[Partition] | ErrorCode]:
        """The partitions that the broker still leads, because no other replica is in sync."""
        return self._events.submit(lambda: self._brokers.controlled_shutdown(broker_id, broker_epoch))

    def reassign(self, wanted: Mapping[Key, Sequence[int] | None]) -> Future[Outcomes]:
        """Replicas shall move, or (None) go back to where they were."""
        return self._events.submit(lambda: self._reassignments.alter(wanted))

    def reassigned(self) -> Future[list[Partition]]:
        """Partitions whose replicas are on their way."""
        return self._events.submit(self._reassignments.ongoing)

    def elect(self, keys: Sequence[Key] | None, kind: ElectionType) -> Future[Outcomes]:
        """Leaders that somebody wants; None: of all partitions."""
        return self._events.submit(lambda: self._elections.hold(keys, kind))

    def take_rules(self, rules: Rules) -> None:
        """They have changed while we are in office."""
        self._rules = rules
        self._leaders.unclean_by_default = rules.unclean_election
        self.context.min_insync_replicas = rules.min_insync_replicas
        self._events.submit(lambda: self._elect_where_wanting(self.context.partitions()))

    def notifications_seen(self, count: int) -> None:
        """Where many have come since they were trimmed, trim them now: every broker reads all names whenever some come."""
        if count >= KEPT_CONFIG_CHANGES + _NEW_PER_TRIM and self._trimmed.done:
            self._trimmed = self._events.submit(self._store.trim_config_changes)

    def topic_config_changed(self, name: str) -> None:
        """Perhaps it may be led by a replica that was not in sync, or fewer in sync are enough now."""
        topic = self.context.topics.get(name)
        if topic is not None:
            self._events.submit(lambda: self._elect_where_wanting(topic.partitions.values()))

    # --- what channels tell -------------------------------------------------------------------------------------------

    def deposed(self) -> None:
        """A broker has seen a newer controller."""
        self._doors.loop.call_soon(lambda: self.end("a broker has seen a newer controller"))

    def replicas_failed(self, broker_id: int, partitions: list[Key]) -> None:
        """A broker cannot host these: somebody else must lead them."""
        self._events.submit(lambda: self._brokers.replicas_failed(broker_id, partitions))

    def replicas_stopped(self, broker_id: int, removed: list[Key], refused: list[Key]) -> None:
        """An answer to StopReplica."""
        self._events.submit(lambda: self._replicas_stopped(broker_id, removed, refused))

    # --- events: brokers ----------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        self.context.brokers.update(await self._store.brokers())
        topics = await self._store.topics(await self._store.topic_names())
        doomed = dict.fromkeys(await self._store.doomed())
        for place, topic in enumerate(topics, 1):
            self.context.add_topic(topic)
            if place % _ADDED_PER_TURN == 0:
                await self.pause()
        standing = [topic for topic in topics if topic.name not in doomed]
        partitions = [partition for topic in standing for partition in topic.partitions.values()]
        await self._channels.open(self.context.brokers, partitions)
        await self._leaders.depose_who_restarted(partitions)
        await self._leaders.elect(partitions, tell=False)
        await self._leaders.start_all(standing)
        for broker_id in self.context.brokers:
            hosted = [partition for partition in self.context.on_broker(broker_id) if partition.topic not in doomed]
            await self._channels.hosted(broker_id, hosted, is_all=True)
        await self._removal.begin(doomed)
        await self._reassignments.advance(await self._reassignments.ongoing())
        await self._store.trim_config_changes()
        for watch in self._watches:
            watch.start()
        self._schedule("rebalance", self._rules.rebalance_interval_s, self._rebalance_due)
        self._schedule("trim", _TRIM_S, self._trim_due)
        logger.info("controller of epoch %d: %d brokers, %d topics", self.epoch, len(self.context.brokers), len(topics))

    def _brokers_changed(self) -> None:
        self._events.submit(self._brokers.update)

    def _log_dirs_changed(self, names: list[str]) -> None:
        if names:
            self._events.submit(lambda: self._brokers.ask_about_replicas(names))

    # --- events: topics -----------------------------------------------------------------------------------------------

    def _topics_changed(self, names: list[str]) -> None:
        if any(name not in self.context.topics for name in names) or len(names) != len(self.context.topics):
            self._events.submit(self._update_topics)

    async def _update_topics(self) -> None:
        """Topics that appeared; and those that somebody removed by hand."""
        names = dict.fromkeys(await self._store.topic_names())
        for gone in [name for name in self.context.topics if name not in names and name not in self._deletions]:
            topic = self.context.topics[gone]
            self.context.remove_topic(gone)  # first: one of the name that appears while others are told is another
            await self._channels.forget(topic.partitions.values())
        for topic in await self._store.topics([name for name in names if name not in self.context.topics]):
            await self._topics.start(topic)

    async def _create_topics(
        self, wanted: Sequence[NewTopic], toll: Toll, *, validate_only: bool
    ) -> list[TopicOutcome]:
        defaults = (self._rules.partitions, self._rules.replication_factor)
        outcomes = []
        for topic in wanted:
            create = partial(self._topics.create, topic, defaults, toll, validate_only=validate_only)
            outcomes.append(await self._events.submit(create))
            self._created += not validate_only
            if self._created >= _NEW_PER_TRIM:  # each has made a notification
                self._created = 0
                self._events.submit(self._store.trim_config_changes)
        return outcomes

    async def _create_partitions(
        self, wanted: Sequence[MorePartitions], toll: Toll, *, validate_only: bool
    ) -> list[TopicOutcome]:
        return [
            await self._events.submit(partial(self._topics.grow, more, toll, validate_only=validate_only))
            for more in wanted
        ]

    async def _delete_topics(self, names: Sequence[str], toll: Toll) -> list[TopicOutcome]:
        outcomes: list[TopicOutcome] = []
        for first in range(0, len(names), _DELETED_TOGETHER):
            some = names[first : first + _DELETED_TOGETHER]
            outcomes += await self._events.submit(partial(self._removal.delete, some, toll))
        return outcomes

    def _deletions_changed(self, names: list[str]) -> None:
        if any(name not in self._deletions for name in names):
            self._events.submit(self._removal.take_up_notes)

    async def _replicas_stopped(self, broker_id: int, removed: list[Key], refused: list[Key]) -> None:
        await self._removal.stopped(broker_id, removed, refused)
        if refused:
            self._schedule("removal", _RETRY_REMOVAL_S, self._removal_due)

    def _removal_due(self) -> None:
        self._events.submit(self._deletions.broker_back)

    # --- events: leaders and replicas ---------------------------------------------------------------------------------

    def _leaders_changed(self, partitions: list[Partition]) -> None:
        moving = [partition for partition in partitions if partition.assignment.is_moving]
        if moving:
            self._events.submit(lambda: self._reassignments.advance(moving))

    async def _elect_where_wanting(self, partitions: Iterable[Partition]) -> None:
        """Where there is no leader; and where too few are in sync, or were before `min.insync.replicas` was lowered."""
        await self._leaders.elect(
            p
            for p in self._deletions.standing(partitions)
            if p.state is not None and (p.state.leader == NO_LEADER or p.state.eligible)
        )

    def _admin_changed(self, names: list[str]) -> None:
        for path, follow in (
            (REASSIGN_PARTITIONS, self._reassignments.follow_node),
            (PREFERRED_ELECTION, self._elections.follow_node),
        ):
            if path.removeprefix(f"{ADMIN}/") in names:
                self._events.submit(follow)

    # --- events: by the clock -----------------------------------------------------------------------------------------

    def _rebalance_due(self) -> None:
        if self._events.idle:
            self._events.submit(self._rebalance)
        self._schedule("rebalance", self._rules.rebalance_interval_s, self._rebalance_due)

    async def _rebalance(self) -> None:
        await self._leaders.rebalance(p for p in self.context.partitions() if p.topic not in self._deletions)

    def _trim_due(self) -> None:
        self._events.submit(self._store.trim_config_changes)
        self._schedule("trim", _TRIM_S, self._trim_due)

    # --- plumbing -----------------------------------------------------------------------------------------------------

    def _watch(self, path: str, changed: Callable[[list[str]], None]) -> ChildrenWatch:
        return ChildrenWatch(self._doors.loop, self._doors.zookeeper, path, changed)

    def _follow_others(self, path: str, changed: Callable[[list[str]], None]) -> OthersChildren:
        own_changes = self._store.own_changes
        return OthersChildren(self._doors.loop, self._doors.zookeeper, path, lambda: own_changes[path], changed)

    def _schedule(self, name: str, delay_s: float, callback: Callable[[], None]) -> None:
        """One timer of each name; none after the end."""
        if name in self._timers:
            self._timers[name].cancel()
        if not self.ended.done:
            self._timers[name] = self._doors.loop.call_later(delay_s, callback)

    def _event_failed(self, error: Exception) -> None:
        if isinstance(error, DeposedError):
            self.end("a newer controller was elected")
        else:
            logger.warning("the controller's term ends: %s: %s", type(error).__name__, error, exc_info=error)
            self.end(f"{type(error).__name__}: {error}")
