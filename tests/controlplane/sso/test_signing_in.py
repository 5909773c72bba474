"""Single sign-on against a real provider: set, tested, in force; who gets in, where to, and what an attacker tries."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

import controlplane.urls  # noqa: F401  # it knows the converters that the console routes use
from controlplane.accounts import joining
from controlplane.accounts.models import ApiKey, User
from controlplane.console import urls
from controlplane.core.errors import Forbidden
from controlplane.sso import services
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Membership, Role
from tests.controlplane.conftest import CONSOLE_URL
from tests.controlplane.console.conftest import at_alice, at_bob, quick_passwords, text_of
from tests.controlplane.identity.conftest import PASSWORD, audited, time
from tests.controlplane.rows import custom_role_row
from tests.controlplane.test_custom_roles import given_to, role_of

from .provider import CLIENT, SECRET, Provider

__all__ = ["at_alice", "at_bob", "quick_passwords", "time"]


@pytest.fixture
def provider(settings, time):
    found = Provider()
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, console_url=CONSOLE_URL, token_issuer_hosts=found.url)
    time.now = time.now.replace(minute=3)
    found.now_s = time.now.timestamp()
    yield found
    found.close()


def page(person) -> str:
    return f"/{person.organisation.id}/sso"


def way_of(answer) -> str:
    assert answer.status_code == 200, answer.content
    return html.unescape(re.search(r'href="(http://127[^"]+)"', answer.content.decode())[1])


def address_back(way) -> str:
    """Where the provider sends people back to, as it is asked to."""
    return urlsplit(parse_qs(urlsplit(way).query)["redirect_uri"][0]).path


def back(browser, provider, way, subject, **other):
    return browser.get(address_back(way), provider.signed_in(way, subject) | other)


def set_up(browser, person, provider, **other):
    body = {"label": "Corp", "issuer": provider.url, "client_id": CLIENT, "client_secret": SECRET, "do": "set"}
    return browser.post(page(person), body | other)


def connect(browser, person, provider, subject):
    return back(browser, provider, way_of(browser.post(page(person), {"do": "connect"})), subject)


def entered(organisation, provider, subject, browser=None, **other):
    browser = browser or Client()
    way = way_of(browser.post("/sign-in/sso", {"organisation": organisation.id}))
    return browser, back(browser, provider, way, subject, **other)


@pytest.fixture
def in_force(at_alice, alice, provider):
    """Alice has set it, tested it by connecting herself, and put it in force."""
    assert set_up(at_alice.client, alice, provider).status_code == 302
    assert connect(at_alice.client, alice, provider, "alice-there").status_code == 302
    assert at_alice.client.post(page(alice), {"do": "switch", "is_on": "1"}).status_code == 302
    assert SsoProvider.objects.unscoped("a test").get().is_on
    return provider


def is_in(browser, organisation) -> bool:
    return browser.get(f"/{organisation.id}/instances").status_code == 200


# --- setting --------------------------------------------------------------------------------------------------------------


def test_it_is_in_force_once_an_owner_has_signed_in_by_it(at_alice, alice, provider):
    set_up(at_alice.client, alice, provider)
    at_alice.client.post(page(alice), {"do": "switch", "is_on": "1"})
    assert not SsoProvider.objects.unscoped("a test").get().is_on
    connect(at_alice.client, alice, provider, "alice-there")
    at_alice.client.post(page(alice), {"do": "switch", "is_on": "1"})
    assert SsoProvider.objects.unscoped("a test").get().is_on
    set_up(at_alice.client, alice, provider, label="Other", client_secret="")
    assert not SsoProvider.objects.unscoped("a test").get().is_on, "what was changed is tested again"


def test_owners_alone_decide_and_the_secret_is_sealed_and_not_shown(at_alice, at_bob, alice, bob, provider):
    for does in ("set", "switch", "remove"):
        assert set_up(at_bob.client, bob, provider, do=does).status_code == 403
    set_up(at_alice.client, alice, provider)
    row = SsoProvider.objects.unscoped("a test").get()
    assert SECRET.encode() not in bytes(row.client_secret)
    assert SECRET not in at_alice.client.get(page(alice)).content.decode()


def test_another_issuer_is_not_sent_the_secret_of_before(at_alice, alice, provider):
    set_up(at_alice.client, alice, provider)
    answer = set_up(at_alice.client, alice, provider, issuer=provider.url + "/evil", client_secret="")
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "issuer", ["http://127.0.0.1:1", "http://169.254.169.254", "file:///etc/passwd", "https://localhost"]
)
def test_what_operators_have_not_listed_is_not_asked(at_alice, alice, provider, issuer):
    assert set_up(at_alice.client, alice, provider, issuer=issuer).status_code == 422
    assert not SsoProvider.objects.unscoped("a test").exists()


def test_endpoints_elsewhere_and_another_issuer_are_refused(at_alice, alice, provider, monkeypatch):
    good = provider.document()
    for wrong in (
        {"token_endpoint": "http://10.0.0.1/token"},
        {"jwks_uri": "http://127.0.0.1:1/"},
        {"issuer": "https://x"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "https://["},
        {"token_endpoint": "https://["},
        {"jwks_uri": "https://["},
        {"jwks_uri": None},
    ):
        monkeypatch.setattr(provider, "document", lambda wrong=wrong: good | wrong)
        assert set_up(at_alice.client, alice, provider).status_code == 422


# --- signing in -----------------------------------------------------------------------------------------------------------


def test_a_connected_member_is_signed_in_to_this_organisation(in_force, alice):
    browser, answer = entered(alice.organisation, in_force, "alice-there")
    assert answer.status_code == 302, text_of(answer)
    assert is_in(browser, alice.organisation)
    assert audited("sso.sign_in") == [("alice@example.com", "alice@example.com", {})]


def test_somebody_with_a_role_of_the_organisations_own_connects_and_sets_nothing(in_force, alice, bob, at_bob):
    given_to(alice, bob, role_of(alice, scopes={"billing": "look"}))
    assert at_bob.client.get(page(bob)).status_code == 200
    assert connect(at_bob.client, bob, in_force, "bob-there").status_code == 302
    for does in ("set", "switch", "remove"):
        assert set_up(at_bob.client, bob, in_force, do=does).status_code == 403
    assert bob.api.get("/api/v1/sso").status_code == 403
    browser, answer = entered(alice.organisation, in_force, "bob-there")
    assert answer.status_code == 302
    assert browser.get(answer.headers["Location"]).status_code == 200
    assert at_bob.client.post(page(bob), {"do": "disconnect"}).status_code == 302


def test_who_has_not_connected_is_nobody_whatever_address_the_token_says(in_force, alice, bob):
    in_force.wrong = {"email": "bob@example.com", "email_verified": True}
    browser, answer = entered(alice.organisation, in_force, "bob-there")
    assert answer.status_code == 403
    assert not is_in(browser, alice.organisation)


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "another"},
        {"nonce": "\ud800"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"azp": "another"},
        {"iss": "https://evil.example.com"},
        {"exp": 1},
        {"exp": None},
        {"iat": 1},
        {"iat": 9e12},
        {"nbf": 9e12},
        {"sub": ""},
        {"sub": None},
    ],
)
def test_a_token_with_a_wrong_claim_lets_nobody_in(in_force, alice, wrong):
    in_force.wrong = wrong
    browser, answer = entered(alice.organisation, in_force, "alice-there")
    assert answer.status_code == 503
    assert not is_in(browser, alice.organisation)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_no_key_has_signed_lets_nobody_in(in_force, alice, algorithm):
    in_force.algorithm = algorithm
    assert entered(alice.organisation, in_force, "alice-there")[1].status_code == 503


def test_a_rotated_key_is_found_and_one_that_is_not_published_is_not(in_force, alice):
    in_force.issuer.keys = {"two": "RSA two"}
    in_force.kid = "two"
    assert entered(alice.organisation, in_force, "alice-there")[1].status_code == 302
    in_force.issuer.jwks = lambda: {
        "keys": [each | {"kid": "three"} for each in type(in_force.issuer).jwks(in_force.issuer)["keys"]]
    }
    assert entered(alice.organisation, in_force, "alice-there")[1].status_code == 503


def test_a_state_is_good_once_in_its_own_session_for_ten_minutes(in_force, alice, time):
    browser = Client()
    way = way_of(browser.post("/sign-in/sso", {"organisation": alice.organisation.id}))
    there = in_force.signed_in(way, "alice-there")
    assert Client().get(address_back(way), there).status_code == 400, "whoever is sent somebody else's link"
    assert browser.get(address_back(way), there | {"state": "x"}).status_code == 400
    assert browser.get(address_back(way), there).status_code == 400, "used up by the wrong one"
    browser, answer = entered(alice.organisation, in_force, "alice-there")
    assert answer.status_code == 302
    late = Client()
    way = way_of(late.post("/sign-in/sso", {"organisation": alice.organisation.id}))
    time.passes(timedelta(minutes=10))
    assert late.get(address_back(way), in_force.signed_in(way, "alice-there")).status_code == 400


def test_a_code_is_worth_nothing_to_whoever_has_not_begun(in_force, alice):
    """PKCE: a code that was stolen on the way goes with another verifier."""
    one, two = Client(), Client()
    ways = [way_of(each.post("/sign-in/sso", {"organisation": alice.organisation.id})) for each in (one, two)]
    stolen = in_force.signed_in(ways[0], "alice-there")["code"]
    answer = two.get(address_back(ways[1]), in_force.signed_in(ways[1], "eve") | {"code": stolen})
    assert answer.status_code == 503


def test_an_answer_of_another_organisations_provider_is_sent_to_nobody(in_force, alice, charlie):
    """Mix-up: Charlie's provider sends people on to Alice's, and would be handed the code that she was given."""
    for path, more in (
        (f"/sign-in/sso/back/{charlie.organisation.id}", {}),
        (f"/sign-in/sso/back/{alice.organisation.id}", {"iss": "https://another.example.com"}),
    ):
        browser = Client()
        way = way_of(browser.post("/sign-in/sso", {"organisation": alice.organisation.id}))
        there = in_force.signed_in(way, "alice-there")
        assert browser.get(path, there | more).status_code == 400
        assert there["code"] in in_force.codes, "it was exchanged with nobody"
    assert entered(alice.organisation, in_force, "alice-there", iss=in_force.url)[1].status_code == 302


def test_a_provider_that_is_slow_or_down_is_said_to_be_so(in_force, alice, monkeypatch):
    from controlplane.token_issuers import fetching

    in_force.status = 500
    assert entered(alice.organisation, in_force, "alice-there")[1].status_code == 503
    in_force.status, in_force.is_slow = 200, True
    real = fetching.fetched
    monkeypatch.setattr(fetching, "fetched", lambda address, **other: real(address, within_s=0.5, **other))
    assert entered(alice.organisation, in_force, "alice-there")[1].status_code == 503


def test_unknown_organisations_and_those_without_it_are_answered_alike(in_force, alice, charlie):
    pages = [
        Client().post("/sign-in/sso", {"organisation": each}) for each in ("org-000000000000", charlie.organisation.id)
    ]
    bare = [re.sub(r'name="csrfmiddlewaretoken" value="[^"]+"|org-\w+', "", each.content.decode()) for each in pages]
    assert [each.status_code for each in pages] == [422, 422]
    assert bare[0] == bare[1]


# --- what such a session may --------------------------------------------------------------------------------------------


@pytest.fixture
def by_sso(in_force, alice):
    tenants.organisation_create(name="Elsewhere", owner=alice.user)
    return entered(alice.organisation, in_force, "alice-there")[0]


def test_it_reaches_no_other_organisation_and_shows_none(by_sso, alice):
    other = Membership.objects.exclude(organisation=alice.organisation).get(user=alice.user).organisation
    answer = by_sso.get(f"/{other.id}/instances")
    assert answer.status_code == 404
    assert "Elsewhere" not in text_of(by_sso.get(f"/{alice.organisation.id}/instances"))
    assert by_sso.get("/")["Location"] == f"/{alice.organisation.id}/instances"


@pytest.fixture
def by_sso_with_password(in_force, alice):
    alice.user.set_password(PASSWORD)
    alice.user.save()
    return entered(alice.organisation, in_force, "alice-there")[0]


def test_signing_in_so_is_no_proof(by_sso_with_password, alice):
    """A provider may do it without a question, for whoever sits at an open browser."""
    by_sso = by_sso_with_password
    address = f"/{alice.organisation.id}/keys"
    asked = by_sso.post(address, {"name": "made by sso"})
    assert 'name="proof"' in asked.content.decode()
    assert not ApiKey.objects.for_organisation(alice.organisation).filter(name="made by sso").exists()
    by_sso.post(address, {"name": "made by sso", "proof": PASSWORD})
    assert ApiKey.objects.for_organisation(alice.organisation).filter(name="made by sso").exists()


CLOSED = [
    route.name
    for route in urls.urlpatterns
    if "<" not in str(route.pattern)
    and route.name not in ("home", "prices", "sign_in", "sign_out", "theme", "language", "passkey_challenge")
]


@pytest.mark.parametrize("name", CLOSED)
def test_everything_of_the_person_is_closed(by_sso, name):
    from django.urls import reverse

    for method in (by_sso.get, by_sso.post):
        assert method(reverse(f"console:{name}")).status_code == 403


def test_no_operator_comes_so(by_sso, in_force, at_alice, alice):
    """An API key of theirs, made in one organisation, acts in all of them: no organisation's provider is to make one."""
    assert by_sso.get("/fleet").status_code == 403
    User.objects.filter(pk=alice.user.pk).update(is_staff=True)
    assert by_sso.post(f"/{alice.organisation.id}/keys", {"name": "k"})["Location"] == "/sign-in"
    browser, answer = entered(alice.organisation, in_force, "alice-there")
    assert answer.status_code == 403
    assert not is_in(browser, alice.organisation)
    at_alice.client.force_login(User.objects.get(pk=alice.user.pk))
    assert connect(at_alice.client, alice, in_force, "alice-anew").status_code == 403


def test_an_invitation_is_not_accepted_by_it(by_sso, charlie, alice):
    _, token = joining.invite(
        organisation=charlie.organisation, inviter=charlie.user, email="alice@example.com", role=Role.OWNER
    )
    assert by_sso.post(f"/invitations/{token}").status_code == 403


def test_it_takes_no_challenge_for_a_passkey_to_be_added(by_sso):
    assert by_sso.post("/passkeys/challenge", {"purpose": "add"}).status_code == 400


def test_it_lasts_half_a_day_whatever_is_done_in_it(by_sso, alice):
    by_sso.get(f"/{alice.organisation.id}/instances")
    assert timedelta(hours=11) < by_sso.session.get_expiry_date() - timezone.now() <= timedelta(hours=12)


def test_it_connects_no_other_account(by_sso_with_password, alice):
    answer = by_sso_with_password.post(page(alice), {"do": "connect", "proof": PASSWORD})
    assert "Sign in by your password to connect" in text_of(answer)


@pytest.mark.parametrize("ends", ["membership", "link", "provider", "off", "issuer"])
def test_it_ends_with_membership_link_and_provider(by_sso, at_alice, alice, bob, ends):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    if ends == "membership":
        row = Membership.objects.get(organisation=alice.organisation, user=alice.user)
        joining.member_remove(organisation=alice.organisation, by=bob.user, membership_id=row.pk)
        tenants.membership_set(organisation=alice.organisation, user=alice.user, role=Role.MEMBER)
        assert not SsoLink.objects.unscoped("a test").exists()
    elif ends == "issuer":
        SsoProvider.objects.unscoped("a test").update(issuer="https://another.example.com")
    else:
        does = {"link": {"do": "disconnect"}, "provider": {"do": "remove"}, "off": {"do": "switch"}}[ends]
        at_alice.client.post(page(alice), does)
    assert by_sso.get(f"/{alice.organisation.id}/instances")["Location"] == "/sign-in"
    assert "_auth_user_id" not in by_sso.session


@pytest.mark.parametrize("does", ["switch", "set"])
def test_who_was_signed_out_stays_out_when_it_is_in_force_again(by_sso, in_force, at_alice, alice, does):
    """Also who has asked for nothing meanwhile."""
    set_up(at_alice.client, alice, in_force, do=does)
    SsoProvider.objects.unscoped("a test").update(is_on=True)
    assert not is_in(by_sso, alice.organisation)
    assert is_in(entered(alice.organisation, in_force, "alice-there")[0], alice.organisation), (
        "the connection is as before"
    )


# --- links ----------------------------------------------------------------------------------------------------------------


def test_a_provider_of_one_organisation_signs_nobody_in_to_another(in_force, at_alice, alice, charlie):
    """Charlie's organisation trusts the same provider, and says that alice's subject is Charlie: hers alone is reached."""
    charlies = Client()
    charlies.force_login(charlie.user)
    set_up(charlies, charlie, in_force)
    connect(charlies, charlie, in_force, "alice-there")
    charlies.post(page(charlie), {"do": "switch", "is_on": "1"})
    browser, _ = entered(charlie.organisation, in_force, "alice-there")
    assert is_in(browser, charlie.organisation)
    assert not is_in(browser, alice.organisation)


def test_a_subject_is_one_member(in_force, at_bob, bob):
    assert connect(at_bob.client, bob, in_force, "alice-there").status_code == 409
    assert connect(at_bob.client, bob, in_force, "bob-there").status_code == 302
    assert connect(at_bob.client, bob, in_force, "bob-anew").status_code == 302
    assert SsoLink.objects.unscoped("a test").filter(membership__user=bob.user).get().subject == "bob-anew"


def test_what_was_begun_as_one_person_connects_no_other(in_force, at_bob, bob, alice):
    """Else an attacker who signs in here in the victim's browser, or has them follow a link, is connected to their account."""
    way = way_of(at_bob.client.post(page(bob), {"do": "connect"}))
    there = in_force.signed_in(way, "eve-there")
    other = Client()
    other.force_login(alice.user)
    assert other.get(address_back(way), there).status_code == 400


def test_a_member_without_a_membership_any_more_is_not_connected(in_force, at_bob, bob, alice):
    way = way_of(at_bob.client.post(page(bob), {"do": "connect"}))
    row = Membership.objects.get(organisation=alice.organisation, user=bob.user)
    joining.member_remove(organisation=alice.organisation, by=alice.user, membership_id=row.pk)
    assert back(at_bob.client, in_force, way, "bob-there").status_code == 404


# --- required -------------------------------------------------------------------------------------------------------------


def test_where_it_is_required_passwords_lead_in_owners_with_a_second_factor_alone(
    in_force, at_alice, at_bob, alice, bob, time
):
    connect(at_bob.client, bob, in_force, "bob-there")
    at_alice.client.post(page(alice), {"do": "switch", "is_on": "1", "is_required": "1"})
    for browser in (at_alice.client, at_bob.client):
        assert browser.get(f"/{alice.organisation.id}/instances").status_code == 403
    User.objects.update(second_factor_at=time.now)
    assert is_in(at_alice.client, alice.organisation)
    assert not is_in(at_bob.client, alice.organisation), "no owner"
    assert is_in(entered(alice.organisation, in_force, "bob-there")[0], alice.organisation)
    assert bob.api.get("/api/v1/instances").status_code == 200


def test_who_is_not_connected_yet_connects_where_it_is_required_and_does_nothing_else(
    in_force, at_alice, at_bob, alice, bob
):
    """Or a member who is invited then would never get in."""
    at_alice.client.post(page(alice), {"do": "switch", "is_on": "1", "is_required": "1"})
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    shown = at_bob.client.get(page(bob))
    assert shown.status_code == 200
    assert "Client secret" not in text_of(shown)
    for does in ("switch", "remove", "set", ""):
        assert set_up(at_bob.client, bob, in_force, do=does).status_code == 403, "an owner without a second factor"
    assert SsoProvider.objects.unscoped("a test").get().is_required
    assert connect(at_bob.client, bob, in_force, "bob-there").status_code == 302
    assert not is_in(at_bob.client, alice.organisation)
    for does in ("connect", "disconnect"):
        assert at_bob.client.post(page(bob), {"do": does}).status_code == 403, "not another one, by a password"
    assert is_in(entered(alice.organisation, in_force, "bob-there")[0], alice.organisation)


def test_of_two_connections_that_were_begun_before_there_was_one_the_first_stands(in_force, at_alice, alice, bob, time):
    """Whoever has a member's password begins before the member has connected, and comes back afterwards."""
    at_alice.client.post(page(alice), {"do": "switch", "is_on": "1", "is_required": "1"})
    asked = SsoProvider.objects.unscoped("a test").select_related("organisation").get()
    begun = services.Begun(asked.organisation_id, asked.issuer, asked.client_id, "s", "n", "v")

    def come_back(subject):
        return services.member_connect(asked=asked, user=bob.user, begun=begun, subject=subject)

    come_back("bob-there")
    with pytest.raises(Forbidden, match="requires its members to sign in"):
        come_back("eve-there")
    assert SsoLink.objects.unscoped("a test").get(membership__user=bob.user).subject == "bob-there"
    come_back("bob-there")
    SsoProvider.objects.unscoped("a test").update(is_required=False)
    come_back("bob-anew")
    SsoProvider.objects.unscoped("a test").update(is_required=True, required_at=time.now)
    SsoLink.objects.unscoped("a test").filter(membership__user=bob.user).update(issuer="https://before.example.com")
    come_back("bob-again")
    assert SsoLink.objects.unscoped("a test").get(membership__user=bob.user).subject == "bob-again", "of another issuer"
    User.objects.filter(pk=bob.user.pk).update(second_factor_at=time.now)
    bob.user.refresh_from_db()
    with pytest.raises(Forbidden):
        come_back("bob-anew")
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    come_back("bob-anew")


def test_whoever_changes_nothing_here_connects_themselves(in_force, at_bob, alice, bob):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.VIEWER)
    assert connect(at_bob.client, bob, in_force, "bob-there").status_code == 302
    assert at_bob.client.post(page(bob), {"do": "disconnect"}).status_code == 302
    row = custom_role_row(alice.organisation)
    Membership.objects.filter(user=bob.user, organisation=alice.organisation).update(custom_role=row)
    assert connect(at_bob.client, bob, in_force, "bob-there").status_code == 302
    assert set_up(at_bob.client, bob, in_force, do="remove").status_code == 403
