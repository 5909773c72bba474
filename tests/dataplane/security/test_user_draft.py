"""What AlterUserScramCredentials makes of users: Kafka's judgements, one user at a time."""

import hashlib

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.security.user_draft import Deletion, Upsertion, UserDraft, planned
from quota.contracts.apart import users_from_json
from quota.contracts.users import LARGEST_USERS, MOST_USERS, ScramMechanism, User, UserSet, users_problem
from quota.core.scram import derived, is_password
from quota.steps import run_through

SHA_256, SHA_512 = 1, 2
BAD, TWICE, MISSING = ErrorCode.UNACCEPTABLE_CREDENTIAL, ErrorCode.DUPLICATE_RESOURCE, ErrorCode.RESOURCE_NOT_FOUND
UNKNOWN = ErrorCode.UNSUPPORTED_SASL_MECHANISM


def upsertion(user="ann", mechanism=SHA_256, iterations=4096, salt=b"salt", size=None):
    return Upsertion(user, mechanism, iterations, salt, bytes(size or (64 if mechanism == SHA_512 else 32)))


def altered(before, *alterations):
    """Error codes by user, and the users afterwards."""
    codes = {}
    draft = run_through(UserDraft.of(before.to_json() if before.version else None))
    for name, plan in run_through(planned(alterations)).items():
        refusal = draft.alter(name, plan)
        codes[name] = ErrorCode.NONE if refusal is None else refusal.code
    data = draft.written()
    after = before if data is None else users_from_json(data)
    assert after.version == draft.version
    assert users_problem(after.items) is None
    return codes, after


def mechanisms(users):
    return {user.name: [str(one.mechanism) for one in user.credentials] for user in users.items}


def test_a_password_that_was_salted_by_the_client_verifies():
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 4096)
    _, after = altered(UserSet(), Upsertion("ann", SHA_256, 4096, b"salt", salted))
    (credential,) = after.items[0].credentials
    assert is_password(credential, "secret")
    assert not is_password(credential, "Secret")


def test_users_come_and_go_with_their_credentials():
    codes, both = altered(UserSet(), upsertion(), upsertion(mechanism=SHA_512), upsertion("bob"))
    assert (codes, mechanisms(both)) == (
        {"ann": 0, "bob": 0},
        {"ann": ["SCRAM-SHA-256", "SCRAM-SHA-512"], "bob": ["SCRAM-SHA-256"]},
    )
    codes, one = altered(both, Deletion("ann", SHA_256), Deletion("bob", SHA_256))
    assert (codes, mechanisms(one)) == ({"ann": 0, "bob": 0}, {"ann": ["SCRAM-SHA-512"]})


def test_an_upsertion_ends_a_password_that_was_still_good_for_a_while():
    old = derived("old", mechanism=ScramMechanism.SHA_256, salt=b"x", iterations=4096)
    former = derived("former", mechanism=ScramMechanism.SHA_256, salt=b"x", iterations=4096)
    object.__setattr__(former, "until_ms", 10**15)
    _, after = altered(UserSet(1, (User("ann", (old, former)),)), upsertion(iterations=5000))
    assert [(one.iterations, one.until_ms) for one in after.items[0].credentials] == [(5000, None)]


@pytest.mark.parametrize(
    ("alterations", "code"),
    [
        ([upsertion(iterations=4095)], BAD),
        ([upsertion(iterations=16_385)], BAD),
        ([upsertion(salt=b"")], BAD),
        ([upsertion(salt=bytes(257))], BAD),
        ([upsertion(size=31)], BAD),
        ([upsertion(size=64)], BAD),
        ([upsertion(mechanism=0)], UNKNOWN),
        ([upsertion(mechanism=3)], UNKNOWN),
        ([Deletion("ann", 7)], UNKNOWN),
        ([upsertion(), upsertion(iterations=5000)], TWICE),
        ([Deletion("ann", SHA_256), upsertion()], TWICE),
        ([upsertion(), upsertion(), upsertion(mechanism=9)], UNKNOWN),
        ([Deletion("ann", SHA_512)], MISSING),
        ([Deletion("ann", SHA_512), upsertion()], MISSING),
    ],
)
def test_with_one_thing_wrong_nothing_of_the_user_is_altered(alterations, code):
    _, before = altered(UserSet(), upsertion())
    codes, after = altered(before, *alterations, upsertion("bob"))
    assert codes == {"ann": code, "bob": ErrorCode.NONE}
    assert after.items[0] == before.items[0]


@pytest.mark.parametrize(
    "alteration", [upsertion(""), Deletion("", SHA_256), upsertion("x" * 256), upsertion("\0"), upsertion("*")]
)
def test_names_that_cannot_be(alteration):
    codes, after = altered(UserSet(), alteration)
    assert (list(codes.values()), after.items) == ([BAD], ())


def test_nothing_is_written_where_nothing_is_altered():
    _, before = altered(UserSet(), upsertion())
    assert altered(before, Deletion("bob", SHA_256))[1] is before


def test_there_is_a_most():
    _, full = altered(UserSet(), *(upsertion(f"u{n}") for n in range(MOST_USERS)))
    codes, after = altered(full, upsertion("one-more"), upsertion("u7", SHA_512))
    assert codes == {"one-more": ErrorCode.POLICY_VIOLATION, "u7": ErrorCode.NONE}
    assert len(after.items) == MOST_USERS


def test_they_take_a_bounded_number_of_bytes():
    large = [upsertion("ö" * 250 + f"{n:03}", kind, salt=bytes(256)) for n in range(MOST_USERS) for kind in (1, 2)]
    codes, after = altered(UserSet(), *large)
    assert set(codes.values()) == {ErrorCode.NONE, ErrorCode.POLICY_VIOLATION}
    assert len(after.to_json()) <= LARGEST_USERS
    refused = next(name for name, code in codes.items() if code)
    codes, again = altered(after, Deletion(after.items[0].name, SHA_256), Deletion(after.items[0].name, SHA_512))
    assert altered(again, upsertion(refused, salt=bytes(256)))[0] == {refused: ErrorCode.NONE}
