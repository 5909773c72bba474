"""Where single sign-on is required and the provider is away: who gets in, who does not, and what operators can do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from controlplane.accounts import services as accounts
from controlplane.accounts.models import User
from controlplane.sso.models import SsoProvider
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Role
from tests.controlplane.console.conftest import at_alice, at_bob, quick_passwords, text_of
from tests.controlplane.identity.conftest import Mailbox, audited, time
from tests.controlplane.identity.test_second_factor import App

from .test_signing_in import connect, entered, in_force, is_in, page, provider

__all__ = ["at_alice", "at_bob", "in_force", "provider", "quick_passwords", "time"]
DAY = timedelta(days=1)


def require(at_alice, alice, *, is_required=True):
    at_alice.client.post(page(alice), {"do": "switch", "is_on": "1"} | ({"is_required": "1"} if is_required else {}))
    assert SsoProvider.objects.unscoped("a test").get().is_required == is_required


def with_factor_since(person, moment):
    User.objects.filter(pk=person.user.pk).update(second_factor_at=moment)


def test_a_second_factor_that_was_set_up_afterwards_is_no_way_in(in_force, at_alice, alice, time):
    """Whoever has no more than an owner's password sets one up."""
    require(at_alice, alice)
    time.passes(timedelta(minutes=1))
    browser = Client()
    browser.force_login(alice.user)
    App(browser, time).switch_on()
    answer = browser.get(f"/{alice.organisation.id}/instances")
    assert answer.status_code == 403
    assert "your second factor was set up after that" in text_of(answer).lower()
    shown = browser.get(page(alice))
    assert shown.status_code == 403, "alice is connected: by a password she does not connect another account"
    assert browser.post(page(alice), {"do": "switch"}).status_code == 403
    assert SsoProvider.objects.unscoped("a test").get().is_required


@pytest.mark.parametrize(("since", "gets_in"), [(-DAY, True), (timedelta(0), True), (timedelta(seconds=1), False)])
def test_one_that_was_there_before_is_a_way_in_for_owners(in_force, at_alice, alice, time, since, gets_in):
    require(at_alice, alice)
    with_factor_since(alice, time.now + since)
    assert is_in(at_alice.client, alice.organisation) == gets_in


def test_members_have_no_way_in_by_theirs(in_force, at_alice, at_bob, alice, bob, time):
    require(at_alice, alice)
    with_factor_since(bob, time.now - DAY)
    assert not is_in(at_bob.client, alice.organisation)
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    assert is_in(at_bob.client, alice.organisation), "an owner made him one"


def test_saying_it_again_makes_no_younger_one_count(in_force, at_alice, alice, time):
    require(at_alice, alice)
    time.passes(DAY)
    with_factor_since(alice, time.now - timedelta(hours=1))
    assert alice.api.patch("/api/v1/sso", {"required": True}).status_code == 200
    assert not is_in(at_alice.client, alice.organisation)
    for required in (False, True):
        assert alice.api.patch("/api/v1/sso", {"required": required}).json()["required"] == required
    assert is_in(at_alice.client, alice.organisation), "switched off and on again by an owner who is in, it counts"


def test_owners_see_who_gets_in_without_the_provider(in_force, at_alice, alice, bob, time):
    text = text_of(at_alice.client.get(page(alice)))
    assert "No owner has a second factor" in text
    assert alice.api.get("/api/v1/sso").json()["owners_without"] == []
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    with_factor_since(bob, time.now - DAY)
    assert "if it were required now: bob@example.com" in text_of(at_alice.client.get(page(alice)))
    require(at_alice, alice)
    with_factor_since(alice, time.now + DAY)
    assert alice.api.get("/api/v1/sso").json()["owners_without"] == ["bob@example.com"]
    by_sso, _ = entered(alice.organisation, in_force, "alice-there")
    assert "Owners who get in without the provider: bob@example.com" in text_of(by_sso.get(page(alice)))
    with_factor_since(bob, None)
    assert "No owner gets in without the provider" in text_of(by_sso.get(page(alice)))


def test_a_rule_without_a_moment_lets_no_owner_in_and_nobody_is_told_otherwise(in_force, at_alice, alice, time):
    """A process of the release before requires it, while an upgrade is under way: it writes no moment."""
    with_factor_since(alice, time.now - DAY)
    SsoProvider.objects.unscoped("a test").update(is_required=True, required_at=None)
    assert not is_in(at_alice.client, alice.organisation)
    assert alice.api.get("/api/v1/sso").json()["owners_without"] == []
    assert alice.api.patch("/api/v1/sso", {"required": True}).json()["owners_without"] == ["alice@example.com"]
    assert is_in(at_alice.client, alice.organisation), "said again, it has one"


def test_whoever_does_not_manage_is_not_told_which_owners(in_force, at_bob, bob, alice, time):
    with_factor_since(alice, time.now - DAY)
    assert "alice@example.com" not in text_of(at_bob.client.get(page(bob)))


def test_operators_let_a_locked_out_owner_in_and_it_is_told_and_on_record(in_force, at_alice, alice, mails, time):
    accounts.admin_ensure(email="opal@example.com", password="x")
    require(at_alice, alice)
    assert not is_in(at_alice.client, alice.organisation)
    call_command("sso_release", alice.organisation.id, by="opal@example.com", reason="called back, ticket 7")
    assert is_in(at_alice.client, alice.organisation)
    row = SsoProvider.objects.unscoped("a test").get()
    assert (row.is_on, row.is_required, row.required_at) == (True, False, None)
    (told,) = audited("sso.release")
    assert (told[0], told[2]) == (
        "opal@example.com",
        {"reason": "called back, ticket 7", "is_required": {"from": True, "to": False}},
    )
    assert "Single sign-on is not required any more" in Mailbox(mails).subjects("alice@example.com")


@pytest.mark.parametrize("wrong", ["organisation", "operator", "again", "none"])
def test_the_command_says_why_it_cannot(in_force, at_alice, alice, bob, wrong):
    accounts.admin_ensure(email="opal@example.com", password="x")
    if wrong != "again":
        require(at_alice, alice)
    if wrong == "none":
        SsoProvider.objects.unscoped("a test").get().delete()
    organisation = "org-000000000000" if wrong == "organisation" else alice.organisation.id
    by = "bob@example.com" if wrong == "operator" else "opal@example.com"
    with pytest.raises(CommandError):
        call_command("sso_release", organisation, by=by, reason="r")
    assert SsoProvider.objects.unscoped("a test").filter(is_required=True).exists() == (
        wrong in ("organisation", "operator")
    )


def test_who_gets_in_by_the_provider_is_asked_for_no_second_factor_of_ours(in_force, at_alice, at_bob, alice, bob):
    connect(at_bob.client, bob, in_force, "bob-there")
    require(at_alice, alice)
    assert is_in(entered(alice.organisation, in_force, "bob-there")[0], alice.organisation)
