"""Appending to the replicas that we lead: checked and staged at once, written and told at the end of the turn.

At the end of the turn every partition that was appended to is written once, and only then anything is told: acks 0 and 1,
followers that wait for bytes, and, as far as the high watermark moved, acks=all and consumers. Partitions that we follow
go the same way.

An exception that nobody expects ends nothing but the log that it met (`RoleChanges.broken`), and none of what is told: what is
staged lies in memory that the next turn uses again, so no partition may stay behind with it.

Whether the coordinator knows of a producer's transaction is asked before (`transactions.verification`); here it is looked at that
it was. What a group's coordinator appends in a transaction has no sequence. Markers have a way of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.protocol.errors import ErrorCode
from dataplane.records.header import (
    TRANSACTIONAL,
    BatchHeader,
    HeaderEndsError,
    check_batch,
    read_header,
    too_short,
    unpack_header,
)
from dataplane.replication.waiting import tell
from dataplane.storage.checkpoints.producers import Duplicate
from dataplane.storage.errors import LogFailedError
from dataplane.storage.log import appending, producing

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Loop
    from dataplane.replication.accounting import Accounting
    from dataplane.replication.progress import Progress
    from dataplane.replication.replica.partition import Partition
    from dataplane.replication.role_changes import RoleChanges
    from dataplane.replication.upkeep.syncing import Syncs
    from dataplane.replication.waiting import Waiting
    from dataplane.storage.checkpoints.producers import Producers

ALL_IN_SYNC = -1
"""acks=all."""


class Appended(NamedTuple):
    """The outcome of an append: the offsets, which are promises until the turn's commit, or an error."""

    error: ErrorCode
    base_offset: int = -1
    last_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    duplicate: bool = False


class Turn:
    """Of the loop: whoever appends in it may ask later when it was over, and so when waiting for others began."""

    __slots__ = ("ended_s",)

    def __init__(self) -> None:
        self.ended_s: float | None = None  # monotonic; None: it is not over, or nothing was appended in it


_new = tuple.__new__  # half the cost of the NamedTuple's own constructor, and an append is the hot path
_NONE = ErrorCode.NONE


class Appending:
    """The path of every produce: who appends often holds this part, and calls nothing in between."""

    def __init__(
        self,
        loop: Loop,
        roles: RoleChanges,
        progress: Progress,
        waiting: Waiting,
        syncs: Syncs,
        accounting: Accounting,
        *,
        verifies: Callable[[], bool] = lambda: False,
    ) -> None:
        self._loop = loop
        self._verifies = verifies  # that the coordinator was asked
        self._clock = loop.clock
        self._roles = roles
        self._progress = progress
        self._waiting = waiting
        self._syncs = syncs
        self._accounting = accounting
        self._dirty: list[Partition] = []
        self._turn: Turn | None = None  # the present one, if anybody has asked for it

    @property
    def turn(self) -> Turn:
        """The present one."""
        if self._turn is None:
            self._turn = Turn()
        return self._turn

    def append(
        self,
        partition: Partition,
        batch: memoryview,
        acks: int,
        *,
        is_checked: bool = False,
        is_transactional: bool = False,
        begins_with_0: bool = False,
    ) -> Appended:
        """Check a producer's batch and stage it. Its memory (writable) must last until the end of the turn.

        `is_checked`: the code that prepared it from what a producer sent has checked it against the topic's rules.
        `is_transactional`: the producer may write under the transactional id that it names. `begins_with_0`: it has an epoch for
        each transaction (`Producers.check_transaction`).
        """
        state = partition.state
        if not state.is_leader:
            return Appended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        settings = state.settings
        if (
            acks == ALL_IN_SYNC
            and len(state.isr) < settings.min_insync_replicas  # nearly never: without a call
            and not state.has_enough_replicas()
        ):
            return Appended(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = partition.log
        try:
            header = _new(BatchHeader, unpack_header(batch))
            if not is_checked:
                code = check_batch(batch, header, settings.max_message_bytes)
                if code is not _NONE:
                    return Appended(code)
            if header.producer_id >= 0:
                producers = producing.producers_of(log)
                verdict = producers.check(header)
                if verdict is None and (header.attributes & TRANSACTIONAL or log.transactions.open):
                    verdict = self._check_transaction(producers, header, is_transactional, begins_with_0)
                if verdict is not None:
                    if isinstance(verdict, Duplicate):
                        base = verdict.base_offset
                        last = base + header.last_offset_delta
                        time = header.max_timestamp  # as Kafka: with a duplicate it is said whatever the topic's clock
                        return Appended(ErrorCode.NONE, base, last, time, log.start_offset, duplicate=True)
                    return Appended(verdict)
            try:
                base = appending.stage(log, batch, header, state.leader_epoch)
            except LogFailedError:
                raise
            except Exception as error:  # noqa: BLE001 - half of the batch may be staged
                self._roles.broken(partition, error)
                return Appended(ErrorCode.KAFKA_STORAGE_ERROR)
        except HeaderEndsError:
            return Appended(too_short(batch).code)
        except LogFailedError:
            self._roles.failed(partition)
            return Appended(ErrorCode.KAFKA_STORAGE_ERROR)
        if not partition.queues.dirty:
            self.mark_dirty(partition)
        return _new(Appended, (_NONE, base, base + header.last_offset_delta, -1, log.start_offset, False))

    def _check_transaction(
        self,
        producers: Producers,
        header: BatchHeader,
        is_transactional: bool,
        begins_with_0: bool,
    ) -> ErrorCode | None:
        is_a_clients = header.base_sequence >= 0
        if is_a_clients and header.is_transactional and not is_transactional:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return producers.check_transaction(header, verifies=self._verifies(), begins_with_0=begins_with_0)

    def append_marker(
        self, partition: Partition, batch: memoryview, coordinator_epoch: int, *, is_above: bool = False
    ) -> Appended:
        """Stage a marker (`records.control`): it ends its producer's transaction, if one is open. As `append` for acks=all.

        `is_above`: its epoch is above that of the transaction that it ends.
        """
        state, log = partition.state, partition.log
        if not state.is_leader:
            return Appended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not state.has_enough_replicas():
            return Appended(ErrorCode.NOT_ENOUGH_REPLICAS)
        header = read_header(batch)
        try:
            verdict = producing.producers_of(log).check_marker(header, coordinator_epoch, is_above=is_above)
            if verdict is not None:
                return Appended(verdict)
            base = appending.stage(log, batch, header, state.leader_epoch)
        except OSError:
            self._roles.failed(partition)
            return Appended(ErrorCode.KAFKA_STORAGE_ERROR)
        except Exception as error:  # noqa: BLE001 - half of the batch may be staged
            self._roles.broken(partition, error)
            return Appended(ErrorCode.KAFKA_STORAGE_ERROR)
        partition.counts.marker_staged(header.size)
        if not partition.queues.dirty:
            self.mark_dirty(partition)
        return Appended(ErrorCode.NONE, base, base, -1, log.start_offset)

    def after_commit(
        self, partition: Partition, last_offset: int, acks: int, timeout_s: float, done: Callable[[ErrorCode], None]
    ) -> None:
        """Call `done` once, at the end of this turn or later. To be called in the turn of the append.

        With acks 0 and 1 when the bytes are in the file, with acks=all when they are on all of a large enough ISR.
        """
        queues = partition.queues
        if not queues.dirty:  # a duplicate
            self.mark_dirty(partition)
        if acks == ALL_IN_SYNC:
            queues.turn_end_acks.append((last_offset, timeout_s, done))
        else:
            queues.turn_end_calls.append(done)

    def mark_dirty(self, partition: Partition) -> None:
        """Commit this partition at the end of the turn."""
        partition.queues.mark_dirty()
        if not self._dirty:
            self._loop.at_turn_end(self._commit_turn)
        self._dirty.append(partition)

    def _commit_turn(self) -> None:
        partitions, self._dirty = self._dirty, []
        for partition in partitions:
            self.commit(partition)
        if self._turn is not None:
            self._turn.ended_s, self._turn = self._clock.monotonic(), None

    def commit(self, partition: Partition) -> None:
        """Write what is staged, and answer the requests that waited for it. Never raises."""
        if not partition.queues.mark_clean():
            return
        try:
            self._write_and_tell(partition)
        except OSError:
            self._roles.failed(partition)
        except Exception as error:  # noqa: BLE001 - the other partitions of the turn are not written yet
            self._roles.broken(partition, error)

    def _write_and_tell(self, partition: Partition) -> None:
        log, state, queues = partition.log, partition.state, partition.queues
        size, end = log.size_bytes, log.end_offset
        appending.commit(log)
        if queues.turn_end_calls:
            calls = queues.take_turn_end_calls()
            if not (state.settings.is_durable and self._syncs.hold_back(partition, calls)):
                for call in calls:
                    tell(call, ErrorCode.NONE)
        if log.end_offset != end:
            self._accounting.measure(partition)
            flush_after = state.settings.flush_after
            if flush_after is not None and log.end_offset - log.recovery_point >= flush_after:
                self._syncs.want(partition)
            if state.is_leader:
                grown = log.size_bytes - size
                if queues.replica_waiters:
                    self._waiting.arrived(queues.replica_waiters, grown)
                if partition.appended(grown, self._clock.monotonic()):
                    self._progress.high_watermark_moved(partition)
            else:
                self._copied(partition, end)
        if queues.turn_end_acks:
            self._waiting.for_acks(partition, queues.take_turn_end_acks())

    def _copied(self, partition: Partition, start: int) -> None:
        before = partition.state.high_watermark
        if partition.copied(start):
            self._progress.followed(partition, before)
