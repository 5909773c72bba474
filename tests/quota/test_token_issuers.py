"""What stands in ZooKeeper of token issuers is read back as it was written, and refused where it is not legible."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.apart import beside_paths, token_issuers_from_json, token_issuers_path
from quota.contracts.instance import UnreadAccessError
from quota.contracts.token_issuers import (
    ALGORITHMS,
    LARGEST_ISSUERS,
    LARGEST_KEY,
    LONGEST_TEXT,
    MOST_AUDIENCES,
    MOST_ISSUERS,
    MOST_KEYS,
    TokenIssuer,
    TokenIssuerSet,
    TokenKey,
    issuers_problem,
    principal_name_problem,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "contracts" / "token_issuers.json"
TEXTS = st.text(min_size=1, max_size=20)
KEYS = st.builds(
    TokenKey, st.text(max_size=20), st.lists(st.sampled_from(ALGORITHMS)).map(tuple), st.binary(max_size=60)
)
ISSUERS = st.builds(
    TokenIssuer,
    TEXTS,
    st.lists(TEXTS).map(tuple),
    TEXTS,
    st.one_of(st.none(), TEXTS),
    st.lists(KEYS, max_size=3).map(tuple),
)
ONE = TokenIssuer(
    "https://login.example.com/",
    ("kafka", "sluice"),
    "client_id",
    "kafka.connect",
    (TokenKey("2026-11", ("RS256",), b"der"),),
)
TWO = TokenIssuer("https://other.example.com", ("kafka",))


def test_it_is_written_as_the_golden_bytes():
    written = TokenIssuerSet(6).changed([TWO, ONE])
    golden = GOLDEN.read_bytes().rstrip(b"\n")
    assert written.to_json() == golden
    assert token_issuers_from_json(golden) == written == TokenIssuerSet(7, (ONE, TWO))


@given(st.integers(0, 2**40), st.lists(ISSUERS, max_size=4))
def test_they_are_read_back(version, issuers):
    written = TokenIssuerSet(version, tuple(issuers))
    assert token_issuers_from_json(written.to_json()) == written


def test_a_missing_node_is_no_issuers_and_it_goes_with_its_instance():
    assert token_issuers_from_json(None) == TokenIssuerSet()
    assert token_issuers_path("ins-a") in beside_paths("ins-a")


DOCUMENT = json.loads(TokenIssuerSet(1, (ONE,)).to_json())


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"version":"1","items":[]}', b'{"version":1,"items":[{}]}', b'{"version":1,"items":[7]}'],
)
def test_what_is_not_legible_is_not_nobody(data):
    with pytest.raises(UnreadAccessError, match="token issuers"):
        token_issuers_from_json(data)


@pytest.mark.parametrize(
    ("member", "value"),
    [("issuer", 7), ("audiences", "kafka"), ("audiences", [7]), ("principal_claim", None), ("scope", []), ("keys", [{}]),
     ("keys", [{"kid": "k", "algorithms": "RS256", "key": ""}]), ("keys", [{"kid": "k", "algorithms": [], "key": "?"}])],
)  # fmt: skip
def test_nor_is_a_member_that_is_something_else(member, value):
    document = {"version": 1, "items": [{**DOCUMENT["items"][0], member: value}]}
    with pytest.raises(UnreadAccessError):
        token_issuers_from_json(json.dumps(document).encode())


def test_members_and_algorithms_that_a_reader_does_not_know_are_no_problem():
    [item] = DOCUMENT["items"]
    [key] = item["keys"]
    newer = {**item, "keys": [{**key, "algorithms": ["EdDSA"], "curve": "x"}], "more": 1}
    [found] = token_issuers_from_json(json.dumps({"version": 2, "items": [newer], "more": 1}).encode()).items
    assert found.keys[0].algorithms == ("EdDSA",)


def test_rules_are_all_but_the_keys():
    assert replace(ONE, keys=()).rules == ONE.rules
    for change in ({"issuer": "x"}, {"audiences": ("x",)}, {"principal_claim": "x"}, {"scope": None}):
        assert replace(ONE, **change).rules != ONE.rules


KEY = TokenKey("k", ("RS256",), b"k" * LARGEST_KEY)
LONG = "a" * LONGEST_TEXT


@pytest.mark.parametrize(
    ("items", "word"),
    [
        ([replace(TWO, issuer=str(number)) for number in range(MOST_ISSUERS + 1)], "token issuers"),
        ([TWO, replace(TWO, audiences=("x",))], "once"),
        ([replace(TWO, audiences=())], "audiences"),
        ([replace(TWO, audiences=tuple(map(str, range(MOST_AUDIENCES + 1))))], "audiences"),
        ([replace(TWO, issuer="")], "characters"),
        ([replace(TWO, issuer=LONG + "a")], "characters"),
        ([replace(TWO, audiences=("a\x01",))], "characters"),
        ([replace(TWO, principal_claim="")], "characters"),
        ([replace(TWO, scope="a b")], "one scope"),
        ([replace(TWO, keys=(KEY,) * (MOST_KEYS + 1))], "keys"),
        ([replace(TWO, keys=(replace(KEY, key=KEY.key + b"k"),))], "bytes"),
        ([replace(TWO, keys=(replace(KEY, kid=LONG + "a"),))], "id"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(items, word):
    assert word in issuers_problem(items)


def test_the_most_that_there_can_be_fits():
    most = [
        TokenIssuer(f"{number}" + LONG[1:], (LONG,) * MOST_AUDIENCES, LONG, LONG, (replace(KEY, kid=LONG),) * MOST_KEYS)
        for number in range(MOST_ISSUERS)
    ]
    assert issuers_problem(most) is None
    assert len(TokenIssuerSet(1, tuple(most)).to_json()) < LARGEST_ISSUERS
    wide = [replace(each, issuer=each.issuer[0] + "\U0001f511" * 254) for each in most]
    assert issuers_problem(wide) is None


@pytest.mark.parametrize(("name", "is_one"), [("alice", True), ("", False), ("*", False), (7, False), (None, False)])
def test_a_principal_has_a_name_as_users_have(name, is_one):
    assert (principal_name_problem(name) is None) is is_one
