"""Which replica a consumer should read from: one in its rack, if there is one in sync (KIP-392). Pure.

As Kafka's RackAwareReplicaSelector: the leader where it is in the consumer's rack, or where nobody is; else of the
in-sync replicas of the rack that have the offset the one with the longest log, then the one that was caught up last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

THE_LEADER = -1


class Follower(Protocol):
    """What the leader knows of a replica (`remote_replica.RemoteReplica`)."""

    broker_id: int
    log_start_offset: int
    log_end_offset: int
    caught_up_at: float  # seconds, monotonic


class Led(Protocol):
    """A partition that we lead (`partition_state.PartitionState`)."""

    @property
    def isr(self) -> Container[int]: ...

    def remotes(self) -> Iterable[Follower]: ...


def preferred_replica(
    partition: Led, offset: int, rack: str, own_rack: str | None, rack_of: Callable[[int], str | None]
) -> int:
    """For a partition that we lead: the broker to read `offset` from; -1: us. `rack_of` knows live brokers only."""
    if not rack or own_rack == rack:
        return THE_LEADER
    candidates = [
        (remote.log_end_offset, remote.caught_up_at, remote.broker_id)
        for remote in partition.remotes()
        if remote.broker_id in partition.isr
        and remote.log_start_offset <= offset <= remote.log_end_offset
        and rack_of(remote.broker_id) == rack
    ]
    return max(candidates)[2] if candidates else THE_LEADER
