"""axe finds nothing on any page, in light and dark, on a desk and on a phone; nothing is wider than the screen.

`make test` has the desk in light and the phone in dark; the desk in dark and the phone in light are `long`.
"""

from __future__ import annotations

import pytest

from . import pages
from .conftest import SCREENS

# Tables, opened where they are folded, of which a column begins beyond the edge of what is around them.
HIDDEN_COLUMNS = """() => {
  for (const folded of document.querySelectorAll("main details")) folded.open = true;
  return [...document.querySelectorAll("main table")].flatMap((table) => {
    const cells = [...table.querySelectorAll("tr:first-child > *")].filter((cell) => cell.checkVisibility());
    const edge = document.documentElement.clientWidth;
    const beyond = cells.filter((cell) => cell.getBoundingClientRect().right > edge + 1);
    return beyond.length ? [`${beyond.length} columns of a table are beyond the edge`] : [];
  });
}"""


OF_COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""What depends on the colour scheme: of the dark pages, which are the light ones otherwise, only this is asked."""


OF_TEXTS = {"type": "tag", "values": ["cat.language", "cat.name-role-value", "cat.text-alternatives", "cat.forms"]}
"""What depends on the language: of the Chinese pages, which are the English ones otherwise, only this is asked."""


def violations(page, name: str, only: dict | None = None) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], **({"runOnly": only} if only else {})}
    return [
        f"{name}: {violation['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for violation in Axe().run(page, options=options).response["violations"]
        for node in violation["nodes"]
    ]


PEOPLE = {"strangers": None, "tenants": "alice", "operators": "admin"}


@pytest.mark.timeout(500)  # some hundred pages, on a machine that others use as well
@pytest.mark.parametrize(
    ("screen", "scheme"),
    [
        ("desktop", "light"),
        ("phone", "dark"),
        pytest.param("desktop", "dark", marks=pytest.mark.long),
        pytest.param("phone", "light", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("of", PEOPLE)
def test_axe_finds_nothing_on_any_page(console, open_page, of, screen, scheme):
    page = open_page(PEOPLE[of], color_scheme=scheme, viewport=SCREENS[screen], reduced_motion="reduce")
    found = []
    for name, address in getattr(pages, of)(console).items():
        pages.visit(page, name, address)
        page.wait_for_timeout(150)
        found += violations(page, name, OF_COLOURS if (screen, scheme) == ("desktop", "dark") else None)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            found.append(f"{name}: {wide} px wider than a screen of {SCREENS[screen]['width']}")
        if screen == "phone":
            found += [f"{name}: {hidden}" for hidden in page.evaluate(HIDDEN_COLUMNS)]
    assert found == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_passing_states(console, open_page, scheme):
    """Problems beside fields, a key just made, an operation under way, a cluster that is away, an open menu."""
    page = open_page("alice", color_scheme=scheme, viewport=SCREENS["phone"])
    found = []
    page.goto(console.address("instances/new"))
    page.get_by_role("spinbutton", name="Bandwidth").fill("-1")
    page.get_by_label("Who may connect").fill("somewhere")
    page.get_by_role("button", name="Create instance").click()
    page.locator(".problems").first.wait_for()
    found += violations(page, "form with problems")
    page.goto(console.address("keys"))
    page.get_by_label("Name", exact=True).fill("key")
    page.get_by_role("button", name="Create key").click()
    page.locator("#new-key").wait_for()
    page.get_by_text("Revoke…").first.click()
    found += violations(page, "key just made")
    console.switch("brokers-slow", on=True)
    page.goto(console.address(f"instances/{console.instances['clickstream']}/settings"))
    partitions = page.get_by_label("Partitions")
    partitions.fill("600" if partitions.input_value() == "300" else "300")
    page.get_by_role("button", name="Save changes").click()
    page.get_by_text("broker 1 is at generation").wait_for()
    found += violations(page, "operation under way")
    console.switch("brokers-slow", on=False)
    page.locator("#status .steps").wait_for(state="hidden")  # the page comes again by itself at the end
    page.wait_for_load_state()
    page.get_by_role("button", name="Menu").click()
    found += violations(page, "menu")
    page.keyboard.press("Escape")
    console.switch("cluster-away", on=True)
    page.goto(console.address(f"instances/{console.instances['orders']}/topics"))
    found += violations(page, "cluster away")
    assert found == []
