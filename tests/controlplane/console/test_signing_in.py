"""Signing up, in and out; who is shown what before and after."""

from __future__ import annotations

import pytest
from django.test import Client

from controlplane.accounts import attempts, services
from controlplane.accounts.models import User
from controlplane.core import ids
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.mail import outbox
from controlplane.tenants.models import Membership, Organisation

from .conftest import problem_beside, text_of

SIGN_UP = {
    "email": "Dora@Example.com",
    "name": "Dora",
    "organisation_name": "Dora's mill",
    "password": "water over the wheel",
}


@pytest.fixture
def browser(db) -> Client:
    return Client()


def test_a_stranger_learns_what_this_is_and_where_to_sign_up(browser):
    page = browser.get("/")
    assert page.status_code == 200
    assert 'href="/sign-up"' in page.content.decode()
    assert 'action="/sign-up"' in page.content.decode(), "the form of an account is on it"
    assert "/api/v1/schema" in page.content.decode()


def test_signing_up_makes_an_owner_of_an_organisation_and_signs_in(browser):
    answer = browser.post("/sign-up", SIGN_UP)
    organisation = Organisation.objects.get(name="Dora's mill")
    assert (answer.status_code, answer["Location"]) == (302, f"/{organisation.id}/instances")
    assert Membership.objects.get(organisation=organisation).user.email == "dora@example.com"
    page = browser.get(answer["Location"])
    assert "No instance yet" in text_of(page)
    assert "Create your first instance" in text_of(page)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("email", "dora", "Enter a valid email address."),
        ("email", "", "This field is required."),
        ("password", "short", "This password is too short. It must contain at least 10 characters."),
        ("password", "password123", "This password is too common."),
        ("organisation_name", "", "This field is required."),
        ("organisation_name", "   ", "This field is required."),
    ],
)
def test_what_is_wrong_with_a_sign_up_stands_beside_the_field(browser, field, value, said):
    page = browser.post("/sign-up", SIGN_UP | {field: value})
    assert page.status_code == 422
    assert problem_beside(page, field) == said
    assert not User.objects.exists()
    assert not Organisation.objects.exists()


def test_a_bad_address_and_a_bad_password_are_said_together(browser):
    page = browser.post("/sign-up", SIGN_UP | {"email": "dora", "password": "short"})
    assert problem_beside(page, "email") == "Enter a valid email address."
    assert "too short" in problem_beside(page, "password")


def test_a_taken_email_or_organisation_is_said_beside_it(browser):
    browser.post("/sign-up", SIGN_UP)
    other = Client()
    page = other.post("/sign-up", SIGN_UP | {"organisation_name": "Another"})
    assert problem_beside(page, "email") == "There is an account with this address; sign in instead."
    page = other.post("/sign-up", SIGN_UP | {"email": "eve@example.com"})
    assert problem_beside(page, "organisation_name") == "There is an organisation called Dora's mill.".replace(
        "'", "&#x27;"
    )
    assert User.objects.count() == 1, "a refused organisation takes its person back"


def test_a_password_never_comes_back_in_a_page(browser):
    page = browser.post("/sign-up", SIGN_UP | {"email": "dora"})
    assert SIGN_UP["password"] not in page.content.decode()


def test_signing_out_and_in_again(browser):
    browser.post("/sign-up", SIGN_UP)
    assert browser.post("/sign-out")["Location"] == "/sign-in"
    home = f"/{Organisation.objects.get().id}/instances"
    assert browser.get(home)["Location"].startswith("/sign-in?next=")
    answer = browser.post("/sign-in", {"email": "DORA@example.com", "password": SIGN_UP["password"]})
    assert answer["Location"] == "/"
    assert browser.get("/")["Location"] == home


def test_after_signing_in_one_comes_to_where_one_wanted_to(browser):
    browser.post("/sign-up", SIGN_UP)
    browser.post("/sign-out")
    wanted = f"/{Organisation.objects.get().id}/members"
    page = browser.get(browser.get(wanted)["Location"])
    assert f'name="next" value="{wanted}"' in page.content.decode()
    credentials = {"email": "dora@example.com", "password": SIGN_UP["password"], "next": wanted}
    assert browser.post("/sign-in", credentials)["Location"] == wanted


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:1"])
def test_no_way_leads_from_the_sign_in_to_another_site(browser, elsewhere):
    browser.post("/sign-up", SIGN_UP)
    browser.post("/sign-out")
    credentials = {"email": "dora@example.com", "password": SIGN_UP["password"], "next": elsewhere}
    assert browser.post("/sign-in", credentials)["Location"] == "/"


@pytest.mark.parametrize("wrong", [{"password": "not this one"}, {"email": "eve@example.com"}])
def test_one_sentence_for_every_reason_why_not(browser, wrong):
    browser.post("/sign-up", SIGN_UP)
    browser.post("/sign-out")
    page = browser.post("/sign-in", {"email": "dora@example.com", "password": SIGN_UP["password"]} | wrong)
    assert page.status_code == 422
    assert problem_beside(page, "password") == "The email or the password is not right."


def test_someone_without_a_password_cannot_sign_in(browser, alice):
    page = browser.post("/sign-in", {"email": "alice@example.com", "password": ""})
    assert page.status_code == 422


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(browser):
    answer = browser.post("/sign-up", SIGN_UP)
    session = answer.cookies["sessionid"]
    assert session["httponly"] is True
    assert session["samesite"] == "Lax"
    page = browser.get("/organisations/new")
    assert page.cookies["csrftoken"]["httponly"] is True
    assert page.cookies["csrftoken"]["samesite"] == "Lax"


def test_every_form_needs_its_token(alice):
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/sign-up", SIGN_UP).status_code == 403
    assert strict.post("/sign-in", {"email": "a", "password": "b"}).status_code == 403
    strict.force_login(alice.user)
    paths = ["/sign-out", "/theme", "/language", "/organisations/new"]
    paths += [f"/{alice.organisation.id}/{path}" for path in ("instances/new", "keys", "members", "members/1/remove")]
    for path in paths:
        page = strict.post(path, {})
        assert page.status_code == 403, path
        assert "This form has expired" in text_of(page)


def test_a_theme_is_remembered_and_drawn_by_the_server(browser):
    assert 'data-theme="auto"' in browser.get("/").content.decode()
    browser.post("/theme", {"theme": "dark", "next": "/sign-in"})
    assert 'data-theme="dark"' in browser.get("/sign-in").content.decode()
    browser.post("/theme", {"theme": "<script>", "next": "/"})
    assert 'data-theme="dark"' in browser.get("/").content.decode()


def test_a_part_of_a_page_takes_the_whole_page_to_the_sign_in(browser, instance):
    address = f"/{instance.organisation_id}/instances/{instance.id}/status"
    page = f"http://testserver/{instance.organisation_id}/instances/{instance.id}"
    answer = browser.get(address, headers={"HX-Request": "true", "HX-Current-URL": page})
    assert answer.status_code == 204
    assert answer["HX-Redirect"] == f"/sign-in?next=%2F{instance.organisation_id}%2Finstances%2F{instance.id}"


def test_an_address_is_judged_as_it_is_kept(browser):
    """In lower case this letter is two: what is short enough as it is typed need not fit in where it is kept."""
    page = browser.post("/sign-up", SIGN_UP | {"email": "\u0130@example.com"})
    assert problem_beside(page, "email") == "Enter a valid email address."
    browser.post("/sign-up", SIGN_UP | {"email": "\N{KELVIN SIGN}ate@Example.com"})
    assert User.objects.get().email == "kate@example.com"


def test_an_address_signs_up_twenty_times_in_a_quarter_of_an_hour_where_no_mail_is_sent(browser):
    assert not outbox.is_on()
    for _ in range(attempts.MOST_ASKED):
        attempts.asked(what="sign-up", address="127.0.0.1")
    page = browser.post("/sign-up", SIGN_UP)
    assert page.status_code == 422
    assert "Too many attempts: try again in" in text_of(page)
    assert not User.objects.exists()
    assert browser.post("/sign-up", SIGN_UP, REMOTE_ADDR="10.0.0.7").status_code == 302


def test_whoever_signs_up_twice_at_once_has_one_account(browser, monkeypatch):
    """The other request makes the account behind the look whether there is one."""
    monkeypatch.setattr(services, "password_checked", lambda _password, user: User.objects.create_user(user.email))
    page = browser.post("/sign-up", SIGN_UP)
    assert page.status_code == 422
    assert problem_beside(page, "email") == "There is an account with this address; sign in instead."
    assert not Organisation.objects.exists()


def test_two_organisations_of_a_name_at_once_are_one(browser, monkeypatch):
    browser.post("/sign-up", SIGN_UP)
    make = ids.organisation_id

    def meanwhile(source):
        Organisation.objects.create(id="org-other0000000", name="Second", created_at=SYSTEM_CLOCK.now())
        return make(source)

    monkeypatch.setattr(ids, "organisation_id", meanwhile)
    page = browser.post("/organisations/new", {"name": "Second"})
    assert page.status_code == 422
    assert problem_beside(page, "name") == "There is an organisation called Second."
