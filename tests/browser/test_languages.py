"""The switch of languages in a real browser: the page, what scripts say, and what a phone shows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from controlplane.billing.pricing.rating import Month

from . import pages
from .conftest import SCREENS, in_chinese
from .test_accessibility import HIDDEN_COLUMNS, OF_TEXTS, violations
from .world import PASSWORD

pytestmark = pytest.mark.timeout(500)
CHINESE = "简体中文"

# Texts of a page that hold four English words in a row. Commands, names, what tenants have written and contents of messages are
# no texts of ours, and stand in these.
ENGLISH = """() => {
  const theirs = "code, pre, textarea, input, .mono, .content, .tree, .by-cli, noscript, script, [lang=en]";
  const found = new Set();
  for (const said of document.querySelectorAll("[aria-label], [data-label], [placeholder], [title]")) {
    if (said.closest(theirs)) continue;
    for (const name of ["aria-label", "data-label", "placeholder", "title"]) found.add(said.getAttribute(name) ?? "");
  }
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentElement.closest(theirs)) found.add(walk.currentNode.textContent);
  return [...found].map((text) => text.replace(/\\s+/g, " ").trim()).filter((text) => /([a-z]+[ ,;:]+){3}[a-z]+/.test(text));
}"""
THEIRS = (
    "A third of the storage",  # an alarm's name
    "Every order as the shop takes it",  # a topic's note, which the audit log repeats
    "answers 503; it will be there again tomorrow",  # what a receiver's server said
    "broker 3 does not come back, and its counters are lost",  # an operator's reasons
    "A counter file that a power cut tore",
    "Half a day on which produce requests of one partition were refused",
    "no other broker may take it",
    # Members of requests, as REST calls them: the audit log names them.
    *("produce bytes per s", "allow everyone if no acl found", "bandwidth mib per s"),
)
"""Texts in the world of these tests that people or programs have written."""


def waived(console):
    """Why an invoice waited, in the audit log: as it was written then."""
    end = Month(*map(int, console.month.split("-"))).end
    return f"metering has come to {end - timedelta(hours=3):%Y-%m-%d %H:%M} UTC; it must come to {end:%Y-%m-%d}"


def test_the_switch_changes_every_page_and_back(console, open_page):
    page = open_page("alice")
    page.goto(console.address("instances"))
    page.get_by_role("button", name=CHINESE).click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.get_by_role("link", name="账单")).to_be_visible()
    page.goto(console.address(f"instances/{console.instances['orders']}"))
    expect(page.get_by_role("heading", name="接入", exact=True)).to_be_visible()
    expect(page.locator(".broker-name").first).to_have_text("Broker 1")
    expect(page.locator("[data-live-state]")).to_have_text("实时")
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", name="Connect", exact=True)).to_be_visible()


def test_a_chinese_browser_on_a_phone_is_answered_in_chinese(console, open_page):
    page = open_page(None, locale="zh-CN", viewport={"width": 390, "height": 844})
    page.goto("/sign-in")
    page.get_by_label("邮箱").fill("alice@example.com")
    page.get_by_label("密码").fill(PASSWORD)
    page.get_by_role("button", name="登录").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    page.goto(console.address(f"instances/{console.instances['orders']}/topics"))
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.get_by_role("link", name="新建主题")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("screen", SCREENS)
def test_every_page_is_chinese_fits_and_satisfies_axe(console, open_page, screen):
    found, theirs = [], (*THEIRS, waived(console))
    for person, addresses in (
        (None, pages.strangers(console)),
        ("alice", pages.tenants(console)),
        ("admin", pages.operators(console)),
    ):
        page = in_chinese(open_page(person, viewport=SCREENS[screen]), console)
        for name, address in addresses.items():
            pages.visit(page, name, address)
            page.wait_for_timeout(150)
            if screen == "desktop":
                found += [
                    f"{name}: {text}" for text in page.evaluate(ENGLISH) if not any(each in text for each in theirs)
                ]
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wide > 0:
                found.append(f"{name}: {wide} px wider than a screen of {SCREENS[screen]['width']}")
            if screen == "phone":
                found += violations(page, name, OF_TEXTS)
                found += [f"{name}: {hidden}" for hidden in page.evaluate(HIDDEN_COLUMNS)]
    assert not found, "\n".join(found)
