"""Documents of many items, read and written a few at a time: the same bytes, the same values, the same refusals."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.acls import Acl, AclSet
from quota.contracts.items import ITEMS_PER_STEP, item_bytes, joined_items, read_items, size_of_items
from quota.contracts.users import User, UserSet
from quota.steps import run_through
from tests.quota.test_acls_and_users import ACLS, CREDENTIALS

VERSIONS = st.integers(0, 2**63)
USERS = st.builds(User, st.text(min_size=1, max_size=9), st.lists(CREDENTIALS, max_size=3).map(tuple))


@given(st.lists(ACLS, max_size=12), VERSIONS)
def test_acls_are_written_and_read_as_at_once(acls, version):
    whole = AclSet(version, tuple(acls)).to_json()
    assert joined_items(version, [item_bytes(acl.document()) for acl in acls]) == whole
    assert run_through(read_items(whole, Acl.from_document)) == (version, acls)


@given(st.lists(USERS, max_size=6), VERSIONS)
def test_users_too(users, version):
    whole = UserSet(version, tuple(users)).to_json()
    assert joined_items(version, [item_bytes(user.document()) for user in users]) == whole
    assert run_through(read_items(whole, User.from_document)) == (version, users)


@given(st.lists(ACLS, max_size=5), VERSIONS)
def test_a_document_that_is_written_otherwise_is_read_too(acls, version):
    loose = json.dumps({"version": version, "items": [acl.document() for acl in acls]}, indent=1).encode()
    assert run_through(read_items(loose, Acl.from_document)) == (version, acls)


@given(st.lists(ACLS, max_size=5), VERSIONS)
def test_the_size_is_known_before_it_is_written(acls, version):
    items = [item_bytes(acl.document()) for acl in acls]
    assert len(joined_items(version, items)) <= size_of_items(len(items), sum(map(len, items)))
    assert len(joined_items(2**63, items)) == size_of_items(len(items), sum(map(len, items)))


@given(st.lists(ACLS, min_size=1, max_size=3), st.data())
def test_what_is_cut_off_is_not_legible(acls, data):
    whole = AclSet(1, tuple(acls)).to_json()
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises((ValueError, KeyError, TypeError)):
        run_through(read_items(whole[:cut], Acl.from_document))


@pytest.mark.parametrize(
    "data",
    [b'{"items":[{}{}],"version":1}', b'{"items":[{},],"version":1}', b'{"items":[]}', b'{"items":[],"version":1}x'],
)
def test_what_is_no_such_document_is_refused(data):
    with pytest.raises((ValueError, KeyError)):
        run_through(read_items(data, lambda item: item))


def test_a_pause_comes_every_few_items():
    made = []
    pauses = [len(made) for _ in read_items(joined_items(1, [b"{}"] * 50), made.append)]
    assert pauses
    assert all(after - before <= ITEMS_PER_STEP for before, after in pairwise(pauses))
