"""Somebody is told by e-mail and webhook that the storage is full, and that it is not any more; both receivers are real."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import fits, taken
from .test_accessibility import violations

pytestmark = pytest.mark.timeout(180)


def test_an_alarm_is_fired_by_email_and_webhook(open_page, console, look):
    words = look.words
    page = open_page("alice", look=look)
    address, name = f"{look.name}@example.com", f"Full-{look.name}"
    page.goto(console.address(f"instances/{console.instances['clickstream']}"))
    page.get_by_role("link", name=words("Alarms"), exact=True).click()
    page.get_by_role("link", name=words("Receivers"), exact=True).click()
    page.get_by_label(words("Name"), exact=True).fill(f"Me-{look.name}")
    page.get_by_label(words("Address")).fill(address)
    page.get_by_role("button", name=words("Add receiver")).click()
    expect(page.get_by_text(words.says("A code was sent to"))).to_be_visible()
    mail = taken(console, lambda found: [each for each in found["mails"] if each[0] == address])[0]
    page.get_by_label(words("Code")).fill(re.search(r"^ {4}(\w{10})\s*$", mail[2], re.MULTILINE)[1])
    page.get_by_role("button", name=words("Confirm")).click()
    expect(page.get_by_text(words.says("is confirmed: alarms can go there"))).to_be_visible()

    page.goto(console.address(f"instances/{console.instances['clickstream']}/receivers"))
    page.get_by_label(words("Name"), exact=True).fill(f"Hook-{look.name}")
    page.get_by_label(words("Webhook"), exact=True).check()
    page.get_by_label(words("Address")).fill(taken(console, lambda found: found.get("hook")))
    page.get_by_role("button", name=words("Add receiver")).click()
    expect(page.locator("#new-secret")).to_have_text(re.compile(r"^whsec_"))
    found = violations(page, "a secret just made")

    page.goto(console.address(f"instances/{console.instances['clickstream']}/new-alarm"))
    page.get_by_label(words("Name"), exact=True).fill(name)
    page.get_by_label(words("Fires when")).select_option("storage_used_percent")
    page.get_by_label(words("Threshold")).fill("95")
    for each in (f"Me-{look.name}", f"Hook-{look.name}"):
        page.get_by_role("checkbox", name=re.compile(re.escape(each))).check()
    found += violations(page, "a new alarm about a figure")
    page.get_by_role("button", name=words("Create alarm")).click()
    row = page.get_by_role("row").filter(has_text=name)
    expect(row.get_by_text(words("OK"), exact=True)).to_be_visible()

    console.switch("storage-full", on=True)
    expect(row.get_by_text(words("Firing"), exact=True)).to_be_visible()

    def told(word):
        return lambda had: (
            any(each[0] == address and each[1].startswith(f"[{word}] {name}") for each in had["mails"])
            and any(
                each["type"] == f"alarm.{word.lower()}" and each["data"]["alarm"]["name"] == name
                for each in had["hooks"]
            )
        )

    taken(console, told("Firing"))
    page.goto(console.address(f"instances/{console.instances['clickstream']}"))
    expect(page.get_by_role("link", name=name)).to_be_visible()
    console.switch("storage-full", on=False)
    taken(console, told("Resolved"))
    # The worker may have looked at the instance's health just before the switch, and at the alarms just after it.
    expect(page.locator("#health").get_by_text(words("Storage is full"))).to_have_count(0)
    page.goto(console.address(f"instances/{console.instances['clickstream']}/timeline"))
    expect(page.get_by_role("row").filter(has_text=words("Alarm resolved")).first).to_be_visible()
    expect(
        page.get_by_role("row").filter(has_text=words("No longer: {subject}", subject=words("Storage is full"))).first
    ).to_be_visible()
    assert fits(page)
    # It goes again: the page of an instance names three that fire, and the stories of other looks have theirs here.
    page.goto(console.address(f"instances/{console.instances['clickstream']}/alarms"))
    page.get_by_role("link", name=name, exact=True).click()
    page.locator("summary").filter(has_text=words("Delete…")).click()
    page.get_by_role("button", name=words("Delete it")).click()
    expect(page.get_by_role("row").filter(has_text=name)).to_have_count(0)
    assert found == []
