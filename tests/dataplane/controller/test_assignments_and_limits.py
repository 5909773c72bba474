"""Assignments that a request brings itself count as those that placement makes; and a tenant's own must be spread."""

from __future__ import annotations

from random import Random

import pytest

from dataplane.controller.context import Holdings
from dataplane.controller.decisions.creation import (
    MAX_PARTITIONS_PER_TOPIC,
    MorePartitions,
    NewTopic,
    assign,
    grow,
)
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.records.steps import run_through
from tests.dataplane.controller.cluster import ControlledCluster

TOPIC = "k3v9x2qa.orders"
LIVE = dict.fromkeys((1, 2, 3))


def _assign(topic: NewTopic, *, topics: int = 0, replicas: int = 0, on_brokers: dict[int, int] | None = None) -> object:
    return run_through(assign(topic, LIVE, Holdings(topics, replicas, on_brokers or {}), (1, 3), Random(1))).partitions


def _grow(more: MorePartitions, *, replicas: int, on_brokers: dict[int, int] | None = None) -> object:
    return run_through(grow(more, {0: (1, 2)}, LIVE, Holdings(1, replicas, on_brokers or {}), Random(1)))


@pytest.mark.parametrize("limit", [6, 7])
def test_a_topic_with_an_assignment_may_use_the_limit_up(limit: int) -> None:
    wanted = NewTopic("t", assignment={0: (1, 2), 1: (2, 3)}, replica_limit=limit)
    assert _assign(wanted, replicas=2) == {0: (1, 2), 1: (2, 3)}


def test_a_topic_with_an_assignment_beyond_the_limit_is_refused_with_the_figures() -> None:
    wanted = NewTopic("t", assignment={0: (1, 2), 1: (2, 3)}, replica_limit=5)
    with pytest.raises(ApiError) as refused:
        _assign(wanted, replicas=2)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert refused.value.message == (
        "the instance may hold 5 partitions, replicas included; it holds 2 and this topic needs 4"
    )


def test_growth_by_an_assignment_counts_each_of_its_replicas() -> None:
    more = MorePartitions("t", 3, ((1, 2), (3, 1)), replica_limit=6)
    assert _grow(more, replicas=2) == {1: (1, 2), 2: (3, 1)}
    with pytest.raises(ApiError) as refused:
        _grow(more, replicas=3)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert refused.value.message == (
        "the instance may hold 6 partitions, replicas included; it holds 3 and this topic needs 4 more"
    )


def test_an_assignment_has_no_more_partitions_than_a_topic_may_have() -> None:
    most = dict.fromkeys(range(MAX_PARTITIONS_PER_TOPIC), (1,))
    assert _assign(NewTopic("t", assignment=most)) == most
    with pytest.raises(ApiError) as refused:
        _assign(NewTopic("t", assignment={**most, len(most): (1,)}))
    assert refused.value.code is ErrorCode.INVALID_PARTITIONS


# --- no broker more than its share ------------------------------------------------------------------------------------


def test_a_tenants_assignment_puts_no_more_on_a_broker_than_twice_an_even_share_of_its_limit() -> None:
    """Of 12 on three brokers an even share is 4."""
    eight = dict.fromkeys(range(8), (2,))
    wanted = NewTopic("t", assignment=eight, replica_limit=12, is_tenants=True)
    assert _assign(wanted) == eight
    with pytest.raises(ApiError) as refused:
        _assign(wanted, replicas=1, on_brokers={2: 1})
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert refused.value.message == (
        "an assignment may bring the instance's replicas on one broker to 8, twice an even share of its limit; "
        "broker 2 would hold 9"
    )


def test_a_tenants_growth_by_an_assignment_has_the_same_share() -> None:
    more = MorePartitions("t", 2, ((3, 1),), replica_limit=12, is_tenants=True)
    assert _grow(more, replicas=9, on_brokers={1: 7, 2: 1, 3: 1}) == {1: (3, 1)}
    with pytest.raises(ApiError) as refused:
        _grow(more, replicas=10, on_brokers={1: 8, 2: 1, 3: 1})
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert "broker 1 would hold 9" in refused.value.message


def test_the_share_is_of_the_brokers_that_serve_the_instance_and_operators_are_free() -> None:
    pinned = dict.fromkeys(range(12), (2,))
    assert _assign(NewTopic("t", assignment=pinned, replica_limit=12, is_tenants=True, brokers=(1, 2))) == pinned
    assert _assign(NewTopic("t", assignment=pinned, replica_limit=12)) == pinned
    assert _assign(NewTopic("t", assignment=pinned, is_tenants=True)) == pinned  # no limit: no share of it


def test_what_an_instance_holds_on_a_broker_follows_its_topics() -> None:
    cluster = ControlledCluster(3)
    context = cluster.controller().controller._term.context  # type: ignore[union-attr]

    def held() -> dict[int, int]:
        return dict(context.holdings("k3v9x2qa").on_brokers)

    cluster.create(TOPIC, assignment={0: (1, 2), 1: (1, 3)})
    cluster.create("zzzzzzzz.other", assignment={0: (1, 2)})
    assert held() == {1: 2, 2: 1, 3: 1}
    cluster.grow(TOPIC, 3, assignment=((2, 3),))
    assert held() == {1: 2, 2: 2, 3: 2}
    cluster.delete(TOPIC)
    assert held() == {}
