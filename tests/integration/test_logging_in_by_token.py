"""Clients of others log in by OAUTHBEARER to brokers as they are: with good tokens and bad ones, again, and until they end."""

from __future__ import annotations

import time
import warnings

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import MetadataRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from quota.contracts.instance import OAUTHBEARER
from quota.contracts.token_issuers import TokenIssuerSet
from tests.integration.clients import TIMEOUT_S
from tests.support.tokens import BY_TOKEN, Issuer, message
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.net.sasl.oauth import AbstractTokenProvider

pytestmark = pytest.mark.integration

ISSUER = Issuer(keys={"one": "RSA", "two": "P-256"})
WITHIN_S = 2.0


@pytest.fixture
def tenant(new_tenant):
    """Everybody logs in by a token."""
    return new_tenant(route=BY_TOKEN, token_issuers=ISSUER.trusted_set())


def good(subject="alice", lifetime_s=3_600.0, **members):
    return ISSUER.token(subject, time.time(), lifetime_s, **members)


class Tokens:
    """What librdkafka asks for tokens: counted."""

    def __init__(self, lifetime_s=3_600.0, **members):
        self.lifetime_s, self.members, self.given = lifetime_s, members, 0

    def __call__(self, _config):
        self.given += 1
        return good(lifetime_s=self.lifetime_s, **self.members), time.time() + self.lifetime_s


def librdkafka(tenant, tokens, **others):
    return {
        "bootstrap.servers": tenant.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": OAUTHBEARER,
        "oauth_cb": tokens,
        "log_level": 0,
        **others,
    }


def make_topic(tenant):
    client = AdminClient(librdkafka(tenant, Tokens()))
    client.poll(0.5)  # for its token
    client.create_topics([NewTopic("orders", 2, 3)], request_timeout=TIMEOUT_S)["orders"].result(TIMEOUT_S)


def logged_in(wire, token):
    """The answer to a token. A connection may log in again once a second; until then the handshake says so."""
    handshake = SaslHandshakeRequest(OAUTHBEARER)
    wait_for(lambda: wire.call(handshake, 1).error_code == 0, 30, "the handshake")
    return wire.call(SaslAuthenticateRequest(message(token)), 2)


def test_librdkafka_there_and_back_by_each_kind_of_key(tenant):
    make_topic(tenant)
    for number, members in enumerate(({}, {"algorithm": "PS256"}, {"kid": "two", "algorithm": "ES256"}), 1):
        producer = Producer(librdkafka(tenant, Tokens(**members)))
        for index in range(20):
            producer.produce("orders", f"{number} {index}".encode())
        assert producer.flush(TIMEOUT_S) == 0
        group = {"group.id": f"g{number}", "auto.offset.reset": "earliest"}
        reader = Consumer(librdkafka(tenant, Tokens(**members), **group))
        reader.subscribe(["orders"])
        seen, deadline = 0, time.monotonic() + TIMEOUT_S
        while seen < 20 * number and time.monotonic() < deadline:
            record = reader.poll(0.5)
            seen += record is not None and record.error() is None
        reader.close()
        assert seen == 20 * number


def test_librdkafka_hears_that_its_token_is_not_good(tenant):
    errors = []
    client = AdminClient(librdkafka(tenant, Tokens(aud="other"), error_cb=errors.append))
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and not any(each.code() == KafkaError._AUTHENTICATION for each in errors):
        client.poll(0.2)
    told = [each for each in errors if each.code() == KafkaError._AUTHENTICATION]
    assert told, errors
    assert "invalid_token" in told[0].str()


def test_librdkafka_goes_on_with_new_tokens(tenant):
    """KIP-368: the connections that were there stay, although no token is good for as long as the test."""
    make_topic(tenant)
    tokens, errors = Tokens(lifetime_s=10.0), []  # a new one comes when 8 s are over
    producer = Producer(librdkafka(tenant, tokens, error_cb=errors.append))
    until = time.monotonic() + 22
    while time.monotonic() < until:
        producer.produce("orders", b"v")
        assert producer.flush(TIMEOUT_S) == 0
        producer.poll(0.2)
    assert tokens.given >= 3
    assert not [each for each in errors if each.code() == KafkaError._AUTHENTICATION], errors


class Provider(AbstractTokenProvider):
    """What kafka-python asks for tokens."""

    def token(self):
        return good()


def test_kafka_python(tenant):
    make_topic(tenant)
    login = {
        "bootstrap_servers": tenant.bootstrap.split(","),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": OAUTHBEARER,
        "sasl_oauth_token_provider": Provider(),
    }
    with KafkaProducer(acks="all", **login) as producer:
        for future in [producer.send("orders", b"v") for _ in range(20)]:
            future.get(20)
    with KafkaConsumer("orders", group_id="billing", auto_offset_reset="earliest", **login) as reader:
        seen = 0
        deadline = time.monotonic() + TIMEOUT_S
        while seen < 20 and time.monotonic() < deadline:
            seen += sum(map(len, reader.poll(1000).values()))
        assert seen == 20


def test_a_token_that_ends_ends_its_connection_unless_there_is_another(tenant):
    with Wire(tenant.addresses[1]) as stays, Wire(tenant.addresses[1]) as ends:
        for wire in (stays, ends):
            answer = logged_in(wire, good(lifetime_s=8.0))
            assert answer.error_code == 0
            assert 0 < answer.session_lifetime_ms <= 8_000
        assert logged_in(stays, good(lifetime_s=60.0)).session_lifetime_ms > 50_000
        wait_for(lambda: not still_serves(ends), 30, "the end of the token")
        assert still_serves(stays)


def test_nobody_logs_in_again_as_another(tenant):
    with Wire(tenant.addresses[2]) as wire:
        assert logged_in(wire, good()).error_code == 0
        failed = logged_in(wire, good("bob"))
        assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "Cannot change principals" in failed.error_message


def still_serves(wire):
    try:
        return bool(wire.call(MetadataRequest(topics=()), 9).brokers)
    except (OSError, EOFError, AssertionError):
        return False


def test_an_issuer_that_is_trusted_no_more_is_cut_off_within_two_seconds(tenant, cluster):
    with Wire(tenant.addresses[2]) as wire:
        assert logged_in(wire, good()).error_code == 0
        assert wire.call(MetadataRequest(topics=()), 9).brokers
        began = time.monotonic()
        cluster.specs.set_token_issuers(tenant, TokenIssuerSet(2))
        assert wire.is_closed()
        assert time.monotonic() - began < promised(WITHIN_S)
    with Wire(tenant.addresses[2]) as wire:
        assert logged_in(wire, good()).auth_bytes == b'{"status":"invalid_token"}'
        failed = wire.call(SaslAuthenticateRequest(b"\x01"), 2)
        assert (failed.error_code, failed.error_message) == (
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            '{"status":"invalid_token"}',
        )
