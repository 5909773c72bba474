"""Clients of others log in to a broker as it is: by each mechanism, with a wrong password, while users and passwords change."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
import warnings

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import MetadataRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from quota.contracts.users import UserSet
from tests.integration.clients import TIMEOUT_S, consumer, produce, take
from tests.support.users import LOGS_IN, USERS, user
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka import KafkaConsumer, KafkaProducer

pytestmark = pytest.mark.integration

MECHANISMS = LOGS_IN["mechanisms"]
WITHIN_S = 2.0


@pytest.fixture
def tenant(new_tenant):
    """Everybody has to log in."""
    return new_tenant(route=LOGS_IN, users=USERS)


def librdkafka(mechanism, name="alice", password="pencil"):
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }


def make_topic(tenant, **login):
    client = AdminClient(
        {"bootstrap.servers": tenant.bootstrap, "log_level": 0, **librdkafka("SCRAM-SHA-256"), **login}
    )
    client.create_topics([NewTopic("orders", 2, 3)], request_timeout=TIMEOUT_S)["orders"].result(TIMEOUT_S)


def logs_in(tenant, name, password, broker=1):
    """Whether PLAIN lets in: the code, and the sentence."""
    with Wire(tenant.addresses[broker]) as wire:
        assert wire.call(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
        answer = wire.call(SaslAuthenticateRequest(f"\0{name}\0{password}".encode()), 2)
        assert answer.error_code in (0, ErrorCode.SASL_AUTHENTICATION_FAILED)
        return answer.error_code == 0


def test_librdkafka_by_every_mechanism(tenant):
    make_topic(tenant)
    for number, mechanism in enumerate(MECHANISMS):
        login = librdkafka(mechanism)
        produce(tenant, "orders", [f"{mechanism} {index}".encode() for index in range(50)], **login)
        with consumer(tenant, f"group-{number}", **login) as reader:
            reader.subscribe(["orders"])
            assert len(take(reader, 50 * (number + 1))) == 50 * (number + 1)


def test_a_password_with_a_comma_and_an_equals_sign(tenant):
    make_topic(tenant)
    produce(tenant, "orders", [b"one"], **librdkafka("SCRAM-SHA-512", "bob", "brush, ="))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", "pencil")])
def test_librdkafka_hears_why_it_is_not_let_in(tenant, mechanism, name, password):
    errors = []
    client = AdminClient(
        {
            "bootstrap.servers": tenant.bootstrap,
            "log_level": 0,
            "error_cb": errors.append,
            **librdkafka(mechanism, name, password),
        }
    )
    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)
    client.poll(0)
    told = [error for error in errors if error.code() == KafkaError._AUTHENTICATION]
    assert told, errors
    assert f"invalid credentials with SASL mechanism {mechanism}" in told[0].str()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(tenant, mechanism):
    make_topic(tenant)
    login = {
        "bootstrap_servers": tenant.bootstrap.split(","),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "pencil",
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


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(tenant, mechanism):
    make_topic(tenant)
    login = {
        "bootstrap_servers": tenant.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "pencil",
    }

    async def there_and_back():
        async with AIOKafkaProducer(acks="all", **login) as producer:
            for _ in range(20):
                await producer.send_and_wait("orders", b"v")
        async with AIOKafkaConsumer("orders", group_id="aio", auto_offset_reset="earliest", **login) as reader:
            return [await asyncio.wait_for(reader.getone(), TIMEOUT_S) for _ in range(20)]

    assert len(asyncio.run(there_and_back())) == 20


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat(tenant, mechanism):
    make_topic(tenant)
    login = [part for name, value in librdkafka(mechanism).items() for part in ("-X", f"{name}={value}")]
    listed = subprocess.run(
        ["kcat", "-b", tenant.bootstrap, *login, "-L"], capture_output=True, text=True, timeout=30, check=False
    )
    assert 'topic "orders" with 2 partitions' in listed.stdout, listed.stderr


def test_a_deleted_user_is_cut_off_within_two_seconds_and_does_not_come_back(tenant, cluster):
    with Wire(tenant.addresses[2]) as wire:
        assert wire.call(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
        assert wire.call(SaslAuthenticateRequest(b"\0alice\0pencil"), 2).error_code == 0
        assert wire.call(MetadataRequest(topics=()), 9).brokers
        began = time.monotonic()
        cluster.specs.set_users(tenant, USERS.changed([one for one in USERS.items if one.name != "alice"]))
        assert wire.is_closed()
        assert time.monotonic() - began < promised(WITHIN_S)
    assert not logs_in(tenant, "alice", "pencil", 2)
    assert logs_in(tenant, "bob", "brush, =", 2)


def test_two_passwords_are_good_while_they_are_exchanged(tenant, cluster):
    lasts_s = promised(15)  # all that is done with both takes less
    until_ms = int((time.time() + lasts_s) * 1000)
    cluster.specs.set_users(tenant, UserSet(2, (user("alice", "crayon", before="pencil", until_ms=until_ms),)))
    wait_for(lambda: logs_in(tenant, "alice", "crayon"), promised(WITHIN_S), "the new password")
    make_topic(tenant)  # by the one before
    produce(tenant, "orders", [b"one"], **librdkafka("SCRAM-SHA-256", password="crayon"))
    wait_for(lambda: not logs_in(tenant, "alice", "pencil"), lasts_s + 15, "the end of the password before")
    assert time.time() * 1000 >= until_ms - 100
    assert logs_in(tenant, "alice", "crayon")
