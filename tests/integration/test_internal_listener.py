"""The internal listener answers nobody without the cluster's secret; tenants' listeners know nothing of the inside."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from dataplane.handlers.table import HANDLERS, served
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.messages.discovery import ApiVersionsRequest, MetadataRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from dataplane.security.strangers import MOST_OF_A_SOURCE
from tests.integration import asks
from tests.integration.asks import error_codes
from tests.integration.clients import create_topic
from tests.support.processes import HOST, SECRET
from tests.support.wire import Wire

pytestmark = pytest.mark.integration

INTERNAL_ONLY = sorted(key for key, row in HANDLERS.items() if not row.tenant)
OPEN_TO_ALL = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


@pytest.fixture
def internal(cluster):
    return HOST, cluster.brokers[1].ports["internal"]


@pytest.mark.parametrize("key", sorted(set(HANDLERS) - OPEN_TO_ALL), ids=lambda key: ApiKey(key).name)
def test_nothing_is_answered_before_authentication(key, internal):
    with Wire(internal) as wire:
        wire.send(APIS[key].request(), HANDLERS[key].high)
        assert wire.is_closed()


def test_a_wrong_secret_is_refused_and_the_connection_ends(internal):
    with Wire(internal) as wire:
        assert wire.log_in("a guess") == 58  # SASL_AUTHENTICATION_FAILED
        assert wire.is_closed()


def test_another_mechanism_is_not_offered(internal):
    with Wire(internal) as wire:
        answer = wire.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        assert (answer.error_code, answer.mechanisms) == (33, ("PLAIN",))  # UNSUPPORTED_SASL_MECHANISM


@pytest.mark.parametrize("token", [b"", b"\0", b"\0cluster", SECRET.encode(), b"\0\0", b"\xff\0x\0y"])
def test_tokens_that_are_not_sasl_plain_are_refused(token, internal):
    with Wire(internal) as wire:
        wire.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        try:
            assert wire.call(SaslAuthenticateRequest(auth_bytes=token), 2).error_code in (34, 58)
        except ConnectionError:
            return
        assert wire.is_closed()


def test_a_large_frame_before_authentication_ends_the_connection(internal):
    with Wire(internal) as wire:
        wire.socket.sendall((600 * 1024).to_bytes(4) + b"\0" * 100)
        assert wire.is_closed()


def test_with_the_secret_names_are_physical(internal, tenant):
    create_topic(tenant, "orders")
    with Wire(internal) as wire:
        assert wire.log_in(SECRET) == 0
        answer = wire.call(MetadataRequest(topics=None), 12)
    assert f"{tenant.key}.orders" in {topic.name for topic in answer.topics}
    assert answer.cluster_id != tenant.id


@pytest.mark.parametrize("key", INTERNAL_ONLY, ids=lambda key: ApiKey(key).name)
def test_a_tenants_listener_ends_a_connection_that_asks_for_the_inside(key, tenant):
    with Wire(tenant.addresses[2]) as wire:
        wire.send(APIS[key].request(), HANDLERS[key].high)
        assert wire.is_closed()


def test_a_tenants_listener_offers_only_what_tenants_may(tenant):
    with Wire(tenant.addresses[3]) as wire:
        offered = {row.api_key for row in wire.call(ApiVersionsRequest("c", "1"), 3).api_keys}
    assert offered == {int(row.api.key) for row in served(tenant=True)}
    assert not offered & set(INTERNAL_ONLY)


def test_a_replicas_fetch_is_refused_on_a_tenants_listener(tenant, cluster):
    create_topic(tenant, "orders")
    with Wire(tenant.addresses[cluster.leader(tenant, "orders")]) as wire:
        assert error_codes(wire.call(asks.produce("orders"), 9)) == set()
        wire.send(asks.fetch("orders", replica_id=2), 12)
        assert wire.is_closed()
    assert sorted(cluster.state(f"{tenant.key}.orders", 0)["isr"]) == [1, 2, 3]


def test_who_can_log_in_does_while_others_open_connections_without_end(internal):
    """More than are let wait, from the same address; the oldest have gone, and the broker's own are not among them."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection(internal, timeout=10)) for _ in range(2 * MOST_OF_A_SOURCE)
        ]
        with Wire(internal) as wire:
            assert wire.log_in(SECRET) == 0
            opened += [
                stack.enter_context(socket.create_connection(internal, timeout=10)) for _ in range(2 * MOST_OF_A_SOURCE)
            ]
            assert wire.call(MetadataRequest(topics=None), 12).brokers
        opened[0].settimeout(10)
        assert opened[0].recv(1) == b""
