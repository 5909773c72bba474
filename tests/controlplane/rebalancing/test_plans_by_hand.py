"""Plans whose outcome can be told beforehand."""

from __future__ import annotations

import pytest

from controlplane.rebalancing.planner.model import Broker, Cluster, Goal, Instance, Partition, Wishes
from controlplane.rebalancing.planner.planning import applied, plan

from .clusters import MIB, partitions


def brokers(count: int, **members: object) -> tuple[Broker, ...]:
    return tuple(Broker(number, **members) for number in range(1, count + 1))


def led(cluster: Cluster) -> dict[int, int]:
    found = dict.fromkeys((broker.id for broker in cluster.brokers), 0)
    for partition in cluster.partitions:
        found[partition.replicas[0]] += 1
    return found


def test_leaders_change_among_replicas_before_anything_is_copied():
    cluster = Cluster(brokers(3), partitions("t", *[[1, 2, 3]] * 6, size_bytes=10))
    found = plan(cluster, Wishes())
    assert led(applied(cluster, found)) == {1: 2, 2: 2, 3: 2}
    assert found.bytes_to_copy == 0
    assert all(move.is_leader_only for move in found.moves)


def test_a_new_broker_is_filled_and_only_it():
    cluster = Cluster(brokers(4), partitions("t", *[[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 8, size_bytes=10))
    found = plan(cluster, Wishes())
    assert {broker for move in found.moves for broker in move.added} == {4}
    held = [sum(number in each.replicas for each in applied(cluster, found).partitions) for number in range(1, 5)]
    assert max(held) - min(held) <= 4
    assert found.bytes_to_copy == 10 * held[3]


def test_a_tenant_whose_leaders_all_sit_on_one_broker_gets_its_whole_bandwidth_back():
    cluster = Cluster(
        brokers(3, bandwidth_bytes_per_s=12 * MIB),
        partitions("t", *[[1, 2, 3]] * 4, instance="ins-aaaaaaaa"),
        (Instance("ins-aaaaaaaa", 20 * MIB),),
    )
    found = plan(cluster, Wishes(goals=(Goal.BANDWIDTH,)))
    (tenant,) = found.tenants
    assert (tenant.usable_before, tenant.usable_after) == (12 * MIB, 20 * MIB)
    assert sum(move.returns_bytes_per_s for move in found.moves) == 8 * MIB
    assert all(move.is_leader_only and move.returns_bytes_per_s > 0 for move in found.moves)


def test_a_demoted_broker_leads_nothing_and_keeps_its_replicas():
    cluster = Cluster(brokers(3), partitions("t", [1, 2], [2, 3], [3, 1]))
    after = applied(cluster, plan(cluster, Wishes(demoted=frozenset({1}))))
    assert led(after)[1] == 0
    assert sum(1 in each.replicas for each in after.partitions) == 2


def test_two_replicas_in_one_rack_are_parted():
    racks = tuple(Broker(number, rack) for number, rack in enumerate("aabb", start=1))
    found = plan(Cluster(racks, partitions("t", [1, 2])), Wishes(goals=()))
    (move,) = found.moves
    assert move.after[0] == 1
    assert move.after[1] in (3, 4)


def test_a_full_disk_is_relieved():
    cluster = Cluster((Broker(1, disk_bytes=50), *brokers(3)[1:]), partitions("t", *[[1]] * 10, size_bytes=10))
    after = applied(cluster, plan(cluster, Wishes(goals=())))
    assert sum(1 in each.replicas for each in after.partitions) == 5


def test_the_preferred_replica_is_elected_where_another_one_leads():
    cluster = Cluster(brokers(3), (Partition("t", 0, (1, 2, 3), leader=2),))
    (move,) = plan(cluster, Wishes(goals=())).moves
    assert (move.before, move.after, move.leader) == ((1, 2, 3), (1, 2, 3), 2)


def test_nobody_is_elected_who_is_not_in_sync():
    cluster = Cluster(brokers(3), (Partition("t", 0, (1, 2, 3), leader=2, out_of_sync=(1,)),))
    assert plan(cluster, Wishes(goals=())).moves == ()


def test_the_time_is_that_of_the_busiest_broker():
    cluster = Cluster(brokers(3), partitions("t", [1], [1], size_bytes=1_000))
    found = plan(cluster, Wishes(draining=frozenset({1}), goals=()))
    assert (dict(found.bytes_out), found.bytes_to_copy) == ({1: 2_000}, 2_000)
    assert found.seconds_at(300) == 7


@pytest.mark.parametrize("number", [1, 2])
def test_what_cannot_leave_a_draining_broker_is_said(number):
    cluster = Cluster(brokers(2), partitions("t", [1, 2]))
    found = plan(cluster, Wishes(draining=frozenset({number})))
    assert [(each.broker, each.partition) for each in found.stuck] == [(number, 0)]
    assert applied(cluster, found).partitions[0].replicas[0] != number
