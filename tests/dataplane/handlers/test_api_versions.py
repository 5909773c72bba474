"""ApiVersions: what each door offers, who may say what of itself, and what a client of the future is told."""

from __future__ import annotations

import struct

import pytest

from dataplane.handlers.discovery.api_versions import unsupported_version
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from tests.dataplane.handlers.asking import Tenant, Wire
from tests.dataplane.handlers.doors import asked, internal, tenant, versions
from tests.simulation.cluster import SimulatedCluster

ALL = versions(ApiKey.API_VERSIONS)
OPERATORS = {
    ApiKey.DESCRIBE_CONNECTIONS,
    ApiKey.DESCRIBE_BACKLOGS,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
}
"""What no tenant is offered."""


def library(name="kafka-python", version="2.0.2"):
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", ALL)
def test_a_tenant_is_offered_neither_operators_apis_nor_those_between_brokers(version):
    offered = {row.api_key for row in asked(tenant(), library(), version).api_keys}
    assert offered == set(HANDLERS) - OPERATORS


@pytest.mark.parametrize("version", ALL)
def test_inside_everything_is_offered_with_the_versions_that_are_answered(version):
    answer = asked(internal(), library(), version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.api_keys == tuple(ApiVersion(key, row.low, row.high) for key, row in sorted(HANDLERS.items()))


def test_transactions_of_version_2_are_in_force_for_whoever_can_read_so():
    for session in (tenant(), internal()):
        for version in (3, 4):
            answer = asked(session, library(), version)
            (feature,) = answer.finalized_features
            assert (feature.name, feature.min_version_level, feature.max_version_level) == ("transaction.version", 2, 2)
            assert answer.finalized_features_epoch >= 0
    (supported,) = asked(tenant(), library(), 4).supported_features
    assert (supported.name, supported.min_version, supported.max_version) == ("transaction.version", 0, 2)
    assert asked(tenant(), library(), 3).supported_features == (), "its readers take 0 for a mistake"


@pytest.mark.parametrize("said", [("", "1"), ("lib", ""), ("-lib", "1"), ("lib", "1."), ("a b", "1"), ("lib", "1\n")])
@pytest.mark.parametrize("version", [3, 4])
def test_a_name_or_version_that_is_none_is_refused_and_nothing_is_offered(said, version):
    answer = asked(tenant(), library(*said), version)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, ())


@pytest.mark.parametrize("said", [("l", "1"), ("apache-kafka-java", "3.9.0"), ("a.b-c", "1.2-rc.3")])
def test_a_name_with_dots_and_dashes_inside_is_one(said):
    assert asked(tenant(), library(*said), 3).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_version_3_nobody_says_who_it_is(version):
    assert asked(tenant(), library("", ""), version).error_code == ErrorCode.NONE


def test_the_answer_to_an_unknown_version_has_layout_0_and_names_only_this_api():
    answer = unsupported_version(HANDLERS[ApiKey.API_VERSIONS])
    assert decode(ApiVersionsResponse, 0, encode(answer, 0)).api_keys == (ApiVersion(ApiKey.API_VERSIONS, 0, 4),)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.fixture(scope="module")
def orders():
    cluster = SimulatedCluster(seed=43)
    cluster.until(cluster.up)
    cluster.create_topic("orders", 1)
    return Tenant(cluster)


def test_a_client_of_the_future_learns_the_versions_and_may_ask_again(orders):
    wire = Wire(orders)
    wire._connection.send([frame(ApiKey.API_VERSIONS, 99, 7)])
    orders.cluster.network.run_until(lambda: wire.answers, 5)
    assert struct.unpack_from(">i", wire.answers[0]) == (7,)
    assert decode(ApiVersionsResponse, 0, wire.answers[0], 4).error_code == ErrorCode.UNSUPPORTED_VERSION
    wire.send(library(), 4, 8)
    orders.cluster.network.run_until(lambda: len(wire.answers) > 1, 5)
    assert decode(ApiVersionsResponse, 4, wire.answers[1], 4).error_code == ErrorCode.NONE
    assert not wire.is_closed


@pytest.mark.parametrize("key", sorted(OPERATORS), ids=lambda key: key.name)
def test_a_tenant_that_asks_for_what_it_is_not_offered_is_closed_on(orders, key):
    wire = Wire(orders)
    wire._connection.send([frame(key, HANDLERS[key].high, 1)])
    orders.cluster.network.run_until(lambda: wire.is_closed, 5)
    assert (wire.is_closed, wire.answers) == (True, [])


def frame(key, version, correlation_id):
    """A request without a body, from a client without a name."""
    body = struct.pack(">hhih", key, version, correlation_id, -1)
    return struct.pack(">i", len(body)) + body
