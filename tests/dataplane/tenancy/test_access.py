"""What is permitted to whom, what a permit is good for, and that nobody decides it elsewhere."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import dataplane
from dataplane.protocol.errors import ErrorCode
from dataplane.tenancy.access import (
    CLUSTER,
    Operation,
    Permit,
    Resource,
    ResourceKind,
    authorize,
    of_topic,
    of_transactional_id,
    why,
)
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from quota.contracts.acls import AclSet
from quota.contracts.identity import ANYBODY
from quota.contracts.instance import Authorizer, InstanceSpec, InstanceState, Limits
from quota.contracts.namespace import ClusterNames

NEAR, FAR = "10.0.0.1", "192.0.2.1"
SPEC = InstanceSpec(
    "ins-aaaabbbb",
    1,
    InstanceState.RUNNING,
    Limits(None, None, None, None),
    ("0.0.0.0/0",),
    (),
    {"orders": ("10.0.0.0/8",)},
)
ORDERS, EVENTS = of_topic("aaaabbbb.orders"), of_topic("aaaabbbb.events")
GROUP = Resource(ResourceKind.GROUP, "aaaabbbb.readers")
PAYMENTS = of_transactional_id("aaaabbbb.payments")
INTERNAL = Session(None, "internal", ClusterNames(), NEAR, authenticated=True, identity=ANYBODY)
EVERY = pytest.mark.parametrize("operation", Operation)


def session_of(peer, instance=None):
    instance = instance or Instance(SPEC)
    return Session(instance, "default", instance.names, peer, authenticated=True)


@EVERY
def test_a_topic_with_a_whitelist_is_permitted_to_whom_it_holds(operation):
    assert isinstance(authorize(session_of(NEAR), Operation.READ, ORDERS), Permit)
    assert authorize(session_of(FAR), operation, ORDERS) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("resource", [EVENTS, GROUP, CLUSTER, PAYMENTS])
@pytest.mark.parametrize("operation", [each for each in Operation if each is not Operation.CLUSTER_ACTION])
def test_the_rest_of_an_instance_is_permitted_to_all_of_it(operation, resource):
    assert isinstance(authorize(session_of(FAR), operation, resource), Permit)


def test_what_brokers_do_among_themselves_is_permitted_to_no_tenant():
    assert authorize(session_of(NEAR), Operation.CLUSTER_ACTION, CLUSTER) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert isinstance(authorize(INTERNAL, Operation.CLUSTER_ACTION, CLUSTER), Permit)


@EVERY
def test_the_internal_listener_may_do_everything(operation):
    for resource in (ORDERS, GROUP, CLUSTER, PAYMENTS):
        assert isinstance(authorize(INTERNAL, operation, resource), Permit)


def test_every_refusal_has_a_sentence():
    asked = [(session_of(FAR), Operation.READ, ORDERS), (session_of(FAR), Operation.CLUSTER_ACTION, CLUSTER)]
    closed = Instance(replace(SPEC, acls=AclSet(), authorizer=Authorizer(False, ())))
    of_acls = [(session_of(NEAR, closed), Operation.READ, resource) for resource in (EVENTS, GROUP, CLUSTER, PAYMENTS)]
    for session, operation, resource in [*asked, *of_acls]:
        assert why(authorize(session, operation, resource))


def test_a_permit_is_of_the_generation_in_which_it_was_given():
    instance = Instance(SPEC)
    session = session_of(NEAR, instance)
    permit = authorize(session, Operation.READ, ORDERS)
    assert permit.generation == session.access_generation
    assert authorize(session, Operation.WRITE, EVENTS).generation == permit.generation
    instance.apply(replace(SPEC, generation=2))
    assert permit.generation < session.access_generation
    assert authorize(session, Operation.READ, ORDERS).generation == session.access_generation


def test_nobody_else_asks_a_whitelist_of_a_topic():
    root = Path(dataplane.__file__).parent
    asking = [
        path.relative_to(root).as_posix()
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "topic_denied"
    ]
    assert set(asking) == {"tenancy/access.py"}


def test_nobody_else_names_a_refusal_of_access():
    """Save where it is not about who asks."""
    root = Path(dataplane.__file__).parent
    naming = {
        (path.relative_to(root).as_posix(), node.attr)
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr.endswith("_AUTHORIZATION_FAILED")
    }
    assert {path for path, _ in naming if path != "tenancy/access.py"} == {
        "clients/mirror/transacting.py",  # a client: what a broker has told it
        "groups/commits.py",  # what is told of a commit that a transaction was refused
        "handlers/admin/alter_configs.py",  # brokers' configurations: whose they are, not who asks
        "handlers/discovery/metadata.py",  # of what is refused no operations are told
        "handlers/discovery/topic_partitions.py",  # likewise
        "handlers/groups/find_coordinator.py",  # the sentence to it
        "handlers/groups/consumer.py",  # of a group with topics that are kept from the client nothing is told
        "handlers/records/fetch_reading.py",  # how an answer with it looks
        "handlers/records/produce.py",  # a transactional batch whose request names no transactional id
        "handlers/transactions/adding.py",  # coordinators' topics: whose they are, not who asks
        "replication/appending.py",  # a transactional batch, as in Produce
        "transactions/verification.py",  # between brokers: of no concern to a client
    }
