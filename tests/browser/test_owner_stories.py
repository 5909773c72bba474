"""From the landing page to a first message in six clicks; throttled and resized; people invited, removed; a key rotated."""

from __future__ import annotations

import re
import uuid

import pytest
from playwright.sync_api import expect

from .conftest import fits
from .test_accessibility import violations
from .test_identity_story import link
from .world import ORGANISATION, PASSWORD

pytestmark = pytest.mark.timeout(180)
COUNTED = "sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1"
COUNTING = f"""addEventListener("click", (event) => {{ if (event.isTrusted) {COUNTED}; }}, true);"""
MOST_CLICKS = 6


def account(page, words) -> str:
    """A new person with an organisation, from the landing page, where the service sends no mail; the organisation's name."""
    name = told(page, words, button="Create account")
    page.get_by_label(words("Password")).fill(PASSWORD)
    page.get_by_role("button", name=words("Create account")).click()
    expect(page.get_by_role("heading", name=words("No instance yet"))).to_be_visible()
    return name


def account_by_mail(page, words, console) -> str:
    """The same where it sends mail: the password is chosen behind the link in one."""
    name = told(page, words, button="Send a link")
    page.get_by_role("button", name=words("Send a link")).click()
    page.goto(link(console, address_of(name), words("Confirm your e-mail address")))
    page.evaluate(COUNTED)  # the click on the link in the mail
    page.get_by_label(words("Password")).fill(PASSWORD)
    page.get_by_role("button", name=words("Create account")).click()
    expect(page.get_by_role("heading", name=words("No instance yet"))).to_be_visible()
    return name


def told(page, words, *, button) -> str:
    """Who one is, on the landing page, which has this button: another where mail is sent than where none is."""
    name = f"Quay {uuid.uuid4().hex[:6]}"
    page.goto("/")
    expect(page.get_by_role("button", name=words(button))).to_be_visible()
    page.get_by_label(words("Email")).fill(address_of(name))
    page.get_by_label(words("Organisation")).fill(name)
    return name


def address_of(organisation) -> str:
    return f"{organisation.replace(' ', '').lower()}@example.com"


@pytest.mark.parametrize("mailing", [False, True], ids=["without mail", "with mail"])
def test_from_the_landing_page_to_the_first_message_in_six_clicks(open_page, console, look, mailing):
    """Every click counts from "/" on, the one on the link in the mail as well: four where no mail is sent, six where it is."""
    words = look.words
    console.switch("letters", on=mailing)
    page = open_page(look=look)
    page.add_init_script(COUNTING)
    account_by_mail(page, words, console) if mailing else account(page, words)
    found = violations(page, "no instance yet")
    page.get_by_label(words("Name"), exact=True).fill("grain")
    page.get_by_label(words("Who may connect")).fill("10.0.0.0/8")
    page.get_by_role("button", name=words("Create instance")).click()
    expect(
        page.get_by_role("heading", name=words("New topic"))
    ).to_be_visible()  # by itself, once the instance is there
    page.get_by_label(words("Name"), exact=True).fill("harvest")
    found += violations(page, "a first topic")
    page.get_by_role("button", name=words("Create and send a message")).click()
    expect(page.get_by_text(words("Topic {wanted} is ready.", wanted="harvest"))).to_be_visible()
    page.get_by_label(words("Value"), exact=True).fill("the first sack")
    found += violations(page, "a first message")
    page.get_by_role("button", name=words("Send it")).click()
    expect(page.get_by_text(words.says("The message is at offset"))).to_be_visible()
    expect(page.get_by_text("the first sack")).to_be_visible()
    assert int(page.evaluate("sessionStorage.clicks")) == (6 if mailing else 4) <= MOST_CLICKS
    assert fits(page)
    assert found == []


def test_whoever_was_throttled_buys_more(open_page, console, look):
    words = look.words
    page = open_page("alice", look=look)
    page.goto(console.address(f"instances/{console.instances['orders']}/quota"))
    expect(page.get_by_text(words.says("on broker {broker} while")).first).to_be_visible()
    found = violations(page, "who was throttled")
    page.goto(console.address(f"instances/{console.instances['orders']}/settings"))
    before = int(page.get_by_role("spinbutton", name=words("Bandwidth")).input_value())
    page.go_back()
    change = page.get_by_role("link", name=words("change the limits"))
    remedy = (
        page.locator("p.help", has=change).filter(has_text="MiB/s").first
    )  # the newest; of earlier limits there is more now
    asked = remedy.inner_text()
    proposed = int(re.search(r"(\d+) MiB/s", asked)[1])
    assert proposed > before
    remedy.get_by_role("link", name=words("change the limits")).click()
    expect(page.get_by_role("spinbutton", name=words("Bandwidth"))).to_have_value(str(proposed))
    price = page.get_by_label(words("Price"))
    expect(price.get_by_text(f"{proposed} MiB/s")).to_be_visible()
    amount = re.search(r"[\d\u202f]+\.\d\d", price.inner_text())[0]
    assert amount in asked, "the price that the reason named"
    found += violations(page, "a larger size")
    page.get_by_role("button", name=words("Save changes")).click()
    expect(page.get_by_text(f"{proposed} MiB/s").first).to_be_visible()
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


def test_a_bookkeeper_who_is_new_joins_by_the_mailed_link_and_sees_the_bills(open_page, console, look):
    """An invitation is mailed, and its link is proof enough of the address: name, password, and they are in."""
    words, them = look.words, f"{uuid.uuid4().hex[:8]}@example.com"
    console.switch("letters", on=True)
    page, new = open_page(look=look), open_page(look=look)
    organisation = account_by_mail(page, words, console)
    page.goto("/".join(page.url.split("/")[:4]) + "/members")
    page.get_by_label(words("Email")).fill(them)
    page.get_by_label(words("Role"), exact=True).select_option("billing")
    page.get_by_role("button", name=words("Send invitation")).click()
    expect(page.get_by_role("row").filter(has_text=them)).to_be_visible()
    new.goto(link(console, them, words("You are invited to Sluice")))
    found = violations(new, "an invitation by mail")
    new.get_by_label(words("Your name")).fill("Dora")
    new.get_by_label(words("Password")).fill(PASSWORD)
    new.get_by_role("button", name=words("Create account and join")).click()
    expect(new.get_by_text(words("You are a member of {name} now.", name=organisation))).to_be_visible()
    expect(new.get_by_role("heading", name=words("Bills"), level=1)).to_be_visible()
    found += violations(new, "the first page of a bookkeeper")
    assert fits(new)
    bills = new.url

    page.reload()
    row = page.get_by_role("row").filter(has_text=them)
    row.get_by_text(words("Remove…")).click()
    row.get_by_role("button", name=f"{words('Remove')} {them}").click()
    expect(page.get_by_role("row").filter(has_text=them)).to_have_count(0)
    assert new.goto(bills).status == 404
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
