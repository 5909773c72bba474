"""What Kafka 3.9 asks of ACLs in each API, and a request that asks for just that: the table of `test_acls_of_every_api`.

No request of the table changes anything, whatever is permitted: what it names is not there, or is refused behind the ACLs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import (
    configs,
    consumer_groups,
    discovery,
    fetch,
    groups,
    log_dirs,
    offsets,
    produce,
    security,
    topics,
    transactions,
)
from dataplane.records.batch import Record, build_batch
from quota.contracts.acls import CLUSTER_NAME, AclOperation, ResourceType

Op = AclOperation
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TXN = ResourceType.TRANSACTIONAL_ID
ORDERS, ABSENT, READERS, GONE, PAYMENTS = "orders", "absent", "readers", "gone", "payments"
NO_TOPIC, NO_GROUP, NO_CLUSTER, NO_TXN = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
REFUSALS = (NO_TOPIC, NO_GROUP, NO_CLUSTER, NO_TXN)
Right = tuple[AclOperation, ResourceType, str]

NOT_ASKED = {
    ApiKey.API_VERSIONS: "what a listener serves is told to everybody, also before they have logged in",
    ApiKey.SASL_HANDSHAKE: "by it a client says who it is",
    ApiKey.SASL_AUTHENTICATE: "likewise",
    ApiKey.DESCRIBE_CLUSTER: "as in Kafka: where the brokers are is told to everybody; DESCRIBE shows authorized operations",
}
"""APIs of tenants that no right is needed for, and why."""


def codes(answer: Any) -> set[int]:
    """All error codes of an answer."""
    if isinstance(answer, (tuple, list)):
        return set().union(*map(codes, answer)) if answer else set()
    if not is_dataclass(answer):
        return set()
    found = {getattr(answer, name) for name in ("error_code", "partition_error_code") if hasattr(answer, name)}
    return found.union(*(codes(getattr(answer, each.name)) for each in fields(answer)))


def refusal(answer: Any) -> int:
    """The refusal of access in an answer; 0: there is none."""
    return next((int(code) for code in REFUSALS if code in codes(answer)), 0)


@dataclass(frozen=True)
class Case:
    """One question of one API."""

    key: ApiKey
    needs: Right
    code: int  # the refusal
    request: Callable[[int], Any]  # by version
    beside: tuple[Right, ...] = ()  # what is asked before, and permitted throughout
    what: str = ""
    low: int = 0
    refused: Callable[[Any], int] = refusal

    @property
    def name(self) -> str:
        return f"{self.key.name}{' ' * bool(self.what)}{self.what}"


def _topic(key, operation, request, name=ORDERS, **more):
    return Case(key, (operation, TOPIC, name), NO_TOPIC, request, **more)


def _group(key, operation, request, **more):
    return Case(key, (operation, GROUP, READERS), NO_GROUP, request, **more)


def _cluster(key, operation, request, **more):
    return Case(key, (operation, CLUSTER, CLUSTER_NAME), NO_CLUSTER, request, **more)


def _txn(key, operation, request, **more):
    return Case(key, (operation, TXN, PAYMENTS), NO_TXN, request, **more)


def produce_request(_version):
    batch = bytes(build_batch([Record(None, b"v", (), 1)], now_ms=1))
    data = (produce.TopicProduceData(ORDERS, (produce.PartitionProduceData(0, batch),)),)
    return produce.ProduceRequest(transactional_id=None, acks=1, timeout_ms=1_000, topic_data=data)


def fetch_request(_version, **members):
    row = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    return fetch.FetchRequest(**{"topics": (fetch.FetchTopic(ORDERS, partitions=(row,)),), **members})


def _list_offsets(_version):
    row = fetch.ListOffsetsPartition(0, timestamp=-1)
    return fetch.ListOffsetsRequest(replica_id=-1, topics=(fetch.ListOffsetsTopic(ORDERS, (row,)),))


def _metadata(_version):
    return discovery.MetadataRequest((discovery.MetadataRequestTopic(name=ORDERS),), allow_auto_topic_creation=False)


def _commit(_version):
    row = offsets.OffsetCommitRequestPartition(0, 1, committed_metadata="")
    member = {"generation_id_or_member_epoch": 7, "member_id": "nobody"}  # whose generation this is not
    return offsets.OffsetCommitRequest(
        group_id=READERS, topics=(offsets.OffsetCommitRequestTopic(ORDERS, (row,)),), **(member if _version else {})
    )


def _fetch_offsets(version):
    if version >= 8:
        named = (offsets.OffsetFetchRequestTopics(ORDERS, (0,)),)
        return offsets.OffsetFetchRequest(groups=(offsets.OffsetFetchRequestGroup(READERS, topics=named),))
    return offsets.OffsetFetchRequest(group_id=READERS, topics=(offsets.OffsetFetchRequestTopic(ORDERS, (0,)),))


def _coordinator(version):
    return discovery.FindCoordinatorRequest(**({"coordinator_keys": (READERS,)} if version >= 4 else {"key": READERS}))


def _join(_version):
    protocols = (groups.JoinGroupRequestProtocol("range", b""),)
    return groups.JoinGroupRequest(READERS, 10_000, 10_000, "nobody", protocol_type="consumer", protocols=protocols)


def _consumer(_version):
    """In an epoch that nobody is in."""
    return consumer_groups.ConsumerGroupHeartbeatRequest(READERS, "nobody", 7, subscribed_topic_names=(ORDERS,))


def _sync(version):
    said = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    return groups.SyncGroupRequest(READERS, 1, "nobody", **said)


def _leave(version):
    if version >= 3:
        return groups.LeaveGroupRequest(READERS, members=(groups.MemberIdentity("nobody"),))
    return groups.LeaveGroupRequest(READERS, member_id="nobody")


def _transactions_coordinator(version):
    named = {"coordinator_keys": (PAYMENTS,)} if version >= 4 else {"key": PAYMENTS}
    return discovery.FindCoordinatorRequest(key_type=1, **named)


def _add_partitions(_version):
    named = (transactions.AddPartitionsToTxnTopic(ORDERS, (0,)),)
    return transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=PAYMENTS, v3_and_below_producer_id=7, v3_and_below_topics=named
    )


def _add_offsets(_version):
    return transactions.AddOffsetsToTxnRequest(PAYMENTS, 7, 0, READERS)


def _abort(_version):
    """Of a producer that has nothing open there."""
    topics_ = (transactions.WritableTxnMarkerTopic(ORDERS, (0,)),)
    return transactions.WriteTxnMarkersRequest((transactions.WritableTxnMarker(7, 0, False, topics_, 0),))


def _list_of_transactions(answer):
    """There is no refusal: what may not be described is not mentioned."""
    return 0 if any(row.transactional_id == PAYMENTS for row in answer.transaction_states) else NO_TXN


def _list_of_groups(answer):
    """There is no refusal: what may not be described is not mentioned."""
    return 0 if any(group.group_id == READERS for group in answer.groups) else NO_GROUP


def _list_of_topics(answer):
    return 0 if any(topic.name == ORDERS for topic in answer.topics) else NO_TOPIC


def _directories(answer):
    return 0 if answer.results else NO_CLUSTER


def _create(_version):
    return topics.CreateTopicsRequest(topics=(topics.CreatableTopic(ABSENT, 0, 1, (), ()),), timeout_ms=1_000)


def _delete(version):
    named = {"topics": (topics.DeleteTopicState(ABSENT),)} if version >= 6 else {"topic_names": (ABSENT,)}
    return topics.DeleteTopicsRequest(timeout_ms=1_000, **named)


def _delete_records(_version):
    row = fetch.DeleteRecordsPartition(9, 0)
    return fetch.DeleteRecordsRequest((fetch.DeleteRecordsTopic(ORDERS, (row,)),), 1_000)


def _txn_offsets(_version):
    row = transactions.TxnOffsetCommitRequestPartition(0, 1, committed_metadata="")
    named = (transactions.TxnOffsetCommitRequestTopic(ORDERS, (row,)),)
    return transactions.TxnOffsetCommitRequest(PAYMENTS, READERS, 7, 0, topics=named)


def _epochs(_version):
    row = fetch.OffsetForLeaderPartition(0, leader_epoch=0)
    return fetch.OffsetForLeaderEpochRequest(topics=(fetch.OffsetForLeaderTopic(ORDERS, (row,)),))


def _describe_configs(kind, name):
    return lambda _version: configs.DescribeConfigsRequest((configs.DescribeConfigsResource(kind, name, None),))


def _alter_configs(kind, name):
    resource = configs.AlterConfigsRequestAlterConfigsResource(kind, name, ())
    return lambda _version: configs.AlterConfigsRequest((resource,), validate_only=True)


def _alter_some_configs(kind, name):
    resource = configs.IncrementalAlterConfigsRequestAlterConfigsResource(kind, name, ())
    return lambda _version: configs.IncrementalAlterConfigsRequest((resource,), validate_only=True)


def _alter_quotas(_version):
    entity = (configs.AlterClientQuotasRequestEntityData("user", "ann"),)
    entry = configs.AlterClientQuotasRequestEntryData(entity, (configs.OpData("producer_byte_rate", 1000.0),))
    return configs.AlterClientQuotasRequest((entry,), validate_only=True)


def _delete_offsets(_version):
    named = (offsets.OffsetDeleteRequestTopic(ORDERS, (offsets.OffsetDeleteRequestPartition(9),)),)
    return offsets.OffsetDeleteRequest(READERS, named)


def _acl_filter(cls):
    return cls(2, "nothing", 3, "User:nobody", "*", 3, 3)


CASES = (
    _topic(ApiKey.PRODUCE, Op.WRITE, produce_request),
    _topic(ApiKey.LIST_OFFSETS, Op.DESCRIBE, _list_offsets),
    _topic(ApiKey.METADATA, Op.DESCRIBE, _metadata),
    _topic(
        ApiKey.METADATA,
        Op.DESCRIBE,
        lambda version: discovery.MetadataRequest(topics=None if version else ()),
        what="of all topics",
        refused=_list_of_topics,
    ),
    _group(ApiKey.OFFSET_COMMIT, Op.READ, _commit, beside=((Op.READ, TOPIC, ORDERS),)),
    _topic(ApiKey.OFFSET_COMMIT, Op.READ, _commit, beside=((Op.READ, GROUP, READERS),), what="of the topic"),
    _group(ApiKey.OFFSET_FETCH, Op.DESCRIBE, _fetch_offsets, beside=((Op.DESCRIBE, TOPIC, ORDERS),)),
    _topic(
        ApiKey.OFFSET_FETCH, Op.DESCRIBE, _fetch_offsets, beside=((Op.DESCRIBE, GROUP, READERS),), what="of the topic"
    ),
    _group(ApiKey.FIND_COORDINATOR, Op.DESCRIBE, _coordinator),
    _group(ApiKey.JOIN_GROUP, Op.READ, _join),
    _group(ApiKey.CONSUMER_GROUP_HEARTBEAT, Op.READ, _consumer, beside=((Op.DESCRIBE, TOPIC, ORDERS),)),
    _topic(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        Op.DESCRIBE,
        _consumer,
        beside=((Op.READ, GROUP, READERS),),
        what="of the topic",
    ),
    _group(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        Op.DESCRIBE,
        lambda _version: consumer_groups.ConsumerGroupDescribeRequest((READERS,)),
    ),
    _group(ApiKey.HEARTBEAT, Op.READ, lambda _version: groups.HeartbeatRequest(READERS, 1, "nobody")),
    _group(ApiKey.LEAVE_GROUP, Op.READ, _leave),
    _group(ApiKey.SYNC_GROUP, Op.READ, _sync),
    _group(ApiKey.DESCRIBE_GROUPS, Op.DESCRIBE, lambda _version: groups.DescribeGroupsRequest((READERS,))),
    _group(ApiKey.LIST_GROUPS, Op.DESCRIBE, lambda _version: groups.ListGroupsRequest((), ()), refused=_list_of_groups),
    _topic(ApiKey.CREATE_TOPICS, Op.CREATE, _create, ABSENT),
    Case(ApiKey.CREATE_TOPICS, (Op.CREATE, CLUSTER, CLUSTER_NAME), NO_TOPIC, _create, what="of any name"),
    _topic(ApiKey.DELETE_TOPICS, Op.DELETE, _delete, ABSENT),
    _topic(ApiKey.DELETE_RECORDS, Op.DELETE, _delete_records),
    _cluster(ApiKey.INIT_PRODUCER_ID, Op.IDEMPOTENT_WRITE, lambda _v: produce.InitProducerIdRequest(None, 1_000)),
    Case(
        ApiKey.INIT_PRODUCER_ID,
        (Op.WRITE, TOPIC, "any"),
        NO_CLUSTER,
        lambda _version: produce.InitProducerIdRequest(None, 1_000),
        what="to write anything",
    ),
    _txn(ApiKey.INIT_PRODUCER_ID, Op.WRITE, lambda _v: produce.InitProducerIdRequest(PAYMENTS, 0), what="of an id"),
    _txn(ApiKey.FIND_COORDINATOR, Op.DESCRIBE, _transactions_coordinator, what="of a transactional id", low=1),
    _txn(ApiKey.ADD_PARTITIONS_TO_TXN, Op.WRITE, _add_partitions, beside=((Op.WRITE, TOPIC, ORDERS),)),
    _topic(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        Op.WRITE,
        _add_partitions,
        beside=((Op.WRITE, TXN, PAYMENTS),),
        what="of the topic",
    ),
    _txn(ApiKey.ADD_OFFSETS_TO_TXN, Op.WRITE, _add_offsets, beside=((Op.READ, GROUP, READERS),)),
    _group(ApiKey.ADD_OFFSETS_TO_TXN, Op.READ, _add_offsets, beside=((Op.WRITE, TXN, PAYMENTS),), what="of the group"),
    _txn(
        ApiKey.TXN_OFFSET_COMMIT,
        Op.WRITE,
        _txn_offsets,
        beside=((Op.READ, GROUP, READERS), (Op.READ, TOPIC, ORDERS)),
    ),
    _group(
        ApiKey.TXN_OFFSET_COMMIT,
        Op.READ,
        _txn_offsets,
        beside=((Op.WRITE, TXN, PAYMENTS), (Op.READ, TOPIC, ORDERS)),
        what="of the group",
    ),
    _topic(
        ApiKey.TXN_OFFSET_COMMIT,
        Op.READ,
        _txn_offsets,
        beside=((Op.WRITE, TXN, PAYMENTS), (Op.READ, GROUP, READERS)),
        what="of the topic",
    ),
    _txn(ApiKey.END_TXN, Op.WRITE, lambda _version: transactions.EndTxnRequest(PAYMENTS, 7, 0, committed=True)),
    _cluster(ApiKey.WRITE_TXN_MARKERS, Op.ALTER, _abort),
    _txn(
        ApiKey.DESCRIBE_TRANSACTIONS,
        Op.DESCRIBE,
        lambda _version: transactions.DescribeTransactionsRequest((PAYMENTS,)),
    ),
    _txn(
        ApiKey.LIST_TRANSACTIONS,
        Op.DESCRIBE,
        lambda _version: transactions.ListTransactionsRequest((), ()),
        refused=_list_of_transactions,
    ),
    _topic(ApiKey.OFFSET_FOR_LEADER_EPOCH, Op.DESCRIBE, _epochs),
    _cluster(ApiKey.DESCRIBE_ACLS, Op.DESCRIBE, lambda _version: _acl_filter(security.DescribeAclsRequest)),
    _cluster(
        ApiKey.CREATE_ACLS,
        Op.ALTER,
        lambda _version: security.CreateAclsRequest((security.AclCreation(2, "x", 3, "User:z", "nowhere", 3, 3),)),
    ),
    _cluster(
        ApiKey.DELETE_ACLS,
        Op.ALTER,
        lambda _version: security.DeleteAclsRequest((_acl_filter(security.DeleteAclsFilter),)),
    ),
    _topic(ApiKey.DESCRIBE_CONFIGS, Op.DESCRIBE_CONFIGS, _describe_configs(2, ORDERS)),
    _cluster(ApiKey.DESCRIBE_CONFIGS, Op.DESCRIBE_CONFIGS, _describe_configs(4, "1"), what="of a broker"),
    _topic(ApiKey.ALTER_CONFIGS, Op.ALTER_CONFIGS, _alter_configs(2, ORDERS)),
    _topic(ApiKey.INCREMENTAL_ALTER_CONFIGS, Op.ALTER_CONFIGS, _alter_some_configs(2, ORDERS)),
    _topic(
        ApiKey.DESCRIBE_PRODUCERS,
        Op.READ,
        lambda _v: produce.DescribeProducersRequest((produce.DescribeProducersRequestTopicRequest(ORDERS, (0,)),)),
    ),
    _topic(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        Op.DESCRIBE,
        lambda _v: discovery.DescribeTopicPartitionsRequest(
            (discovery.DescribeTopicPartitionsRequestTopicRequest(ORDERS),), cursor=None
        ),
    ),
    _cluster(
        ApiKey.DESCRIBE_LOG_DIRS,
        Op.DESCRIBE,
        lambda _version: log_dirs.DescribeLogDirsRequest(topics=None),
        refused=_directories,
    ),
    _topic(
        ApiKey.CREATE_PARTITIONS,
        Op.ALTER,
        lambda _v: topics.CreatePartitionsRequest(
            (topics.CreatePartitionsTopic(ORDERS, 3, None),), 1_000, validate_only=True
        ),
    ),
    Case(
        ApiKey.DELETE_GROUPS, (Op.DELETE, GROUP, GONE), NO_GROUP, lambda _version: groups.DeleteGroupsRequest((GONE,))
    ),
    _group(ApiKey.OFFSET_DELETE, Op.DELETE, _delete_offsets, beside=((Op.READ, TOPIC, ORDERS),)),
    _topic(ApiKey.OFFSET_DELETE, Op.READ, _delete_offsets, beside=((Op.DELETE, GROUP, READERS),), what="of the topic"),
    _cluster(
        ApiKey.DESCRIBE_CLIENT_QUOTAS, Op.DESCRIBE_CONFIGS, lambda _version: configs.DescribeClientQuotasRequest(())
    ),
    _cluster(ApiKey.ALTER_CLIENT_QUOTAS, Op.ALTER_CONFIGS, _alter_quotas),
    _cluster(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        Op.DESCRIBE,
        lambda _version: security.DescribeUserScramCredentialsRequest(None),
    ),
    _cluster(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        Op.ALTER,
        lambda _v: security.AlterUserScramCredentialsRequest((security.ScramCredentialDeletion("nobody", 1),), ()),
    ),
)
"""Fetch, which names topics by id since version 13, is asked beside them."""
