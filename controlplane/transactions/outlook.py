"""What ending a transaction would do: brokers are asked how it stands, and told nothing. What ending it raises is raised here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, OneMoment
from controlplane.core.dry_runs import Affected, affected
from controlplane.instances.selectors import instance_running_get
from controlplane.kafka import hanging, transactions
from controlplane.transactions.selectors import (
    IDLE_S,
    HangingView,
    PartitionOf,
    TransactionView,
    can_hang,
    hanging_view,
    transaction_view,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.tenants.models import Organisation

ENDED = "Empty"
"""The state in which an id is left: its producer has been fenced by beginning anew in its place."""
MOVES_ON = "readers at read_committed, which wait here now, would read on"


@dataclass(frozen=True, slots=True)
class Ending:
    """A transaction before and after it is ended."""

    before: TransactionView
    after: TransactionView
    problems: tuple[str, ...]
    affected: tuple[Affected, ...]


@dataclass(frozen=True, slots=True)
class HangingEnding:
    """One that hangs, which is gone then."""

    before: HangingView
    problems: tuple[str, ...]
    affected: tuple[Affected, ...]


def ending(*, organisation: Organisation, instance_id: str, transactional_id: str) -> Ending:
    """Of services.transaction_end. Raises NotFound, Conflict (transaction_not_open), ClusterUnavailable.

    The epoch with which the next producer begins is its coordinator's to choose, and not foretold.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    found = transactions.to_end(instance.cluster.address, instance.id, transactional_id)
    before = transaction_view(instance, found, OneMoment())
    after = replace(before, state=ENDED, started_at=None, open_seconds=None, partitions=())
    waited_at = (_place(each) for each in before.partitions if each.holds_back)
    return Ending(
        before,
        after,
        _unread(len(before.partitions)),
        (*_producer(before.producer_id, "fenced: it has to begin anew"), *affected("partitions", waited_at, MOVES_ON)),
    )


def ending_hanging(
    *, organisation: Organisation, instance_id: str, topic: str, partition: int, offset: int
) -> HangingEnding:
    """Of services.hanging_transaction_end. Raises NotFound, ClusterUnavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    if not can_hang(topic, partition, offset):
        raise hanging.missing(topic, partition, offset)
    found = hanging.to_end(instance.cluster.address, instance.id, topic, partition, offset, idle_s=IDLE_S)
    before = hanging_view(found, SYSTEM_CLOCK)
    waited_at: Iterable[str] = [_place(before)] if before.holds_back else []
    return HangingEnding(
        before,
        _unread(1),
        (
            *_producer(before.producer_id, "what it had open here would be aborted"),
            *affected("partitions", waited_at, MOVES_ON),
        ),
    )


def _place(row: PartitionOf | HangingView) -> str:
    return f"{row.topic} {row.partition}"


def _producer(producer_id: int, effect: str) -> tuple[Affected, ...]:
    return affected("producers", [str(producer_id)], effect)


def _unread(partitions: int) -> tuple[str, ...]:
    where = "1 partition" if partitions == 1 else f"{partitions} partitions"
    return (f"what the transaction has written to {where} would not be read at read_committed",) if partitions else ()
