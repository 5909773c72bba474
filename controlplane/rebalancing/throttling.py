"""The replication throttle of a rebalance (KIP-73): a rate of every broker, and which replicas it is for.

The rate is one setting of the cluster, so no broker has to be there to be told. It holds back only replicas that topics name and
that are not in sync: what followers do that keep up is neither delayed nor counted. Named are a partition's present replicas as
those that send, and its new ones as those that copy. Names are put down before a move begins, topic by topic as their turns
come; all of it is taken back at the end, also where it was never put down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.rebalancing.models import Rebalance

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from controlplane.kafka.placement_door import PlacementDoor
    from controlplane.rebalancing.models import RebalanceMove

LONGEST_SETTING = 2**15 - 1
"""As the request can carry it, which is some thousand replicas; of a topic that needs more every replica is named."""
EVERY_REPLICA = "*"


def set_rate(row: Rebalance, door: PlacementDoor) -> None:
    """Have brokers know the row's rate, unless they do. Noted before: what may have been told is taken back in the end."""
    if row.throttle_in_force == row.throttle_bytes_per_s:
        return
    if row.throttle_in_force is None:  # 0: something may be in force, and it is not known what
        Rebalance.objects.filter(pk=row.pk).update(throttle_in_force=0)
    door.throttle(row.throttle_bytes_per_s)
    Rebalance.objects.filter(pk=row.pk).update(throttle_in_force=row.throttle_bytes_per_s)
    row.throttle_in_force = row.throttle_bytes_per_s


def name_replicas(row: Rebalance, door: PlacementDoor, topics: Collection[str]) -> None:
    """Of all of a topic's moves at once: the list of a topic is one setting."""
    by_topic: dict[str, list[RebalanceMove]] = {}
    for move in row.moves.filter(topic__in=list(topics)).order_by("partition"):
        if move.added:
            by_topic.setdefault(move.topic, []).append(move)
    if by_topic:
        door.throttled(_lists(by_topic))


def _lists(by_topic: Mapping[str, Sequence[RebalanceMove]]) -> dict[str, tuple[str, str] | None]:
    return {
        topic: (
            _names((move.partition, broker) for move in moves for broker in move.before),
            _names((move.partition, broker) for move in moves for broker in move.added),
        )
        for topic, moves in by_topic.items()
    }


def _names(replicas: Iterable[tuple[int, int]]) -> str:
    text = ",".join(f"{partition}:{broker}" for partition, broker in replicas)
    return text if len(text) <= LONGEST_SETTING else EVERY_REPLICA


def release(row: Rebalance, door: PlacementDoor) -> None:
    """Take all of it back."""
    if row.throttle_in_force is None:
        return
    moves = [move for move in row.moves.all() if move.added]
    door.throttled(dict.fromkeys([move.topic for move in moves]))
    door.throttle(None)
    Rebalance.objects.filter(pk=row.pk).update(throttle_in_force=None)
    row.throttle_in_force = None
