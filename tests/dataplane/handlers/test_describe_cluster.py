"""DescribeCluster: a tenant sees its instance as the cluster, at the addresses of its own route."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.cluster.paths import BrokerAddress
from dataplane.handlers.authorized import OPERATIONS_NOT_ASKED
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import DescribeClusterRequest
from tests.dataplane.handlers.doors import asked, internal, tenant, versions

ALL = versions(ApiKey.DESCRIBE_CLUSTER)
BROKERS = {each: BrokerAddress(each, f"10.0.0.{each}", 9000, f"rack-{each}") for each in (3, 1, 2)}


def describe(door, version, **said):
    metadata = SimpleNamespace(brokers=BROKERS, controller_id=2)
    return asked(door, DescribeClusterRequest(**said), version, metadata=metadata)


def addresses(answer):
    return [(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers]


@pytest.mark.parametrize("version", ALL)
def test_a_tenant_sees_its_instance_and_the_brokers_that_its_route_reaches(version):
    answer = describe(tenant(), version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (ErrorCode.NONE, "ins-aaaabbbb", 2)
    assert addresses(answer) == [(1, "one.invalid", 19100, "rack-1"), (2, "two.invalid", 19100, "rack-2")]


@pytest.mark.parametrize("version", ALL)
def test_inside_every_broker_is_told_with_its_own_address(version):
    answer = describe(internal(), version)
    assert answer.cluster_id == "sluice"
    assert addresses(answer) == [(each, f"10.0.0.{each}", 9000, f"rack-{each}") for each in (1, 2, 3)]


TENANTS_OPERATIONS = sum(1 << code for code in (5, 7, 8, 10, 11, 12))
"""All of the cluster's but CLUSTER_ACTION."""


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(("wanted", "told"), [(True, TENANTS_OPERATIONS), (False, OPERATIONS_NOT_ASKED)])
def test_what_may_be_done_is_told_to_whoever_asks(wanted, told, version):
    answer = describe(tenant(), version, include_cluster_authorized_operations=wanted)
    assert answer.cluster_authorized_operations == told


@pytest.mark.parametrize(
    ("kind", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
@pytest.mark.parametrize("door", [tenant, internal])
def test_the_endpoint_of_a_broker_knows_of_brokers_only(kind, code, door):
    answer = describe(door(), 1, endpoint_type=kind)
    assert (answer.error_code, answer.cluster_id, answer.brokers) == (code, "", ())
