"""The group coordinator of a broker: it owns the groups whose partition of ``__consumer_offsets`` the broker leads.

    elected   -> the partition's log is replayed, in slices (`loading`); meanwhile COORDINATOR_LOAD_IN_PROGRESS
    failed    -> the log cannot be read: tried again and again; meanwhile COORDINATOR_NOT_AVAILABLE, also of FindCoordinator
    leading   -> each request is an event of its group's state machine, whose effects are carried out here
    resigned  -> every request that waits is answered NOT_COORDINATOR, and everything is forgotten

Events are handled one after another: one that comes up while another is being handled waits in a queue. Nothing is
answered before what it depends on is committed by acks=all.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.groups import commits, removal
from dataplane.groups.classic.events import (
    CancelTimer,
    Effect,
    Event,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    Reply,
    SessionExpired,
    SetTimer,
    Store,
    Sync,
    SyncResult,
)
from dataplane.groups.classic.rebalance import session_timer
from dataplane.groups.classic.state import handle
from dataplane.groups.log import OffsetsLog
from dataplane.groups.records import KeyValue, write_group
from dataplane.groups.shard import Entry, Forgetting, Shard, partition_of
from dataplane.groups.sweeping import Sweeper
from dataplane.groups.timers import Deadlines
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.primitives import DecodeError
from dataplane.slices import Slices
from dataplane.tasks import CancelledError, Future, resolved

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from dataplane.doors import Background, Loop
    from dataplane.groups.classic.model import Group
    from dataplane.groups.settings import GroupSettings
    from dataplane.protocol.messages.group_records import OffsetCommitValue

_PREFIX_LENGTH = 255
LOAD_RETRY_S = 5.0
"""After a partition could not be loaded. Its log may be read again, or be led by a broker that can."""

_log = logging.getLogger(__name__)

_STORE_ERRORS = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,  # the members join again, and it is tried again
}
"""What members are told when the log does not take a group's record; UNKNOWN_SERVER_ERROR where nothing stands here."""


class GroupCoordinator:
    """All groups of this broker."""

    def __init__(
        self,
        loop: Loop,
        log: OffsetsLog,
        random: Random,
        settings: GroupSettings,
        partition_count: Callable[[], int],
        background: Background,
    ) -> None:
        self.settings = settings
        self.unreadable_batches = 0  # that were passed over, since this broker's start
        self._loop = loop
        self._records = log
        self._random = random
        self._partition_count = partition_count
        self._shards: dict[int, Shard] = {}
        self._tokens = count()
        self._events: deque[tuple[Shard, Entry, Event]] = deque()
        self._handling = False
        self._slices = Slices(loop, background)  # its own: nobody waits for groups behind what tenants have converted
        self._paced = removal.Paced(self.append, loop.call_soon)
        self._sweeper = Sweeper(loop, self._slices, settings, self._live_shards, self._paced)

    # --- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin the periodic removal of what has expired."""
        self._sweeper.start()

    def stop(self) -> None:
        """Give every partition up: who waits is told to look for another coordinator."""
        self._sweeper.stop()
        for index in list(self._shards):
            self._resign(index)

    def on_leadership(self, topic: str, index: int, leader_epoch: int | None) -> None:
        """This broker leads a partition in an epoch, or (None) does not lead it any more."""
        if topic != OFFSETS_TOPIC:
            return
        shard = self._shards.get(index)
        if leader_epoch is None:
            self._resign(index)
        elif shard is not None and leader_epoch - shard.leader_epoch in (0, 1):
            shard.leader_epoch = leader_epoch  # every other leader would have had an epoch of its own
        else:
            self._resign(index)
            self._elect(index, leader_epoch)

    def _resign(self, index: int) -> None:
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.close(ErrorCode.NOT_COORDINATOR)

    def _elect(self, index: int, leader_epoch: int) -> None:
        shard = Shard(index, leader_epoch, self._new_timers)
        self._shards[index] = shard
        self._loop.call_soon(lambda: self._load(shard))

    def _new_timers(self) -> Deadlines:
        return Deadlines(self._loop, lambda event: self._dispatch(*event))

    def _load(self, shard: Shard) -> None:
        if not shard.closed:
            steps = self._records.read(shard.index, lambda key, value: self._load_record(shard, key, value))
            self._slices.run(OFFSETS_TOPIC, steps).then(partial(self._was_read, shard))

    def _was_read(self, shard: Shard, future: Future[list[str]]) -> None:
        if shard.closed:
            return
        if future.error is not None:
            _log.error(
                "partition %d of %s cannot be loaded: %s; none of its groups is served, trying again in %d s",
                *(shard.index, OFFSETS_TOPIC, future.error, LOAD_RETRY_S),
            )
            shard.load_again(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            self._loop.call_later(LOAD_RETRY_S, lambda: self._load(shard))
            return
        for sentence in future.result():
            self.unreadable_batches += 1
            _log.error("a batch of partition %d of %s is passed over: %s", shard.index, OFFSETS_TOPIC, sentence)
        self._loaded(shard)

    def _load_record(self, shard: Shard, key: bytes, value: bytes | None) -> None:
        if shard.closed:
            raise CancelledError
        try:
            shard.apply(key, value)
        except (DecodeError, ValueError) as error:  # one that a newer broker wrote must not take the others with it
            _log.warning("a record of partition %d of %s is skipped: %s", shard.index, OFFSETS_TOPIC, error)

    def _loaded(self, shard: Shard) -> None:
        shard.loading = False
        for group_id, entry in list(shard.entries.items()):
            for member in entry.group.members.values():
                event = SessionExpired(member.member_id)
                self._set_timer(
                    shard, entry, SetTimer(session_timer(member.member_id), member.session_timeout_ms, event)
                )
            shard.drop_blank(group_id)
        self._sweeper.loaded(shard)

    def _live_shards(self) -> list[Shard]:
        return [shard for _, shard in sorted(self._shards.items()) if not shard.loading]

    # --- finding groups -----------------------------------------------------------------------------------------------

    def shard_of(self, group_id: str) -> Shard | ErrorCode:
        """The loaded shard of a group, or why it cannot be served here."""
        shard = self._shards.get(partition_of(group_id, self._partition_count()))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard.problem if shard.loading else shard

    def has_failed(self, index: int) -> bool:
        """Whether this broker should serve the groups of a partition and cannot: then nobody need be sent here."""
        shard = self._shards.get(index)
        return shard is not None and shard.loading and shard.problem == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def find(self, group_id: str) -> Entry | ErrorCode | None:
        """A group as it is now; None where there is none."""
        shard = self.shard_of(group_id)
        return shard if isinstance(shard, ErrorCode) else shard.entries.get(group_id)

    def groups(self) -> tuple[list[Group], ErrorCode]:
        """Every group here; COORDINATOR_LOAD_IN_PROGRESS where some are still missing."""
        error = ErrorCode.NONE
        if any(shard.loading for shard in self._shards.values()):
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [entry.group for shard in self._live_shards() for entry in shard.entries.values()], error

    # --- membership ---------------------------------------------------------------------------------------------------

    def join(self, group_id: str, ask: Join) -> Future[JoinResult]:
        """JoinGroup. Answered when the rebalance is complete."""

        def refuse(error: ErrorCode) -> JoinResult:
            return JoinResult(error, ask.member_id)

        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(refuse(shard))
        low, high = self.settings.group_min_session_timeout_ms, self.settings.group_max_session_timeout_ms
        if not low <= ask.session_timeout_ms <= high:
            return resolved(refuse(ErrorCode.INVALID_SESSION_TIMEOUT))
        if ask.member_id and group_id not in shard.entries:
            return resolved(refuse(ErrorCode.UNKNOWN_MEMBER_ID))
        if self._is_one_too_many(shard, group_id):
            return resolved(refuse(ErrorCode.GROUP_MAX_SIZE_REACHED))
        new_member_id = "" if ask.member_id else self._new_member_id(ask.instance_id or ask.client_id)
        token = next(self._tokens)
        return self._ask(shard, group_id, token, replace(ask, token=token, new_member_id=new_member_id), refuse)

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix[:_PREFIX_LENGTH]}-{UUID(int=self._random.getrandbits(128), version=4)}"

    def _is_one_too_many(self, shard: Shard, group_id: str) -> bool:
        """Whether it would be a new group, of an instance that has as many as it may."""
        limit = self.settings.groups_per_instance
        return group_id not in shard.entries and shard.groups_of_owner(group_id) >= limit

    def sync(self, group_id: str, ask: Sync) -> Future[SyncResult]:
        """SyncGroup. Answered when the leader's assignment is committed."""
        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            # While loading, the rebalance that the member speaks of is lost: it has to join again.
            loading = shard == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return resolved(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS if loading else shard))
        if group_id not in shard.entries:
            return resolved(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        token = next(self._tokens)
        return self._ask(shard, group_id, token, replace(ask, token=token), SyncResult)

    def heartbeat(self, group_id: str, ask: Heartbeat) -> Future[HeartbeatResult]:
        """Heartbeat. While loading every member is believed to be alive: its session begins when loading is over."""
        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            loading = shard == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return resolved(HeartbeatResult(ErrorCode.NONE if loading else shard))
        if group_id not in shard.entries:
            return resolved(HeartbeatResult(ErrorCode.UNKNOWN_MEMBER_ID))
        token = next(self._tokens)
        return self._ask(shard, group_id, token, replace(ask, token=token), HeartbeatResult)

    def leave(self, group_id: str, ask: Leave) -> Future[LeaveResult]:
        """LeaveGroup."""
        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(LeaveResult(shard))
        if group_id not in shard.entries:
            unknown = tuple((member, instance, ErrorCode.UNKNOWN_MEMBER_ID) for member, instance in ask.members)
            return resolved(LeaveResult(ErrorCode.NONE, unknown))
        token = next(self._tokens)
        return self._ask(shard, group_id, token, replace(ask, token=token), LeaveResult)

    def _ask(
        self, shard: Shard, group_id: str, token: int, event: Event, refuse: Callable[[ErrorCode], Any]
    ) -> Future[Any]:
        future: Future[Any] = Future()
        shard.park(token, future, refuse)
        self._dispatch(shard, shard.open(group_id), event)
        return future

    # --- events and effects -------------------------------------------------------------------------------------------

    def _dispatch(self, shard: Shard, entry: Entry, event: Event) -> None:
        self._events.append((shard, entry, event))
        self._work()

    def _work(self) -> None:
        if self._handling:
            return
        self._handling = True
        try:
            while self._events:
                self._handle(*self._events.popleft())
        finally:
            self._handling = False
            if self._events:  # a bug in one group's event: the others' are handled all the same
                self._loop.call_soon(self._work)

    def _handle(self, shard: Shard, entry: Entry, event: Event) -> None:
        if shard.closed:
            return  # its requests are answered already
        entry.group, effects = handle(entry.group, event, self.settings, self._loop.clock.now_ms())
        for effect in effects:
            self._perform(shard, entry, effect)
        shard.drop_blank(entry.group.group_id)

    def _perform(self, shard: Shard, entry: Entry, effect: Effect) -> None:
        if isinstance(effect, Reply):
            shard.answer(effect.token, effect.result)
        elif isinstance(effect, SetTimer):
            self._set_timer(shard, entry, effect)
        elif isinstance(effect, CancelTimer):
            entry.timers.cancel(effect.name)
        else:
            self._store(shard, entry, effect)

    def _set_timer(self, shard: Shard, entry: Entry, timer: SetTimer) -> None:
        entry.timers.set(timer.name, timer.delay_ms / 1000, (shard, entry, timer.event))

    def _store(self, shard: Shard, entry: Entry, effect: Store) -> None:
        def done(error: ErrorCode) -> None:
            told = _STORE_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
            if told != ErrorCode.NONE:
                _log.info("the record of a group was not stored: %s", error.name)
            self._dispatch(shard, entry, replace(effect.then, error=told))

        self.append(shard, [write_group(entry.group.group_id, effect.value)], done)

    def append(self, shard: Shard, records: list[KeyValue], done: Callable[[ErrorCode], None]) -> None:
        """Append to a shard's partition; `done` is not called any more once the shard is closed."""
        if not shard.closed:
            self._records.append(shard.index, records, lambda error: None if shard.closed else done(error))

    # --- offsets ------------------------------------------------------------------------------------------------------

    def commit(self, group_id: str, ask: commits.Commit) -> Future[dict[tuple[str, int], ErrorCode]]:
        """OffsetCommit: an error for each topic and partition, once committed by all in-sync replicas."""

        def refuse(error: ErrorCode) -> dict[tuple[str, int], ErrorCode]:
            return dict.fromkeys(ask.offsets, error)

        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(refuse(shard))
        entry = shard.entries.get(group_id)
        if entry is None and ask.generation >= 0:
            return resolved(refuse(ErrorCode.ILLEGAL_GENERATION))
        if self._is_one_too_many(shard, group_id):
            return resolved(refuse(ErrorCode.GROUP_MAX_SIZE_REACHED))
        entry = entry or shard.open(group_id)
        plan = commits.plan(entry.group, ask, self.settings, self._loop.clock.now_ms())
        if plan.heard_of is not None:
            event = SessionExpired(plan.heard_of.member_id)
            name = session_timer(plan.heard_of.member_id)
            self._set_timer(shard, entry, SetTimer(name, plan.heard_of.session_timeout_ms, event))
        if not plan.records:
            shard.drop_blank(group_id)
            return resolved(plan.errors)
        return self._commit(shard, entry, plan, refuse)

    def _commit(
        self, shard: Shard, entry: Entry, plan: commits.Plan, refuse: Callable[[ErrorCode], Any]
    ) -> Future[dict[tuple[str, int], ErrorCode]]:
        token, future = next(self._tokens), Future[dict[tuple[str, int], ErrorCode]]()
        shard.park(token, future, refuse)
        entry.offsets.begin(plan.keys)
        shard.spare(entry.group.group_id, plan.keys)

        def done(error: ErrorCode) -> None:
            entry.offsets.finish(plan.keys)
            if error == ErrorCode.NONE:
                shard.apply_all(plan.records)
            shard.drop_blank(entry.group.group_id)
            shard.answer(token, {**plan.errors, **dict.fromkeys(plan.keys, commits.told(error))})

        self.append(shard, plan.records, done)
        return future

    def committed(self, group_id: str) -> dict[tuple[str, int], OffsetCommitValue] | ErrorCode:
        """What a group has committed. A group that does not exist has committed nothing. Not to be changed."""
        entry = self.find(group_id)
        if isinstance(entry, ErrorCode):
            return entry
        return entry.offsets.committed if entry is not None else {}

    def unstable(self, group_id: str) -> frozenset[tuple[str, int]]:
        """Topics and partitions of which a commit is on its way."""
        entry = self.find(group_id)
        return frozenset(entry.offsets.pending) if isinstance(entry, Entry) else frozenset()

    # --- removal ------------------------------------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> Future[ErrorCode]:
        """DeleteGroups, one of them: the group and all its offsets, if it has no members."""
        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(shard)
        token, future = next(self._tokens), Future[ErrorCode]()
        shard.park(token, future, lambda error: error)
        removal.delete_group(shard, group_id, self._paced, lambda error: shard.answer(token, error))
        return future

    def delete_offsets(
        self, group_id: str, keys: list[tuple[str, int]]
    ) -> Future[tuple[ErrorCode, dict[tuple[str, int], ErrorCode]]]:
        """OffsetDelete: an error for all, or one for each."""
        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved((shard, {}))
        token, future = next(self._tokens), Future[tuple[ErrorCode, dict[tuple[str, int], ErrorCode]]]()
        shard.park(token, future, lambda error: (error, {}))
        removal.delete_offsets(shard, group_id, keys, self._paced, lambda *result: shard.answer(token, result))
        return future

    def partitions_deleted(self, deleted: list[tuple[str, int]]) -> None:
        """Topics were deleted: nobody may find their offsets when a topic of the same name is created."""
        for _, shard in sorted(self._shards.items()):
            self._sweeper.forget(shard, Forgetting(deleted))
