"""SCRAM's derivation and proofs, by the exchanges that the RFCs print."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quota.contracts.users import ScramMechanism
from quota.core import scram


@dataclass(frozen=True)
class Exchange:
    """Of user "user" with the password "pencil", as it is printed."""

    mechanism: ScramMechanism
    salt: str
    client_first_bare: str
    server_first: str
    client_final_without_proof: str
    proof: str
    signature: str
    iterations: int = 4096

    @property
    def auth_message(self) -> bytes:
        parts = self.client_first_bare, self.server_first, self.client_final_without_proof
        return ",".join(parts).encode()


RFC_7677 = Exchange(
    ScramMechanism.SHA_256,
    "W22ZaJ0SNY7soEsUEjb6gQ==",
    "n=user,r=rOprNGfwEbeRWgbNEkqO",
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
    "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
DRAFT_SHA_512 = Exchange(  # draft-melnikov-scram-sha-512
    ScramMechanism.SHA_512,
    "Yin2FuHTt/M0kJWb0t9OI32n2VmOGi3m+JfjOvuDF88=",
    "n=user,r=rOprNGfwEbeRWgbNEkqO",
    "r=rOprNGfwEbeRWgbNEkqO02431b08-2f89-4bad-a4e6-80c0564ec865,s=Yin2FuHTt/M0kJWb0t9OI32n2VmOGi3m+JfjOvuDF88=,i=4096",
    "c=biws,r=rOprNGfwEbeRWgbNEkqO02431b08-2f89-4bad-a4e6-80c0564ec865",
    "Hc5yec3NmCD7t+kFRw4/3yD6/F3SQHc7AVYschRja+Bc3sbdjlA0eH1OjJc0DD4ghn1tnXN5/Wr6qm9xmaHt4A==",
    "BQuhnKHqYDwQWS5jAw4sZed+C9KFUALsbrq81bB0mh+bcUUbbMPNNmBIupnS2AmyyDnG5CTBQtkjJ9kyY4kzmw==",
)


@pytest.mark.parametrize("exchange", [RFC_7677, DRAFT_SHA_512], ids=lambda exchange: exchange.mechanism.value)
def test_an_exchange_as_it_is_printed(exchange: Exchange) -> None:
    salt = base64.b64decode(exchange.salt)
    credential = scram.derived("pencil", mechanism=exchange.mechanism, salt=salt, iterations=exchange.iterations)
    proof = base64.b64decode(exchange.proof)
    assert scram.proves(credential, exchange.auth_message, proof)
    assert scram.server_signature(credential, exchange.auth_message) == base64.b64decode(exchange.signature)
    assert not scram.proves(credential, exchange.auth_message + b",", proof)
    assert not scram.proves(credential, exchange.auth_message, proof[:-1])
    assert not scram.proves(credential, exchange.auth_message, bytes([proof[0] ^ 1]) + proof[1:])
    assert not scram.proves(credential, exchange.auth_message, b"")


@settings(max_examples=20, deadline=None)
@given(password=st.text(), other=st.text(), mechanism=st.sampled_from(ScramMechanism))
def test_a_password_is_good_for_what_was_derived_of_it_and_no_other(
    password: str, other: str, mechanism: ScramMechanism
) -> None:
    credential = scram.derived(password, mechanism=mechanism, salt=b"s" * 24, iterations=4096)
    assert scram.is_password(credential, password)
    # HMAC fills a short key up with zero bytes: these two are one password to SCRAM itself.
    same = password.rstrip("\0") == other.rstrip("\0")
    assert scram.is_password(credential, other) == same or len(password.encode()) > 64 or len(other.encode()) > 64
