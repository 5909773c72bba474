"""Somebody who is invited and has no account comes in by the organisation's provider; no provider comes in by an invitation."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client

from controlplane.accounts import joining
from controlplane.accounts.identity import door
from controlplane.accounts.models import User
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.tenants import invitations
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Invitation, Membership, Organisation, Role
from tests.controlplane.console.conftest import at_alice, at_bob, quick_passwords, text_of
from tests.controlplane.identity.conftest import PASSWORD, Mailbox, audited, sign_in, time
from tests.controlplane.identity.test_second_factor import App

from .test_signing_in import (
    address_back,
    connect,
    entered,
    in_force,
    is_in,
    page,
    provider,
    set_up,
    way_of,
)

__all__ = ["at_alice", "at_bob", "in_force", "provider", "quick_passwords", "time"]
DORA = "dora@example.com"
VERIFIED = {"email": DORA, "email_verified": True}


@pytest.fixture(autouse=True)
def mailbox(mails):
    """By mail alone is somebody invited who can join by a provider."""
    return Mailbox(mails)


def invited(person, email=DORA, role=Role.MEMBER, **how):
    """The link of an invitation, which was mailed to the address."""
    how = {"is_mailed": True} | how
    _, token = invitations.invitation_create(
        organisation=person.organisation, inviter=person.user, email=email, role=role, **how
    )
    return f"/invitations/{token}"


def way_in(link, browser=None):
    browser = browser or Client()
    answer = browser.post(link, {"by_sso": "1"})
    return browser, way_of(answer)


def joined(provider, link, subject="dora-there", claims=VERIFIED, browser=None):
    provider.wrong = dict(claims)
    browser, way = way_in(link, browser)
    answer = browser.get(address_back(way), provider.signed_in(way, subject))
    provider.wrong = {}
    return browser, answer


def nothing_is_made(link):
    assert not User.objects.filter(email=DORA).exists()
    assert Client().get(link).status_code == 200, "the invitation is good as before"
    return True


@pytest.mark.parametrize("role", [Role.MEMBER, Role.VIEWER, Role.OWNER])
def test_whoever_the_provider_says_has_the_address_becomes_what_the_invitation_says(in_force, alice, role):
    link = invited(alice, role=role)
    assert "Join by Corp" in text_of(Client().get(link))
    browser, answer = joined(in_force, link)
    assert answer.status_code == 302, text_of(answer)
    assert is_in(browser, alice.organisation)
    made = Membership.objects.get(user__email=DORA)
    assert (made.organisation, made.role, made.user.has_usable_password()) == (alice.organisation, role, False)
    assert SsoLink.objects.unscoped("a test").get(membership=made).subject == "dora-there"
    assert audited("member.add")[-1] == (DORA, DORA, {"role": role.value})
    assert audited("sso.connect")[-1] == (DORA, DORA, {"subject": "dora-there"})
    assert is_in(entered(alice.organisation, in_force, "dora-there")[0], alice.organisation), "and from now on"
    assert browser.get("/account").status_code == 403, "it is a session of the provider's"
    assert Client().get(link).status_code == 404, "the link is used up"


def test_the_provider_is_asked_for_the_address_then_and_not_otherwise(in_force, alice):
    _, way = way_in(invited(alice))
    assert "scope=openid+email&" in way
    assert "scope=openid&" in way_of(Client().post("/sign-in/sso", {"organisation": alice.organisation.id}))


def test_the_address_is_compared_without_regard_to_capitals(in_force, alice):
    assert joined(in_force, invited(alice), claims={**VERIFIED, "email": "Dora@Example.com"})[1].status_code == 302


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"email": DORA},
        {"email": DORA, "email_verified": False},
        {"email": DORA, "email_verified": "true"},
        {"email": DORA, "email_verified": 1},
        {"email": "eve@example.com", "email_verified": True},
        {"email": [DORA], "email_verified": True},
        {"email": "dora@example.com ", "email_verified": True},
        {"email": "dora@e\u0445ample.com", "email_verified": True},
        {"email": None, "email_verified": True},
    ],
)
def test_another_address_or_one_that_was_not_verified_is_not_the_invited_one(in_force, alice, claims):
    link = invited(alice)
    browser, answer = joined(in_force, link, claims=claims)
    assert answer.status_code == 403
    assert not is_in(browser, alice.organisation)
    assert nothing_is_made(link)


def test_a_letter_that_is_another_in_lower_case_is_no_way_round(in_force, alice):
    link = invited(alice, "mike@example.com")
    sign = "\N{KELVIN SIGN}"
    assert sign.lower() == "k"
    claims = {"email": f"mi{sign}e@example.com", "email_verified": True}
    assert joined(in_force, link, claims=claims)[1].status_code == 403


def test_an_account_that_is_there_is_entered_on_no_providers_word(in_force, alice, charlie):
    """Charlie has never heard of this organisation: it invites him, and its provider says that it is him."""
    link = invited(alice, "charlie@example.com")
    browser, answer = joined(in_force, link, claims={"email": "charlie@example.com", "email_verified": True})
    assert answer.status_code == 409
    assert "there is an account with this address" in text_of(answer).lower()
    assert not is_in(browser, alice.organisation)
    assert not is_in(browser, charlie.organisation)
    assert not Membership.objects.filter(organisation=alice.organisation, user=charlie.user).exists()
    assert not SsoLink.objects.unscoped("a test").filter(membership__user=charlie.user).exists()


def test_nor_is_an_operator(in_force, alice):
    User.objects.create_superuser("opal@example.com", PASSWORD)
    link = invited(alice, "opal@example.com")
    claims = {"email": "opal@example.com", "email_verified": True}
    assert joined(in_force, link, claims=claims)[1].status_code == 409


@pytest.fixture
def charlies(provider, charlie):
    """Charlie's organisation has put the provider in force as well, and signs whom it likes."""
    browser = Client()
    browser.force_login(charlie.user)
    set_up(browser, charlie, provider)
    connect(browser, charlie, provider, "charlie-there")
    browser.post(page(charlie), {"do": "switch", "is_on": "1"})
    return charlie.organisation


def test_another_organisations_provider_accepts_none(in_force, alice, charlies):
    """It says that its subject has the invited address; by its own sign-in, and sent to the address of the other."""
    link = invited(alice)
    in_force.wrong = dict(VERIFIED)
    browser, answer = entered(charlies, in_force, "eve-there")
    assert answer.status_code == 403
    _, way = way_in(link, browser)
    there = in_force.signed_in(way, "eve-there")
    assert browser.get(f"/sign-in/sso/back/{charlies.id}", there).status_code == 400
    assert browser.get(address_back(way), there).status_code == 400, "a sign-in is good once"
    assert nothing_is_made(link)


def test_an_invitation_of_one_is_never_that_of_another(in_force, alice, charlies, charlie):
    """What the session keeps is looked for in the organisation whose provider was asked."""
    link = invited(alice)
    ours = Invitation.objects.for_organisation(alice.organisation).get(email=DORA)
    browser, way = way_in(invited(charlie))
    session = browser.session
    kept = session["sso_begun"]
    kept["begun"]["invitation_id"] = ours.pk
    session["sso_begun"] = kept
    session.save()
    in_force.wrong = dict(VERIFIED)
    assert browser.get(address_back(way), in_force.signed_in(way, "eve-there")).status_code == 404
    assert nothing_is_made(link)


def test_a_sign_in_that_was_begun_without_an_invitation_accepts_none(in_force, alice):
    link = invited(alice)
    in_force.wrong = dict(VERIFIED)
    assert entered(alice.organisation, in_force, "dora-there")[1].status_code == 403
    assert nothing_is_made(link)


def test_who_is_connected_already_does_not_come_in_as_another(in_force, alice):
    link = invited(alice)
    assert joined(in_force, link, subject="alice-there")[1].status_code == 409
    assert nothing_is_made(link)


@pytest.mark.parametrize("ends", ["withdrawn", "expired", "inviter", "off", "set", "removed"])
def test_what_has_ended_meanwhile_lets_nobody_in(in_force, at_alice, alice, bob, time, ends):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    link = invited(bob)
    in_force.wrong = dict(VERIFIED)
    browser, way = way_in(link)
    there = in_force.signed_in(way, "dora-there")
    if ends == "withdrawn":
        Invitation.objects.for_organisation(alice.organisation).update(withdrawn_at=time.now)
    elif ends == "expired":
        Invitation.objects.for_organisation(alice.organisation).update(expires_at=time.now)
    elif ends == "inviter":
        User.objects.filter(pk=bob.user.pk).update(is_active=False)
    elif ends == "off":
        at_alice.client.post(page(alice), {"do": "switch"})
    elif ends == "set":
        SsoProvider.objects.unscoped("a test").update(client_id="another")
    else:
        at_alice.client.post(page(alice), {"do": "remove"})
    assert browser.get(address_back(way), there).status_code in (404, 409)
    assert not User.objects.filter(email=DORA).exists()


def test_a_sign_in_of_two_browsers_uses_the_link_once(in_force, alice):
    in_force.wrong = dict(VERIFIED)
    link = invited(alice)
    ways = [way_in(link) for _ in range(2)]
    first, second = (
        browser.get(address_back(way), in_force.signed_in(way, f"dora-{number}"))
        for number, (browser, way) in enumerate(ways)
    )
    assert (first.status_code, second.status_code) == (302, 404)
    assert Membership.objects.filter(user__email=DORA).count() == 1


def test_it_is_good_for_ten_minutes_in_the_browser_that_began_it(in_force, alice, time):
    in_force.wrong = dict(VERIFIED)
    browser, way = way_in(invited(alice))
    there = in_force.signed_in(way, "dora-there")
    assert Client().get(address_back(way), there).status_code == 400
    time.passes(timedelta(minutes=10))
    assert browser.get(address_back(way), there).status_code == 400


def test_without_a_provider_in_force_the_page_offers_none(at_alice, alice, provider):
    set_up(at_alice.client, alice, provider)
    link = invited(alice)
    assert "by_sso" not in Client().get(link).content.decode()
    assert Client().post(link, {"by_sso": "1"}).status_code == 404


def test_a_link_that_was_mailed_confirms_the_address_and_a_shown_one_makes_no_account(in_force, alice, mailbox, time):
    """Whoever has been shown a link need not read the address: by mail alone an account of it is made."""
    joining.invite(organisation=alice.organisation, inviter=alice.user, email=DORA, role=Role.MEMBER)
    in_force.now_s = time.now.timestamp()
    assert joined(in_force, mailbox.link(DORA))[1].status_code == 302
    assert User.objects.get(email=DORA).email_verified_at is not None
    Invitation.objects.for_organisation(alice.organisation).filter(email="erin@example.com").delete()
    joining.invite(organisation=alice.organisation, inviter=alice.user, email="erin@example.com", role=Role.MEMBER)
    link = mailbox.link("erin@example.com")
    Invitation.objects.for_organisation(alice.organisation).filter(email="erin@example.com").update(is_mailed=False)
    claims = {"email": "erin@example.com", "email_verified": True}
    assert "by_sso" not in Client().get(link).content.decode()
    assert joined(in_force, link, "erin-there", claims)[1].status_code == 403
    assert not User.objects.filter(email="erin@example.com").exists()


@pytest.mark.parametrize("is_mailed", [False, True])
def test_where_no_mail_is_sent_nobody_joins_so(in_force, alice, settings, is_mailed):
    """They could never be given a password: out with the provider is out for good. They choose one on the page instead."""
    link = invited(alice, is_mailed=is_mailed)
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, smtp="")
    body = Client().get(link).content.decode()
    assert "by_sso" not in body
    assert 'name="password"' in body
    browser, answer = joined(in_force, link)
    assert answer.status_code == 403
    assert not is_in(browser, alice.organisation)
    assert nothing_is_made(link)
    assert Client().post(link, {"name": "Dora", "password": PASSWORD}).status_code == 302
    assert User.objects.get(email=DORA).check_password(PASSWORD)


# --- a password of their own ------------------------------------------------------------------------------------------------


def password_chosen(mailbox, browser=None, password=PASSWORD):
    """Forgotten, or never had: by the link of a mail."""
    browser = browser or Client()
    assert browser.post("/password/forgotten", {"email": DORA}).status_code == 200
    door.notes_answer()
    assert "Choose a new password" in mailbox.subjects(DORA)
    answer = browser.post(mailbox.link(DORA), {"password": password}, follow=True)
    assert "Your password was changed" in text_of(answer)


def test_who_came_in_so_chooses_a_password_by_mail_and_signs_in_without_the_provider(
    in_force, at_alice, alice, mailbox, time
):
    """Forgotten, link, password, sign-in, second factor: also as the last owner, with the provider gone."""
    browser, _ = joined(in_force, invited(alice, role=Role.OWNER))
    joining.member_remove(
        organisation=alice.organisation,
        by=User.objects.get(email=DORA),
        membership_id=Membership.objects.get(user=alice.user, organisation=alice.organisation).pk,
    )
    SsoProvider.objects.unscoped("a test").get().delete()
    assert browser.get(f"/{alice.organisation.id}/instances")["Location"] == "/sign-in"
    password_chosen(mailbox)
    own, answer = sign_in(DORA)
    assert answer.status_code == 302
    assert is_in(own, alice.organisation)
    assert own.get("/account").status_code == 200
    App(own, time).switch_on()
    assert User.objects.get(email=DORA).second_factor_at == time.now


def test_the_provider_chooses_no_password_for_them(in_force, alice, mailbox, time):
    """A session of its own reaches neither the question nor the account: the mail alone does."""
    browser, _ = joined(in_force, invited(alice))
    assert browser.post("/password/forgotten", {"email": DORA}).status_code == 403
    assert browser.post("/account", {"do": "password", "current": "", "password": PASSWORD}).status_code == 403
    assert not User.objects.get(email=DORA).has_usable_password()


def test_who_has_no_password_is_told_how_to_have_one_where_it_is_asked_for(in_force, alice, mailbox, time):
    browser, _ = joined(in_force, invited(alice))
    keys = f"/{alice.organisation.id}/keys"
    asked = browser.post(keys, {"name": "k"})
    assert "Your account has no password yet" in text_of(asked)
    assert 'name="proof"' not in asked.content.decode()
    assert 'action="/sign-out"' in asked.content.decode()
    assert browser.post(keys, {"name": "k", "proof": ""}).status_code == 422
    browser.post("/sign-out")
    password_chosen(mailbox, browser)
    entered(alice.organisation, in_force, "dora-there", browser)
    assert 'name="proof"' in browser.post(keys, {"name": "k"}).content.decode()
    made = browser.post(keys, {"name": "k", "proof": PASSWORD})
    assert made.status_code == 200
    assert made.context["text"]


def test_where_a_second_factor_is_demanded_they_are_told_how_to_set_one_up(in_force, alice, mailbox, time):
    Organisation.objects.filter(pk=alice.organisation.pk).update(second_factor_demanded=True)
    browser, _ = joined(in_force, invited(alice))
    shown = browser.get(f"/{alice.organisation.id}/instances")
    assert shown.status_code == 403
    assert "Sign out, and sign in by your password" in text_of(shown)
    assert "/account/second-factor" not in shown.content.decode(), "this session does not open it"
    browser.post("/sign-out")
    password_chosen(mailbox, browser)
    own, _ = sign_in(DORA)
    assert "/account/second-factor" in own.get(f"/{alice.organisation.id}/instances").content.decode()
    App(own, time).switch_on()
    assert is_in(own, alice.organisation)
    in_force.now_s = time.now.timestamp()
    assert is_in(entered(alice.organisation, in_force, "dora-there")[0], alice.organisation)


def test_who_came_in_so_is_their_own_elsewhere(in_force, alice, time):
    """The provider signs them in to the one organisation; the account is of whoever reads the address."""
    browser, _ = joined(in_force, invited(alice))
    own = tenants.organisation_create(name="Dora's own", owner=User.objects.get(email=DORA))
    assert browser.get(f"/{own.id}/instances").status_code == 404
    assert not re.search("Dora's own", text_of(browser.get(f"/{alice.organisation.id}/instances")))
