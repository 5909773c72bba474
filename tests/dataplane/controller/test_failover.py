"""Brokers die and return, controllers are replaced: leaders come from the ISR, and nobody obeys the past."""

from __future__ import annotations

import json

import pytest

from dataplane.cluster.paths import CONTROLLER, CONTROLLER_EPOCH, parse_controller
from dataplane.controller.controller import NewTopic
from dataplane.doors import Create, SetData
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages import control
from dataplane.tasks import Task
from tests.dataplane.controller.cluster import ControlledCluster


def _three_of_four() -> tuple[ControlledCluster, list[int]]:
    """A cluster, and three brokers in it that are not the controller."""
    cluster = ControlledCluster(4)
    return cluster, [broker.id for broker in cluster.others(cluster.controller().id)]


def test_there_is_one_controller_and_zookeeper_says_who() -> None:
    cluster = ControlledCluster(3)
    controller = cluster.controller()
    document = json.loads(cluster.data(CONTROLLER))
    assert (document["version"], document["brokerid"]) == (1, controller.id)
    assert cluster.data(CONTROLLER_EPOCH) == b"1"
    assert all(broker.metadata.controller_id == controller.id for broker in cluster.brokers.values())


def test_a_dead_leader_is_replaced_by_the_next_replica_in_sync_and_leaves_the_isr() -> None:
    cluster, (a, b, c) = _three_of_four()
    cluster.create_on("t", a, b, c)
    cluster.kill(a)
    cluster.run(3)
    state = cluster.state("t", 0)
    assert (state.leader, state.isr, state.leader_epoch) == (b, (b, c), 1)
    for broker in (cluster.brokers[b], cluster.brokers[c]):
        assert broker.leaderships["t", 0].leader == b
    for broker in cluster.others(a):
        assert a not in broker.metadata.alive()
        assert broker.metadata.partition("t", 0).leader == b  # type: ignore[union-attr]


def test_a_replica_that_is_not_in_sync_never_leads() -> None:
    cluster, (a, b, c) = _three_of_four()
    cluster.create_on("t", a, b, c)
    assert cluster.propose(a, "t", [a, c])[1].error_code == ErrorCode.NONE
    cluster.kill(a)
    cluster.run(3)
    assert cluster.state("t", 0).leader == c
    assert cluster.state("t", 0).isr == (c,)


def test_without_a_live_member_of_the_isr_there_is_no_leader_and_the_isr_stays() -> None:
    cluster, (a, b, c) = _three_of_four()
    cluster.create_on("t", a, b, c)
    cluster.propose(a, "t", [a])
    cluster.kill(a)
    cluster.run(3)
    state = cluster.state("t", 0)
    assert (state.leader, state.isr) == (-1, (a,))
    assert cluster.brokers[b].metadata.partition("t", 0).leader == -1  # type: ignore[union-attr]
    returned = cluster.start(a)
    cluster.run(3)
    state = cluster.state("t", 0)
    assert (state.leader, state.isr) == (a, (a,))
    assert returned.leaderships["t", 0].leader == a


def test_a_broker_that_returns_is_told_everything_and_is_not_in_the_isr_by_itself() -> None:
    cluster, (a, b, c) = _three_of_four()
    cluster.create_on("t", a, b, c)
    cluster.kill(c)
    cluster.run(3)
    cluster.create_on("later", a, b)
    returned = cluster.start(c)
    cluster.run(3)
    assert returned.metadata.topics() == ["later", "t"]
    assert returned.leaderships["t", 0].leader == a
    assert ("later", 0) not in returned.leaderships
    assert cluster.state("t", 0).isr == (a, b)


def test_a_broker_that_was_restarted_within_its_session_counts_as_having_died() -> None:
    """It waits for its old session's end, and is another incarnation then: what it had in memory is lost."""
    cluster, (a, b, c) = _three_of_four()
    cluster.create_on("t", a, b, c)
    before = cluster.epoch(a)
    cluster.kill(a)
    cluster.start(a)
    cluster.run(4)
    assert cluster.epoch(a) > before
    assert cluster.state("t", 0).leader == b
    assert a not in cluster.state("t", 0).isr


def test_leadership_returns_to_the_preferred_replica_once_it_is_in_sync_again() -> None:
    cluster, (a, b, c) = _three_of_four()
    cluster.create_on("t", a, b, c)
    cluster.kill(a)
    cluster.run(3)
    cluster.start(a)
    cluster.run(12)
    assert cluster.state("t", 0).leader == b  # not before it has caught up
    error, answer = cluster.propose(b, "t", [b, c, a])
    assert (error, answer.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    cluster.run(6)
    assert cluster.state("t", 0).leader == a
    assert cluster.brokers[a].leaderships["t", 0].leader == a


def test_a_replica_whose_disk_failed_loses_the_lead_though_its_broker_lives() -> None:
    cluster, (a, b, c) = _three_of_four()
    cluster.brokers[a].bad_disk["t", 0] = None
    cluster.create_on("t", a, b, c)
    cluster.run(1)
    state = cluster.state("t", 0)
    assert (state.leader, state.isr) == (b, (b, c))
    cluster.run(12)
    assert cluster.state("t", 0).leader == b


def test_a_broker_that_stops_in_order_hands_its_leadership_over_first() -> None:
    cluster, (a, b, c) = _three_of_four()
    cluster.create_on("t", a, b, c)
    cluster.create_on("alone", a)
    cluster.create_on("last", a, b)
    cluster.propose(a, "last", [a])
    request = control.ControlledShutdownRequest(a, cluster.epoch(a))
    response = cluster.wait(Task(cluster.controller().controller.controlled_shutdown(request)))
    assert response.error_code == ErrorCode.NONE
    assert [(left.topic_name, left.partition_index) for left in response.remaining_partitions] == [("last", 0)]
    assert (cluster.state("t", 0).leader, cluster.state("t", 0).isr) == (b, (b, c))
    error, answer = cluster.propose(b, "t", [a, b, c])
    assert (error, answer.error_code) == (ErrorCode.NONE, ErrorCode.INELIGIBLE_REPLICA)
    stale = control.ControlledShutdownRequest(b, cluster.epoch(b) - 1)
    response = cluster.wait(Task(cluster.controller().controller.controlled_shutdown(stale)))
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("after_s", [0.0, 2.0, 2.002, 2.004, 2.006, 2.008, 2.01, 2.015, 2.02])
def test_a_controller_that_dies_while_it_replaces_leaders_is_replaced_and_the_work_is_finished(after_s: float) -> None:
    cluster = ControlledCluster(5)
    first = cluster.controller()
    a, b, c, _ = (broker.id for broker in cluster.others(first.id))
    for number in range(5):
        cluster.create_on(f"t{number}", a, b, c)
    cluster.kill(a)
    cluster.run(after_s)
    cluster.kill(first.id)
    cluster.run(8)
    second = cluster.controller()
    assert second.id not in (first.id, a)
    assert parse_controller(cluster.data(CONTROLLER)) == second.id
    for number in range(5):
        state = cluster.state(f"t{number}", 0)
        assert (state.leader, state.isr) == (b, (b, c))
        for broker_id in (b, c):
            assert cluster.brokers[broker_id].leaderships[f"t{number}", 0].leader == b
    epochs = [
        request.controller_epoch
        for request in cluster.brokers[b].requests
        if isinstance(request, control.UpdateMetadataRequest)
    ]
    assert epochs[-1] == 2


def test_a_controller_that_lost_its_session_stops_at_once_and_writes_nothing_more() -> None:
    cluster = ControlledCluster(3)
    first = cluster.controller()
    first.zookeeper.cut()  # it does not know yet
    pending = Task(first.controller.create_topics([NewTopic("t")]))
    cluster.run(1.4)
    assert not first.controller.is_active
    with pytest.raises(ApiError) as refusal:
        cluster.wait(pending)
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER
    cluster.run(3)
    second = cluster.controller()
    assert second.id != first.id
    first.zookeeper.resume()
    cluster.run(3)
    assert cluster.controller() is second
    assert "/brokers/topics/t" not in cluster.server.tree.dump()


def test_a_short_interruption_gives_a_new_term_and_never_two_controllers() -> None:
    cluster = ControlledCluster(3)
    first = cluster.controller()
    cluster.create("t")
    first.zookeeper.suspend()
    assert not first.controller.is_active
    cluster.run(0.5)
    first.zookeeper.resume()
    cluster.run(2)
    assert cluster.data(CONTROLLER_EPOCH) == b"2"
    assert cluster.create("u").error is ErrorCode.NONE
    assert all(broker.metadata.controller_epoch == 2 for broker in cluster.brokers.values())


def test_an_old_controllers_write_is_refused_by_zookeeper() -> None:
    """Somebody was elected and the old one has not noticed: the fence is the epoch node, not what it knows."""
    cluster = ControlledCluster(3)
    cluster.create("t")
    first = cluster.controller()
    state = cluster.state("t", 0)
    cluster.server.write([SetData(CONTROLLER_EPOCH, b"2")])
    assert cluster.propose(state.leader, "t", [state.leader])[0] == ErrorCode.NOT_CONTROLLER
    assert cluster.state("t", 0) == state
    cluster.run(2)
    assert cluster.controller().controller.epoch == 3
    assert cluster.controller() is first or not first.controller.is_active


def test_brokers_refuse_an_old_controller_and_it_steps_down() -> None:
    cluster = ControlledCluster(3)
    first = cluster.controller()
    witness = cluster.others(first.id)[0]
    witness.metadata.saw_controller(99, 7)  # it has heard of a newer one
    Task(first.controller.create_topics([NewTopic("t")]))
    cluster.time.until(lambda: not first.controller.is_active, 2)
    assert not witness.metadata.has_topic("t")


def test_an_error_within_a_term_ends_it_and_another_begins() -> None:
    cluster = ControlledCluster(3)
    cluster.controller()
    cluster.server.write([SetData("/brokers/ids/1", b"not json")])
    victim = cluster.controller()
    cluster.kill(next(b.id for b in cluster.others(victim.id) if b.id != 1) if victim.id != 1 else 2)
    cluster.run(3)
    cluster.server.write([SetData("/brokers/ids/1", b'{"endpoints":["INTERNAL://127.0.0.1:20011"]}')])
    cluster.run(3)
    assert cluster.create("t", factor=2).error is ErrorCode.NONE


def test_what_is_meant_for_an_earlier_incarnation_is_refused() -> None:
    cluster, (a, b, c) = _three_of_four()
    cluster.create_on("t", a, b, c)
    old = cluster.epoch(a)
    cluster.brokers[a].zookeeper.expire()
    cluster.run(3)
    assert cluster.epoch(a) > old
    stale = control.UpdateMetadataRequest(controller_epoch=9, broker_epoch=old)
    assert cluster.brokers[a].handle(stale).error_code == ErrorCode.STALE_BROKER_EPOCH
    error, _ = cluster.propose(b, "t", [b, c], broker_epoch=cluster.epoch(b) - 1)
    assert error == ErrorCode.STALE_BROKER_EPOCH


def test_a_node_of_ours_without_a_term_behind_it_is_deleted_and_contested_again() -> None:
    """Left by an election whose answer was lost: it stands for nobody, and would for as long as its session lives."""
    cluster = ControlledCluster(3)
    first = cluster.controller()
    first.controller.stop()
    first.zookeeper.kill()
    heir = cluster.others(first.id)[0]
    session = heir.zookeeper.session_id()
    cluster.server.end_session(cluster.server.tree.find(CONTROLLER).owner)  # type: ignore[union-attr]
    cluster.server.write([Create(CONTROLLER, cluster.server.tree.node(CONTROLLER_EPOCH).data, ephemeral=True)], session)
    cluster.run(3)
    assert sum(broker.controller.is_active for broker in cluster.others(first.id)) == 1
    assert cluster.data(CONTROLLER_EPOCH) == b"2"
