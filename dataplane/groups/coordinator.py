"""The group coordinator of a broker: requests about groups become events of their state machines, commits, removals.

It serves the groups whose partition of ``__consumer_offsets`` the broker leads. Elections, loading, timers and the log are
the runtime's (`dataplane.coordination.runtime`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dataplane.coordination.log import NOT_APPENDED
from dataplane.coordination.placement import partition_of
from dataplane.coordination.runtime import Runtime
from dataplane.groups import commits, removal
from dataplane.groups.classic.events import (
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    Request,
    Sync,
    SyncResult,
)
from dataplane.groups.classic.rebalance import session_of
from dataplane.groups.consumer import epochs
from dataplane.groups.heartbeats import ConsumerHeartbeats
from dataplane.groups.machine import GroupMachine
from dataplane.groups.pending import size_of
from dataplane.groups.shard import Entry, Forgetting, Groups, GroupShard, owner_of
from dataplane.groups.sweeping import Sweeper
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Future, resolved

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from dataplane.coordination.effects import Producer
    from dataplane.coordination.log import StateLog
    from dataplane.coordination.shard import Refuse
    from dataplane.doors import Background, Loop
    from dataplane.groups.settings import GroupSettings
    from dataplane.groups.topics import Topics
    from dataplane.protocol.messages.group_records import OffsetCommitValue

Errors = dict[tuple[str, int], ErrorCode]
"""Of each topic and partition."""
_PREFIX_LENGTH = 255
_TRANSACTIONS = "offsets of transactions"


class GroupCoordinator:
    """All groups of this broker."""

    def __init__(
        self,
        loop: Loop,
        log: StateLog,
        random: Random,
        settings: GroupSettings,
        partition_count: Callable[[], int],
        background: Background,
        topics: Topics,
    ) -> None:
        self.settings = settings
        self._loop = loop
        self._random = random
        self._partition_count = partition_count
        self._runtime: Runtime[Groups, Entry] = Runtime(
            loop, background, log, GroupMachine(settings, topics), lambda groups: groups
        )
        self._paced = removal.Paced(self._runtime.append, loop.call_soon)
        self._sweeper = Sweeper(loop, self._runtime.slices, settings, self._runtime.serving, self._paced)
        self._runtime.on_loaded(self._sweeper.loaded)
        self.refusals: Counter[str] = Counter()  # of commits in transactions, by instance key
        self.consumers = ConsumerHeartbeats(loop, self._runtime, topics, self._shard_of, self._is_one_too_many)

    # --- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin the periodic removal of what has expired."""
        self._sweeper.start()

    def stop(self) -> None:
        """Give up every partition: members that wait are told to look for another coordinator."""
        self._sweeper.stop()
        self._runtime.stop()

    def on_leadership(self, topic: str, index: int, leader_epoch: int | None) -> None:
        """This broker leads a partition in an epoch, or (None) does not lead it any more."""
        self._runtime.on_leadership(topic, index, leader_epoch)

    def has_failed(self, index: int) -> bool:
        """Whether this broker should serve the groups of a partition and cannot: then nobody need be sent here."""
        return self._runtime.has_failed(index)

    # --- finding groups -----------------------------------------------------------------------------------------------

    def partition_of(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that keeps a group."""
        return partition_of(group_id, self._partition_count())

    def _shard_of(self, group_id: str) -> GroupShard | ErrorCode:
        """The loaded shard of a group, or why it cannot be served here."""
        return self._runtime.shard(self.partition_of(group_id))

    def find(self, group_id: str) -> Entry | ErrorCode | None:
        """A group as it is now; None where there is none."""
        shard = self._shard_of(group_id)
        return shard if isinstance(shard, ErrorCode) else shard.contents.entries.get(group_id)

    def groups(self) -> tuple[list[Entry], ErrorCode]:
        """Every group here; COORDINATOR_LOAD_IN_PROGRESS where some are still missing."""
        error = ErrorCode.NONE
        if any(shard.loading for shard in self._runtime.shards()):
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [entry for shard in self._runtime.serving() for entry in shard.contents.all_entries()], error

    # --- membership ---------------------------------------------------------------------------------------------------

    def join(self, group_id: str, ask: Join) -> Future[JoinResult]:
        """JoinGroup. Answered when the rebalance is complete."""

        def refuse(error: ErrorCode) -> JoinResult:
            return JoinResult(error, ask.member_id)

        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(refuse(shard))
        low, high = self.settings.group_min_session_timeout_ms, self.settings.group_max_session_timeout_ms
        if not low <= ask.session_timeout_ms <= high:
            return resolved(refuse(ErrorCode.INVALID_SESSION_TIMEOUT))
        entry = shard.contents.entries.get(group_id)
        if ask.member_id and entry is None:
            return resolved(refuse(ErrorCode.UNKNOWN_MEMBER_ID))
        if entry is not None and entry.of_consumers() is not None and removal.is_empty(entry):
            return self._join_after_consumers(shard, entry, ask, refuse)
        if self._is_one_too_many(shard, group_id):
            return resolved(refuse(ErrorCode.GROUP_MAX_SIZE_REACHED))
        new_member_id = "" if ask.member_id else self._new_member_id(ask.instance_id or ask.client_id)
        return self._ask(shard, group_id, replace(ask, new_member_id=new_member_id), refuse)

    def _join_after_consumers(
        self, shard: GroupShard, entry: Entry, ask: Join, refuse: Callable[[ErrorCode], JoinResult]
    ) -> Future[JoinResult]:
        """The group is of the consumer protocol and has no members: it becomes one of the classic protocol first."""
        if removal.is_dead(entry):
            return resolved(refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        group_id = entry.group.group_id
        answer: Future[JoinResult] = Future()

        def ended(done: Future[ErrorCode]) -> None:
            if done.result() != ErrorCode.NONE:
                answer.resolve(refuse(done.result()))
            else:
                self.join(group_id, ask).then(lambda joined: answer.resolve(joined.result()))

        token, end = self._runtime.park(shard, lambda error: error)
        end.then(ended)
        removal.end_consumer(shard, entry, self._paced, lambda error: shard.answer(token, error))
        return answer

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix[:_PREFIX_LENGTH]}-{UUID(int=self._random.getrandbits(128), version=4)}"

    def new_consumer_id(self) -> str:
        """For a member of the consumer protocol whose version does not bring an id of its own."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def _is_one_too_many(self, shard: GroupShard, group_id: str) -> bool:
        """Whether it would be a new group, of an instance that has as many as it may."""
        limit = self.settings.groups_per_instance
        return group_id not in shard.contents.entries and shard.contents.groups_of_owner(group_id) >= limit

    def sync(self, group_id: str, ask: Sync) -> Future[SyncResult]:
        """SyncGroup. Answered when the leader's assignment is committed."""
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            # While loading, the rebalance that the member speaks of is lost: it has to join again.
            loading = shard == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return resolved(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS if loading else shard))
        if group_id not in shard.contents.entries:
            return resolved(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        return self._ask(shard, group_id, ask, SyncResult)

    def heartbeat(self, group_id: str, ask: Heartbeat) -> Future[HeartbeatResult]:
        """Heartbeat. While loading every member is believed to be alive: its session begins when loading is over."""
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            loading = shard == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return resolved(HeartbeatResult(ErrorCode.NONE if loading else shard))
        if group_id not in shard.contents.entries:
            return resolved(HeartbeatResult(ErrorCode.UNKNOWN_MEMBER_ID))
        return self._ask(shard, group_id, ask, HeartbeatResult)

    def leave(self, group_id: str, ask: Leave) -> Future[LeaveResult]:
        """LeaveGroup."""
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(LeaveResult(shard))
        if group_id not in shard.contents.entries:
            unknown = tuple((member, instance, ErrorCode.UNKNOWN_MEMBER_ID) for member, instance in ask.members)
            return resolved(LeaveResult(ErrorCode.NONE, unknown))
        return self._ask(shard, group_id, ask, LeaveResult)

    def _ask(self, shard: GroupShard, group_id: str, ask: Request, refuse: Callable[[ErrorCode], Any]) -> Future[Any]:
        return self._runtime.ask(shard, group_id, lambda token: replace(ask, token=token), refuse)

    # --- offsets ------------------------------------------------------------------------------------------------------

    def commit(self, group_id: str, ask: commits.Commit) -> Future[Errors]:
        """OffsetCommit or TxnOffsetCommit: an error for each topic and partition, once committed by all in-sync replicas."""

        def refuse(error: ErrorCode) -> Errors:
            return dict.fromkeys(ask.offsets, error)

        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(refuse(shard))
        entry = shard.contents.entries.get(group_id)
        if entry is None and ask.generation >= 0 and ask.producer is None:
            unknown = ErrorCode.GROUP_ID_NOT_FOUND if ask.knows_epochs else ErrorCode.ILLEGAL_GENERATION
            return resolved(refuse(unknown))
        if ask.producer is not None and shard.contents.is_anothers(ask.producer.id, group_id):
            return resolved(refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        if self._is_one_too_many(shard, group_id):
            return resolved(refuse(ErrorCode.GROUP_MAX_SIZE_REACHED))
        entry = entry or shard.contents.open(group_id)
        plan = commits.plan(entry.group, ask, self.settings, self._loop.clock.now_ms(), entry.of_consumers())
        if plan.heard_of is not None:
            self._runtime.set_timer(shard, entry, session_of(plan.heard_of))
        if not plan.records:
            shard.contents.drop_blank(group_id)
            return resolved(plan.errors)
        if ask.producer is not None and self._holds_too_much(group_id, ask, plan):
            shard.contents.drop_blank(group_id)
            return resolved(plan.errors | dict.fromkeys(plan.keys, ErrorCode.POLICY_VIOLATION))
        shard.contents.spare(group_id, plan.keys)
        if ask.producer is not None:
            return self._commit_in_transaction(shard, group_id, plan, ask.producer, refuse)
        return self._commit(shard, entry, plan, refuse)

    def _holds_too_much(self, group_id: str, ask: commits.Commit, plan: commits.CommitPlan) -> bool:
        """Whether an instance would have more offsets pending in transactions than it may, in all of its groups here."""
        owner = owner_of(group_id)
        if owner is None:  # the service's own groups have no limit
            return False
        held = sum(shard.contents.bytes_held_with(group_id) for shard in self._runtime.shards())
        wanted = sum(size_of(ask.offsets[key].metadata) for key in plan.keys)
        if held + wanted <= self.settings.pending_bytes_per_instance:
            return False
        self.refusals[owner] += 1
        return True

    def _commit(self, shard: GroupShard, entry: Entry, plan: commits.CommitPlan, refuse: Refuse) -> Future[Errors]:
        token, future = self._runtime.park(shard, refuse)
        entry.offsets.begin(plan.keys)

        def done(error: ErrorCode) -> None:
            entry.offsets.finish(plan.keys)
            if error == ErrorCode.NONE:
                shard.contents.apply_all(plan.records, position)
            shard.contents.drop_blank(entry.group.group_id)
            shard.answer(token, {**plan.errors, **dict.fromkeys(plan.keys, commits.told(error))})

        position = self._runtime.append(shard, plan.records, done)
        return future

    def _commit_in_transaction(
        self, shard: GroupShard, group_id: str, plan: commits.CommitPlan, producer: Producer, refuse: Refuse
    ) -> Future[Errors]:
        """The offsets are pending as soon as they are in the log, whether it is heard in time that all replicas have them.

        If the producer was told that it has failed and commits its transaction all the same, they are visible: the log
        says so, and with it who comes after us.
        """
        token, future = self._runtime.park(shard, refuse)

        def done(error: ErrorCode) -> None:
            shard.contents.drop_blank(group_id)
            shard.answer(token, {**plan.errors, **dict.fromkeys(plan.keys, commits.told_producer(error))})

        position = self._runtime.append(shard, plan.records, done, producer)
        if position != NOT_APPENDED:
            for key, value in plan.records:
                shard.contents.take(producer.id, position, key, value)
        return future

    def transaction_ended(self, index: int, producer_id: int, *, committed: bool) -> None:
        """The marker of a producer's transaction is committed in a partition of ``__consumer_offsets``.

        Harmless where the partition is not served here. While it is loading, the marker is in the log that is being read.
        """
        shard = self._runtime.read_shard(index)
        if shard is not None:
            self._runtime.slices.run(_TRANSACTIONS, shard.contents.end(producer_id, committed=committed))

    def fetch_problem(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Why somebody who says that it is a member in an epoch (OffsetFetch 9) is not told offsets."""
        entry = self.find(group_id)
        consumer = entry.of_consumers() if isinstance(entry, Entry) else None
        return ErrorCode.NONE if consumer is None else epochs.fetch_problem(consumer, member_id, epoch)

    def committed(self, group_id: str) -> dict[tuple[str, int], OffsetCommitValue] | ErrorCode:
        """What a group has committed. A group that does not exist has committed nothing. Not to be changed."""
        entry = self.find(group_id)
        if isinstance(entry, ErrorCode):
            return entry
        return entry.offsets.committed if entry is not None else {}

    def unstable(self, group_id: str) -> Callable[[tuple[str, int]], bool]:
        """Says of a topic and partition whether a commit is pending."""
        entry = self.find(group_id)
        return entry.offsets.is_unstable if isinstance(entry, Entry) else _is_stable

    # --- removal ------------------------------------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> Future[ErrorCode]:
        """DeleteGroups, one of them: the group and all its offsets, if it has no members."""
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(shard)
        token, future = self._runtime.park(shard, lambda error: error)
        removal.delete_group(shard, group_id, self._paced, lambda error: shard.answer(token, error))
        return future

    def delete_offsets(
        self, group_id: str, keys: list[tuple[str, int]]
    ) -> Future[tuple[ErrorCode, dict[tuple[str, int], ErrorCode]]]:
        """OffsetDelete: an error for all, or one for each."""
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved((shard, {}))
        token, future = self._runtime.park(shard, _refuse_offset_delete)
        removal.delete_offsets(shard, group_id, keys, self._paced, lambda *result: shard.answer(token, result))
        return future

    def partitions_deleted(self, deleted: list[tuple[str, int]]) -> None:
        """Topics were deleted: nobody may find their offsets when a topic of the same name is created."""
        for shard in self._runtime.shards():
            self._sweeper.forget(shard, Forgetting(deleted))


def _is_stable(_key: tuple[str, int]) -> bool:
    return False


def _refuse_offset_delete(error: ErrorCode) -> tuple[ErrorCode, dict[tuple[str, int], ErrorCode]]:
    return error, {}
