"""ACLs and users as real clients manage them: librdkafka's AdminClient and Kafka's own tools, each tenant its own."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from dataplane.protocol.messages.security import CreateAclsRequest, DescribeAclsRequest
from dataplane.tenancy.session import ANONYMOUS
from quota.contracts.instance import Authorizer
from tests.integration.clients import TIMEOUT_S, admin
from tests.support import apache_kafka
from tests.support.processes import HOST, SECRET
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.integration

READ_ORDERS = AclBinding(
    ResourceType.TOPIC,
    "orders",
    ResourcePatternType.LITERAL,
    "User:ann",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)
WRITE_ALL = AclBinding(
    ResourceType.TOPIC,
    "ord",
    ResourcePatternType.PREFIXED,
    "User:bob",
    "10.0.0.1",
    AclOperation.WRITE,
    AclPermissionType.DENY,
)
EVERYTHING = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def matching(name: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.TOPIC, name, ResourcePatternType.MATCH, None, None, AclOperation.ANY, AclPermissionType.ANY
    )


def create(tenant, *bindings: AclBinding) -> None:
    client = admin(tenant)
    for done in client.create_acls(list(bindings), request_timeout=TIMEOUT_S).values():
        done.result(TIMEOUT_S)


def listed(tenant, wanted: AclBindingFilter = EVERYTHING) -> list[AclBinding]:
    client = admin(tenant)
    return sorted(client.describe_acls(wanted, request_timeout=TIMEOUT_S).result(TIMEOUT_S), key=str)


def same(found: Iterable[AclBinding], *wanted: AclBinding) -> bool:
    return sorted(found, key=str) == sorted(wanted, key=str)


def test_librdkafka_creates_lists_and_deletes_acls_and_a_neighbour_sees_none(new_tenant):
    tenant, neighbour = new_tenant(), new_tenant()
    create(tenant, READ_ORDERS, WRITE_ALL)
    wait_for(lambda: same(listed(tenant), READ_ORDERS, WRITE_ALL), promised(2), "every broker lists them")
    wait_for(
        lambda: same(listed(tenant, matching("orders")), READ_ORDERS, WRITE_ALL),
        promised(2),
        "and by a name that they fit",
    )
    assert listed(neighbour) == []
    create(neighbour, READ_ORDERS)
    client = admin(tenant)
    (deleted,) = client.delete_acls([matching("orders")], request_timeout=TIMEOUT_S).values()
    assert same(deleted.result(TIMEOUT_S), READ_ORDERS, WRITE_ALL)
    wait_for(lambda: listed(tenant) == [], promised(2), "they are gone everywhere")
    wait_for(lambda: same(listed(neighbour), READ_ORDERS), promised(2), "the neighbour's stay")


def test_every_broker_has_them_within_two_seconds(tenant):
    create(tenant, READ_ORDERS)
    for address in tenant.addresses.values():
        with Wire(address) as wire:
            request = DescribeAclsRequest(1, None, 1, None, None, 1, 1)
            wait_for(lambda: len(wire.call(request, 3).resources) == 1, promised(2), "this broker has it")  # noqa: B023


def test_nothing_of_it_is_there_for_the_clusters_own_listener(tenant, cluster):
    create(tenant, READ_ORDERS)
    with Wire((HOST, cluster.brokers[1].ports["internal"])) as wire:
        assert wire.log_in(SECRET) == 0
        answer = wire.call(DescribeAclsRequest(1, None, 1, None, None, 1, 1), 3)
        assert (answer.error_code, answer.resources) == (KafkaError.SECURITY_DISABLED, ())
        assert wire.call(CreateAclsRequest(()), 3).results == ()


def upsertion(name: str, mechanism=ScramMechanism.SCRAM_SHA_256) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), b"a secret of theirs", b"salt")


def alter(tenant, *alterations) -> None:
    client = admin(tenant)
    for done in client.alter_user_scram_credentials(list(alterations), request_timeout=TIMEOUT_S).values():
        done.result(TIMEOUT_S)


def users(tenant) -> dict[str, list[tuple[ScramMechanism, int]]]:
    client = admin(tenant)
    found = client.describe_user_scram_credentials(None, request_timeout=TIMEOUT_S).result(TIMEOUT_S)
    return {
        name: [(info.mechanism, info.iterations) for info in one.scram_credential_infos] for name, one in found.items()
    }


def test_librdkafka_makes_lists_and_removes_users_and_a_neighbour_sees_none(new_tenant):
    tenant, neighbour = new_tenant(), new_tenant()
    sha_256, sha_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
    alter(tenant, upsertion("ann"), upsertion("ann", sha_512), upsertion("bob", sha_512))
    wanted = {"ann": [(sha_256, 4096), (sha_512, 4096)], "bob": [(sha_512, 4096)]}
    wait_for(lambda: users(tenant) == wanted, promised(2), "every broker lists them")
    assert users(neighbour) == {}
    alter(neighbour, upsertion("ann"))
    alter(tenant, UserScramCredentialDeletion("ann", sha_256), UserScramCredentialDeletion("bob", sha_512))
    wait_for(lambda: users(tenant) == {"ann": [(sha_512, 4096)]}, promised(2), "one is left")
    with pytest.raises(KafkaException) as refused:
        alter(tenant, UserScramCredentialDeletion("bob", sha_512))
    assert refused.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND
    wait_for(lambda: users(neighbour) == {"ann": [(sha_256, 4096)]}, promised(2), "the neighbour's stays")


# --- Kafka's own tools ------------------------------------------------------------------------------------------------


def kafka(main: str, tenant, *arguments: str) -> str:
    """What the tool says."""
    if shutil.which("java") is None or not apache_kafka.JARS.is_dir():
        pytest.skip("Kafka's tools are not here: `make conformance` fetches them")
    command = [*apache_kafka.tool(main), "--bootstrap-server", tenant.bootstrap, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


@pytest.mark.timeout(400)
def test_kafka_acls(new_tenant):
    """As a super user: with an ACL for the cluster, nobody else may list ACLs unless one allows it."""
    tenant, neighbour = new_tenant(authorizer=Authorizer(super_users=(ANONYMOUS,))), new_tenant()
    tool = "kafka.admin.AclCommand"
    kafka(tool, tenant, "--add", "--allow-principal", "User:ann", "--consumer", "--topic", "orders", "--group", "g")
    kafka(
        tool,
        tenant,
        "--add",
        "--deny-principal",
        "User:*",
        "--deny-host",
        "10.0.0.7",
        "--operation",
        "All",
        "--cluster",
    )
    said = kafka(tool, tenant, "--list")
    for line in (
        "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)",
        "ResourcePattern(resourceType=GROUP, name=g, patternType=LITERAL)",
        "ResourcePattern(resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL)",
        "(principal=User:ann, host=*, operation=READ, permissionType=ALLOW)",
        "(principal=User:ann, host=*, operation=DESCRIBE, permissionType=ALLOW)",
        "(principal=User:*, host=10.0.0.7, operation=ALL, permissionType=DENY)",
    ):
        assert line in said
    assert tenant.key not in said
    assert "User:" not in kafka(tool, neighbour, "--list")
    kafka(tool, tenant, "--remove", "--force", "--topic", "orders", "--resource-pattern-type", "match")
    left = kafka(tool, tenant, "--list")
    assert "resourceType=TOPIC" not in left
    assert "resourceType=GROUP" in left


@pytest.mark.timeout(400)
def test_kafka_configs_for_users(new_tenant):
    tenant, neighbour = new_tenant(), new_tenant()
    tool, ann = "kafka.admin.ConfigCommand", ("--entity-type", "users", "--entity-name", "ann")
    said = kafka(tool, tenant, "--alter", *ann, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=secret]")
    assert "Completed updating config for user ann" in said
    shown = kafka(tool, tenant, "--describe", "--entity-type", "users")
    assert "SCRAM credential configs for user-principal 'ann' are SCRAM-SHA-512=iterations=8192" in shown
    assert "ann" not in kafka(tool, neighbour, "--describe", "--entity-type", "users")
    kafka(tool, tenant, "--alter", *ann, "--delete-config", "SCRAM-SHA-512")
    assert "SCRAM-SHA-512" not in kafka(tool, tenant, "--describe", "--entity-type", "users")
