"""Somebody looks for a message, opens it, and watches what he has sent come in."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .test_accessibility import SCREENS, violations

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("screen", SCREENS)
def test_finding_opening_and_watching_messages(open_page, console, screen):
    page = open_page("alice", viewport=SCREENS[screen])
    topic = console.address(f"instances/{console.instances['orders']}/topics/shipments.v2")
    page.goto(topic)
    page.get_by_role("link", name="Messages").click()
    expect(page.get_by_text(re.compile(r"Looked at \d+ messages"))).to_be_visible()
    page.get_by_label("Value contains").fill("order")
    page.get_by_role("button", name="Show").click()
    row = page.get_by_role("row").filter(has_text="order-24")
    row.locator("summary").first.press("Enter")
    expect(row.get_by_role("region", name="Value as JSON")).to_contain_text("Åse")
    found = violations(page, "messages")
    assert page.title() != "hacked"

    page.goto(f"{topic}/messages?live=1&partition=5")
    sender = open_page("alice")
    sender.goto(f"{topic}/messages/new")
    sender.get_by_label("Value", exact=True).fill(f"from the {screen}")
    sender.get_by_label("Partition").fill("5")
    sender.get_by_role("button", name="Send it").click()
    expect(sender.get_by_text("The message is at offset")).to_be_visible()
    expect(page.get_by_text(f"from the {screen}")).to_be_visible()
    page.get_by_role("link", name="Pause").click()
    expect(page.get_by_role("link", name="Live")).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    assert found == []
