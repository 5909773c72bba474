"""What can be tuned about transactions: Kafka's settings of the same names, and limits of our own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.config import Settings


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's defaults."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 7 * 86_400_000
    max_partitions: int = 2_000  # of one transaction
    ids_per_instance: int = 2**31 - 1  # in each partition of the topic
    partitions_per_instance: int = 2**31 - 1  # of all its open transactions at this coordinator


def transaction_settings(settings: Settings) -> TransactionSettings:
    """The part of a broker's settings that concerns transactions."""
    return TransactionSettings(
        max_timeout_ms=settings.transaction_max_timeout_ms,
        id_expiration_ms=settings.transactional_id_expiration_ms,
        max_partitions=settings.transaction_max_partitions,
        ids_per_instance=settings.transactional_ids_per_instance,
        partitions_per_instance=settings.transaction_partitions_per_instance,
    )
