"""Somebody looks for a message, opens it, and watches what he has sent come in."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .conftest import fits
from .test_accessibility import violations

pytestmark = pytest.mark.timeout(180)


def test_finding_opening_and_watching_messages(open_page, console, look):
    words = look.words
    page = open_page("alice", look=look)
    topic = console.address(f"instances/{console.instances['orders']}/topics/shipments.v2")
    page.goto(topic)
    page.get_by_role("link", name=words("Messages"), exact=True).click()
    expect(page.get_by_text(words.says("Looked at"))).to_be_visible()
    page.get_by_label(words("Value contains")).fill("order")
    page.get_by_role("button", name=words("Show")).click()
    row = page.get_by_role("row").filter(has_text="order-24")
    row.locator("summary").first.press("Enter")
    expect(row.get_by_role("region", name=words("Value as JSON"))).to_contain_text("Åse")
    found = violations(page, "messages")
    assert page.title() != "hacked"

    page.goto(f"{topic}/messages?live=1&partition=5")
    sender = open_page("alice")
    sender.goto(f"{topic}/messages/new")
    sender.get_by_label("Value", exact=True).fill(f"from the {look.name}")
    sender.get_by_label("Partition").fill("5")
    sender.get_by_role("button", name="Send it").click()
    expect(sender.get_by_text("The message is at offset")).to_be_visible()
    expect(page.get_by_text(f"from the {look.name}")).to_be_visible()
    page.get_by_role("link", name=words("Pause"), exact=True).click()
    expect(page.get_by_role("link", name=words("Live"), exact=True)).to_be_visible()
    assert fits(page)
    assert found == []
