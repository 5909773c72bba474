"""Token issuers in the console: what is missing, what was fetched, and how they come and go."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from controlplane.token_issuers import fetching
from controlplane.token_issuers.keys import KeySetProblem
from controlplane.token_issuers.models import TokenIssuer
from tests.controlplane.token_issuers.rows import NOWHERE, token_issuer_row
from tests.support.tokens import Issuer

from .conftest import problem_beside, text_of

FORM = {
    "issuer": "https://login.example.com/",
    "jwks_url": NOWHERE,
    "audiences": "kafka\nother",
    "principal_claim": "sub",
    "scope": "",
}


@pytest.fixture
def at(instance):
    return f"instances/{instance.id}/token-issuers"


@pytest.fixture
def published(settings, monkeypatch):
    """What the issuer's server answers; an exception is raised."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, token_issuer_hosts="login.example.com")
    answer = [json.dumps(Issuer(keys={"2026-11": "P-256"}).jwks()).encode()]

    def fetched(_address):
        if isinstance(answer[0], Exception):
            raise answer[0]
        return answer[0]

    monkeypatch.setattr(fetching, "fetched", fetched)
    return answer


def rows():
    return TokenIssuer.objects.unscoped("a test")


def test_without_a_list_of_hosts_it_says_who_can_help(at_alice, at):
    page = text_of(at_alice.get(at))
    assert "No token issuer yet" in page
    assert "operators have to list the hosts" in page
    assert "New token issuer" not in page


def test_one_is_trusted_and_its_keys_are_named(at_alice, at, published):
    page = at_alice.post(at, FORM, follow=True)
    assert "let clients in within 2 seconds" in text_of(page)
    assert "audience kafka, other" in text_of(page)
    assert "2026-11" in text_of(page)
    assert rows().get().scope == ""


def test_what_is_wrong_stands_beside_its_field(at_alice, at, published):
    other = at_alice.post(at, {**FORM, "jwks_url": "https://evil.example.com/"})
    assert other.status_code == 422
    assert "Keys may not be fetched from" in problem_beside(other, "jwks_url")
    published[0] = KeySetProblem("login.example.com answers 404")
    assert "answers 404" in problem_beside(at_alice.post(at, FORM), "jwks_url")
    assert not rows().exists()


def test_an_issuer_that_is_trusted_already_stands_beside_its_name(at_alice, at, published):
    at_alice.post(at, FORM)
    assert "trusts https://login.example.com/ already" in problem_beside(at_alice.post(at, FORM), "issuer")


def test_keys_that_could_not_be_fetched_are_said_with_why(at_alice, at, published, instance):
    row = token_issuer_row(instance)
    published[0] = KeySetProblem("login.example.com has not answered within 5 s")
    page = at_alice.post(f"{at}/{row.id}/keys", follow=True)
    assert "has not answered within 5 s" in text_of(page)
    assert "Those from before stay" in text_of(page)
    published[0] = json.dumps(Issuer(keys={"three": "P-256"}).jwks()).encode()
    rows().update(keys_tried_at=row.keys_tried_at)
    page = at_alice.post(f"{at}/{row.id}/keys", follow=True)
    assert "were fetched" in text_of(page)
    assert "three" in text_of(page)


def test_one_is_removed_from_its_row(at_alice, at, published, instance):
    row = token_issuer_row(instance)
    page = at_alice.post(f"{at}/{row.id}/removal", follow=True)
    assert "let nobody in any more" in text_of(page)
    assert "No token issuer yet" in text_of(page)


def test_a_viewer_sees_them_and_no_form(at_viewer, at, published, instance):
    row = token_issuer_row(instance)
    page = text_of(at_viewer.get(at))
    assert row.issuer in page
    assert "New token issuer" not in page
    assert "Fetch keys" not in page
