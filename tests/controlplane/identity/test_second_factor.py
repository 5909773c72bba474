"""A second factor: set up with an app, asked for at the second step, left by recovery codes, demanded by organisations."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyotp
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client

from controlplane.accounts import attempts
from controlplane.accounts.identity import second_factor, totp
from controlplane.accounts.identity.door import notes_answer
from controlplane.accounts.models import RecoveryCode, SecondFactor, Session, User
from controlplane.accounts.selectors import caller_in
from controlplane.ckafka_api.actions.table import TABLE
from controlplane.ckafka_api.dispatch import call_of
from controlplane.core.errors import Forbidden, Invalid
from controlplane.organisations import ownership
from controlplane.sealing.keyring import drawn
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Organisation, Role
from tests.controlplane.conftest import client_of
from tests.controlplane.console.conftest import problem_beside, text_of
from tests.controlplane.test_instances_api import problem

from .conftest import PASSWORD, audited, person, sign_in, sign_up

STEP = timedelta(seconds=totp.STEP_S)
RFC_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # of RFC 6238, appendix B


class App:
    """The app on a phone: it was shown the page, and knows the time."""

    def __init__(self, browser, time) -> None:
        self.browser, self.time = browser, time
        browser.post("/account/second-factor", {"do": "begin"})
        page = browser.get("/account/second-factor").content.decode()
        self.secret = re.search(r'<code id="totp-secret"[^>]*>([A-Z2-7 ]+)</code>', page)[1].replace(" ", "")
        self.recovery: list[str] = []

    def code(self, steps: int = 0) -> str:
        return pyotp.TOTP(self.secret).at(self.time.now + steps * STEP)

    def switch_on(self):
        page = self.browser.post("/account/second-factor", {"do": "confirm", "code": self.code()})
        self.recovery = re.findall(r"\b(?:[a-z0-9]{4}-){3}[a-z0-9]{4}\b", page.content.decode())
        return page


@pytest.fixture
def time(time):
    time.now = datetime(2026, 5, 1, 10, 3, 10, tzinfo=UTC)
    return time


@pytest.fixture
def app(db, time) -> App:
    """Dora's, switched on; its next code is good."""
    app = App(sign_up(), time)
    assert app.switch_on().status_code == 200
    time.passes(STEP)
    return app


def second_step(browser, code):
    return browser.post("/sign-in/code", {"code": code})


# --- codes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_s", "code"), [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")]
)
def test_codes_are_those_of_rfc_6238(at_s, code):
    assert totp.step_of(RFC_SECRET, code, now_s=at_s, after=0) == at_s // 30


@pytest.mark.parametrize(("steps", "is_right"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_clock_may_be_one_step_off(steps, is_right):
    code = pyotp.TOTP(RFC_SECRET).at(900 + steps * 30)
    assert (totp.step_of(RFC_SECRET, code, now_s=900, after=0) is not None) == is_right


def test_a_step_that_was_used_is_not_taken_again():
    code = pyotp.TOTP(RFC_SECRET).at(900)
    assert totp.step_of(RFC_SECRET, code, now_s=900, after=29) == 30
    assert totp.step_of(RFC_SECRET, code, now_s=900, after=30) is None


# --- setting up -----------------------------------------------------------------------------------------------------------


def test_it_is_on_once_a_code_was_typed_and_recovery_codes_are_shown_once(db, time):
    dora = sign_up()
    app = App(dora, time)
    page = dora.get("/account/second-factor").content.decode()
    assert re.search(r'<div class="qr"[^>]*>\s*<svg[^>]*>.*<path', page, re.DOTALL)
    assert sign_in()[1]["Location"] == "/", "nothing is asked for yet"
    wrong = dora.post("/account/second-factor", {"do": "confirm", "code": app.code(5)})
    assert problem_beside(wrong, "code").startswith("This code is not right")
    shown = text_of(app.switch_on())
    assert len(set(app.recovery)) == 10
    assert all(code in shown for code in app.recovery)
    after = text_of(dora.get("/account/second-factor"))
    assert "10 of 10 recovery codes are left." in after
    assert not any(code in after for code in app.recovery)
    assert app.secret[:4] not in after.split()
    assert audited("account.second_factor_on") == [("dora@example.com", "dora@example.com", {})]


def test_the_database_shows_neither_the_secret_nor_a_code(app):
    with connection.cursor() as cursor:
        stored = ""
        for table in ("accounts_secondfactor", "accounts_recoverycode", "accounts_session"):
            cursor.execute(f"SELECT * FROM {table}")
            stored += repr([[bytes(each) if isinstance(each, memoryview) else each for each in row] for row in cursor])
    assert app.secret not in stored
    assert app.recovery[0].replace("-", "") not in stored


def test_whose_secret_cannot_be_read_is_told_and_gets_in_by_a_code_from_paper(app, settings, tmp_path):
    """The file of keys is another installation's."""
    path = tmp_path / "encryption.keys"
    path.write_text(drawn())
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, encryption_keys_file=path)
    browser = sign_in()[0]
    answer = browser.post("/sign-in/code", {"code": app.code(1)})
    assert answer.status_code == 503
    assert "ask the operators" in text_of(answer)
    assert browser.post("/sign-in/code", {"code": app.recovery[0]})["Location"] == "/"
    assert browser.get("/account").status_code == 200


def test_one_that_was_being_set_up_when_its_key_was_lost_is_begun_anew(db, time, settings, tmp_path):
    browser = sign_up()
    browser.post("/account/second-factor", {"do": "begin"})
    before = SecondFactor.objects.get().secret
    path = tmp_path / "encryption.keys"
    path.write_text(drawn())
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, encryption_keys_file=path)
    assert browser.get("/account/second-factor").status_code == 200
    browser.post("/account/second-factor", {"do": "begin"})
    assert SecondFactor.objects.get().secret != before
    assert second_factor.secret_of(person()) is not None


def test_who_has_one_sets_up_no_other_beside_it(app):
    secret = second_factor.secret_of(person())
    assert app.browser.post("/account/second-factor", {"do": "begin"}).status_code == 409
    assert second_factor.secret_of(person()) == secret


# --- signing in -----------------------------------------------------------------------------------------------------------


def test_signing_in_takes_both_steps(app):
    browser, answer = sign_in(follow=False)
    assert answer["Location"] == "/sign-in/code"
    assert browser.get("/account").status_code == 302, "the password alone opens nothing"
    assert problem_beside(second_step(browser, "000000"), "code") == "This code is not right; each is taken once."
    assert second_step(browser, app.code())["Location"] == "/"
    assert browser.get("/account").status_code == 200
    assert audited("account.sign_in_failed") == [("dora@example.com", "dora@example.com", {"step": "code"})]
    assert len(audited("account.sign_in")) == 1


def test_whoever_wanted_to_go_somewhere_comes_there(app):
    browser = sign_in()[0]
    browser.post("/sign-in", {"email": "dora@example.com", "password": PASSWORD, "next": "/account/sessions"})
    assert second_step(browser, app.code())["Location"] == "/account/sessions"


def test_a_code_is_taken_once(app):
    assert second_step(sign_in()[0], app.code()).status_code == 302
    assert second_step(sign_in()[0], app.code()).status_code == 422
    assert second_step(sign_in()[0], app.code(-1)).status_code == 422, "nor one of before it"
    app.time.passes(STEP)
    assert second_step(sign_in()[0], f" {app.code()[:3]} {app.code()[3:]}").status_code == 302


def test_of_two_at_once_one_gets_in(app, monkeypatch):
    real = totp.step_of

    def both_have_looked(*args, **named):
        found = real(*args, **named)
        monkeypatch.setattr(totp, "step_of", real)
        second_factor.code_check(user=person(), code=app.code())
        return found

    monkeypatch.setattr(totp, "step_of", both_have_looked)
    with pytest.raises(Invalid):
        second_factor.code_check(user=person(), code=app.code())


def test_a_recovery_code_is_taken_once_in_place_of_the_app(app):
    code = app.recovery[3]
    assert second_step(sign_in()[0], code.upper().replace("-", " ")).status_code == 302
    assert second_step(sign_in()[0], code).status_code == 422
    assert audited("account.recovery_code") == [("dora@example.com", "dora@example.com", {"left": 9})]
    assert "9 of 10 recovery codes are left." in text_of(app.browser.get("/account/second-factor"))


def test_codes_cannot_be_guessed(app):
    browser = sign_in()[0]
    for _ in range(attempts.MOST["account"]):
        assert second_step(browser, "000000").status_code == 422
    page = second_step(browser, app.code())
    assert page.status_code == 429
    assert int(page["Retry-After"]) > 0
    assert sign_in()[1].status_code == 302, "the first step has a count of its own"


def test_the_second_step_waits_ten_minutes(app):
    browser = sign_in()[0]
    app.time.passes(timedelta(minutes=10))
    assert second_step(browser, app.code())["Location"] == "/sign-in"


def test_another_password_ends_what_waits_for_the_second_step(app):
    browser = sign_in()[0]
    user = person()
    user.set_password("a mill without a river")
    user.save()
    assert second_step(browser, app.code())["Location"] == "/sign-in"


def test_without_the_first_step_there_is_no_second(app, client):
    assert client.get("/sign-in/code")["Location"] == "/sign-in"
    assert second_step(client, app.code())["Location"] == "/sign-in"


# --- leaving it -----------------------------------------------------------------------------------------------------------


def test_sessions_that_began_with_the_password_alone_end_when_it_is_switched_on(db, time):
    browser = sign_up()
    elsewhere, _ = sign_in()
    page = App(browser, time).switch_on()
    assert "your other session has ended" in text_of(page).lower()
    assert elsewhere.get("/account").status_code == 302, "whoever has the password alone is not in any more"
    assert browser.get("/account").status_code == 200


def test_it_is_set_up_by_whoever_reads_the_address(mailbox, time):
    """Else a stranger who signs up with it keeps its owner out, who has nothing but the mail."""
    stranger = sign_up()
    page = stranger.post("/account/second-factor", {"do": "begin"})
    assert page.status_code == 403
    assert "Confirm your e-mail address first" in text_of(page)
    assert not SecondFactor.objects.exists()
    time.passes(timedelta(minutes=1))
    Client().post("/password/forgotten", {"email": "dora@example.com"})
    notes_answer()
    Client().post(mailbox.link("dora@example.com"), {"password": "a lake behind the dam"})
    owner, answer = sign_in(password="a lake behind the dam")
    assert answer.status_code == 302
    assert owner.get("/account").status_code == 200
    assert stranger.get("/account").status_code == 302


def test_it_is_switched_off(app):
    page = app.browser.post("/account/second-factor", {"do": "remove"}, follow=True)
    assert "The second factor was switched off." in text_of(page)
    assert sign_in()[1]["Location"] == "/"
    assert not SecondFactor.objects.exists()
    assert not RecoveryCode.objects.exists()
    assert audited("account.second_factor_off") == [("dora@example.com", "dora@example.com", {})]


def test_new_recovery_codes_end_those_of_before(app):
    page = app.browser.post("/account/second-factor", {"do": "renew"})
    fresh = re.findall(r"\b(?:[a-z0-9]{4}-){3}[a-z0-9]{4}\b", page.content.decode())
    assert second_step(sign_in()[0], app.recovery[0]).status_code == 422
    assert second_step(sign_in()[0], fresh[0]).status_code == 302


def test_an_operator_switches_it_off_for_somebody_who_has_lost_it(app):
    told = io.StringIO()
    with pytest.raises(CommandError, match="no operator"):
        call_command("second_factor_off", "dora@example.com", by="opal@example.com", reason="showed her passport")
    User.objects.create_user("opal@example.com", "a long pass phrase", is_staff=True)
    call_command(
        "second_factor_off", "dora@example.com", by="opal@example.com", reason="showed her passport", stdout=told
    )
    assert told.getvalue().startswith("dora@example.com signs in by the password alone now.")
    assert not Session.objects.filter(user=person()).exists()
    assert sign_in()[1]["Location"] == "/"
    detail = {"reason": "showed her passport"}
    assert audited("account.second_factor_off") == [("opal@example.com", "dora@example.com", detail)]
    for email, said in (("dora@example.com", "has no second factor"), ("nobody@example.com", "there is no account")):
        with pytest.raises(CommandError, match=said):
            call_command("second_factor_off", email, by="opal@example.com", reason="r")


def test_the_person_is_told_by_mail(mailbox, time):
    dora = sign_up()
    dora.post(mailbox.link("dora@example.com"))
    app = App(dora, time)
    app.switch_on()
    dora.post("/account/second-factor", {"do": "remove"})
    assert {"Your second factor was switched on", "Your second factor was switched off"} <= set(
        mailbox.subjects("dora@example.com")
    )


# --- demanded by an organisation --------------------------------------------------------------------------------------------


@pytest.fixture
def demanding(alice, bob, at_alice, time) -> Organisation:
    """Alice's, whose owner has a second factor."""
    App(at_alice.client, time).switch_on()
    page = at_alice.post("members/second-factor", {"demanded": "1"}, follow=True)
    assert "Every member needs a second factor." in text_of(page)
    return Organisation.objects.get(pk=alice.organisation.pk)


def test_a_member_without_one_reaches_the_own_account_and_nothing_else(demanding, bob, at_bob):
    page = at_bob.get("instances")
    assert page.status_code == 403
    assert "The organisation alice's requires its members to have a second factor" in text_of(page)
    assert 'href="/account/second-factor"' in page.content.decode()
    assert at_bob.client.get("/account").status_code == 200
    for answer in (bob.api.get("/api/v1/instances"), bob.api.get("/api/v1/me"), bob.api.post("/api/v1/api-keys", {})):
        problem(answer, 403, "second_factor_needed")
    caller = caller_in(user=bob.user, organisation_id=demanding.id)
    with pytest.raises(Forbidden, match="requires its members to have a second factor"):
        call_of("DescribeInstances", TABLE["DescribeInstances"], caller, {})


def test_who_sets_one_up_is_in_again_with_their_keys(demanding, bob, at_bob, time):
    App(at_bob.client, time).switch_on()
    assert at_bob.get("instances").status_code == 200
    assert client_of(bob.key).get("/api/v1/instances").status_code == 200


def test_an_answer_that_was_kept_is_not_repeated_to_who_may_not_act(alice, bob, brokers, at_alice, time):
    sent = {"name": "k"}
    first = bob.api.post("/api/v1/api-keys", sent, headers={"Idempotency-Key": "once"})
    assert first.status_code == 201
    App(at_alice.client, time).switch_on()
    at_alice.post("members/second-factor", {"demanded": "1"})
    again = bob.api.post("/api/v1/api-keys", sent, headers={"Idempotency-Key": "once"})
    problem(again, 403, "second_factor_needed")


def test_owners_see_who_has_one_and_members_do_not(demanding, at_alice, at_bob, time):
    table = at_alice.get("members").content.decode()
    states = re.findall(r'<td data-label="Second factor"><span class="state \w+"><i></i>(\w+)<', table)
    assert states == ["On", "Off"], "alice and bob"
    at_alice.post("members/second-factor", {"demanded": "0"})
    assert "Require it" not in text_of(at_bob.get("members"))
    assert 'data-label="Second factor"' not in at_bob.get("members").content.decode()
    assert 'data-label="Second factor"' in at_alice.get("members").content.decode()


def test_an_owner_without_one_cannot_shut_everybody_out(at_alice):
    page = at_alice.post("members/second-factor", {"demanded": "1"}, follow=True)
    assert "Set up a second factor for yourself first." in text_of(page)
    assert not Organisation.objects.get().second_factor_demanded


def test_members_do_not_decide_it(at_bob):
    assert at_bob.post("members/second-factor", {"demanded": "1"}).status_code == 403


@pytest.mark.parametrize("demanded", [True, False])
def test_who_owned_when_the_page_was_opened_decides_it_no_more(alice, bob, at_alice, time, demanded):
    App(at_alice.client, time).switch_on()
    alice.user.refresh_from_db()
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    tenants.membership_set(organisation=alice.organisation, user=alice.user, role=Role.MEMBER)
    with pytest.raises(Forbidden):
        ownership.second_factor_demand(organisation=alice.organisation, by=alice.user, demanded=demanded)
    assert not audited("organisation.second_factor_demanded") + audited("organisation.second_factor_left")


def test_what_was_demanded_stands_in_the_audit_log(demanding, at_alice):
    at_alice.post("members/second-factor", {"demanded": "0"})
    for action, before in (("organisation.second_factor_demanded", False), ("organisation.second_factor_left", True)):
        changed = {"demanded": {"from": before, "to": not before}}
        assert audited(action) == [("alice@example.com", demanding.id, changed)]
