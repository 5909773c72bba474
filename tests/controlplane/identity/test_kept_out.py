"""Strangers try passwords from everywhere; the person gets in all the same, in a browser that they have never used."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from controlplane.accounts import attempts
from controlplane.accounts.identity import door
from controlplane.accounts.models import User
from controlplane.console import passkey_tries
from controlplane.core.errors import TooManyAttempts
from tests.controlplane.console.conftest import text_of

from .conftest import PASSWORD, audited

EVERYWHERE = attempts.MOST["everywhere"]
DORA = "dora@example.com"


@pytest.fixture
def dora(db):
    return User.objects.create_user(DORA, PASSWORD)


def tries(password=PASSWORD, *, browser=None, email=DORA, address="10.0.1.1"):
    return (browser or Client()).post("/sign-in", {"email": email, "password": password}, REMOTE_ADDR=address)


def attacked(email=DORA):
    for number in range(EVERYWHERE + 1):
        tries("a guess", email=email, address=f"10.0.0.{number}")


def asked(browser, email=DORA):
    answer = browser.post("/sign-in/link", {"email": email})
    door.notes_answer()
    return answer


def test_the_person_gets_in_by_a_link_that_is_mailed(dora, mailbox, time):
    attacked()
    victim = Client()
    kept_out = tries(browser=victim)
    assert kept_out.status_code == 429
    assert "/sign-in/link" in kept_out.content.decode()
    assert asked(victim).status_code == 200
    link = mailbox.link(DORA)
    assert DORA in text_of(victim.get(link))
    assert tries(browser=victim).status_code == 429, "looking does nothing"
    assert victim.post(link)["Location"] == "/sign-in"
    assert "_auth_user_id" not in victim.session, "a link signs nobody in"
    assert tries("a guess", browser=victim).status_code == 422, "the password is asked for as ever"
    assert tries(browser=victim).status_code == 302
    attacked()
    victim.post("/sign-out")
    assert tries(browser=victim).status_code == 302, "and the attack goes on"
    assert len(audited("account.browser_ask")) == len(audited("account.browser_known")) == 0, (
        "she is in no organisation"
    )


def test_it_is_on_record_wherever_she_belongs(alice, mailbox, time):
    browser, email = Client(), alice.user.email
    asked(browser, email)
    assert len(audited("account.browser_ask")) == 1
    assert audited("account.browser_known") == []
    browser.post(mailbox.link(email))
    assert len(audited("account.browser_known")) == 1


def test_a_link_is_good_once_and_for_an_hour(dora, mailbox, time):
    for passes in (False, True):
        asked(Client())
        link = mailbox.link(DORA)
        if passes:
            time.passes(timedelta(hours=1))
        else:
            assert Client().post(link).status_code == 302
        assert Client().get(link).status_code == 404
        assert Client().post(link).status_code == 404


def test_the_attacker_has_nothing_of_it(dora, mailbox, time):
    """Whoever asks for the link has no more tries, and sends few mails."""
    attacker = Client()
    for _ in range(5):
        time.passes(timedelta(minutes=2))
        asked(attacker)
    assert len(mailbox.subjects(DORA)) == door.BROWSERS_AN_HOUR
    attacked()
    assert tries("a guess", browser=attacker).status_code == 429
    assert "known_browser" not in attacker.cookies


def test_nor_many_mails_a_day(dora, mailbox, time):
    for _ in range(10):
        time.passes(timedelta(hours=1, minutes=1))
        for _ in range(2):
            asked(Client())
    assert len(mailbox.subjects(DORA)) == door.BROWSERS_A_DAY
    assert set(mailbox.subjects(DORA)) == {"Signing in from a new browser"}
    time.passes(timedelta(days=1))
    asked(Client())
    assert len(mailbox.subjects(DORA)) == door.BROWSERS_A_DAY + 1


def test_the_mail_says_no_more_than_is_known(dora, mailbox, time):
    """Nobody has tried anything: who asks for the link has said so, and no more."""
    asked(Client())
    (mail,) = mailbox.of(DORA)
    assert "Somebody has asked to sign in from a new browser" in mail.get_content().replace("\n", " ")
    assert "wrong passwords" not in mail.get_content()


def test_whoever_was_going_somewhere_comes_there(dora, mailbox, time):
    attacked()
    victim, there = Client(), "/account"
    sent = {"email": DORA, "password": PASSWORD, "next": there}
    kept_out = victim.post("/sign-in", sent, REMOTE_ADDR="10.0.1.1").content.decode()
    assert 'href="/sign-in/link?next=/account"' in kept_out
    assert 'name="next" value="/account"' in victim.get("/sign-in/link?next=/account").content.decode()
    victim.post("/sign-in/link", {"email": DORA, "next": there})
    door.notes_answer()
    assert victim.post(mailbox.link(DORA))["Location"] == "/sign-in?next=%2Faccount"
    asked(Client())
    stranger = Client()
    stranger.post("/sign-in/link", {"email": DORA, "next": "https://evil.example/"})
    assert "sign_in_link_next" not in stranger.session


def test_a_passkey_that_was_tried_too_often_is_no_password(dora, monkeypatch):
    def too_many(*_):
        raise TooManyAttempts(60)

    monkeypatch.setattr(passkey_tries, "checked", too_many)
    page = Client().post("/sign-in/passkey", {"passkey": "x"})
    assert page.status_code == 429
    assert "/sign-in/link" not in page.content.decode()


def test_a_link_for_one_is_none_for_another(dora, mailbox, time):
    """And none to a new password, nor the other way round."""
    User.objects.create_user("eve@example.com", PASSWORD)
    asked(Client(), "eve@example.com")
    link = mailbox.link("eve@example.com")
    token = link.rpartition("/")[2]
    assert Client().get(f"/password/new/{token}").status_code == 404
    eve = Client()
    eve.post(link)
    attacked()
    assert tries(browser=eve).status_code == 429


def test_nobody_learns_who_has_an_account(dora, mailbox, time):
    told = []
    for email in (DORA, "nobody@example.com"):
        attacked(email)
        refused, answer = tries(email=email), asked(Client(), email)
        told.append(
            (
                refused.status_code,
                text_of(refused).replace(email, ""),
                answer.status_code,
                text_of(answer).replace(email, ""),
            )
        )
    assert told[0] == told[1]
    assert mailbox.subjects("nobody@example.com") == []


def test_asking_is_limited_by_address(dora, mailbox, time):
    answers = [Client().post("/sign-in/link", {"email": DORA}).status_code for _ in range(attempts.MOST_ASKED + 1)]
    assert answers == [200] * attempts.MOST_ASKED + [429]


def test_where_no_mail_is_sent_the_page_says_what_else_there_is(dora, settings):
    page = Client().post("/sign-in/link", {"email": DORA})
    assert "passkey" in text_of(page)
