"""Sessions are listed with where they come from, and ended one by one or all others."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore as BeforeStore
from django.contrib.sessions.models import Session as BeforeSession
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.identity import upkeep
from controlplane.accounts.identity.agents import browser_text
from controlplane.accounts.identity.engine import stored_key
from controlplane.accounts.identity.sessions import session_id
from controlplane.accounts.models import Session
from tests.controlplane.console.conftest import text_of

from .conftest import PASSWORD, audited, person, sign_in, sign_up

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile/15E148 Safari/604.1"
)
EDGE = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537 Chrome/140.0 Safari/537 Edg/140.0"
NEW = "a mill without a river"


@pytest.fixture
def dora(db):
    return sign_up()


@pytest.fixture
def phone(dora):
    return sign_in(headers={"User-Agent": SAFARI}, REMOTE_ADDR="10.0.0.7")[0]


def ids(browser):
    return re.findall(r'name="session" value="(\w{24})"', browser.get("/account/sessions").content.decode())


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (FIREFOX, "Firefox on Linux"),
        (SAFARI, "Safari on iPhone"),
        (EDGE, "Edge on Windows"),
        (
            "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537 Chrome/140.0 Mobile Safari/537",
            "Chrome on Android",
        ),
        ("", "Another browser"),
        ("<script>", "Another browser"),
    ],
)
def test_a_browser_is_named_by_its_family_and_system(agent, said):
    assert browser_text(agent) == said


def test_sessions_are_listed_with_this_one_marked(dora, phone, time):
    page = text_of(dora.get("/account/sessions"))
    assert page.index("Another browser this one") < page.index("Safari on iPhone")
    assert "10.0.0.7" in page
    assert "Safari on iPhone this one" in text_of(phone.get("/account/sessions"))


def test_the_page_does_not_show_what_a_cookie_proves(dora, phone):
    page = dora.get("/account/sessions").content.decode()
    assert not any(row.pk in page for row in Session.objects.all())


def test_one_is_ended_and_the_others_go_on(dora, phone):
    third = sign_in(headers={"User-Agent": FIREFOX})[0]
    (found,) = [each for each in ids(dora) if each not in ids(phone)]
    assert found == session_id(stored_key(phone.session.session_key))
    assert "The session has ended." in text_of(dora.post("/account/sessions", {"session": found}, follow=True))
    assert [browser.get("/account").status_code for browser in (dora, phone, third)] == [200, 302, 200]
    told = {"browser": "Safari on iPhone", "from_address": "10.0.0.7"}
    assert audited("account.session_end") == [("dora@example.com", "dora@example.com", told)]
    assert dora.post("/account/sessions", {"session": found}).status_code == 404, "it has ended already"


def test_all_others_are_ended(dora, phone):
    third = sign_in()[0]
    assert "2 other sessions have ended." in text_of(dora.post("/account/sessions", {"others": "1"}, follow=True))
    assert [browser.get("/account").status_code for browser in (dora, phone, third)] == [200, 302, 302]
    assert "There was no other session." in text_of(dora.post("/account/sessions", {"others": "1"}, follow=True))
    assert audited("account.session_end") == [("dora@example.com", "dora@example.com", {"sessions": 2})]


def test_nobody_ends_a_session_of_somebody_else(dora, at_alice):
    (theirs,) = Session.objects.filter(user=person())
    assert at_alice.client.post("/account/sessions", {"session": session_id(theirs.pk)}).status_code == 404
    assert dora.get("/account").status_code == 200


def test_a_session_that_has_ended_is_not_written_back_by_a_request_that_was_under_way(dora, phone):
    session = phone.session
    assert session["begun_at"]
    Session.objects.filter(pk=stored_key(session.session_key)).delete()
    session["more"] = "data"
    with pytest.raises(UpdateError):
        session.save()
    assert phone.get("/account").status_code == 302


def test_another_password_ends_the_others(dora, phone):
    dora.post("/account", {"change": "password", "current": PASSWORD, "password": NEW})
    assert dora.get("/account").status_code == 200
    assert Session.objects.filter(user=person()).count() == 1


def test_that_it_was_seen_is_written_once_a_minute(dora, time):
    dora.get("/account")
    row = Session.objects.get(user=person())
    begun = row.begun_at
    for after, written in ((59, 0), (1, 1), (59, 0), (1, 1)):
        time.passes(timedelta(seconds=after))
        with CaptureQueriesContext(connection) as asked:
            dora.get("/account")
        updates = [query for query in asked.captured_queries if query["sql"].startswith("UPDATE")]
        assert len(updates) == written
    row.refresh_from_db()
    assert (row.seen_at, row.begun_at) == (time.now, begun)


def test_those_that_have_expired_are_swept(dora, phone, time):
    Session.objects.filter(agent=SAFARI).update(expire_date=time.now)
    upkeep.keep_up()
    assert Session.objects.count() == 1


def test_looking_at_the_start_begins_no_session(db):
    Client().get("/")
    Client().get("/sign-in")
    assert not Session.objects.exists()


def test_whoever_is_signed_in_stays_so_when_the_release_is_new(dora):
    """Django's own table is read once, and what its cookies say is digested."""
    moved = import_module("controlplane.accounts.migrations.0007_move_sessions")
    sealed = import_module("controlplane.accounts.migrations.0011_sealed_with_keys")
    store = BeforeStore()
    store.update(dict(dora.session.items()))
    store.create()
    BeforeStore().create()  # of nobody
    Session.objects.all().delete()
    moved.move(apps, None)
    for _ in range(2):  # what is a digest already stays as it is
        sealed.digest(apps, SimpleNamespace(connection=connection))
    dora.cookies["sessionid"] = store.session_key
    assert dora.get("/account").status_code == 200
    assert Session.objects.get().user == person()
    assert not BeforeSession.objects.exists()


def test_what_the_database_shows_of_a_session_signs_nobody_in(dora):
    (row,) = Session.objects.filter(user=person())
    said = dora.cookies["sessionid"].value
    assert said not in row.pk
    for stolen in (row.pk, row.pk[:32]):
        thief = Client()
        thief.cookies["sessionid"] = stolen
        assert thief.get("/account").status_code == 302
    assert dora.get("/account").status_code == 200


def test_nobody_chooses_the_key_of_a_session(dora):
    """Signing in where a cookie says a key of no session: it gets another."""
    browser = Client()
    browser.cookies["sessionid"] = "a" * 32
    browser.post("/sign-in", {"email": "dora@example.com", "password": PASSWORD})
    assert browser.cookies["sessionid"].value != "a" * 32
    assert not Session.objects.filter(pk=stored_key("a" * 32)).exists()
