"""SCRAM as RFC 5802 and RFC 7677 have it: their exchange, what is refused, and what nobody learns about users."""

from __future__ import annotations

import base64
import hmac
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.security.exchange import OTHER_AUTHZID, Proof, SaslError
from dataplane.security.known import KnownUsers
from dataplane.security.scram import LONGEST_MESSAGE, Scram
from quota.contracts.users import DEFAULT_ITERATIONS, SALT_BYTES, User
from tests.dataplane.security.clients import SECRET, SHA_256, SHA_512, ScramClient, credential, users

NONCE = b"n" * 18
ALICE = User("alice", (credential("pencil"), credential("pencil", SHA_512, b"t" * 24)))
KNOWN = KnownUsers(users(ALICE, User("a,b=c", (credential("pencil"),))), SECRET)


def begun(mechanism=SHA_256, known=KNOWN, nonce=NONCE):
    return Scram(mechanism, known, nonce, now_ms=0)


def log_in(client, known=KNOWN, now_ms=0, **instead):
    """What comes of it, and the client's opinion of the server."""
    scram = begun(client.mechanism, known)
    proof = scram.take(client.final(scram.take(client.first()), **instead))
    verified = proof.verify(now_ms)
    return verified, verified is not None and client.is_right(verified.said)


# --- what is right --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=alice,", "y,a=alice,"])
def test_who_has_the_password_is_who_he_says_and_so_is_the_server(mechanism, header):
    verified, server_is_right = log_in(ScramClient("alice", "pencil", mechanism, header=header))
    assert verified is not None
    assert server_is_right
    assert verified.credential == ALICE.of(mechanism)[0]


def test_the_exchange_of_rfc_7677():
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    known = KnownUsers(users(User("user", (credential("pencil", SHA_256, salt, 4096),))), SECRET)
    scram = begun(known=known)
    scram._nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    answer = scram.take(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert answer == (b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    proof = scram.take(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    verified = proof.verify(0)
    assert verified is not None
    assert verified.said == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_name_with_a_comma_and_an_equals_sign():
    verified, server_is_right = log_in(ScramClient("a,b=c", "pencil"))
    assert (verified is not None, server_is_right) == (True, True)


def test_extensions_are_skipped():
    assert begun().take(b"n,,n=alice,r=abc,tokenauth=true,x=y").startswith(b"r=abc")


@pytest.mark.parametrize(
    ("password", "now_ms", "is_good"), [("new", 9e9, True), ("old", 999, True), ("old", 1000, False)]
)
def test_two_passwords_for_a_while(password, now_ms, is_good):
    known = KnownUsers(users(User("both", (credential("new"), credential("old", until_ms=1_000)))), SECRET)
    verified, server_is_right = log_in(ScramClient("both", password), known, now_ms)
    assert (verified is not None, server_is_right) == (is_good, is_good)


def test_a_client_that_repeats_its_nonce_in_front_of_both_as_librdkafka_did_before_2_6_1():
    client = ScramClient("alice", "pencil")
    verified, server_is_right = log_in(client, r=client.nonce + client.nonce + base64.b64encode(NONCE).decode())
    assert (verified is not None, server_is_right) == (True, True)


# --- what is not ----------------------------------------------------------------------------------------------------------

FIRST_REFUSED = {
    "nothing": b"",
    "no header": b"n=alice,r=abc",
    "channel binding": b"p=tls-unique,,n=alice,r=abc",
    "another flag": b"x,,n=alice,r=abc",
    "an extension that must be known": b"n,,m=ext,n=alice,r=abc",
    "the same further on": b"n,,n=alice,r=abc,m=ext",
    "no name": b"n,,n=,r=abc",
    "an empty authorization id": b"n,a=,n=alice,r=abc",
    "an escape that is none": b"n,,n=al=2Dice,r=abc",
    "a small escape": b"n,,n=al=2cice,r=abc",
    "no nonce": b"n,,n=alice,r=",
    "a nonce with a space": b"n,,n=alice,r=a c",
    "a nonce with a comma": b"n,,n=alice,r=a,c",
    "a zero byte": b"n,,n=al\0ice,r=abc",
    "no text": b"n,,n=\xff,r=abc",
    "a line behind": b"n,,n=alice,r=abc\n",
    "a final message": b"c=biws,r=abc,p=AAAA",
    "a long name": b"n,,n=" + b"a" * 256 + b",r=abc",
    "a long nonce": b"n,,n=alice,r=" + b"a" * LONGEST_MESSAGE,
}


@pytest.mark.parametrize("token", FIRST_REFUSED.values(), ids=FIRST_REFUSED)
def test_a_first_message_that_is_none_is_refused(token):
    with pytest.raises(SaslError) as found:
        begun().take(token)
    assert found.value.told is None


def test_nobody_logs_in_on_behalf_of_another():
    with pytest.raises(SaslError) as found:
        begun().take(b"n,a=bob,n=alice,r=abc")
    assert found.value.told == OTHER_AUTHZID


@pytest.mark.parametrize(
    "instead",
    [
        {"r": "fyko+d2lbbFgONRv9qkxdawL"},
        {"r": base64.b64encode(NONCE).decode()},
        {"r": "fyko+d2lbbFgONRv9qkxdawL" * 3 + base64.b64encode(NONCE).decode()},
        {"r": "fyko+d2lbbFgONRv9qkxdawL" * 2},
        {"r": "another" + base64.b64encode(NONCE).decode()},
        {"r": "fyko+d2lbbFgONRv9qkxdawL" + base64.b64encode(NONCE).decode() + "x"},
        {"c": base64.b64encode(b"y,,").decode()},
        {"c": base64.b64encode(b"n,a=alice,").decode()},
        {"c": "biw"},
        {"p": "AAA"},
        {"p": ""},
        {"p": "AA==,x=y"},
    ],
    ids=repr,
)
def test_a_final_message_with_another_nonce_binding_or_no_proof_is_refused(instead):
    with pytest.raises(SaslError):
        log_in(ScramClient("alice", "pencil"), **instead)


@pytest.mark.parametrize("proof", [b"", b"\0" * 31, b"\0" * 32, b"\0" * 64])
def test_a_proof_of_any_length_is_only_wrong(proof):
    scram = begun()
    client = ScramClient("alice", "pencil")
    text = base64.b64encode(proof).decode() or "===="
    if not proof:
        with pytest.raises(SaslError):
            scram.take(client.final(scram.take(client.first()), p=text))
        return
    assert scram.take(client.final(scram.take(client.first()), p=text)).verify(0) is None


def test_a_wrong_password_is_wrong():
    assert log_in(ScramClient("alice", "Pencil")) == (None, False)


def test_a_proof_is_good_for_one_exchange_only():
    client = ScramClient("alice", "pencil")
    one, other = begun(), begun(nonce=b"o" * 18)
    final = client.final(one.take(client.first()))
    other.take(client.first())
    with pytest.raises(SaslError):
        other.take(final)


@given(first=st.binary(max_size=80), final=st.binary(max_size=80))
def test_bytes_are_a_message_or_refused(first, final):
    scram = begun()
    try:
        answer = scram.take(first)
        assert isinstance(answer, bytes)
        proof = scram.take(final)
    except SaslError:
        return
    assert isinstance(proof, Proof)
    assert proof.verify(0) is None


PIECES = st.lists(
    st.sampled_from(
        ["n,,", "y,,", "p=x,,", "a=alice", "n=alice", "r=abc", ",", "m=1", "x=2", "=2C", "=3D", "=", "é", "\0"]
    )
)


@given(pieces=PIECES)
def test_what_it_takes_as_a_first_message_is_one(pieces):
    text = "".join(pieces)
    scram = begun()
    try:
        answer = scram.take(text.encode())
    except SaslError:
        return
    flag, authzid, name, nonce = text.split(",")[:4]
    assert flag in "ny"
    assert authzid in ("", "a=" + name[2:])
    assert name.startswith("n=")
    assert answer.decode().startswith(nonce)


# --- who does not exist ---------------------------------------------------------------------------------------------------


def challenge(name, mechanism=SHA_256, known=KNOWN):
    parts = dict(
        part.split("=", 1) for part in begun(mechanism, known).take(f"n,,n={name},r=abc".encode()).decode().split(",")
    )
    return base64.b64decode(parts["s"]), int(parts["i"])


def test_a_name_that_is_none_is_asked_as_one_that_is_and_always_the_same():
    salt, iterations = challenge("nobody")
    assert (len(salt), iterations) == (24, 4096)
    assert challenge("nobody") == (salt, iterations)
    assert challenge("nobody", known=KnownUsers({"alice": ALICE}, SECRET)) == (salt, iterations)
    assert challenge("nobody", SHA_512)[0] != salt
    assert challenge("somebody")[0] != salt


def test_it_is_asked_otherwise_in_another_instance():
    assert challenge("nobody", known=KnownUsers({"alice": ALICE}, b"another secret")) != challenge("nobody")


def test_it_follows_what_the_users_have():
    few = KnownUsers(users(User("bob", (credential("x", salt=b"u" * 16, iterations=5000),))), SECRET)
    assert (len(challenge("nobody", known=few)[0]), challenge("nobody", known=few)[1]) == (16, 5000)
    assert (
        len(challenge("nobody", known=KnownUsers({}, SECRET))[0]),
        challenge("nobody", known=KnownUsers({}, SECRET))[1],
    ) == (
        SALT_BYTES,
        DEFAULT_ITERATIONS,
    )


def test_a_user_without_this_mechanism_and_one_whose_password_has_ended_are_as_nobody():
    one = User("bob", (credential("x", SHA_512),))
    ended = User("eve", (credential("x", until_ms=0),))
    known = KnownUsers(users(ALICE, one, ended), SECRET)
    for name in ("bob", "eve", "nobody"):
        assert log_in(ScramClient(name, "x"), known) == (None, False)
        assert len(challenge(name, known=known)[0]) == 24
    assert challenge("eve", known=known)[0] != b"s" * 24


def test_asking_costs_as_much_for_a_name_that_is_none(monkeypatch):
    known, digest, costs = KnownUsers(users(ALICE), SECRET), hmac.digest, []
    known.of("alice", SHA_256, 0)
    for name in ("alice", "nobody"):
        asked: list[object] = []
        monkeypatch.setattr("hmac.digest", lambda *args, asked=asked: asked.append(args) or digest(*args))
        known.of(name, SHA_256, 0)
        known.of_any(name, 0)
        costs.append(len(asked))
    assert costs[0] == costs[1] > 0


def test_no_password_fits_a_name_that_is_none():
    imagined = KNOWN.of("nobody", SHA_256, 0)[0]
    assert imagined != replace(imagined, stored_key=KNOWN.of("other", SHA_256, 0)[0].stored_key)
    assert len(imagined.stored_key) == 32
    assert len(KNOWN.of("nobody", SHA_512, 0)[0].stored_key) == 64
