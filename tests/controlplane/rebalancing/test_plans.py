"""What holds of every plan, whatever the cluster and the wishes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given

from controlplane.rebalancing.planner.model import Cluster, Partition, Wishes
from controlplane.rebalancing.planner.planning import applied, plan

from .clusters import clusters, wishes


def takes(cluster: Cluster, wished: Wishes) -> set[int]:
    closed = wished.cordoned | wished.draining
    return {broker.id for broker in cluster.brokers if broker.alive and broker.id not in closed}


def racks_of(cluster: Cluster) -> dict[int, object]:
    stand = all(broker.rack for broker in cluster.brokers)
    return {broker.id: broker.rack if stand else broker.id for broker in cluster.brokers}


def spread(cluster: Cluster, partition: Partition) -> int:
    racks = racks_of(cluster)
    return len({racks[broker] for broker in partition.replicas})


def enough(cluster: Cluster, wished: Wishes, partition: Partition) -> int:
    """Racks that the partition can stand in."""
    racks, served = racks_of(cluster), {each.id: each.brokers for each in cluster.instances}.get(partition.instance)
    open_to_it = {broker for broker in takes(cluster, wished) if served is None or broker in served}
    return min(len(partition.replicas), len({racks[broker] for broker in open_to_it}))


def used(cluster: Cluster) -> dict[int, int]:
    found = {broker.id: broker.other_bytes for broker in cluster.brokers}
    for partition in cluster.partitions:
        for broker in partition.replicas:
            found[broker] += partition.size_bytes
    return found


@given(clusters(), wishes())
def test_a_plan_carried_out_leaves_nothing_to_plan(cluster, wished):
    found = plan(cluster, wished)
    assert found.settled
    assert plan(applied(cluster, found), wished).moves == ()


@given(clusters(), wishes())
def test_every_partition_keeps_its_number_of_replicas_each_on_a_broker_of_its_own(cluster, wished):
    after = applied(cluster, plan(cluster, wished))
    for was, now in zip(cluster.partitions, after.partitions, strict=True):
        assert len(set(now.replicas)) == len(now.replicas) == len(was.replicas)


@given(clusters(), wishes())
def test_no_partition_stands_in_fewer_racks_than_before_or_than_it_can(cluster, wished):
    after = applied(cluster, plan(cluster, wished))
    for was, now in zip(cluster.partitions, after.partitions, strict=True):
        assert spread(after, now) >= min(spread(cluster, was), enough(cluster, wished, was))


@given(clusters(), wishes())
def test_no_disk_is_filled_beyond_its_size_that_was_not(cluster, wished):
    before, after = used(cluster), used(applied(cluster, plan(cluster, wished)))
    for broker in cluster.brokers:
        if broker.disk_bytes is not None:
            assert after[broker.id] <= max(broker.disk_bytes, before[broker.id])


@given(clusters(), wishes())
def test_brokers_that_take_nothing_get_no_replica_and_no_lead(cluster, wished):
    open_ones = takes(cluster, wished)
    for move in plan(cluster, wished).moves:
        assert set(move.added) <= open_ones
        if move.after[0] != move.before[0]:
            assert move.after[0] in open_ones - wished.demoted


@given(clusters(), wishes())
def test_what_cannot_move_stays_and_who_is_behind_does_not_lead(cluster, wished):
    partitions = {each.key: each for each in cluster.partitions}
    for move in plan(cluster, wished).moves:
        was = partitions[move.topic, move.partition]
        assert was.movable
        assert move.after[0] == was.replicas[0] or move.after[0] not in was.out_of_sync


@given(clusters(), wishes())
def test_tenants_partitions_stay_where_their_instance_is_served(cluster, wished):
    served = {each.id: each.brokers for each in cluster.instances}
    for move in plan(cluster, wished).moves:
        allowed = served.get(move.instance)
        assert allowed is None or set(move.added) <= allowed


@given(clusters(), wishes())
def test_a_draining_broker_is_empty_or_the_plan_says_why_not(cluster, wished):
    found = plan(cluster, wished)
    said = {(each.topic, each.partition, each.broker) for each in found.stuck}
    for partition in applied(cluster, found).partitions:
        for broker in wished.draining & set(partition.replicas):
            assert (*partition.key, broker) in said


def unbound(cluster: Cluster) -> Cluster:
    """With room on every disk, and everybody in sync: what is hard can be done at once, or never."""
    return replace(
        cluster,
        brokers=tuple(replace(broker, disk_bytes=None) for broker in cluster.brokers),
        partitions=tuple(replace(each, out_of_sync=()) for each in cluster.partitions),
    )


@given(clusters(), wishes())
def test_a_draining_broker_is_empty_where_disks_have_room_and_all_may_move(cluster, wished):
    free = replace(
        unbound(cluster),
        partitions=tuple(replace(each, movable=True) for each in unbound(cluster).partitions),
        instances=(),
    )
    willing = replace(wished, demoted=frozenset())
    assume(len(takes(free, willing)) >= max((len(each.replicas) for each in free.partitions), default=0))
    after = applied(free, plan(free, willing))
    assert not any(willing.draining & set(each.replicas) for each in after.partitions)


@given(clusters(), wishes())
def test_scores_become_smaller_in_the_order_of_the_goals(cluster, wished):
    quiet = replace(wished, cordoned=frozenset(), draining=frozenset(), demoted=frozenset())
    begun = applied(unbound(cluster), plan(unbound(cluster), replace(quiet, goals=())))  # what is hard is done
    found = plan(begun, quiet)
    before, after = ([scores[goal] for goal in quiet.goals] for scores in (found.scores_before, found.scores_after))
    assert after < before or (not any(move.before != move.after for move in found.moves) and after == before)


@given(clusters(), wishes())
def test_another_goal_at_the_end_costs_those_before_it_nothing(cluster, wished):
    assume(wished.goals)
    quiet = replace(wished, cordoned=frozenset(), draining=frozenset(), demoted=frozenset())
    fewer = plan(unbound(cluster), replace(quiet, goals=quiet.goals[:-1]))
    more = plan(unbound(cluster), quiet)
    first = [[found.scores_after[goal] for goal in wished.goals[:-1]] for found in (fewer, more)]
    assert first[1] <= first[0]


@given(clusters(), wishes())
def test_leaders_only_copies_nothing_unless_something_is_hard(cluster, wished):
    quiet = Wishes(goals=wished.goals, leaders_only=True)
    begun = applied(unbound(cluster), plan(unbound(cluster), replace(quiet, goals=())))
    assert plan(begun, quiet).bytes_to_copy == 0
