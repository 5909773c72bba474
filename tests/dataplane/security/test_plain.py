"""PLAIN: three parts, one name, and a password that a SCRAM verifier verifies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.security.exchange import Proof, SaslError
from dataplane.security.known import KnownUsers
from dataplane.security.plain import LONGEST_PASSWORD, Plain
from quota.contracts.users import User
from tests.dataplane.security.clients import SECRET, SHA_512, credential, users

ALICE = User("alice", (credential("pencil"),))
OLAF = User("olaf", (credential("ice", SHA_512),))
BOTH = User("both", (credential("new"), credential("old", until_ms=1_000)))


def take(token: bytes) -> Proof:
    return Plain(KnownUsers(users(ALICE, OLAF, BOTH), SECRET)).take(token)


@pytest.mark.parametrize(
    "token", [b"\0alice\0pencil", b"alice\0alice\0pencil", b"\0olaf\0ice"], ids=["alone", "for himself", "sha-512"]
)
def test_the_right_password_is_verified_beside_the_loop(token):
    proof = take(token)
    assert proof.takes_long
    verified = proof.verify(0)
    assert verified is not None
    assert verified.said == b""


@pytest.mark.parametrize("token", [b"\0alice\0Pencil", b"\0alice\0pencil ", b"\0nobody\0pencil", b"\0olaf\0pencil"])
def test_a_wrong_one_and_a_name_that_is_none_are_wrong(token):
    assert take(token).verify(0) is None


@pytest.mark.parametrize(
    ("password", "now_ms", "is_good"), [("new", 0, True), ("old", 999, True), ("old", 1000, False)]
)
def test_the_password_before_is_good_until_its_time(password, now_ms, is_good):
    verified = take(b"\0both\0" + password.encode()).verify(now_ms)
    assert (verified is not None) is is_good


REFUSED = {
    "two parts": b"alice\0pencil",
    "four parts": b"\0alice\0pencil\0",
    "nothing": b"",
    "no name": b"\0\0pencil",
    "no password": b"\0alice\0",
    "for another": b"olaf\0alice\0pencil",
    "no text": b"\0alice\0\xff",
    "half a character": b"\0al\xc3\0pencil",
    "a long name": b"\0" + b"a" * 256 + b"\0pencil",
    "a long password": b"\0alice\0" + b"p" * (LONGEST_PASSWORD + 1),
    "very long": b"\0alice\0" + b"p" * 60_000,
}


@pytest.mark.parametrize("token", REFUSED.values(), ids=REFUSED)
def test_what_is_no_message_is_refused(token):
    with pytest.raises(SaslError):
        take(token)


@given(token=st.one_of(st.binary(max_size=200), st.lists(st.text(max_size=20)).map(lambda p: "\0".join(p).encode())))
def test_it_takes_three_parts_with_one_name_or_refuses(token):
    try:
        proof = take(token)
    except SaslError:
        return
    authzid, name, password = token.decode().split("\0")
    assert authzid in ("", name)
    assert proof.user == name != ""
    assert password
