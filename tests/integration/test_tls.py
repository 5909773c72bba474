"""Routes of TLS on real brokers, with clients that others wrote."""

from __future__ import annotations

import contextlib
import socket
import ssl
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from quota.contracts.certificates import CertificateSet, RouteCertificate
from quota.contracts.sealing import route_key_purpose, sealed
from tests.integration import clients
from tests.support.certificates import Authority, rsa_key
from tests.support.processes import SECRET
from tests.support.users import LOGS_IN, USERS
from tests.support.waiting import wait_for

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka import KafkaConsumer, KafkaProducer

if TYPE_CHECKING:
    from tests.support.certificates import Issued

pytestmark = pytest.mark.integration
AUTHORITY = Authority("CA of an instance")
CLIENTS = Authority("CA of clients")
TLS = {"security": "ssl"}


def shows(issued: Issued, version: int = 1, client_ca: str = ""):
    """What the one route shows; to be sealed for an instance."""

    def of(instance: str) -> CertificateSet:
        purpose = route_key_purpose(instance, "default")
        key = sealed(issued.key_pem.encode(), secret=SECRET, purpose=purpose, nonce=version.to_bytes(12))
        return CertificateSet(version, (RouteCertificate("default", issued.pem, key, client_ca),))

    return of


def leaf(name: str = "brokers", **more: Any) -> Issued:
    return AUTHORITY.issue(name, ["127.0.0.1", "localhost"], **more)


def secure(certificate: Issued | None = None, tmp_path: Any = None, **more: str) -> dict[str, Any]:
    """Of librdkafka."""
    config: dict[str, Any] = {"security.protocol": "ssl", "ssl.ca.pem": AUTHORITY.pem, **more}
    if certificate is not None:
        config |= {"ssl.certificate.pem": certificate.pem, "ssl.key.pem": certificate.key_pem}
    return config


def reason_of_failure(tenant: Any, **config: Any) -> str:
    """What librdkafka says when it cannot get in."""
    said: list[str] = []
    producer = Producer(
        {"bootstrap.servers": tenant.bootstrap, "error_cb": lambda error: said.append(error.str()), **config}
    )
    wait_for(lambda: producer.poll(0.1) is not None and bool(said), 20, "an error")
    return " ".join(said)


def create(tenant: Any, name: str, **config: Any) -> None:
    from confluent_kafka.admin import NewTopic

    admin = AdminClient({"bootstrap.servers": tenant.bootstrap, **config})
    admin.create_topics([NewTopic(name, 2, 3)])[name].result(30)


def round_trip(tenant: Any, topic: str, values: list[bytes], **config: Any) -> list[bytes]:
    clients.produce(tenant, topic, values, **config)
    reader = Consumer(
        {"bootstrap.servers": tenant.bootstrap, "group.id": "g", "auto.offset.reset": "earliest", **config}
    )
    reader.subscribe([topic])
    try:
        return sorted(message.value() for message in clients.take(reader, len(values)))
    finally:
        reader.close()


@pytest.mark.parametrize("key", ["P-256", "RSA"])
def test_librdkafka_produces_and_consumes(new_tenant, key):
    issued = leaf(key=rsa_key() if key == "RSA" else None)
    tenant = new_tenant(route=TLS, certificates=shows(issued))
    create(tenant, "orders", **secure())
    values = [bytes([index]) * 200_000 for index in range(40)]
    assert round_trip(tenant, "orders", values, **secure()) == values


def test_kafka_python_produces_and_consumes(new_tenant, tmp_path):
    tenant = new_tenant(route=TLS, certificates=shows(leaf()))
    create(tenant, "orders", **secure())
    (tmp_path / "ca.pem").write_text(AUTHORITY.pem)
    config = {
        "bootstrap_servers": tenant.bootstrap.split(","),
        "security_protocol": "SSL",
        "ssl_cafile": str(tmp_path / "ca.pem"),
    }
    producer = KafkaProducer(**config)
    for index in range(100):
        producer.send("orders", b"%d" % index)
    producer.flush(30)
    producer.close()
    reader = KafkaConsumer("orders", auto_offset_reset="earliest", consumer_timeout_ms=20_000, **config)
    found = []
    for message in reader:
        found.append(message.value)
        if len(found) == 100:
            break
    reader.close()
    assert sorted(found) == sorted(b"%d" % index for index in range(100))


@pytest.mark.parametrize("mechanism", LOGS_IN["mechanisms"])
def test_clients_log_in_inside_of_tls(new_tenant, mechanism):
    tenant = new_tenant(route={**LOGS_IN, "security": "sasl_ssl"}, users=USERS, certificates=shows(leaf()))
    alice = secure() | {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": "pencil",
    }
    create(tenant, "orders", **alice)
    assert round_trip(tenant, "orders", [b"hers"], **alice) == [b"hers"]
    assert reason_of_failure(tenant, **{**alice, "sasl.password": "wrong"})


def test_a_client_that_shows_a_certificate_gets_in_and_others_do_not(new_tenant):
    route = {**TLS, "client_certificates": "required", "principal_mapping": ("RULE:^CN=([^,]+).*$/$1/",)}
    tenant = new_tenant(route=route, certificates=shows(leaf(), client_ca=CLIENTS.pem))
    me = CLIENTS.issue("me")
    create(tenant, "orders", **secure(me))
    assert round_trip(tenant, "orders", [b"mine"], **secure(me)) == [b"mine"]
    assert reason_of_failure(tenant, **secure())
    assert reason_of_failure(tenant, **secure(Authority("Elsewhere").issue("me")))
    assert reason_of_failure(tenant, **secure(CLIENTS.issue("me", from_days=-5, to_days=-1)))


def test_a_certificate_is_exchanged_while_clients_stay(new_tenant, cluster):
    first, second = leaf("first"), leaf("second")
    tenant = new_tenant(route=TLS, certificates=shows(first))
    create(tenant, "orders", **secure())
    host, port = next(iter(tenant.addresses.values()))
    context = ssl.create_default_context(cadata=AUTHORITY.pem)

    def shown() -> bytes | None:
        with socket.create_connection((host, port), 10) as sock, context.wrap_socket(sock, server_hostname=host) as one:
            return one.getpeercert(binary_form=True)

    assert shown() == first.der
    with socket.create_connection((host, port), 10) as sock, context.wrap_socket(sock, server_hostname=host) as old:
        cluster.specs.set_certificates(tenant, shows(second, version=2)(tenant.id))
        wait_for(lambda: shown() == second.der, 30, "the new certificate")
        old.sendall(bytes.fromhex("0000000a") + bytes.fromhex("0012000000000001ffff"))
        assert old.recv(4)
    assert round_trip(tenant, "orders", [b"after"], **secure()) == [b"after"]


def test_one_that_is_over_is_refused_by_clients(new_tenant):
    tenant = new_tenant(route=TLS, certificates=shows(leaf(from_days=-9, to_days=-1)))
    assert "certificate" in reason_of_failure(tenant, **secure()).lower()


def test_a_client_without_tls_and_one_with_tls_where_there_is_none_are_told_quickly(new_tenant):
    tenant, plain = new_tenant(route=TLS, certificates=shows(leaf())), new_tenant()
    assert reason_of_failure(tenant)
    assert reason_of_failure(plain, **secure())
    host, port = next(iter(tenant.addresses.values()))
    with socket.create_connection((host, port), 10) as sock:
        sock.sendall(bytes.fromhex("0000000a0012000000000001ffff"))
        sock.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
