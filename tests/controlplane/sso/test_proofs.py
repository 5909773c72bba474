"""Wrong proofs in a session that an organisation's provider has begun are that organisation's, and lock nobody out elsewhere."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from controlplane.accounts import attempts
from controlplane.accounts.models import ApiKey
from controlplane.core.errors import TooManyAttempts
from controlplane.core.models import AuditEntry
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Role
from tests.controlplane.console.conftest import at_alice, quick_passwords
from tests.controlplane.identity.authenticator import Authenticator
from tests.controlplane.identity.conftest import PASSWORD, Mailbox, time

from .test_signing_in import by_sso, by_sso_with_password, connect, entered, in_force, page, provider, set_up

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


# --- all providers together ---------------------------------------------------------------------------------------------------

DAY = timedelta(seconds=attempts.DAY_S)
QUARTER = timedelta(seconds=attempts.WINDOW_S)


@pytest.fixture
def elsewhere(in_force, by_sso_with_password, at_alice, alice, charlie):
    """Charlie's organisation, of which she is a member, has put the provider in force as well."""
    browser, hers = Client(), Client()
    browser.force_login(charlie.user)
    set_up(browser, charlie, in_force)
    connect(browser, charlie, in_force, "charlie-there")
    browser.post(page(charlie), {"do": "switch", "is_on": "1"})
    tenants.membership_set(organisation=charlie.organisation, user=alice.user, role=Role.OWNER)
    alice.user.refresh_from_db()
    hers.force_login(alice.user)
    assert connect(hers, charlie, in_force, "alice-there").status_code == 302
    return charlie.organisation


def guess(browser, organisation, times, proof="a guess"):
    """What each try is answered with."""
    return [browser.post(f"/{organisation.id}/keys", {"name": "k", "proof": proof}).status_code for _ in range(times)]


def test_all_providers_together_have_twenty_guesses_at_a_person_in_a_day(
    elsewhere, by_sso_with_password, in_force, otherwise, alice, other, time
):
    """However many organisations: a password that was found so opens everything of the person."""
    there = entered(elsewhere, in_force, "alice-there")[0]
    assert guess(by_sso_with_password, alice.organisation, 10) == [422] * 10
    assert guess(there, elsewhere, 10) == [422] * 10
    time.passes(QUARTER)
    for browser, organisation in ((by_sso_with_password, alice.organisation), (there, elsewhere)):
        asked = browser.post(f"/{organisation.id}/keys", {"name": "k", "proof": PASSWORD})
        assert asked.status_code == 429
        assert int(asked.headers["Retry-After"]) > attempts.WINDOW_S, "until the day has ended"
        assert keys(organisation) == 0
    assert guess(otherwise, other, 1, PASSWORD) == [200], "by a session of her own she shows it as ever"
    time.passes(DAY)
    in_force.now_s = time.now.timestamp()
    again = entered(alice.organisation, in_force, "alice-there")[0]
    assert guess(again, alice.organisation, 1, PASSWORD) == [200]


def test_the_person_is_told_once_when_they_are_used_up(by_sso_with_password, alice, mails, time):
    """Also if nobody tries again: whoever counts stops there."""
    mailbox, subject = Mailbox(mails), "Somebody may be guessing your password"
    guess(by_sso_with_password, alice.organisation, 10)
    time.passes(QUARTER)
    guess(by_sso_with_password, alice.organisation, 9)
    assert subject not in mailbox.subjects("alice@example.com")
    guess(by_sso_with_password, alice.organisation, 1)
    assert mailbox.subjects("alice@example.com").count(subject) == 1
    assert alice.organisation.name not in mailbox.of("alice@example.com")[-1].get_content()
    time.passes(QUARTER)
    assert guess(by_sso_with_password, alice.organisation, 3) == [429] * 3
    assert mailbox.subjects("alice@example.com").count(subject) == 1


def test_what_the_person_does_well_gives_nobody_more_guesses(time):
    """Nor does it take any away."""
    for _ in range(attempts.MOST_BY_PROVIDERS - 1):
        attempts.by_provider_begin(email="alice@example.com")
    for _ in range(3):
        assert attempts.by_provider_begin(email="Alice@example.com") == attempts.MOST_BY_PROVIDERS
        attempts.by_provider_succeeded(email="alice@example.com")
    assert attempts.by_provider_begin(email="alice@example.com") == attempts.MOST_BY_PROVIDERS
    with pytest.raises(TooManyAttempts):
        attempts.by_provider_begin(email="alice@example.com")
    assert attempts.by_provider_begin(email="bob@example.com") == 1


def test_a_passkey_is_no_guess(by_sso_with_password, alice, in_force, time):
    """Nothing of the password is learned by one: the person shows by it that it is them when the guesses are used up."""
    for _ in range(attempts.MOST_BY_PROVIDERS):
        attempts.by_provider_begin(email=alice.user.email)
    phone = Authenticator()
    asked = by_sso_with_password.post("/passkeys/challenge", {"purpose": "proof"}).json()
    address = f"/{alice.organisation.id}/keys"
    answer = by_sso_with_password.post(address, {"name": "k", "proof_passkey": phone.show(asked)})
    assert answer.status_code != 429
    assert guess(by_sso_with_password, alice.organisation, 1, PASSWORD) == [429]
