"""Somebody was throttled and wants to know why; somebody changes a topic; an operator looks at the shares."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(180)


def test_whoever_was_throttled_finds_the_reason_and_what_it_was_decided_from(open_page, console):
    page = open_page("alice")
    page.goto(console.address(f"instances/{console.instances['orders']}"))
    page.get_by_role("link", name="Quota").click()
    carried = page.get_by_role("table", name="Produce by broker, now").locator("[data-label=Carries]").first
    expect(carried).to_have_text(re.compile("MiB/s"))
    before = carried.inner_text()
    expect(carried).not_to_have_text(before)  # it goes on by itself

    expect(page.get_by_role("img", name=re.compile("^Produce by hour: most at"))).to_be_visible()
    expect(
        page.get_by_text(re.compile(r"waited \d+\.\d s on broker 2 while the instance used only")).first
    ).to_be_visible()
    page.get_by_text("Details").first.click()
    inputs = page.get_by_role("region", name=re.compile("^Inputs, ")).first
    expect(inputs.get_by_role("row", name=re.compile("^2 4 2 MiB"))).to_be_visible()
    expect(page.get_by_role("table", name="By day, UTC").get_by_role("row")).not_to_have_count(1)


def test_a_topic_gets_more_partitions_once_that_is_confirmed(open_page, console):
    page = open_page("alice")
    page.goto(console.address(f"instances/{console.instances['orders']}/topics/payments"))
    page.get_by_role("link", name="Change", exact=True).click()
    page.get_by_label("Partitions").fill("4")
    page.get_by_label("Retention").fill("240")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Confirm this: it cannot be undone.")).to_be_visible()
    page.get_by_label("I know that this cannot be undone").check()
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("The settings of topic payments were saved.")).to_be_visible()
    expect(page.get_by_text("10 days", exact=True)).to_be_visible()


def test_an_operator_sees_shares_of_limits_change_while_looking(open_page, console):
    page = open_page("admin")
    page.goto("/fleet")
    page.get_by_role("link", name="How limits are shared out").click()
    page.get_by_label("Search by name, id or organisation").fill(console.instances["orders"])
    expect(page.get_by_role("link", name="orders produce")).to_be_visible()
    expect(page.get_by_role("link", name="clickstream produce")).to_be_hidden()
    sums = page.locator("tr.group [data-label='Sum of u']").first
    before = sums.inner_text()
    expect(sums).not_to_have_text(before)
    expect(page.get_by_role("link", name="clickstream produce")).to_be_hidden()  # it polls with its search
    page.get_by_role("link", name="orders produce").click()
    expect(page.get_by_role("heading", name="orders", level=1)).to_be_visible()
