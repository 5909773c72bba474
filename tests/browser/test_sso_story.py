"""An owner sets up a provider, somebody who is invited comes in by it, and passwords lead in no more: with one on loopback."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.controlplane.sso.provider import CLIENT, SECRET

from .conftest import SCREENS
from .test_accessibility import violations
from .test_identity_story import PASSWORD, link

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def with_provider(console):
    console.switch("letters", on=True)
    console.switch("provider", on=True)
    return console


def signed_up(page, console, address, organisation):
    """The address of the organisation's pages."""
    page.goto("/sign-up")
    page.get_by_label("Email").fill(address)
    page.get_by_label("Organisation").fill(organisation)
    page.get_by_role("button", name="Send a link").click()
    page.goto(link(console, address, "Confirm your e-mail address"))
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="No instance yet")).to_be_visible()
    return re.search(r"/(org-[a-z0-9]+)/", page.url)[1]


def at_corp(page, who):
    """Follow the link, and sign in there."""
    page.get_by_role("link", name="Continue at Corp").click()
    expect(page.get_by_role("heading", name="Corp")).to_be_visible()
    page.get_by_label("Name").fill(who)
    page.get_by_role("button", name="Sign in").click()


def by_organisation(page, organisation, who):
    page.goto(f"/sign-in/sso?organisation={organisation}")
    page.get_by_role("button", name="Continue").click()
    at_corp(page, who)


@pytest.mark.parametrize("screen", SCREENS)
def test_from_a_provider_to_a_rule(open_page, with_provider, screen):
    console, size = with_provider, {"viewport": SCREENS[screen]}
    page, owner, guest = open_page(**size), f"{screen}-olga", f"{screen}-gwen"
    organisation = signed_up(page, console, f"{owner}@example.com", f"Quay-{screen}")

    page.goto(f"/{organisation}/sso")
    page.get_by_label("Name of the provider").fill("Corp")
    page.get_by_label("Issuer").fill(console.provider)
    page.get_by_label("Client id").fill(CLIENT)
    page.get_by_label("Client secret").fill(SECRET)
    page.locator("form", has=page.get_by_label("Issuer")).get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. Connect your own account now to test it.")).to_be_visible()
    found = violations(page, "a provider that was not tested")
    page.get_by_role("button", name="Connect").click()
    found += violations(page, "the way to the provider")
    at_corp(page, owner)
    expect(page.get_by_text("You are connected.")).to_be_visible()
    page.get_by_label("In force").check()
    page.locator("form", has=page.get_by_label("In force")).get_by_role("button", name="Save").click()
    expect(page.get_by_text("Members sign in here:")).to_be_visible()
    expect(page.get_by_text("No owner has a second factor")).to_be_visible()
    found += violations(page, "a provider in force")

    page.goto(f"/{organisation}/members")
    page.get_by_label("Email").fill(f"{guest}@example.com")
    page.get_by_role("button", name="Send invitation").click()
    expect(page.get_by_text(f"An invitation was sent to {guest}@example.com.")).to_be_visible()
    invitation = link(console, f"{guest}@example.com", "You are invited to Sluice")

    stranger = open_page(**size)
    stranger.goto(invitation)
    found += violations(stranger, "an invitation with a provider")
    stranger.get_by_role("button", name="Join by Corp").click()
    found += violations(stranger, "the way to join by the provider")
    at_corp(stranger, "eve")
    expect(
        stranger.get_by_text("The provider does not say that you have the address which was invited")
    ).to_be_visible()
    found += violations(stranger, "another address than the invited one")

    stranger.goto(invitation)
    stranger.get_by_role("button", name="Join by Corp").click()
    at_corp(stranger, guest)
    expect(stranger.get_by_text(f"You are a member of Quay-{screen} now.")).to_be_visible()
    expect(stranger.get_by_role("heading", name="No instance yet")).to_be_visible()
    stranger.goto("/account")
    expect(stranger.get_by_text("you are signed in by your organisation", exact=False)).to_be_visible()

    by_corp = open_page(**size)
    by_organisation(by_corp, organisation, owner)
    expect(by_corp.get_by_role("heading", name="No instance yet")).to_be_visible()
    by_corp.goto(f"/{organisation}/sso")
    by_corp.get_by_label("Required").check()
    by_corp.locator("form", has=by_corp.get_by_label("In force")).get_by_role("button", name="Save").click()
    expect(by_corp.get_by_role("heading", name="Is it you?")).to_be_visible()
    by_corp.get_by_label("Password").fill(PASSWORD)
    by_corp.get_by_role("button", name="Continue").click()
    expect(by_corp.get_by_text("No owner gets in without the provider")).to_be_visible()
    found += violations(by_corp, "a provider that is required")

    page.goto(f"/{organisation}/instances")
    expect(page.get_by_text(re.compile("requires its members to sign in by Corp"))).to_be_visible()
    by_organisation(open_page(**size), organisation, guest)
    by_corp.goto(f"/{organisation}/keys")
    by_corp.get_by_label("Name").fill("made by sso")
    by_corp.get_by_role("button", name="Create key").click()
    expect(by_corp.get_by_role("heading", name="Your new key")).to_be_visible()
    expect(by_corp.get_by_text("made by single sign-on: until")).to_be_visible()
    found += violations(by_corp, "a key that was made by single sign-on")
    assert found == []
