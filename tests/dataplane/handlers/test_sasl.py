"""SASL/PLAIN: the cluster secret opens the internal listener, and nothing else does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.dataplane.handlers.doors import asked, internal, versions

SECRET = "a secret"


def authenticate(token, *, secret=SECRET, version=2):
    """The answer, and the session afterwards."""
    session = internal(authenticated=False)
    config = SimpleNamespace(cluster_secret=secret)
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
@pytest.mark.parametrize("token", [b"\0broker-1\0a secret", b"broker-1\0broker-1\0a secret"])
def test_the_secret_lets_in_under_the_name_that_was_said(token, version):
    answer, session = authenticate(token, version=version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, "")
    assert (session.authenticated, session.principal) == (True, "User:broker-1")


REFUSED = {
    "another secret": b"\0broker-1\0another",
    "a part of it": b"\0broker-1\0a secre",
    "more than it": b"\0broker-1\0a secret ",
    "none": b"\0broker-1\0",
    "on behalf of another": b"admin\0broker-1\0a secret",
    "two parts": b"broker-1\0a secret",
    "four parts": b"\0broker-1\0a secret\0",
    "nothing": b"",
}


@pytest.mark.parametrize("version", versions(ApiKey.SASL_AUTHENTICATE))
@pytest.mark.parametrize("token", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_with_one_sentence_and_changes_nothing(token, version):
    answer, session = authenticate(token, version=version)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: wrong name or password"
    assert (session.authenticated, session.principal) == (False, "User:ANONYMOUS")


def test_where_no_secret_is_set_the_empty_one_does_not_let_in():
    answer, session = authenticate(b"\0broker-1\0", secret="")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not session.authenticated


def test_a_name_that_is_no_text_is_a_name():
    assert authenticate(b"\0\xff\0a secret")[1].principal == "User:\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("key", [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE])
def test_tenants_have_nothing_to_sign_in_with(key):
    assert (HANDLERS[key].internal, HANDLERS[key].tenant) == (True, False)
