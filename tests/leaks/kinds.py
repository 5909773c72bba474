"""What each field of a tenant's request identifies, if anything.

A field that declares an entity (topic, group, transactional id) has its kind from there. Of the others each is named here:
those that identify something by class and field, or by a name that means the same everywhere, and those that identify nothing.
`kind_of` raises for a field that is in neither: a new API comes with its kinds, or `test_kinds` fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from dataplane.protocol.schema import Wire


class Kind(StrEnum):
    """Of what a field holds."""

    TOPIC = "topic"
    TOPIC_ID = "topic id"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional id"
    MEMBER = "member id"
    GROUP_INSTANCE = "group instance id"
    PRODUCER_ID = "producer id"
    RECORDS = "producer id of a batch"
    FETCH_SESSION = "fetch session"
    CLUSTER = "cluster id"
    BROKER = "broker id"
    BROKER_NAME = "broker id in text"
    DIRECTORY = "log directory"
    USER = "user"
    PRINCIPAL = "principal"
    HOST = "host"
    ACL_RESOURCE = "resource of an ACL"
    QUOTA_USER = "user of a quota"
    QUOTA_CLIENT = "client id of a quota"
    QUOTA_ADDRESS = "address of a quota"
    BY_VARIANT = "what the request's type says"
    LOGIN = "login"
    NOTHING = "nothing"


_ENTITIES = {"topic": Kind.TOPIC, "group": Kind.GROUP, "transactional_id": Kind.TRANSACTIONAL_ID}

BY_FIELD: Mapping[tuple[str, str], Kind] = {
    ("PartitionProduceData", "records"): Kind.RECORDS,
    ("FetchRequest", "cluster_id"): Kind.CLUSTER,
    ("FetchRequest", "session_id"): Kind.FETCH_SESSION,
    ("FindCoordinatorRequest", "key"): Kind.BY_VARIANT,
    ("FindCoordinatorRequest", "coordinator_keys"): Kind.BY_VARIANT,
    ("DescribeConfigsResource", "resource_name"): Kind.BY_VARIANT,
    ("AlterConfigsRequestAlterConfigsResource", "resource_name"): Kind.BY_VARIANT,
    ("IncrementalAlterConfigsRequestAlterConfigsResource", "resource_name"): Kind.BY_VARIANT,
    ("ComponentData", "match"): Kind.BY_VARIANT,
    ("AlterClientQuotasRequestEntityData", "entity_name"): Kind.BY_VARIANT,
    ("DescribeAclsRequest", "resource_name_filter"): Kind.ACL_RESOURCE,
    ("DeleteAclsFilter", "resource_name_filter"): Kind.ACL_RESOURCE,
    ("AclCreation", "resource_name"): Kind.ACL_RESOURCE,
    ("DescribeAclsRequest", "host_filter"): Kind.HOST,
    ("DeleteAclsFilter", "host_filter"): Kind.HOST,
    ("AclCreation", "host"): Kind.HOST,
    ("UserName", "name"): Kind.USER,
    ("ScramCredentialDeletion", "name"): Kind.USER,
    ("ScramCredentialUpsertion", "name"): Kind.USER,
    ("SaslAuthenticateRequest", "auth_bytes"): Kind.LOGIN,
    ("ConsumerGroupHeartbeatRequest", "instance_id"): Kind.GROUP_INSTANCE,
    # a name is a pattern that matches itself
    ("ConsumerGroupHeartbeatRequest", "subscribed_topic_regex"): Kind.TOPIC,
    ("ListTransactionsRequest", "transactional_id_pattern"): Kind.TRANSACTIONAL_ID,
}

BY_NAME: Mapping[str, Kind] = {
    "topic_id": Kind.TOPIC_ID,
    "member_id": Kind.MEMBER,
    "group_instance_id": Kind.GROUP_INSTANCE,
    "producer_id": Kind.PRODUCER_ID,
    "producer_id_filters": Kind.PRODUCER_ID,
    "v3_and_below_producer_id": Kind.PRODUCER_ID,
    "replica_id": Kind.BROKER,
    "broker_ids": Kind.BROKER,
    "replica_directory_id": Kind.DIRECTORY,
    "principal": Kind.PRINCIPAL,
    "principal_filter": Kind.PRINCIPAL,
}

NOTHING_BY_FIELD = frozenset(
    {
        ("JoinGroupRequestProtocol", "name"),  # of an assignor: "range"
        ("CreatableTopicConfig", "name"),
        ("CreatableTopicConfig", "value"),
        ("AlterConfigsRequestAlterableConfig", "name"),
        ("AlterConfigsRequestAlterableConfig", "value"),
        ("IncrementalAlterConfigsRequestAlterableConfig", "name"),
        ("IncrementalAlterConfigsRequestAlterableConfig", "value"),
        ("OpData", "key"),
        ("OpData", "value"),
        ("FetchRequest", "rack_id"),  # racks are the brokers', told to everybody by Metadata
        ("CreatePartitionsTopic", "count"),
        ("ConsumerGroupHeartbeatRequest", "rack_id"),
        ("ConsumerGroupHeartbeatRequest", "server_assignor"),  # "uniform", "range"
    }
)
"""What would identify something elsewhere, by its name."""

_NOTHING = (
    "acks assignment client_software_name client_software_version commit_timestamp committed_leader_epoch "
    "committed committed_metadata committed_offset config_operation configuration_keys current_leader_epoch duration_filter "
    "endpoint_type entity_type "
    "fetch_offset generation_id generation_id_or_member_epoch index isolation_level iterations key_type last_fetched_epoch "
    "leader_epoch log_start_offset match_type max_bytes max_num_offsets max_wait_ms mechanism member_epoch metadata min_bytes "
    "num_partitions offset operation partition partition_index partition_indexes partition_max_bytes partitions "
    "pattern_type_filter permission_type producer_epoch protocol_name protocol_type reason rebalance_timeout_ms remove "
    "replica_epoch replication_factor require_stable resource_pattern_type resource_type resource_type_filter "
    "response_partition_limit retention_time_ms salt salted_password session_epoch session_timeout_ms state_filters "
    "states_filter strict coordinator_epoch transaction_result transaction_version "
    "timeout_ms timestamp transaction_timeout_ms types_filter v3_and_below_producer_epoch validate_only verify_only "
    "allow_auto_topic_creation include_authorized_operations include_cluster_authorized_operations include_documentation "
    "include_synonyms include_topic_authorized_operations"
)
NOTHING = frozenset(_NOTHING.split())
"""Numbers, flags, times, words of the protocol."""


def kind_of(cls: type, name: str, wire: Wire) -> Kind | None:
    """Of a field that is a value or an array of values; None: it is a structure, or an array of them. Raises LookupError."""
    element = wire.element
    if isinstance(element, type):
        return None
    entity = element.entity if isinstance(element, Wire) else wire.entity
    if entity is not None:
        return _ENTITIES[entity]
    place = (cls.__name__, name)
    if place in NOTHING_BY_FIELD:
        return Kind.NOTHING
    found = BY_FIELD.get(place) or BY_NAME.get(name)
    if found is not None:
        return found
    if name in NOTHING:
        return Kind.NOTHING
    raise LookupError(f"{cls.__name__}.{name} has no kind: does it identify something? (tests/leaks/kinds.py)")
