"""One request per API that names a topic, and where it must go: for tests that hold for every one of them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dataplane.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from dataplane.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from dataplane.protocol.messages.discovery import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopicRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from dataplane.protocol.messages.fetch import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from dataplane.protocol.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from dataplane.protocol.messages.produce import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from dataplane.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from dataplane.records.batch import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.cluster import ProcessCluster
    from tests.support.specs import Tenant

GROUP = "asks"


@dataclass(frozen=True)
class Ask:
    """A request about one topic."""

    version: int
    of: Callable[[str], Any]
    goes_to: str  # "leader", "coordinator" or "controller"
    makes_it: bool = False  # the topic must not exist
    answers: frozenset[int] = frozenset()  # error codes where nothing is in the way

    def broker(self, cluster: ProcessCluster, tenant: Tenant, topic: str) -> int:
        if self.goes_to == "leader":
            return cluster.leader(tenant, topic)
        return cluster.coordinator(tenant, GROUP) if self.goes_to == "coordinator" else cluster.controller() or -1


def batch(value: bytes = b"v", count: int = 1, **producer: int) -> bytes:
    """A record batch of equal values, written now: an older one would go with retention in the middle of a test."""
    return bytes(build_batch([Record(b"k", value)] * count, now_ms=int(time.time() * 1000), **producer))


def produce(topic: str, records: bytes | None = None, *, acks: int = -1, partition: int = 0) -> ProduceRequest:
    data = PartitionProduceData(partition, records if records is not None else batch())
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=(TopicProduceData(topic, (data,)),))


def fetch(topic: str, offset: int = 0, *, max_wait_ms: int = 0, replica_id: int = -1) -> FetchRequest:
    partition = FetchPartition(0, fetch_offset=offset, partition_max_bytes=2**20)
    topics = (FetchTopic(topic, partitions=(partition,)),)
    return FetchRequest(replica_id=replica_id, max_wait_ms=max_wait_ms, min_bytes=1, session_epoch=-1, topics=topics)


def list_offsets(topic: str, timestamp: int = -1) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(0, timestamp=timestamp)
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(topic, (partition,)),))


def commit(topic: str, offset: int = 1) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, offset, committed_metadata="")
    return OffsetCommitRequest(GROUP, topics=(OffsetCommitRequestTopic(topic, (partition,)),))


def create(topic: str, partitions: int = 1, **members: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=(CreatableTopic(topic, partitions, 3, **members),), timeout_ms=10_000)


def _metadata(topic: str) -> MetadataRequest:
    return MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)


def _offset_for_leader_epoch(topic: str) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic, (OffsetForLeaderPartition(0),)),))


def _offset_fetch(topic: str) -> OffsetFetchRequest:
    group = OffsetFetchRequestGroup(GROUP, topics=(OffsetFetchRequestTopics(topic, (0,)),))
    return OffsetFetchRequest(groups=(group,))


def _offset_fetch_old(topic: str) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id=GROUP, topics=(OffsetFetchRequestTopic(topic, (0,)),))


def _offset_delete(topic: str) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(GROUP, (OffsetDeleteRequestTopic(topic, (OffsetDeleteRequestPartition(0),)),))


def _delete_records(topic: str) -> DeleteRecordsRequest:
    return DeleteRecordsRequest((DeleteRecordsTopic(topic, (DeleteRecordsPartition(0, 0),)),), 10_000)


def _delete(topic: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(DeleteTopicState(topic),), timeout_ms=10_000)


def _configs(topic: str) -> DescribeConfigsRequest:
    return DescribeConfigsRequest((DescribeConfigsResource(2, topic, None),))


def _alter_configs(topic: str) -> AlterConfigsRequest:
    config = AlterConfigsRequestAlterableConfig("retention.ms", "86400000")
    return AlterConfigsRequest((AlterConfigsRequestAlterConfigsResource(2, topic, (config,)),))


def _incremental_alter_configs(topic: str) -> IncrementalAlterConfigsRequest:
    config = IncrementalAlterConfigsRequestAlterableConfig("retention.ms", 0, "86400000")
    return IncrementalAlterConfigsRequest((IncrementalAlterConfigsRequestAlterConfigsResource(2, topic, (config,)),))


def _create_partitions(topic: str) -> CreatePartitionsRequest:
    return CreatePartitionsRequest((CreatePartitionsTopic(topic, 100, None),), 10_000, validate_only=True)


def _write_txn_markers(topic: str) -> WriteTxnMarkersRequest:
    """Of a producer that has nothing open."""
    topics = (WritableTxnMarkerTopic(topic, (0,)),)
    return WriteTxnMarkersRequest((WritableTxnMarker(1, 0, transaction_result=False, topics=topics),))


def _describe_producers(topic: str) -> DescribeProducersRequest:
    return DescribeProducersRequest((DescribeProducersRequestTopicRequest(topic, (0,)),))


def _describe_topic_partitions(topic: str) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest((DescribeTopicPartitionsRequestTopicRequest(topic),))


def _add_partitions(topic: str) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=GROUP,
        v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=(AddPartitionsToTxnTopic(topic, (0,)),),
    )


def _txn_commit(topic: str) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(0, 1, committed_metadata="")
    return TxnOffsetCommitRequest(GROUP, GROUP, 7, 0, topics=(TxnOffsetCommitRequestTopic(topic, (partition,)),))


def _consumer_heartbeat(topic: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        GROUP, "m", 0, rebalance_timeout_ms=10_000, subscribed_topic_names=(topic,), topic_partitions=()
    )


def log_dirs(topic: str | None) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(None if topic is None else (DescribableLogDirTopic(topic, (0,)),))


ASKS: dict[str, Ask] = {
    "Produce": Ask(9, produce, "leader"),
    "Fetch": Ask(12, fetch, "leader"),
    "ListOffsets": Ask(7, list_offsets, "leader"),
    "OffsetForLeaderEpoch": Ask(4, _offset_for_leader_epoch, "leader"),
    "Metadata": Ask(12, _metadata, "leader"),
    "OffsetCommit": Ask(8, commit, "coordinator"),
    "OffsetCommit in ZooKeeper": Ask(0, commit, "coordinator"),
    "OffsetFetch": Ask(8, _offset_fetch, "coordinator"),
    "OffsetFetch of one group": Ask(7, _offset_fetch_old, "coordinator"),
    # There, what was never committed is UNKNOWN_TOPIC_OR_PARTITION.
    "OffsetFetch in ZooKeeper": Ask(0, _offset_fetch_old, "coordinator", answers=frozenset({3})),
    "OffsetDelete": Ask(0, _offset_delete, "coordinator"),
    "DeleteRecords": Ask(2, _delete_records, "leader"),
    "CreateTopics": Ask(7, create, "controller", makes_it=True),
    "DeleteTopics": Ask(6, _delete, "controller"),
    "DescribeConfigs": Ask(4, _configs, "leader"),
    "AlterConfigs": Ask(2, _alter_configs, "leader"),
    "IncrementalAlterConfigs": Ask(1, _incremental_alter_configs, "leader"),
    "CreatePartitions": Ask(3, _create_partitions, "controller"),
    "DescribeProducers": Ask(0, _describe_producers, "leader"),
    "DescribeTopicPartitions": Ask(0, _describe_topic_partitions, "leader"),
    "WriteTxnMarkers": Ask(1, _write_txn_markers, "leader"),
}
IN_COMPANY: dict[str, Ask] = {
    "AddPartitionsToTxn": Ask(3, _add_partitions, "leader"),
    "TxnOffsetCommit": Ask(3, _txn_commit, "coordinator"),
    "ConsumerGroupHeartbeat": Ask(0, _consumer_heartbeat, "coordinator"),
}
"""What is taken only of who has a transaction, or is a member: elsewhere the answer says that, when the topic is not refused."""
SILENT: dict[str, Ask] = {"DescribeLogDirs": Ask(4, log_dirs, "leader")}
"""What is not there, or not for this address, is left out of their answers."""


def error_codes(answer: Any) -> set[int]:
    """Every error code other than 0 in an answer, wherever it stands."""
    return {code for name, code in _members(answer) if name.endswith("error_code") and code != 0}


def texts(answer: Any) -> list[str]:
    """Every sentence for humans in an answer."""
    return [text for name, text in _members(answer) if name.endswith("error_message") and text]


def _members(message: Any) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(item):
                yield from _members(item)
            else:
                yield field.name, item
