"""Throttled replication (KIP-73): replicas on their way to other brokers leave bandwidth to everybody else.

What is throttled is named by the topic, `leader.replication.throttled.replicas` for the side that sends and
`follower.replication.throttled.replicas` for the side that copies: `partition:broker` pairs, or `*`. How much all of
them together get is the broker's `leader.` and `follower.replication.throttled.rate`, in bytes a second; both can be
set while brokers run.

Only a replica that is not in sync is held back. One that is in the ISR is what acks=all waits for: its traffic is
neither delayed nor counted here, however it is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quota.core.bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.cluster.metadata import Metadata
    from dataplane.config import BrokerConfig
    from dataplane.doors import Clock
    from dataplane.replication.replica.partition import Partition

UNLIMITED = 2**63 - 1
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


def names(value: str, partition: int, broker: int) -> bool:
    """Whether a list of throttled replicas has this one."""
    return value.strip() == "*" or f"{partition}:{broker}" in [pair.strip() for pair in value.split(",")]


class Throttles:
    """Both directions of one broker."""

    def __init__(self, config: BrokerConfig, metadata: Metadata, clock: Clock) -> None:
        self._broker_id = config.id
        self._metadata = metadata
        self._clock = clock
        now = clock.monotonic()
        self._sent, self._copied = TokenBucket(None, now), TokenBucket(None, now)
        self.take_settings(config)

    def take_settings(self, config: BrokerConfig) -> None:
        """The rates may be others."""
        now, settings = self._clock.monotonic(), config.settings
        self._sent.set_rate(_rate(settings.leader_replication_throttled_rate), now)
        self._copied.set_rate(_rate(settings.follower_replication_throttled_rate), now)

    def named(self, index: int, overrides: Mapping[str, str]) -> tuple[bool, bool]:
        """Whether a topic throttles its replica here of this index as a leader, and as a follower."""
        sending, copying = overrides.get(LEADER_REPLICAS, ""), overrides.get(FOLLOWER_REPLICAS, "")
        return names(sending, index, self._broker_id), names(copying, index, self._broker_id)

    # --- sending, as the leader -----------------------------------------------------------------------------------------

    def sending_delay(self, partition: Partition, follower: int) -> float:
        """Seconds until a follower may get more of a partition that throttles; 0.0: now."""
        return 0.0 if follower in partition.state.isr else self._sent.delay(self._clock.monotonic())

    def sent(self, partition: Partition, follower: int, size: int) -> None:
        """A follower gets so many bytes of it."""
        if follower not in partition.state.isr:
            self._sent.charge(size, self._clock.monotonic())

    # --- copying, as a follower -----------------------------------------------------------------------------------------

    def copied(self, partition: Partition, size: int) -> float:
        """So many bytes came of a partition that throttles. Seconds to wait before asking for more; 0.0: none."""
        return 0.0 if self._is_in_sync(partition) else self._copied.charge(size, self._clock.monotonic())

    def _is_in_sync(self, partition: Partition) -> bool:
        """By the metadata, which are told of every change: a follower's own words from the controller are older."""
        known = self._metadata.partition(partition.topic, partition.index)
        return known is not None and self._broker_id in known.isr


def _rate(setting: int) -> int | None:
    return None if setting == UNLIMITED else setting
