"""A published key set becomes keys that brokers verify by: public numbers only, and nothing that is not served."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from controlplane.token_issuers.keys import KeySetProblem, keys_of
from quota.contracts.token_issuers import MOST_KEYS
from tests.support.tokens import RSA_ALGORITHMS, Issuer, private_key, public_der

KINDS = {"one": "RSA", "two": "P-256", "three": "P-384"}
RSA_KEY = json.loads(RSAAlgorithm.to_jwk(private_key("RSA").public_key()))
EC_KEY = json.loads(ECAlgorithm.to_jwk(private_key("P-256").public_key()))


def made_of(*keys):
    return keys_of(json.dumps({"keys": keys}).encode())


def test_every_kind_that_is_served_is_taken_with_its_algorithms():
    found = made_of(*Issuer(keys=KINDS).jwks()["keys"])
    assert [(key.kid, key.algorithms, key.key) for key in found] == [
        ("one", RSA_ALGORITHMS, public_der("RSA")),
        ("two", ("ES256",), public_der("P-256")),
        ("three", ("ES384",), public_der("P-384")),
    ]


def test_a_key_that_names_its_algorithm_verifies_by_that_one():
    assert made_of({**RSA_KEY, "alg": "PS384"})[0].algorithms == ("PS384",)


def test_a_key_may_have_no_id():
    assert made_of({"kty": "RSA", "n": RSA_KEY["n"], "e": RSA_KEY["e"]})[0].kid == ""


def test_private_numbers_that_somebody_publishes_go_nowhere():
    whole = json.loads(RSAAlgorithm.to_jwk(private_key("RSA")))
    whole.pop("key_ops")
    assert "d" in whole
    [key] = made_of(whole)
    assert key.key == public_der("RSA")
    assert not hasattr(load_der_public_key(key.key), "private_numbers")


def weak():
    return json.loads(
        RSAAlgorithm.to_jwk(rsa.generate_private_key(public_exponent=65_537, key_size=1_024).public_key())
    )


def other_curve():
    return json.loads(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP521R1()).public_key()))


NOT_SERVED = {
    "shared": {"kty": "oct", "k": "c2VjcmV0"},
    "for encryption": {**RSA_KEY, "use": "enc"},
    "to sign by": {**RSA_KEY, "key_ops": ["sign"]},
    "another algorithm": {**RSA_KEY, "alg": "RSA-OAEP"},
    "none": {**RSA_KEY, "alg": "none"},
    "an algorithm of another kind": {**RSA_KEY, "alg": "ES256"},
    "a small one": weak(),
    "a large exponent": {**RSA_KEY, "e": "AQAAAAE"},
    "exponent one": {**RSA_KEY, "e": "AQ"},
    "an even exponent": {**RSA_KEY, "e": "BA"},
    "a huge number": {**RSA_KEY, "n": "A" * 60_000},
    "no number": {**RSA_KEY, "n": 7},
    "without one": {"kty": "RSA", "e": "AQAB"},
    "another curve": other_curve(),
    "a point that is on no curve": {**EC_KEY, "x": EC_KEY["y"]},
    "Edwards": {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
    "no kind": {"n": RSA_KEY["n"], "e": "AQAB"},
    "an id that is none": {**RSA_KEY, "kid": 7},
    "a list for a curve": {**EC_KEY, "crv": []},
}


@pytest.mark.parametrize("key", NOT_SERVED.values(), ids=NOT_SERVED)
def test_a_key_that_is_not_served_is_passed_over_and_alone_is_none(key):
    assert [each.kid for each in made_of(key, {**EC_KEY, "kid": "good"})] == ["good"]
    with pytest.raises(KeySetProblem, match="no key that can verify"):
        made_of(key)


@pytest.mark.parametrize(
    "data",
    [b"", b"<html>", b"[]", b"null", b"7", b"{}", b'{"keys":{}}', b"\xff", b"[" * 60_000, b'{"keys":[7,null,[]]}'],
)
def test_what_is_no_key_set_is_said_in_a_sentence(data):
    with pytest.raises(KeySetProblem):
        keys_of(data)


def test_there_is_an_end_to_how_many_there_are():
    assert len(made_of(*[EC_KEY] * MOST_KEYS)) == MOST_KEYS
    with pytest.raises(KeySetProblem, match="at most 16"):
        made_of(*[EC_KEY] * (MOST_KEYS + 1))


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=10), st.sampled_from(["RSA", "EC", "P-256", "AQAB"])
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.dictionaries(st.sampled_from(["kty", "n", "e", "crv", "x", "y", "alg", "use", "kid", "key_ops"]), children),
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_is_published_there_is_one_kind_of_error(document):
    try:
        made_of(document)
    except KeySetProblem:
        return


@pytest.mark.parametrize("kid", ["\ud800", "a\0", "two\nlines", "x" * 256])
def test_an_id_that_no_database_or_answer_takes_is_no_keys(kid):
    assert [key.kid for key in made_of({**RSA_KEY, "kid": kid}, {**EC_KEY, "kid": "good"})] == ["good"]
