"""Requests made from the declarations: about a side's own things, with one field replaced by what is asked about.

`variants(cls)` are the ways in which an API is asked; `fields_of` the places in a request that identify something, as paths of
field names; `Maker.request` makes one. What a declaration does not say (a group of which generation, which type of resource)
stands in `VALUES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dataplane.protocol.messages.configs import AlterClientQuotasRequest
from dataplane.protocol.schema import Wire as Declared
from dataplane.protocol.schema import wires
from dataplane.records.batch import Record, build_batch
from dataplane.records.legacy import write_message
from tests.leaks.kinds import Kind, kind_of
from tests.leaks.planting import LITERAL, NOW_MS, PARTITIONS, READ, Facts

Path = tuple[str, ...]
Place = tuple[str, str]
Own = Callable[[Facts, int], Any]
"""From a side and a version to a value."""
NOBODY = "nobody"
BATCHES_SINCE = 3


@dataclass(frozen=True)
class Variant:
    """One way of asking. `values` replace those of `VALUES`; nothing is looked for in what they leave empty."""

    name: str = ""
    values: Mapping[Place, Any] = field(default_factory=dict)
    kinds: Mapping[Place, Kind] = field(default_factory=dict)
    only: frozenset[Kind] | None = None  # these are replaced; None: all
    low: int = 0
    is_quiet: bool = True  # asked about one's own things it leaves no trace, where the API does not


def _only(*kinds: Kind) -> frozenset[Kind]:
    return frozenset(kinds)


def _typed(cls: str, name: str, kind_field: str, said: Any, kind: Kind, named: str) -> Variant:
    return Variant(named, {(cls, kind_field): said}, {(cls, name): kind})


_CONFIGS = tuple(
    (code, kind, f"of type {word}")
    for code, kind, word in (
        (2, Kind.TOPIC, "topic"),
        (4, Kind.BROKER_NAME, "broker"),
        (8, Kind.BROKER_NAME, "broker logger"),
        (16, Kind.GROUP, "client metrics"),
        (32, Kind.GROUP, "group"),
    )
)


def _configs(cls: str) -> tuple[Variant, ...]:
    return tuple(_typed(cls, "resource_name", "resource_type", code, kind, name) for code, kind, name in _CONFIGS)


def _quotas(cls: str, name: str) -> tuple[Variant, ...]:
    kinds = {"user": Kind.QUOTA_USER, "client-id": Kind.QUOTA_CLIENT, "ip": Kind.QUOTA_ADDRESS}
    return tuple(_typed(cls, name, "entity_type", said, kind, f"of a {said}") for said, kind in kinds.items())


def _acls(cls: str, kind_field: str) -> tuple[Variant, ...]:
    return tuple(Variant(f"of a {word}", {(cls, kind_field): code}) for code, word in ((2, "topic"), (3, "group")))


_ANY_ACL = {
    ("DescribeAclsRequest", name): 1
    for name in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
} | {("DescribeAclsRequest", f"{name}_filter"): None for name in ("resource_name", "principal", "host")}
_NOTHING = frozenset[Kind]()

VARIANTS: Mapping[str, tuple[Variant, ...]] = {
    "ProduceRequest": (
        Variant("acks=all"),
        Variant("acks=0", {("ProduceRequest", "acks"): 0}, only=_only(Kind.TOPIC)),
    ),
    "FetchRequest": (
        Variant(  # before those that would end it
            "in a session",
            {("FetchRequest", "session_epoch"): 1, ("FetchRequest", "topics"): ()},
            only=_only(Kind.FETCH_SESSION),
            low=7,
            is_quiet=False,
        ),
        Variant("alone"),
        Variant("that begins a session", {("FetchRequest", "session_epoch"): 0}, low=7, is_quiet=False),
    ),
    "ListOffsetsRequest": (
        Variant("of the end"),
        Variant("of the beginning", {("ListOffsetsPartition", "timestamp"): -2}),
    ),
    "MetadataRequest": (
        Variant("of one"),
        Variant("of all", {("MetadataRequest", "topics"): lambda _, version: None if version else ()}, only=_NOTHING),
    ),
    "OffsetCommitRequest": (
        Variant("of a member"),
        Variant(
            "of nobody",
            {
                ("OffsetCommitRequest", "generation_id_or_member_epoch"): -1,
                ("OffsetCommitRequest", "member_id"): "",
                ("OffsetCommitRequest", "group_instance_id"): None,
            },
            only=_only(Kind.GROUP),
            low=1,
        ),
    ),
    "OffsetFetchRequest": (
        Variant("of one topic"),
        Variant(
            "of all",
            {("OffsetFetchRequest", "topics"): None, ("OffsetFetchRequestGroup", "topics"): None},
            only=_only(Kind.GROUP),
            low=2,
        ),
    ),
    "FindCoordinatorRequest": (
        Variant(
            "of a group",
            kinds={("FindCoordinatorRequest", name): Kind.GROUP for name in ("key", "coordinator_keys")},
        ),
        Variant(
            "of a transactional id",
            {("FindCoordinatorRequest", "key_type"): 1},
            {("FindCoordinatorRequest", name): Kind.TRANSACTIONAL_ID for name in ("key", "coordinator_keys")},
            low=1,
        ),
    ),
    "JoinGroupRequest": (
        Variant("as a member", {("JoinGroupRequest", "group_instance_id"): None}, only=_only(Kind.GROUP, Kind.MEMBER)),
        Variant(
            "as a new one",
            {("JoinGroupRequest", "group_instance_id"): None, ("JoinGroupRequest", "member_id"): ""},
            only=_only(Kind.GROUP),
        ),
        Variant(
            "as a static one",
            {("JoinGroupRequest", "member_id"): NOBODY},
            only=_only(Kind.GROUP, Kind.GROUP_INSTANCE),
            low=5,
        ),
    ),
    "LeaveGroupRequest": (
        Variant("as a member", {("MemberIdentity", "group_instance_id"): None}),
        Variant("as a static one", {("MemberIdentity", "member_id"): NOBODY}, only=_only(Kind.GROUP_INSTANCE), low=3),
    ),
    "CreateTopicsRequest": (
        Variant("", {("CreatableTopic", "assignments"): ()}),
        Variant(
            "with an assignment",
            {("CreatableTopic", "num_partitions"): -1, ("CreatableTopic", "replication_factor"): -1},
            only=_only(Kind.BROKER),
        ),
    ),
    "CreatePartitionsRequest": (
        Variant("", {("CreatePartitionsTopic", "assignments"): None}),
        Variant("with an assignment", {("CreatePartitionsRequest", "validate_only"): True}, only=_only(Kind.BROKER)),
    ),
    "InitProducerIdRequest": (
        Variant("of nobody", only=_only(Kind.TRANSACTIONAL_ID)),
        Variant("of an id", {("InitProducerIdRequest", "producer_epoch"): 0}, only=_only(Kind.PRODUCER_ID), low=3),
    ),
    "DescribeTopicPartitionsRequest": (
        Variant(
            "of one", {("DescribeTopicPartitionsRequest", "cursor"): None}
        ),  # it only says where among these to begin
        Variant("of all", {("DescribeTopicPartitionsRequest", "topics"): ()}),
    ),
    "DescribeLogDirsRequest": (
        Variant("of one"),
        Variant("of all", {("DescribeLogDirsRequest", "topics"): None}, only=_NOTHING),
    ),
    "DescribeConfigsRequest": _configs("DescribeConfigsResource"),
    "AlterConfigsRequest": _configs("AlterConfigsRequestAlterConfigsResource"),
    "IncrementalAlterConfigsRequest": _configs("IncrementalAlterConfigsRequestAlterConfigsResource"),
    "DescribeClientQuotasRequest": (
        *_quotas("ComponentData", "match"),
        Variant("of all", {("DescribeClientQuotasRequest", "components"): ()}, only=_NOTHING),
    ),
    AlterClientQuotasRequest.__name__: _quotas("AlterClientQuotasRequestEntityData", "entity_name"),
    "DescribeUserScramCredentialsRequest": (
        Variant("of one"),
        Variant("of all", {("DescribeUserScramCredentialsRequest", "users"): None}, only=_NOTHING),
    ),
    "AlterUserScramCredentialsRequest": (
        Variant("that deletes", {("AlterUserScramCredentialsRequest", "upsertions"): ()}),
        Variant("that makes", {("AlterUserScramCredentialsRequest", "deletions"): ()}),
    ),
    "DescribeAclsRequest": (
        *_acls("DescribeAclsRequest", "resource_type_filter"),
        Variant("of all", _ANY_ACL, only=_NOTHING),
    ),
    "DeleteAclsRequest": _acls("DeleteAclsFilter", "resource_type_filter"),
    "CreateAclsRequest": _acls("AclCreation", "resource_type"),
}
"""By request; others are asked in one way."""

VALUES: Mapping[Place, Any] = {
    ("ProduceRequest", "acks"): -1,
    ("ProduceRequest", "transactional_id"): None,
    ("PartitionProduceData", "records"): lambda _, version: batch(version),
    ("FetchRequest", "max_bytes"): 2**20,
    ("FetchRequest", "forgotten_topics_data"): (),
    ("FetchPartition", "partition_max_bytes"): 2**20,
    ("ListOffsetsRequest", "replica_id"): -1,
    ("ListOffsetsPartition", "timestamp"): -1,
    ("ListOffsetsPartition", "max_num_offsets"): 10,
    ("OffsetForLeaderEpochRequest", "replica_id"): -1,
    ("MetadataRequest", "allow_auto_topic_creation"): False,
    ("OffsetCommitRequest", "generation_id_or_member_epoch"): lambda facts, _: facts.generation,
    ("OffsetCommitRequestPartition", "committed_offset"): 1,
    ("OffsetCommitRequestPartition", "committed_metadata"): "",
    ("JoinGroupRequest", "session_timeout_ms"): 6_000,
    ("JoinGroupRequest", "rebalance_timeout_ms"): 1_000,
    ("JoinGroupRequest", "protocol_type"): "consumer",
    ("JoinGroupRequestProtocol", "name"): "range",
    ("HeartbeatRequest", "generation_id"): lambda facts, _: facts.generation,
    ("SyncGroupRequest", "generation_id"): lambda facts, _: facts.generation,
    ("SyncGroupRequest", "protocol_type"): "consumer",
    ("SyncGroupRequest", "protocol_name"): "range",
    ("SyncGroupRequest", "assignments"): (),
    ("ListGroupsRequest", "states_filter"): (),
    ("ListGroupsRequest", "types_filter"): (),
    ("SaslHandshakeRequest", "mechanism"): "PLAIN",
    ("ApiVersionsRequest", "client_software_name"): "leaks",
    ("ApiVersionsRequest", "client_software_version"): "1",
    ("CreatableTopic", "name"): lambda facts, _: facts.new_topic,
    ("CreatableTopic", "num_partitions"): 1,
    ("CreatableTopic", "replication_factor"): 1,
    ("CreatableTopic", "configs"): (),
    ("DeleteRecordsPartition", "offset"): -1,  # all that there is
    ("InitProducerIdRequest", "transactional_id"): None,
    ("InitProducerIdRequest", "transaction_timeout_ms"): 60_000,
    ("CreatePartitionsTopic", "count"): PARTITIONS + 1,
    ("DescribeTopicPartitionsRequest", "cursor"): None,
    ("DescribeConfigsResource", "configuration_keys"): None,
    ("AlterConfigsRequestAlterableConfig", "name"): "retention.ms",
    ("AlterConfigsRequestAlterableConfig", "value"): "86400001",
    ("IncrementalAlterConfigsRequestAlterableConfig", "name"): "retention.ms",
    ("IncrementalAlterConfigsRequestAlterableConfig", "value"): "86400001",
    ("OpData", "key"): "producer_byte_rate",
    ("OpData", "value"): 1e9,
    ("DescribeAclsRequest", "pattern_type_filter"): LITERAL,
    ("DescribeAclsRequest", "operation"): READ,
    ("DescribeAclsRequest", "permission_type"): 3,
    ("DeleteAclsFilter", "pattern_type_filter"): LITERAL,
    ("DeleteAclsFilter", "operation"): READ,
    ("DeleteAclsFilter", "permission_type"): 3,
    ("AclCreation", "resource_pattern_type"): LITERAL,
    ("AclCreation", "operation"): READ,
    ("AclCreation", "permission_type"): 3,
    ("ScramCredentialDeletion", "mechanism"): 1,
    ("ScramCredentialUpsertion", "mechanism"): 1,
    ("ScramCredentialUpsertion", "iterations"): 4096,
    ("ScramCredentialUpsertion", "salt"): b"salt of the matrix",
    ("ScramCredentialUpsertion", "salted_password"): bytes(32),
}
"""What stands in a field that is not what is asked about."""

_BY_NAME: Mapping[str, Any] = {
    "timeout_ms": 10_000,
    "include_synonyms": True,
    "include_documentation": True,
    "include_authorized_operations": True,
    "include_cluster_authorized_operations": True,
    "include_topic_authorized_operations": True,
}

_OWN: Mapping[Kind, Callable[[Facts], Any]] = {
    Kind.TOPIC: lambda facts: facts.topic,
    Kind.TOPIC_ID: lambda facts: facts.topics[facts.topic],
    Kind.GROUP: lambda facts: facts.group,
    Kind.TRANSACTIONAL_ID: lambda facts: facts.transactional_id,
    Kind.MEMBER: lambda facts: facts.member_id,
    Kind.GROUP_INSTANCE: lambda facts: facts.instance_id,
    Kind.BROKER_NAME: lambda facts: str(facts.brokers[0]),
    Kind.USER: lambda facts: facts.user,
    Kind.PRINCIPAL: lambda facts: facts.principal,
    Kind.HOST: lambda facts: facts.acl_host,
    Kind.ACL_RESOURCE: lambda facts: facts.acl_resource,
    Kind.QUOTA_USER: lambda facts: facts.quota_user,
    Kind.QUOTA_CLIENT: lambda facts: facts.quota_client,
    Kind.QUOTA_ADDRESS: lambda facts: facts.acl_host,
    Kind.LOGIN: lambda facts: f"\0{facts.user}\0no password".encode(),
}
"""Of a kind that is not here the declaration's default."""


def variants(cls: type) -> tuple[Variant, ...]:
    """In which a request is asked."""
    return VARIANTS.get(cls.__name__, (Variant(),))


def batch(version: int, producer_id: int = -1) -> bytes:
    """One record in the format that this version of Produce brings."""
    if version >= BATCHES_SINCE:
        named = {} if producer_id < 0 else {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 3}
        return bytes(build_batch([Record(None, b"asked")], now_ms=NOW_MS, **named))
    return bytes(write_message(int(version == 2), 0, NOW_MS if version == 2 else -1, None, b"asked"))


def fields_of(cls: type, version: int, variant: Variant) -> Iterator[tuple[Path, Kind]]:
    """The places that identify something, as this version has them."""
    for path, kind in _fields(cls, version, variant, ()):
        if kind is not Kind.NOTHING and (variant.only is None or kind in variant.only):
            yield path, kind


def _fields(cls: type, version: int, variant: Variant, above: Path) -> Iterator[tuple[Path, Kind]]:
    for name, wire, _ in wires(cls):
        place = (cls.__name__, name)
        if version not in wire.versions:
            continue
        kind = variant.kinds.get(place) or kind_of(cls, name, wire)
        if kind is None:
            assert isinstance(wire.element, type)
            if place not in variant.values or variant.values[place]:
                yield from _fields(wire.element, version, variant, (*above, name))
        elif place not in variant.values:
            yield (*above, name), kind


class Maker:
    """Requests of one side at one version, asked in one way."""

    def __init__(self, facts: Facts, version: int, variant: Variant) -> None:
        self._facts, self._version, self._variant = facts, version, variant

    def request(self, cls: type, path: Path = (), value: Any = None) -> Any:
        """About its own things, but for `value` at `path`."""
        return self._structure(cls, path, value)

    def _structure(self, cls: type, path: Path, value: Any) -> Any:
        """`path` is what is left of the way to the field; empty: it is elsewhere."""
        members: dict[str, Any] = {}
        declared = [row for row in wires(cls) if self._version in row[1].versions]
        names = {name for name, wire, _ in declared if wire.entity == "topic"}
        for name, wire, default in declared:
            here, *rest = path or ("",)
            if name != here:
                if name in names and here == "topic_id":
                    members[name] = None if self._version in wire.nullable else ""
                elif name != "topic_id" or not names:
                    members[name] = self._value(cls, name, wire, default)
            elif isinstance(wire.element, type):
                inner = self._structure(wire.element, tuple(rest), value)
                members[name] = (inner,) if wire.kind == "array" else inner
            else:
                members[name] = (value,) if wire.kind == "array" else value
        return cls(**members)

    def _value(self, cls: type, name: str, wire: Declared, default: Any) -> Any:
        place = (cls.__name__, name)
        for known in (self._variant.values, VALUES):
            if place in known:
                found = known[place]
                return found(self._facts, self._version) if callable(found) else found
        if isinstance(wire.element, type):
            inner = self._structure(wire.element, (), None)
            return (inner,) if wire.kind == "array" else inner
        if name in _BY_NAME:
            return _BY_NAME[name]
        kind = self._variant.kinds.get(place) or kind_of(cls, name, wire)
        if kind is Kind.BROKER and wire.kind == "array":
            return (self._facts.brokers[0],)
        if kind not in _OWN:
            return (0,) if name in ("partitions", "partition_indexes") else default
        own = _OWN[kind](self._facts)
        return (own,) if wire.kind == "array" else own
