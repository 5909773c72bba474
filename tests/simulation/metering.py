"""What a reader of ``__usage`` sees, and clients that count for themselves."""

from __future__ import annotations

from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.records.batch import Record, build_batch, read_records, split_batches
from dataplane.storage.log import lookup
from quota.contracts.usage import USAGE_TOPIC, InstanceRecord, Told, UsageRecord, UserRecord, parse_value


def usage_records(cluster) -> list[UsageRecord]:
    """What the topic says of topics."""
    return [record for record in told(cluster) if isinstance(record, UsageRecord)]


def instance_records(cluster) -> list[InstanceRecord]:
    """What it says of whole instances."""
    return [record for record in told(cluster) if isinstance(record, InstanceRecord)]


def user_records(cluster) -> list[UserRecord]:
    """What it says of users."""
    return [record for record in told(cluster) if isinstance(record, UserRecord)]


def told(cluster) -> list[Told]:
    """Everything in the topic, from the leaders' logs."""
    found = []
    for broker in cluster.brokers.values():
        for index in broker.metadata.partitions(USAGE_TOPIC):
            partition = broker.replicas.registry.get(USAGE_TOPIC, index)
            if partition is not None and partition.state.is_leader:
                log = partition.log
                for _, batch in lookup.batches(log, log.start_offset, partition.state.high_watermark):
                    for record in read_records(bytes(batch)):
                        said = parse_value(record.value)
                        assert record.key == said.key()
                        found.append(said)
    return found


def usage_stamps(cluster) -> list[tuple[int, int]]:
    """(leader, timestamp in ms) of every batch in the topic."""
    found = []
    for number, broker in cluster.brokers.items():
        for index in broker.metadata.partitions(USAGE_TOPIC):
            partition = broker.replicas.registry.get(USAGE_TOPIC, index)
            if partition is not None and partition.state.is_leader:
                log = partition.log
                found += [
                    (number, h.max_timestamp)
                    for h, _ in lookup.batches(log, log.start_offset, partition.state.high_watermark)
                ]
    return found


def usage_of(cluster, topic) -> tuple[int, int, int]:
    """Produced, consumed and stored of a topic, over all boots."""
    largest = {}
    for record in usage_records(cluster):
        if record.topic == topic:
            counters = (record.produced_bytes, record.consumed_bytes, record.stored_byte_seconds)
            key = (record.boot, record.instance)
            largest[key] = tuple(map(max, largest.get(key, (0, 0, 0)), counters))
    return tuple(map(sum, zip(*largest.values(), strict=True))) if largest else (0, 0, 0)


def all_told(cluster) -> bool:
    """Whether no broker has anything left to tell."""
    return all(
        not (
            meter._dirty
            or meter._due
            or meter._closing
            or meter._pending
            or meter._former.has_more
            or meter._former._told
        )
        for meter in (broker.meter for broker in cluster.brokers.values())
    )


def batch_bytes(values: list[bytes]) -> int:
    """12 + batchLength of the batch that `Client.produce` sends."""
    return len(build_batch([Record(b"k", value) for value in values], now_ms=0))


class CountingReader:
    """Reads a partition again and again from the start, counting every batch that arrives."""

    def __init__(self, cluster, topic, partition, max_bytes=3_000) -> None:
        self._cluster, self._topic, self._partition, self._max_bytes = cluster, topic, partition, max_bytes
        self.bytes = 0
        self.rounds = 0
        self.unanswered = 0
        self.done = False

    async def run(self) -> None:
        client, ids = self._cluster.client, self._cluster.ids
        offset = 0
        while not self.done:
            leader = await client.leader(self._topic, self._partition, ids)
            wanted = FetchPartition(partition=self._partition, fetch_offset=offset, partition_max_bytes=self._max_bytes)
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=20,
                min_bytes=1,
                max_bytes=2**22,
                session_epoch=-1,
                topics=(FetchTopic(topic=self._topic, partitions=(wanted,)),),
            )
            answer = await client.call(leader, request, 11)
            if answer is None or not answer.responses or answer.responses[0].partitions[0].error_code:
                self.unanswered += answer is None
                await client.sleep(0.05)
                continue
            row = answer.responses[0].partitions[0]
            batches = split_batches(memoryview(bytearray(row.records)))
            assert sum(header.size for header, _ in batches) == len(row.records), "ends within a batch"
            self.bytes += len(row.records)
            offset = batches[-1][0].next_offset if batches else offset
            if not batches:
                offset, self.rounds = 0, self.rounds + 1
                await client.sleep(0.05)
