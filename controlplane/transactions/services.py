"""Ending a transaction on a tenant's behalf: its coordinator does it, or where none knows it the partition's leader.

This adds whose it is, and the audit trail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core import audit
from controlplane.instances.selectors import instance_running_get
from controlplane.kafka import hanging, transactions
from controlplane.transactions.selectors import IDLE_S, can_hang

if TYPE_CHECKING:
    from controlplane.tenants.models import Organisation

MOST_TARGET = 320
"""Characters of an audit entry's target. A transactional id may be longer; the detail has it whole."""


def transaction_end(*, organisation: Organisation, actor: str, instance_id: str, transactional_id: str) -> None:
    """Abort what is open, and fence its producer. Raises NotFound, Conflict (transaction_not_open), ClusterUnavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    ended = transactions.end(instance.cluster.address, instance.id, transactional_id)
    audit.record(
        organisation=organisation,
        actor=actor,
        action="transaction.end",
        target=f"{instance.id}/transactions/{transactional_id}"[:MOST_TARGET],
        detail={
            "transactional_id": transactional_id,
            "producer_id": ended.producer_id,
            "producer_epoch": ended.producer_epoch,
            "partitions": len(ended.partitions),
        },
    )


def hanging_transaction_end(
    *, organisation: Organisation, actor: str, instance_id: str, topic: str, partition: int, offset: int
) -> None:
    """Abort what hangs in a partition from this offset on. Raises NotFound, Conflict, ClusterUnavailable.

    Whether it hangs is asked once more: to abort what a coordinator knows would tear a transaction apart.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    if not can_hang(topic, partition, offset):
        raise hanging.missing(topic, partition, offset)
    ended = hanging.end(instance.cluster.address, instance.id, topic, partition, offset, idle_s=IDLE_S)
    audit.record(
        organisation=organisation,
        actor=actor,
        action="transaction.end_hanging",
        target=f"{instance.id}/topics/{topic}"[:MOST_TARGET],
        detail={
            "topic": topic,
            "partition": partition,
            "first_offset": offset,
            "producer_id": ended.producer.producer_id,
            "producer_epoch": ended.producer.producer_epoch,
        },
    )
