"""Where everything is while a plan is made. Changed in place, with every broker's sums kept in step.

Brokers and partitions are numbered from 0 here: what is asked millions of times is a look into a list. Nothing is added
up twice: a move changes the sums of two brokers, and says what it would change before it is made.

What may be where at all (the hard rules) is asked here, of each move, so that no goal can break one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.rebalancing.planner.goals import LED, bounds_of, penalty
from controlplane.rebalancing.planner.model import BrokerLoad, Goal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.rebalancing.planner.goals import Bounds
    from controlplane.rebalancing.planner.model import Cluster, Wishes


class State:
    """One plan in the making."""

    def __init__(self, cluster: Cluster, wishes: Wishes) -> None:
        self.brokers, self.partitions = cluster.brokers, cluster.partitions
        self.margin_percent = wishes.margin_percent
        self.places = {broker.id: place for place, broker in enumerate(cluster.brokers)}
        self.draining = [broker.id in wishes.draining for broker in cluster.brokers]
        self.demoted = [broker.id in wishes.demoted for broker in cluster.brokers]
        self.takes = [  # new replicas
            broker.alive and broker.id not in wishes.cordoned and broker.id not in wishes.draining
            for broker in cluster.brokers
        ]
        self.may_lead = [takes and not demoted for takes, demoted in zip(self.takes, self.demoted, strict=True)]
        self.racks = _racks(cluster)
        self.disk = [broker.disk_bytes for broker in cluster.brokers]
        self.carries = [broker.bandwidth_bytes_per_s for broker in cluster.brokers]
        self.replicas = [[self.places[broker] for broker in each.replicas] for each in cluster.partitions]
        self.served = self._served(cluster)
        self.racks_needed = self._racks_needed()
        self.hosts: list[set[int]] = [set() for _ in cluster.brokers]  # partitions with a replica here
        self.leads: list[set[int]] = [set() for _ in cluster.brokers]
        self.weights = _weights(cluster)
        self.loads: dict[Goal, list[int]] = {goal: [0] * len(cluster.brokers) for goal in Goal}
        self.loads[Goal.DISK] = [broker.other_bytes for broker in cluster.brokers]
        self.bounds: dict[Goal, list[Bounds]] = {}
        for partition, where in enumerate(self.replicas):
            self.leads[where[0]].add(partition)
            for goal in LED:
                self.loads[goal][where[0]] += self.weights[goal][partition]
            for place in where:
                self.hosts[place].add(partition)
                self.loads[Goal.REPLICAS][place] += 1
                self.loads[Goal.DISK][place] += self.weights[Goal.DISK][partition]
        self.find_bounds()

    # --- figures ------------------------------------------------------------------------------------------------------

    def find_bounds(self) -> None:
        """Anew, when what is on brokers that are closed has changed."""
        for goal in Goal:
            is_open, room = (self.may_lead, self.carries) if goal in LED else (self.takes, self.disk)
            self.bounds[goal] = bounds_of(goal, self.loads[goal], is_open, room, self.margin_percent)

    def score(self, goal: Goal) -> int:
        """How far all brokers together are from a goal."""
        return sum(map(penalty, self.loads[goal], self.bounds[goal]))

    def loads_now(self) -> tuple[BrokerLoad, ...]:
        return tuple(
            BrokerLoad(broker.id, {goal: self.loads[goal][place] for goal in Goal})
            for place, broker in enumerate(self.brokers)
        )

    def difference(self, goal: Goal, partition: int, source: int, target: int) -> int:
        """What it makes of the score if this partition's load of this goal goes from one broker to another."""
        return self.shifted(goal, self.weights[goal][partition], source, target)

    def shifted(self, goal: Goal, weight: int, source: int, target: int) -> int:
        """The same of any load. Where it is below 0, it is so of a smaller load as well: penalties are convex."""
        if not weight:
            return 0
        loads, bounds = self.loads[goal], self.bounds[goal]
        less, more = loads[source], loads[target]
        gives, takes = bounds[source], bounds[target]
        if gives[0] + weight <= less <= gives[1] and takes[0] <= more <= takes[1] - weight:
            return 0  # both are within before and after
        return (
            penalty(less - weight, gives) - penalty(less, gives) + penalty(more + weight, takes) - penalty(more, takes)
        )

    # --- what may be where --------------------------------------------------------------------------------------------

    def leads_well(self, partition: int, place: int) -> bool:
        """Whether this replica of it may be made the leader."""
        if not self.may_lead[place]:
            return False
        return not self.partitions[partition].out_of_sync or (
            self.brokers[place].id not in self.partitions[partition].out_of_sync
        )

    def hosts_well(self, partition: int, source: int, target: int) -> bool:
        """Whether the replica at `source` may be at `target` instead."""
        if not self.takes[target] or partition in self.hosts[target]:
            return False
        served = self.served[partition]
        if served is not None and target not in served:
            return False
        most = self.disk[target]
        if most is not None and self.loads[Goal.DISK][target] + self.weights[Goal.DISK][partition] > most:
            return False
        if source == self.replicas[partition][0] and not self.leads_well(partition, target):
            return False
        return self._spreads(partition, source, target)

    def _spreads(self, partition: int, source: int, target: int) -> bool:
        """Whether racks are as many as before, or as many as are needed."""
        racks, where = self.racks, self.replicas[partition]
        rack = racks[target]
        if rack == racks[source] or all(racks[place] != rack for place in where if place != source):
            return True
        others = {racks[place] for place in where if place != source}
        return len(others) >= min(len(others | {racks[source]}), self.racks_needed[partition])

    def racks_short(self, partition: int) -> int:
        """How many racks more it should stand in."""
        found = len({self.racks[place] for place in self.replicas[partition]})
        return max(0, self.racks_needed[partition] - found)

    # --- moves --------------------------------------------------------------------------------------------------------

    def lead(self, partition: int, target: int) -> None:
        """Another replica is the first."""
        where = self.replicas[partition]
        source, at = where[0], where.index(target)
        where[0], where[at] = target, source
        self._hand_over(partition, source, target)

    def replace(self, partition: int, source: int, target: int) -> None:
        """Another broker has the replica."""
        where = self.replicas[partition]
        at = where.index(source)
        where[at] = target
        self.hosts[source].discard(partition)
        self.hosts[target].add(partition)
        for goal in (Goal.REPLICAS, Goal.DISK):
            weight = self.weights[goal][partition]
            self.loads[goal][source] -= weight
            self.loads[goal][target] += weight
        if at == 0:
            self._hand_over(partition, source, target)

    def _hand_over(self, partition: int, source: int, target: int) -> None:
        self.leads[source].discard(partition)
        self.leads[target].add(partition)
        for goal in LED:
            weight = self.weights[goal][partition]
            self.loads[goal][source] -= weight
            self.loads[goal][target] += weight

    # --- what does not change -----------------------------------------------------------------------------------------

    def _served(self, cluster: Cluster) -> list[frozenset[int] | None]:
        by_instance = {
            instance.id: None
            if instance.brokers is None
            else frozenset(self.places[broker] for broker in instance.brokers if broker in self.places)
            for instance in cluster.instances
        }
        return [by_instance.get(partition.instance) for partition in cluster.partitions]

    def _racks_needed(self) -> list[int]:
        """By partition: in how many racks it can stand at most, of those that take something."""
        known: dict[frozenset[int] | None, int] = {}
        needed = []
        for served, where in zip(self.served, self.replicas, strict=True):
            if served not in known:
                known[served] = len(
                    {
                        rack
                        for place, rack in enumerate(self.racks)
                        if self.takes[place] and (served is None or place in served)
                    }
                )
            needed.append(min(len(where), known[served]))
        return needed


def _racks(cluster: Cluster) -> Sequence[str | int]:
    """Where not every broker says in which rack it stands, each is a rack of its own, as when topics are made."""
    if all(broker.rack for broker in cluster.brokers):
        return [broker.rack for broker in cluster.brokers]
    return [broker.id for broker in cluster.brokers]


def _weights(cluster: Cluster) -> dict[Goal, list[int]]:
    """By goal and partition. What a tenant has bought falls on leaders in equal parts, as its initial shares do."""
    leaders: dict[str, int] = {}
    for each in cluster.partitions:
        leaders[each.instance] = leaders.get(each.instance, 0) + 1
    parts = {
        instance.id: (instance.limit_bytes_per_s or 0) // leaders[instance.id]
        for instance in cluster.instances
        if instance.id in leaders
    }
    ones = [1] * len(cluster.partitions)
    return {
        Goal.LEADERS: ones,
        Goal.PRODUCE: [each.produce_bytes_per_s for each in cluster.partitions],
        Goal.CONSUME: [each.consume_bytes_per_s for each in cluster.partitions],
        Goal.REPLICAS: ones,
        Goal.DISK: [each.size_bytes for each in cluster.partitions],
        Goal.BANDWIDTH: [parts.get(each.instance, 0) for each in cluster.partitions],
    }
