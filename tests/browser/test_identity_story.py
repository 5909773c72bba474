"""Somebody signs up, confirms the address, has a second factor, ends a session and forgets the password; mails are real."""

from __future__ import annotations

import re
import time

import pyotp
import pytest
from playwright.sync_api import expect

from .conftest import SCREENS, taken
from .test_accessibility import violations

pytestmark = pytest.mark.timeout(240)
PASSWORD, NEW = "water over the wheel", "a mill without a river"
STEP_S = 30


def link(console, address, subject):
    """Of the last mail with this subject."""
    mails = taken(console, lambda found: [each for each in found["mails"] if each[0] == address and each[1] == subject])
    return re.search(r"^ {4}(http://\S+)\s*$", mails[-1][2], re.MULTILINE)[1]


def code_after(secret, used):
    """A code that was not used: at most a step has to be waited for."""
    until = time.monotonic() + STEP_S + 5
    while (code := pyotp.TOTP(secret).now()) in used:
        assert time.monotonic() < until
        time.sleep(0.5)
    used.add(code)
    return code


def sign_in(page, address, password):
    page.goto("/sign-in")
    page.get_by_label("Email").fill(address)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("screen", ["desktop", pytest.param("phone", marks=pytest.mark.long)])
def test_from_signing_up_to_a_forgotten_password(open_page, console, screen):
    page, address = open_page(viewport=SCREENS[screen]), f"{screen}-dora@example.com"
    console.switch("letters", on=True)
    page.goto("/password/forgotten")
    expect(page.get_by_text("This installation sends no e-mail")).to_have_count(0)
    found = violations(page, "a password is forgotten")

    page.goto("/sign-up")
    page.get_by_label("Email").fill(address)
    page.get_by_label("Organisation").fill(f"Mill-{screen}")
    found += violations(page, "signing up where a mail is sent")
    page.get_by_role("button", name="Send a link").click()
    expect(page.get_by_text(f"A mail is on its way to {address}.")).to_be_visible()
    found += violations(page, "a mail is on its way")
    page.goto(link(console, address, "Confirm your e-mail address"))
    found += violations(page, "the link to an account")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="No instance yet")).to_be_visible()

    page.goto("/account")
    page.get_by_role("link", name="Set it up").click()
    page.get_by_role("button", name="Set up").click()
    secret = page.locator("#totp-secret").inner_text().replace(" ", "")
    expect(page.get_by_role("img", name="QR code of the secret below")).to_be_visible()
    found += violations(page, "the QR code")
    used = set()
    page.get_by_role("textbox", name="Code").fill(code_after(secret, used))
    page.get_by_role("button", name="Switch on").click()
    expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    expect(page.locator("#recovery-codes")).to_have_text(re.compile(r"^(\w{4}-){3}\w{4}\s"))
    found += violations(page, "recovery codes")

    other = open_page(viewport=SCREENS[screen])
    sign_in(other, address, PASSWORD)
    expect(other.get_by_role("heading", name="Enter your code")).to_be_visible()
    found += violations(other, "the second step")
    other.get_by_role("textbox", name="Code").fill(code_after(secret, used))
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("heading", name="Instances")).to_be_visible()

    page.goto("/account/sessions")
    found += violations(page, "two sessions")
    page.get_by_role("button", name="End the session of").click()
    expect(page.get_by_text("The session has ended.")).to_be_visible()
    other.goto("/account")
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()

    other.get_by_role("link", name="Forgot your password?").click()
    other.get_by_label("Email").fill(address)
    other.get_by_role("button", name="Send a link").click()
    expect(other.get_by_text("a link is on its way there")).to_be_visible()
    other.goto(link(console, address, "Choose a new password"))
    found += violations(other, "a new password")
    other.get_by_label("New password").fill(NEW)
    other.get_by_role("button", name="Change password").click()
    expect(other.get_by_text("Sign in with the new one.")).to_be_visible()
    sign_in(other, address, NEW)
    other.get_by_role("textbox", name="Code").fill(code_after(secret, used))
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("heading", name="Instances")).to_be_visible()
    page.goto("/account")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert found == []
