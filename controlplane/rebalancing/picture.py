"""A cluster as the planner wants it, from what the control plane knows already.

=====================  =================================================================================================
where partitions are   metadata of the brokers; what is on its way, from the controller
sizes, disks           DescribeLogDirs of every broker; a partition is as large as its largest replica
flow                   the flow master: of each instance on each broker. Nobody counts it by partition: what an instance
                       has on a broker falls on what it leads there, by size (what is written most is largest, where
                       retention is alike) and, where all are empty, in equal parts
limits                 instances, as they were bought; which brokers serve them, by their ports
what a broker carries  the room that operators have set, without overcommitment
=====================  =================================================================================================

Where no flow master answers, its last known figures are taken, and without those none: `notes` say so. A broker that does not
answer takes nothing, also while nobody has missed it in ZooKeeper yet. One that answers and does not say how large its disk is
takes what it is given.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.admission.rules import BANDWIDTH
from controlplane.admission.selectors import room_of
from controlplane.clusters.selectors import broker_list, ports_by_owner
from controlplane.core.portions import portions
from controlplane.instances.models import Instance, InstanceState
from controlplane.kafka import placement_door
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import allocations_get
from controlplane.rebalancing.planner.model import Broker, Cluster, Partition
from controlplane.rebalancing.planner.model import Instance as PlannedInstance
from quota.contracts.instance import MIB
from quota.contracts.namespace import INSTANCE_ID_PREFIX, split_physical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.kafka.flexible import Place
    from controlplane.kafka.placement_door import Placed
    from controlplane.kafka.placing import Disk

AT_ONCE = 50
"""Instances that a master is asked about in one question."""
FILLED_PERCENT = 85
"""Of a disk, at most: retention works by the clock, and a copy is there before its source has gone."""

Flows = dict[tuple[str, int], tuple[int, int]]
"""By instance and broker: what producers bring and consumers take, in bytes a second."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The cluster, and what is to be known of how it was seen."""

    cluster: Cluster
    notes: tuple[str, ...] = ()


def cluster_seen(cluster: PhysicalCluster, *, scope: Collection[str] = ()) -> Picture:
    """As it is now. Only partitions of the instances in `scope` can be moved; empty: all. Raises ClusterUnavailable."""
    door = placement_door.door(cluster.address)
    placed, under_way = door.placed(), door.under_way()
    rows = {row.broker_id: row for row in broker_list(cluster)}
    disks = door.disks(rows)
    sizes = _sizes(disks.values())
    instances = list(
        Instance.objects.unscoped("a cluster is its operators'")
        .filter(cluster=cluster, state=InstanceState.RUNNING)
        .select_related("cluster")
        .order_by("pk")
    )
    flows, notes = _flows(instances)
    room = room_of(cluster).get(BANDWIDTH)
    carries = None if room is None else round(room.per_broker * MIB)
    silent = [number for number in rows if number not in disks]
    if silent:
        notes.append(
            f"brokers that do not answer get no replicas, and what is on their disks is not known: {', '.join(map(str, silent))}"
        )
    rackless = [number for number, row in rows.items() if not row.rack]
    if rackless and len(rackless) < len(rows):
        notes.append(f"racks are not regarded: brokers {', '.join(map(str, rackless))} do not name theirs")
    return Picture(
        Cluster(
            tuple(
                _broker(number, row.rack, carries, row.away_since is None and number in disks, disks.get(number))
                for number, row in rows.items()
            ),
            tuple(_partitions(placed, under_way, sizes, flows, scope, set(rows))),
            tuple(_instances(instances)),
        ),
        tuple(notes),
    )


def _broker(number: int, rack: str, carries: int | None, is_there: bool, disk: Disk | None) -> Broker:
    if disk is None or disk.total_bytes is None or disk.usable_bytes is None:
        return Broker(number, rack, None, 0, carries, is_there)
    held = sum(disk.sizes.values())
    others = max(0, disk.total_bytes - disk.usable_bytes - held)
    return Broker(number, rack, disk.total_bytes * FILLED_PERCENT // 100, others, carries, is_there)


def _sizes(disks: Iterable[Disk]) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for disk in disks:
        for place, size in disk.sizes.items():
            found[place] = max(size, found.get(place, 0))
    return found


def _partitions(
    placed: Sequence[Placed],
    under_way: Collection[Place],
    sizes: Mapping[Place, int],
    flows: Flows,
    scope: Collection[str],
    known: Collection[int],
) -> Iterable[Partition]:
    shares = _shares(placed, sizes)
    for each in placed:
        if not each.replicas or not set(each.replicas) <= set(known):
            continue  # of a topic that is being made, or on a broker that was never seen
        instance = instance_of(each.topic)
        place = each.leader if each.leader is not None else each.replicas[0]
        produce, consume = flows.get((instance, place), (0, 0))
        weight, whole = sizes.get(each.place, 0) + 1, shares[instance, place]
        yield Partition(
            each.topic,
            each.partition,
            each.replicas,
            each.leader,
            sizes.get(each.place, 0),
            produce * weight // whole,
            consume * weight // whole,
            instance,
            tuple(broker for broker in each.replicas if broker not in each.in_sync),
            each.leader is not None and each.place not in under_way and (not scope or instance in scope),
        )


def _shares(placed: Sequence[Placed], sizes: Mapping[Place, int]) -> dict[tuple[str, int], int]:
    """What the partitions weigh together that an instance leads on a broker."""
    found: dict[tuple[str, int], int] = defaultdict(int)
    for each in placed:
        if each.replicas:
            place = each.leader if each.leader is not None else each.replicas[0]
            found[instance_of(each.topic), place] += sizes.get(each.place, 0) + 1
    return found


def _flows(instances: Sequence[Instance]) -> tuple[Flows, list[str]]:
    flows: Flows = {}
    problems: list[str] = []
    for part in portions(instances, AT_ONCE):
        figures = figures_get(part, allocations_get)
        if figures.away is not None and str(figures.away) not in problems:
            problems.append(str(figures.away))
        for name, document in figures.documents.items():
            produced, consumed = _by_broker(document, "produce"), _by_broker(document, "consume")
            for broker in {*produced, *consumed}:
                flows[name, broker] = produced.get(broker, 0), consumed.get(broker, 0)
    return flows, [f"flow is as it was last known: {problem}" for problem in problems]


def _by_broker(document: Mapping[str, Any], direction: str) -> dict[int, int]:
    rows = (document.get(direction) or {}).get("brokers", ())
    return {row["broker"]: int(row["flow"]) for row in rows}


def _instances(instances: Sequence[Instance]) -> Iterable[PlannedInstance]:
    ports = ports_by_owner(instance.id for instance in instances)
    for instance in instances:
        served = {port.broker.broker_id for port in ports.get(instance.id, ()) if port.broker is not None}
        limit = round(instance.bandwidth_mib_per_s * MIB)
        yield PlannedInstance(instance.id, limit, frozenset(served) if served else None)


def instance_of(topic: str) -> str:
    """Whose topic it is; empty: the cluster's own."""
    owned = split_physical(topic)
    return f"{INSTANCE_ID_PREFIX}{owned[0]}" if owned else ""
