"""What can be tuned about groups: Kafka's settings of the same names (milliseconds, bytes)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.config import Settings


ASSIGNORS = ("uniform", "range")
"""Of the broker, for the consumer protocol: what there is (`consumer.assignors`), the default first."""


MOST_CHANGING = 100
"""Members of a group that changes its protocol: 0.14 ms each, in one turn of the loop."""


@dataclass(frozen=True, slots=True)
class ConsumerRules:
    """Of groups of the consumer protocol: group.consumer.*, with Kafka's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ASSIGNORS
    upgrades: bool = True  # a live group of the classic protocol becomes one of the consumer protocol
    downgrades: bool = True  # and back
    max_classic_size: int = 2**31 - 1  # of one that comes back
    max_changing: int = MOST_CHANGING  # members of a group that changes its protocol, which is worked out in one turn
    max_batch_bytes: int = 1_048_588  # of records that are appended together


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's defaults."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    groups_per_instance: int = 2**31 - 1  # in each partition of the offsets topic
    pending_bytes_per_instance: int = 2**63 - 1  # of offsets that wait for the end of their transactions
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
    consumer: ConsumerRules = field(default_factory=ConsumerRules)


def group_settings(settings: Settings) -> GroupSettings:
    """The part of a broker's settings that concerns groups."""
    return GroupSettings(
        group_min_session_timeout_ms=settings.group_min_session_timeout_ms,
        group_max_session_timeout_ms=settings.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        group_max_size=settings.group_max_size,
        groups_per_instance=settings.group_max_groups_per_instance,
        pending_bytes_per_instance=settings.transaction_offsets_bytes_per_instance,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        consumer=ConsumerRules(
            session_timeout_ms=settings.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
            max_size=settings.group_consumer_max_size,
            assignors=_assignors(settings.group_consumer_assignors),
            upgrades=settings.group_consumer_migration_policy in ("bidirectional", "upgrade"),
            downgrades=settings.group_consumer_migration_policy in ("bidirectional", "downgrade"),
            max_classic_size=settings.group_max_size,
            max_batch_bytes=settings.message_max_bytes,
        ),
    )


def _assignors(names: str) -> tuple[str, ...]:
    """Those that we have, in this order; all of them where none is named that we have."""
    known = tuple(name for name in map(str.strip, names.split(",")) if name in ASSIGNORS)
    return known or ASSIGNORS
