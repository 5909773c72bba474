"""OAUTHBEARER's message: one form, every cut of it refused, and what is made of the token in it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.security.exchange import OTHER_AUTHZID, Proof, SaslError, Wrong
from dataplane.security.oauthbearer import LONGEST_MESSAGE, REFUSED, ClientMessage, OauthBearer, parsed
from tests.support.tokens import Issuer, message

ISSUER = Issuer()
NOW_MS = 1_000_000
EXTENSIONS = st.dictionaries(
    st.from_regex(r"[A-Za-z]+", fullmatch=True).filter(lambda key: key != "auth"),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20),
    max_size=3,
)


def exchange(*issuers: Issuer) -> OauthBearer:
    return OauthBearer({each.name: each.trusted for each in issuers})


def take(token: str, header: str = "n,,", *issuers: Issuer) -> Proof:
    found = exchange(*(issuers or (ISSUER,))).take(message(token, header))
    assert isinstance(found, Proof)
    return found


@given(
    st.sampled_from(["n,,", "y,,", "n,a=alice,", "n,a=a=2Cb=3D,"]),
    st.from_regex(r"[A-Za-z0-9._~+/-]+=*", fullmatch=True),
    EXTENSIONS,
)
def test_a_message_is_read_as_it_was_written(header, token, extensions):
    authzid = header[4:-1].replace("=2C", ",").replace("=3D", "=")
    assert parsed(message(token, header, **extensions)) == ClientMessage(authzid, token, extensions)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_every_cut_is_refused_and_every_changed_byte_is_read_or_refused(at, byte):
    whole = message("a.b.c", "n,a=alice,", host="kafka.example.com", port="9092")
    at %= len(whole)
    with pytest.raises(SaslError):
        parsed(whole[:at])
    with contextlib.suppress(SaslError):
        parsed(whole[:at] + bytes((byte,)) + whole[at + 1 :])


@given(st.binary(max_size=200))
def test_whatever_comes_there_is_one_kind_of_error(data):
    with contextlib.suppress(SaslError):
        exchange(ISSUER).take(data)


REFUSED_MESSAGES = {
    "nothing": b"",
    "the answer to a refusal": b"\x01",
    "another scheme": b"n,,\x01auth=Basic YTpi\x01\x01",
    "no token": b"n,,\x01auth=Bearer \x01\x01",
    "no space": b"n,,\x01auth=Bearera.b.c\x01\x01",
    "two tokens": b"n,,\x01auth=Bearer a.b.c\x01auth=Bearer a.b.c\x01\x01",
    "a pair twice": b"n,,\x01auth=Bearer a.b.c\x01x=1\x01x=2\x01\x01",
    "no pair": b"n,,\x01\x01",
    "channel binding": b"p=tls-unique,,\x01auth=Bearer a.b.c\x01\x01",
    "an empty name": b"n,a=,\x01auth=Bearer a.b.c\x01\x01",
    "an escape that is none": b"n,a=a=2D,\x01auth=Bearer a.b.c\x01\x01",
    "something behind": b"n,,\x01auth=Bearer a.b.c\x01\x01x",
    "a zero": b"n,,\x01auth=Bearer a.b.c\x01x=\0\x01\x01",
    "no text": b"n,,\x01auth=Bearer a.b.c\x01x=\xff\x01\x01",
    "very long": message("a" * LONGEST_MESSAGE),
    "PLAIN": b"\0alice\0pencil",
}


@pytest.mark.parametrize("data", REFUSED_MESSAGES.values(), ids=REFUSED_MESSAGES)
def test_what_is_no_message_fails_at_once(data):
    with pytest.raises(SaslError):
        exchange(ISSUER).take(data)


def test_long_messages_are_read_in_no_time():
    for data in (b"n,a=" + b"a" * 16_000, b"n,,\x01" + b"a" * 16_000, b"n,,\x01" + b"a=\x01" * 5_000 + b"\x00"):
        with pytest.raises(SaslError):
            parsed(data)


def test_a_good_token_is_verified_beside_the_loop_until_it_ends():
    proof = take(ISSUER.token(now_s=NOW_MS / 1000, lifetime_s=60))
    assert (proof.user, proof.takes_long, proof.refusal) == ("alice", True, REFUSED)
    verified = proof.verify(NOW_MS)
    assert (verified.said, verified.credential, verified.expires_ms) == (b"", None, NOW_MS + 60_000)
    assert verified.issuer == ISSUER.trusted
    assert proof.verify(NOW_MS + 60_000) == Wrong("the token: it has ended")


NOBODYS = {
    "none": ("nonsense", "no token that could be good"),
    "not signed": ("e30.e30.e30", "no token that could be good"),
    "of nobody we trust": (Issuer("https://evil.example.com").token(), "does not trust"),
    "of nobody at all": (ISSUER.token(iss=None), "no token that could be good"),
    "without a name": (ISSUER.token(sub=None), "no claim sub"),
    "of everybody": (ISSUER.token("*"), "no claim sub"),
}


@pytest.mark.parametrize(("token", "why"), NOBODYS.values(), ids=NOBODYS)
def test_a_token_of_nobody_is_wrong_without_work_and_told_like_any_other(token, why):
    proof = take(token)
    assert (proof.user, proof.takes_long, proof.refusal) == ("", False, REFUSED)
    assert why in proof.verify(0).why


def test_a_name_that_is_asked_for_has_to_be_the_tokens():
    assert take(ISSUER.token(), "n,a=alice,").user == "alice"
    with pytest.raises(SaslError) as told:
        take(ISSUER.token(), "n,a=bob,")
    assert told.value.told == OTHER_AUTHZID


@pytest.mark.parametrize("answer", [b"\x01", b"", message(ISSUER.token())])
def test_what_comes_behind_a_refusal_is_the_end_whatever_it_is(answer):
    refused = exchange(ISSUER)
    refused.take(message("nonsense"))
    with pytest.raises(SaslError) as told:
        refused.take(answer)
    assert told.value.told == '{"status":"invalid_token"}'
