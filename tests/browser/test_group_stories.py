"""Somebody sees that a group lags, stops its consumers, looks at what a reset would do, and resets it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .test_accessibility import SCREENS, violations

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_seeing_lag_and_resetting_a_group(open_page, console, screen, scheme):
    page = open_page("alice", viewport=SCREENS[screen], color_scheme=scheme)
    page.goto(console.address(f"instances/{console.instances['orders']}"))
    page.get_by_role("link", name="Groups").click()
    row = page.get_by_role("row", name=re.compile("^billing"))
    expect(row).to_contain_text("Stable")
    expect(row).to_contain_text(re.compile(r"\d records"))
    found = violations(page, "groups")

    page.get_by_role("link", name="billing").click()
    facts = page.get_by_label("About the group")
    expect(facts).to_contain_text(re.compile(r"\d (h|min|s) old"))
    expect(facts).to_contain_text(re.compile(r"Reads\s*[\d.]+ a second"))  # by itself, at the second look
    expect(facts).to_contain_text(re.compile(r"Caught up\s*in \d+ min"))
    expect(page.get_by_role("table", name="Members")).to_contain_text("10.20.0.1")
    found += violations(page, "group")

    page.get_by_role("link", name="Move offsets").click()
    expect(page.get_by_text("offsets move only after its consumers are stopped")).to_be_visible()
    expect(page.get_by_label("Time, UTC")).to_be_hidden()
    page.get_by_label("A number of records forward or back").check()
    page.get_by_role("spinbutton", name=re.compile("^Records")).fill("-100")
    page.get_by_label("Partitions").fill("0, 2")
    page.get_by_role("button", name="Preview").click()
    preview = page.get_by_role("region", name="What would happen")
    expect(preview).to_contain_text(re.compile(r"records are read again, 0 records are skipped"))
    expect(page.get_by_role("button", name=re.compile("^Move"))).to_be_hidden()  # its members live

    console.switch("consumers-stopped", on=True)
    page.get_by_role("button", name="Preview").click()
    expect(preview).to_contain_text("100 read again")
    expect(preview).to_contain_text("the nearest that is kept")  # of 40 records
    found += violations(page, "preview")
    page.get_by_role("button", name="Move 2 offsets").press("Enter")
    expect(page.get_by_text("2 offsets were moved.")).to_be_visible()
    expect(page.get_by_text("No consumer is a member now.")).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    assert found == []
    page.get_by_role("link", name="Move offsets").click()  # as it was, for whoever comes next
    page.get_by_label("The end: skip everything").check()
    page.get_by_label("Partitions").fill("2")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Move 1 offset").click()
    expect(page.get_by_text("1 offset was moved.")).to_be_visible()
