"""SASL/PLAIN: the credential of an identity opens the internal listener, and nothing else does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.handlers.outcome import CloseConnectionError
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from quota.contracts.identity import METERING, Keys, broker, credential
from tests.dataplane.handlers.doors import asked, internal, tenant, versions

SECRET = "a secret"
OWN = credential(SECRET, "broker-1").encode()


def authenticate(token, *, secret=SECRET, version=2):
    """The answer, and the session afterwards."""
    session = internal(authenticated=False)
    config = SimpleNamespace(keys=Keys(secret))
    return asked(session, SaslAuthenticateRequest(token), version, config=config), session


@pytest.mark.parametrize("version", versions(ApiKey.SASL_HANDSHAKE))
@pytest.mark.parametrize(
    ("mechanism", "code"),
    [
        ("PLAIN", ErrorCode.NONE),
        ("plain", ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ("SCRAM-SHA-256", ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ("", ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_one_mechanism_is_agreed_on_and_told_of_and_lets_nobody_in_yet(mechanism, code, version):
    session = internal(authenticated=False)
    answer = asked(session, SaslHandshakeRequest(mechanism), version)
    assert (answer.error_code, answer.mechanisms) == (code, ("PLAIN",))
    assert not session.authenticated


@pytest.mark.parametrize("version", versions(ApiKey.SASL_AUTHENTICATE))
@pytest.mark.parametrize("token", [b"\0broker-1\0" + OWN, b"broker-1\0broker-1\0" + OWN])
def test_a_credential_lets_in_whose_it_is(token, version):
    answer, session = authenticate(token, version=version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, "")
    assert (session.authenticated, session.principal, session.identity) == (True, "User:broker-1", broker(1))


REFUSED = {
    "another's": b"\0broker-2\0" + OWN,
    "the secret that it is made of": b"\0broker-1\0a secret",
    "a part of it": b"\0broker-1\0" + OWN[:-1],
    "more than it": b"\0broker-1\0" + OWN + b" ",
    "none": b"\0broker-1\0",
    "on behalf of another": b"admin\0broker-1\0" + OWN,
    "two parts": b"broker-1\0" + OWN,
    "four parts": b"\0broker-1\0" + OWN + b"\0",
    "no text": b"\0\xff\0\xff",
    "nothing": b"",
}


@pytest.mark.parametrize("version", versions(ApiKey.SASL_AUTHENTICATE))
@pytest.mark.parametrize("token", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_with_one_sentence_and_changes_nothing(token, version):
    answer, session = authenticate(token, version=version)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: wrong name or password"
    assert (session.authenticated, session.principal) == (False, "User:ANONYMOUS")


@pytest.mark.parametrize("said", [b"", credential("", "broker-1").encode()])
def test_where_no_secret_is_set_nothing_lets_in(said):
    answer, session = authenticate(b"\0broker-1\0" + said, secret="")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not session.authenticated


def test_said_again_it_may_not_be_anothers():
    session, config = internal(authenticated=False), SimpleNamespace(keys=Keys(SECRET))

    def say(name):
        token = f"\0{name}\0{credential(SECRET, name)}".encode()
        return asked(session, SaslAuthenticateRequest(token), 2, config=config).error_code

    assert say("metering") == ErrorCode.NONE
    assert say("metering") == ErrorCode.NONE
    with pytest.raises(CloseConnectionError):
        say("operator")
    assert session.identity == METERING


@pytest.mark.parametrize("version", versions(ApiKey.SASL_AUTHENTICATE))
def test_on_a_tenants_route_the_secret_opens_nothing(version):
    session = tenant()
    config = SimpleNamespace(keys=Keys(SECRET))
    answer = asked(session, SaslAuthenticateRequest(b"\0broker-1\0a secret"), version, config=config)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert (session.is_internal, session.principal) == (False, "User:ANONYMOUS")
