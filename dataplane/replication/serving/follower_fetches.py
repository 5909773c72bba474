"""The leader's side of replication: answering a follower's Fetch.

For each partition, in this order: do both believe in the same epoch; is the follower's log a prefix of ours, or where
do they part; is its end inside of our log. Only then does its position count as progress, which may move the high
watermark. Then comes what lies behind it, up to our end: followers read what is not committed yet.

Each follower has one session (`fetch_sessions`), so that partitions on which nothing happens cost neither side
anything. A partition whose follower is not in sync is looked at with every fetch all the same: it may be about to join the ISR.
That an idle one keeps up is known from the session's requests, when something happens on it (`_stirred`).

A request that finds nothing waits for bytes, as long as it says. It stops waiting when the same follower asks again:
a partition has come that it wants to hear of, and answers go out in order.

A request of an earlier life of the follower counts for nothing: what it had may be lost (KIP-903).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from dataplane.doors import NotInMemoryError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from dataplane.protocol.schema import NO_UUID
from dataplane.replication.serving.cold_lookups import ColdLookups
from dataplane.replication.serving.fetch_sessions import (
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    Found,
    Reading,
    refused,
)
from dataplane.replication.truncation import divergence
from dataplane.storage.errors import OffsetOutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition
    from dataplane.replication.serving.fetch_sessions import SessionPartition


class ReplicaFetches:
    """Serves followers. One per broker: it knows their sessions, and whose request is waiting."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._waiting: dict[int, tuple[_FollowerFetch, Callable[[], None]]] = {}  # by follower, with "answer it now"
        self._sessions: dict[int, FetchSession] = {}  # by follower
        self._last_session = replicas.loop.clock.now_ms() & 0x3FFFFFFF  # our former life's have other numbers
        self._broker_epochs: dict[int, int] = {}  # the newest broker epoch of each follower

    def serve(self, request: FetchRequest, done: Callable[[FetchResponse], None]) -> None:
        """Answer a Fetch of a follower, which came by the internal listener; at once or later."""
        follower = follower_of(request)
        waiting = self._waiting.pop(follower, None)
        if waiting is not None:
            waiting[1]()
        session = self._session_of(request, follower)
        if isinstance(session, ErrorCode):
            done(FetchResponse(error_code=session))
            return
        fetch = _FollowerFetch(self._replicas, request, session, stale=self._is_stale(request, follower))
        if self._replicas.verdicts.open:
            self._replicas.verdicts.asked(follower, fetch.copies)
        found = fetch.look(count_progress=True)
        if found.must_answer or found.size >= request.min_bytes or request.max_wait_ms <= 0 or fetch.has_news(found):
            done(self._told(fetch, found))
            return

        # None of these has itself, or the fetch that has it, when all is over: a cycle would stay in memory (`garbage`).
        def is_waiting() -> bool:
            waiting = self._waiting.get(follower)
            return waiting is not None and waiting[0] is fetch

        def finish() -> None:
            fetch.on_brought = None
            if is_waiting():
                del self._waiting[follower]
            done(self._told(fetch, fetch.look(count_progress=False)))

        def give_up() -> None:
            cancel()
            finish()

        def brought() -> None:
            if is_waiting():
                self._waiting[follower][1]()

        cancel = fetch.wait(found, finish)
        self._waiting[follower] = (fetch, give_up)
        fetch.on_brought = brought

    def _is_stale(self, request: FetchRequest, follower: int) -> bool:
        life = request.replica_state.replica_epoch
        if life >= 0:
            if life < self._broker_epochs.get(follower, -1):
                return True
            self._broker_epochs[follower] = life
        return False

    def _session_of(self, request: FetchRequest, follower: int) -> FetchSession | ErrorCode | None:
        """The session that the request goes on with, or why not; None: all that it wants is in it."""
        session = self._sessions.get(follower)
        if request.session_epoch <= INITIAL_EPOCH:
            if session is not None:
                session.close()
                del self._sessions[follower]
            return None
        if session is None or session.id != request.session_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        code = session.resume(request, uses_topic_ids=True)
        session.used_at = self._replicas.loop.clock.monotonic()
        return code or session

    def _told(self, fetch: _FollowerFetch, found: Found) -> FetchResponse:
        """The answer, which goes out now."""
        session = fetch.session
        if session is not None:
            session.tell(found)
        elif fetch.request.session_epoch == INITIAL_EPOCH and fetch.names_by_id():
            session = self._begin(fetch, found)
        return FetchResponse(session_id=NO_SESSION if session is None else session.id, responses=found.topics())

    def _begin(self, fetch: _FollowerFetch, found: Found) -> FetchSession:
        follower = follower_of(fetch.request)
        old = self._sessions.get(follower)
        if old is not None:
            old.close()
        self._last_session += 1
        now = self._replicas.loop.clock.monotonic()
        session = FetchSession(self._last_session, str(follower), now, uses_topic_ids=True, repeats=True)
        session.on_stir = lambda row: self._stirred(session, follower, row)
        session.begin(found, fetch.wanted)
        self._sessions[follower] = session
        return session

    def _stirred(self, session: FetchSession, follower: int, row: SessionPartition) -> None:
        """The follower had all of it, and has gone on asking."""
        topic = self._replicas.registry.topic_of_id(row.topic) if isinstance(row.topic, UUID) else row.topic
        partition = None if topic is None else self._replicas.registry.get(topic, row.wanted.partition)
        remote = None if partition is None else partition.state.remote(follower)
        if remote is not None and row.wanted.fetch_offset == remote.log_end_offset:
            remote.kept_asking(session.used_at)


class _FollowerFetch:
    """One request until it is answered."""

    def __init__(self, replicas: Replicas, request: FetchRequest, session: FetchSession | None, *, stale: bool) -> None:
        self._replicas = replicas
        self._follower = follower_of(request)
        self._stale = stale
        self._count_progress = True
        self._look_again_s = request.max_wait_ms / 1000  # at the latest
        self._cold = ColdLookups(replicas.files, "")
        self.on_brought: Callable[[], None] | None = None  # what the look missed is in memory now
        self.request = request
        self.session = session
        self.wanted: list[tuple[str | UUID, FetchPartition]] = []
        if session is None:
            self.wanted = [
                (t.topic if t.topic_id == NO_UUID else t.topic_id, p) for t in request.topics for p in t.partitions
            ]

    def look(self, *, count_progress: bool) -> Found:
        """What there is to tell; what the follower says of itself counts once.

        What it would take the disk to find stands in nobody's way: it is brought, and told with a later answer.
        """
        self._count_progress = count_progress
        found = self._look_in_memory()
        if self._cold.missing is not None:
            self._cold.bring(self._brought)
        return found

    def _look_in_memory(self) -> Found:
        if self.session is not None:
            return self.session.look(self._read, self.request.max_bytes)
        found = Found()
        for topic, wanted in self.wanted:
            left = max(0, self.request.max_bytes - found.size)
            found.add(None, topic, self._read(topic, wanted, left, found.size == 0))
        return found

    def _brought(self) -> None:
        if self.on_brought is not None:
            self.on_brought()

    def names_by_id(self) -> bool:
        """Whether it is of the versions that followers have used since they have sessions."""
        return self.request.replica_state.replica_id >= 0

    def copies(self, partition: Partition) -> bool:
        """Whether the follower says with this request that it follows us there, in our epoch."""
        if self._stale:
            return False
        wanted: FetchPartition | None = None
        if self.session is not None:
            row = self.session.partition(partition.topic_id, partition.index)
            wanted = None if row is None else row.wanted
        else:
            names = (partition.topic_id, partition.topic)
            wanted = next((w for name, w in self.wanted if w.partition == partition.index and name in names), None)
        return wanted is not None and wanted.current_leader_epoch == partition.state.leader_epoch

    def has_news(self, found: Found) -> bool:
        """Of a high watermark, where consumers of the follower wait for it."""
        return self.session is not None and self._replicas.progress.tells_followers_at_once and bool(found.rows)

    def wait(self, found: Found, finish: Callable[[], None]) -> Callable[[], None]:
        """Call `finish` when there is more, or when time is up. Returns how to give up."""
        waiting = self._replicas.waiting
        timeout_s, session = self._look_again_s, self.session
        if session is None:
            return waiting.for_bytes(found.places(), self.request.min_bytes, timeout_s, finish).cancel

        def woken() -> None:
            session.waiter = None
            finish()

        waiter = waiting.for_session(self.request.min_bytes, timeout_s, woken)
        session.wait(waiter, found)

        def cancel() -> None:
            waiter.cancel()
            session.waiter = None

        return cancel

    def _read(self, topic: str | UUID, wanted: FetchPartition, left: int, at_least_one: bool) -> Reading:
        """A `fetch_sessions.Read`."""
        replicas = self._replicas
        name = replicas.registry.topic_of_id(topic) if isinstance(topic, UUID) else topic
        if name is None:
            return _error(wanted, ErrorCode.UNKNOWN_TOPIC_ID, None)
        partition = replicas.registry.leader(name, wanted.partition, wanted.current_leader_epoch)
        if isinstance(partition, ErrorCode):
            return _error(wanted, partition, replicas.registry.get(name, wanted.partition))
        if self._stale:
            return _error(wanted, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        if partition.state.remote(self._follower) is None:
            return _error(wanted, ErrorCode.UNKNOWN_LEADER_EPOCH, partition)  # our list of replicas is older than its
        parted = divergence(partition.log, wanted.last_fetched_epoch, wanted.fetch_offset)
        if parted is not None:
            return _parted(partition, *parted)
        return self._records(partition, wanted, left, at_least_one=at_least_one)

    def _records(self, partition: Partition, wanted: FetchPartition, left: int, *, at_least_one: bool) -> Reading:
        replicas, log, offset = self._replicas, partition.log, wanted.fetch_offset
        is_throttled = partition.state.settings.throttles_sending
        delay_s = replicas.throttles.sending_delay(partition, self._follower) if is_throttled else 0.0
        try:
            size = min(left, wanted.partition_max_bytes)
            records = None
            if not delay_s:
                records = partition.read(offset, size, log.end_offset, at_least_one=at_least_one, wait=self._cold.wait)
        except NotInMemoryError as missing:
            self._cold.missing, records = missing, None
        except OffsetOutOfRangeError:
            return _error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
        except OSError:
            replicas.roles.failed(partition)
            return _error(wanted, ErrorCode.KAFKA_STORAGE_ERROR, partition)
        if self._count_progress:
            now, life = replicas.loop.clock.monotonic(), self.request.replica_state.replica_epoch
            replicas.progress.fetched_by_replica(self._follower, life, partition, offset, now, wanted.log_start_offset)
        data = FetchResponsePartitionData(
            partition_index=wanted.partition,
            high_watermark=partition.state.high_watermark,
            last_stable_offset=partition.state.last_stable_offset,
            log_start_offset=log.start_offset,
            records=b"" if records is None else records,
        )
        if delay_s:
            self._look_again_s = min(self._look_again_s, delay_s)
            return Reading(data, 0, None)  # nothing that arrives there makes it look sooner
        if records is not None and is_throttled:
            replicas.throttles.sent(partition, self._follower, records.size)
        at_end = offset >= log.end_offset and self._follower in partition.state.isr
        return Reading(data, 0 if records is None else records.size, partition.queues.replica_waiters, at_end)


def follower_of(request: FetchRequest) -> int:
    """The broker id of the follower that asks; -1: not a follower. Since version 15 another field holds it."""
    return request.replica_id if request.replica_id >= 0 else request.replica_state.replica_id


def _parted(partition: Partition, epoch: int, end_offset: int) -> Reading:
    if epoch < 0:
        wanted = FetchPartition(partition=partition.index)
        return _error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
    data = FetchResponsePartitionData(
        partition_index=partition.index,
        high_watermark=partition.state.high_watermark,
        log_start_offset=partition.log.start_offset,
        diverging_epoch=FetchResponseEpochEndOffset(epoch=epoch, end_offset=end_offset),
        records=b"",
    )
    return Reading(data, 0, None)


def _error(wanted: FetchPartition, code: ErrorCode, partition: Partition | None) -> Reading:
    """With the leader as we know it, where that may help the follower."""
    if partition is None or code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        return refused(wanted, code)
    state = partition.state
    leader = FetchResponseLeaderIdAndEpoch(leader_id=state.leader_id, leader_epoch=state.leader_epoch)
    return refused(wanted, code, leader)
