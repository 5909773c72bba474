"""Choosing a size: the price beside the form is that of what is typed, whichever of the three is changed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize("path", ["instances/new", "instances/{orders}/settings"])
def test_each_size_changes_the_price_and_what_is_no_size_has_none(open_page, console, path):
    page = open_page("alice")
    page.goto(console.address(path.format(**console.instances)))
    price = page.locator("#price .amount")
    for name, value in (("storage_gib", "5000"), ("partitions", "9000"), ("bandwidth_mib_per_s", "97")):
        before = price.inner_text()
        page.locator(f"input[name={name}]").fill(value)
        expect(price).not_to_have_text(before)
    page.locator("input[name=storage_gib]").fill("0")
    expect(page.locator("#price")).to_contain_text("There is no price for this.")
    expect(price).to_have_count(0)
