"""Wrong proofs in a session that an organisation's provider has begun are that organisation's, and lock nobody out elsewhere."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from controlplane.accounts import attempts
from controlplane.accounts.models import ApiKey
from controlplane.core.models import AuditEntry
from controlplane.tenants import services as tenants
from tests.controlplane.console.conftest import at_alice, quick_passwords
from tests.controlplane.identity.authenticator import Authenticator
from tests.controlplane.identity.conftest import PASSWORD, time

from .test_signing_in import by_sso, by_sso_with_password, in_force, provider

__all__ = ["at_alice", "by_sso", "by_sso_with_password", "in_force", "provider", "quick_passwords", "time"]


@pytest.fixture
def other(alice):
    return tenants.organisation_create(name="Elsewhere", owner=alice.user)


@pytest.fixture
def otherwise(alice, by_sso_with_password, time):
    """She has signed in by her password, a quarter of an hour ago: what is dangerous asks for a proof."""
    alice.user.refresh_from_db()
    quarter = timedelta(seconds=attempts.WINDOW_S)
    time.now -= quarter
    browser = Client()
    browser.force_login(alice.user)
    time.now += quarter
    return browser


@pytest.fixture
def used_up(by_sso_with_password, alice, other, otherwise):
    """Whoever the provider signs in as her guesses until nothing is looked at any more."""
    address = f"/{alice.organisation.id}/keys"
    for _ in range(attempts.MOST["account"]):
        assert by_sso_with_password.post(address, {"name": "k", "proof": "a guess"}).status_code == 422
    assert by_sso_with_password.post(address, {"name": "k", "proof": PASSWORD}).status_code == 429
    return by_sso_with_password


def keys(organisation):
    return ApiKey.objects.for_organisation(organisation).filter(name="k").count()


def test_the_person_shows_elsewhere_that_it_is_them(used_up, otherwise, alice, other):
    asked = otherwise.post(f"/{other.id}/keys", {"name": "k"})
    assert 'name="proof"' in asked.content.decode()
    answer = otherwise.post(f"/{other.id}/keys", {"name": "k", "proof": PASSWORD})
    assert (answer.status_code, keys(other)) == (200, 1)


def test_nor_do_wrong_ones_elsewhere_keep_them_from_showing_it_here(by_sso_with_password, otherwise, alice, other):
    for _ in range(attempts.MOST["account"]):
        assert otherwise.post(f"/{other.id}/keys", {"name": "k", "proof": "a guess"}).status_code == 422
    assert otherwise.post(f"/{other.id}/keys", {"name": "k", "proof": PASSWORD}).status_code == 429
    answer = by_sso_with_password.post(f"/{alice.organisation.id}/keys", {"name": "k", "proof": PASSWORD})
    assert (answer.status_code, keys(alice.organisation)) == (200, 1)


def test_other_organisations_do_not_read_of_them(used_up, alice, other):
    rows = AuditEntry.objects.unscoped("a test").filter(action="account.proof_failed")
    assert rows.filter(organisation=alice.organisation).count() == attempts.MOST["account"]
    assert not rows.filter(organisation=other).exists()


def test_passkeys_are_counted_and_told_of_alike(by_sso_with_password, otherwise, alice, other):
    """Wrong ones, until nothing is looked at: by another count than that of sessions that she has begun herself."""
    phone, address = Authenticator(), f"/{alice.organisation.id}/keys"  # a passkey that is nobody's here
    for _ in range(attempts.MOST["account"] + 1):
        asked = by_sso_with_password.post("/passkeys/challenge", {"purpose": "proof"}).json()
        last = by_sso_with_password.post(address, {"name": "k", "proof_passkey": phone.show(asked)})
    assert last.status_code == 429
    answer = otherwise.post(f"/{other.id}/keys", {"name": "k", "proof": PASSWORD})
    assert (answer.status_code, keys(other)) == (200, 1)
    rows = AuditEntry.objects.unscoped("a test").filter(action="account.proof_failed")
    assert rows.filter(organisation=alice.organisation).exists()
    assert not rows.filter(organisation=other).exists()
