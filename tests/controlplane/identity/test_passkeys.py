"""Passkeys: added, listed, used in each of three ways, removed; and whatever an attacker may try with them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import pyotp
import pytest
from django.core.management import call_command
from django.test import Client

from controlplane.accounts.identity import passkeys, second_factor, webauthn
from controlplane.accounts.models import Passkey, RecoveryCode, Session, User
from controlplane.core.errors import Invalid
from controlplane.tenants.models import Organisation
from tests.controlplane.conftest import CONSOLE_URL
from tests.controlplane.console.conftest import text_of

from .authenticator import PRESENT, Authenticator
from .conftest import PASSWORD, audited, person, sign_in, sign_up
from .test_second_factor import App

pytestmark = pytest.mark.django_db
WRONG = "This passkey is not right: try again, or sign in another way."


@pytest.fixture(autouse=True)
def named(settings):
    """The service knows its own address."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, console_url=CONSOLE_URL)


def challenge(browser, purpose):
    return browser.post("/passkeys/challenge", {"purpose": purpose})


def add(browser, authenticator=None, name="phone"):
    authenticator = authenticator or Authenticator()
    options = challenge(browser, "add").json()
    page = browser.post("/account/passkeys", {"name": name, "passkey": authenticator.make(options)})
    return authenticator, page


def present(authenticator, browser=None, purpose="sign_in", to="/sign-in/passkey", **options):
    browser = browser or Client()
    asked = challenge(browser, purpose).json()
    return browser, browser.post(to, {"passkey": authenticator.show(asked, **options)})


def is_in(browser) -> bool:
    return browser.get("/account").status_code == 200


@pytest.fixture
def dora():
    return sign_up()


@pytest.fixture
def phone(dora):
    authenticator, page = add(dora)
    assert page.status_code == 200, page.content
    return authenticator


# --- adding -------------------------------------------------------------------------------------------------------------


def test_the_first_one_is_a_second_factor_with_recovery_codes_and_ends_other_sessions(dora):
    other, answer = sign_in()
    assert answer.status_code == 302
    _, page = add(dora, name="key on my ring")
    assert len(set(re.findall(r"\b(?:[a-z0-9]{4}-){3}[a-z0-9]{4}\b", page.content.decode()))) == 10
    assert person().second_factor_at is not None
    assert not is_in(other)
    assert "key on my ring" in text_of(dora.get("/account/passkeys"))
    assert [entry[2]["passkey"] for entry in audited("account.passkey_add")] == [Passkey.objects.get().pk]


def test_several_have_names_and_one_handle_and_codes_are_made_once(dora, phone):
    before = list(RecoveryCode.objects.values_list("digest", flat=True))
    second, page = add(dora, name="laptop")
    assert page.status_code == 302
    assert second.handle == phone.handle
    assert list(RecoveryCode.objects.values_list("digest", flat=True)) == before
    shown = text_of(dora.get("/account/passkeys"))
    assert "phone" in shown
    assert "laptop" in shown


def test_the_same_authenticator_is_not_asked_twice_and_not_taken_twice(dora, phone):
    options = challenge(dora, "add").json()
    assert [each["id"] for each in options["excludeCredentials"]] == [Passkey.objects.get().credential_id]
    answer = dora.post("/account/passkeys", {"name": "again", "passkey": phone.make(options)})
    assert answer.status_code == 409
    assert Passkey.objects.count() == 1


def test_options_want_a_verified_person_and_a_passkey_that_signs_in_alone(dora):
    options = challenge(dora, "add").json()
    assert options["rp"] == {"id": "sluice.example.com", "name": "Sluice"}
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert options["authenticatorSelection"]["residentKey"] == "required"
    assert [each["alg"] for each in options["pubKeyCredParams"]] == [-7, -8, -257]
    assert "dora" not in options["user"]["id"]


def test_it_is_added_by_whoever_has_shown_lately_that_it_is_them(dora, time):
    time.passes(timedelta(minutes=16))
    assert challenge(dora, "add").status_code == 403
    assert 'data-passkey="add"' not in dora.get("/account/passkeys").content.decode()
    assert "Is it you?" in text_of(dora.post("/account/passkeys", {"do": "begin"}))
    page = dora.post("/account/passkeys", {"do": "begin", "proof": PASSWORD})
    assert 'data-passkey="add"' in page.content.decode()


def test_the_person_has_a_mail_when_one_is_added_and_removed(mailbox):
    dora = sign_up()
    dora.get(mailbox.link("dora@example.com"))
    dora.post(mailbox.link("dora@example.com"))
    add(dora)
    dora.post("/account/passkeys", {"remove": Passkey.objects.get().pk, "last": "1"})
    assert mailbox.subjects("dora@example.com")[-2:] == ["A passkey was added", "A passkey was removed"]


def test_an_address_that_is_to_be_confirmed_is_confirmed_first(dora, mailbox):
    User.objects.update(must_confirm_email=True, email_verified_at=None)
    assert challenge(dora, "add").status_code == 403


def test_where_the_service_has_no_address_of_its_own_there_are_none(dora, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, console_url="")
    assert challenge(dora, "add").json()["problem"].startswith("This installation has no address")
    assert "Sign in with a passkey" not in text_of(Client().get("/sign-in"))
    assert "its operators have to set one" in text_of(dora.get("/account/passkeys"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example.com"},
        {"origin": "http://sluice.example.com"},
        {"site": "evil.example.com"},
        {"flags": PRESENT},
        {"flags": 0},
        {"cross_origin": True},
    ],
)
def test_one_that_is_made_for_another_site_or_without_verifying_is_refused(dora, wrong):
    _, page = add(dora, Authenticator(**wrong))
    assert page.status_code == 422
    assert "has made no passkey that can be used here" in text_of(page)
    assert not Passkey.objects.exists()


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "{" * 9_000, '{"id":"AA","rawId":"AA","type":"public-key","response":{}}']
)
def test_what_is_no_answer_is_refused(dora, phone, text):
    challenge(dora, "add")
    assert dora.post("/account/passkeys", {"name": "x", "passkey": text}).status_code == 422
    browser = Client()
    challenge(browser, "sign_in")
    assert browser.post("/sign-in/passkey", {"passkey": text}).status_code == 422


def test_an_id_that_no_authenticator_makes_is_refused_before_the_database_does(dora):
    _, page = add(dora, Authenticator(id=bytes(1024)))
    assert page.status_code == 422
    assert add(dora, Authenticator(id=bytes(1023)))[1].status_code == 200
    assert len(Passkey.objects.get().credential_id) <= Passkey._meta.get_field("credential_id").max_length


def test_an_algorithm_that_was_not_asked_for_is_refused(dora, monkeypatch):
    monkeypatch.setattr(webauthn, "ALGORITHMS", (-257,))
    assert add(dora)[1].status_code == 422


def test_there_are_at_most_twenty(dora, monkeypatch):
    monkeypatch.setattr(passkeys, "MOST", 1)
    add(dora)
    assert challenge(dora, "add").status_code == 409


# --- signing in without a password ---------------------------------------------------------------------------------------


def test_it_signs_in_without_a_password_and_counts_as_both_factors(dora, phone):
    Organisation.objects.update(second_factor_demanded=True)
    browser, answer = present(phone)
    assert answer.status_code == 302, answer.content
    assert is_in(browser)
    assert browser.get("/", follow=True).status_code == 200
    assert audited("account.sign_in")[-1][2] == {"by": "passkey"}
    assert Passkey.objects.get().last_used_at is not None


def test_strangers_are_told_nothing_of_who_is_registered(dora, phone):
    options = challenge(Client(), "sign_in").json()
    assert "allowCredentials" not in options or options["allowCredentials"] == []
    assert options["userVerification"] == "required"
    unknown, known = Authenticator(handle=phone.handle), replace(phone, key=Authenticator().key)
    pages = [present(each)[1] for each in (unknown, known)]
    assert [page.status_code for page in pages] == [422, 422]
    assert [WRONG in text_of(page) for page in pages] == [True, True]


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example.com"},
        {"site": "evil.example.com"},
        {"flags": PRESENT},
        {"cross_origin": True},
        {"key": Authenticator().key},
    ],
)
def test_an_answer_for_another_site_or_without_verifying_signs_nobody_in(dora, phone, wrong):
    browser, page = present(replace(phone, **wrong))
    assert page.status_code == 422
    assert not is_in(browser)


@pytest.mark.parametrize("options", [{"handle": ""}, {"handle": "AAAA"}, {"kind": "webauthn.create"}])
def test_it_has_to_name_its_person_and_to_be_an_answer(dora, phone, options):
    assert present(phone, **options)[1].status_code == 422


def test_the_host_header_decides_nothing(dora, phone, settings):
    settings.ALLOWED_HOSTS = ["*"]
    browser = Client(headers={"host": "evil.example.com"})
    evil = replace(phone, origin="https://evil.example.com", site="evil.example.com")
    assert present(evil, browser)[1].status_code == 422
    assert challenge(browser, "sign_in").json()["rpId"] == "sluice.example.com"


def test_a_challenge_is_good_once_for_five_minutes_in_its_session_and_for_its_purpose(dora, phone, time):
    browser = Client()
    options = challenge(browser, "sign_in").json()
    text = phone.show(options)
    assert Client().post("/sign-in/passkey", {"passkey": text}).status_code == 422, "of another session"
    assert browser.post("/sign-in/passkey", {"passkey": text}).status_code == 302
    browser.post("/sign-out")
    assert browser.post("/sign-in/passkey", {"passkey": text}).status_code == 422
    late = Client()
    options = challenge(late, "sign_in").json()
    time.passes(timedelta(minutes=5))
    assert late.post("/sign-in/passkey", {"passkey": phone.show(options)}).status_code == 422
    asked = challenge(dora, "proof").json()
    assert (
        dora.post(
            "/account/passkeys", {"name": "x", "passkey": Authenticator().make(asked | {"user": {"id": "AA"}})}
        ).status_code
        == 422
    )


def test_a_wrong_answer_uses_the_challenge_up(dora, phone):
    browser = Client()
    options = challenge(browser, "sign_in").json()
    assert browser.post("/sign-in/passkey", {"passkey": replace(phone, flags=PRESENT).show(options)}).status_code == 422
    assert browser.post("/sign-in/passkey", {"passkey": phone.show(options)}).status_code == 422


def test_a_counter_that_goes_back_is_refused_and_noted(dora, phone):
    copy = replace(phone)
    assert present(phone)[1].status_code == 302
    assert present(phone)[1].status_code == 302
    browser, page = present(copy)
    assert page.status_code == 422
    assert not is_in(browser)
    assert [entry[2]["known"] for entry in audited("account.passkey_copied")] == [2]
    assert "somebody may have a copy of it" in text_of(dora.get("/account/passkeys"))
    silent = replace(phone, counts=False, count=0)
    assert present(silent)[1].status_code == 422, "one that has counted cannot say 0"


def test_an_authenticator_that_does_not_count_is_taken(dora):
    authenticator, _ = add(dora, Authenticator(counts=False))
    assert present(authenticator)[1].status_code == 302
    assert present(authenticator)[1].status_code == 302


def test_an_account_that_is_closed_is_not_signed_in(dora, phone):
    User.objects.update(is_active=False)
    assert present(phone)[1].status_code == 422


def test_tries_are_counted_like_those_at_passwords(dora, phone, time):
    time.now = time.now.replace(minute=3)
    wrong = replace(phone, flags=PRESENT)
    for _ in range(10):
        assert present(wrong)[1].status_code == 422
    answer = present(phone)[1]
    assert answer.status_code == 429
    assert answer.headers["Retry-After"]


def test_challenges_of_an_address_are_counted(dora, time):
    time.now = time.now.replace(minute=3)
    found = [challenge(Client(), "sign_in").status_code for _ in range(51)]
    assert found == [200] * 50 + [429]


def test_the_session_of_before_is_forgotten(dora, phone):
    browser = Client()
    challenge(browser, "sign_in")
    before = browser.session.session_key
    present(phone, browser)
    assert browser.session.session_key != before
    assert "passkey_challenge" not in browser.session


# --- as a second factor ---------------------------------------------------------------------------------------------------


def test_after_the_password_it_is_asked_for_and_enough(dora, phone):
    browser, answer = sign_in()
    assert answer["Location"] == "/sign-in/code"
    assert "Use your passkey, or type one of your recovery codes." in text_of(browser.get("/sign-in/code"))
    asked = challenge(browser, "second").json()
    assert [each["id"] for each in asked["allowCredentials"]] == [Passkey.objects.get().credential_id]
    answer = browser.post("/sign-in/code", {"passkey": phone.show(asked)})
    assert answer.status_code == 302
    assert is_in(browser)


def test_somebody_elses_is_not(dora, phone):
    eve = sign_up("eve@example.com", "Den")
    own, _ = add(eve)
    browser, _ = sign_in()
    page = present(own, browser, "second", "/sign-in/code")[1]
    assert page.status_code == 422
    assert not is_in(browser)
    assert audited("account.sign_in_failed")[-1] == ("dora@example.com", "dora@example.com", {"step": "passkey"})


def test_who_has_not_typed_the_password_learns_no_ids(dora, phone):
    assert challenge(Client(), "second").status_code == 400
    assert challenge(Client(), "proof").status_code == 400


def test_beside_an_app_either_is_good(dora, phone, time):
    dora.post("/account/second-factor", {"do": "begin"})
    secret = second_factor.secret_of(person())
    early, _ = sign_in()
    assert early.post("/sign-in/code", {"code": pyotp.TOTP(secret).at(time.now)}).status_code == 422, (
        "not switched on yet"
    )
    dora.post("/account/second-factor", {"do": "confirm", "code": pyotp.TOTP(secret).at(time.now)})
    time.passes(timedelta(seconds=30))
    browser, _ = sign_in()
    assert browser.post("/sign-in/code", {"code": pyotp.TOTP(secret).at(time.now)}).status_code == 302
    assert present(phone, sign_in()[0], "second", "/sign-in/code")[1].status_code == 302


def test_a_recovery_code_is_good_where_the_device_is_lost(dora):
    _, page = add(dora)
    code = re.search(r"\b(?:[a-z0-9]{4}-){3}[a-z0-9]{4}\b", page.content.decode())[0]
    browser, _ = sign_in()
    assert browser.post("/sign-in/code", {"code": code}).status_code == 302
    again, _ = sign_in()
    assert again.post("/sign-in/code", {"code": code}).status_code == 422


# --- as a proof -----------------------------------------------------------------------------------------------------------


def test_it_is_a_proof_before_what_is_dangerous(dora, phone, time):
    time.passes(timedelta(minutes=20))
    page = dora.post("/account/second-factor", {"do": "renew"})
    assert "Is it you?" in text_of(page)
    assert 'data-passkey="proof"' in page.content.decode()
    asked = challenge(dora, "proof").json()
    wrong = dora.post("/account/second-factor", {"do": "renew", "proof_passkey": Authenticator().show(asked)})
    assert wrong.status_code == 422 or "Is it you?" in text_of(wrong)
    asked = challenge(dora, "proof").json()
    page = dora.post("/account/second-factor", {"do": "renew", "proof_passkey": phone.show(asked)})
    assert "Your recovery codes" in text_of(page)


def test_one_that_is_no_proof_is_in_the_audit_log_like_a_wrong_password(dora, phone, time):
    time.passes(timedelta(minutes=20))
    asked = challenge(dora, "proof").json()
    dora.post("/account/second-factor", {"do": "renew", "proof_passkey": Authenticator().show(asked)})
    assert len(audited("account.proof_failed")) == 1


def test_what_was_typed_is_carried_and_the_answer_is_not(dora, phone, time):
    time.passes(timedelta(minutes=20))
    page = dora.post("/account/second-factor", {"do": "renew", "proof_passkey": "secretly"}).content.decode()
    assert page.count('name="do" value="renew"') == 2
    assert "secretly" not in page


def test_the_first_one_and_the_last_one_switch_the_second_factor_and_are_on_record_so(dora):
    """Whoever reads the log looks for the factor, whichever kind it was."""
    by = {"by": "passkey"}
    add(dora)
    add(dora, name="laptop")
    assert [entry[2] for entry in audited("account.second_factor_on")] == [by], "the second one switches nothing on"
    first, last = Passkey.objects.order_by("pk").values_list("pk", flat=True)
    dora.post("/account/passkeys", {"remove": first})
    assert audited("account.second_factor_off") == []
    dora.post("/account/passkeys", {"remove": last, "last": "1"})
    assert audited("account.second_factor_off") == [("dora@example.com", "dora@example.com", by)]


def test_beside_an_app_a_passkey_switches_nothing(dora, time):
    App(dora, time).switch_on()
    before = audited("account.second_factor_on")
    add(dora)
    assert audited("account.second_factor_on") == before
    dora.post("/account/passkeys", {"remove": Passkey.objects.get().pk})
    assert audited("account.second_factor_off") == []
    assert person().second_factor_at is not None


# --- removing -------------------------------------------------------------------------------------------------------------


def test_a_removed_one_signs_in_no_more(dora, phone):
    add(dora, name="laptop")
    assert "only second factor" not in text_of(dora.get("/account/passkeys"))
    removed = Passkey.objects.get(name="phone").pk
    dora.post("/account/passkeys", {"remove": removed})
    assert present(phone)[1].status_code == 422
    assert [entry[2]["passkey"] for entry in audited("account.passkey_remove")] == [removed]
    assert person().second_factor_at is not None


def test_whose_only_factor_it_is_is_warned_and_has_to_say_so(dora, phone):
    assert "This is your only second factor." in text_of(dora.get("/account/passkeys"))
    only = Passkey.objects.get().pk
    answer = dora.post("/account/passkeys", {"remove": only}, follow=True)
    assert "confirm that you want none" in text_of(answer)
    assert Passkey.objects.exists()
    dora.post("/account/passkeys", {"remove": only, "last": "1"})
    assert person().second_factor_at is None
    assert not RecoveryCode.objects.exists()
    assert sign_in()[1]["Location"] == "/"


def test_removing_needs_a_proof_and_is_ones_own(dora, phone, time):
    eve = sign_up("eve@example.com", "Den")
    assert eve.post("/account/passkeys", {"remove": Passkey.objects.get().pk, "last": "1"}).status_code == 404
    time.passes(timedelta(minutes=16))
    assert "Is it you?" in text_of(dora.post("/account/passkeys", {"remove": Passkey.objects.get().pk, "last": "1"}))
    assert Passkey.objects.count() == 1


def test_who_has_passkeys_alone_can_make_new_recovery_codes(dora, phone):
    page = dora.get("/account/second-factor")
    assert "10 of 10 recovery codes are left." in text_of(page)
    assert 'name="do" value="renew"' in page.content.decode()


def test_who_has_no_second_factor_is_offered_no_recovery_codes(dora):
    assert 'value="renew"' not in dora.get("/account/second-factor").content.decode()


def test_switching_the_app_off_keeps_passkeys_as_second_factor(dora, phone, time):
    dora.post("/account/second-factor", {"do": "begin"})
    code = pyotp.TOTP(second_factor.secret_of(person())).at(time.now)
    dora.post("/account/second-factor", {"do": "confirm", "code": code})
    assert "Your passkeys are your second factor" in text_of(
        dora.post("/account/second-factor", {"do": "remove"}, follow=True)
    )
    assert person().second_factor_at is not None
    assert sign_in()[1]["Location"] == "/sign-in/code"


def test_operators_who_switch_the_second_factor_off_take_passkeys_with_it(dora, phone):
    User.objects.create_superuser("opal@example.com", PASSWORD)
    call_command("second_factor_off", "dora@example.com", "--by", "opal@example.com", "--reason", "called back")
    assert not Passkey.objects.exists()
    assert person().second_factor_at is None
    assert not Session.objects.filter(user=person()).exists()


# --- the site ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://sluice.example.com", ("sluice.example.com", "https://sluice.example.com")),
        ("https://Sluice.example.com:8443", ("sluice.example.com", "https://sluice.example.com:8443")),
        ("https://sluice.example.com:443", ("sluice.example.com", "https://sluice.example.com")),
        ("http://localhost:80", ("localhost", "http://localhost")),
        ("http://localhost:8000", ("localhost", "http://localhost:8000")),
        ("http://sluice.example.com", None),
        ("https://192.0.2.7", None),
        ("https://[2001:db8::1]", None),
        ("", None),
    ],
)
def test_the_site_is_what_operators_have_set(url, site):
    found = webauthn.site_of(url)
    assert (found and (found.id, found.origin)) == site


def test_of_two_answers_at_once_with_one_counter_one_is_right(dora, phone):
    options = challenge(Client(), "sign_in").json()
    text = phone.show(options)
    value = webauthn.websafe_decode(options["challenge"])
    assert passkeys.passkey_check(answer=passkeys.presented(text), challenge=value, user=None) == person()
    with pytest.raises(Invalid):
        passkeys.passkey_check(answer=passkeys.presented(text), challenge=value, user=None)


def test_what_is_kept_is_public(dora, phone):
    row = Passkey.objects.get()
    assert json.loads(phone.show({"challenge": "AAAA"}))["id"] == row.credential_id
    assert len(row.credential) < 400
