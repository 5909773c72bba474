"""A consumer that fetches in sessions, as the Java client does, reads everything once and in order while leaders die."""

from __future__ import annotations

import pytest

from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from dataplane.records.batch import read_records, split_batches
from dataplane.tasks import Task
from tests.simulation.cluster import SimulatedCluster

TOPIC, PARTITIONS, BATCHES = "orders", 6, 25


class Consumer:
    """Reads all partitions from their leaders, with one session at each broker."""

    def __init__(self, cluster, version):
        self.cluster, self.version = cluster, version
        self.offsets = dict.fromkeys(range(PARTITIONS), 0)
        self.values = {partition: [] for partition in range(PARTITIONS)}
        self.sessions = {}  # broker -> [id, epoch, {partition: offset as told}]
        self.incremental = self.named = 0

    async def leaders(self):
        """({partition: (leader, epoch)}, topic id)."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),))
        for broker in sorted(self.cluster.brokers):
            answer = await self.cluster.client.call(broker, request, 12)
            if answer is not None and answer.topics and not answer.topics[0].error_code:
                topic = answer.topics[0]
                return {p.partition_index: (p.leader_id, p.leader_epoch) for p in topic.partitions}, topic.topic_id
        return {}, None

    async def run(self, is_done):
        while not is_done():
            leaders, topic_id = await self.leaders()
            for broker in sorted({leader for leader, _ in leaders.values() if leader >= 0}):
                wanted = {p: epoch for p, (leader, epoch) in leaders.items() if leader == broker}
                await self.fetch(broker, wanted, topic_id)
            await self.cluster.client.sleep(0.02)

    async def fetch(self, broker, wanted, topic_id):
        session = self.sessions.setdefault(broker, [0, 0, {}])
        session_id, epoch, told = session
        now = {p: (self.offsets[p], leader_epoch) for p, leader_epoch in wanted.items()}
        changed = {p: state for p, state in now.items() if told.get(p) != state}
        rows = tuple(
            FetchPartition(partition=p, fetch_offset=o, current_leader_epoch=e, partition_max_bytes=2**20)
            for p, (o, e) in changed.items()
        )
        gone = tuple(p for p in told if p not in now) if epoch else ()
        name = {"topic_id": topic_id} if self.version >= 13 else {"topic": TOPIC}
        request = FetchRequest(
            max_wait_ms=50,
            min_bytes=1,
            max_bytes=2**22,
            session_id=session_id,
            session_epoch=epoch,
            topics=(FetchTopic(partitions=rows, **name),) if rows else (),
            forgotten_topics_data=(ForgottenTopic(partitions=gone, **name),) if gone else (),
        )
        answer = await self.cluster.client.call(broker, request, self.version)
        if answer is None or answer.error_code:
            del self.sessions[broker]
            return
        self.incremental += epoch > 0
        self.named += len(rows) if epoch else 0
        self.sessions[broker] = [answer.session_id, epoch + 1 if answer.session_id else 0, now]
        for topic in answer.responses:
            for row in topic.partitions:
                self.take(row)

    def take(self, row):
        partition = row.partition_index
        if row.error_code:
            assert row.error_code in (3, 6, 9, 56, 74, 75, 78, 100), row
            return
        for header, batch in split_batches(memoryview(bytearray(row.records))):
            for record in read_records(batch):
                if record.offset >= self.offsets[partition]:
                    assert record.offset == len(self.values[partition]), "an offset is missing or doubled"
                    self.values[partition].append(record.value)
            self.offsets[partition] = max(self.offsets[partition], header.last_offset + 1)


def run(seed, version):
    cluster = SimulatedCluster(seed)
    cluster.until(cluster.up)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas="2")
    acknowledged = dict.fromkeys(range(PARTITIONS), 0)
    finished = []
    consumer = Consumer(cluster, version)

    async def producer(partition):
        producer_id = await cluster.client.producer_id(cluster.ids)
        for number in range(BATCHES):
            value = f"{partition}-{number}".encode()
            base = await cluster.client.produce(TOPIC, partition, [value], producer_id, number, cluster.ids)
            assert base == number
            acknowledged[partition] = base + 1
            await cluster.client.sleep(0.1 + 0.3 * cluster.random.random())
        finished.append(partition)

    async def faults():
        for _ in range(2):
            await cluster.client.sleep(1 + cluster.random.random())
            victim = cluster.random.choice(cluster.ids)
            cluster.kill(victim)
            await cluster.client.sleep(3)
            cluster.start(victim)
            while not (cluster.up() and cluster.in_sync(TOPIC)):
                await cluster.client.sleep(0.1)
        finished.append("faults")

    async def everything():
        await consumer.run(lambda: len(finished) == 1 + PARTITIONS // 2 and consumer.offsets == acknowledged)

    tasks = [Task(producer(p)) for p in range(0, PARTITIONS, 2)] + [Task(faults())]  # every other partition is idle
    cluster.run(everything(), 300)
    assert all(task.done for task in tasks)
    return consumer


@pytest.mark.parametrize(("seed", "version"), [(11, 12), (12, 17), (13, 17)])
def test_sessions_survive_dying_leaders(seed, version):
    consumer = run(seed, version)
    for partition, values in consumer.values.items():
        expected = [f"{partition}-{n}".encode() for n in range(BATCHES)] if partition % 2 == 0 else []
        assert values == expected
    assert consumer.incremental > 50
    assert consumer.named < 3 * consumer.incremental  # most say nothing of most
