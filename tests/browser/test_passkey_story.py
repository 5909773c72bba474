"""Somebody adds a passkey, signs in by it, uses it as second factor, and removes it: Chromium's own authenticator."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .conftest import SCREENS
from .test_accessibility import violations
from .world import PASSWORD

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def at_localhost(console, open_page):
    """A page where passkeys are bound to `localhost`."""
    console.switch("passkeys", on=True)

    def opened(**options):
        page = open_page(**options)
        url = console.url.replace("127.0.0.1", "localhost")
        page.goto(f"{url}/sign-in")
        expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_visible()
        return page, url

    return opened


def authenticator(page):
    """A phone with a finger on it."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    return session, session.send("WebAuthn.addVirtualAuthenticator", {"options": options})["authenticatorId"]


def sign_in(page, url):
    page.goto(f"{url}/sign-in")
    page.get_by_label("Email").fill("bob@example.com")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_out(page, url):
    page.context.clear_cookies()
    page.goto(f"{url}/sign-in")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_passkey_from_adding_to_removing(at_localhost, screen):
    page, url = at_localhost(viewport=SCREENS[screen])
    session, key = authenticator(page)
    sign_in(page, url)
    page.wait_for_url(lambda address: "/sign-in" not in address)
    page.goto(f"{url}/account/passkeys")
    expect(page.get_by_role("heading", name="No passkey yet")).to_be_visible()
    found = violations(page, "no passkey")
    page.get_by_label("Name").fill("phone")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("The passkey was added.")).to_be_visible()
    expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    found += violations(page, "a passkey and its recovery codes")

    sign_out(page, url)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(lambda address: "/sign-in" not in address)
    expect(page.get_by_role("heading", name="Instances")).to_be_visible()

    sign_out(page, url)
    sign_in(page, url)
    expect(page.get_by_role("heading", name="Enter your code")).to_be_visible()
    found += violations(page, "the second step by a passkey")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Instances")).to_be_visible()

    sign_out(page, url)
    session.send("WebAuthn.setUserVerified", {"authenticatorId": key, "isUserVerified": False})
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("No passkey was used. Try again, or choose another way.")).to_be_visible()
    session.send("WebAuthn.setUserVerified", {"authenticatorId": key, "isUserVerified": True})
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", name="Instances")).to_be_visible()

    page.goto(f"{url}/account/passkeys")
    page.get_by_text("Remove…").click()
    expect(page.get_by_text("This is your only second factor.")).to_be_visible()
    found += violations(page, "a passkey is removed")
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("The passkey was removed.")).to_be_visible()
    expect(page.get_by_role("heading", name="No passkey yet")).to_be_visible()
    assert found == []


def test_a_browser_without_passkeys_is_told_so(at_localhost):
    page, url = at_localhost()
    page.add_init_script("delete window.PublicKeyCredential")
    page.goto(f"{url}/sign-in")
    expect(page.get_by_text("This browser knows no passkeys here. Use a newer one, or another way.")).to_be_visible()
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_disabled()
