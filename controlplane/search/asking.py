"""Who asks, which instances they know, and on which clusters these are: read once for all kinds, and only where one needs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from controlplane.clusters.models import PhysicalCluster
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_list
from controlplane.search import of_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.db.models import QuerySet

    from controlplane.accounts.selectors import Caller
    from controlplane.clusters.address import ClusterAddress
    from controlplane.search.matching import Wanted
    from controlplane.search.of_rows import Row


class Place(NamedTuple):
    """An instance, as far as it is needed."""

    pk: str
    name: str
    state: str
    cluster: int


@dataclass
class Asker:
    """One question. `here`: an instance that is looked through first; another organisation's is passed over."""

    caller: Caller
    wanted: Wanted
    most: int  # of each kind
    here: str = ""
    clock: Clock = SYSTEM_CLOCK
    is_partial: bool = field(
        default=False, init=False
    )  # of the kind that is looked for now: not everything was looked at

    @property
    def rows(self) -> QuerySet[Instance]:
        """Instances that the caller knows, those that are gone left out."""
        return instance_list(organisation=self.caller.organisation, only=self.caller.limits.instances)

    @property
    def ids(self) -> QuerySet[Instance, str]:
        """Their ids, for a query within another."""
        return self.rows.order_by().values_list("pk", flat=True)

    @property
    def running_ids(self) -> QuerySet[Instance, str]:
        """The same of those that run."""
        return self.ids.filter(state=InstanceState.RUNNING)

    @cached_property
    def places(self) -> dict[str, Place]:
        """By id, in the order in which they are looked through."""
        rows = self.rows.order_by("name", "pk").values_list("pk", "name", "state", "cluster_id")
        found = [Place(*row) for row in rows]
        found.sort(key=lambda place: place.pk != self.here)
        return {place.pk: place for place in found}

    @cached_property
    def named(self) -> dict[str, list[Row]]:
        """Of the kinds of of_rows.py whatever fits."""
        return of_rows.found(self)

    def name_of(self, instance_id: str) -> str:
        """Its name; its id where it was made a moment ago, behind `places`."""
        place = self.places.get(instance_id)
        return place.name if place is not None else instance_id

    @property
    def running(self) -> list[Place]:
        """Those that run: of others a cluster may have nothing."""
        return [place for place in self.places.values() if place.state == InstanceState.RUNNING]

    @cached_property
    def _clusters(self) -> dict[int, PhysicalCluster]:
        return PhysicalCluster.objects.in_bulk({place.cluster for place in self.places.values()})

    def by_cluster(self, places: Iterable[Place]) -> Iterator[tuple[ClusterAddress, list[Place]]]:
        """The same, cluster by cluster."""
        found: dict[int, list[Place]] = {}
        for place in places:
            found.setdefault(place.cluster, []).append(place)
        for cluster, there in found.items():
            yield self._clusters[cluster].address, there
