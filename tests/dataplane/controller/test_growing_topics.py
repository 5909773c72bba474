"""Topics grow: the new partitions are placed like the first ones, led, known to everybody, and finished after a crash."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.cluster.paths import parse_topic, topic_path
from dataplane.controller.controller import MorePartitions
from dataplane.controller.decisions.placement import Continuation, place
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.records.steps import run_through
from dataplane.tasks import Task
from tests.dataplane.controller.cluster import ControlledCluster

TOPIC = "k3v9x2qa.orders"


def test_new_partitions_have_leaders_that_every_broker_knows_when_the_answer_comes() -> None:
    cluster = ControlledCluster(3)
    cluster.create(TOPIC, partitions=2)
    before = parse_topic(cluster.data(topic_path(TOPIC)))
    assert cluster.grow(TOPIC, 6).error is ErrorCode.NONE
    after = parse_topic(cluster.data(topic_path(TOPIC)))
    assert after.topic_id == before.topic_id
    assert {index: after.partitions[index] for index in (0, 1)} == before.partitions
    for index in range(6):
        state = cluster.state(TOPIC, index)
        assert (state.leader, state.isr) == (after.partitions[index][0], after.partitions[index])
        for broker in cluster.brokers.values():
            assert broker.leaderships[TOPIC, index].leader == state.leader
            known = broker.metadata.partition(TOPIC, index)
            assert known is not None
            assert known.leader == state.leader
    leaders = Counter(cluster.state(TOPIC, index).leader for index in range(6))
    assert leaders == {1: 2, 2: 2, 3: 2}


def test_assignments_are_followed() -> None:
    cluster = ControlledCluster(4)
    cluster.create(TOPIC, assignment={0: (1, 2)})
    assert cluster.grow(TOPIC, 3, assignment=((4, 3), (2, 4))).error is ErrorCode.NONE
    assert parse_topic(cluster.data(topic_path(TOPIC))).partitions == {0: (1, 2), 1: (4, 3), 2: (2, 4)}
    assert [cluster.state(TOPIC, index).leader for index in range(3)] == [1, 4, 2]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (MorePartitions("missing", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions(TOPIC, 2), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions(TOPIC, 1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions(TOPIC, 0), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions(TOPIC, 10_001), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions(TOPIC, 4, ((1, 2),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(TOPIC, 3, ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(TOPIC, 3, ((),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(TOPIC, 3, ((1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(TOPIC, 3, ((1, 9),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(TOPIC, 3, ((1, 2, 3),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(TOPIC, 3, ((1, 3),), brokers=(1, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions(TOPIC, 3, brokers=(1,)), ErrorCode.INVALID_REPLICATION_FACTOR),
        (MorePartitions(TOPIC, 4, replica_limit=7), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_growth_that_cannot_be_is_refused_and_changes_nothing(more: MorePartitions, error: ErrorCode) -> None:
    cluster = ControlledCluster(3)
    cluster.create(TOPIC, 2, 2)
    before = cluster.server.tree.dump()
    (outcome,) = cluster.wait(Task(cluster.controller().controller.create_partitions([more])))
    assert outcome.error is error
    assert outcome.message
    assert cluster.server.tree.dump() == before


def test_the_partition_limit_counts_growth_and_says_what_is_used() -> None:
    cluster = ControlledCluster(3)
    cluster.create(TOPIC, 1, 3)
    assert cluster.grow(TOPIC, 2, replica_limit=7).error is ErrorCode.NONE
    refused = cluster.grow(TOPIC, 3, replica_limit=7)
    assert refused.error is ErrorCode.POLICY_VIOLATION
    assert all(number in (refused.message or "") for number in ("7", "6", "3"))
    cluster.delete(TOPIC)
    assert cluster.create(TOPIC, 2, 3, replica_limit=7).error is ErrorCode.NONE


def test_validation_only_answers_and_writes_nothing() -> None:
    cluster = ControlledCluster(3)
    cluster.create(TOPIC)
    before = cluster.server.tree.dump()
    more = [MorePartitions(TOPIC, 2), MorePartitions(TOPIC, 1)]
    outcomes = cluster.wait(Task(cluster.controller().controller.create_partitions(more, validate_only=True)))
    assert [outcome.error for outcome in outcomes] == [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS]
    assert cluster.server.tree.dump() == before


def test_a_topic_that_is_being_deleted_and_a_broker_that_is_no_controller_refuse() -> None:
    cluster = ControlledCluster(3, rebalance_s=1000)
    cluster.create(TOPIC)
    away = cluster.others(cluster.controller().id)[0].id
    other = cluster.others(cluster.controller().id)[1].controller
    with pytest.raises(ApiError) as refusal:
        cluster.wait(Task(other.create_partitions([MorePartitions(TOPIC, 2)])))
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER
    cluster.kill(away)
    cluster.run(3)
    cluster.delete(TOPIC)
    assert cluster.grow(TOPIC, 2).error is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("after_s", [0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02])
def test_growth_whose_controller_dies_in_the_middle_is_whole_or_never_was(after_s: float) -> None:
    cluster = ControlledCluster(4)
    first = cluster.controller()
    replicas = tuple(broker.id for broker in cluster.others(first.id))
    cluster.create(TOPIC, assignment={0: replicas})
    Task(first.controller.create_partitions([MorePartitions(TOPIC, 4, (replicas,) * 3)]))
    cluster.run(after_s)
    cluster.kill(first.id)
    cluster.run(10)
    count = len(parse_topic(cluster.data(topic_path(TOPIC))).partitions)
    assert count in (1, 4)
    for broker in cluster.others(first.id):
        assert list(broker.metadata.partitions(TOPIC)) == list(range(count))
        for index in range(count):
            state = cluster.state(TOPIC, index)
            assert broker.leaderships[TOPIC, index].leader == state.leader
            assert sorted(state.isr) == sorted(replicas)
    assert cluster.grow(TOPIC, 5).error is ErrorCode.NONE


def test_a_partition_whose_brokers_are_all_away_starts_when_one_returns() -> None:
    cluster = ControlledCluster(3, rebalance_s=1000)
    away = cluster.others(cluster.controller().id)[0].id
    cluster.create(TOPIC, assignment={0: (cluster.controller().id,)})
    Task(cluster.controller().controller.create_partitions([MorePartitions(TOPIC, 2, ((away,),))]))
    cluster.kill(away)  # between the check and the first leader
    cluster.run(5)
    cluster.start(away)
    cluster.run(5)
    assert cluster.state(TOPIC, 1).leader == away


# --- racks ------------------------------------------------------------------------------------------------------------


@given(
    st.dictionaries(st.integers(0, 30), st.sampled_from("abcd"), min_size=1, max_size=9),
    st.integers(1, 30),
    st.integers(0, 20),
    st.data(),
)
def test_replicas_are_in_as_many_racks_as_there_can_be(
    racks: dict[int, str], partitions: int, before: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    after = Continuation(data.draw(st.sampled_from(sorted(racks))), before) if before else None
    assignment = run_through(place(racks, partitions, factor, Random(data.draw(st.integers(0, 2**32))), after))
    assert list(assignment) == list(range(before, before + partitions))
    for replicas in assignment.values():
        assert len(set(replicas)) == len(replicas) == factor
        assert len({racks[broker] for broker in replicas}) == min(factor, len(set(racks.values())))
    loads = Counter(replicas[0] for replicas in assignment.values())
    assert max(loads[broker] for broker in racks) - min(loads[broker] for broker in racks) <= 1


def test_a_topic_on_brokers_in_racks_is_created_and_grows_across_them() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    cluster = ControlledCluster(4, racks=racks)
    cluster.create(TOPIC, 4, 2)
    cluster.grow(TOPIC, 8)
    for replicas in parse_topic(cluster.data(topic_path(TOPIC))).partitions.values():
        assert {racks[broker] for broker in replicas} == {"a", "b"}


def test_followers_of_one_leader_are_not_all_on_the_same_broker() -> None:
    assignment = run_through(place(dict.fromkeys(range(5)), 25, 3, Random(3)))
    for leader in range(5):
        assert len({replicas[1] for replicas in assignment.values() if replicas[0] == leader}) == 4
