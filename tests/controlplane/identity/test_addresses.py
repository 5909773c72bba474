"""Addresses are confirmed by a link, and until then a new person looks around and changes nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from controlplane.accounts import services as accounts
from controlplane.accounts.models import MailedLink, User
from controlplane.accounts.selectors import caller_in
from controlplane.ckafka_api.actions.table import TABLE
from controlplane.ckafka_api.dispatch import call_of
from controlplane.core.errors import Forbidden
from controlplane.tenants.models import Invitation, Membership, Organisation
from tests.controlplane.conftest import WANTED, client_of
from tests.controlplane.console.conftest import problem_beside, text_of, visit
from tests.controlplane.test_instances_api import URL, problem

from .conftest import PASSWORD, audited, person, sign_in, sign_up

FIRST = "Confirm your e-mail address first: a link was sent to dora@example.com."
DAY = timedelta(days=1)


def mill():
    return Organisation.objects.get(name="Mill")


# --- confirming ---------------------------------------------------------------------------------------------------------


def test_who_has_signed_up_is_sent_a_link_and_confirms_the_address_by_it(mailbox):
    dora = sign_up()
    assert mailbox.subjects("dora@example.com") == ["Confirm your e-mail address"]
    link = mailbox.link("dora@example.com")
    assert "dora@example.com is the address of your account." in text_of(dora.get(link))
    assert person().email_verified_at is None, "looking at the page is not confirming"
    page = dora.post(link, follow=True)
    assert "dora@example.com is confirmed." in text_of(page)
    assert "Until then" not in text_of(page), "the banner has gone"
    assert person().email_verified_at is not None
    assert audited("account.address_confirm") == [("dora@example.com", "dora@example.com", {})]


def test_a_link_works_once(mailbox):
    dora = sign_up()
    link = mailbox.link("dora@example.com")
    dora.post(link)
    for answer in (dora.get(link), dora.post(link)):
        assert answer.status_code == 404
        assert "This link is not valid any more: ask for a new one." in text_of(answer)


def test_a_link_works_for_a_day(mailbox, time):
    dora = sign_up()
    link = mailbox.link("dora@example.com")
    time.passes(DAY - timedelta(seconds=1))
    assert dora.get(link).status_code == 200
    time.passes(timedelta(seconds=1))
    assert dora.post(link).status_code == 404
    assert person().email_verified_at is None


def test_a_link_is_for_whoever_is_signed_in_to_its_account(mailbox, at_alice):
    """Else the owner of an address would confirm it for a stranger who has signed up with it."""
    sign_up()
    link = mailbox.link("dora@example.com")
    assert Client().get(link)["Location"].startswith("/sign-in?next=%2Faccount%2Faddress%2F")
    page = at_alice.client.post(link)
    assert page.status_code == 409
    assert "This link is for another account than the one you signed in with." in text_of(page)
    assert person().email_verified_at is None


def test_links_are_stored_as_digests(mailbox):
    sign_up()
    token = mailbox.link("dora@example.com").rpartition("/")[2]
    assert len(token) == 43
    assert MailedLink.objects.get().digest != token


def test_the_link_is_sent_again_a_few_times(mailbox, time):
    dora = sign_up()
    page = dora.post("/account/address/link", follow=True)
    assert "Too many attempts: try again in 1 minute." in text_of(page)
    for _ in range(4):
        time.passes(timedelta(minutes=1))
        assert "A link was sent to dora@example.com." in text_of(dora.post("/account/address/link", follow=True))
    time.passes(timedelta(minutes=1))
    assert "5 mails were sent within a day" in text_of(dora.post("/account/address/link", follow=True))
    assert len(mailbox.of("dora@example.com")) == 5
    time.passes(DAY)
    dora.post("/account/address/link")
    assert len(mailbox.of("dora@example.com")) == 6


# --- what waits for it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "typed"),
    [("instances/new", WANTED), ("keys", {"name": "k"}), ("members", {"email": "eve@example.com", "role": "member"})],
)
def test_until_then_nothing_is_changed_in_the_console(mailbox, page, typed):
    dora = sign_up()
    address = f"/{mill().id}/{page}"
    looked = dora.get(address)
    assert looked.status_code == 200
    assert "Confirm your e-mail address: a link was sent to dora@example.com." in text_of(looked)
    answer = dora.post(address, typed)
    assert answer.status_code == 403
    assert FIRST in text_of(answer)
    dora.post(mailbox.link("dora@example.com"))
    assert dora.post(address, typed).status_code != 403


def test_nor_is_another_organisation_founded(mailbox):
    dora = sign_up()
    assert FIRST in text_of(dora.post("/organisations/new", {"name": "Second"}))
    assert not Organisation.objects.filter(name="Second").exists()


def test_until_then_rest_and_the_vendors_api_change_nothing(mailbox, brokers):
    sign_up()
    _, key = accounts.api_key_create(organisation=mill(), user=person(), name="made before, somehow")
    api = client_of(key)
    assert api.get(URL).status_code == 200
    assert problem(api.post(URL, WANTED), 403, "address_not_confirmed")["detail"] == FIRST[0].lower() + FIRST[1:-1]
    caller = caller_in(user=person(), organisation_id=mill().id)
    changing = next(name for name, action in TABLE.items() if action.changes and not action.of_instance)
    with pytest.raises(Forbidden, match="confirm your e-mail address first"):
        call_of(changing, TABLE[changing], caller, {})
    sign_in()[0].post(mailbox.link("dora@example.com"))
    assert api.post(URL, WANTED).status_code == 202


def test_accounts_of_before_go_on_as_they_did(alice, brokers, mails):
    """Nobody has shown that they read alice's address, and her programs must not stop because a mail server was named."""
    assert alice.user.email_verified_at is None
    assert alice.api.post(URL, WANTED).status_code == 202
    assert "Until then" not in text_of(visit(alice).get())
    assert "Not confirmed" in text_of(visit(alice).client.get("/account"))


def test_where_no_mail_is_sent_all_is_as_before_and_the_page_says_so(db, brokers):
    dora = sign_up()
    assert dora.post(f"/{mill().id}/keys", {"name": "k"}).status_code == 200
    page = text_of(dora.get("/account"))
    assert "This installation sends no e-mail: addresses are not confirmed and cannot be changed" in page
    assert "Until then" not in page
    assert not MailedLink.objects.exists()


# --- invitations ----------------------------------------------------------------------------------------------------------


def invite(at_alice, email="dora@example.com"):
    return at_alice.post("members", {"email": email, "role": "member"})


def test_an_invitation_goes_by_mail_and_its_link_confirms_the_address(mailbox, at_alice):
    page = text_of(invite(at_alice))
    assert "An invitation was sent to dora@example.com." in page
    assert "/invitations/" not in page, "who has the link reads the address: the inviter must not see it"
    (mail,) = mailbox.of("dora@example.com")
    assert "alice's" not in mail.get_content(), "a tenant chooses the name of an organisation, and not what we write"
    joined = Client().post(mailbox.link("dora@example.com"), {"name": "", "password": PASSWORD}, follow=True)
    assert "You are a member of alice's now." in text_of(joined)
    assert person().email_verified_at is not None
    assert mailbox.subjects("dora@example.com") == ["You are invited to Sluice"], "there is nothing left to confirm"


def test_who_has_signed_up_confirms_by_an_invitation_too(mailbox, at_alice):
    dora = sign_up()
    invite(at_alice)
    dora.post(mailbox.link("dora@example.com"))
    assert person().email_verified_at is not None
    assert Membership.objects.filter(user=person(), organisation=at_alice.organisation).exists()


def test_invitations_by_mail_are_few(mailbox, at_alice, time):
    for number in range(20):
        assert invite(at_alice, f"person{number}@example.com").status_code == 200
    page = invite(at_alice)
    assert problem_beside(page, "email") == "Too many invitations were sent lately: try again later."
    assert Invitation.objects.for_organisation(at_alice.organisation).count() == 20
    time.passes(timedelta(hours=1))
    at_alice.client.logout()
    at_alice.client.force_login(at_alice.user)  # what she does is proved again
    for _ in range(5):
        assert invite(at_alice).status_code == 200
    assert invite(at_alice).status_code == 422, "one address is not written to for ever"


# --- another address ------------------------------------------------------------------------------------------------------


def change(dora, email="new@example.com"):
    return dora.post("/account/address", {"email": email}, follow=True)


def test_another_address_counts_when_its_link_was_used_and_the_old_one_is_told(mailbox):
    dora = sign_up()
    dora.post(mailbox.link("dora@example.com"))
    assert "A link was sent to new@example.com." in text_of(change(dora, " New@Example.com"))
    assert person().email == "dora@example.com"
    assert "in place of dora@example.com" in text_of(dora.get(mailbox.link("new@example.com")))
    dora.post(mailbox.link("new@example.com"))
    assert person("new@example.com").email_verified_at is not None
    assert sign_in("new@example.com")[1].status_code == 302
    assert sign_in("dora@example.com")[1].status_code == 422
    told = mailbox.of("dora@example.com")[-1]
    assert told["Subject"] == "The address of your account was changed"
    assert "new@example.com" in told.get_content()
    changed = {"to": "new@example.com", "address": {"from": "dora@example.com", "to": "new@example.com"}}
    assert audited("account.address") == [("dora@example.com", "dora@example.com", changed)]


@pytest.mark.parametrize(
    ("email", "said"),
    [
        ("dora@example.com", "This is the address that you have."),
        ('"Pay\\ at\\ evil.example"@example.com', "Enter a valid email address."),
        ("nonsense", "Enter a valid email address."),
    ],
)
def test_what_is_wrong_stands_beside_it(mailbox, alice, email, said):
    assert problem_beside(change(sign_up(), email), "email") == said


def test_whoever_is_signed_in_does_not_learn_who_else_has_an_account(mailbox, alice):
    """Only who reads the mail does, by its link."""
    dora = sign_up()
    page = change(dora, "alice@example.com")
    assert "A link was sent to alice@example.com." in text_of(page)
    again = change(dora, "nobody@example.com")
    assert again.status_code == 429, "strangers' addresses are few, whosever they are"
    page = dora.post(mailbox.link("alice@example.com"))
    assert page.status_code == 409
    assert "There is an account with this address." in text_of(page)
    assert person().email == "dora@example.com"


@pytest.mark.parametrize("email", ['"Pay\\ at\\ evil.example"@example.com', '"quoted"@example.com'])
def test_an_address_is_no_way_to_write_to_others(mailbox, email):
    """Mails name whoever invites: an address that can hold a sentence would say it to anybody."""
    browser = Client()
    typed = {"email": email, "name": "", "organisation_name": "Mill", "password": PASSWORD}
    page = browser.post("/sign-up", typed)
    assert problem_beside(page, "email") == "Enter a valid email address."
    assert not User.objects.exists()


def test_the_address_that_was_typed_last_is_meant(mailbox, time):
    dora = sign_up()
    change(dora, "one@example.com")
    time.passes(timedelta(minutes=2))
    change(dora, "two@example.com")
    assert dora.post(mailbox.link("one@example.com")).status_code == 404
    assert dora.post(mailbox.link("two@example.com")).status_code == 302


def test_an_address_that_somebody_has_taken_meanwhile_stays_theirs(mailbox):
    dora = sign_up()
    change(dora)
    link = mailbox.link("new@example.com")
    accounts.user_ensure(email="new@example.com", password=None)
    page = dora.post(link)
    assert page.status_code == 409
    assert "There is an account with this address." in text_of(page)
    assert person().email == "dora@example.com"


def test_links_to_the_old_address_end_with_it(mailbox):
    dora = sign_up()
    before = mailbox.link("dora@example.com")
    change(dora)
    dora.post(mailbox.link("new@example.com"))
    assert dora.get(before).status_code == 404


def test_without_mail_an_address_cannot_be_changed(db):
    dora = sign_up()
    assert "This installation sends no e-mail" in text_of(dora.get("/account/address"))
    change(dora)
    assert User.objects.filter(email="dora@example.com").exists()
    assert not MailedLink.objects.exists()
