"""`sluice search`: by a part of a name."""

from __future__ import annotations

import pytest

from tests.controlplane.search.conftest import group_row

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_lists_what_fits_and_says_that_there_is_more(ok, alice, instance):
    for number in range(6):
        group_row(instance.id, f"herd-{number}")
    ran = ok("search", "herd")
    assert "herd-4" in ran.out
    assert "herd-5" not in ran.out
    assert "More of kind group: use --kind group --limit 50." in ran.err
    assert "herd-5" in ok("search", "herd", "--kind", "group", "--limit", "6").out


def test_at_the_largest_limit_no_larger_one_is_proposed(ok, alice, instance):
    for number in range(51):
        group_row(instance.id, f"herd-{number}")
    said = ok("search", "herd", "--limit", "50").err
    assert "More of kind group." in said
    assert "use --kind" not in said


def test_what_was_not_searched_is_said(ok, alice, instance, tree):
    tree.away = True
    assert "Not every user was searched." in ok("search", "herd").err


def test_json_is_what_rest_answers(ok, instance):
    found = ok("--output", "json", "search", instance.name, "--kind", "instance", "--instance", instance.id).json
    assert [each["id"] for each in found["items"]] == [instance.id]
    assert [each["kind"] for each in found["kinds"]] == ["instance"]


def test_nothing_is_said_where_there_is_nothing(ok, instance):
    ran = ok("search", "no such thing")
    assert (ran.out, "Nothing." in ran.err) == ("", True)


def test_what_is_too_long_is_refused(as_alice, instance):
    ran = as_alice("search", "x" * 101)
    assert (ran.status, "at most 100 characters" in ran.err or "100" in ran.err) == (1, True)
