"""A tenant that asks a simulated cluster for one partition, version by version."""

from __future__ import annotations

from dataplane.protocol.api import APIS
from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.schema import message_info
from dataplane.records.batch import read_records, split_batches
from dataplane.records.legacy import read_message_set
from tests.simulation.cluster import TENANT_PORT, SimulatedCluster

MIB = 2**20


class Tenant:
    """Asks the leader of partition 0 of a topic; answers are the partition's."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster

    def partition(self, topic="orders", index=0):
        physical = f"simulate.{topic}"
        replicas = [broker.replicas.registry.get(physical, index) for broker in self.cluster.brokers.values()]
        return next(replica for replica in replicas if replica is not None and replica.state.is_leader)

    def ask(self, request, version, topic="orders"):
        leader = self.partition(topic).state.leader_id
        answer = self.cluster.client.call(leader, request, version)
        self.cluster.until(lambda: answer.done, 60)
        return answer.result()

    def start_produce(self, version, records, topic="orders", acks=-1):
        request = self.produce_request(records, topic, acks)
        return self.cluster.client.call(self.partition(topic).state.leader_id, request, version)

    @staticmethod
    def produce_request(records, topic="orders", acks=-1):
        data = TopicProduceData(topic, (PartitionProduceData(0, bytes(records)),))
        return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=(data,))

    def produce(self, version, records, topic="orders", acks=-1):
        answer = self.ask(self.produce_request(records, topic, acks), version, topic)
        return answer.responses[0].partition_responses[0]

    def fetch(self, version, offset, topic="orders", max_bytes=MIB, answer_bytes=2**31 - 1):
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=answer_bytes,
            topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
        )
        return self.ask(request, version, topic).responses[0].partitions[0]

    def offsets(self, version, timestamp, topic="orders", most=1):
        wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),))
        return self.ask(request, version, topic).topics[0].partitions[0]

    def read_all(self, version, topic="orders", max_bytes=MIB):
        """(offset, timestamp, key, value) of everything, as a consumer with this version of Fetch sees it."""
        rows, offset = [], 0
        while True:
            data = self.fetch(version, offset, topic, max_bytes)
            assert data.error_code == 0
            new = [row for row in records_of(data.records) if row[0] >= offset]
            if not new:
                return rows
            rows += new
            offset = rows[-1][0] + 1


class Wire:
    """A connection to the leader of a topic that sends and does not expect an answer to everything."""

    def __init__(self, tenant, topic="orders"):
        self.network = tenant.cluster.network
        self.answers, self.is_closed, self._connection = [], False, None
        host = f"10.0.0.{tenant.partition(topic).state.leader_id}"
        self.network.loop("10.0.1.9").connect(host, TENANT_PORT, self._opened, self.closed)
        self.network.run_until(lambda: self._connection is not None, 5)

    def _opened(self, connection):
        self._connection = connection
        return self

    def frame(self, frame):
        self.answers.append(bytes(frame))

    def closed(self, _reason):
        self.is_closed = True

    def send(self, request, version, correlation_id=0):
        api = APIS[message_info(type(request)).api_key]
        self._connection.send([encode_request(api, version, correlation_id, "wire", request)])


def records_of(data):
    """(offset, timestamp, key, value) of what a fetch brought, whatever its format."""
    if len(data) > 16 and data[16] == 2:
        return [
            (record.offset, record.timestamp, record.key, record.value)
            for _, batch in split_batches(data)
            for record in read_records(batch)
        ]
    return [
        (m.offset, m.timestamp, *(None if x is None else bytes(x) for x in (m.key, m.value)))
        for m in read_message_set(data)
    ]
