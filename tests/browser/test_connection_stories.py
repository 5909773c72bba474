"""Somebody looks who moves most, finds a client, and lets in an address that was refused."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import SCREENS, fits
from .test_accessibility import violations

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize(
    ("scheme", "screen"),
    [
        ("light", "desktop"),
        ("dark", "phone"),
        pytest.param("dark", "desktop", marks=pytest.mark.long),
        pytest.param("light", "phone", marks=pytest.mark.long),
    ],
)
def test_finding_a_client_and_letting_in_an_address(open_page, console, screen, scheme):
    page = open_page("alice", viewport=SCREENS[screen], color_scheme=scheme)
    one = f"instances/{console.instances['orders']}"
    page.goto(console.address(f"{one}/quota"))
    page.get_by_role("link", name="Who moves most now").press("Enter")
    most = page.get_by_role("region", name="Who moves most")
    expect(most.get_by_role("row", name=re.compile("^checkout-1"))).to_contain_text("3 MiB/s")
    expect(page.get_by_text("Broker 2 does not answer")).to_be_visible()
    everybody = page.get_by_role("table", name="Connections, the busiest first")
    expect(everybody.get_by_role("row", name=re.compile("^checkout-1"))).to_contain_text("apache-kafka-java 3.9.1")
    expect(everybody).to_contain_text("document.title")  # a name that a client gave itself, as text
    found = violations(page, "connections")

    page.get_by_role("searchbox", name="Search connections").fill("billing")
    expect(everybody.get_by_role("row")).to_have_count(2)
    expect(everybody).to_contain_text("10.20.0.1")
    page.wait_for_timeout(5_500)  # looks again by itself, for the same
    expect(everybody.get_by_role("row")).to_have_count(2)

    refused = page.get_by_role("region", name="Refused connections")
    expect(refused).to_contain_text("The login failed")
    refused.get_by_role("button", name="Add to the whitelist 198.51.100.7").press("Enter")
    expect(page.get_by_text("The whitelist was changed.")).to_be_visible()
    expect(page.locator("textarea[name=cidrs]")).to_have_value(re.compile(r"198\.51\.100\.7/32"))
    page.get_by_role("link", name="Connections", exact=True).click()
    expect(page.get_by_role("button", name=re.compile("^Add to the whitelist"))).to_have_count(0)

    page.goto(console.address(f"{one}/topics/orders"))
    users = page.get_by_role("region", name="Who produces and consumes")
    expect(users.get_by_role("row", name=re.compile("^billing-1"))).to_contain_text("1 MiB/s")
    found += violations(page, "topic")
    assert fits(page)
    assert found == []

    page.goto(console.address(f"{one}/access"))  # as it was, for whoever comes next
    cidrs = page.locator("textarea[name=cidrs]")
    cidrs.fill("\n".join(line for line in cidrs.input_value().splitlines() if "198.51.100.7" not in line))
    page.get_by_role("button", name="Save whitelist").click()
    expect(page.get_by_text("The whitelist was changed.")).to_be_visible()
