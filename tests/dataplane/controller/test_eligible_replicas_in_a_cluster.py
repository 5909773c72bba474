"""The controller keeps eligible replicas in ZooKeeper, and lets them lead: also the next controller does."""

from __future__ import annotations

import pytest

from dataplane.cluster.paths import NO_LEADER, PartitionState
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.controller.cluster import ControlledCluster


@pytest.fixture
def cluster() -> ControlledCluster:
    """Four brokers; two of three must be in sync."""
    cluster = ControlledCluster(4)
    cluster.enough = 2
    return cluster


@pytest.fixture
def replicas(cluster: ControlledCluster) -> list[int]:
    """Of a partition of `t`: three that are not the controller, the first leads and is alone in the ISR; 2nd eligible."""
    a, b, c = (broker.id for broker in cluster.others(cluster.controller().id))
    cluster.create_on("t", a, b, c)
    cluster.propose(a, "t", [a, b])
    cluster.propose(a, "t", [a])
    return [a, b, c]


def state(cluster: ControlledCluster) -> PartitionState:
    return cluster.state("t", 0)


def test_who_left_an_isr_that_is_too_small_is_eligible_and_the_leader_is_told(cluster, replicas):
    a, b, c = replicas
    assert (state(cluster).isr, state(cluster).eligible) == ((a,), (b,))
    _, answer = cluster.propose(a, "t", [a, c])
    assert (answer.error_code, answer.leader_recovery_state) == (ErrorCode.NONE, 0)
    assert state(cluster).eligible == ()
    _, answer = cluster.propose(a, "t", [a])
    assert (answer.leader_recovery_state, state(cluster).eligible) == (1, (c,))


def test_an_eligible_replica_leads_when_the_isr_is_dead_and_a_lagging_one_does_not(cluster, replicas):
    a, b, _ = replicas
    cluster.kill(a)
    cluster.run(3)
    assert (state(cluster).leader, state(cluster).isr, state(cluster).eligible) == (b, (b,), (a,))
    assert cluster.brokers[b].leaderships["t", 0].leader_recovery_state == 1


@pytest.mark.parametrize("whole", [True, False])
def test_who_returns_with_lost_logs_is_neither_in_sync_nor_eligible(cluster, replicas, whole):
    a, b, _ = replicas
    epoch = cluster.epoch(b)
    cluster.kill(b)
    cluster.run(3)
    cluster.start(b, whole_since=epoch if whole else None)
    cluster.run(1)
    cluster.kill(a)
    cluster.run(3)
    assert state(cluster).leader == (b if whole else NO_LEADER)


def test_the_last_in_sync_that_loses_its_tail_does_not_lead_while_an_eligible_one_may_return(cluster, replicas):
    a, b, _ = replicas
    epoch = cluster.epoch(b)
    cluster.kill(b)
    cluster.kill(a)
    cluster.run(3)
    cluster.start(a)
    cluster.run(3)
    assert (state(cluster).leader, state(cluster).last_leader) == (NO_LEADER, a)
    cluster.start(b, whole_since=epoch)
    cluster.run(3)
    assert state(cluster).leader == b


def test_when_all_have_returned_and_all_have_lost_something_who_led_last_leads(cluster, replicas):
    a, b, c = replicas
    for broker in (a, b, c):
        cluster.kill(broker)
    cluster.run(3)
    for broker in (c, b, a):
        assert state(cluster).leader == NO_LEADER
        cluster.start(broker)
        cluster.run(1)
    assert state(cluster).leader == a


def test_a_restart_that_no_controller_saw_is_found_in_the_state(cluster, replicas):
    a, b, _ = replicas
    controller = cluster.controller().id
    cluster.kill(controller)
    cluster.kill(b)
    cluster.start(b)  # with lost logs, before another controller is elected
    cluster.run(4)
    cluster.kill(a)
    cluster.run(3)
    assert state(cluster).leader == NO_LEADER


def test_with_fewer_asked_for_nobody_is_eligible_any_more(cluster, replicas):
    cluster.enough = 1
    cluster.controller().controller.topic_config_changed("t")
    cluster.run(1)
    assert state(cluster).eligible == ()
    assert cluster.brokers[replicas[0]].leaderships["t", 0].leader_recovery_state == 0
