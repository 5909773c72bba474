"""Tokens: who signed them, by what, and what they have to say. Signed by PyJWT, with keys of each kind."""

from __future__ import annotations

import base64
import json

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.security.exchange import Wrong
from dataplane.security.tokens import SKEW_S, claims_problem, expiry_ms, read_token
from quota.contracts.token_issuers import ALGORITHMS, TokenIssuer, TokenKey
from tests.support.tokens import RSA_ALGORITHMS, Issuer, private_key, public_der

NOW_S = 1_700_000_000
NOW_MS = NOW_S * 1000
ISSUER = Issuer(keys={"one": "RSA", "two": "P-256", "three": "P-384"})
KIDS = {**dict.fromkeys(RSA_ALGORITHMS, "one"), "ES256": "two", "ES384": "three"}


def good_until(token: str, issuer: TokenIssuer = ISSUER.trusted, now_ms: int = NOW_MS) -> int | None:
    said = read_token(token)
    found = None if said is None else expiry_ms(said, issuer, now_ms)
    return None if isinstance(found, Wrong) else found


def signed(**members) -> str:
    return ISSUER.token(now_s=NOW_S, **members)


# --- who signed it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_is_good_until_the_token_ends(algorithm):
    assert good_until(signed(kid=KIDS[algorithm], algorithm=algorithm)) == NOW_MS + 60_000


@given(st.integers(0, 10_000), st.integers(1, 63))
def test_a_token_that_was_changed_anywhere_is_good_for_nobody_else(at, by):
    """A last character may say the same bytes: nothing else may."""
    token = signed()
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    at %= len(token)
    if token[at] == ".":
        return
    changed = token[:at] + letters[(letters.index(token[at]) + by) % 64] + token[at + 1 :]
    if good_until(changed) is not None:
        read = [[base64.urlsafe_b64decode(part + "==") for part in text.split(".")] for text in (token, changed)]
        assert read[0] == read[1]


def test_a_key_of_the_same_id_that_is_another_is_none():
    assert good_until(Issuer(keys={"one": "RSA, another"}).token(now_s=NOW_S)) is None


def test_a_key_that_is_gone_and_one_that_nobody_knows_are_none():
    assert good_until(signed(), Issuer(keys={"two": "P-256"}).trusted) is None
    assert good_until(Issuer(keys={"four": "RSA"}).token(now_s=NOW_S, kid="four")) is None


def test_a_token_that_names_no_key_has_to_leave_no_choice():
    assert good_until(signed(kid=None)) is not None
    two = Issuer(keys={"one": "RSA", "other": "RSA, another"})
    assert good_until(two.token(now_s=NOW_S, kid=None), two.trusted) is None


def test_two_keys_of_one_id_are_both_tried():
    keys = tuple(TokenKey("one", ("RS256",), public_der(kind)) for kind in ("RSA, another", "RSA"))
    assert good_until(signed(), TokenIssuer(ISSUER.name, ("kafka",), keys=keys)) is not None


def test_a_key_verifies_by_the_algorithms_that_stand_with_it_and_no_other():
    keys = (TokenKey("one", ("PS256",), public_der("RSA")),)
    trusted = TokenIssuer(ISSUER.name, ("kafka",), keys=keys)
    assert good_until(signed(algorithm="RS256"), trusted) is None
    assert good_until(signed(algorithm="PS256"), trusted) is not None


def test_a_key_that_is_none_lets_nobody_in():
    for key in (b"", b"no key", public_der("P-256")):
        trusted = TokenIssuer(ISSUER.name, ("kafka",), keys=(TokenKey("one", ("RS256",), key),))
        assert good_until(signed(), trusted) is None


def test_why_not_is_said_for_the_audit():
    whys = {
        "signature": Issuer(keys={"one": "RSA, another"}).token(now_s=NOW_S),
        "names no key": Issuer(keys={"four": "RSA"}).token(now_s=NOW_S, kid="four"),
        "has ended": signed(lifetime_s=0),
        "another audience": signed(aud="other"),
    }
    for why, token in whys.items():
        assert why in expiry_ms(read_token(token), ISSUER.trusted, NOW_MS).why


# --- what is never taken ------------------------------------------------------------------------------------------------


def unsigned(header: object, claims: object, signature: bytes = b"x") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


CLAIMS = ISSUER.claims("alice", NOW_S, 60)


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "NONE", "HS256", "HS512", "EdDSA", "ES512", "", None, 7, ["RS256"]]
)
def test_other_algorithms_are_not_even_read(algorithm):
    assert read_token(unsigned({"alg": algorithm, "kid": "one"}, CLAIMS)) is None


def test_a_public_key_is_no_secret_of_hs256():
    """The oldest trick: signed with the public key as if it were shared."""
    token = jwt.encode(CLAIMS, base64.b64encode(public_der("RSA")), "HS256", {"kid": "one"})
    assert read_token(token) is None
    header = {"alg": "RS256", "kid": "one"}
    assert good_until(unsigned(header, CLAIMS, b"")) is None


@pytest.mark.parametrize("header", [{"crit": ["exp"]}, {"b64": False}, {"b64": True}, {"kid": 7}])
def test_headers_that_mean_what_we_do_not_know_are_refused(header):
    assert read_token(unsigned({"alg": "RS256", "kid": "one", **header}, CLAIMS)) is None


@pytest.mark.parametrize("header", [{"jku": "https://evil.example.com"}, {"x5u": "https://evil.example.com"},
                                    {"jwk": {"kty": "oct"}}, {"typ": "at+jwt"}])  # fmt: skip
def test_headers_that_bring_keys_mean_nothing(header):
    assert good_until(signed(headers=header)) is not None


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a.b", "a.b.c.d", "a.b.c", "e30.e30.", "e30.e30.e30", "=.=.=", "W10.W10.x", "bnVsbA.bnVsbA.x",
     "W1s.W1s.x", "_w._w.x"],
)  # fmt: skip
def test_what_is_no_token_is_none(text):
    assert read_token(text) is None


def test_deep_and_long_documents_are_none():
    deep = base64.urlsafe_b64encode(b"[" * 6_000).rstrip(b"=").decode()
    digits = base64.urlsafe_b64encode(b'{"iss":' + b"9" * 6_000 + b"}").rstrip(b"=").decode()
    for part in (deep, digits):
        assert read_token(f"{part}.{part}.x") is None
    header = base64.urlsafe_b64encode(b'{"alg":"RS256"}').rstrip(b"=").decode()
    assert read_token(f"{header}.{deep}.x") is None


@given(st.text(max_size=100))
def test_whatever_is_read_raises_nothing(text):
    read_token(text)


# --- what it says -------------------------------------------------------------------------------------------------------


def problem(issuer: Issuer = ISSUER, **others) -> str | None:
    return claims_problem(ISSUER.claims("alice", NOW_S, 60, **others), issuer.trusted, NOW_MS)


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"aud": ["kafka"]},
        {"aud": ["other", "kafka"]},
        {"iat": None},
        {"nbf": NOW_S + SKEW_S, "iat": NOW_S + SKEW_S},
        {"exp": NOW_S + 0.001},
        {"exp": 10**11},
        {"nbf": -1},
    ],
)
def test_these_let_in(others):
    assert problem(**others) is None


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({"iss": "https://login.example.com"}, "issuer"),  # without the slash
        ({"iss": ["https://login.example.com/"]}, "issuer"),
        ({"aud": None}, "audience"),
        ({"aud": "Kafka"}, "audience"),
        ({"aud": "kafka2"}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": [["kafka"]]}, "audience"),
        ({"aud": {"kafka": 1}}, "audience"),
        ({"exp": None}, "when it ends"),
        ({"exp": "soon"}, "when it ends"),
        ({"exp": True}, "when it ends"),
        ({"exp": float("inf")}, "when it ends"),
        ({"exp": float("nan")}, "when it ends"),
        ({"exp": 10**400}, "when it ends"),
        ({"exp": NOW_S}, "has ended"),
        ({"exp": NOW_S - SKEW_S + 1}, "has ended"),
        ({"nbf": NOW_S + SKEW_S + 1}, "nbf"),
        ({"iat": NOW_S + SKEW_S + 1}, "iat"),
        ({"nbf": "yesterday"}, "nbf"),
        ({"iat": float("nan")}, "iat"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": "*"}, "sub"),
        ({"sub": "ANONYMOUS"}, "sub"),
        ({"sub": 7}, "sub"),
        ({"sub": "a" * 256}, "sub"),
        ({"sub": "al\nice"}, "sub"),
    ],
)
def test_these_do_not(others, why):
    assert why in problem(**others)


def test_another_claim_may_name_the_principal():
    issuer = Issuer(principal_claim="client_id")
    assert "client_id" in problem(issuer)
    assert problem(issuer, client_id="billing") is None


@pytest.mark.parametrize(
    "said", [{"scope": "kafka"}, {"scope": "openid kafka"}, {"scp": ["openid", "kafka"]}, {"scp": "kafka"}]
)
def test_a_scope_may_stand_among_others(said):
    assert problem(Issuer(scope="kafka"), **said) is None


@pytest.mark.parametrize("said", [{}, {"scope": "kafka.read"}, {"scope": "Kafka"}, {"scp": [["kafka"]]}, {"scope": 7}])
def test_without_its_scope_it_lets_nobody_in(said):
    assert "scope" in problem(Issuer(scope="kafka"), **said)


def test_what_is_judged_is_what_was_signed():
    """Claims that are there twice: whichever counts, it is the same one before and behind the signature."""
    key = private_key("RSA")
    payload = json.dumps(CLAIMS)[:-1] + ', "sub": "root"}'
    token = jwt.PyJWS().encode(payload.encode(), key, "RS256", {"kid": "one"})
    said = read_token(token)
    assert said.claims["sub"] == "root"
    assert expiry_ms(said, ISSUER.trusted, NOW_MS) == NOW_MS + 60_000
