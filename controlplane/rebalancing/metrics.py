"""Lines of /metrics: how far the fullest broker of each cluster is above the average, and what rebalances are under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Count

from controlplane.clusters.services import cluster_list
from controlplane.rebalancing.kept import seen_last
from controlplane.rebalancing.models import UNDER_WAY, MoveState, Rebalance, RebalanceMove

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def rebalancing_text() -> str:
    """In Prometheus' text format."""
    return "\n".join([*_balance(), *_under_way()]) + "\n"


def skew_percent(document: Mapping[str, Any], goal: str) -> int:
    """By how much the broker that has most of it is above the average."""
    average = document["averages"][goal]
    most = max((row["loads"][goal] for row in document["brokers"] if not row["away"]), default=0)
    return round(100 * (most - average) / average) if average else 0


def _balance() -> Iterator[str]:
    seen = [(cluster.name, found["document"]) for cluster in cluster_list() if (found := seen_last(cluster))]
    yield "# TYPE sluice_cluster_skew_percent gauge"
    for name, document in seen:
        for goal in document["averages"]:
            yield f'sluice_cluster_skew_percent{{cluster="{name}",goal="{goal}"}} {skew_percent(document, goal)}'
    yield "# TYPE sluice_cluster_instances_short_of_bandwidth gauge"
    for name, document in seen:
        yield f'sluice_cluster_instances_short_of_bandwidth{{cluster="{name}"}} {document["short_count"]}'


def _under_way() -> Iterator[str]:
    yield "# TYPE sluice_rebalances gauge"
    states = Rebalance.objects.filter(state__in=UNDER_WAY).values_list("state").annotate(count=Count("pk"))
    counts = dict(states)
    yield from (f'sluice_rebalances{{state="{state}"}} {counts.get(state, 0)}' for state in UNDER_WAY)
    yield "# TYPE sluice_rebalance_moves gauge"
    moves = (
        RebalanceMove.objects.filter(rebalance__state__in=UNDER_WAY).values_list("state").annotate(count=Count("pk"))
    )
    of_state = dict(moves)
    yield from (f'sluice_rebalance_moves{{state="{state}"}} {of_state.get(state, 0)}' for state in MoveState.values)
