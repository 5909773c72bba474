"""Keys that are made in a session of single sign-on: never an operator's, and they end with what had begun the session."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.accounts import joining
from controlplane.accounts import services as accounts
from controlplane.accounts.models import AccessKey, ApiKey, User
from controlplane.accounts.selectors import access_key_get, caller_of_key
from controlplane.console import single_sign_on
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.tenants import services as tenants
from tests.controlplane.conftest import client_of
from tests.controlplane.console.conftest import at_alice, at_bob, quick_passwords, text_of
from tests.controlplane.identity.conftest import PASSWORD, audited, time

from .test_signing_in import connect, entered, in_force, page, provider, set_up

__all__ = ["at_alice", "at_bob", "in_force", "provider", "quick_passwords", "time"]
MONTH = timedelta(days=30)


@pytest.fixture
def access_key_secret(tmp_path, settings, provider):
    """The installation makes access keys."""
    path = tmp_path / "secrets.json"
    path.write_text(json.dumps({"access_key_secret": "k" * 40}))
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=path)


@pytest.fixture
def bobs(in_force, at_bob, bob):
    """Bob has a password, and is connected."""
    bob.user.set_password(PASSWORD)
    bob.user.save()
    at_bob.client.force_login(bob.user)
    assert connect(at_bob.client, bob, in_force, "bob-there").status_code == 302
    return bob


@pytest.fixture
def by_sso(bobs, in_force):
    return entered(bobs.organisation, in_force, "bob-there")[0]


def key_made(browser, person, name="made by sso"):
    """Its text, as the page shows it once."""
    answer = browser.post(f"/{person.organisation.id}/keys", {"name": name, "proof": PASSWORD})
    assert answer.status_code == 200, text_of(answer)
    return answer.context["text"]


def key_row(name="made by sso"):
    return ApiKey.objects.unscoped("a test").get(name=name)


def is_good(text):
    return client_of(text).get("/api/v1/me").status_code == 200


def refused(text):
    answer = client_of(text).get("/api/v1/me")
    assert answer.status_code == 401, answer.content
    return answer.json()["code"]


# --- operators -------------------------------------------------------------------------------------------------------------


def test_it_is_no_operators_key_whatever_its_person_becomes(by_sso, bobs):
    text = key_made(by_sso, bobs)
    own = accounts.api_key_create(organisation=bobs.organisation, user=bobs.user, name="own")[1]
    User.objects.filter(pk=bobs.user.pk).update(is_staff=True)
    assert client_of(own).get("/api/v1/capacity").status_code == 200
    assert client_of(text).get("/api/v1/capacity").status_code == 403
    assert client_of(text).get("/api/v1/clusters").status_code == 403
    assert is_good(text), "in this organisation it is a member's"


def test_nor_is_one_that_it_makes_or_a_secret_that_it_has_made(by_sso, bobs, charlie, access_key_secret):
    text = key_made(by_sso, bobs)
    api = client_of(text)
    made = api.post("/api/v1/api-keys", {"name": "made by that"}).json()["key"]
    own = accounts.api_key_create(organisation=bobs.organisation, user=bobs.user, name="own")[0]
    rotated = api.post(f"/api/v1/api-keys/{own.id}/rotate", {"overlap_s": 0}).json()["key"]
    pair = api.post("/api/v1/access-keys", {"name": "pair"}).json()
    User.objects.filter(pk=bobs.user.pk).update(is_staff=True)
    for each in (made, rotated):
        assert client_of(each).get("/api/v1/capacity").status_code == 403
        assert client_of(each).get(f"/api/v1/organisations/{charlie.organisation.id}/caps").status_code in (403, 404)
    assert not access_key_get(pair["secret_id"]).caller.is_operator


def test_rotating_a_key_of_before_in_such_a_session_makes_it_one(by_sso, bobs):
    own, text = accounts.api_key_create(organisation=bobs.organisation, user=bobs.user, name="own")
    answer = by_sso.post(f"/{bobs.organisation.id}/keys/{own.id}/rotate", {"overlap_s": "0", "proof": PASSWORD})
    rotated = answer.context["text"]
    assert rotated != text
    User.objects.filter(pk=bobs.user.pk).update(is_staff=True)
    assert client_of(rotated).get("/api/v1/capacity").status_code == 403


def test_one_that_was_made_otherwise_is_as_it_was(bobs, at_bob):
    text = key_made(at_bob.client, bobs, "by password")
    assert key_row("by password").sso_until is None
    assert is_good(text)


# --- what ends it ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["link", "another", "provider", "off", "issuer", "membership"])
def test_it_ends_with_connection_and_provider(by_sso, bobs, alice, at_alice, at_bob, in_force, ends):
    text, own = key_made(by_sso, bobs), bobs.key
    if ends == "link":
        at_bob.client.post(page(bobs), {"do": "disconnect"})
    elif ends == "another":
        connect(at_bob.client, bobs, in_force, "bob-anew")
    elif ends == "provider":
        at_alice.client.post(page(alice), {"do": "remove"})
    elif ends == "off":
        at_alice.client.post(page(alice), {"do": "switch"})
    elif ends == "issuer":
        SsoProvider.objects.unscoped("a test").update(issuer="https://another.example.com")
        set_up(at_alice.client, alice, in_force)
    else:
        row = bobs.user.memberships.get(organisation=alice.organisation)
        joining.member_remove(organisation=alice.organisation, by=alice.user, membership_id=row.pk)
    assert refused(text) == "unauthenticated"
    assert key_row().revoked_at is not None
    if ends == "membership":
        return
    assert is_good(own), "keys that were made otherwise stay"
    if ends == "provider":
        set_up(at_alice.client, alice, in_force)
    connect(at_alice.client, alice, in_force, "alice-there")
    at_alice.client.post(page(alice), {"do": "switch", "is_on": "1"})
    connect(at_bob.client, bobs, in_force, "bob-there")
    entered(bobs.organisation, in_force, "bob-there")
    assert refused(text) == "unauthenticated", "for good"


@pytest.mark.parametrize("stays", ["secret", "required", "same account"])
def test_a_new_secret_of_the_client_and_a_rule_end_none(by_sso, bobs, alice, at_alice, at_bob, in_force, stays):
    text = key_made(by_sso, bobs)
    if stays == "secret":
        set_up(at_alice.client, alice, in_force)
    elif stays == "required":
        at_alice.client.post(page(alice), {"do": "switch", "is_on": "1", "is_required": "1"})
    else:
        connect(at_bob.client, bobs, in_force, "bob-there")
    assert is_good(text)


def test_of_others_it_ends_none(by_sso, bobs, at_bob, alice, at_alice, in_force):
    alice.user.set_password(PASSWORD)
    alice.user.save()
    hers = key_made(entered(alice.organisation, in_force, "alice-there")[0], alice, "hers")
    at_bob.client.post(page(bobs), {"do": "disconnect"})
    assert is_good(hers)


def test_of_other_organisations_it_ends_none(by_sso, bobs, at_bob, at_alice, alice, in_force):
    other = tenants.organisation_create(name="Elsewhere", owner=bobs.user)
    accounts.api_key_create(organisation=other, user=bobs.user, name="elsewhere", sso_until=SYSTEM_CLOCK.now() + MONTH)
    at_alice.client.post(page(alice), {"do": "remove"})
    assert key_row("elsewhere").revoked_at is None


# --- who is out there is out here -------------------------------------------------------------------------------------------


def test_it_sleeps_a_month_after_the_last_sign_in_and_wakes_with_the_next(by_sso, bobs, in_force, time):
    text = key_made(by_sso, bobs)
    time.passes(MONTH - timedelta(seconds=1))
    assert is_good(text)
    time.passes(timedelta(seconds=1))
    assert refused(text) == "sso_key_asleep"
    in_force.now_s = time.now.timestamp()
    entered(bobs.organisation, in_force, "bob-there")
    assert is_good(text)
    time.passes(MONTH - timedelta(seconds=1))
    assert is_good(text)


def test_a_stranger_does_not_learn_that_it_sleeps(by_sso, bobs, time):
    text = key_made(by_sso, bobs)
    time.passes(MONTH)
    assert refused(text[:-1] + ("a" if text[-1] != "a" else "b")) == "unauthenticated"


def test_nothing_is_signed_meanwhile_by_an_access_key_that_it_has_made(by_sso, bobs, time, in_force, access_key_secret):
    pair = client_of(key_made(by_sso, bobs)).post("/api/v1/access-keys", {"name": "pair"}).json()
    assert pair["sso_until"] is not None
    assert access_key_get(pair["secret_id"]) is not None
    time.passes(MONTH)
    assert access_key_get(pair["secret_id"]) is None
    in_force.now_s = time.now.timestamp()
    entered(bobs.organisation, in_force, "bob-there")
    assert access_key_get(pair["secret_id"]) is not None
    SsoLink.objects.unscoped("a test").filter(membership__user=bobs.user).delete()
    accounts.sso_keys_revoke(organisation=bobs.organisation, actor="a", user=bobs.user)
    assert AccessKey.objects.unscoped("a test").get(name="pair").revoked_at is not None


def test_the_page_and_rest_say_so(by_sso, bobs, at_bob, time):
    key_made(by_sso, bobs)
    listed = f"/{bobs.organisation.id}/keys"
    assert "made by single sign-on: until" in text_of(at_bob.client.get(listed))
    found = {each["name"]: each["sso_until"] for each in bobs.api.get("/api/v1/api-keys").json()["items"]}
    assert found["made by sso"] is not None
    assert found["test"] is None
    time.passes(MONTH)
    at_bob.client.force_login(bobs.user)
    shown = text_of(at_bob.client.get(listed))
    assert "Asleep" in shown
    assert "good again once its owner signs in so" in shown


def test_the_audit_log_says_which_are_of_such_a_session(by_sso, bobs, access_key_secret):
    """A rotation says it where a key becomes one, and not where it was one."""
    own, _ = accounts.api_key_create(organisation=bobs.organisation, user=bobs.user, name="own")
    api = client_of(key_made(by_sso, bobs))
    for _ in range(2):
        assert api.post(f"/api/v1/api-keys/{own.id}/rotate", {"overlap_s": 0}).status_code == 200
    api.post("/api/v1/access-keys", {"name": "pair"})
    accounts.access_key_create(organisation=bobs.organisation, user=bobs.user, name="own pair")
    none = {"previous_until": None}
    assert [detail for _, _, detail in audited("api_key.rotate")] == [none | {"single_sign_on": True}, none]
    pairs = [detail for _, _, detail in audited("access_key.create")]
    assert [(each["name"], each.get("single_sign_on")) for each in pairs] == [("pair", True), ("own pair", None)]


def test_the_page_says_that_an_access_key_sleeps(by_sso, bobs, at_bob, time, access_key_secret):
    client_of(key_made(by_sso, bobs)).post("/api/v1/access-keys", {"name": "pair"})
    accounts.access_key_create(organisation=bobs.organisation, user=bobs.user, name="own pair")
    ApiKey.objects.unscoped("a test").filter(user=bobs.user).delete()
    listed = f"/{bobs.organisation.id}/keys"
    shown = text_of(at_bob.client.get(listed))
    assert "made by single sign-on: until" in shown
    assert "Asleep" not in shown
    time.passes(MONTH)
    at_bob.client.force_login(bobs.user)
    shown = text_of(at_bob.client.get(listed))
    assert shown.count("Asleep") == 1
    assert "good again once its owner signs in so" in shown


def test_one_that_is_asked_for_while_the_connection_ends_is_not_made(by_sso, bobs, monkeypatch):
    """The session was good when the request began; the link is held and looked at once more before the key is there."""
    looked = single_sign_on.keys_until

    def ended_meanwhile(request):
        SsoLink.objects.unscoped("a test").filter(membership__user=bobs.user).delete()
        return looked(request)

    monkeypatch.setattr(single_sign_on, "keys_until", ended_meanwhile)
    answer = by_sso.post(f"/{bobs.organisation.id}/keys", {"name": "late", "proof": PASSWORD})
    assert answer.status_code == 422
    assert not ApiKey.objects.unscoped("a test").filter(name="late").exists()


def test_a_service_accounts_key_is_the_organisations_and_stays(in_force, alice, at_alice):
    """What an owner makes for the organisation is not theirs: it is looked at, and ended, on its own page."""
    alice.user.set_password(PASSWORD)
    alice.user.save()
    browser = entered(alice.organisation, in_force, "alice-there")[0]
    account = alice.api.post("/api/v1/service-accounts", {"name": "ci", "role": "member"}).json()["id"]
    made = browser.post(f"/{alice.organisation.id}/service-accounts/{account}/keys", {"name": "k", "proof": PASSWORD})
    assert made.status_code == 200, text_of(made)
    at_alice.client.post(page(alice), {"do": "remove"})
    assert ApiKey.objects.unscoped("a test").get(name="k").revoked_at is None


def test_a_caller_says_by_what_it_came(by_sso, bobs):
    assert caller_of_key(key_made(by_sso, bobs)).is_by_sso
    assert not caller_of_key(bobs.key).is_by_sso
