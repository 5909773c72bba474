"""The client's side of SCRAM, against the broker's own; and where ZooKeeper says that brokers are."""

from __future__ import annotations

import pytest

from dataplane.clients.authentication import scram, tokens
from dataplane.clients.errors import AuthenticationError
from dataplane.clients.settings import ConnectionSettings
from dataplane.clients.zookeeper import addresses_of

# The exchange of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def begun():
    exchange = scram("sha256", "user", "pencil", NONCE)
    assert next(exchange) == FIRST
    return exchange


def test_scram_is_that_of_the_rfc():
    exchange = begun()
    assert exchange.send(CHALLENGE) == FINAL
    with pytest.raises(StopIteration):
        exchange.send(SIGNATURE)


def test_a_server_that_does_not_know_the_password_is_not_believed():
    exchange = begun()
    exchange.send(CHALLENGE)
    with pytest.raises(AuthenticationError, match="prove"):
        exchange.send(b"v=AAAA")


@pytest.mark.parametrize(
    "challenge", [b"e=other-error", b"r=other,s=AAAA,i=4096", CHALLENGE.replace(b"i=4096", b"i=1"), b"r"]
)
def test_a_challenge_that_is_none_is_refused(challenge):
    with pytest.raises(AuthenticationError):
        begun().send(challenge)


def test_plain_is_one_message():
    settings = ConnectionSettings(security_protocol="SASL_PLAINTEXT", sasl_username="u", sasl_password="p")
    assert list(tokens(settings)) == [b"\0u\0p"]


@pytest.mark.parametrize(
    ("registration", "protocol", "found"),
    [
        (b'{"jmx_port":-1,"timestamp":"1","host":"h","version":1,"port":9092}', "PLAINTEXT", [("h", 9092)]),
        (b'{"jmx_port":-1,"timestamp":"1","host":"h","version":1,"port":9092}', "SSL", []),
        (b"h:9092", "PLAINTEXT", [("h", 9092)]),
        (b"creator-1:h:9092", "PLAINTEXT", [("h", 9092)]),
        (b"nothing", "PLAINTEXT", []),
        (
            b'{"listener_security_protocol_map":{"A":"SASL_PLAINTEXT","B":"PLAINTEXT"},"endpoints":["A://h:1","B://h:2"]}',
            "PLAINTEXT",
            [("h", 2)],
        ),
        (
            b'{"listener_security_protocol_map":{"A":"SASL_PLAINTEXT"},"endpoints":["A://h:1"],"host":"h","port":1}',
            "PLAINTEXT",
            [],
        ),
        (b'{"endpoints":["PLAINTEXT://h:1"],"host":"h","port":1,"version":2}', "PLAINTEXT", [("h", 1)]),
    ],
)
def test_where_a_broker_is_by_its_registration(registration, protocol, found):
    assert addresses_of(registration, protocol) == found
