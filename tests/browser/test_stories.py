"""What people come for, from signing up to deleting, with the mouse and with the keyboard."""

from __future__ import annotations

import re
import uuid

import pytest
from playwright.sync_api import expect

from .world import ORGANISATION, PASSWORD

pytestmark = pytest.mark.timeout(180)


def sign_up(page) -> str:
    """A new person with an organisation; its name."""
    name = f"Mill {uuid.uuid4().hex[:6]}"
    page.goto("/")
    page.get_by_label("Email").fill(f"{name.replace(' ', '').lower()}@example.com")
    page.get_by_label("Organisation").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="No instance yet")).to_be_visible()
    return name


def test_from_signing_up_to_deleting(open_page, console):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    organisation = sign_up(page)

    # The price follows what is typed; what is wrong stands beside its field, which has the focus.
    page.get_by_role("spinbutton", name="Bandwidth").fill("240")
    expect(page.get_by_label("Price")).to_contain_text("5\u202f920.30")
    page.get_by_label("Name", exact=True).fill("grain")
    page.get_by_role("spinbutton", name="Bandwidth").fill("20")
    expect(page.get_by_label("Price")).to_contain_text("1\u202f160.70")
    page.get_by_label("Who may connect").fill("10.0.0.1/8")
    page.get_by_role("button", name="Create instance").click()
    expect(page.get_by_text("did you mean 10.0.0.0/8?")).to_be_visible()
    expect(page.get_by_label("Who may connect")).to_be_focused()
    page.get_by_label("Who may connect").fill("10.0.0.0/8")

    # Steps go on by themselves, and the page with them.
    console.switch("brokers-slow", on=True)
    page.get_by_role("button", name="Create instance").click()
    expect(page.get_by_text("broker 1 has not seen it")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("Step 3 of 4: wait for brokers")
    page.get_by_role("link", name=re.compile("Operation op-")).click()
    expect(page.get_by_text("50 %")).to_be_visible()
    console.switch("brokers-slow", on=False)
    expect(page.get_by_text("100 %")).to_be_visible()
    page.get_by_role("link", name="grain").click()

    # Connecting.
    bootstrap = page.locator("#bootstrap").inner_text()
    assert re.fullmatch(r"(127\.0\.0\.1:\d+,?){3}", bootstrap)
    page.get_by_role("button", name="Copy bootstrap servers").click()
    expect(page.get_by_role("button", name="Copied bootstrap servers")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == bootstrap
    page.get_by_role("radio", name="aiokafka").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("security.protocol=PLAINTEXT")).to_be_visible()
    expect(page.locator("#snippet-aiokafka")).to_be_hidden()
    expect(page.locator("#snippet-python")).to_be_hidden()

    # Flow by broker, drawn while one looks.
    panels = page.locator("[data-direction=produce] .broker")
    expect(panels).to_have_count(3)
    line = panels.first.locator("path.line")
    first = line.get_attribute("d")
    expect(line).not_to_have_attribute("d", first)
    expect(page.locator(".live")).to_have_class(re.compile(r"\bon\b"))

    # A topic.
    page.get_by_role("link", name="Topics", exact=True).click()
    page.get_by_role("link", name="Create your first topic").click()
    page.get_by_label("Name", exact=True).fill("harvest")
    page.get_by_label("Partitions").fill("6")
    page.get_by_role("button", name="Create topic").click()
    expect(page.get_by_text("Topic harvest is ready.")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^5 broker 1"))).to_be_visible()
    page.locator(".actions").get_by_role("link", name="Access").click()
    page.get_by_label("Only these, among them").check()
    page.get_by_label("Addresses and blocks").fill("10.9.0.0/16")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("10.9.0.0/16")).to_be_visible()
    page.get_by_role("link", name="Delete…").click()
    page.get_by_label("Type “harvest” to confirm").fill("harvest")
    page.get_by_role("button", name="Delete this topic").click()
    expect(page.get_by_text("Topic harvest was deleted.")).to_be_visible()

    # Access, size, bill.
    settings = page.locator("main").get_by_role("link", name="Settings")  # the menu has those of the organisation
    page.get_by_role("link", name="Access", exact=True).click()
    page.get_by_label("Addresses and blocks").fill("0.0.0.0/0\n::/0")
    page.get_by_role("button", name="Save whitelist").click()
    expect(page.get_by_text("The whitelist was changed.")).to_be_visible()
    settings.click()
    page.get_by_label("Name", exact=True).fill("flour")
    page.get_by_role("spinbutton", name="Bandwidth").fill("40")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("heading", name="flour")).to_be_visible()
    expect(page.get_by_text("40 MiB/s").first).to_be_visible()
    page.get_by_role("link", name="Bill", exact=True).click()
    of_an_hour = re.compile(r"^Bandwidth.*\b(3\.04|6\.08)")  # of two, where an hour ended meanwhile
    expect(page.get_by_role("row", name=of_an_hour)).to_be_visible()

    # The end.
    settings.click()
    page.get_by_role("link", name="Delete…").click()
    page.get_by_label("Type “flour” to confirm").fill("grain")
    page.get_by_role("button", name="Delete this instance").click()
    expect(page.get_by_text("This is not the name. Nothing was deleted.")).to_be_visible()
    page.get_by_label("Type “flour” to confirm").fill("flour")
    page.get_by_role("button", name="Delete this instance").click()
    expect(page.get_by_role("heading", name="Isolated", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Being isolated")).to_be_hidden()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("heading", name="Connect")).to_be_visible()
    expect(page.locator("#bootstrap")).to_have_text(bootstrap)
    settings.click()
    page.get_by_label("Deletion protection").check()
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("heading", name="Connect")).to_be_visible()
    settings.click()
    expect(page.get_by_role("link", name="Delete…")).to_be_hidden()
    page.get_by_label("Deletion protection").uncheck()
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("heading", name="Connect")).to_be_visible()
    settings.click()
    page.get_by_role("link", name="Delete…").click()
    page.get_by_label("Type “flour” to confirm").fill("flour")
    page.get_by_label("Delete its data at once, for good").check()
    page.get_by_role("button", name="Delete this instance").click()
    expect(page.get_by_text("flour was deleted.")).to_be_visible()
    expect(page.get_by_role("heading", name="No instance yet")).to_be_visible()
    page.get_by_role("link", name="Bills").click()
    expect(page.get_by_role("row", name=re.compile("flour"))).to_contain_text("Deleted")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert organisation


def test_a_key_is_shown_once_and_a_colleague_comes_in(open_page):
    page = open_page()
    organisation = sign_up(page)
    page.get_by_role("link", name="API keys").click()
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text("This field is required.")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("pipeline")
    page.get_by_role("button", name="Create key").click()
    key = page.locator("#new-key")
    expect(key).to_have_text(re.compile("^slc_[a-z0-9]{8}_[a-z0-9]{40}$"))
    text = key.inner_text()
    answer = page.request.get("/api/v1/me", headers={"Authorization": f"Bearer {text}"})
    assert answer.json()["organisation"]["name"] == organisation
    page.reload()
    expect(page.get_by_text("slc_").first).to_be_visible()
    assert text not in page.content()
    page.get_by_text("Revoke…").click()
    page.get_by_role("button", name="Revoke pipeline").click()
    expect(page.get_by_text("The key was revoked.")).to_be_visible()

    page.get_by_role("link", name="Members").click()
    page.get_by_label("Email").fill("bob@example.com")
    page.get_by_label("Role", exact=True).select_option("viewer")
    page.get_by_role("button", name="Create invitation").click()
    link = page.locator("#new-link").inner_text()
    expect(page.get_by_role("row", name="bob@example.com")).to_contain_text("Open")

    bob = open_page("bob")
    bob.goto(link)
    bob.get_by_role("button", name=f"Join {organisation}").click()
    expect(bob.get_by_text(f"You are a member of {organisation} now.")).to_be_visible()
    bob.locator(".switcher summary").click()
    bob.get_by_role("link", name=organisation).click()
    expect(bob.get_by_text("You may look, but not change anything here")).to_be_visible()
    bob.locator(".switcher summary").click()
    bob.get_by_role("link", name=ORGANISATION).click()
    expect(bob.get_by_role("link", name="orders")).to_be_visible()


def test_the_keyboard_is_enough(open_page, console):
    page = open_page("alice")
    page.goto(console.address("instances"))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("/")
    search = page.get_by_label("Search by name or id")
    expect(search).to_be_focused()
    page.keyboard.type("click")
    expect(page.get_by_role("link", name="orders")).to_be_hidden()
    expect(page.get_by_role("link", name="clickstream")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?q=click$"))  # a slow typist is answered in between, too
    expect(search).to_be_focused()
    before = page.locator("nav.tags a.chip").count() + page.locator("th a.sort").count()
    for _ in range(before + 1):  # the choice of health, and the headings by which it is sorted, come first
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="clickstream")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="clickstream")).to_be_visible()


def test_a_slash_in_a_field_is_a_slash(open_page, console):
    page = open_page("alice")
    page.goto(console.address(f"instances/{console.instances['orders']}/access"))
    field = page.get_by_label("Addresses and blocks")
    field.fill("")
    field.press_sequentially("10.0.0.0/8")
    assert field.input_value() == "10.0.0.0/8"


def test_on_a_phone_the_menu_opens_and_escape_closes_it(open_page, console):
    page = open_page("alice", viewport={"width": 360, "height": 740})
    page.goto(console.address("instances"))
    members = page.get_by_role("link", name="Members")
    expect(members).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(members).to_be_visible()
    page.keyboard.press("Escape")
    expect(members).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    members.click()
    expect(page.get_by_role("heading", name=f"Members of {ORGANISATION}")).to_be_visible()


def test_the_theme_is_the_systems_until_one_chooses(open_page):
    page = open_page(color_scheme="dark")
    page.goto("/sign-in")

    def ground() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    def choose(name: str) -> None:
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("button", name=name)).to_have_attribute(
            "aria-pressed", "true"
        )  # the next page is there

    dark = ground()
    choose("Light")
    light = ground()
    assert light != dark
    page.reload()
    assert ground() == light
    choose("Auto")
    assert ground() == dark


def test_a_cluster_that_went_away_is_said_and_comes_back_by_itself(open_page, console):
    page = open_page("alice")
    page.goto(console.address(f"instances/{console.instances['orders']}"))
    expect(page.locator(".live")).to_have_class(re.compile(r"\bon\b"))
    console.switch("cluster-away", on=True)
    expect(page.get_by_text("The figures come back by themselves")).to_be_visible()
    console.switch("cluster-away", on=False)
    expect(page.get_by_text("The figures come back by themselves")).to_be_hidden()
    expect(page.locator(".live")).to_have_class(re.compile(r"\bon\b"))


def test_whoever_was_signed_out_meanwhile_is_led_to_the_sign_in(open_page, console):
    page = open_page("alice")
    address = console.address(f"instances/{console.instances['orders']}")
    page.goto(address)
    page.context.clear_cookies()
    page.wait_for_url(lambda url: "/sign-in?next=" in url)
    page.get_by_label("Email").fill("alice@example.com")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(address)


def test_every_page_works_without_scripts(open_page, console):
    page = open_page(java_script_enabled=False)
    page.goto("/sign-in")
    page.get_by_label("Email").fill("alice@example.com")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.goto(console.address("instances"))
    page.get_by_label("Search by name or id").fill("click")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="clickstream")).to_be_visible()
    expect(page.get_by_role("link", name="orders")).to_be_hidden()
    page.get_by_role("link", name="clickstream").click()
    expect(page.locator("[data-live='produce.used']")).to_have_text(re.compile("MiB/s"))
