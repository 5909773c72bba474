"""Reading transactions, within an organisation.

A list is two rounds: which ids there are, and how those on the page stand. For one, the leaders of its
partitions are asked as well: where it begins, and whether it is the first that is open there. That is where readers at
read_committed stand.

Transactions that hang are looked for in all partitions of the instance when somebody asks, not on every look at the list: each
leader has to say who writes to each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.kafka import hanging, topics, transactions
from quota.contracts.namespace import topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.instances.models import Instance
    from controlplane.kafka.flexible import Place
    from controlplane.kafka.transaction_bytes import Transaction
    from controlplane.tenants.models import Organisation

SECOND_MS = 1000
IDLE_S = 900
"""As `kafka-transactions find-hanging` has it: no transaction may be open for longer, unless brokers are told otherwise."""
LEAST_TOO_MANY, NO_OFFSET = 2**31, 2**63
"""No partition has this number, and no record this offset: they do not fit into a request."""


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
    return transaction_view(instance, transactions.get(instance.cluster.address, instance.id, transactional_id), clock)


def transaction_view(instance: Instance, found: Transaction, clock: Clock) -> TransactionView:
    """The same of one that is known already: where it begins in its partitions is asked for."""
    try:
        starts = transactions.open_producers(instance.cluster.address, instance.id, found.partitions)
    except Unavailable:  # the rest is known
        starts = {}
    summary = _summary(found, clock)
    return TransactionView(
        **{field: getattr(summary, field) for field in TransactionSummary.__dataclass_fields__},
        partitions=tuple(_partition(place, found.producer_id, starts.get(place)) for place in found.partitions),
    )


@dataclass(frozen=True, slots=True)
class HangingView:
    """A transaction that no coordinator knows, in one partition."""

    topic: str
    partition: int
    first_offset: int
    producer_id: int
    producer_epoch: int
    written_at: datetime  # the last that came of it
    idle_seconds: float
    holds_back: bool  # whether readers at read_committed stand at it

    @property
    def key(self) -> str:
        """By which it is sorted."""
        return f"{self.topic} {self.partition:010} {self.first_offset:020}"


@dataclass(frozen=True, slots=True)
class HangingViews:
    """Those of an instance, and of how many partitions no leader said anything."""

    found: list[HangingView]
    unknown_partitions: int


def hanging_transactions(
    *, organisation: Organisation, instance_id: str, idle_seconds: int = IDLE_S, clock: Clock = SYSTEM_CLOCK
) -> HangingViews:
    """Of producers that have written nothing for so long, sorted by partition. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    there = topics.list_all(instance.cluster.address, instance.id)
    places = [(topic.name, each.partition) for topic in there for each in topic.layout]
    seen = hanging.look(instance.cluster.address, instance.id, places, idle_s=idle_seconds, clock=clock)
    views = [hanging_view(each, clock) for each in seen.found]
    return HangingViews(sorted(views, key=lambda view: view.key), seen.unknown)


def hanging_transaction_get(
    *,
    organisation: Organisation,
    instance_id: str,
    topic: str,
    partition: int,
    offset: int,
    clock: Clock = SYSTEM_CLOCK,
) -> HangingView:
    """The one that begins at this offset. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    if not can_hang(topic, partition, offset):
        raise hanging.missing(topic, partition, offset)
    address, places = instance.cluster.address, [(topic, partition)]
    seen = hanging.look(address, instance.id, places, idle_s=IDLE_S, clock=clock)
    for each in seen.found:
        if each.producer.first_offset == offset:
            return hanging_view(each, clock)
    raise hanging.missing(topic, partition, offset)


def can_hang(topic: str, partition: int, offset: int) -> bool:
    """Whether a cluster can be asked about it."""
    return topic_name_problem(topic) is None and partition < LEAST_TOO_MANY and offset < NO_OFFSET


def hanging_view(found: hanging.HangingTransaction, clock: Clock) -> HangingView:
    """As it is shown."""
    producer = found.producer
    written = datetime.fromtimestamp(producer.written_ms / SECOND_MS, UTC)
    return HangingView(
        found.topic,
        found.partition,
        producer.first_offset,
        producer.producer_id,
        producer.producer_epoch,
        written,
        max(0.0, round((clock.now() - written).total_seconds(), 1)),
        found.holds_back,
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
