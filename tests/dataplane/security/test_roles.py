"""Roles on the internal listener: which requests, in whose name, and what of."""

from __future__ import annotations

import dataclasses

import pytest

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.messages.fetch import ReplicaState
from dataplane.security.roles import SENDERS, claimed, is_on_behalf, may_claim, may_send, may_touch
from dataplane.tenancy.access import Operation, ResourceKind
from quota.contracts.identity import ANYBODY, CONTROL_PLANE, METERING, MONITORING, OPERATOR, Role, broker, master
from quota.contracts.namespace import AUDIT_TOPIC
from quota.contracts.on_behalf import CLIENT_ID

EVERY = {
    "broker": broker(1),
    "master": master(1),
    "controlplane": CONTROL_PLANE,
    "metering": METERING,
    "operator": OPERATOR,
    "monitoring": MONITORING,
}
INTERNAL = sorted(map(ApiKey, HANDLERS))
OPEN = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
OF_BROKERS = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
}
READING = {
    ApiKey.METADATA,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
}


@pytest.mark.parametrize("key", INTERNAL, ids=lambda key: key.name)
def test_every_api_of_the_internal_listener_has_a_row(key):
    assert key in SENDERS


@pytest.mark.parametrize("key", [key for key in INTERNAL if key not in OPEN], ids=lambda key: key.name)
def test_nobody_is_let_do_anything(key):
    assert not may_send(None, key)


@pytest.mark.parametrize("key", INTERNAL, ids=lambda key: key.name)
def test_metering_reads_and_nothing_else(key):
    assert may_send(METERING, key) == (key in OPEN | READING)


@pytest.mark.parametrize("key", INTERNAL, ids=lambda key: key.name)
def test_masters_and_monitoring_have_nothing_to_ask_of_brokers(key):
    for identity in (master(1), MONITORING):
        assert may_send(identity, key) == (key in OPEN)


@pytest.mark.parametrize("key", sorted(OF_BROKERS), ids=lambda key: key.name)
def test_what_is_between_brokers_is_for_brokers_alone(key):
    assert {name for name, identity in EVERY.items() if may_send(identity, key)} == {"broker"}


def test_a_transaction_that_hangs_is_ended_by_administrators_as_by_its_coordinator_and_by_nobody_else():
    allowed = {name for name, identity in EVERY.items() if may_send(identity, ApiKey.WRITE_TXN_MARKERS)}
    assert allowed == {"broker", "operator", "controlplane"}


def test_a_broker_asks_for_nothing_that_only_people_ask():
    allowed = {key for key in INTERNAL if may_send(broker(1), key)}
    assert allowed == OPEN | READING | OF_BROKERS | {
        ApiKey.PRODUCE,
        ApiKey.CREATE_TOPICS,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.WRITE_TXN_MARKERS,
    }


def test_the_control_plane_writes_no_transactions_moves_nothing_between_disks_and_joins_no_group():
    refused = {key for key in INTERNAL if not may_send(CONTROL_PLANE, key)}
    assert refused == OF_BROKERS | {
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
    }


def test_an_operator_may_all_but_what_is_between_brokers():
    assert {key for key in INTERNAL if not may_send(OPERATOR, key)} == OF_BROKERS


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_who_cannot_be_told_apart_may_all(key):
    assert may_send(ANYBODY, key)


# --- in whose name ----------------------------------------------------------------------------------------------------

NAMED = ("replica_id", "broker_id", "controller_id")


def in_the_name_of(key, number):
    """A request with that number in every place that says who sends it; None: there is no such place."""
    request = APIS[key].request()
    fields = {field.name for field in dataclasses.fields(request)} & set(NAMED)
    return dataclasses.replace(request, **dict.fromkeys(fields, number)) if fields else None


CLAIMING = [key for key in INTERNAL if in_the_name_of(key, 1) is not None]


def test_every_request_that_names_its_sender_is_looked_at():
    """By the declarations: a field of this name that nobody looks at fails here."""
    assert {key for key in CLAIMING if claimed(in_the_name_of(key, 7)) != 7} == set()
    assert set(CLAIMING) >= OF_BROKERS | {
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
    }


@pytest.mark.parametrize("key", CLAIMING, ids=lambda key: key.name)
def test_a_broker_speaks_for_itself_alone(key):
    assert may_claim(broker(7), in_the_name_of(key, 7))
    assert not may_claim(broker(2), in_the_name_of(key, 7))
    for identity in (None, CONTROL_PLANE, METERING, OPERATOR, master(7)):
        assert not may_claim(identity, in_the_name_of(key, 7))


def test_a_followers_fetch_may_say_it_in_its_newer_place():
    request = dataclasses.replace(in_the_name_of(ApiKey.FETCH, -1), replica_state=ReplicaState(replica_id=7))
    assert may_claim(broker(7), request)
    assert not may_claim(broker(2), request)
    assert not may_claim(METERING, request)


@pytest.mark.parametrize("number", [-1, -2])
@pytest.mark.parametrize(
    "key", [ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH], ids=lambda key: key.name
)
def test_consumers_name_nobody(key, number):
    assert all(may_claim(identity, in_the_name_of(key, number)) for identity in EVERY.values())
    assert not may_claim(None, in_the_name_of(key, number))


@pytest.mark.parametrize("key", sorted(OF_BROKERS), ids=lambda key: key.name)
def test_between_brokers_nobody_is_not_a_name(key):
    assert not may_claim(broker(1), in_the_name_of(key, -1))


# --- what of ----------------------------------------------------------------------------------------------------------

NAMES = ("__usage", "__consumer_offsets", "orders", "aaaabbbb.orders", "__usage.x", "", "kafka-cluster")
PLACES = [(operation, kind, name) for operation in Operation for kind in ResourceKind for name in NAMES]


def test_metering_touches_the_usage_records_alone():
    allowed = {place for place in PLACES if may_touch(METERING, *place)}
    assert allowed == {(operation, ResourceKind.TOPIC, "__usage") for operation in (Operation.READ, Operation.DESCRIBE)}


def test_nobody_and_masters_touch_nothing():
    for identity in (None, master(1), MONITORING):
        assert not [place for place in PLACES if may_touch(identity, *place)]


OF_A_TENANT = "aaaabbbb.orders"


def written_and_refused(identity, kinds=(ResourceKind.TOPIC,)):
    """What it may not write, the same of each of these kinds; what else it may not do is what only brokers do."""
    refused = {place for place in PLACES if not may_touch(identity, *place)}
    actions = {place for place in PLACES if place[0] is Operation.CLUSTER_ACTION}
    assert refused >= actions
    rest = refused - actions
    assert {place[:2] for place in rest} == {(Operation.WRITE, kind) for kind in kinds}
    (names,) = {frozenset(name for _, each, name in rest if each is kind) for kind in kinds}
    return names


def test_people_write_no_tenants_records_and_are_no_brokers():
    assert written_and_refused(OPERATOR) == {OF_A_TENANT}


def test_the_control_plane_writes_tenants_records_and_no_others():
    """Of usage records it could make a bill. A tenant's transactional id it initialises to end what was left open."""
    kinds = (ResourceKind.TOPIC, ResourceKind.TRANSACTIONAL_ID)
    assert written_and_refused(CONTROL_PLANE, kinds) == set(NAMES) - {OF_A_TENANT}


def test_only_the_control_plane_acts_on_behalf_of_a_tenant_and_only_where_it_says_so():
    assert is_on_behalf(CONTROL_PLANE, CLIENT_ID)
    assert not is_on_behalf(CONTROL_PLANE, "sluice-controlplane")
    assert not is_on_behalf(CONTROL_PLANE, None)
    for identity in (None, OPERATOR, METERING, broker(1), master(1), MONITORING, ANYBODY):
        assert not is_on_behalf(identity, CLIENT_ID)


def test_the_control_plane_reads_the_audit_of_an_instance_and_writes_none():
    audit = (ResourceKind.TOPIC, f"aaaabbbb.{AUDIT_TOPIC}")
    assert may_touch(CONTROL_PLANE, Operation.READ, *audit)
    assert may_touch(CONTROL_PLANE, Operation.DESCRIBE, *audit)
    assert not may_touch(CONTROL_PLANE, Operation.WRITE, *audit)
    assert not may_touch(METERING, Operation.READ, *audit)


def test_brokers_touch_all():
    assert all(may_touch(identity, *place) for place in PLACES for identity in (broker(1), ANYBODY))


def test_each_role_is_one_that_identities_have():
    assert {role for roles in SENDERS.values() for role in roles} <= set(Role) - {Role.ANYBODY}
