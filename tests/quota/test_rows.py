"""Rows of reports and grants: what their keys say, and who divides what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.instance import Limits
from quota.contracts.rows import Row, Unit
from tests.quota.samples import INSTANCE

KEYS = {
    "ins-k3v9x2qa": Row(INSTANCE),
    "ins-k3v9x2qa/requests": Row(INSTANCE, unit=Unit.REQUESTS),
    "ins-k3v9x2qa/loop-time": Row(INSTANCE, unit=Unit.LOOP_TIME),
    "ins-k3v9x2qa/rule-8zk2m4x0": Row(INSTANCE, "rule-8zk2m4x0"),
    "ins-k3v9x2qa/rule-8zk2m4x0/ann": Row(INSTANCE, "rule-8zk2m4x0/ann"),
}


@pytest.mark.parametrize("key", KEYS)
def test_a_row_is_named_by_its_key_between_brokers_and_master(key):
    assert KEYS[key].key == key
    assert Row.parse(key) == KEYS[key]
    assert Row.within(INSTANCE, KEYS[key].name) == KEYS[key]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=2))
def test_the_row_of_one_client_says_who_it_is_and_belongs_to_the_row_of_its_rule_whatever_its_name(names):
    row = Row.parse(Row(INSTANCE, "r").of_client(names).key)
    assert (row.client, row.unit) == (tuple(names), Unit.BYTES)
    assert row.rule == Row(INSTANCE, "r")


def test_names_of_clients_are_encoded():
    assert Row(INSTANCE, "r").of_client(("a/b", "c d")).key == f"{INSTANCE}/r/a%2Fb/c%20d"


def test_a_row_that_is_no_clients_belongs_to_itself():
    for row in (Row(INSTANCE), Row(INSTANCE, "r"), Row(INSTANCE, unit=Unit.REQUESTS)):
        assert row.rule == row
        assert row.client == ()


def test_limits_count_in_the_unit_of_their_row():
    limits = Limits(1, 1, None, None, requests_per_s=5, loop_ms_per_s=7)
    assert (limits.rate(Unit.REQUESTS), limits.rate(Unit.LOOP_TIME)) == (5_000, 7_000)
    assert (Limits(1, 1, None, None).rate(Unit.REQUESTS), Limits(1, 1, None, None).rate(Unit.LOOP_TIME)) == (None, None)
