"""What a follower wants of one leader, and how the leader hears of it.

The leader remembers it (a fetch session, KIP-227): a request names the partitions of which we want something else than
before, our *wishes*, and those that it should forget. So partitions on which nothing happens cost nothing, however many
they are. A partition that comes while a request waits is asked for in another one, at once, which makes the leader
answer the first; more than two are not under way.

A wish has the number of the request that told it last. What an answer says of a partition counts only if its wish was
told with that request or before: else it answers something that we do not want any more.

Every wish says in which leader epoch we believe and which epoch our log ends with. So the leader refuses us if one
of us is out of date, and tells us where our logs part (`truncation`).

A partition with an error pauses on its own, and the leader forgets it meanwhile; a leader that cannot be reached pauses
all. What cures most errors, a LeaderAndIsr, puts the partition in anew.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from dataplane.replication.serving.fetch_sessions import (
    INITIAL_EPOCH,
    NO_SESSION,
    next_epoch,
)

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.doors import Timer
    from dataplane.peers.outbound import Peer
    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition
    from dataplane.tasks import Future

FETCH_VERSION = 15
CALL_TIMEOUT_S = 10.0
FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 1.0
NOT_TOLD = 0
MAX_UNDER_WAY = 2
"""Requests of a follower to one leader."""

_log = logging.getLogger(__name__)


class Copying:
    """Where one partition is."""

    __slots__ = ("leader_epoch", "not_before", "pause_s", "told")

    def __init__(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch
        self.told = NOT_TOLD  # the number of the request that told the leader what we want of it
        self.not_before = 0.0
        self.pause_s = 0.0


class FetchRequests:
    """Asks the broker `leader_id` until `stop`. What comes is for `_take_all`, which a subclass has."""

    def __init__(self, replicas: Replicas, leader_id: int) -> None:
        self._replicas = replicas
        self._leader_id = leader_id
        self._loop = replicas.loop
        self._copying: dict[Partition, Copying] = {}
        self._by_id: dict[tuple[UUID, int], Partition] = {}
        self._wishes: dict[Partition, None] = {}  # to be told, in the order of the next request
        self._paused: dict[Partition, None] = {}
        self._forgotten: dict[tuple[UUID, int], None] = {}  # to be told, too
        self._session_id, self._epoch = NO_SESSION, INITIAL_EPOCH
        self._requests = 0  # the number of the last one
        self._void_until = 0  # answers to requests up to this number belong to a session that is over
        self._peer: Peer | None = None
        self._under_way = 0
        self._scheduled = False
        self._not_before = 0.0
        self._pause_s = 0.0
        self._pause: Timer | None = None
        self._stopped = False

    def add(self, partition: Partition) -> None:
        """Copy this one as well, from now on."""
        self._copying[partition] = Copying(partition.state.leader_epoch)
        self._by_id[partition.topic_id, partition.index] = partition
        self._paused.pop(partition, None)
        self._wish(partition)

    def remove(self, partition: Partition) -> bool:
        """Stop copying it. Returns whether it was copied here."""
        copying = self._copying.pop(partition, None)
        if copying is None:
            return False
        self._forget(partition, copying)
        self._paused.pop(partition, None)
        del self._by_id[partition.topic_id, partition.index]
        return True

    def changed(self, partition: Partition) -> None:
        """Our log begins somewhere else: the leader wants to know."""
        copying = self._copying.get(partition)
        if copying is not None and copying.told:
            self._wish(partition)

    def ask_again(self) -> None:
        """A partition that was held back may be asked for."""
        self._schedule()

    def is_idle(self) -> bool:
        """Nothing to copy."""
        return not self._copying

    def stop(self) -> None:
        """Give up."""
        self._stopped = True
        self._copying.clear()
        if self._pause is not None:
            self._pause.cancel()
        if self._peer is not None:
            self._peer.close()

    # --- wishes -------------------------------------------------------------------------------------------------------

    def _wish(self, partition: Partition) -> None:
        self._wishes[partition] = None
        self._schedule()

    def _wish_again(self, partition: Partition) -> None:
        """After something that the disk may have refused: then it is no longer copied."""
        if partition in self._copying:
            self._wish(partition)

    def _forget(self, partition: Partition, copying: Copying) -> None:
        """The leader need not say anything of it for now."""
        if copying.told:
            copying.told = NOT_TOLD
            self._forgotten[partition.topic_id, partition.index] = None
        self._wishes.pop(partition, None)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Ask at the end of the turn, behind the commit of what was staged in it."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.at_turn_end(self._ask)

    def _ask(self) -> None:
        self._scheduled = False
        now = self._loop.clock.monotonic()
        if self._stopped or self._under_way >= (MAX_UNDER_WAY if self._session_id else 1):
            return  # an answer schedules the next request
        if self._not_before > now:
            self._wake_at(self._not_before)
            return
        self._end_pauses(now)
        wanted = [p for p in self._wishes if not p.queues.dirty and (not p.state.settings.is_durable or p.is_synced())]
        if len(wanted) < len(self._wishes) and any(partition.queues.dirty for partition in self._wishes):
            self._schedule()  # their commit comes later in this turn; the code that waits for the disk calls `ask_again`
        if wanted or (self._session_id and not self._under_way):
            self._send(wanted)

    def _end_pauses(self, now: float) -> None:
        until = None
        for partition in list(self._paused):
            not_before = self._copying[partition].not_before
            if not_before <= now:
                del self._paused[partition]
                self._wishes[partition] = None
            else:
                until = min(not_before, until or not_before)
        if until is not None:
            self._wake_at(until)

    def _wake_at(self, when: float) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._pause = self._loop.call_later(when - self._loop.clock.monotonic(), self._schedule)

    def _send(self, wanted: list[Partition]) -> None:
        peer = self._connection()
        if peer is None:
            self._begin_anew()
            self._pause_all()
            self._schedule()
            return
        self._requests += 1
        number = self._requests
        request = self._request(wanted)
        self._under_way += 1
        if self._session_id:
            self._epoch = next_epoch(self._epoch)
        timeout_s = CALL_TIMEOUT_S + request.max_wait_ms / 1000
        peer.call(request, FETCH_VERSION, timeout_s).then(lambda answer: self._answered(number, answer))

    def _connection(self) -> Peer | None:
        """Our own connection to the leader, where the leader is now."""
        peers = self._replicas.peers
        peer = self._peer
        if peer is not None and peer.address != peers.address(self._leader_id):
            self._peer = None
            peer.close()
        if self._peer is None:
            self._peer = peers.dedicated(self._leader_id)
        return self._peer

    def _request(self, wanted: list[Partition]) -> FetchRequest:
        settings = self._replicas.configuration.settings
        topics: dict[UUID, list[FetchPartition]] = {}
        for partition in wanted:
            del self._wishes[partition]
            self._forgotten.pop((partition.topic_id, partition.index), None)
            copying, log = self._copying[partition], partition.log
            copying.told = self._requests
            topics.setdefault(partition.topic_id, []).append(
                FetchPartition(
                    partition=partition.index,
                    current_leader_epoch=copying.leader_epoch,
                    fetch_offset=log.end_offset,
                    last_fetched_epoch=log.epochs.latest(),
                    log_start_offset=log.start_offset,
                    partition_max_bytes=settings.replica_fetch_max_bytes,
                )
            )
        begins = self._epoch == INITIAL_EPOCH
        return FetchRequest(
            replica_state=ReplicaState(self._replicas.broker_id, self._replicas.broker_epoch()),
            max_wait_ms=0 if begins else settings.replica_fetch_wait_max_ms,
            min_bytes=1,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=tuple(FetchTopic(topic_id=topic_id, partitions=tuple(rows)) for topic_id, rows in topics.items()),
            forgotten_topics_data=() if begins else self._take_forgotten(),
        )

    def _take_forgotten(self) -> tuple[ForgottenTopic, ...]:
        topics: dict[UUID, list[int]] = {}
        for topic_id, index in self._forgotten:
            topics.setdefault(topic_id, []).append(index)
        self._forgotten.clear()
        return tuple(ForgottenTopic(topic_id=topic_id, partitions=tuple(rows)) for topic_id, rows in topics.items())

    # --- answers ------------------------------------------------------------------------------------------------------

    def _answered(self, number: int, answer: Future[Any]) -> None:
        self._under_way -= 1
        if self._stopped or number <= self._void_until:
            if not self._stopped:
                self._schedule()
            return
        if answer.error is not None or answer.result().error_code != ErrorCode.NONE:
            self._begin_anew()
            self._pause_all()
        else:
            self._pause_s = 0.0
            try:
                self._follow_session(answer.result())
                self._take_all(number, answer.result())
            except Exception:  # noqa: BLE001 - a bug
                _log.exception("an answer of broker %d could not be taken", self._leader_id)
                self._begin_anew()
                self._pause_all()
        self._schedule()

    def _take_all(self, number: int, response: FetchResponse) -> None:
        """What the answer to request `number` says of partitions."""
        raise NotImplementedError

    def _follow_session(self, response: FetchResponse) -> None:
        if self._session_id != NO_SESSION:
            return
        if response.session_id == NO_SESSION:  # it keeps none: each request says everything, and does not wait
            self._pause_all()
            self._wishes.update(dict.fromkeys(p for p, copying in self._copying.items() if copying.told))
        else:
            self._session_id, self._epoch = response.session_id, next_epoch(INITIAL_EPOCH)

    def _begin_anew(self) -> None:
        """The session is over, if there was one: all that we want has to be told again, and late answers are void."""
        self._session_id, self._epoch = NO_SESSION, INITIAL_EPOCH
        self._void_until = self._requests
        self._forgotten.clear()
        for partition, copying in self._copying.items():
            if copying.told:
                copying.told = NOT_TOLD
                self._wishes[partition] = None

    # --- pauses -------------------------------------------------------------------------------------------------------

    def _pause_all(self) -> None:
        self._pause_s = min(max(FIRST_PAUSE_S, self._pause_s * 2), LAST_PAUSE_S)
        self._not_before = self._loop.clock.monotonic() + self._pause_s

    def _pause_one(self, partition: Partition, copying: Copying) -> None:
        copying.pause_s = min(max(FIRST_PAUSE_S, copying.pause_s * 2), LAST_PAUSE_S)
        self._hold_back(partition, copying, copying.pause_s)

    def _hold_back(self, partition: Partition, copying: Copying, seconds: float) -> None:
        """Want nothing of it for so long."""
        self._forget(partition, copying)
        copying.not_before = self._loop.clock.monotonic() + seconds
        self._paused[partition] = None
        self._schedule()
