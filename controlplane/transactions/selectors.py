"""Reading transactions, within an organisation.

A list is two rounds: which ids there are, and how those on the page stand. For one, the leaders of its
partitions are asked as well: where it begins, and whether it is the first that is open there. That is where readers at
read_committed stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.kafka import transactions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.kafka.flexible import Place
    from controlplane.kafka.transaction_bytes import Transaction
    from controlplane.tenants.models import Organisation

SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class PartitionOf:
    """A partition of a transaction. None is what is not known: its leader does not say, or nothing is written there yet."""

    topic: str
    partition: int
    first_offset: int | None  # of the transaction's
    holds_back: bool | None  # whether it is the last stable offset of the partition


@dataclass(frozen=True, slots=True)
class TransactionSummary:
    """A transaction in a list."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_at: datetime | None  # None: none has begun since the id was initialised
    open_seconds: float | None  # None: none is open

    @property
    def timeout_seconds(self) -> float:
        """After which an open one is aborted."""
        return self.timeout_ms / SECOND_MS


@dataclass(frozen=True, slots=True)
class TransactionView(TransactionSummary):
    """A transaction with its partitions."""

    partitions: tuple[PartitionOf, ...]

    @property
    def is_ongoing(self) -> bool:
        """Whether it can be ended: whether it is committed or aborted is not decided yet."""
        return self.state == transactions.ONGOING


def transactional_ids(
    *, organisation: Organisation, instance_id: str, state: str | None = None, open_seconds: int | None = None
) -> list[str]:
    """Sorted; in this state, or open for longer than that. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    states = () if state is None else (state,)
    if open_seconds is None:
        return transactions.list_all(instance.cluster.address, instance.id, states=states)
    still = [each for each in transactions.OPEN if state in (None, each)]
    if not still:  # of what has ended, nothing is open
        return []
    return transactions.list_all(
        instance.cluster.address, instance.id, states=still, open_for_ms=SECOND_MS * open_seconds
    )


def transaction_summaries(
    *, organisation: Organisation, instance_id: str, transactional_ids: Sequence[str], clock: Clock = SYSTEM_CLOCK
) -> list[TransactionSummary]:
    """These, which may be those of one page. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    found = transactions.read(instance.cluster.address, instance.id, transactional_ids)
    return [_summary(each, clock) for each in found]


def transaction_get(
    *, organisation: Organisation, instance_id: str, transactional_id: str, clock: Clock = SYSTEM_CLOCK
) -> TransactionView:
    """One with its partitions. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    found = transactions.get(instance.cluster.address, instance.id, transactional_id)
    try:
        starts = transactions.open_producers(instance.cluster.address, instance.id, found.partitions)
    except Unavailable:  # the rest is known
        starts = {}
    summary = _summary(found, clock)
    return TransactionView(
        **{field: getattr(summary, field) for field in TransactionSummary.__dataclass_fields__},
        partitions=tuple(_partition(place, found.producer_id, starts.get(place)) for place in found.partitions),
    )


def _summary(found: Transaction, clock: Clock) -> TransactionSummary:
    started = datetime.fromtimestamp(found.started_ms / SECOND_MS, UTC) if found.started_ms > 0 else None
    is_open = started is not None and found.state in transactions.OPEN
    return TransactionSummary(
        found.transactional_id,
        found.state,
        found.producer_id,
        found.producer_epoch,
        found.timeout_ms,
        started,
        max(0.0, round((clock.now() - started).total_seconds(), 1)) if is_open and started is not None else None,
    )


def _partition(place: Place, producer_id: int, starts: Mapping[int, int] | None) -> PartitionOf:
    if starts is None:
        return PartitionOf(*place, None, None)
    first = starts.get(producer_id)
    return PartitionOf(*place, first, first is not None and first == min(starts.values()))
