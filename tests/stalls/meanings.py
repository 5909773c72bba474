"""What the fields of requests mean, as far as a declaration does not say: so that a request made from it does some work.

A message from the schemas alone is legal and mostly useless: a resource of type 0, a timestamp of 1970, a group of nobody.
Here stands, for a class and a field, what a client would put there. What is not here keeps the declaration's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dataplane.throttle.client_quotas import PRODUCE_RATE
from tests.support.processes import SECRET

TOPIC, GROUP, NEW, TEXT = "topic", "group", "new", "text"
"""Kinds of names: of topics that exist first, of groups that do, of nothing that exists, any text."""

NAMES: Mapping[tuple[str, str], str] = {
    ("DescribeConfigsResource", "resource_name"): TOPIC,
    ("AlterConfigsRequestAlterConfigsResource", "resource_name"): TOPIC,
    ("IncrementalAlterConfigsRequestAlterConfigsResource", "resource_name"): TOPIC,
    ("FindCoordinatorRequest", "key"): GROUP,
    ("FindCoordinatorRequest", "coordinator_keys"): GROUP,
    # What these name goes away, or comes into being: the world must be the same for the rows behind.
    ("CreatableTopic", "name"): NEW,
    ("DeleteTopicsRequest", "topic_names"): NEW,
    ("DeleteTopicState", "name"): NEW,
    ("DeleteGroupsRequest", "groups_names"): NEW,
    ("StopReplicaTopicV1", "name"): NEW,
    ("StopReplicaTopicState", "topic_name"): NEW,
    ("JoinGroupRequest", "group_id"): NEW,
    ("ConsumerGroupHeartbeatRequest", "group_id"): NEW,
}
"""Which kind of name a field holds where its entity does not say it, or says more than is wanted."""

_ONE = (1,)
VALUES: Mapping[tuple[str, str], Any] = {
    ("ProduceRequest", "acks"): -1,
    ("FetchRequest", "replica_id"): -1,
    ("FetchRequest", "min_bytes"): 1,
    ("FetchRequest", "max_bytes"): 55 * 2**20,
    ("FetchPartition", "partition_max_bytes"): 2**20,
    ("ListOffsetsRequest", "replica_id"): -1,
    ("ListOffsetsPartition", "timestamp"): 1,  # looked for in the index of times
    ("ListOffsetsPartition", "max_num_offsets"): 2**31 - 1,
    ("OffsetCommitRequestPartition", "committed_metadata"): "",
    ("DescribeConfigsResource", "resource_type"): 2,
    ("DescribeConfigsResource", "configuration_keys"): None,
    ("AlterConfigsRequestAlterConfigsResource", "resource_type"): 2,
    ("AlterConfigsRequestAlterableConfig", "name"): "retention.ms",
    ("AlterConfigsRequestAlterableConfig", "value"): "86400000",
    ("IncrementalAlterConfigsRequestAlterConfigsResource", "resource_type"): 2,
    ("IncrementalAlterConfigsRequestAlterableConfig", "name"): "retention.ms",
    ("IncrementalAlterConfigsRequestAlterableConfig", "value"): "86400000",
    ("AlterClientQuotasRequestEntityData", "entity_type"): "client-id",
    ("OpData", "key"): PRODUCE_RATE,
    ("OpData", "value"): 1_000_000.0,
    ("ComponentData", "entity_type"): "client-id",
    ("ComponentData", "match_type"): 2,
    ("ComponentData", "match"): None,
    ("ConsumerGroupHeartbeatRequest", "member_epoch"): 0,
    ("ConsumerGroupHeartbeatRequest", "rebalance_timeout_ms"): 6_000,
    ("ConsumerGroupHeartbeatRequest", "subscribed_topic_regex"): None,
    ("ConsumerGroupHeartbeatRequest", "server_assignor"): None,
    ("ConsumerGroupHeartbeatRequest", "topic_partitions"): (),
    ("ListTransactionsRequest", "transactional_id_pattern"): None,
    ("JoinGroupRequest", "session_timeout_ms"): 6_000,
    ("JoinGroupRequest", "rebalance_timeout_ms"): 6_000,
    ("JoinGroupRequest", "protocol_type"): "consumer",
    ("JoinGroupRequest", "member_id"): "",
    ("CreatableTopic", "num_partitions"): 1,
    ("CreatableTopic", "replication_factor"): 1,
    ("CreatableTopic", "assignments"): (),
    ("CreatableTopic", "configs"): (),
    ("CreatePartitionsTopic", "count"): 1_000,
    ("CreatePartitionsTopic", "assignments"): None,
    ("MetadataRequest", "allow_auto_topic_creation"): False,
    ("InitProducerIdRequest", "transactional_id"): None,
    ("InitProducerIdRequest", "transaction_timeout_ms"): 1_000,
    ("DescribeTopicPartitionsRequest", "cursor"): None,
    ("AlterReplicaLogDir", "path"): "/nowhere",
    ("SaslHandshakeRequest", "mechanism"): "PLAIN",
    ("SaslAuthenticateRequest", "auth_bytes"): b"\0everybody\0" + SECRET.encode(),
    # Of a controller that is one no more: it is refused after all of it was read, and nothing changes.
    ("LeaderAndIsrPartitionState", "leader"): 1,
    ("LeaderAndIsrPartitionState", "isr"): _ONE,
    ("LeaderAndIsrPartitionState", "replicas"): _ONE,
    ("UpdateMetadataPartitionState", "leader"): 1,
    ("UpdateMetadataPartitionState", "isr"): _ONE,
    ("UpdateMetadataPartitionState", "replicas"): _ONE,
    ("ControlledShutdownRequest", "broker_id"): 9_999,
}
"""What stands in a field of a wide request."""

DEEP: Mapping[tuple[str, str], Any] = {
    ("DescribeConfigsResource", "configuration_keys"): ...,
    ("AlterConfigsRequestAlterableConfig", "name"): ...,
    ("IncrementalAlterConfigsRequestAlterableConfig", "name"): ...,
    ("CreatableTopic", "configs"): ...,
    ("CreatePartitionsTopic", "assignments"): ...,
}
"""Where a deep request differs: an ellipsis is what is made from the declaration."""

NUMBERED = frozenset({"partition_index", "partition", "index"})
"""Each element of an array has another."""
BY_NAME: Mapping[str, Any] = {
    "timeout_ms": 5_000,
    "validate_only": True,
    "include_synonyms": True,
    "include_documentation": True,
    "include_authorized_operations": True,
    "include_cluster_authorized_operations": True,
    "include_topic_authorized_operations": True,
}
"""The same in every class."""

LONGEST: Mapping[str, int] = {TOPIC: 249, NEW: 249, GROUP: 32_000, TEXT: 32_000}
"""Names and texts are made as long as the frame has room for, up to these."""


def given(cls: type, field: str, *, deep: bool) -> Any:
    """What stands in a field; an ellipsis where the declaration says enough."""
    key = (cls.__name__, field)
    return DEEP[key] if deep and key in DEEP else VALUES.get(key, BY_NAME.get(field, ...))
