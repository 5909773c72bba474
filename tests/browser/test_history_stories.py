"""Looking at yesterday: a range of time is chosen, a moment pointed at, and its values read, with scripts and without."""

from __future__ import annotations

from datetime import datetime

import pytest
from playwright.sync_api import expect

from .conftest import fits, tabs_fit

CHARTS = 5


@pytest.fixture
def history(console):
    return console.address(f"instances/{console.instances['orders']}/history")


def test_pointing_at_a_moment_shows_its_values_in_all_charts(open_page, history):
    page = open_page("alice")
    page.goto(f"{history}?range=24h")
    readouts = page.locator(".readout")
    expect(readouts).to_have_count(CHARTS)
    strip = page.locator(".plot-card").first.locator(".strip").nth(20)
    at = strip.get_attribute("data-at")
    strip.hover()
    for number in range(CHARTS):
        expect(readouts.nth(number)).to_contain_text("0: ")  # ten minutes each
    assert len({text[:16] for text in readouts.all_inner_texts()}) == 1
    expect(readouts.first).to_contain_text("limit 20 MiB/s")
    expect(page.locator(f'.strip.on[data-at="{at}"]')).to_have_count(CHARTS)
    page.get_by_role("heading", name="orders").hover()
    expect(readouts.first).to_be_empty()


@pytest.mark.parametrize("width", [1280, 1024, 390])
def test_all_tabs_and_the_table_of_requests_are_in_sight(open_page, history, width):
    page = open_page("alice", viewport={"width": width, "height": 800})
    page.goto(history)
    expect(page.locator(".tabs").get_by_role("link", name="Settings")).to_be_in_viewport(ratio=1)
    assert tabs_fit(page)
    assert fits(page)


def test_on_a_phone_the_tab_of_the_page_is_in_sight(open_page, history):
    page = open_page("alice", viewport={"width": 360, "height": 800})
    page.goto(history)
    expect(page.locator('.tabs a[aria-current="page"]').first).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0


def test_from_the_overview_to_another_range_and_into_a_table_by_keyboard(open_page, console, history):
    page = open_page("alice")
    page.goto(console.address(f"instances/{console.instances['orders']}"))
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("heading", name="The last hour")).to_be_visible()
    page.get_by_role("link", name="400 days").press("Enter")
    expect(page.get_by_role("heading", name="The last 400 days")).to_be_visible()
    summary = page.get_by_text("Storage as a table")
    summary.focus()
    summary.press("Enter")
    table = page.get_by_role("region", name="Storage, values")
    expect(table).to_be_visible()
    assert table.get_by_role("row").count() > 100
    expect(table.get_by_role("row").filter(has_text="100 GiB").first).to_be_visible()


def test_without_scripts_ranges_are_links_and_moments_have_titles(open_page, history):
    page = open_page("alice", java_script_enabled=False)
    page.goto(history)
    page.get_by_role("link", name="7 days").click()
    expect(page.get_by_role("heading", name="The last 7 days")).to_be_visible()
    expect(page.get_by_role("img")).to_have_count(CHARTS)
    assert "average" in page.locator(".strip title").first.text_content()


def test_what_happened_is_marked_told_to_the_pointer_and_in_the_table(open_page, history):
    page = open_page("alice")
    page.goto(f"{history}?range=24h")
    card = page.locator(".plot-card").first
    expect(card.locator(".event-mark.fired").first).to_be_visible()
    expect(card.locator(".legend").get_by_text("Alarm fired")).to_be_visible()
    card.get_by_text("Produced as a table").click()
    row = card.get_by_role("row").filter(has_text="Alarm fired: A third of the storage").first
    expect(row).to_be_visible()
    stamp = row.get_by_role("rowheader").inner_text()
    moment = int(datetime.strptime(f"{stamp} +0000", "%Y-%m-%d %H:%M %z").timestamp())
    card.locator(f'.strip[data-at="{moment}"]').hover()
    expect(card.locator(".readout")).to_contain_text("Alarm fired: A third of the storage")
