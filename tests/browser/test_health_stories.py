"""Something happens to an instance while somebody looks at it: each page says so by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import SCREENS, fits
from .test_accessibility import violations

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("screen", SCREENS)
def test_both_masters_stop_and_one_comes_back(open_page, console, screen):
    page = open_page("alice", viewport=SCREENS[screen])
    page.goto(console.address(f"instances/{console.instances['clickstream']}"))
    live = page.locator("[data-live-url]")
    expect(live.get_by_text("Live", exact=True)).to_be_visible()
    console.switch("cluster-away", on=True)
    expect(live.get_by_text(re.compile("These are the last known figures, .* old"))).to_be_visible()
    expect(live.get_by_text(re.compile("Brokers keep what they were granted|Leases have ended"))).to_be_visible()
    expect(live.locator("[data-live='produce.used']")).to_have_text(re.compile("MiB/s"))
    expect(page.locator("#state").get_by_text("Degraded")).to_be_visible()
    console.switch("cluster-away", on=False)
    expect(live.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.locator("#state").get_by_text("Healthy")).to_be_visible()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_broker_that_stops_turns_red_and_comes_back(open_page, console, screen):
    page = open_page("admin", viewport=SCREENS[screen])
    page.goto("/fleet")
    expect(page.get_by_text("Reporting").first).to_be_visible()
    console.switch("broker-away", on=True)
    notice = page.locator(".notice.error").filter(has_text="Broker 2: away.")
    expect(notice).to_contain_text("1 partition has no leader")
    expect(notice).to_contain_text(re.compile(r"Since \d{4}-"))
    expect(page.get_by_role("row", name=re.compile("Broker 2")).get_by_text("Away")).to_be_visible()
    console.switch("broker-away", on=False)
    expect(notice).to_have_count(0)


def test_storage_fills_up_and_is_enlarged(open_page, console, look):
    words = look.words
    pages = {}
    for name, path in (("list", "instances"), ("overview", ""), ("quota", "/quota")):
        pages[name] = open_page("alice", look=look)
        pages[name].goto(
            console.address(f"instances/{console.instances['clickstream']}{path}" if name != "list" else path)
        )
        expect(pages[name].get_by_text(words("healthy")).first).to_be_visible()
    console.switch("storage-full", on=True)
    for page in pages.values():
        expect(page.get_by_text(words("critical")).first).to_be_visible()
        expect(page.get_by_text(words("Storage is full")).first).to_be_visible()
        expect(page.get_by_text(words("Running"))).to_have_count(0)
    overview = pages["overview"]
    expect(
        overview.locator("#health").get_by_text(words("{number} partitions are under-replicated", number=6))
    ).to_be_visible()
    overview.get_by_role("link", name=words("Change its size"), exact=True).click()
    expect(overview.get_by_role("heading", name=words("Name and size"))).to_be_visible()
    field, price = storage_of(overview, words), overview.get_by_label(words("Price"))
    before, was = int(field.input_value()), price.inner_text()
    found = violations(overview, "settings of a full instance")
    field.fill(str(before + 300))
    expect(price).to_contain_text(f"{before + 300} GiB")
    expect(price).not_to_have_text(was)
    overview.get_by_role("button", name=words("Save changes")).click()
    expect(overview.get_by_text(f"{before + 300} GiB").first).to_be_visible()

    # The switch is still on: as much is stored as before, and now there is room for it.
    row = pages["list"].get_by_role("row").filter(has_text="clickstream")
    for place in (row, overview.locator("#state"), pages["quota"].locator("#state")):
        expect(place.get_by_text(words("healthy"))).to_be_visible()
    for name in ("overview", "quota"):
        expect(pages[name].locator("#health").get_by_text(words("Storage is full"))).to_have_count(0)
    expect(pages["list"].get_by_role("row").filter(has_text="orders").get_by_text(words("critical"))).to_be_visible()
    assert all(map(fits, pages.values()))

    console.switch("storage-full", on=False)
    expect(pages["list"].locator("#rows").get_by_text(words("critical"))).to_have_count(
        0
    )  # what is stored is little again
    overview.goto(console.address(f"instances/{console.instances['clickstream']}/settings"))
    storage_of(overview, words).fill(str(before))  # as it was, for whoever comes next
    overview.get_by_role("button", name=words("Save changes")).click()
    expect(overview.get_by_text(f"{before} GiB").first).to_be_visible()
    assert found == []


def storage_of(page, words):
    """The field of the form of sizes."""
    return page.get_by_role("spinbutton", name=words("Storage"))
