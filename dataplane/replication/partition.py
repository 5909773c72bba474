"""One replica of a partition on this broker: its role, what it knows of the others, and what is committed.

Vocabulary. LEO: log end offset, the offset the next batch gets. ISR: the replicas that have what the leader has, as the
controller last confirmed. High watermark: every offset below it is on all of the ISR: it is committed, consumers may
see it, and no election from the ISR loses it.

Rules, and the losses they rule out:

* The high watermark is the smallest LEO of the *maximal* ISR, and only moves forward while we lead. Maximal: while a
  change of the ISR is proposed and not confirmed, the larger of the two counts, since either may be in force (KIP-497).
* It also waits for a live replica that is about to join. Under steady load a follower's LEO is always a little behind a
  high watermark that runs with the leader, and it would never be let in.
* It does not move while the confirmed ISR is smaller than `min.insync.replicas` (KIP-966): what only the last replica
  standing has may be gone after its next power cut, and nobody may have read it. Nor while the controller says that
  others are eligible: they have what is committed until then, and may be elected.
* Only bytes that are in the file count: the log's end moves in `appending.commit`.
* A follower may join when its LEO has reached the high watermark *and* the offset at which our epoch began: before that
  nobody knows that it holds what the former leader committed.
* A new leader knows nothing of its followers (LEO -1) until they fetch in its epoch; the log writes its epoch durably
  before the first batch of it (KIP-101).

No clock and no I/O here besides the log; seconds of monotonic time are arguments called `now`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.uncommitted import Uncommitted

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from dataplane.metering.usage import TopicUsage
    from dataplane.protocol.messages.control import AlterPartitionResponsePartitionData, LeaderAndIsrPartitionState
    from dataplane.records.preparation import Rules
    from dataplane.replication.waiting import AckWaiter, LowWatermarkWaiter, Watcher
    from dataplane.storage.log import Log

UNKNOWN_OFFSET = -1
NO_LEADER = -1
_NEVER = float("-inf")
_PAUSE_AFTER_REFUSAL_S = 1.0

_GIVE_UP = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The controller refused, and says that it has changed nothing: the old ISR is in force."""
_OUTDATED = frozenset(
    {
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
    }
)
"""We are behind: what is in force comes with the next LeaderAndIsr. Until then the larger ISR keeps counting."""


@dataclass(frozen=True, slots=True)
class ReplicaRules:
    """What all partitions of a broker have in common."""

    broker_id: int
    lag_time_max_s: float
    is_alive: Callable[[int], bool]
    """Whether a broker is registered, as far as we know: a dead one neither joins an ISR nor is waited for."""


class RemoteReplica:
    """What the leader knows of a follower. Times are seconds of the leader's monotonic clock."""

    __slots__ = (
        "_fetched_at",
        "_leader_end_at_fetch",
        "_refused_until",
        "broker_epoch",
        "broker_id",
        "caught_up_at",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.reset(_NEVER)

    def reset(self, caught_up_at: float) -> None:
        """A new epoch of ours begins: its log is unknown again."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = -1
        self.caught_up_at = caught_up_at
        self._fetched_at = _NEVER
        self._leader_end_at_fetch = 0
        self._refused_until = _NEVER

    def fetched(self, offset: int, leader_end: int, now: float, broker_epoch: int) -> None:
        """It asks for `offset`, so it has everything below.

        Reaching what was our end at its last fetch also counts as being caught up, as of that fetch: else nobody keeps
        up with a leader that is written to all the time.
        """
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self._leader_end_at_fetch:
            self.caught_up_at = max(self.caught_up_at, self._fetched_at)
        self.log_end_offset = offset
        self.broker_epoch = broker_epoch
        self._fetched_at = now
        self._leader_end_at_fetch = leader_end

    def kept_asking(self, until: float) -> None:
        """In a fetch session it had everything, and went on asking until then: nothing was said of this partition."""
        self.caught_up_at = max(self.caught_up_at, until)
        self._fetched_at = max(self._fetched_at, until)

    def refused(self, until: float) -> None:
        """The controller will not have it in the ISR. It may be proposed again then, if it still asks."""
        self._refused_until = until

    def may_be_proposed(self) -> bool:
        """Whether it has asked since the controller's last refusal was over: a broker that is leaving stops asking."""
        return self._fetched_at >= self._refused_until

    def is_caught_up(self, leader_end: int, now: float, lag_time_max_s: float) -> bool:
        """Whether it has everything, or had not long ago."""
        return self.log_end_offset == leader_end or now - self.caught_up_at <= lag_time_max_s


class Partition:
    """See the module. Waiters hang here so that an idle partition costs nothing; `waiting` and `manager` own them."""

    __slots__ = (
        "_by_id",
        "_maximal_isr",
        "_no_proposal_before",
        "_own_end",
        "_remotes",
        "_rules",
        "ack_waiters",
        "announced_bytes",
        "committed_bytes",
        "counted_bytes",
        "dirty",
        "epoch_start_offset",
        "flush_after",
        "high_watermark",
        "index",
        "instance_key",
        "is_durable",
        "is_leader",
        "is_offline",
        "isr",
        "leader_epoch",
        "leader_high_watermark",
        "leader_id",
        "log",
        "low_watermark_waiters",
        "max_message_bytes",
        "metadata_version",
        "min_insync_replicas",
        "others_eligible",
        "partition_epoch",
        "proposed_isr",
        "read_waiters",
        "replica_waiters",
        "replicas",
        "rules",
        "sync_calls",
        "throttles_copying",
        "throttles_sending",
        "topic",
        "topic_id",
        "turn_end_acks",
        "turn_end_calls",
        "uncommitted",
        "usage",
    )

    def __init__(self, topic: str, index: int, topic_id: UUID, log: Log, rules: ReplicaRules) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self._rules = rules
        self.is_leader = False
        self.is_offline = False  # the log failed: no more reads and writes until the broker starts anew
        self.metadata_version = -1  # of what the broker knew of the cluster when the replica came here
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = UNKNOWN_OFFSET
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.others_eligible = (
            False  # replicas that are not in the ISR may be elected, as they have all that is committed
        )
        self.proposed_isr: tuple[int, ...] | None = None
        self._maximal_isr: tuple[int, ...] = ()
        self._no_proposal_before = _NEVER
        self._remotes: tuple[RemoteReplica, ...] = ()
        self._by_id: dict[int, RemoteReplica] = {}
        self.high_watermark = log.start_offset
        self.leader_high_watermark = -1  # as the leader's last answer said; ours follows when the bytes are here
        self.min_insync_replicas = 1
        self.max_message_bytes = 2**31 - 1
        self.rules: Rules | None = None  # what is asked of producers' records before they are appended
        self.instance_key: str | None = None
        self.counted_bytes = 0  # of the log, as last added to the instance's storage
        self.dirty = False  # something is staged, or waits for the turn's commit
        self.turn_end_calls: list[Callable[[ErrorCode], None]] = []
        self.turn_end_acks: list[tuple[int, float, Callable[[ErrorCode], None]]] = []  # last offset, timeout, whom
        self.ack_waiters: deque[AckWaiter] = deque()
        self.read_waiters: dict[Watcher, None] = {}
        self.replica_waiters: dict[Watcher, None] = {}
        self.low_watermark_waiters: dict[LowWatermarkWaiter, None] = {}
        self.committed_bytes = 0  # of what we appended as the leader
        self.announced_bytes = 0  # of the committed ones, to fetches that wait
        self.uncommitted = Uncommitted()
        self._own_end = 0  # of the log, while we lead, as of the last append
        self.flush_after: int | None = None  # so many offsets that are not on disk; None: it does not matter
        self.is_durable = False  # only what is on disk counts (see `syncing`)
        self.sync_calls: list[
            tuple[int, list[Callable[[ErrorCode], None]]]
        ] = []  # end offset to be synced, whom to call
        self.throttles_sending = self.throttles_copying = False  # while a replica is not in sync (see `throttling`)
        self.usage: TopicUsage | None = None  # None: a topic of the cluster's own

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else f"follower of {self.leader_id}"
        return f"<{self.topic}-{self.index} {role} epoch {self.leader_epoch} isr {self.isr} hw {self.high_watermark}>"

    # --- roles --------------------------------------------------------------------------------------------------------

    def make_leader(self, state: LeaderAndIsrPartitionState, now: float) -> bool:
        """Lead from here on. Returns whether the high watermark moved (it does when we are the whole ISR)."""
        if state.leader_epoch > self.leader_epoch or not self.is_leader:
            self.log.epochs.begin(state.leader_epoch, self.log.end_offset)
            self.epoch_start_offset = self.log.end_offset
        if not self.is_leader:
            self._own_end = self.log.end_offset
            self.announced_bytes = self.committed_bytes
        self._adopt(state)
        self.is_leader = True
        remotes = []
        for broker_id in state.replicas:
            if broker_id != self._rules.broker_id:
                remote = self._by_id.get(broker_id) or RemoteReplica(broker_id)
                remote.reset(now if broker_id in state.isr else _NEVER)
                remotes.append(remote)
        self._remotes = tuple(remotes)
        self._by_id = {remote.broker_id: remote for remote in remotes}
        return self.advance(now)

    def make_follower(self, state: LeaderAndIsrPartitionState) -> None:
        """Follow `state.leader`. Its log decides what of ours is kept: the fetcher truncates where epochs differ."""
        self._adopt(state)
        self.is_leader = False
        self._remotes = ()
        self._by_id = {}
        self.leader_high_watermark = -1

    def adopt_isr(self, isr: tuple[int, ...], partition_epoch: int, *, others_eligible: bool) -> None:
        """The controller's latest word within the epoch."""
        self.isr = self._maximal_isr = isr
        self.others_eligible = others_eligible
        self.partition_epoch = partition_epoch
        self.proposed_isr = None

    def _adopt(self, state: LeaderAndIsrPartitionState) -> None:
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.replicas = state.replicas
        self.adopt_isr(state.isr, state.partition_epoch, others_eligible=bool(state.leader_recovery_state))

    # --- what is committed --------------------------------------------------------------------------------------------

    def remote(self, broker_id: int) -> RemoteReplica | None:
        """A follower, where we lead and it is one."""
        return self._by_id.get(broker_id)

    def remotes(self) -> tuple[RemoteReplica, ...]:
        """All followers, where we lead."""
        return self._remotes

    def others_in_sync(self) -> tuple[int, ...]:
        """Whom a controller might elect in our place: of the larger ISR, since either may be in force."""
        return tuple(broker_id for broker_id in self._maximal_isr if broker_id != self._rules.broker_id)

    def update_follower(self, broker_id: int, offset: int, now: float, broker_epoch: int = -1) -> bool:
        """A follower fetched from `offset`. Returns whether the high watermark moved."""
        remote = self._by_id.get(broker_id)
        if remote is None:
            return False
        before = remote.log_end_offset
        remote.fetched(offset, self.log.end_offset, now, broker_epoch)
        return offset != before and self.advance(now)

    def low_watermark(self) -> int:
        """Where the log begins on every live replica: what lies before is gone for good. For a leader."""
        starts = [r.log_start_offset for r in self._remotes if self._rules.is_alive(r.broker_id)]
        return min([self.log.start_offset, *starts])

    def appended(self, size: int, now: float) -> bool:
        """The log's end moved by a commit of `size` bytes. Returns whether the high watermark moved."""
        start, self._own_end = self._own_end, self.log.end_offset
        self.uncommitted.appended(start, self._own_end, size, self.leader_epoch)
        return self.advance(now)

    def is_synced(self) -> bool:
        """Whether all that is written is on disk."""
        return self.log.recovery_point >= self.log.end_offset

    def copied(self, start: int) -> bool:
        """A follower's log has grown from `start` on. Returns whether the high watermark moved."""
        self.uncommitted.copied(self.log, start)
        return self.follow_high_watermark()

    def advance(self, now: float) -> bool:
        """Move the high watermark as far as it may go. Returns whether it moved. For a leader."""
        if self.others_eligible or not self.has_enough_replicas():
            return False
        lowest = self.log.recovery_point if self.is_durable else self.log.end_offset
        for remote in self._remotes:
            if remote.log_end_offset < lowest and (
                remote.broker_id in self._maximal_isr or self._is_about_to_join(remote, now)
            ):
                lowest = remote.log_end_offset
        return lowest > self.high_watermark and self._move(lowest)

    def follow_high_watermark(self) -> bool:
        """A follower's high watermark: the leader's, as far as our log goes. Returns whether it moved."""
        offset = min(self.leader_high_watermark, self.log.end_offset)
        return offset > self.high_watermark and self._move(offset)

    def truncated(self) -> None:
        """The log was cut or reset: the high watermark cannot be outside it."""
        self.high_watermark = max(self.log.start_offset, min(self.high_watermark, self.log.end_offset))
        self.leader_high_watermark = -1
        self.uncommitted.cut(self.log)

    def _move(self, offset: int) -> bool:
        self.high_watermark = offset
        if self.uncommitted:
            size = self.uncommitted.passed(offset, self.log)
            self.committed_bytes += size
            if size and self.usage is not None:
                self.usage.produced(size)
        return True

    def _is_about_to_join(self, remote: RemoteReplica, now: float) -> bool:
        rules = self._rules
        return (
            remote.log_end_offset >= 0
            and remote.may_be_proposed()
            and rules.is_alive(remote.broker_id)
            and remote.is_caught_up(self.log.end_offset, now, rules.lag_time_max_s)
        )

    # --- the ISR ------------------------------------------------------------------------------------------------------

    def isr_with(self, broker_id: int, now: float) -> tuple[int, ...] | None:
        """The ISR to propose because of a follower's progress; None where it may not join, or has."""
        if broker_id in self.isr or self.proposed_isr is not None or now < self._no_proposal_before:
            return None
        remote = self._by_id.get(broker_id)
        if remote is None:
            return None
        has_all = remote.log_end_offset >= max(self.high_watermark, self.epoch_start_offset)
        return (*self.isr, broker_id) if has_all and self._rules.is_alive(broker_id) else None

    def isr_without_laggards(self, now: float) -> tuple[int, ...] | None:
        """The ISR to propose because of the time that has passed; None where everybody keeps up."""
        if not self.is_leader or self.proposed_isr is not None or now < self._no_proposal_before:
            return None
        end, limit = self.log.end_offset, self._rules.lag_time_max_s
        laggards = [
            r.broker_id for r in self._remotes if r.broker_id in self.isr and not r.is_caught_up(end, now, limit)
        ]
        return tuple(b for b in self.isr if b not in laggards) if laggards else None

    def propose(self, isr: tuple[int, ...]) -> None:
        """A change is on its way to the controller. Until it is decided, whoever is in either ISR counts."""
        self.proposed_isr = isr
        self._maximal_isr = isr if len(isr) > len(self.isr) else self.isr

    def isr_answered(self, data: AlterPartitionResponsePartitionData, now: float) -> bool:
        """The controller's answer to our proposal. Returns whether to ask again."""
        code = data.error_code
        if self.proposed_isr is None or not self.is_leader:
            return False
        if code == ErrorCode.NONE:
            if data.leader_epoch == self.leader_epoch and data.partition_epoch > self.partition_epoch:
                self.adopt_isr(data.isr, data.partition_epoch, others_eligible=bool(data.leader_recovery_state))
            elif data.leader_epoch == self.leader_epoch and data.partition_epoch == self.partition_epoch:
                self._withdraw_proposal()  # it was so already
            return False
        if code in _GIVE_UP:
            self._no_proposal_before = now + _PAUSE_AFTER_REFUSAL_S
            if code == ErrorCode.INELIGIBLE_REPLICA:
                for remote in self._remotes:
                    if remote.broker_id in self.proposed_isr and remote.broker_id not in self.isr:
                        remote.refused(self._no_proposal_before)
            self._withdraw_proposal()
            return False
        return code not in _OUTDATED

    def _withdraw_proposal(self) -> None:
        self.adopt_isr(self.isr, self.partition_epoch, others_eligible=self.others_eligible)

    def has_enough_replicas(self) -> bool:
        """Whether acks=all may be acknowledged: by the confirmed ISR, not by one that is only proposed."""
        return len(self.isr) >= self._enough()

    def _enough(self) -> int:
        """As in Kafka no more than there are replicas: a topic of one replica would never take anything."""
        return min(self.min_insync_replicas, len(self.replicas))
