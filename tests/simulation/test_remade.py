"""Which logs of a topic that is made again may go, by hand: campaigns meet these cases once in thousands of seeds."""

from random import Random

import pytest

from tests.simulation.cluster import SimulatedCluster
from tests.simulation.invariants import ViolationError
from tests.simulation.pace import Pace
from tests.simulation.workloads import Shared
from tests.simulation.workloads.remade import Remade

PHYSICAL = f"simulate.{Remade.TOPIC}"
DIRECTORY = f"/data/{PHYSICAL}-0"
VICTIM = 1


@pytest.fixture
def cluster():
    made = SimulatedCluster(5)
    made.until(made.up)
    return made


@pytest.fixture
def remade(cluster):
    """Every broker was seen to have its log, with a record, in a directory that is not on disk yet."""
    workload = Remade(Shared(cluster, Pace(cluster), Random(1)))
    workload.prepare()
    producer_id = cluster.run(cluster.client.producer_id(cluster.ids))
    cluster.run(cluster.client.produce(Remade.TOPIC, 0, [b"a record"], producer_id, 0, cluster.ids))
    workload.check_hosts()
    logs = [log_of(cluster, broker) for broker in cluster.ids]
    assert [(log.end_offset, log.is_founded) for log in logs] == [(1, False)] * 3
    return workload


def log_of(cluster, broker=VICTIM):
    return cluster.brokers[broker].logs.get(PHYSICAL, 0)


def power_cut(cluster):
    cluster.kill(VICTIM)
    cluster.lose_power(VICTIM)
    cluster.start(VICTIM)


@pytest.mark.parametrize("starts", [0, 1])
def test_a_replica_whose_directory_is_not_on_disk_goes_with_the_power_and_comes_back(cluster, remade, starts):
    """Seed 3326564, as turns were once: killed, started again, and without power before the next checkpoint."""
    for _ in range(starts):
        cluster.kill(VICTIM)
        cluster.start(VICTIM)
        remade.check_hosts()
        assert not log_of(cluster).is_founded
    power_cut(cluster)
    assert log_of(cluster) is None
    remade.check_hosts()
    cluster.until(lambda: cluster.up() and cluster.in_sync(Remade.TOPIC))
    remade.check_hosts()
    assert [log_of(cluster, broker).end_offset for broker in cluster.ids] == [1, 1, 1]
    assert cluster.run(cluster.client.read_all(Remade.TOPIC, 0, cluster.ids)) == [(0, b"a record")]


def test_one_whose_directory_is_on_disk_stays(cluster, remade):
    topic_id = log_of(cluster).topic_id
    log_of(cluster).founding.settle()
    power_cut(cluster)
    remade.check_hosts()
    assert log_of(cluster).topic_id == topic_id


def test_one_whose_directory_is_on_disk_may_not_go_with_the_power(cluster, remade):
    log_of(cluster).founding.settle()
    cluster.kill(VICTIM)
    cluster.lose_power(VICTIM)
    cluster.files[VICTIM].remove_tree(DIRECTORY)
    cluster.start(VICTIM)
    with pytest.raises(ViolationError, match="broker 1 has lost its log"):
        remade.check_hosts()


@pytest.mark.parametrize("after", ["nothing", "a kill", "a power cut"])
def test_one_that_was_removed_is_missed_whatever_comes_after(cluster, remade, after):
    cluster.brokers[VICTIM].logs.delete(PHYSICAL, 0)
    if after == "a kill":
        cluster.kill(VICTIM)
        cluster.start(VICTIM)
    elif after == "a power cut":
        power_cut(cluster)
    with pytest.raises(ViolationError, match="broker 1 has lost its log"):
        remade.check_hosts()


def test_one_that_came_back_may_not_go_again(cluster, remade):
    power_cut(cluster)
    cluster.until(lambda: cluster.up() and cluster.in_sync(Remade.TOPIC))
    remade.check_hosts()
    cluster.brokers[VICTIM].logs.delete(PHYSICAL, 0)
    with pytest.raises(ViolationError, match="broker 1 has lost its log"):
        remade.check_hosts()
