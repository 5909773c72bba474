"""Something dangerous is done by whoever has shown within 15 minutes that it is them; the page that asks goes on with it."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.test import Client

from controlplane.accounts import attempts
from controlplane.accounts.models import ApiKey, Session
from controlplane.instances.models import Instance
from controlplane.tenants.models import Invitation, Membership
from tests.controlplane.console.conftest import problem_beside, text_of

from .conftest import PASSWORD, audited
from .test_second_factor import STEP, App

QUARTER = timedelta(minutes=15)


@pytest.fixture
def alice_long_ago(alice, at_alice, time):
    """She has signed in a quarter of an hour ago."""
    alice.user.set_password(PASSWORD)
    alice.user.save()
    at_alice.client.force_login(alice.user)
    time.passes(QUARTER)
    return at_alice


def carried(page) -> dict[str, str]:
    """What the page sends along, besides the proof."""
    body = page.content.decode().partition('<form class="card form narrow"')[2]
    found = re.findall(r'<input type="hidden" name="(?!csrf)(\w+)" value="([^"]*)">', body)
    return {name: html.unescape(value) for name, value in found}


def is_asked(page) -> bool:
    return "Is it you?" in text_of(page)


def keys(name):
    return ApiKey.objects.unscoped("a test").filter(name=name).count()


def test_signing_in_is_a_proof_for_a_quarter_of_an_hour(at_alice, time):
    time.passes(QUARTER - timedelta(seconds=1))
    assert not is_asked(at_alice.post("keys", {"name": "soon"}))
    time.passes(timedelta(seconds=1))
    assert is_asked(at_alice.post("keys", {"name": "late"}))
    assert (keys("soon"), keys("late")) == (1, 0)


def test_what_was_begun_goes_on_after_the_password(alice_long_ago):
    page = alice_long_ago.post("keys", {"name": 'deploy "pipeline" <1>'})
    sent = carried(page)
    assert sent == {"name": 'deploy "pipeline" <1>'}
    assert f'action="{alice_long_ago.address("keys")}"' in page.content.decode()
    page = alice_long_ago.post("keys", {**sent, "proof": PASSWORD})
    assert "Your new key" in text_of(page)
    assert keys('deploy "pipeline" <1>') == 1
    assert not is_asked(alice_long_ago.post("keys", {"name": "next"})), "it is good for the next quarter of an hour"


def test_a_wrong_password_does_nothing_and_keeps_what_was_typed(alice_long_ago):
    page = alice_long_ago.post("keys", {"name": "k", "proof": "a guess"})
    assert problem_beside(page, "proof") == "This is not your password."
    assert carried(page) == {"name": "k"}
    assert "a guess" not in page.content.decode()
    assert keys("k") == 0
    assert audited("account.proof_failed") == [("alice@example.com", "alice@example.com", {})]


def test_a_session_that_was_left_open_is_no_way_to_guess_the_password(alice_long_ago):
    for _ in range(attempts.MOST["account"]):
        assert alice_long_ago.post("keys", {"name": "k", "proof": "a guess"}).status_code == 422
    page = alice_long_ago.post("keys", {"name": "k", "proof": PASSWORD})
    assert (page.status_code, keys("k")) == (429, 0)
    assert int(page["Retry-After"]) > 0


def test_a_code_of_the_second_factor_is_a_proof(alice, at_alice, time):
    app = App(at_alice.client, time)
    app.switch_on()
    time.passes(QUARTER)
    page = at_alice.post("keys", {"name": "k"})
    assert "Password, or a code from your app" in text_of(page)
    assert "Your new key" in text_of(at_alice.post("keys", {"name": "k", "proof": app.code()}))
    time.passes(QUARTER - STEP)
    assert not is_asked(at_alice.post("keys", {"name": "again"}))


# --- where factors are switched off -------------------------------------------------------------------------------------------


@pytest.fixture
def app(alice, at_alice, time):
    """Hers; she has set it up and signed in a quarter of an hour ago, and her next code is good."""
    alice.user.set_password(PASSWORD)
    alice.user.save()
    at_alice.client.force_login(alice.user)
    app = App(at_alice.client, time)
    app.switch_on()
    time.passes(QUARTER)
    return app


def factor(browser, **typed):
    return browser.post("/account/second-factor", typed)


def is_on(alice):
    alice.user.refresh_from_db()
    return alice.user.second_factor_at is not None


@pytest.mark.parametrize("does", ["begin", "renew", "remove"])
def test_whoever_has_a_second_factor_changes_it_by_that_and_not_by_the_password(alice, app, does):
    page = factor(app.browser, do=does)
    assert "Your second factor is changed with your second factor" in text_of(page)
    assert "Code from your app, or a recovery code" in text_of(page)
    page = factor(app.browser, do=does, proof=PASSWORD)
    assert problem_beside(page, "proof") == "This is not a code that is good now."
    assert audited("account.proof_failed") == [("alice@example.com", "alice@example.com", {})]
    assert is_on(alice)
    assert not is_asked(factor(app.browser, do=does, proof=app.code()))


def test_a_password_of_a_moment_ago_is_no_proof_there(alice, app, at_alice):
    assert "Your new key" in text_of(at_alice.post("keys", {"name": "k", "proof": PASSWORD}))
    assert not is_asked(at_alice.post("keys", {"name": "again"}))
    assert is_asked(factor(app.browser, do="remove"))
    assert is_asked(app.browser.post("/account/passkeys", {"do": "begin"}))
    assert is_on(alice)


def test_a_code_of_a_moment_ago_is_one_wherever_it_was_asked_for(alice, app, at_alice):
    assert "Your new key" in text_of(at_alice.post("keys", {"name": "k", "proof": app.code()}))
    factor(app.browser, do="remove")
    assert not is_on(alice)


def test_whoever_has_lost_the_app_switches_it_off_by_a_recovery_code(alice, app):
    assert is_asked(factor(app.browser, do="remove"))
    factor(app.browser, do="remove", proof=app.recovery[0])
    assert not is_on(alice)


def test_a_session_that_began_with_the_factor_has_shown_it(alice, app):
    anew = Client()
    anew.force_login(alice.user)  # as the second step of signing in does
    factor(anew, do="remove")
    assert not is_on(alice)


def test_guesses_at_the_code_are_counted(app):
    for _ in range(attempts.MOST["account"]):
        assert factor(app.browser, do="remove", proof="000000").status_code == 422
    assert factor(app.browser, do="remove", proof=app.code()).status_code == 429


@pytest.mark.parametrize("place", ["a form", "the form for another password"])
def test_the_password_gives_nobody_more_guesses_at_the_code(app, at_alice, place):
    """Whoever knows it and sits at the session would else begin anew with it each time that the guesses are used up."""
    for _ in range(attempts.MOST["account"] - 1):
        assert factor(app.browser, do="remove", proof="000000").status_code == 422
    if place == "a form":
        assert "Your new key" in text_of(at_alice.post("keys", {"name": "k", "proof": PASSWORD}))
    else:
        page = app.browser.post("/account", {"change": "password", "current": PASSWORD, "password": "short"})
        assert page.status_code == 422
    assert factor(app.browser, do="remove", proof="000000").status_code == 422
    assert factor(app.browser, do="remove", proof=app.code()).status_code == 429


def test_whoever_has_none_sets_one_up_by_the_password(alice_long_ago):
    page = factor(alice_long_ago.client, do="begin")
    assert "You signed in a while ago." in text_of(page)
    assert not is_asked(factor(alice_long_ago.client, do="begin", proof=PASSWORD))


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("{org}/instances/{instance}/delete", {"confirmation": "events"}),
        ("{org}/keys", {"name": "k"}),
        ("{org}/members/{member}/role", {"role": "owner"}),
        ("{org}/members/{member}/remove", {"sure": "1"}),
        ("{org}/members", {"email": "another@example.com", "role": "owner"}),
        ("{org}/members/second-factor", {"demanded": "1"}),
        ("{org}/settings", {"do": "rename", "name": "Harbour"}),
        ("{org}/settings", {"do": "transfer", "email": "bob@example.com", "step_down": "viewer"}),
        ("{org}/deletion", {"do": "delete", "confirmation": "alice's"}),
        ("account/address", {"email": "new@example.com"}),
        ("account/second-factor", {"do": "begin"}),
    ],
)
def test_each_of_these_is_asked_for(alice, alice_long_ago, instance, bob, path, typed):
    member = Membership.objects.get(user=bob.user)
    found = path.format(org=alice.organisation.id, instance=instance.id, member=member.pk)
    page = alice_long_ago.client.post(f"/{found}", typed)
    assert is_asked(page)
    assert carried(page) == typed
    member.refresh_from_db()
    assert member.role == "member"
    assert not Invitation.objects.unscoped("a test").exists()
    assert Instance.objects.unscoped("a test").get().state == "running"
    assert not is_asked(alice_long_ago.client.post(f"/{found}", {**typed, "proof": PASSWORD}, follow=True))


def test_looking_is_not_asked_for(alice_long_ago, instance):
    for path in ("keys", "members", f"instances/{instance.id}/delete"):
        assert alice_long_ago.get(path).status_code == 200


def test_whoever_may_not_do_it_is_not_asked_first(at_viewer, time):
    time.passes(QUARTER)
    assert at_viewer.post("keys", {"name": "k"}).status_code == 403


def test_a_key_is_its_own_proof(alice, time):
    time.passes(QUARTER)
    assert alice.api.post("/api/v1/api-keys", {"name": "k"}).status_code == 201


def test_a_session_of_a_release_before_is_asked(at_alice, time):
    """Its data does not say when it has begun, and being written does not make it new."""
    session = at_alice.client.session
    data = {name: value for name, value in session.items() if name != "begun_at"}
    Session.objects.update(session_data=session.encode(data), begun_at=time.now - QUARTER)
    at_alice.get()  # the session remembers where she last was, and is saved
    assert is_asked(at_alice.post("keys", {"name": "k"}))


@pytest.mark.parametrize(
    ("before", "back"),
    [
        ("http://testserver/{org}/keys?page=2", "/{org}/keys?page=2"),
        ("https://evil.example.com/keys", "/"),
        ("http://testserver//evil.example.com/", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_whoever_cancels_comes_back_to_where_the_form_was_and_to_no_other_site(alice_long_ago, before, back):
    org = alice_long_ago.organisation.id
    headers = {"Referer": before.format(org=org)} if before else {}
    page = alice_long_ago.post("keys", {"name": "k"}, headers=headers)
    assert f'href="{back.format(org=org)}">Cancel' in page.content.decode()
    again = alice_long_ago.post("keys", {"name": "k", "proof": "a guess", "proof_back": before.format(org=org)})
    assert f'href="{back.format(org=org)}">Cancel' in again.content.decode()
