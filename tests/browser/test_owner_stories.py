"""From nothing to a first message in six clicks; throttled and resized; somebody is invited and removed; a key is rotated."""

from __future__ import annotations

import re
import uuid

import pytest
from playwright.sync_api import expect

from .conftest import fits
from .test_accessibility import violations
from .world import ORGANISATION, PASSWORD

pytestmark = pytest.mark.timeout(180)
COUNTING = """addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true);"""
MOST_CLICKS = 6


def account(page, words) -> str:
    """A new person with an organisation; its name."""
    name = f"Quay {uuid.uuid4().hex[:6]}"
    page.goto("/sign-up")
    page.get_by_label(words("Email")).fill(f"{name.replace(' ', '').lower()}@example.com")
    page.get_by_label(words("Organisation")).fill(name)
    page.get_by_label(words("Password")).fill(PASSWORD)
    page.get_by_role("button", name=words("Create account")).click()
    expect(page.get_by_role("heading", name=words("No instance yet"))).to_be_visible()
    return name


def test_from_the_form_of_an_account_to_the_first_message_in_six_clicks(open_page, look):
    words = look.words
    page = open_page(look=look)
    page.add_init_script(COUNTING)
    account(page, words)
    page.get_by_role("link", name=words("Create your first instance"), exact=True).click()
    page.get_by_label(words("Name"), exact=True).fill("grain")
    page.get_by_label(words("Who may connect")).fill("10.0.0.0/8")
    page.get_by_role("button", name=words("Create instance")).click()
    page.get_by_role("link", name=words("New topic"), exact=True).first.click()  # also beside programs to paste
    page.get_by_label(words("Name"), exact=True).fill("harvest")
    found = violations(page, "a first topic")
    page.get_by_role("button", name=words("Create and send a message")).click()
    expect(page.get_by_text(words("Topic {wanted} is ready.", wanted="harvest"))).to_be_visible()
    page.get_by_label(words("Value"), exact=True).fill("the first sack")
    found += violations(page, "a first message")
    page.get_by_role("button", name=words("Send it")).click()
    expect(page.get_by_text(words.says("The message is at offset"))).to_be_visible()
    expect(page.get_by_text("the first sack")).to_be_visible()
    assert 1 <= int(page.evaluate("sessionStorage.clicks")) <= MOST_CLICKS
    assert fits(page)
    assert found == []


def test_whoever_was_throttled_buys_more(open_page, console, look):
    words = look.words
    page = open_page("alice", look=look)
    page.goto(console.address(f"instances/{console.instances['orders']}/quota"))
    expect(page.get_by_text(words.says("on broker {broker} while")).first).to_be_visible()
    found = violations(page, "who was throttled")
    settings = page.locator("main").get_by_role(
        "link", name=words("Settings")
    )  # the menu has those of the organisation
    settings.click()
    field = page.get_by_role("spinbutton", name=words("Bandwidth"))
    before = int(field.input_value())
    price = page.get_by_label(words("Price"))
    was = price.inner_text()
    field.fill(str(before + 10))
    expect(price).not_to_have_text(was)
    found += violations(page, "a larger size")
    page.get_by_role("button", name=words("Save changes")).click()
    expect(page.get_by_text(f"{before + 10} MiB/s").first).to_be_visible()
    assert fits(page)
    page.get_by_role("navigation", name="orders").get_by_role(
        "link", name=words("Settings")
    ).click()  # as it was, for whoever comes next
    page.get_by_role("spinbutton", name=words("Bandwidth")).fill(str(before))
    page.get_by_role("button", name=words("Save changes")).click()
    expect(page.get_by_text(f"{before} MiB/s").first).to_be_visible()
    assert found == []


def test_a_colleague_is_invited_and_removed(open_page, console, look):
    words = look.words
    page, bob = open_page(look=look), open_page("bob", look=look)
    organisation = account(page, words)
    page.goto("/".join(page.url.split("/")[:4]) + "/members")
    page.get_by_label(words("Email")).fill("bob@example.com")
    page.get_by_label(words("Role"), exact=True).select_option("member")
    page.get_by_role("button", name=words("Create invitation")).click()
    link = page.locator("#new-link").inner_text()
    found = violations(page, "an invitation")
    bob.goto(link)
    bob.get_by_role("button", name=words("Join %(name)s", name=organisation)).click()
    expect(bob.get_by_text(words("You are a member of {name} now.", name=organisation))).to_be_visible()
    theirs = bob.url

    page.reload()
    row = page.get_by_role("row").filter(has_text="bob@example.com")
    row.get_by_text(words("Remove…")).click()
    expect(row.get_by_text(words("Their API keys of this organisation end too."))).to_be_visible()
    found += violations(page, "whether to remove somebody")
    row.get_by_role("button", name=f"{words('Remove')} bob@example.com").click()
    expect(page.get_by_role("row").filter(has_text="bob@example.com")).to_have_count(0)
    assert fits(page)
    answer = bob.goto(theirs)
    assert answer.status == 404
    bob.goto(console.address("instances"))
    expect(bob.get_by_role("link", name="orders")).to_be_visible()  # his own organisation is as it was
    assert ORGANISATION in bob.content()
    assert found == []


def test_a_key_is_rotated_and_both_secrets_are_good_meanwhile(open_page, look):
    words = look.words
    page = open_page(look=look)
    organisation = account(page, words)
    page.goto("/".join(page.url.split("/")[:4]) + "/keys")
    page.get_by_label(words("Name"), exact=True).fill("pipeline")
    page.get_by_role("button", name=words("Create key")).click()
    expect(page.locator("#new-key")).to_have_text(re.compile("^slc_"))
    first = page.locator("#new-key").inner_text()

    row = page.get_by_role("row").filter(has_text="pipeline")
    row.get_by_text(words("Rotate…")).click()
    found = violations(page, "whether to rotate a key")
    row.get_by_label(words("The present secret is good as well")).select_option(index=1)
    row.get_by_role("button", name=words("Make another secret")).click()
    expect(page.get_by_role("heading", name=words("The new secret of %(name)s", name="pipeline"))).to_be_visible()
    second = page.locator("#new-key").inner_text()
    assert second != first
    found += violations(page, "the new secret of a key")
    assert fits(page)

    def name_by(secret) -> str:
        return page.request.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).json()["organisation"][
            "name"
        ]

    assert [name_by(first), name_by(second)] == [organisation, organisation]
    page.reload()
    assert second not in page.content()
    expect(page.get_by_text(words.says("two secrets are good until"))).to_be_visible()
    assert found == []
