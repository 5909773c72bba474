"""The controller's state machines, as tables. A pair that is not in a table is a bug and raises.

A partition, from its assignment to its end:

    NEW        assigned to brokers; nobody has led it, it has no state node
    ONLINE     it has a leader
    OFFLINE    its leader is lost and no in-sync replica lives: the ISR stays as it was until one returns

A replica of a topic that is being deleted:

    DOOMED     its broker is to be told, or is away: a broker that returns is told again
    STOPPING   StopReplica is on its way
    REMOVED    the broker has confirmed; the topic's nodes go when every replica is here
"""

from __future__ import annotations

from enum import Enum, auto


class PartitionStatus(Enum):
    """Where a partition is in its life."""

    NEW = auto()
    ONLINE = auto()
    OFFLINE = auto()


class PartitionEvent(Enum):
    """What the controller decided about it."""

    LEADER_CHOSEN = auto()
    LEADER_LOST = auto()
    ISR_CHANGED = auto()


class DoomedReplica(Enum):
    """Where a replica is on its way out."""

    DOOMED = auto()
    STOPPING = auto()
    REMOVED = auto()


class DeletionEvent(Enum):
    """What has happened to the deletion of one replica."""

    TOLD = auto()
    CONFIRMED = auto()
    REFUSED = auto()  # the broker could not, for now
    BROKER_LOST = auto()


PARTITION: dict[tuple[PartitionStatus, PartitionEvent], PartitionStatus] = {
    (PartitionStatus.NEW, PartitionEvent.LEADER_CHOSEN): PartitionStatus.ONLINE,
    (PartitionStatus.ONLINE, PartitionEvent.LEADER_CHOSEN): PartitionStatus.ONLINE,
    (PartitionStatus.ONLINE, PartitionEvent.ISR_CHANGED): PartitionStatus.ONLINE,
    (PartitionStatus.ONLINE, PartitionEvent.LEADER_LOST): PartitionStatus.OFFLINE,
    (PartitionStatus.OFFLINE, PartitionEvent.LEADER_CHOSEN): PartitionStatus.ONLINE,
    (PartitionStatus.OFFLINE, PartitionEvent.LEADER_LOST): PartitionStatus.OFFLINE,
}

DELETION: dict[tuple[DoomedReplica, DeletionEvent], DoomedReplica] = {
    (DoomedReplica.DOOMED, DeletionEvent.TOLD): DoomedReplica.STOPPING,
    (DoomedReplica.DOOMED, DeletionEvent.BROKER_LOST): DoomedReplica.DOOMED,
    (DoomedReplica.STOPPING, DeletionEvent.CONFIRMED): DoomedReplica.REMOVED,
    (DoomedReplica.STOPPING, DeletionEvent.REFUSED): DoomedReplica.DOOMED,
    (DoomedReplica.STOPPING, DeletionEvent.BROKER_LOST): DoomedReplica.DOOMED,
    (DoomedReplica.REMOVED, DeletionEvent.BROKER_LOST): DoomedReplica.REMOVED,
}
