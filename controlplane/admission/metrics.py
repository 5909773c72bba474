"""Lines of /metrics: how much of each physical cluster is sold, and whether instances are placed on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.admission import places, rules, selectors
from controlplane.clusters.models import ClusterState
from controlplane.clusters.services import cluster_list

if TYPE_CHECKING:
    from collections.abc import Iterator


def clusters_text() -> str:
    """In Prometheus' text format."""
    return "\n".join(_samples()) + "\n"


def _samples() -> Iterator[str]:
    found = places.places_of(cluster_list())
    yield "# TYPE sluice_cluster_sold_percent gauge"
    for place in found:
        for name in rules.CLUSTER:
            percent = selectors.percent_of(place.taken[name], place.capacity[name])
            yield f'sluice_cluster_sold_percent{{cluster="{place.cluster.name}",resource="{name}"}} {percent}'
    yield "# TYPE sluice_cluster_takes_new gauge"
    for place in found:
        takes_new = int(place.cluster.state == ClusterState.OPEN)
        yield f'sluice_cluster_takes_new{{cluster="{place.cluster.name}"}} {takes_new}'
