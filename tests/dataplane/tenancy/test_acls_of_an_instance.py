"""ACLs of an instance decide what its sessions may do, by the names that the tenant knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.tenancy.access import (
    CLUSTER,
    Operation,
    Permit,
    Resource,
    ResourceKind,
    authorize,
    authorize_creation,
    authorize_idempotence,
    is_kept_from,
    of_group,
    of_topic,
)
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from quota.contracts.acls import Acl, AclSet, PatternType, Permission, ResourceType
from quota.contracts.instance import Authorizer, InstanceSpec, InstanceState, Limits

HOME = "10.0.0.7"
SPEC = InstanceSpec("ins-aaaabbbb", 1, InstanceState.RUNNING, Limits(None, None, None, None), ("0.0.0.0/0",), ())
CLOSED = Authorizer(allow_everyone_if_no_acl_found=False)
ORDERS, EVENTS, READERS = of_topic("aaaabbbb.orders"), of_topic("aaaabbbb.events"), of_group("aaaabbbb.readers")


def acl(operation, kind=ResourceType.TOPIC, name="orders", *, permission=Permission.ALLOW, **members):
    pattern = members.get("pattern", PatternType.LITERAL)
    return Acl(kind, pattern, name, members.get("who", "User:ann"), members.get("host", "*"), operation, permission)


def session_of(*acls, authorizer=CLOSED, who="User:ann", peer=HOME, **members):
    instance = Instance(replace(SPEC, acls=AclSet().changed(acls), authorizer=authorizer, **members))
    return Session(instance, "default", instance.names, peer, authenticated=True, principal=who)


@pytest.mark.parametrize("resource", [ORDERS, READERS, CLUSTER])
def test_each_kind_of_resource_has_its_refusal(resource):
    codes = {
        ResourceKind.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ResourceKind.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ResourceKind.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
    assert authorize(session_of(), Operation.DESCRIBE, resource) is codes[resource.kind]


def test_rules_name_topics_and_groups_as_the_tenant_does():
    session = session_of(acl(Operation.READ), acl(Operation.READ, ResourceType.GROUP, "readers"))
    assert isinstance(authorize(session, Operation.READ, ORDERS), Permit)
    assert isinstance(authorize(session, Operation.READ, READERS), Permit)
    assert authorize(session, Operation.READ, EVENTS) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    by_key = session_of(acl(Operation.READ, name="aaaabbbb.", pattern=PatternType.PREFIXED))
    assert authorize(by_key, Operation.READ, ORDERS) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_who_asks_is_the_sessions_principal_at_its_address():
    rule = acl(Operation.READ, host="10.0.0.0/8")
    assert isinstance(authorize(session_of(rule), Operation.READ, ORDERS), Permit)
    assert isinstance(authorize(session_of(rule, peer="::ffff:10.9.9.9"), Operation.READ, ORDERS), Permit)
    for other in (session_of(rule, peer="192.0.2.1"), session_of(rule, who="User:bob")):
        assert authorize(other, Operation.READ, ORDERS) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_an_instance_without_acls_asks_nobody():
    assert session_of(authorizer=Authorizer()).instance.acls is None
    assert session_of().instance.acls is not None
    assert session_of(acl(Operation.READ), authorizer=Authorizer()).instance.acls is not None


def test_a_whitelist_refuses_whom_rules_permit():
    session = session_of(
        authorizer=Authorizer(super_users=("User:ann",)), topic_whitelists={"orders": ("192.0.2.0/24",)}
    )
    assert authorize(session, Operation.READ, ORDERS) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert is_kept_from(session, ORDERS.name)
    assert not is_kept_from(session, EVENTS.name)
    assert authorize_creation(session, ORDERS.name) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_nobody_may_what_brokers_do_among_themselves_not_even_a_super_user():
    session = session_of(authorizer=Authorizer(super_users=("User:ann",)))
    assert authorize(session, Operation.CLUSTER_ACTION, CLUSTER) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert isinstance(authorize(session, Operation.ALTER, CLUSTER), Permit)


def test_a_topic_is_created_by_who_may_create_it_or_any():
    cluster = acl(Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster")
    assert isinstance(authorize_creation(session_of(cluster), ORDERS.name), Permit)
    assert isinstance(authorize_creation(session_of(acl(Operation.CREATE)), ORDERS.name), Permit)
    assert authorize_creation(session_of(acl(Operation.ALL, name="x")), ORDERS.name) is (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )
    deny = acl(Operation.CREATE, permission=Permission.DENY)
    assert isinstance(
        authorize_creation(session_of(cluster, deny), ORDERS.name), Permit
    )  # Kafka asks the cluster first


def test_a_producer_id_is_given_to_who_may_write_anything():
    assert authorize_idempotence(session_of(acl(Operation.READ))) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert isinstance(authorize_idempotence(session_of(acl(Operation.WRITE))), Permit)
    own = acl(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster")
    assert isinstance(authorize_idempotence(session_of(own)), Permit)


def test_a_name_of_another_instance_is_never_judged():
    """It would be by the tenant's rules for a name of its own. Who asks for it has a bug: the connection ends."""
    with pytest.raises(Exception, match="does not own"):
        authorize(session_of(), Operation.READ, Resource(ResourceKind.TOPIC, "ccccdddd.orders"))
