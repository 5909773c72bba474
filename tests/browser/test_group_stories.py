"""Somebody sees that a group lags, stops its consumers, looks at what a reset would do, and resets it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import fits
from .test_accessibility import violations

pytestmark = pytest.mark.timeout(180)


def test_seeing_lag_and_resetting_a_group(open_page, console, look):
    words = look.words
    moves = re.compile(f"^{words('Move %(changes)s', changes='').strip()} ?[0-9]")
    page = open_page("alice", look=look)
    page.goto(console.address(f"instances/{console.instances['orders']}"))
    page.get_by_role("link", name=words("Groups"), exact=True).click()
    row = page.get_by_role("row", name=re.compile("^billing"))
    expect(row).to_contain_text("Stable")
    expect(row).to_contain_text(re.compile(rf"\d {words('records')}"))
    found = violations(page, "groups")

    page.get_by_role("link", name="billing").click()
    facts = page.get_by_label(words("About the group"))
    expect(facts).to_contain_text(words.says("%(lag_seconds)s old"))
    expect(facts).to_contain_text(words.says("{amount} a second"))  # by itself, at the second look
    expect(facts).to_contain_text(re.compile(rf"{words('Caught up')}\s*\D*\d+ {words('min')}"))
    expect(page.get_by_role("table", name=words("Members"))).to_contain_text("10.20.0.1")
    found += violations(page, "group")

    page.get_by_role("link", name=words("Move offsets"), exact=True).click()
    expect(page.get_by_text(words.says("offsets move only after its consumers are stopped"))).to_be_visible()
    expect(page.get_by_label(words("Time, UTC"))).to_be_hidden()
    page.get_by_label(words("A number of records forward or back")).check()
    page.get_by_role("spinbutton", name=words("Records")).fill("-100")
    page.get_by_label(words("Partitions")).fill("0, 2")
    page.get_by_role("button", name=words("Preview")).click()
    preview = page.get_by_role("region", name=words("What would happen"))
    expect(preview).to_contain_text(words("are skipped"))
    expect(page.get_by_role("button", name=moves)).to_be_hidden()  # its members live

    console.switch("consumers-stopped", on=True)
    page.get_by_role("button", name=words("Preview")).click()
    expect(preview).to_contain_text(words("%(again)s read again", again=100))
    expect(preview).to_contain_text(words("the nearest that is kept"))  # of 40 records
    found += violations(page, "preview")
    page.get_by_role("button", name=moves).press("Enter")
    expect(page.get_by_text(words("{changes} offsets were moved.", changes=2))).to_be_visible()
    expect(page.get_by_text(words("No consumer is a member now."))).to_be_visible()
    assert fits(page)
    assert found == []
    page.get_by_role("link", name=words("Move offsets"), exact=True).click()  # as it was, for whoever comes next
    page.get_by_label(words("The end: skip everything that is there")).check()
    page.get_by_label(words("Partitions")).fill("2")
    page.get_by_role("button", name=words("Preview")).click()
    page.get_by_role("button", name=moves).click()
    expect(page.get_by_text(words("1 offset was moved."))).to_be_visible()
