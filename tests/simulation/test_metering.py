"""A cluster's usage records against clients that count for themselves: to the byte without kills, else bytes in flight."""

import pytest

from dataplane.cluster.paths import topic_id_text
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.tasks import Task, gather
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.metering import (
    CountingReader,
    all_told,
    batch_bytes,
    instance_records,
    usage_of,
    usage_records,
    usage_stamps,
    user_records,
)

TOPIC = "orders"
PARTITIONS = 2
PRODUCERS_EACH = 3


class Run:
    """Producers and readers on a cluster, with something done to the brokers meanwhile."""

    def __init__(self, seed, batches=60):
        self.cluster = cluster = SimulatedCluster(seed)
        cluster.until(cluster.up)
        cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas="2")
        self.acknowledged = 0
        self.largest = 0
        self.batches = batches
        self.readers = [CountingReader(cluster, TOPIC, partition) for partition in range(PARTITIONS)]

    def go(self, faults):
        producers = [self._produce(p, n) for p in range(PARTITIONS) for n in range(PRODUCERS_EACH)]

        async def everything():
            readers = [Task(reader.run()) for reader in self.readers]
            await gather([Task(faults()), *(Task(producer) for producer in producers)])
            for reader in self.readers:
                reader.done = True
            await gather(readers)

        self.cluster.run(everything(), within_s=600)
        self.cluster.until(lambda: self.cluster.up() and self.cluster.in_sync(TOPIC))
        self.cluster.network.run_for(25)
        self.cluster.until(lambda: all_told(self.cluster))
        self.produced, self.consumed, self.stored = usage_of(self.cluster, TOPIC)

    async def _produce(self, partition, number):
        client, ids, random = self.cluster.client, self.cluster.ids, self.cluster.random
        producer_id = await client.producer_id(ids)
        sequence = 0
        for _ in range(self.batches):
            values = [b"v" * random.randint(1, 900) for _ in range(random.randint(1, 3))]
            await client.produce(TOPIC, partition, values, producer_id, sequence, ids)
            sequence += len(values)
            self.acknowledged += batch_bytes(values)
            self.largest = max(self.largest, batch_bytes(values))
            await client.sleep(random.random() * 0.2)

    async def settled(self):
        while not (self.cluster.up() and self.cluster.in_sync(TOPIC)):
            await self.cluster.client.sleep(0.1)

    def leaders(self):
        metadata = next(iter(self.cluster.brokers.values())).metadata
        return [row.leader for row in metadata.partitions(f"simulate.{TOPIC}").values()]


@pytest.mark.parametrize("seed", range(3))
def test_without_kills_usage_is_what_clients_counted_to_the_byte_while_leaders_change(seed):
    run = Run(seed)
    leaders = []

    async def restart_brokers_in_order():
        for broker in run.cluster.ids:
            await run.cluster.client.sleep(0.5 + run.cluster.random.random())
            leaders.append(run.leaders())
            await run.cluster.stop(broker)
            leaders.append(run.leaders())
            await run.cluster.client.sleep(0.5)
            run.cluster.start(broker)
            await run.settled()

    run.go(restart_brokers_in_order)
    assert len({tuple(found) for found in leaders}) > 2
    assert run.acknowledged > 100_000
    assert run.produced == run.acknowledged
    assert all(reader.rounds > 3 for reader in run.readers)
    assert run.consumed == sum(reader.bytes for reader in run.readers)


@pytest.mark.parametrize("seed", range(4))
def test_after_kills_the_difference_is_at_most_what_was_in_flight_and_nothing_is_counted_twice(seed):
    run = Run(100 + seed)
    kills, untold = 4, []

    async def kill_brokers():
        for number in range(kills):
            await run.cluster.client.sleep(1 + run.cluster.random.random())
            victim = run.leaders()[number % PARTITIONS]
            usage = run.cluster.brokers[victim].meter.topic(f"simulate.{TOPIC}")
            untold.append(usage.produced_bytes - usage.emitted_produced)
            run.cluster.kill(victim)
            await run.cluster.client.sleep(3 + run.cluster.random.random())
            run.cluster.start(victim)
            await run.settled()

    run.go(kill_brokers)
    in_flight = kills * PARTITIONS * PRODUCERS_EACH * run.largest
    assert max(untold) > in_flight / kills, "the kills would have cost nothing"
    assert run.acknowledged - in_flight <= run.produced <= run.acknowledged
    read = sum(reader.bytes for reader in run.readers)
    assert read <= run.consumed <= read + kills * PARTITIONS * 3_000


def test_every_broker_counts_the_storage_of_its_replicas():
    run = Run(7, batches=10)

    async def nothing():
        pass

    run.go(nothing)
    cluster = run.cluster
    before = usage_of(cluster, TOPIC)[2]
    stored = 3 * run.acknowledged
    cluster.network.run_for(1_300)
    told = {}
    for record in usage_records(cluster):
        told[record.broker] = max(told.get(record.broker, 0), record.stored_byte_seconds)
    assert sorted(told) == [1, 2, 3]
    grown = usage_of(cluster, TOPIC)[2] - before
    assert 600 * stored <= grown <= 1_300 * stored


def test_usage_records_carry_the_time_of_the_leader_that_took_them_not_of_the_broker_that_wrote_them():
    cluster = SimulatedCluster(8)
    cluster.until(cluster.up)
    topics = [f"t{number}" for number in range(24)]
    for topic in topics:
        cluster.create_topic(topic, 1)
    ahead = 2
    cluster.network.step_clock(cluster.host(ahead), 30 * 86_400_000)

    async def produce():
        producer = await cluster.client.producer_id(cluster.ids)
        for topic in topics:
            await cluster.client.produce(topic, 0, [b"once"], producer, 0, cluster.ids)

    cluster.run(produce())
    cluster.network.run_for(15)
    assert ahead in {record.broker for record in usage_records(cluster)}
    right = cluster.network.clock.now_ms()
    stamps = [when for leader, when in usage_stamps(cluster) if leader != ahead]
    assert stamps
    assert all(abs(when - right) < 60_000 for when in stamps)


def test_what_an_instance_moved_on_the_wire_is_told_beside_its_record_bytes():
    run = Run(12, batches=10)

    async def nothing():
        pass

    run.go(nothing)
    run.cluster.network.run_for(200)  # connections are looked at once a minute, and instances read once a minute
    largest = {}
    for record in instance_records(run.cluster):
        counters = (record.wire_in_bytes, record.wire_out_bytes, record.requests)
        key = (record.boot, record.instance)
        largest[key] = tuple(map(max, largest.get(key, (0, 0, 0)), counters))
    assert {instance for _, instance in largest} == {"ins-simulate"}
    came, went, requests = map(sum, zip(*largest.values(), strict=True))
    by_user = {}
    for record in user_records(run.cluster):
        key = (record.boot, record.instance, record.user)
        counters = (record.wire_in_bytes, record.wire_out_bytes, record.requests)
        by_user[key] = tuple(map(max, by_user.get(key, (0, 0, 0)), counters))
    assert {user for _, _, user in by_user} == {""}, "nobody signs in here"
    assert tuple(map(sum, zip(*by_user.values(), strict=True))) == (came, went, requests)
    read = sum(reader.bytes for reader in run.readers)
    assert run.acknowledged < came < 3 * run.acknowledged + 2**20, "each batch with the request around it"
    assert went > read
    assert requests > sum(reader.rounds for reader in run.readers)


def test_records_name_the_topic_by_its_uuid():
    run = Run(13, batches=3)

    async def nothing():
        pass

    run.go(nothing)
    broker = next(iter(run.cluster.brokers.values()))
    wanted = topic_id_text(broker.metadata.topic_id(f"simulate.{TOPIC}"))
    found = {(record.topic_id, record.cluster) for record in usage_records(run.cluster) if record.topic == TOPIC}
    assert found == {(wanted, "default")}


def test_a_duplicate_never_counts():
    cluster = SimulatedCluster(3)
    cluster.until(cluster.up)
    cluster.create_topic(TOPIC, 1)
    values = [b"once"]

    async def produce_three_times():
        producer = await cluster.client.producer_id(cluster.ids)
        return [await cluster.client.produce(TOPIC, 0, values, producer, 0, cluster.ids) for _ in range(3)]

    assert cluster.run(produce_three_times()) == [0, 0, 0]
    cluster.network.run_for(15)
    assert usage_of(cluster, TOPIC)[0] == batch_bytes(values)


def test_a_deleted_topic_is_told_to_the_end():
    from dataplane.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

    run = Run(5, batches=5)
    run.cluster.network.run_for(1)

    async def nothing():
        pass

    run.go(nothing)

    async def delete():
        controller = next(iter(run.cluster.brokers.values())).metadata.controller_id
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name=TOPIC),), timeout_ms=5_000)
        if (await run.cluster.client.call(controller, request, 6)).responses[0].error_code:
            raise AssertionError("not deleted")

    run.cluster.run(delete())
    run.cluster.network.run_for(30)
    produced, consumed, stored = usage_of(run.cluster, TOPIC)
    assert (produced, consumed) == (run.acknowledged, sum(reader.bytes for reader in run.readers))
    run.cluster.network.run_for(2_000)
    assert usage_of(run.cluster, TOPIC) == (produced, consumed, stored)
    for broker in run.cluster.brokers.values():
        assert not broker.meter._topics


def test_usage_is_told_again_when_its_topic_has_had_no_leader_for_a_while():
    run = Run(11, batches=20)
    cluster = run.cluster

    async def two_brokers_down():
        await cluster.client.sleep(2)
        for broker in (1, 2):
            cluster.kill(broker)
        await cluster.client.sleep(40)
        for broker in (1, 2):
            cluster.start(broker)
        await run.settled()

    run.go(two_brokers_down)
    in_flight = 2 * PARTITIONS * PRODUCERS_EACH * run.largest
    assert run.acknowledged - in_flight <= run.produced <= run.acknowledged


def fetch(topic, offset, max_bytes=2**20):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=2**22,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
    )


def test_whole_batches_count_wherever_the_fetch_begins_and_only_those_that_leave_for_a_tenant():
    cluster = SimulatedCluster(4)
    cluster.until(cluster.up)
    cluster.create_topic(TOPIC, 1)
    values = [b"a" * 100, b"b" * 100, b"c" * 100]
    size = batch_bytes(values)
    physical = f"simulate.{TOPIC}"

    async def story():
        client, ids = cluster.client, cluster.ids
        producer = await client.producer_id(ids)
        for number in range(3):
            await client.produce(TOPIC, 0, values, producer, 3 * number, ids)
        leader = await client.leader(TOPIC, 0, ids)
        broker = cluster.brokers[leader]
        usage = broker.meter.topic(physical)
        assert usage.consumed_bytes == 0  # followers have read it all
        got = []
        for offset, max_bytes in ((4, 10), (4, 2 * size + size // 2), (8, 2**20), (9, 2**20)):
            answer = await client.call(leader, fetch(TOPIC, offset, max_bytes), 11)
            got.append((len(answer.responses[0].partitions[0].records), usage.consumed_bytes))
        assert got == [(size, size), (2 * size, 3 * size), (size, 4 * size), (0, 4 * size)]
        answer = await broker.peers.call(leader, fetch(physical, 0), 11)  # the console looks at records
        assert len(answer.responses[0].partitions[0].records) == 3 * size
        assert usage.consumed_bytes == 4 * size

    cluster.run(story())
