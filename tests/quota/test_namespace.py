"""Whose a physical name is: all eight characters of the key and the dot count, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.namespace import ForeignNameError, InstanceNames, counted_key, instance_key, is_kept_by_the_service

KEY = "k3v9x2qa"
NAMES = InstanceNames(KEY)
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def neighbours():
    """Keys that differ from ours in one character, at each place."""
    for place, ours in enumerate(KEY):
        yield KEY[:place] + ALPHABET[(ALPHABET.index(ours) + 1) % len(ALPHABET)] + KEY[place + 1 :]


@pytest.mark.parametrize("key", [*neighbours(), KEY[:7], KEY + "a", KEY.upper(), ""])
def test_a_key_that_differs_in_one_character_is_another_instance(key):
    name = f"{key}.orders"
    assert not NAMES.owns(name)
    for outwards in (NAMES.topic_out, NAMES.group_out, NAMES.transactional_id_out):
        with pytest.raises(ForeignNameError):
            outwards(name)


@pytest.mark.parametrize("name", [KEY, f"{KEY}-orders", f"{KEY}orders", f"x{KEY}.orders", "orders", ""])
def test_without_the_dot_behind_the_key_a_name_is_nobodys(name):
    assert not NAMES.owns(name)
    with pytest.raises(ForeignNameError):
        NAMES.topic_out(name)


@given(name=st.text(max_size=30), key=st.text(ALPHABET, min_size=8, max_size=8))
def test_what_an_instance_names_it_owns_and_gets_back_and_no_other_does(name, key):
    physical = NAMES.topic_in(name)
    assert NAMES.owns(physical)
    assert NAMES.topic_out(physical) == name
    assert InstanceNames(key).owns(physical) is (key == instance_key(f"ins-{KEY}"))


@pytest.mark.parametrize(
    ("physical", "key"),
    [
        ("k3v9x2qa.orders", "k3v9x2qa"),
        ("k3v9x2qa.__sluice_audit", None),
        ("k3v9x2qa.x.__sluice_audit", "k3v9x2qa"),
        ("k3v9x2qa.__sluice_audits", "k3v9x2qa"),
        ("__usage", None),
        ("__sluice_audit", None),
    ],
)
def test_a_topic_that_the_service_keeps_counts_to_nobody(physical, key):
    assert counted_key(physical) == key
    assert is_kept_by_the_service(physical) == (physical == "k3v9x2qa.__sluice_audit")
