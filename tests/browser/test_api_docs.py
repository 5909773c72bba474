"""The reference of REST is read and tried in a real browser, and asks no other host for anything."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize(
    "look", [{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}]
)
def test_operations_are_listed_and_opened(console, open_page, look):
    page, said, asked = open_page(None, **look), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/docs/api")
    page.locator("#operations-tag-account").click()
    page.locator("#operations-account-me_get").click()
    expect(page.get_by_text("Who the presented key speaks for, in which organisation and role,").first).to_be_visible()
    assert said == [], "the policy of the console allows all of it"
    assert all(url.startswith(console.url) for url in asked)


def test_a_call_is_tried_with_a_key(open_page, console):
    page = open_page("alice")
    page.goto(console.address("keys"))
    page.get_by_label("Name", exact=True).fill("tried")
    page.get_by_role("button", name="Create key").click()
    key = page.locator("#new-key").inner_text()
    page.get_by_role("link", name="REST API").click()
    page.get_by_role("button", name="Authorize").click()
    page.locator(".auth-container input").fill(key)
    page.locator(".auth-btn-wrapper").get_by_role("button", name="Apply credentials").click()
    page.get_by_role("button", name="Close").click()
    page.locator("#operations-tag-account").click()
    page.locator("#operations-account-me_get").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table .response .response-col_description")).to_contain_text(
        "alice@example.com"
    )
