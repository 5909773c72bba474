"""Replicas that move from one data directory of this broker to another while they serve (KIP-113).

A copy is made beside the log, a piece at a time, from what is in the log's files; when it has caught up, is on disk, and
nothing is staged, it takes the log's place within one turn of the loop. Until then the log is all there is: a copy that
is stopped, by a restart or a failing disk, is thrown away and nothing has happened. A log that is cut below the end of
its copy, as followers are, has its copy begun anew.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.records.header import CorruptBatchError, split_batches
from dataplane.storage.errors import LogFailedError, OffsetOutOfRangeError
from dataplane.storage.log import appending, cutting, flushing, reading
from dataplane.storage.moving import home_of
from dataplane.tasks import Future, Task, sleep

if TYPE_CHECKING:
    from dataplane.doors import Background
    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition
    from dataplane.storage.log import Log

PIECE_BYTES = 2**20
_SYNC_EVERY_BYTES = 64 * 2**20
_GAP_PAUSE_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Move:
    """One replica on its way."""

    partition: Partition
    home: str
    future: Log | None = None
    truncations: int = 0  # of the log, when the copy was begun
    unsynced: int = 0
    stopped: bool = False
    done: Future[None] = field(default_factory=Future)


class Moves:
    """All of a broker. One piece of each goes in a turn."""

    def __init__(self, replicas: Replicas, background: Background) -> None:
        self._replicas, self._background = replicas, background
        self._moves: dict[Partition, _Move] = {}

    def begin(self, partition: Partition, home: str) -> ErrorCode:
        """Move a replica to a data directory; to the one it is in: stop moving it. Harmless when it is on its way."""
        known = self._moves.get(partition)
        if known is not None and known.home != home:
            self._drop(known)
            known = None
        if known is None and home_of(partition.log.directory) != home:
            move = self._moves[partition] = _Move(partition, home)
            Task(self._run(move), f"move {len(self._moves)}")
        return ErrorCode.NONE

    def future(self, partition: Partition) -> Log | None:
        """The copy that is being made."""
        move = self._moves.get(partition)
        return None if move is None else move.future

    def stop(self) -> None:
        """Leave everything where it is."""
        for move in list(self._moves.values()):
            self._drop(move)

    # --- one move -----------------------------------------------------------------------------------------------------

    async def _run(self, move: _Move) -> None:
        try:
            while not await self._step(move):
                await sleep(self._replicas.loop, self._pause_s())
        except (OSError, CorruptBatchError) as error:
            _log.warning("a replica was not moved: %s", error)
            self._drop(move)

    async def _step(self, move: _Move) -> bool:
        """A piece further; whether there is nothing left to do."""
        if not self._goes_on(move):
            self._drop(move)
            return True
        log = move.partition.log
        if move.future is None or log.truncations != move.truncations:
            self._begin_copy(move, log)
        if await self._copy_piece(move, log):
            return False
        if move.unsynced > PIECE_BYTES:  # so much is not synced in one turn of the loop
            await self._sync(move)
            return False
        return self._take_place(move, log)

    def _goes_on(self, move: _Move) -> bool:
        """Whether it is still wanted, and the replica is here and well."""
        partition = move.partition
        here = self._replicas.registry.get(partition.topic, partition.index) is partition
        return here and not move.stopped and not partition.state.is_offline

    def _begin_copy(self, move: _Move, log: Log) -> None:
        if move.future is not None:
            self._replicas.logs.cancel_move(move.future)
        move.future, move.truncations, move.unsynced = None, log.truncations, 0
        move.future = self._replicas.logs.begin_move(log, move.home)
        cutting.reset(move.future, log.start_offset)

    async def _copy_piece(self, move: _Move, log: Log) -> bool:
        """False: the copy has all there is."""
        future = move.future
        assert future is not None
        if future.end_offset < log.start_offset:
            cutting.reset(future, log.start_offset)  # what was to be copied next is deleted already
        try:
            found = reading.read(log, future.end_offset, PIECE_BYTES, log.end_offset, at_least_one=True)
        except OffsetOutOfRangeError:
            return True  # cut at this moment: the next step sees it
        if found is None:
            if future.end_offset >= log.end_offset:
                return False
            await sleep(self._replicas.loop, _GAP_PAUSE_S)  # compaction left nothing before the end: a batch will come
            return True
        data = await self._background.run(found.read)
        if not self._goes_on(move) or move.future is not future or log.truncations != move.truncations:
            return True
        self._append(future, memoryview(bytearray(data)))
        move.unsynced += found.size
        if move.unsynced > _SYNC_EVERY_BYTES:
            await self._sync(move)
        return True

    @staticmethod
    def _append(future: Log, batches: memoryview) -> None:
        first = split_batches(batches)[0][0].base_offset
        if not future.size_bytes and first < future.end_offset:
            cutting.reset(future, first)  # the log begins within a batch
        appending.stage_replica(future, batches)
        appending.commit(future)

    async def _sync(self, move: _Move) -> None:
        future = move.future
        assert future is not None
        sync, end, truncations = flushing.syncer(future), future.end_offset, future.truncations
        move.unsynced = 0
        await self._background.run(sync)
        flushing.synced(future, end, truncations)

    def _take_place(self, move: _Move, log: Log) -> bool:
        """In one turn: nothing comes in between. False: something has come since."""
        partition, future = move.partition, move.future
        assert future is not None
        self._replicas.appending.commit(partition)
        if partition.state.is_offline or log.truncations != move.truncations or future.end_offset != log.end_offset:
            return False
        self._moves.pop(partition, None)
        try:
            partition.replace_log(self._replicas.logs.finish_move(log, future))
        except (OSError, LogFailedError) as error:
            _log.warning("a replica was not moved: %s", error)
            self._replicas.roles.failed(partition)
        else:
            self._replicas.configuration.configure(partition)
            self._replicas.accounting.measure(partition)
        move.done.resolve(None)
        return True

    def _drop(self, move: _Move) -> None:
        move.stopped = True
        if self._moves.get(move.partition) is move:
            del self._moves[move.partition]
        if move.future is not None:
            self._replicas.logs.cancel_move(move.future)
            move.future = None
        move.done.resolve(None)

    def _pause_s(self) -> float:
        """As long as a piece may take, by replica.alter.log.dirs.io.max.bytes.per.second."""
        rate = self._replicas.configuration.settings.replica_alter_log_dirs_io_max_bytes_per_second
        return len(self._moves) * PIECE_BYTES / rate
