"""Clusters as `placement` looks at them, read from rows: three questions to the database, however many clusters there are.

For a purchase: which clusters are to be tried, in which order. For operators: what each has sold, and what still has to leave one
that is drained, with a place for each.

Where one cluster alone comes into question nothing is counted here: the gate (`services.admit`) says whether it has room, as in
an installation of one. And nothing here is a promise: the gate counts again, under the lock of the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.admission import installed, rules, selectors
from controlplane.admission.models import ClusterRoom
from controlplane.admission.placement import Candidate, Leaving, Obstacle, Wish, choose, destinations, fullness
from controlplane.admission.rules import Room
from controlplane.clusters.models import Broker, ClusterState, PhysicalCluster
from controlplane.clusters.services import cluster_list
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import FieldProblem, Invalid, NoPlace
from controlplane.instances import validation
from controlplane.instances.models import Instance, InstanceState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.admission.rules import Amount
    from controlplane.tenants.models import Organisation

_MEMBERS = (*rules.SIZES, "operators_limits")


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster with what it has and has sold."""

    cluster: PhysicalCluster
    brokers: int  # that have ever registered
    there: int  # of them, when somebody looked last
    hosts: int  # what counts for room: `selectors.hosts_of`
    instances: int
    capacity: Mapping[str, Amount]
    taken: Mapping[str, Amount]

    @property
    def candidate(self) -> Candidate:
        """As `placement` sees it."""
        return Candidate(
            self.cluster.pk,
            self.capacity,
            self.taken,
            frozenset(self.cluster.zones),
            takes_new=self.cluster.state == ClusterState.OPEN,
            is_served=self.there > 0,
        )

    @property
    def fullest(self) -> tuple[str, int]:
        """The resource of which the largest part is sold, and how many percent that is."""
        shares = {name: selectors.percent_of(self.taken[name], limit) for name, limit in self.capacity.items()}
        name = max(rules.CLUSTER, key=lambda each: (shares[each], -rules.CLUSTER.index(each)))
        return name, shares[name]


@dataclass(frozen=True, slots=True)
class Left:
    """An instance that is still on a cluster that is drained."""

    instance: Instance
    destination: PhysicalCluster | None  # with room for it, and as its tenant wishes
    obstacle: Obstacle | None = None  # why there is none


def places_of(clusters: Sequence[PhysicalCluster], *, clock: Clock = SYSTEM_CLOCK) -> list[Place]:
    """In the order given."""
    long_ago = clock.now() - selectors.AWAY_FOR_GOOD
    away: dict[int, list[Any]] = defaultdict(list)
    for cluster_id, since in Broker.objects.filter(cluster__in=clusters).values_list("cluster_id", "away_since"):
        away[cluster_id].append(since)
    rooms: dict[int, dict[str, Room]] = {cluster.pk: dict(installed.rooms()) for cluster in clusters}
    for row in ClusterRoom.objects.filter(cluster__in=clusters).order_by("pk"):
        rooms[row.cluster_id][row.resource] = Room(row.per_broker, row.overcommit)
    sizes: dict[int, list[dict[str, Any]]] = defaultdict(list)
    instances = Instance.objects.unscoped("capacity counts everyone's").exclude(state=InstanceState.DELETED)
    for cluster_id, *members in instances.filter(cluster__in=clusters).values_list("cluster_id", *_MEMBERS):
        sizes[cluster_id].append(dict(zip(_MEMBERS, members, strict=True)))
    found = []
    for cluster in clusters:
        brokers = away[cluster.pk]
        hosts = max(1, sum(since is None or since > long_ago for since in brokers))
        taken = [selectors.taken_by(members, hosts) for members in sizes[cluster.pk]]
        found.append(
            Place(
                cluster,
                len(brokers),
                sum(since is None for since in brokers),
                hosts,
                len(taken),
                rules.capacity_of(rooms[cluster.pk], brokers=hosts, instances=cluster.capacity),
                {name: rules.total(taken, name) for name in rules.CLUSTER},
            )
        )
    return found


def clusters_to_try(
    *, organisation: Organisation, sizes: Mapping[str, Any], placement: Mapping[str, Any], clock: Clock = SYSTEM_CLOCK
) -> list[PhysicalCluster]:
    """Clusters for a new instance, the best first; at least one.

    Where none has room it is the one that lacks least, whose refusal says what is exceeded. Raises Invalid where a zone or an
    instance that is named is not there, NoPlace where no cluster is as is wished.
    """
    clusters = cluster_list()
    wish = _wish_of(organisation, placement, clusters)
    suited = [each for each in clusters if _is_suited(each, wish)]
    if len(suited) == 1 or (suited and not _are_legible(sizes)):
        return suited[:1]  # of sizes that are none, who writes the row says all that is wrong
    if not suited:
        raise _no_place(wish, placement, clusters)
    places = {place.cluster.pk: place for place in places_of(suited, clock=clock)}
    needs = {name: selectors.taken_by(sizes, place.hosts) for name, place in places.items()}
    choice = choose([place.candidate for place in places.values()], needs, wish)
    if choice.fitting:
        return [places[name].cluster for name in choice.fitting]
    nearest = min(choice.full, key=lambda name: (fullness(places[name].candidate, needs[name]), name))
    return [places[nearest].cluster]


def leaving(cluster: PhysicalCluster, *, clock: Clock = SYSTEM_CLOCK) -> list[Left]:
    """What is on a cluster and does not go by itself, the largest first, each with a cluster that could take it.

    All could go where is said: a place is given once.
    """
    rows = Instance.objects.unscoped("operators move everyone's").filter(cluster=cluster)
    rows = rows.exclude(state__in=(InstanceState.DELETING, InstanceState.DELETED)).select_related("organisation")
    instances = list(rows.order_by("-bandwidth_mib_per_s", "-storage_gib", "pk"))
    others = [each for each in cluster_list() if each.pk != cluster.pk]
    places = {place.cluster.pk: place for place in places_of(others, clock=clock)}
    apart, homes = _apart_from(instances)
    planned = destinations(
        (
            Leaving(
                each.id,
                {name: selectors.taken_by(_members(each), place.hosts) for name, place in places.items()},
                Wish(
                    frozenset(each.placement.get("zones", ())),
                    frozenset(homes[name] for name in apart[each.id] if homes[name] != cluster.pk),
                ),
                frozenset(apart[each.id]),
            )
            for each in instances
        ),
        [place.candidate for place in places.values()],
    )
    return [
        Left(instance, None if found.cluster is None else places[found.cluster].cluster, found.obstacle)
        for instance, found in zip(instances, planned, strict=True)
    ]


def zones_offered() -> dict[str, bool]:
    """Every zone that a cluster is in, by name, and whether one there takes new instances."""
    found: dict[str, bool] = {}
    for cluster in cluster_list():
        for zone in cluster.zones:
            found[zone] = found.get(zone, False) or cluster.state == ClusterState.OPEN
    return dict(sorted(found.items()))


def _is_suited(cluster: PhysicalCluster, wish: Wish) -> bool:
    is_open = cluster.state == ClusterState.OPEN
    return is_open and wish.zones <= frozenset(cluster.zones) and cluster.pk not in wish.avoided


def _are_legible(sizes: Mapping[str, Any]) -> bool:
    return all(validation.RULES[name](sizes.get(name)) is None for name in rules.SIZES)


def _wish_of(organisation: Organisation, placement: Mapping[str, Any], clusters: Iterable[PhysicalCluster]) -> Wish:
    """Raises Invalid."""
    problems = validation.placement_problems(placement)
    if problems:
        raise Invalid("; ".join(f"{each.field} {each.detail}" for each in problems), errors=problems)
    zones, names = frozenset(placement.get("zones", ())), placement.get("apart_from", ())
    known = {zone for cluster in clusters for zone in cluster.zones}
    if zones - known:
        zone, names_known = min(zones - known), ", ".join(sorted(known)) or "none"
        raise Invalid.field("placement.zones", f"there is no zone {zone}; there are {names_known}")
    if not names:
        return Wish(zones)
    rows = Instance.objects.for_organisation(organisation).exclude(state=InstanceState.DELETED).filter(pk__in=names)
    homes = dict(rows.values_list("pk", "cluster_id"))
    for name in names:
        if name not in homes:
            raise Invalid.field("placement.apart_from", f"no instance {name}")
    return Wish(zones, frozenset(homes.values()))


def _no_place(wish: Wish, placement: Mapping[str, Any], clusters: Sequence[PhysicalCluster]) -> NoPlace:
    """What keeps it from the cluster that comes nearest."""
    there = [each for each in clusters if each.state == ClusterState.OPEN]
    if not there:
        return NoPlace("no cluster takes new instances at present")
    if not any(wish.zones <= frozenset(each.zones) for each in there):
        detail = _zones_problem(" and ".join(sorted(wish.zones)))
        return NoPlace(detail, errors=[FieldProblem("placement.zones", detail)])
    detail = _apart_problem(", ".join(sorted(placement["apart_from"])))
    return NoPlace(detail, errors=[FieldProblem("placement.apart_from", detail)])


def _zones_problem(zones: str) -> str:
    return f"no cluster that takes new instances is in {zones}"


def _apart_problem(instances: str) -> str:
    return f"each cluster that it could be on has one of the instances that it is to be apart from: {instances}"


def _members(instance: Instance) -> dict[str, Any]:
    return {name: getattr(instance, name) for name in _MEMBERS}


def _apart_from(instances: Sequence[Instance]) -> tuple[dict[str, set[str]], dict[str, int]]:
    """Beside whom each must not be, whoever of the two has wished it; and on which cluster all of these are."""
    owners = {each.organisation_id for each in instances}
    rows = Instance.objects.unscoped("operators move everyone's").filter(organisation__in=owners)
    found = list(rows.exclude(state=InstanceState.DELETED).values_list("pk", "cluster_id", "placement"))
    homes = {name: cluster for name, cluster, _ in found}
    apart: dict[str, set[str]] = {name: set() for name in homes}
    for name, _, placement in found:
        for other in placement.get("apart_from", ()):
            if other in homes:  # it may be gone by now
                apart[name].add(other)
                apart[other].add(name)
    return apart, homes
