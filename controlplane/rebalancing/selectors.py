"""Proposals, how far they are, and how evenly a cluster is loaded now. For operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, Sum

from controlplane.core.errors import NotFound
from controlplane.rebalancing import picture
from controlplane.rebalancing.models import ACTIVE, MoveState, Rebalance, RebalanceEvent, RebalanceMove
from controlplane.rebalancing.planner.bandwidth import Usable
from controlplane.rebalancing.planner.model import DEFAULT_GOALS, BrokerLoad, Goal, TenantChange, Wishes
from controlplane.rebalancing.planner.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from controlplane.clusters.models import PhysicalCluster


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a rebalance is."""

    moves: int
    done: int
    under_way: int
    waiting: int
    not_made: int  # skipped, refused or called back
    copied_bytes: int
    bytes_to_copy: int

    @property
    def percent(self) -> int:
        """Of the bytes, where there are any; else of the moves. 100 says that every move is made.

        0 where there are none: it is not planned yet, or there is nothing to do.
        """
        if not self.moves or self.done == self.moves:
            return 100 if self.moves else 0
        done, whole = (self.copied_bytes, self.bytes_to_copy) if self.bytes_to_copy else (self.done, self.moves)
        return min(99, 100 * done // whole)


@dataclass(frozen=True, slots=True)
class Balance:
    """What each broker has of each goal, the average of those that are there, and tenants that cannot use what they bought."""

    brokers: tuple[BrokerLoad, ...]
    away: frozenset[int]
    averages: dict[Goal, int]
    short: tuple[TenantChange, ...]
    notes: tuple[str, ...]


def rebalance_list(cluster: PhysicalCluster | None = None) -> QuerySet[Rebalance]:
    """All, or of one cluster."""
    rows = Rebalance.objects.select_related("cluster", "operation", "rollback_of")
    return rows if cluster is None else rows.filter(cluster=cluster)


def rebalance_get(rebalance_id: str) -> Rebalance:
    """Raises NotFound."""
    row = rebalance_list().filter(pk=rebalance_id).first()
    if row is None:
        raise NotFound(f"no rebalance {rebalance_id}")
    return row


def moves_of(row: Rebalance) -> QuerySet[RebalanceMove]:
    """In the order in which they are made."""
    return row.moves.order_by("number")


def still_to_move(row: Rebalance) -> tuple[int, int]:
    """Bytes that brokers would copy if it went on now, and whole seconds for them at its throttle.

    The busiest broker decides how long it takes; of a rebalance that is partly done it has as much of its work left as all have.
    """
    ahead = row.moves.filter(state__in=[MoveState.WAITING, *ACTIVE])
    sums = ahead.aggregate(whole=Sum("bytes_to_copy"), copied=Sum("copied_bytes"))
    left = max(0, (sums["whole"] or 0) - (sums["copied"] or 0))
    whole = int((row.summary or {}).get("bytes_to_copy", 0))
    busiest = int((row.summary or {}).get("busiest_bytes", 0))
    left_of_busiest = busiest * min(left, whole) // whole if whole else 0
    return left, -(-left_of_busiest // row.throttle_bytes_per_s)


def events_of(row: Rebalance) -> QuerySet[RebalanceEvent]:
    """Who said what, in order."""
    return row.events.order_by("pk")


def progress_of(row: Rebalance) -> Progress:
    """By its moves."""
    return progresses_of([row])[row.pk]


def progresses_of(rows: Sequence[Rebalance]) -> dict[str, Progress]:
    """Of many with one question, by their ids."""
    found = {row.pk: Counter[str]() for row in rows}
    copied, whole = Counter[str](), Counter[str]()
    groups = RebalanceMove.objects.filter(rebalance__in=rows).values_list("rebalance", "state")
    for key, state, count, copied_bytes, bytes_to_copy in groups.annotate(
        count=Count("pk"), copied=Sum("copied_bytes"), whole=Sum("bytes_to_copy")
    ):
        found[key][state] = count
        copied[key] += copied_bytes
        whole[key] += bytes_to_copy
    return {key: _progress(counts, copied[key], whole[key]) for key, counts in found.items()}


def _progress(counts: Counter[str], copied: int, whole: int) -> Progress:
    under_way, waiting = sum(counts[state] for state in ACTIVE), counts[MoveState.WAITING]
    done, moves = counts[MoveState.DONE], counts.total()
    return Progress(moves, done, under_way, waiting, moves - done - under_way - waiting, copied, whole)


def balance_of(cluster: PhysicalCluster) -> Balance:
    """Of now. Raises ClusterUnavailable."""
    seen = picture.cluster_seen(cluster)
    state = State(seen.cluster, Wishes())
    loads = state.loads_now()
    away = frozenset(broker.id for broker in seen.cluster.brokers if not broker.alive)
    there = [load for load in loads if load.broker not in away]
    usable = Usable(state).all()
    return Balance(
        loads,
        away,
        {goal: sum(load.of[goal] for load in there) // max(1, len(there)) for goal in DEFAULT_GOALS},
        tuple(
            TenantChange(each.id, each.limit_bytes_per_s, usable[each.id], usable[each.id])
            for each in seen.cluster.instances
            if each.limit_bytes_per_s
            and usable.get(each.id, 0) < each.limit_bytes_per_s * 99 // 100
            and each.id in usable
        ),
        seen.notes,
    )
