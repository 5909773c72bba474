"""Somebody goes to a topic by the keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import SCREENS
from .test_accessibility import violations

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    ("scheme", "screen"),
    [
        ("light", "desktop"),
        ("dark", "phone"),
        pytest.param("dark", "desktop", marks=pytest.mark.long),
        pytest.param("light", "phone", marks=pytest.mark.long),
    ],
)
def test_to_a_topic_without_a_mouse(open_page, console, screen, scheme):
    page = open_page("alice", viewport=SCREENS[screen], color_scheme=scheme)
    page.goto(console.address("operations"))
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Page, instance, topic or group")
    expect(box).to_be_focused()
    expect(page.get_by_role("option", name="Instances")).to_have_attribute("aria-selected", "true")
    box.press_sequentially("shipm")
    option = page.get_by_role("option", name=re.compile("^shipments.v2"))
    expect(option).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-activedescendant", option.get_attribute("id"))
    expect(page.locator("#palette-count")).to_have_text("2 places found")  # and a load of it
    found = violations(page, "palette")
    box.press("Enter")
    expect(page).to_have_url(re.compile("/topics/shipments.v2$"))
    page.keyboard.press("Control+k")
    expect(box).to_be_focused()
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("link", name="All results")).to_have_attribute("href", re.compile("/search$"))
    box.press("ArrowDown")
    expect(page.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
    box.fill("reset offsets of")
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    box.fill("nothing of this name")
    expect(page.get_by_role("option")).to_have_count(0)
    expect(page.get_by_role("link", name="All results")).to_have_attribute("href", re.compile("/search\\?q=nothing"))
    box.press("Enter")
    expect(page).to_have_url(re.compile("/search\\?q=nothing"))
    expect(page.get_by_text("Nothing fits.")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    assert found == []
