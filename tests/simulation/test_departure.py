"""A broker that leaves in order: who leads instead is known before it goes, and its last words say so."""

from dataclasses import replace

import pytest

from dataplane.departure import leave
from dataplane.doors import Create, SetData
from dataplane.handlers.records.leader_hints import current_leader
from dataplane.tasks import Task
from dataplane.tenancy.closings import Closings
from quota.contracts.instance import InstanceState
from tests.simulation.cluster import INSTANCE, SimulatedCluster

TOPIC = "orders"
PHYSICAL = f"simulate.{TOPIC}"
PARTITIONS = 3


@pytest.fixture
def cluster():
    made = SimulatedCluster(3)
    made.until(made.up)
    made.create_topic(TOPIC, PARTITIONS, min_insync_replicas="2")
    return made


def led_by(cluster, broker):
    return [p for p in cluster.brokers[broker].replicas.registry.partitions() if p.state.is_leader]


def controller_of(cluster):
    return next(n for n, broker in cluster.brokers.items() if broker.controller.is_active)


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_broker_that_leaves_names_the_new_leaders_before_it_goes(cluster, broker):
    gone = [(p.topic, p.index) for p in led_by(cluster, broker)]
    assert gone
    cluster.run(leave(cluster.brokers[broker]))
    assert led_by(cluster, broker) == []
    for topic, index in gone:
        named, epoch = current_leader(cluster.brokers[broker], topic, index)
        assert named != broker
        heir = cluster.brokers[named].replicas.registry.get(topic, index)
        cluster.until(lambda: heir.state.is_leader, within_s=0.1)  # noqa: B023 - called at once
        assert (epoch, broker in heir.state.isr) == (heir.state.leader_epoch, False)


def test_a_broker_that_finds_no_controller_asks_the_next_one(cluster):
    controller = controller_of(cluster)
    leaver = next(n for n in cluster.ids if n != controller)
    cluster.kill(controller)
    leaving = Task(leave(cluster.brokers[leaver]))
    cluster.until(lambda: leaving.done)
    assert not any("no controlled shutdown" in text for _, text in cluster.log)
    assert all(len(p.state.isr) == 1 for p in led_by(cluster, leaver))  # nobody else was in sync: those it keeps


def test_a_broker_without_zookeeper_goes_all_the_same(cluster):
    leaver = cluster.ids[0]
    for broker in [n for n in cluster.ids if n != leaver]:
        cluster.kill(broker)
    cluster.brokers[leaver].controller.stop()
    cluster.run(leave(cluster.brokers[leaver]), within_s=20)
    assert any("no controlled shutdown" in text for _, text in cluster.log)


def test_what_a_deleted_instance_has_used_is_told_though_its_connections_are_still_being_closed(cluster, monkeypatch):
    monkeypatch.setattr(Closings, "_run", lambda _: None)  # they are very many, and the broker is busy
    leaver, broker = next((n, b) for n, b in cluster.brokers.items() if b.registry.get(INSTANCE).connections)
    instance = broker.registry.get(INSTANCE)
    deleted = replace(instance.spec, generation=instance.spec.generation + 1, state=InstanceState.DELETED)
    change = Create("/sluice/changes/change-0000000001", f'{{"instance":"{INSTANCE}"}}'.encode())
    cluster.zookeeper.write([SetData(f"/sluice/instances/{INSTANCE}", deleted.to_json()), change])
    cluster.until(lambda: broker.registry.get(INSTANCE) is None)
    assert instance.connections
    usage, known = broker.meter.instances, []
    stop = broker.meter.stop
    monkeypatch.setattr(
        broker.meter, "stop", lambda within_s: (known.append(INSTANCE in usage._gone), stop(within_s))[1]
    )
    cluster.run(cluster.stop(leaver))
    assert known == [True]
