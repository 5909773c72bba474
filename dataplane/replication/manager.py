"""All replicas of this broker: what handlers, coordinators and fetchers call.

The path of a produce: `leader`, `append` (checks and stages), `after_commit` (what to do then). At the end of the turn
every partition that was appended to is written once, and only then anything is told: acks 0 and 1, followers that wait
for bytes, and, as far as the high watermark moved, acks=all and consumers. Followers' partitions go the same way.

Who leads what is decided elsewhere: `leadership` takes the controller's words, `fetchers` copies what we follow, `isr`
proposes who is in sync.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dataplane.cluster.topic_settings import min_insync_replicas
from dataplane.cluster.watching import sleep
from dataplane.protocol.errors import ErrorCode
from dataplane.records.header import HEADER, BatchHeader, check_batch, too_short
from dataplane.replication import leadership
from dataplane.replication.accounting import Accounting
from dataplane.replication.fetchers import Fetchers
from dataplane.replication.housekeeping import Housekeeping
from dataplane.replication.isr import AlterPartition, IsrChanges
from dataplane.replication.moves import Moves
from dataplane.replication.partition import Partition, ReplicaRules
from dataplane.replication.syncing import Syncs
from dataplane.replication.throttling import Throttles
from dataplane.replication.waiting import Waiting
from dataplane.storage.cleaner.cleaner import Cleaner
from dataplane.storage.config import LogConfig
from dataplane.storage.errors import LogFailedError, OffsetOutOfRangeError
from dataplane.storage.producers import Duplicate
from dataplane.storage.rules import rules_of

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.cluster.metadata import Metadata
    from dataplane.config import BrokerConfig
    from dataplane.doors import Callback, Doors
    from dataplane.metering.meter import Meter
    from dataplane.network.outbound import Peers
    from dataplane.protocol.messages.control import (
        LeaderAndIsrRequest,
        LeaderAndIsrResponse,
        StopReplicaRequest,
        StopReplicaResponse,
    )
    from dataplane.storage.files import FileSlice
    from dataplane.storage.log import Log
    from dataplane.storage.manager import LogManager
    from dataplane.tasks import Future

ALL_IN_SYNC = -1
"""acks=all."""
_SETTLE_PAUSE_S = 0.02

Leadership = Callable[[str, int, int | None], None]
"""(topic, partition, leader epoch): we lead it from here on; None: we do not, or not any more."""


class TopicOverrides(Protocol):
    """Where a topic's configuration comes from (`cluster.topic_configs`)."""

    def get(self, topic: str) -> Mapping[str, str]:
        """The topic's own settings."""
        ...

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Hear of a topic whose settings have changed."""
        ...


class Appended(NamedTuple):
    """The outcome of an append: the offsets, which are promises until the turn's commit, or an error."""

    error: ErrorCode
    base_offset: int = -1
    last_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    duplicate: bool = False


_new = tuple.__new__  # half the cost of the NamedTuple's own constructor, and an append is the hot path
_unpack_header = HEADER.unpack_from
_NONE = ErrorCode.NONE


class Replicas:
    """See the module. `broker_epoch` is the czxid of our registration; -1 while there is none."""

    def __init__(
        self,
        config: BrokerConfig,
        doors: Doors,
        logs: LogManager,
        metadata: Metadata,
        topic_configs: TopicOverrides,
        peers: Peers,
        *,
        broker_epoch: Callable[[], int],
        alter_partition: AlterPartition,
        meter: Meter | None = None,
    ) -> None:
        self.config = config
        self.logs = logs
        self.log_defaults = LogConfig.from_settings(config.settings)
        self.metadata = metadata
        self.topic_configs = topic_configs
        self.peers = peers
        self.broker_epoch = broker_epoch
        self.loop = doors.loop
        self.meter = meter
        self.accounting = Accounting()
        self.waiting = Waiting(doors.loop)
        self.fetchers = Fetchers(self)
        self.isr_changes = IsrChanges(config.id, doors.loop, broker_epoch, alter_partition, self.isr_confirmed)
        self.rules = ReplicaRules(
            config.id, config.settings.replica_lag_time_max_ms / 1000, lambda broker_id: broker_id in metadata.brokers
        )
        self._clock = doors.loop.clock
        self._topics: dict[str, dict[int, Partition]] = {}
        self._ids: dict[UUID, str] = {}  # of the topics that are here: known before metadata say so
        self.tells_followers_at_once = config.settings.replica_selector_class != ""  # consumers may read from them
        self._dirty: list[Partition] = []
        self._listeners: list[Leadership] = []
        self.syncs = Syncs(self, doors.background, self._clock)
        self.moves = Moves(self, doors.background)
        self.throttles = Throttles(config, metadata, self._clock)
        self._housekeeping = Housekeeping(self)
        committed_of = self._housekeeping.committed_of
        self.cleaner = Cleaner(doors, logs, lambda: self.config.settings, committed_of, self._compacted)
        topic_configs.on_change(self._configure_topic)
        logs.on_directory_failure(self._directory_failed)

    def start(self) -> None:
        """Begin what happens by the clock."""
        self._housekeeping.start()

    def stop(self) -> Future[None]:
        """No more fetching, proposing and answering; what is staged is written.

        The future is resolved when the high watermarks are on disk. The logs stay open.
        """
        self.moves.stop()
        self.fetchers.stop()
        self.isr_changes.stop()
        for partition in self.partitions():
            self.commit(partition)
            self.waiting.dismiss(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self._housekeeping.stop()

    async def settle(self, within_s: float) -> None:
        """Wait, not for long, until what we took as the leader is known to be committed.

        After leaderships were given away, before we stop: the new leaders' answers to our fetches say so.
        """
        end = self._clock.monotonic() + within_s
        while any(p.uncommitted.is_open() for p in self.partitions()) and self._clock.monotonic() < end:
            await sleep(self.loop, _SETTLE_PAUSE_S)

    def apply_retention(self) -> None:
        """Delete now what is too old or too much; nothing that is not committed."""
        self._housekeeping.apply_retention()

    def _compacted(self, log: Log) -> None:
        partition = self.get(log.topic, log.partition)
        if partition is not None and partition.log is log:
            self.accounting.measure(partition)

    # --- looking up ---------------------------------------------------------------------------------------------------

    def get(self, topic: str, index: int) -> Partition | None:
        """The replica that is here, whatever its role."""
        partitions = self._topics.get(topic)
        return None if partitions is None else partitions.get(index)

    def partitions(self) -> Iterator[Partition]:
        """All replicas here, in the order in which they came."""
        for partitions in list(self._topics.values()):
            yield from list(partitions.values())

    def leader(self, topic: str, index: int, current_leader_epoch: int = -1) -> Partition | ErrorCode:
        """The partition if we lead it, in the epoch that the caller believes in (-1: it has no belief); or why not."""
        return self.readable(topic, index, current_leader_epoch, leader_only=True)

    def readable(
        self, topic: str, index: int, current_leader_epoch: int = -1, *, leader_only: bool
    ) -> Partition | ErrorCode:
        """The same; of a follower too unless `leader_only`."""
        partitions = self._topics.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is None:
            exists = self.metadata.partition(topic, index) is not None
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if current_leader_epoch >= 0 and current_leader_epoch != partition.leader_epoch:
            if current_leader_epoch < partition.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return partition if partition.is_leader or not leader_only else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def topic_of_id(self, topic_id: UUID) -> str | None:
        """The name of a topic of which something is here."""
        return self._ids.get(topic_id)

    def storage_by_instance(self) -> dict[str, int]:
        """Bytes stored here by instance key."""
        return self.accounting.storage_by_instance()

    def leaders_by_instance(self) -> dict[str, int]:
        """Partitions led here by instance key."""
        return self.accounting.leaders_by_instance()

    # --- appending ----------------------------------------------------------------------------------------------------

    def append(self, partition: Partition, batch: memoryview, acks: int, *, is_checked: bool = False) -> Appended:
        """Check a producer's batch and stage it. Its memory (writable) must last until the end of the turn.

        `is_checked`: by who has made it of what a producer sent, on the way past `partition.rules`.
        """
        if not partition.is_leader:
            return Appended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if (
            acks == ALL_IN_SYNC
            and len(partition.isr) < partition.min_insync_replicas  # nearly never: without a call
            and not partition.has_enough_replicas()
        ):
            return Appended(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = partition.log
        try:
            header = _new(BatchHeader, _unpack_header(batch))
            if not is_checked:
                code = check_batch(batch, header, partition.max_message_bytes)
                if code is not _NONE:
                    return Appended(code)
            if header.producer_id >= 0:
                verdict = log.producers.check(header)
                if verdict is not None:
                    if isinstance(verdict, Duplicate):
                        base = verdict.base_offset
                        last = base + header.last_offset_delta
                        time = header.max_timestamp  # as Kafka: with a duplicate it is said whatever the topic's clock
                        return Appended(ErrorCode.NONE, base, last, time, log.start_offset, duplicate=True)
                    return Appended(verdict)
            base = log.stage(batch, header, partition.leader_epoch)
        except struct.error:
            return Appended(too_short(batch).code)
        except LogFailedError:
            self.failed(partition)
            return Appended(ErrorCode.KAFKA_STORAGE_ERROR)
        if not partition.dirty:
            self.mark_dirty(partition)
        return _new(Appended, (_NONE, base, base + header.last_offset_delta, -1, log.start_offset, False))

    def after_commit(
        self, partition: Partition, last_offset: int, acks: int, timeout_s: float, done: Callable[[ErrorCode], None]
    ) -> None:
        """Call `done` once, at the end of this turn or later. To be called in the turn of the append.

        With acks 0 and 1 when the bytes are in the file, with acks=all when they are on all of a large enough ISR.
        """
        if not partition.dirty:  # a duplicate
            self.mark_dirty(partition)
        if acks == ALL_IN_SYNC:
            partition.turn_end_acks.append((last_offset, timeout_s, done))
        else:
            partition.turn_end_calls.append(done)

    def mark_dirty(self, partition: Partition) -> None:
        """Commit this partition at the end of the turn."""
        partition.dirty = True
        if not self._dirty:
            self.loop.at_turn_end(self._commit_turn)
        self._dirty.append(partition)

    def _commit_turn(self) -> None:
        partitions, self._dirty = self._dirty, []
        for partition in partitions:
            self.commit(partition)

    def commit(self, partition: Partition) -> None:
        """Write what is staged, and tell whoever may know now."""
        if not partition.dirty:
            return
        partition.dirty = False
        log = partition.log
        size, end = log.size_bytes, log.end_offset
        try:
            log.commit()
        except OSError:
            self.failed(partition)
            return
        if partition.turn_end_calls:
            calls, partition.turn_end_calls = partition.turn_end_calls, []
            if not (partition.is_durable and self.syncs.hold_back(partition, calls)):
                for call in calls:
                    call(ErrorCode.NONE)
        if log.end_offset != end:
            self.accounting.measure(partition)
            if partition.flush_after is not None and log.end_offset - log.recovery_point >= partition.flush_after:
                self.syncs.want(partition)
            if partition.is_leader:
                grown = log.size_bytes - size
                if partition.replica_waiters:
                    self.waiting.arrived(partition.replica_waiters, grown)
                if partition.appended(grown, self._clock.monotonic()):
                    self.high_watermark_moved(partition)
            else:
                self._copied(partition, end)
        if partition.turn_end_acks:
            acks, partition.turn_end_acks = partition.turn_end_acks, []
            self.waiting.for_acks(partition, acks)

    def _copied(self, partition: Partition, start: int) -> None:
        before = partition.high_watermark
        try:
            moved = partition.copied(start)
        except OSError:
            self.failed(partition)
            return
        if moved:
            self.followed(partition, before)

    def followed(self, partition: Partition, before: int) -> None:
        """Our high watermark of a partition that we follow has moved: consumers that read from us may wait for that."""
        if partition.read_waiters:
            try:
                size = partition.log.bytes_between(before, partition.high_watermark)
            except OSError:
                size = 1
            self.waiting.arrived(partition.read_waiters, size)

    def _directory_failed(self, _path: str, _error: str, keys: list[tuple[str, int]]) -> None:
        """All that is there is lost to us. In the next turn: something is in the middle of its work."""

        def lose() -> None:
            for key in keys:
                partition = self.get(*key)
                if partition is not None and partition.log.failed and not partition.is_offline:
                    self.failed(partition)

        self.loop.call_soon(lose)

    def failed(self, partition: Partition) -> None:
        """The disk refused: nothing of this replica can be trusted before recovery at the next start."""
        if not partition.log.failed:
            partition.log.fail(OSError(errno.EIO, "Input/output error", partition.log.directory))  # a read
        led, partition.is_leader = partition.is_leader, False
        partition.is_offline = True
        self.fetchers.leave(partition)
        calls = partition.turn_end_calls + [done for _, _, done in partition.turn_end_acks]
        partition.turn_end_calls, partition.turn_end_acks = [], []
        for call in calls:
            call(ErrorCode.KAFKA_STORAGE_ERROR)
        self.role_changed(partition, led, ErrorCode.KAFKA_STORAGE_ERROR)

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(
        self, partition: Partition, offset: int, max_bytes: int, *, at_least_one: bool, as_replica: bool
    ) -> FileSlice | None:
        """Whole batches from `offset`: up to the high watermark, for a replica up to the end. None: nothing there.

        Raises OffsetOutOfRangeError, OSError.
        """
        log = partition.log
        limit = log.end_offset if as_replica else partition.high_watermark
        if offset >= limit:
            if offset > log.end_offset:
                raise OffsetOutOfRangeError(offset, log.start_offset, log.end_offset)
            return None
        return log.read(offset, max_bytes, limit, at_least_one=at_least_one)

    def when_readable(
        self,
        places: Sequence[tuple[Partition, int]],
        min_bytes: int,
        timeout_s: float,
        wake: Callback,
        *,
        as_replica: bool = False,
    ) -> Callback:
        """Call `wake` once, when `min_bytes` more can be read from the (partition, offset) pairs, or at the deadline.

        Also when we lose one of the partitions. Returns how to give up. To be called in the turn that read too little.
        """
        found = [p.replica_waiters if as_replica else p.read_waiters for p, _ in places]
        return self.waiting.for_bytes(found, min_bytes, timeout_s, wake)

    def fetched_by_replica(
        self,
        replica_id: int,
        broker_epoch: int,
        partition: Partition,
        fetch_offset: int,
        now: float,
        log_start_offset: int = -1,
    ) -> None:
        """A follower has everything below `fetch_offset` (and its log is a prefix of ours: checked by the caller)."""
        remote = partition.remote(replica_id)
        if remote is not None and remote.log_start_offset != log_start_offset:
            remote.log_start_offset = log_start_offset
            if partition.low_watermark_waiters:
                self.waiting.low_watermark_moved(partition)
        if partition.update_follower(replica_id, fetch_offset, now, broker_epoch):
            self.high_watermark_moved(partition)
        isr = partition.isr_with(replica_id, now)
        if isr is not None:
            self.isr_changes.propose(partition, isr)

    def high_watermark_moved(self, partition: Partition) -> None:
        """More is committed on a partition that we lead: acks=all may go out, consumers have something to read."""
        if partition.ack_waiters:
            self.waiting.acknowledge(partition)
        size = partition.committed_bytes - partition.announced_bytes
        partition.announced_bytes = partition.committed_bytes
        if partition.read_waiters:
            self.waiting.arrived(partition.read_waiters, size)
        if partition.replica_waiters:  # they are told with their next answer
            self.waiting.arrived(partition.replica_waiters, 1 if self.tells_followers_at_once else 0)

    def start_moved(self, partition: Partition) -> None:
        """The log begins somewhere else: fetch sessions say so, and whoever reads below has to hear of it."""
        self.waiting.arrived(partition.read_waiters, 0)
        self.waiting.arrived(partition.replica_waiters, 0)
        if not partition.is_leader:
            self.fetchers.changed(partition)

    # --- in-sync replicas ---------------------------------------------------------------------------------------------

    def isr_confirmed(self, partition: Partition) -> None:
        """The controller has decided about an ISR: without a laggard more may be committed."""
        self.waiting.arrived(partition.replica_waiters, 0)  # who is not in it is looked at with every fetch
        if partition.is_leader and partition.advance(self._clock.monotonic()):
            self.high_watermark_moved(partition)
        if partition.is_leader and not partition.has_enough_replicas():
            self.waiting.too_few(partition)

    # --- roles --------------------------------------------------------------------------------------------------------

    def on_leadership(self, callback: Leadership) -> None:
        """Hear of every partition that we begin or cease to lead, after the fact and in order."""
        self._listeners.append(callback)

    def apply_leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """The controller says who leads and who follows."""
        return leadership.apply_leader_and_isr(self, request)

    def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """The controller takes replicas away from this broker, or from the earth."""
        return leadership.stop_replicas(self, request)

    def role_changed(self, partition: Partition, led: bool, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """After a change of role or epoch: who waited for us as the leader gets `code`, and all who asked are told."""
        if partition.is_leader != led:
            self.accounting.led(partition, -1 if led else 1)
            self.waiting.dismiss(partition, code)
        self.waiting.look_again(partition)
        self.syncs.catch_up(partition)
        if partition.is_leader or led:
            for listener in self._listeners:
                listener(partition.topic, partition.index, partition.leader_epoch if partition.is_leader else None)

    def add(self, partition: Partition) -> None:
        """A replica comes to this broker."""
        self._topics.setdefault(partition.topic, {})[partition.index] = partition
        self._ids[partition.topic_id] = partition.topic
        if self.meter is not None:
            partition.usage = self.meter.topic(partition.topic)
        self.configure(partition)
        self.accounting.measure(partition)

    def remove(self, partition: Partition) -> None:
        """It goes."""
        partitions = self._topics[partition.topic]
        del partitions[partition.index]
        self.accounting.forget(partition)
        self.syncs.forget(partition)
        self.waiting.look_again(partition)
        if not partitions:
            del self._topics[partition.topic]
            self._ids.pop(partition.topic_id, None)
            if self.meter is not None:
                self.meter.retire(partition.topic)

    def hosts_topic(self, topic: str) -> bool:
        """Whether any partition of the topic is here."""
        return topic in self._topics

    # --- configuration ------------------------------------------------------------------------------------------------

    def configure(self, partition: Partition) -> None:
        """Take over what the topic's configuration says."""
        settings, overrides = self.config.settings, self.topic_configs.get(partition.topic)
        partition.min_insync_replicas = min_insync_replicas(overrides, settings)
        partition.max_message_bytes = int(overrides.get("max.message.bytes", settings.message_max_bytes))
        partition.log.config = self.log_defaults.with_topic(overrides)
        self.syncs.configure(partition)
        self.throttles.configure(partition, overrides)
        partition.rules = rules_of(partition.log.config, settings.record_validation)

    def take_settings(self, config: BrokerConfig) -> None:
        """The broker's own settings have changed: every topic takes its defaults anew."""
        self.config = config
        self.log_defaults = LogConfig.from_settings(config.settings)
        self.throttles.take_settings(config)
        for partition in self.partitions():
            self.configure(partition)

    def _configure_topic(self, topic: str) -> None:
        for partition in self._topics.get(topic, {}).values():
            self.configure(partition)
