"""What a leader knows of one follower: how far it is, since when it keeps up, and whether it may join the ISR. Pure."""

from __future__ import annotations

UNKNOWN_OFFSET = -1
NEVER = float("-inf")


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
        self.reset(NEVER)

    def reset(self, caught_up_at: float) -> None:
        """A new epoch of ours begins: its log is unknown again."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = -1
        self.caught_up_at = caught_up_at
        self._fetched_at = NEVER
        self._leader_end_at_fetch = 0
        self._refused_until = NEVER

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

    def begins_at(self, log_start_offset: int) -> bool:
        """Its log begins there, it says. Returns whether that is news."""
        is_news, self.log_start_offset = log_start_offset != self.log_start_offset, log_start_offset
        return is_news

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
