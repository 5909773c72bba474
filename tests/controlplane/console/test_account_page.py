"""Whoever is signed in changes name and password by oneself."""

from __future__ import annotations

import pytest
from django.test import Client

from controlplane.accounts import attempts
from controlplane.accounts.models import User
from controlplane.core.models import AuditEntry
from tests.controlplane.conftest import client_of

from .conftest import problem_beside, text_of

OLD, NEW = "water over the wheel", "a mill without a river"


@pytest.fixture
def dora(db):
    browser = Client()
    browser.post(
        "/sign-up", {"email": "dora@example.com", "name": "Dora", "organisation_name": "Mill", "password": OLD}
    )
    return browser


def sign_in(password):
    browser = Client()
    return browser, browser.post("/sign-in", {"email": "dora@example.com", "password": password})


def change(browser, current=OLD, password=NEW, **options):
    return browser.post("/account", {"change": "password", "current": current, "password": password}, **options)


def test_the_menu_leads_there(dora):
    page = dora.get("/account")
    assert "dora@example.com" in text_of(page)
    assert '<a href="/account">Dora</a>' in page.content.decode()


def test_whoever_is_not_signed_in_is_asked_to(db):
    assert Client().get("/account")["Location"] == "/sign-in?next=%2Faccount"


def test_a_password_is_changed_and_all_other_sessions_end(dora):
    other, _ = sign_in(OLD)
    assert other.get("/account").status_code == 200
    answer = change(dora, follow=True)
    assert "Your password was changed." in text_of(answer)
    assert dora.get("/account").status_code == 200, "whoever changed it stays"
    assert other.get("/account").status_code == 302
    assert sign_in(OLD)[1].status_code == 422
    assert sign_in(NEW)[1].status_code == 302
    (entry,) = AuditEntry.objects.unscoped("a test").filter(action="account.password")
    assert (entry.actor, entry.organisation.name, entry.detail) == ("dora@example.com", "Mill", {})


def test_keys_go_on(alice):
    alice.user.set_password(OLD)
    alice.user.save()
    browser = Client()
    browser.post("/sign-in", {"email": "alice@example.com", "password": OLD})
    assert change(browser).status_code == 302
    assert client_of(alice.key).get("/api/v1/me").status_code == 200


@pytest.mark.parametrize(
    ("current", "password", "field", "said"),
    [
        ("not this one", NEW, "current", "This is not your password."),
        ("", NEW, "current", "This field is required."),
        (OLD, "", "password", "This field is required."),
        (OLD, OLD, "password", "This is the password that you have."),
        (OLD, "short", "password", "This password is too short. It must contain at least 10 characters."),
        (OLD, "dora@example.com", "password", "The password is too similar to the email."),
    ],
)
def test_what_is_wrong_stands_beside_it(dora, current, password, field, said):
    page = change(dora, current, password)
    assert page.status_code == 422
    assert problem_beside(page, field) == said
    assert OLD not in page.content.decode()
    assert sign_in(OLD)[1].status_code == 302


def test_a_session_that_was_left_open_is_no_way_to_guess_the_password(dora):
    for _ in range(attempts.MOST["account"]):
        assert change(dora, "a guess").status_code == 422
    page = change(dora)
    assert page.status_code == 429
    assert 0 < int(page["Retry-After"]) <= attempts.WINDOW_S
    assert "Too many attempts: try again in" in text_of(page)
    assert User.objects.get().check_password(OLD)


def test_who_is_signed_in_changes_it_while_a_stranger_guesses(dora):
    """They are the one who has to."""
    for _ in range(attempts.MOST["account"] + 1):
        sign_in("a guess")
    assert sign_in(OLD)[1].status_code == 429
    assert change(dora).status_code == 302
    assert User.objects.get().check_password(NEW)


def test_new_passwords_that_will_not_do_are_no_guesses(dora):
    """They do not keep the person from signing in, nor from the next try."""
    for _ in range(attempts.MOST["account"]):
        assert problem_beside(change(dora, OLD, "short"), "password").startswith("This password is too short.")
    assert sign_in(OLD)[1].status_code == 302
    assert change(dora).status_code == 302


def test_a_name_is_changed(dora):
    answer = dora.post("/account", {"change": "name", "name": " Dora Miller "}, follow=True)
    assert "Your name was changed." in text_of(answer)
    assert "Dora Miller" in text_of(answer)
    dora.post("/account", {"change": "name", "name": ""})
    assert '<a href="/account">dora@example.com</a>' in dora.get("/account").content.decode()


def test_what_is_neither_changes_nothing(dora):
    for sent in ({}, {"change": "email", "email": "eve@example.com"}, {"current": OLD, "password": NEW}):
        assert dora.post("/account", sent).status_code == 200
    assert User.objects.get().check_password(OLD)
