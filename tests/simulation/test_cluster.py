"""Three brokers on a virtual clock: nothing acknowledged is lost when leaders die, and a seed replays bit for bit."""

import pytest

from dataplane.storage.log import lookup
from tests.simulation.cluster import SimulatedCluster

TOPIC = "orders"
PARTITIONS = 2
BATCHES = 40


def run(seed):
    """Produce with acks=all while brokers die and come back; what was acknowledged, what can be read, and the trace."""
    cluster = SimulatedCluster(seed)
    cluster.until(cluster.up)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas="2")
    acknowledged = {}

    async def producer(partition):
        producer_id = await cluster.client.producer_id(cluster.ids)
        sequence = 0
        for number in range(BATCHES):
            values = [f"{partition}-{number}-{i}".encode() for i in range(1 + number % 3)]
            base = await cluster.client.produce(TOPIC, partition, values, producer_id, sequence, cluster.ids)
            sequence += len(values)
            for i, value in enumerate(values):
                acknowledged[partition, base + i] = value
            cluster.note(f"acknowledged {partition} {base}")
            await cluster.client.sleep(0.2)

    async def faults():
        for _ in range(3):
            await cluster.client.sleep(1 + cluster.random.random())
            victim = cluster.random.choice(cluster.ids)
            cluster.kill(victim)
            await cluster.client.sleep(3 + cluster.random.random())
            cluster.start(victim)
            while not (cluster.up() and cluster.in_sync(TOPIC)):
                await cluster.client.sleep(0.1)

    async def everything():
        from dataplane.tasks import Task, gather

        await gather([Task(faults()), *(Task(producer(partition)) for partition in range(PARTITIONS))])

    cluster.run(everything(), within_s=300)
    cluster.until(lambda: cluster.up() and cluster.in_sync(TOPIC))
    read = {
        (partition, offset): value
        for partition in range(PARTITIONS)
        for offset, value in cluster.run(cluster.client.read_all(TOPIC, partition, cluster.ids))
    }
    return acknowledged, read, cluster


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_is_read_exactly_once_and_in_order_while_brokers_die(seed):
    acknowledged, read, _ = run(seed)
    assert len(acknowledged) == PARTITIONS * sum(1 + number % 3 for number in range(BATCHES))
    assert read == acknowledged
    for partition in range(PARTITIONS):
        order = [read[key] for key in sorted(read) if key[0] == partition]
        assert order == [f"{partition}-{n}-{i}".encode() for n in range(BATCHES) for i in range(1 + n % 3)]


def test_a_seed_replays_bit_for_bit_and_another_seed_does_not():
    _, _, first = run(1234)
    _, _, again = run(1234)
    _, _, other = run(1235)
    assert first.trace == again.trace
    assert first.trace != other.trace
    assert len(first.trace[1]) > 2 * BATCHES


def test_every_replica_holds_the_same_log_when_all_is_quiet():
    acknowledged, _, cluster = run(77)
    for partition in range(PARTITIONS):
        logs = [broker.logs.get(f"simulate.{TOPIC}", partition) for broker in cluster.brokers.values()]
        contents = [
            [bytes(batch) for _, batch in lookup.batches(log, log.start_offset, log.end_offset)] for log in logs
        ]
        assert contents[0] == contents[1] == contents[2]
        assert contents[0]
    assert acknowledged


def test_a_topic_created_again_does_not_inherit_committed_offsets():
    cluster = SimulatedCluster(5)
    cluster.until(cluster.up)
    cluster.create_topic(TOPIC, 1)
    cluster.run(cluster.client.commit("readers", TOPIC, 0, 7, cluster.ids))
    assert cluster.run(cluster.client.committed("readers", TOPIC, 0, cluster.ids)) == 7
    cluster.delete_topic(TOPIC)
    cluster.create_topic(TOPIC, 1)
    assert cluster.run(cluster.client.committed("readers", TOPIC, 0, cluster.ids)) == -1


@pytest.mark.parametrize("seed", range(3))
def test_the_controller_needs_no_longer_than_others_to_get_a_topic_of_the_clusters_own(seed):
    """It asks itself, and the answer waits for orders that it sends itself: they must not stand in one queue."""
    cluster = SimulatedCluster(seed)
    cluster.until(cluster.up)
    controller = next(n for n, broker in cluster.brokers.items() if broker.controller.is_active)
    ensured = cluster.brokers[controller].ensure_internal_topic("__consumer_offsets")
    cluster.until(lambda: ensured.done, within_s=3)
    assert cluster.brokers[controller].metadata.partitions("__consumer_offsets")
