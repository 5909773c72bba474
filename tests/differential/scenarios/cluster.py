"""What clients ask first: ApiVersions, Metadata, FindCoordinator, DescribeCluster, DescribeTopicPartitions."""

from __future__ import annotations

from uuid import UUID

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from tests.differential.asking import Asker
from tests.differential.scenarios import scenario

NOBODY = UUID(int=7)
BAD_NAMES = ("", ".", "..", "a b", "a/b", "é", "x" * 250)


@scenario(ApiKey.API_VERSIONS)
def api_versions(asker: Asker) -> None:
    asker.ask("what is served", ApiVersionsRequest("differential", "1.0"))
    if asker.version < 3:  # says nothing of the client
        return
    for label, name, version in (
        ("no name", "", "1"),
        ("no version", "a", ""),
        ("a name that begins with a dot", ".a", "1"),
        ("a name with a space", "a b", "1"),
        ("a version with a space", "a", "1 0"),
        ("a name with an underscore", "a_b", "1"),
        ("a version that ends with a dash", "a", "1-"),
        ("a name that is not ASCII", "é", "1"),
    ):
        asker.ask(label, ApiVersionsRequest(name, version))


@scenario(ApiKey.METADATA)
def metadata(asker: Asker) -> None:
    name = asker.topic("t", 3)
    one = MetadataRequestTopic(name=name)
    asker.ask("one topic", MetadataRequest((one,), False))
    asker.ask("an unknown topic", MetadataRequest((MetadataRequestTopic(name=asker.name("no")),), False))
    asker.ask("one known, one unknown", MetadataRequest((one, MetadataRequestTopic(name=asker.name("no"))), False))
    asker.ask("the same twice", MetadataRequest((one, one), False))
    for bad in BAD_NAMES:
        asker.ask(f"bad name {bad[:5]!r}", MetadataRequest((MetadataRequestTopic(name=bad),), False))
    if asker.version > 0:
        asker.ask("no topics", MetadataRequest((), False))
    asker.ask("auto-creation allowed, switched off", MetadataRequest((MetadataRequestTopic(name=asker.name("no")),)))
    asker.ask("authorised operations", MetadataRequest((one,), False, True, True))
    if asker.version >= 10:
        known = asker.topic_id(name)
        asker.ask("by id", MetadataRequest((MetadataRequestTopic(known, None),), False))
        asker.ask("by id, beside an empty name", MetadataRequest((MetadataRequestTopic(known, ""),), False))
        asker.ask("by id, beside another name", MetadataRequest((MetadataRequestTopic(known, "other"),), False))
        asker.ask("by an unknown id", MetadataRequest((MetadataRequestTopic(NOBODY, None),), False))
        asker.ask("by name and id", MetadataRequest((MetadataRequestTopic(known, name),), False))
        asker.ask("by neither", MetadataRequest((MetadataRequestTopic(name=None),), False))


@scenario(ApiKey.FIND_COORDINATOR)
def find_coordinator(asker: Asker) -> None:
    def request(*keys: str, key_type: int = 0) -> FindCoordinatorRequest:
        if asker.version >= 4:
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
        return FindCoordinatorRequest(key=keys[0] if keys else "", key_type=key_type)

    asker.ask("a group", request(asker.name("g")))
    asker.ask("the empty group", request(""))
    asker.ask("a long name", request("g" * 1000))
    if asker.version >= 1:
        asker.ask("an unknown type", request(asker.name("g"), key_type=7))
        asker.ask("a negative type", request(asker.name("g"), key_type=-1))
        asker.ask("a share group", request(asker.name("g"), key_type=2))
    if asker.version >= 4:
        asker.ask("several", request(asker.name("a"), asker.name("b")))
        asker.ask("the same twice", request(asker.name("a"), asker.name("a")))
        asker.ask("none", request())


@scenario(ApiKey.DESCRIBE_CLUSTER)
def describe_cluster(asker: Asker) -> None:
    asker.ask("plain", DescribeClusterRequest())
    asker.ask("authorised operations", DescribeClusterRequest(include_cluster_authorized_operations=True))
    if asker.version >= 1:
        asker.ask("controllers", DescribeClusterRequest(endpoint_type=2))
        asker.ask("an unknown endpoint type", DescribeClusterRequest(endpoint_type=9))


@scenario(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def describe_topic_partitions(asker: Asker) -> None:
    name = asker.topic("t", 3)
    topic = DescribeTopicPartitionsRequestTopicRequest
    asker.ask("one", DescribeTopicPartitionsRequest((topic(name),)))
    asker.ask("unknown", DescribeTopicPartitionsRequest((topic(asker.name("no")),)))
    asker.ask("limited", DescribeTopicPartitionsRequest((topic(name),), 2))
    cursor = DescribeTopicPartitionsRequestCursor(name, 1)
    asker.ask("from a cursor", DescribeTopicPartitionsRequest((topic(name),), 2000, cursor))
    asker.ask("negative limit", DescribeTopicPartitionsRequest((topic(name),), -1))
    for bad in BAD_NAMES:
        asker.ask(f"bad name {bad[:5]!r}", DescribeTopicPartitionsRequest((topic(bad),)))
