"""What stands in ZooKeeper of ACLs and users is read back as it was written, and refused where it is not legible."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.acls import (
    MOST_ACLS,
    Acl,
    AclOperation,
    AclSet,
    PatternType,
    Permission,
    ResourceType,
    acls_problem,
)
from quota.contracts.apart import acls_from_json, acls_in_steps, users_from_json, users_in_steps
from quota.contracts.instance import UnreadAccessError
from quota.contracts.items import ITEMS_PER_STEP
from quota.contracts.users import Credential, ScramMechanism, User, UserSet, users_problem

HOSTS = st.one_of(st.just("*"), st.ip_addresses().map(str), st.integers(0, 32).map(lambda bits: f"0.0.0.0/{bits}"))
ACLS = st.builds(
    Acl,
    st.sampled_from(ResourceType),
    st.sampled_from(PatternType),
    st.text(min_size=1, max_size=20),
    st.text(min_size=1, max_size=20).map(lambda name: f"User:{name}"),
    HOSTS,
    st.sampled_from(AclOperation),
    st.sampled_from(Permission),
)
CREDENTIALS = st.builds(
    Credential,
    st.sampled_from(ScramMechanism),
    st.binary(min_size=8, max_size=24),
    st.integers(4096, 16384),
    st.binary(min_size=32, max_size=64),
    st.binary(min_size=32, max_size=64),
    st.one_of(st.none(), st.integers(0, 2**52)),
)
USERS = st.builds(User, st.text(min_size=1, max_size=20), st.lists(CREDENTIALS, max_size=4).map(tuple))
READ_ORDERS = Acl(
    ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:alice", "10.0.0.0/8", AclOperation.READ, Permission.ALLOW
)


READ = AclSet(1, (READ_ORDERS,)).to_json()


@given(st.integers(0, 2**40), st.lists(ACLS, max_size=5))
def test_acls_are_read_back(version, acls):
    written = AclSet(version, tuple(acls))
    assert acls_from_json(written.to_json()) == written


def finished(steps):
    """What they return, and how often they paused."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value, pauses
        pauses += 1


@given(st.integers(0, 2**40), st.lists(ACLS, max_size=3 * ITEMS_PER_STEP))
def test_acls_are_read_back_in_steps(version, acls):
    written = AclSet(version, tuple(acls))
    assert finished(AclSet.reading(written.to_json())) == (written, len(acls) // ITEMS_PER_STEP)
    text = written.to_json()
    for otherwise in (json.dumps(json.loads(text)).encode(), text.replace(b"},{", b"}, {")):
        assert finished(AclSet.reading(otherwise))[0] == written


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"items":[',
        b'{"items":[{}],"version":1}',
        b'{"items":[],"version":1}x',
        b'{"items":[] "version":1}',
        b'{"items":[1],"version":1}',
        READ.replace(b"}]", b"}"),
        READ.replace(b"}]", b"},]"),
        READ.replace(b"}]", b"}, {}]"),
        READ.replace(b"}]", b"},{}]"),
        READ.replace(b"}]", b"}{}]"),
        READ.replace(b"READ", b"LOOK"),
    ],
)
def test_what_is_not_legible_at_once_is_not_legible_in_steps(data):
    of_acls = (lambda: acls_from_json(data), lambda: finished(acls_in_steps(data)))
    for read in (*of_acls, lambda: users_from_json(data), lambda: finished(users_in_steps(data))):
        with pytest.raises(UnreadAccessError):
            read()


@given(st.integers(0, 2**40), st.lists(USERS, max_size=3))
def test_users_are_read_back(version, users):
    written = UserSet(version, tuple(users))
    assert users_from_json(written.to_json()) == finished(users_in_steps(written.to_json()))[0] == written


def test_the_same_acl_twice_is_one():
    assert AclSet().changed([READ_ORDERS, READ_ORDERS]).items == (READ_ORDERS,)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("operation", "FLY"),
        ("permission_type", "MAYBE"),
        ("resource_type", "PLANET"),
        ("host", "ten"),
        ("principal", 7),
    ],
)
def test_an_acl_that_is_not_understood_is_not_passed_over(member, value):
    document = {"version": 1, "items": [{**READ_ORDERS.document(), member: value}]}
    with pytest.raises(UnreadAccessError):
        acls_from_json(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"version":1,"items":[{"name":"alice"}]}'])
def test_users_that_are_not_legible_are_not_nobody(data):
    with pytest.raises(UnreadAccessError):
        users_from_json(data)


def test_a_missing_node_is_no_acls_and_no_users():
    assert acls_from_json(None) == AclSet()
    assert users_from_json(None) == UserSet()


def test_few_iterations_are_refused():
    weak = User("alice", (Credential(ScramMechanism.SHA_256, b"s" * 8, 4095, b"k" * 32, b"k" * 32),))
    with pytest.raises(UnreadAccessError):
        users_from_json(UserSet(1, (weak,)).to_json())


def test_there_is_an_end_to_how_many_there_are():
    many = [READ_ORDERS] * (MOST_ACLS + 1)
    assert acls_problem(many) == "an instance may have 5000 ACLs, not 5001"
    assert acls_problem([READ_ORDERS]) is None
    assert users_problem([User("", ())]) == "a user's name has 1 to 255 characters"


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal": "alice"},
        {"principal": "Group:alice"},
        {"principal": "User:"},
        {"host": "example.com"},
        {"host": "fe80::1%eth0"},
        {"host": "fe80::%1/64"},
        {"resource_name": ""},
        {"resource_type": ResourceType.CLUSTER, "resource_name": "mine"},
    ],
)
def test_an_acl_that_could_never_hold_is_refused_with_a_sentence(wrong):
    assert acls_problem([replace(READ_ORDERS, **wrong)])
