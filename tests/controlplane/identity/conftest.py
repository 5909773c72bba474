"""People in front of the console, and what they find in their mailbox. The worker is played by the test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.test import Client

from controlplane.accounts import joining
from controlplane.accounts.identity import addresses
from controlplane.accounts.models import User
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.mail import outbox
from controlplane.mail.outbox import send_due
from tests.controlplane.conftest import CONSOLE_URL
from tests.controlplane.console.conftest import at_alice, at_bob, at_viewer, quick_passwords

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["at_alice", "at_bob", "at_viewer", "quick_passwords"]
PASSWORD = "water over the wheel"


class Time:
    """The system's clock, until it is told to pass."""

    def __init__(self) -> None:
        self.now = SYSTEM_CLOCK.now()

    def passes(self, how_long: timedelta) -> None:
        self.now += how_long


@pytest.fixture
def time(monkeypatch):
    found = Time()
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: found.now)
    return found


class Mailbox:
    """What has arrived at an address; the worker sends first."""

    def __init__(self, server) -> None:
        self._server = server

    def of(self, address: str) -> list:
        send_due()
        return [mail for mail in self._server.mails if mail["To"] == address]

    def subjects(self, address: str) -> list[str]:
        return [mail["Subject"] for mail in self.of(address)]

    def link(self, address: str) -> str:
        """The path of the link in the last mail that has one."""
        return re.findall(rf"{CONSOLE_URL}(/\S+)", "\n".join(mail.get_content() for mail in self.of(address)))[-1]


@pytest.fixture
def mailbox(db, mails) -> Mailbox:
    return Mailbox(mails)


def sign_up(email: str = "dora@example.com", organisation: str = "Mill") -> Client:
    """Somebody who is new, signed in.

    Where the service sends mail, an account of before: its address waits to be confirmed. Others begin with the link
    (test_signing_up.py).
    """
    browser = Client()
    if outbox.is_on():
        user, _ = joining.sign_up(email=email, password=PASSWORD, name="Dora", organisation_name=organisation)
        addresses.verification_send(user=user)
        browser.force_login(user)
        return browser
    answer = browser.post(
        "/sign-up", {"email": email, "name": "Dora", "organisation_name": organisation, "password": PASSWORD}
    )
    assert answer.status_code == 302, answer.content
    return browser


def sign_in(email: str = "dora@example.com", password: str = PASSWORD, **options) -> tuple[Client, object]:
    browser = Client()
    return browser, browser.post("/sign-in", {"email": email, "password": password}, **options)


def person(email: str = "dora@example.com") -> User:
    return User.objects.get(email=email)


def audited(action: str) -> list[tuple[str, str, dict]]:
    """Who, on what, with which details: entries of an action, the oldest first."""
    rows = AuditEntry.objects.unscoped("a test").filter(action=action).order_by("pk")
    return [(row.actor, row.target, row.detail) for row in rows]
