"""Who of the cluster may do what on the internal listener: one table, and two questions. Pure.

A broker's, and each other's, identity is proved when its connection begins (`quota.contracts.identity`). Then

* `may_send` says which requests its role is for: a request of another role ends the connection;
* `claimed` says which broker a request names as its sender: it has to be the identity itself;
* `may_touch` says which resources it may touch. Metering reads usage records; operators write no tenant's records, and the
  control plane no others: what tenants have it write, and of transactional ids those of tenants.

An API that has no row here is nobody's on the internal listener. Tenants are not asked about here (`tenancy.access`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.control import (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from dataplane.protocol.messages.fetch import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from quota.contracts.acls import AclOperation, ResourceType
from quota.contracts.identity import Identity, Role
from quota.contracts.namespace import is_kept_by_the_service, split_physical
from quota.contracts.on_behalf import CLIENT_ID as ON_BEHALF
from quota.contracts.usage import USAGE_TOPIC

_EVERYBODY = frozenset((Role.BROKER, Role.MASTER, Role.CONTROL_PLANE, Role.METERING, Role.OPERATOR, Role.MONITORING))
_BROKERS = frozenset((Role.BROKER,))
_OPERATORS = frozenset((Role.OPERATOR,))
_ADMINS = frozenset((Role.CONTROL_PLANE, Role.OPERATOR))
_READERS = frozenset((Role.BROKER, Role.CONTROL_PLANE, Role.METERING, Role.OPERATOR))
_NOBODY: frozenset[Role] = frozenset()

SENDERS: dict[ApiKey, frozenset[Role]] = {
    # how a connection begins
    ApiKey.API_VERSIONS: _EVERYBODY,
    ApiKey.SASL_HANDSHAKE: _EVERYBODY,
    ApiKey.SASL_AUTHENTICATE: _EVERYBODY,
    # what is there, and what is in it
    ApiKey.METADATA: _READERS,
    ApiKey.DESCRIBE_CLUSTER: _READERS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _READERS,
    ApiKey.FETCH: _READERS,
    ApiKey.LIST_OFFSETS: _READERS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _READERS,
    # of the cluster's own topics operators, of a tenant's the control plane for that tenant (`may_touch`)
    ApiKey.PRODUCE: _BROKERS | _ADMINS,
    # transactions: the control plane fences a producer to end what it left open; a broker asks whether a partition is in one
    ApiKey.INIT_PRODUCER_ID: _ADMINS,
    ApiKey.ADD_PARTITIONS_TO_TXN: _BROKERS | _OPERATORS,
    ApiKey.ADD_OFFSETS_TO_TXN: _OPERATORS,
    ApiKey.END_TXN: _OPERATORS,
    ApiKey.TXN_OFFSET_COMMIT: _OPERATORS,
    ApiKey.DESCRIBE_TRANSACTIONS: _ADMINS,
    ApiKey.LIST_TRANSACTIONS: _ADMINS,
    # between brokers
    ApiKey.LEADER_AND_ISR: _BROKERS,
    ApiKey.STOP_REPLICA: _BROKERS,
    ApiKey.UPDATE_METADATA: _BROKERS,
    ApiKey.CONTROLLED_SHUTDOWN: _BROKERS,
    ApiKey.ALTER_PARTITION: _BROKERS,
    ApiKey.WRITE_TXN_MARKERS: _BROKERS | _ADMINS,  # these end a transaction that no coordinator knows
    # topics: a broker asks the controller for those that something needs
    ApiKey.CREATE_TOPICS: _ADMINS | _BROKERS,
    ApiKey.DELETE_TOPICS: _ADMINS,
    ApiKey.CREATE_PARTITIONS: _ADMINS,
    ApiKey.DELETE_RECORDS: _ADMINS,
    ApiKey.DESCRIBE_CONFIGS: _ADMINS,
    ApiKey.ALTER_CONFIGS: _ADMINS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _ADMINS,
    ApiKey.DESCRIBE_PRODUCERS: _ADMINS,
    ApiKey.DESCRIBE_LOG_DIRS: _ADMINS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _ADMINS,
    ApiKey.ALTER_CLIENT_QUOTAS: _ADMINS,
    # groups
    ApiKey.FIND_COORDINATOR: _ADMINS,
    ApiKey.LIST_GROUPS: _ADMINS,
    ApiKey.DESCRIBE_GROUPS: _ADMINS,
    ApiKey.DELETE_GROUPS: _ADMINS,
    ApiKey.LEAVE_GROUP: _ADMINS,
    ApiKey.OFFSET_FETCH: _ADMINS,
    ApiKey.OFFSET_COMMIT: _ADMINS,
    ApiKey.OFFSET_DELETE: _ADMINS,
    ApiKey.JOIN_GROUP: _OPERATORS,
    ApiKey.SYNC_GROUP: _OPERATORS,
    ApiKey.HEARTBEAT: _OPERATORS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _OPERATORS,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _ADMINS,
    # where replicas are; the control plane moves them where operators have approved it (rebalancing)
    ApiKey.ALTER_REPLICA_LOG_DIRS: _OPERATORS,
    ApiKey.ELECT_LEADERS: _ADMINS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ADMINS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _ADMINS,
    # who is connected, who moves how much, and how much is left to read
    ApiKey.DESCRIBE_CONNECTIONS: _ADMINS,
    ApiKey.DESCRIBE_BACKLOGS: _ADMINS,
    # users and ACLs
    ApiKey.DESCRIBE_ACLS: _ADMINS,
    ApiKey.CREATE_ACLS: _ADMINS,
    ApiKey.DELETE_ACLS: _ADMINS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _ADMINS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ADMINS,
}

NO_BROKER = -1
_CLAIMS: dict[type, Callable[[Any], int]] = {
    FetchRequest: lambda request: max(request.replica_id, request.replica_state.replica_id),
    ListOffsetsRequest: lambda request: request.replica_id,
    OffsetForLeaderEpochRequest: lambda request: request.replica_id,
    AlterPartitionRequest: lambda request: request.broker_id,
    ControlledShutdownRequest: lambda request: request.broker_id,
    LeaderAndIsrRequest: lambda request: request.controller_id,
    StopReplicaRequest: lambda request: request.controller_id,
    UpdateMetadataRequest: lambda request: request.controller_id,
}
_ALWAYS_A_BROKERS = (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
_OF_METERING = frozenset((AclOperation.READ, AclOperation.DESCRIBE))


def may_send(identity: Identity | None, key: ApiKey) -> bool:
    """Whether requests of this kind are for this one to send; None is nobody."""
    if identity is None:
        return False
    return identity.role is Role.ANYBODY or identity.role in SENDERS.get(key, _NOBODY)


def claimed(request: Any) -> int | None:
    """The broker that a request says it is from; None: it says none, as consumers do."""
    claim = _CLAIMS.get(type(request))
    if claim is None:
        return None
    found = claim(request)
    return found if found >= 0 or isinstance(request, _ALWAYS_A_BROKERS) else None


def may_claim(identity: Identity | None, request: Any) -> bool:
    """Whether the request is from whom it says."""
    number = claimed(request)
    if number is None:
        return identity is not None
    if identity is None:
        return False
    return identity.role is Role.ANYBODY or (identity.role is Role.BROKER and identity.number == number)


def may_touch(identity: Identity | None, operation: int, kind: int, name: str) -> bool:
    """Whether it may do this to that, in Kafka's codes of operations and resource types. None is nobody."""
    if identity is None:
        return False
    role = identity.role
    if role is Role.ANYBODY or role is Role.BROKER:
        return True
    if role is Role.METERING:
        return kind == ResourceType.TOPIC and name == USAGE_TOPIC and operation in _OF_METERING
    if role in (Role.MASTER, Role.MONITORING) or operation == AclOperation.CLUSTER_ACTION:
        return False
    if role is Role.CONTROL_PLANE and kind == ResourceType.TRANSACTIONAL_ID and operation == AclOperation.WRITE:
        return split_physical(name) is not None
    if kind != ResourceType.TOPIC or operation != AclOperation.WRITE:
        return True
    is_tenants = split_physical(name) is not None
    if role is Role.CONTROL_PLANE:
        return is_tenants and not is_kept_by_the_service(name)
    return not is_tenants


def is_on_behalf(identity: Identity | None, client_id: str | None) -> bool:
    """Whether a request is the control plane's for a tenant, who pays for it (`quota.contracts.on_behalf`)."""
    return client_id == ON_BEHALF and identity is not None and identity.role is Role.CONTROL_PLANE
