"""What counts as a copy of what is acknowledged: each case by hand, as campaigns meet it once in hundreds of seeds."""

import pytest

from dataplane.tasks import Task
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.disks import end_on_disk
from tests.simulation.invariants import Invariants, ViolationError

TOPIC = "orders"
PHYSICAL = f"simulate.{TOPIC}"
SOON_S = 1.0  # long enough for a record to get to all followers, too short for a session to end


@pytest.fixture
def cluster():
    made = SimulatedCluster(5)
    made.until(made.up)
    made.create_topic(TOPIC, 1, min_insync_replicas="2")
    created = made.client.sleep(SOON_S)
    made.until(lambda: created.done)
    for broker in made.brokers.values():
        broker.logs.get(PHYSICAL, 0).founding.settle()  # else a power cut takes the replica itself, and not what it has
    return made


@pytest.fixture
def invariants(cluster):
    return Invariants(cluster, TOPIC, 1)


@pytest.fixture
def leader(cluster):
    return next(n for n, broker in cluster.brokers.items() if broker.replicas.registry.get(PHYSICAL, 0).state.is_leader)


@pytest.fixture
def followers(cluster, leader):
    return [broker for broker in cluster.ids if broker != leader]


def end_of(cluster, broker):
    return cluster.brokers[broker].logs.get(PHYSICAL, 0).end_offset


def write(cluster, leader):
    """A record, acknowledged or not. Returns its offset."""
    client, ids = cluster.client, cluster.ids
    producer_id = cluster.run(client.producer_id(ids))
    Task(client.produce(TOPIC, 0, [b"a record"], producer_id, 0, ids))
    soon = client.sleep(SOON_S)
    cluster.until(lambda: soon.done)
    assert end_of(cluster, leader) == 1
    return 0


def kill_and_lose(cluster, broker):
    """And start it again, without what it had."""
    cluster.kill(broker)
    cluster.lose_power(broker)
    cluster.start(broker)
    assert end_of(cluster, broker) == 0


def test_what_the_leader_alone_has_is_on_too_few(cluster, invariants, leader, followers):
    for follower in followers:
        cluster.network.cut(cluster.host(leader), cluster.host(follower))
    offset = write(cluster, leader)
    with pytest.raises(ViolationError, match="do not have it"):
        invariants.acknowledged(0, offset)


def test_who_was_down_when_it_was_written_does_not_have_it(cluster, invariants, leader, followers):
    for follower in followers:
        cluster.kill(follower)
    offset = write(cluster, leader)
    with pytest.raises(ViolationError, match="do not have it"):
        invariants.acknowledged(0, offset)


def test_who_went_down_with_it_has_it(cluster, invariants, leader, followers):
    one, other = followers
    cluster.kill(one)
    offset = write(cluster, leader)
    cluster.kill(other)
    invariants.acknowledged(0, offset)


def test_who_lost_it_with_its_power_counts_until_it_is_in_sync_again(cluster, invariants, leader, followers):
    """The leader has heard that it has it, and counts it until its session ends: how could it know?"""
    one, other = followers
    cluster.kill(one)
    offset = write(cluster, leader)
    kill_and_lose(cluster, other)
    invariants.acknowledged(0, offset)
    cluster.recovered()
    with pytest.raises(ViolationError, match="do not have it"):
        invariants.acknowledged(0, offset)


def test_who_lost_its_power_before_it_was_written_never_had_it(cluster, invariants, leader, followers):
    one, other = followers
    cluster.kill(one)
    kill_and_lose(cluster, other)
    cluster.kill(other)
    offset = write(cluster, leader)
    with pytest.raises(ViolationError, match="do not have it"):
        invariants.acknowledged(0, offset)


def test_what_is_synced_in_a_directory_that_is_not_on_disk_is_not_on_disk(cluster):
    cluster.create_topic("fresh", 1, min_insync_replicas="2")
    producer_id = cluster.run(cluster.client.producer_id(cluster.ids))
    cluster.run(cluster.client.produce("fresh", 0, [b"a record"], producer_id, 0, cluster.ids))
    for broker, running in cluster.brokers.items():
        log = running.logs.get("simulate.fresh", 0)
        log.active.file.sync()
        assert (log.end_offset, end_on_disk(cluster.files[broker], log)) == (1, 0)
        log.founding.settle()
        assert end_on_disk(cluster.files[broker], log) == 1
