"""The page that verifies the audit log of an organisation."""

from __future__ import annotations

import re

import pytest

from controlplane.core import audit_sealing
from tests.controlplane.console.conftest import at_alice, at_charlie, at_viewer, problem_beside, text_of

from .test_chain import deleted, rows, written

__all__ = ["at_alice", "at_charlie", "at_viewer"]
PAGE = "audit/verify"


def test_a_whole_log_is_said_to_be_and_the_newest_hash_shown(alice, at_alice, at_viewer):
    count = written(alice)
    assert f'href="{at_alice.address(PAGE)}"' in at_alice.get("audit").content.decode()
    for visitor in (at_alice, at_viewer):
        page = text_of(visitor.get(PAGE))
        assert f"Entries 1 to {count} were computed again, and are as they were written." in page
        assert f"Hash of entry {count} " in page
        assert rows(alice).get(number=count).hash in page


def test_what_does_not_fit_is_named(alice, at_alice):
    written(alice)
    rows(alice).filter(number=2).update(actor="eve@example.com")
    page = text_of(at_alice.get(PAGE))
    assert "The audit log is not as it was written. The entry 2 is not as it was written." in page
    assert "Hash of entry" not in page
    deleted(alice, 2)
    assert "The entry 2 is missing." in text_of(at_alice.get(PAGE))


def test_it_is_compared_with_what_somebody_has_kept(alice, at_alice):
    count = written(alice)
    kept = rows(alice).get(number=count).hash
    page = text_of(at_alice.get(f"{PAGE}?after={count}&hash={kept.upper()}"))
    assert (
        f"Entry {count} is the newest. Entry {count} has the hash that was kept: nothing up to it was written anew."
        in page
    )
    page = text_of(at_alice.get(f"{PAGE}?after={count}&hash={'0' * 64}"))
    assert f"The entry {count} has another hash than the one that was kept." in page


def test_a_long_log_is_followed_page_by_page(alice, at_alice, monkeypatch):
    count = written(alice, 4)
    monkeypatch.setattr(audit_sealing, "MOST_FOLLOWED", 4)
    page = at_alice.get(PAGE).content.decode()
    (following,) = re.findall(r'href="\?(after=4&amp;hash=\w{64})"', page)
    page = text_of(at_alice.get(f"{PAGE}?{following.replace('&amp;', '&')}"))
    assert f"Entries 5 to {count} were computed again" in page
    assert "Go on after" not in page


def test_a_log_of_which_nothing_is_chained_yet_says_so(alice, at_alice):
    page = text_of(at_alice.get(PAGE))
    assert "No entry has its hash yet. Newer ones are given their hash within seconds." in page
    assert "Hash of entry" not in page


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ("after=0", "after", "Ensure this value is greater than or equal to 1."),
        ("after=x", "after", "Enter a whole number."),
        ("after=99", "after", "The newest entry is"),
        ("after=1&hash=x", "hash", "Enter 64 hexadecimal digits."),
        (f"hash={'0' * 64}", "hash", "Goes with `after`."),
    ],
)
def test_what_is_wrong_stands_beside_it(alice, at_alice, query, field, said):
    written(alice)
    page = at_alice.get(f"{PAGE}?{query}")
    assert page.status_code == 422
    assert problem_beside(page, field).startswith(said)
    assert "computed again" not in text_of(page)


def test_to_a_stranger_it_does_not_exist(at_alice, at_charlie):
    assert at_charlie.client.get(at_alice.address(PAGE)).status_code == 404
