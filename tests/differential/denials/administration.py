"""Topics, configurations, quotas, ACLs and users."""

from __future__ import annotations

from typing import Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.configs import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    OpData,
)
from dataplane.protocol.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from dataplane.protocol.messages.security import (
    AclCreation,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from dataplane.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.differential.denials import NEW, NOWHERE, ORDERS, OTHER, World, case, cluster, topic

NAMES = (ORDERS, OTHER, NOWHERE)
TOPIC, BROKER = 2, 4
STATES_IN_DELETE = 6
"""First version of DeleteTopics that takes names and ids."""


@case(ApiKey.CREATE_TOPICS, topic("CREATE", NEW))
@case(ApiKey.CREATE_TOPICS, cluster("CREATE"))
@case(ApiKey.CREATE_TOPICS, cluster("CREATE"), topic("DESCRIBE_CONFIGS", NEW))
def create_topics(world: World) -> Any:
    names = (world.new("a"), world.new("b"), ORDERS, f"own-{world.situation}-{world.version}")
    topics = tuple(CreatableTopic(name, 1, 1) for name in names)
    return CreateTopicsRequest(topics, 10_000, validate_only=world.version > 0)


@case(ApiKey.DELETE_TOPICS, topic("DELETE", NEW), topics="doomed")
def delete_topics(world: World) -> Any:
    names = (world.new("doomed"), OTHER, NOWHERE, f"{NEW}nowhere")
    if world.version >= STATES_IN_DELETE:
        return DeleteTopicsRequest(tuple(DeleteTopicState(name) for name in names), timeout_ms=10_000)
    return DeleteTopicsRequest(topic_names=names, timeout_ms=10_000)


@case(ApiKey.DELETE_TOPICS, topic("DELETE", NEW), topics="lost")
def delete_topics_by_id(world: World) -> Any:
    names = (world.new("lost"), OTHER, NOWHERE)
    if world.version < STATES_IN_DELETE:
        return DeleteTopicsRequest(topic_names=(OTHER,), timeout_ms=10_000)
    return DeleteTopicsRequest(
        tuple(DeleteTopicState(None, world.topic_ids[name]) for name in names), timeout_ms=10_000
    )


@case(ApiKey.CREATE_PARTITIONS, topic("ALTER"))
def create_partitions(_: World) -> Any:
    return CreatePartitionsRequest(tuple(CreatePartitionsTopic(name, 3, None) for name in NAMES), 10_000, True)


@case(ApiKey.DESCRIBE_CONFIGS, topic("DESCRIBE_CONFIGS"), cluster("DESCRIBE_CONFIGS"))
@case(ApiKey.DESCRIBE_CONFIGS, topic("ALTER_CONFIGS"))
def describe_configs(_: World) -> Any:
    named = [(TOPIC, name) for name in NAMES] + [(BROKER, "0")]
    return DescribeConfigsRequest(tuple(DescribeConfigsResource(*one, ("retention.ms",)) for one in named), False)


@case(ApiKey.ALTER_CONFIGS, topic("ALTER_CONFIGS"))
def alter_configs(_: World) -> Any:
    change = (AlterConfigsRequestAlterableConfig("retention.ms", "604800000"),)
    named = [(TOPIC, name) for name in NAMES] + [(BROKER, "0")]
    return AlterConfigsRequest(tuple(AlterConfigsRequestAlterConfigsResource(*one, change) for one in named), True)


@case(ApiKey.INCREMENTAL_ALTER_CONFIGS, topic("ALTER_CONFIGS"))
def incremental_alter_configs(_: World) -> Any:
    change = (IncrementalAlterConfigsRequestAlterableConfig("retention.ms", 0, "604800000"),)
    named = [(TOPIC, name) for name in NAMES] + [(BROKER, "0")]
    resources = tuple(IncrementalAlterConfigsRequestAlterConfigsResource(*one, change) for one in named)
    return IncrementalAlterConfigsRequest(resources, True)


@case(ApiKey.DESCRIBE_LOG_DIRS, cluster("DESCRIBE"))
def describe_log_dirs(_: World) -> Any:
    return DescribeLogDirsRequest((DescribableLogDirTopic(ORDERS, (0,)),))


@case(ApiKey.DESCRIBE_CLIENT_QUOTAS, cluster("DESCRIBE_CONFIGS"))
def describe_client_quotas(_: World) -> Any:
    return DescribeClientQuotasRequest((), False)


@case(ApiKey.ALTER_CLIENT_QUOTAS, cluster("ALTER_CONFIGS"))
def alter_client_quotas(_: World) -> Any:
    entity = (AlterClientQuotasRequestEntityData("user", "somebody"),)
    entry = AlterClientQuotasRequestEntryData(entity, (OpData("producer_byte_rate", 1000.0, False),))
    return AlterClientQuotasRequest((entry,), validate_only=True)


@case(ApiKey.DESCRIBE_ACLS, cluster("DESCRIBE"))
@case(ApiKey.DESCRIBE_ACLS, cluster("ALTER"))
def describe_acls(_: World) -> Any:
    return DescribeAclsRequest(TOPIC, "no such", 3, None, None, 1, 1)


@case(ApiKey.CREATE_ACLS, cluster("ALTER"))
def create_acls(_: World) -> Any:
    good = AclCreation(TOPIC, "made", 3, "User:somebody", "*", 3, 3)
    return CreateAclsRequest((good, AclCreation(TOPIC, "", 3, "User:somebody", "*", 3, 3)))


@case(ApiKey.DELETE_ACLS, cluster("ALTER"))
def delete_acls(_: World) -> Any:
    return DeleteAclsRequest(tuple(DeleteAclsFilter(TOPIC, name, 3, None, None, 1, 1) for name in ("made", "no such")))


def _creation(name: str, principal: str = "User:somebody", **members: int) -> AclCreation:
    said = {"resource_type": TOPIC, "resource_pattern_type": 3, "operation": 3, "permission_type": 3, **members}
    return AclCreation(resource_name=name, principal=principal, host="*", **said)


@case(ApiKey.CREATE_ACLS, cluster("ALTER"))
def create_acls_of_all_kinds(world: World) -> Any:
    """Good ones and bad ones; the good ones twice."""
    prefixed = 4 if world.version else 3
    names = [
        _creation("kind", resource_type=kind, resource_pattern_type=pattern)
        for kind in (2, 3, 5, 6, 7)
        for pattern in (3, prefixed)
    ]
    operations = [_creation("kind", operation=operation) for operation in range(2, 15)]
    refused = [_creation("x", resource_type=4), _creation("", resource_type=3), _creation("x", resource_type=99)]
    unknown = [_creation("x", operation=99), _creation("x", permission_type=99)]
    return CreateAclsRequest((*names, *operations, *refused, *unknown, *names))


@case(ApiKey.CREATE_ACLS, cluster("ALTER"))
def create_acls_for_nobody(_: World) -> Any:
    return CreateAclsRequest((_creation("a", "nobody"), _creation("b", ""), _creation("c")))


@case(ApiKey.CREATE_ACLS, cluster("ALTER"))
def create_acls_of_anything(_: World) -> Any:
    return CreateAclsRequest((_creation("a", resource_type=1), _creation("b")))


@case(ApiKey.CREATE_ACLS, cluster("ALTER"))
def create_acls_of_nothing(_: World) -> Any:
    return CreateAclsRequest((_creation("a", operation=0), _creation("b")))


@case(ApiKey.DESCRIBE_ACLS, cluster("DESCRIBE"), topic("READ"), topic("READ", NEW))
def describe_acls_of_a_topic(world: World) -> Any:
    return DescribeAclsRequest(TOPIC, ORDERS, 2 if world.version else 3, None, None, 1, 1)


@case(ApiKey.DESCRIBE_ACLS, cluster("DESCRIBE"), topic("READ"), topic("READ", NEW))
def describe_acls_of_a_prefix(world: World) -> Any:
    return DescribeAclsRequest(TOPIC, NEW, 4 if world.version else 3, None, "*", 3, 3)


@case(ApiKey.DESCRIBE_ACLS, cluster("DESCRIBE"), topic("READ"), topic("READ", NEW))
def describe_all_acls(world: World) -> Any:
    return DescribeAclsRequest(1, None, 1 if world.version else 3, None, None, 1, 1)


@case(ApiKey.DESCRIBE_ACLS, cluster("DESCRIBE"), topic("READ"))
def describe_acls_that_deny(world: World) -> Any:
    return DescribeAclsRequest(1, None, 1 if world.version else 3, "User:deny", None, 1, 2)


@case(ApiKey.DESCRIBE_ACLS, cluster("DESCRIBE"))
def describe_acls_of_nothing(_: World) -> Any:
    return DescribeAclsRequest(0, None, 3, None, None, 1, 1)


@case(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, cluster("ALTER"))
def alter_user_scram_credentials_of_all_kinds(_: World) -> Any:
    def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
        return ScramCredentialUpsertion(name, mechanism, iterations, b"salt", bytes(32 * mechanism))

    upsertions = (
        upsertion("good"),
        upsertion("good", 2),
        upsertion("few", iterations=4095),
        upsertion("many", iterations=16_385),
        upsertion("unknown", 3),
        upsertion(""),
        upsertion("twice"),
        upsertion("twice", iterations=5000),
        upsertion("both", iterations=1),
        upsertion("gone"),
        upsertion("half", 2),
        upsertion("half", 1, 7),
    )
    deletions = (
        ScramCredentialDeletion("both", 9),
        ScramCredentialDeletion("gone", 1),
        ScramCredentialDeletion("missing", 2),
    )
    return AlterUserScramCredentialsRequest(deletions, upsertions)


@case(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, cluster("DESCRIBE"))
def describe_user_scram_credentials(_: World) -> Any:
    return DescribeUserScramCredentialsRequest((UserName("nobody"), UserName("no one")))


@case(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, cluster("ALTER"))
def alter_user_scram_credentials(_: World) -> Any:
    return AlterUserScramCredentialsRequest((ScramCredentialDeletion("nobody", 1), ScramCredentialDeletion("x", 9)), ())
