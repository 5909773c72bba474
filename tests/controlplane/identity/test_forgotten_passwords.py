"""A forgotten password is replaced by whoever reads the address. Strangers learn nothing, and keep nobody out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.identity import door, upkeep
from controlplane.accounts.models import ApiKey, DoorKind, DoorNote, MailedLink, User
from tests.controlplane.conftest import client_of
from tests.controlplane.console.conftest import problem_beside, text_of

from .conftest import PASSWORD, audited, person, sign_in, sign_up

NEW = "a mill without a river"
HOUR = timedelta(hours=1)


@pytest.fixture
def dora(mailbox) -> Client:
    browser = sign_up()
    browser.post(mailbox.link("dora@example.com"))
    return browser


def ask(email="dora@example.com", **options):
    return Client().post("/password/forgotten", {"email": email}, **options)


def asked_link(mailbox):
    ask()
    door.notes_answer()
    return mailbox.link("dora@example.com")


def choose(link, password=NEW, **also):
    return Client().post(link, {"password": password, **also}, follow=True)


def test_another_password_is_chosen_by_a_link_and_all_sessions_end(dora, mailbox):
    link = asked_link(mailbox)
    assert mailbox.subjects("dora@example.com")[-1] == "Choose a new password"
    assert "dora@example.com" in text_of(Client().get(link))
    page = choose(link)
    assert "Your password was changed, and all sessions have ended. Sign in with the new one." in text_of(page)
    assert dora.get("/account").status_code == 302
    assert sign_in(password=PASSWORD)[1].status_code == 422
    assert sign_in(password=NEW)[1].status_code == 302
    assert mailbox.subjects("dora@example.com")[-1] == "Your password was changed"
    assert audited("account.password_reset") == [("dora@example.com", "dora@example.com", {})]


def test_who_has_replaced_it_signs_in_while_a_stranger_guesses(dora, mailbox):
    for _ in range(11):
        sign_in(password="a guess")
    browser = Client()
    browser.post(asked_link(mailbox), {"password": NEW})
    assert sign_in(password=NEW)[1].status_code == 429
    assert browser.post("/sign-in", {"email": "dora@example.com", "password": NEW}).status_code == 302


def test_the_answer_and_what_it_costs_are_the_same_whether_there_is_an_account_or_not(dora, mailbox):
    told, costs = [], []
    for email in ("dora@example.com", "nobody@example.com"):
        with CaptureQueriesContext(connection) as asked:
            page = ask(email)
        told.append((page.status_code, text_of(page).replace(email, "")))
        costs.append([query["sql"].split()[:3] for query in asked.captured_queries])
    assert told[0] == told[1]
    assert costs[0] == costs[1]
    door.notes_answer()
    assert mailbox.of("nobody@example.com") == []
    assert not DoorNote.objects.exists()


def test_a_link_works_once_and_for_an_hour(dora, mailbox, time):
    used = asked_link(mailbox)
    choose(used)
    assert Client().get(used).status_code == 404
    late = asked_link(mailbox)
    time.passes(HOUR)
    assert Client().post(late, {"password": PASSWORD}).status_code == 404
    assert person().check_password(NEW)


def test_a_password_that_will_not_do_leaves_the_link_as_it_was(dora, mailbox):
    link = asked_link(mailbox)
    assert problem_beside(choose(link, "short"), "password").startswith("This password is too short.")
    assert "Your password was changed" in text_of(choose(link))


def test_nobody_is_kept_out_by_somebody_who_asks_often(dora, mailbox):
    """Three mails an hour are sent, and the links in all of them work."""
    for _ in range(5):
        ask()
        door.notes_answer()
    sent = [mail for mail in mailbox.of("dora@example.com") if mail["Subject"] == "Choose a new password"]
    assert len(sent) == 3
    assert sign_in(password=PASSWORD)[1].status_code == 302, "nothing else has changed"
    assert "Your password was changed" in text_of(choose(mailbox.link("dora@example.com")))


def test_one_address_asks_for_twenty_at_most(dora):
    for number in range(20):
        assert ask(f"person{number}@example.com").status_code == 200
    page = ask()
    assert page.status_code == 429
    assert "Too many attempts" in text_of(page)
    assert ask(REMOTE_ADDR="10.0.0.2").status_code == 200
    assert DoorNote.objects.count() == 21


def test_keys_stay_unless_it_is_chosen_otherwise(alice, mailbox):
    alice.user.set_password(PASSWORD)
    alice.user.save()
    for chosen, status in (({}, 200), ({"revokes_keys": "on"}, 401)):
        ask("alice@example.com")
        door.notes_answer()
        choose(mailbox.link("alice@example.com"), NEW + str(status), **chosen)
        assert client_of(alice.key).get("/api/v1/me").status_code == status
    assert [actor for actor, _, _ in audited("api_key.revoke")] == ["alice@example.com"]
    assert ApiKey.objects.unscoped("a test").filter(revoked_at=None).count() == 0


def test_a_change_of_the_address_that_waits_ends(dora, mailbox):
    """It may be the work of whoever had the password."""
    dora.post("/account/address", {"email": "eve@example.com"})
    theirs = mailbox.link("eve@example.com")
    choose(asked_link(mailbox))
    assert sign_in(password=NEW)[0].post(theirs).status_code == 404


def test_who_has_never_confirmed_the_address_has_done_it_by_the_link(mailbox):
    sign_up()
    choose(asked_link(mailbox))
    assert person().email_verified_at is not None


@pytest.mark.parametrize("password", [{}, {"password": "!"}])
def test_closed_accounts_get_no_link(dora, mailbox, password):
    User.objects.filter(email="dora@example.com").update(is_active=False, **password)
    ask()
    door.notes_answer()
    assert mailbox.subjects("dora@example.com") == ["Confirm your e-mail address"]


def test_who_has_never_had_a_password_chooses_one_so(dora, mailbox):
    """Who has joined by an organisation's provider has none: whoever reads the address is the person."""
    User.objects.filter(email="dora@example.com").update(password="!")
    assert sign_in()[1].status_code == 422
    assert "Your password was changed" in text_of(choose(asked_link(mailbox)))
    assert sign_in(password=NEW)[1].status_code == 302


def test_a_note_is_answered_once_by_two_workers(dora, mailbox, monkeypatch):
    ask()
    (note,) = DoorNote.objects.all()
    door.notes_answer()
    monkeypatch.setattr(DoorNote.objects, "order_by", lambda _name: [note])
    door.notes_answer()
    assert mailbox.subjects("dora@example.com").count("Choose a new password") == 1


def test_without_mail_the_page_says_whom_to_ask(db):
    assert "This installation sends no e-mail: ask its operators for a new password." in text_of(ask())
    assert not DoorNote.objects.exists()


def test_a_sign_in_that_failed_stands_in_the_audit_log(alice, time):
    sign_in("alice@example.com", "wrong", REMOTE_ADDR="10.0.0.7")
    sign_in("nobody@example.com", "wrong")
    at = time.now
    time.passes(timedelta(minutes=3))
    assert door.notes_answer() == 2
    assert audited("account.sign_in_failed") == [("alice@example.com", "alice@example.com", {})]
    (entry,) = alice.api.get("/api/v1/audit?action=account.sign_in_failed").json()["items"]
    assert (entry["address"], entry["at"][:19]) == ("10.0.0.7", at.isoformat()[:19])
    assert entry["request_id"]


def test_failures_cost_the_same_whether_there_is_an_account_or_not(alice):
    costs = []
    for email in ("alice@example.com", "nobody@example.com"):
        with CaptureQueriesContext(connection) as asked:
            sign_in(email, "wrong")
        costs.append(len(asked))
    assert costs[0] == costs[1]
    assert DoorNote.objects.filter(kind=DoorKind.FAILED).count() == 2


def test_links_that_led_nowhere_for_a_month_go(dora, mailbox, time):
    asked_link(mailbox)
    time.passes(timedelta(days=30))
    upkeep.keep_up()
    assert MailedLink.objects.count() == 2
    time.passes(timedelta(days=1, hours=1))
    upkeep.keep_up()
    assert not MailedLink.objects.exists()
