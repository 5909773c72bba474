"""What this broker is to a partition: its role, the epochs, who is in sync, and what is committed. A pure state machine.

Vocabulary. LEO: log end offset, the offset the next batch gets. ISR: the replicas that have what the leader has, as the
controller last confirmed. High watermark: every offset below it is on all of the ISR: it is committed, consumers may
see it, and no election from the ISR loses it. Last stable offset: below it no transaction is open (`partition` knows).

                  become_leader                       become_follower
    no role yet ───────────────> leader <───────────────────────────────> follower
                                   │ resign: the replica goes                 │
                                   └──────── fail: its log is lost until the next start ──> offline, for good

Rules, and the losses they rule out:

* The high watermark is the smallest LEO of the *maximal* ISR, and only moves forward while we lead. Maximal: while a
  change of the ISR is proposed and not confirmed, the larger of the two counts, since either may be in force (KIP-497).
* It also waits for a live replica that is about to join. Under steady load a follower's LEO is always a little behind a
  high watermark that runs with the leader, and it would never be let in.
* It does not move while the confirmed ISR is smaller than `min.insync.replicas` (KIP-966): what only the last replica
  standing has may be gone after its next power cut, and nobody may have read it. Nor while the controller says that
  others are eligible: they have what is committed until then, and may be elected.
* A follower may join when its LEO has reached the high watermark *and* the offset at which our epoch began: before that
  nobody knows that it holds what the former leader committed.
* A new leader knows nothing of its followers (LEO -1) until they fetch in its epoch.

No clock and no log here: seconds of monotonic time are arguments called `now`, and where our own log begins and ends is
said by the caller (`partition.Partition`), which has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.replica.remote_replica import (
    NEVER,
    UNKNOWN_OFFSET,
    RemoteReplica,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dataplane.protocol.messages.control import AlterPartitionResponsePartitionData, LeaderAndIsrPartitionState
    from dataplane.records.preparation import Rules

NO_LEADER = -1
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


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """What is configured for a partition; replaced whole when its topic's configuration, or the broker's, changes."""

    min_insync_replicas: int = 1
    max_message_bytes: int = 2**31 - 1
    rules: Rules | None = None
    """What is asked of producers' records before they are appended."""
    flush_after: int | None = None
    """So many offsets that are not on disk are forced there; None: it does not matter."""
    is_durable: bool = False
    """Only what is on disk counts (see `upkeep.syncing`)."""
    throttles_sending: bool = False
    """To a follower that is not in sync (see `throttling`)."""
    throttles_copying: bool = False
    """From the leader, while we are not in sync."""


class PartitionState:
    """See the module. Others read its attributes and call its methods; nobody else assigns them."""

    __slots__ = (
        "_followers",
        "_maximal_isr",
        "_no_proposal_before",
        "_rules",
        "epoch_start_offset",
        "high_watermark",
        "is_leader",
        "is_offline",
        "isr",
        "last_stable_offset",
        "leader_epoch",
        "leader_high_watermark",
        "leader_id",
        "others_eligible",
        "partition_epoch",
        "proposed_isr",
        "replicas",
        "settings",
    )

    def __init__(self, rules: ReplicaRules, high_watermark: int) -> None:
        self._rules = rules
        self.settings = PartitionSettings()
        self.is_leader = False
        self.is_offline = False  # the log failed: no more reads and writes until the broker starts anew
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = UNKNOWN_OFFSET
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.others_eligible = False  # a replica outside the ISR may be elected, as it has all that is committed
        self.proposed_isr: tuple[int, ...] | None = None
        self._maximal_isr: tuple[int, ...] = ()
        self._no_proposal_before = NEVER
        self._followers: dict[int, RemoteReplica] = {}  # in the order of the replicas; empty where we follow
        # Of the second, -1: nobody has asked yet, and until then it is not known. An attribute, for fetches ask each time.
        self.high_watermark = self.last_stable_offset = high_watermark
        self.leader_high_watermark = -1  # as the leader's last answer said; ours follows when the bytes are here

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else f"follower of {self.leader_id}"
        return f"{role} epoch {self.leader_epoch} isr {self.isr} hw {self.high_watermark}"

    def configure(self, settings: PartitionSettings) -> None:
        """What is configured is this from here on."""
        self.settings = settings

    # --- roles --------------------------------------------------------------------------------------------------------

    def begins_epoch(self, given: LeaderAndIsrPartitionState) -> bool:
        """Whether leading as `given` says would begin an epoch in our log."""
        return given.leader_epoch > self.leader_epoch or not self.is_leader

    def become_leader(self, given: LeaderAndIsrPartitionState, end_offset: int, now: float) -> None:
        """Lead from here on, with a log that ends at `end_offset`. `advance` says what is committed by that."""
        if self.begins_epoch(given):
            self.epoch_start_offset = end_offset
        self._adopt(given)
        self.is_leader = True
        followers = {}
        for broker_id in given.replicas:
            if broker_id != self._rules.broker_id:
                follower = followers[broker_id] = self._followers.get(broker_id) or RemoteReplica(broker_id)
                follower.reset(now if broker_id in given.isr else NEVER)
        self._followers = followers

    def become_follower(self, given: LeaderAndIsrPartitionState) -> None:
        """Follow `given.leader`. Its log decides what of ours is kept: the fetcher truncates where epochs differ."""
        self._adopt(given)
        self.is_leader = False
        self._followers = {}
        self.leader_high_watermark = -1

    def resign(self) -> bool:
        """Stop leading, and follow nobody. Returns whether we led."""
        led, self.is_leader = self.is_leader, False
        return led

    def fail(self) -> bool:
        """The log is lost to us until the next start. Returns whether we led."""
        self.is_offline = True
        return self.resign()

    def adopt_isr(self, isr: tuple[int, ...], partition_epoch: int, *, others_eligible: bool) -> None:
        """The controller's latest word within the epoch."""
        self.isr = self._maximal_isr = isr
        self.others_eligible = others_eligible
        self.partition_epoch = partition_epoch
        self.proposed_isr = None

    def _adopt(self, given: LeaderAndIsrPartitionState) -> None:
        self.leader_id = given.leader
        self.leader_epoch = given.leader_epoch
        self.replicas = given.replicas
        self.adopt_isr(given.isr, given.partition_epoch, others_eligible=bool(given.leader_recovery_state))

    # --- followers ----------------------------------------------------------------------------------------------------

    def remote(self, broker_id: int) -> RemoteReplica | None:
        """A follower, where we lead and it is one."""
        return self._followers.get(broker_id)

    def remotes(self) -> Iterable[RemoteReplica]:
        """All followers, where we lead."""
        return self._followers.values()

    def others_in_sync(self) -> tuple[int, ...]:
        """Whom a controller might elect in our place: of the larger ISR, since either may be in force."""
        return tuple(broker_id for broker_id in self._maximal_isr if broker_id != self._rules.broker_id)

    def follower_fetched(
        self, broker_id: int, offset: int, end_offset: int, now: float, broker_epoch: int = -1
    ) -> bool:
        """A follower fetched from `offset`, while our log ends at `end_offset`. Returns whether it is somewhere else."""
        follower = self._followers.get(broker_id)
        if follower is None:
            return False
        before = follower.log_end_offset
        follower.fetched(offset, end_offset, now, broker_epoch)
        return offset != before

    def low_watermark(self, start_offset: int) -> int:
        """Where the log begins on every live replica (ours at `start_offset`): what lies before is gone for good."""
        starts = [f.log_start_offset for f in self._followers.values() if self._rules.is_alive(f.broker_id)]
        return min([start_offset, *starts])

    # --- what is committed --------------------------------------------------------------------------------------------

    def hold_back(self, stable_offset: int) -> None:
        """After the high watermark moved, which counts as the last stable offset, too: that is here, or unknown."""
        self.last_stable_offset = stable_offset

    def advance(self, counted_end: int, end_offset: int, now: float) -> bool:
        """Move the high watermark as far as it may go. Returns whether it moved. For a leader.

        Our log ends at `end_offset`, and counts up to `counted_end`: less, where only what is on disk counts.
        """
        if self.others_eligible or not self.has_enough_replicas():
            return False
        lowest = counted_end
        for follower in self._followers.values():
            if follower.log_end_offset < lowest and (
                follower.broker_id in self._maximal_isr or self._is_about_to_join(follower, end_offset, now)
            ):
                lowest = follower.log_end_offset
        if lowest <= self.high_watermark:
            return False
        self.high_watermark = self.last_stable_offset = lowest
        return True

    def hear_high_watermark(self, offset: int) -> None:
        """The leader that we follow has said where its own is."""
        self.leader_high_watermark = offset

    def follow_high_watermark(self, end_offset: int) -> bool:
        """A follower's high watermark: the leader's, as far as our log goes. Returns whether it moved."""
        offset = min(self.leader_high_watermark, end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = self.last_stable_offset = offset
        return True

    def truncated(self, start_offset: int, end_offset: int) -> None:
        """The log was cut or reset: the high watermark cannot be outside it."""
        self.high_watermark = max(start_offset, min(self.high_watermark, end_offset))
        self.last_stable_offset = self.high_watermark
        self.leader_high_watermark = -1

    def _is_about_to_join(self, follower: RemoteReplica, end_offset: int, now: float) -> bool:
        rules = self._rules
        return (
            follower.log_end_offset >= 0
            and follower.may_be_proposed()
            and rules.is_alive(follower.broker_id)
            and follower.is_caught_up(end_offset, now, rules.lag_time_max_s)
        )

    # --- the ISR ------------------------------------------------------------------------------------------------------

    def isr_with(self, broker_id: int, now: float) -> tuple[int, ...] | None:
        """The ISR to propose because of a follower's progress; None where it may not join, or has."""
        if broker_id in self.isr or self.proposed_isr is not None or now < self._no_proposal_before:
            return None
        follower = self._followers.get(broker_id)
        if follower is None:
            return None
        has_all = follower.log_end_offset >= max(self.high_watermark, self.epoch_start_offset)
        return (*self.isr, broker_id) if has_all and self._rules.is_alive(broker_id) else None

    def isr_without_laggards(self, end_offset: int, now: float) -> tuple[int, ...] | None:
        """The ISR to propose because of the time that has passed; None where everybody keeps up."""
        if not self.is_leader or self.proposed_isr is not None or now < self._no_proposal_before:
            return None
        limit = self._rules.lag_time_max_s
        laggards = [
            f.broker_id
            for f in self._followers.values()
            if f.broker_id in self.isr and not f.is_caught_up(end_offset, now, limit)
        ]
        return tuple(b for b in self.isr if b not in laggards) if laggards else None

    def propose(self, isr: tuple[int, ...]) -> None:
        """A change is on its way to the controller. Until it is decided, a replica in either ISR counts."""
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
                for follower in self._followers.values():
                    if follower.broker_id in self.proposed_isr and follower.broker_id not in self.isr:
                        follower.refused(self._no_proposal_before)
            self._withdraw_proposal()
            return False
        return code not in _OUTDATED

    def _withdraw_proposal(self) -> None:
        self.adopt_isr(self.isr, self.partition_epoch, others_eligible=self.others_eligible)

    def has_enough_replicas(self) -> bool:
        """Whether acks=all may be acknowledged: by the confirmed ISR, not by one that is only proposed."""
        in_sync = len(self.isr)
        # As in Kafka all there are will do: a topic of one replica would never take anything.
        return in_sync >= self.settings.min_insync_replicas or in_sync >= len(self.replicas)
