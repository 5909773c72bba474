"""People come into organisations by a link that was made for their address, and by nothing else."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from controlplane.accounts.models import User
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.tenants import invitations
from controlplane.tenants.models import Invitation, Membership, Organisation, Role
from tests.controlplane.sso.rows import provider_row

from .conftest import problem_beside, text_of, visit

PASSWORD = "water over the wheel"


def invite(visitor, email, role="member"):
    """The path of the link."""
    page = visitor.post("members", {"email": email, "role": role})
    assert page.status_code == 200, text_of(page)
    (path,) = set(re.findall(r"http://testserver(/invitations/[\w-]{43})<", page.content.decode()))
    return path


def only(visitor):
    return invitations.invitation_list(organisation=visitor.organisation).get()


def role_of(email, organisation):
    return (
        Membership.objects.filter(organisation=organisation, user__email=email).values_list("role", flat=True).first()
    )


def test_whoever_has_an_account_joins_by_the_link(at_alice, at_charlie):
    path = invite(at_alice, "CHARLIE@example.com", "viewer")
    assert at_charlie.client.get(at_alice.address()).status_code == 404, "an invitation alone opens nothing"
    page = at_charlie.client.get(path)
    assert "alice@example.com has invited charlie@example.com as viewer." in text_of(page)
    answer = at_charlie.client.post(path, follow=True)
    assert f"You are a member of {at_alice.organisation.name} now." in text_of(answer)
    assert role_of("charlie@example.com", at_alice.organisation) == Role.VIEWER
    entries = AuditEntry.objects.for_organisation(at_alice.organisation)
    told = {entry.action: (entry.actor, entry.target, entry.detail.get("role")) for entry in entries}
    assert told["invitation.create"] == ("alice@example.com", "charlie@example.com", "viewer")
    assert told["member.add"] == ("charlie@example.com", "charlie@example.com", "viewer")


def test_a_new_person_signs_up_by_the_link_and_is_in(at_alice):
    path = invite(at_alice, "dora@example.com")
    browser = Client()
    assert "Already have an account with this address?" in text_of(browser.get(path))
    answer = browser.post(path, {"name": "Dora", "password": PASSWORD}, follow=True)
    assert f"You are a member of {at_alice.organisation.name} now." in text_of(answer)
    assert role_of("dora@example.com", at_alice.organisation) == Role.MEMBER
    assert [each.organisation for each in Membership.objects.filter(user__email="dora@example.com")] == [
        at_alice.organisation
    ]


def test_whoever_took_the_address_first_is_not_let_in_by_it(at_alice):
    """An account of that address says nothing about who has it: only the link does."""
    Client().post("/sign-up", {"email": "dora@example.com", "password": PASSWORD, "organisation_name": "Not Dora's"})
    invite(at_alice, "dora@example.com")
    assert role_of("dora@example.com", at_alice.organisation) is None


def test_it_is_not_said_who_has_an_account(at_alice, charlie):
    pages = [
        at_alice.post("members", {"email": email, "role": "member"}).content.decode()
        for email in ("charlie@example.com", "nobody1@example.com")
    ]
    at_alice.client.post(f"/{at_alice.organisation.id}/theme")
    for page, email in zip(pages, ("charlie", "nobody1"), strict=True):
        assert f"Invitation for {email}@example.com" in page
        assert "account" not in re.sub("They need not have an account yet.", "", page.split("<main")[1])


@pytest.mark.parametrize(
    ("email", "said"),
    [
        ("alice@example.com", "The organisation has a member alice@example.com already."),
        ("dora", "Enter a valid email address."),
        ("", "This field is required."),
    ],
)
def test_why_someone_cannot_be_invited_stands_beside_the_address(at_alice, email, said):
    page = at_alice.post("members", {"email": email, "role": "member"})
    assert page.status_code == 422
    assert problem_beside(page, "email") == said


def test_a_link_is_for_one_address(at_alice, at_charlie):
    path = invite(at_alice, "dora@example.com", "owner")
    assert "You are signed in as charlie@example.com." in text_of(at_charlie.client.get(path))
    page = at_charlie.client.post(path)
    assert page.status_code == 409
    assert role_of("charlie@example.com", at_alice.organisation) is None
    assert only(at_alice).accepted_at is None, "it still works for whom it is meant"


def test_a_link_works_once(at_alice, at_charlie):
    path = invite(at_alice, "charlie@example.com")
    at_charlie.client.post(path)
    Membership.objects.filter(user=at_charlie.user, organisation=at_alice.organisation).delete()
    page = at_charlie.client.post(path)
    assert page.status_code == 404
    assert "This link is not valid any more: sign in if you have joined by it, or else ask for a new one." in text_of(
        page
    )
    assert role_of("charlie@example.com", at_alice.organisation) is None


def test_the_latest_link_of_an_address_is_the_one_that_works(at_alice, at_charlie):
    first, second = invite(at_alice, "charlie@example.com", "owner"), invite(at_alice, "charlie@example.com", "viewer")
    assert at_charlie.client.post(first).status_code == 404
    assert at_charlie.client.post(second).status_code == 302
    assert role_of("charlie@example.com", at_alice.organisation) == Role.VIEWER


def test_a_link_lasts_for_a_week(at_alice, at_charlie):
    path = invite(at_alice, "charlie@example.com")
    late = SYSTEM_CLOCK.now() - timedelta(days=7)
    invitations.invitation_list(organisation=at_alice.organisation).update(
        created_at=late, expires_at=SYSTEM_CLOCK.now()
    )
    assert "Expired" in text_of(at_alice.get("members"))
    assert at_charlie.client.get(path).status_code == 404
    assert at_charlie.client.post(path).status_code == 404
    assert at_charlie.client.post(invite(at_alice, "charlie@example.com")).status_code == 302


def test_an_owner_withdraws_an_invitation(at_alice, at_charlie):
    path = invite(at_alice, "charlie@example.com")
    invitation = only(at_alice)
    for _ in range(2):
        answer = at_alice.post(f"invitations/{invitation.id}/withdraw", follow=True)
        assert "The invitation for charlie@example.com was withdrawn." in text_of(answer)
    assert "Open invitations" not in text_of(answer)
    assert at_charlie.client.post(path).status_code == 404
    entries = AuditEntry.objects.for_organisation(at_alice.organisation).filter(action="invitation.withdraw")
    assert [entry.actor for entry in entries] == ["alice@example.com"]


def test_what_was_accepted_cannot_be_withdrawn(at_alice, at_charlie):
    path = invite(at_alice, "charlie@example.com")
    invitation = only(at_alice)
    at_charlie.client.post(path)
    answer = at_alice.post(f"invitations/{invitation.id}/withdraw", follow=True)
    assert "Charlie@example.com has accepted it already: remove the member instead." in text_of(answer)


@pytest.mark.parametrize("change", ["remove", "role"])
def test_whoever_is_no_owner_any_more_leaves_no_door_open(at_alice, at_bob, at_charlie, change):
    bob = Membership.objects.get(organisation=at_alice.organisation, user=at_bob.user)
    at_alice.post(f"members/{bob.id}/role", {"role": "owner"})
    path = invite(at_bob, "charlie@example.com", "owner")
    kept = invite(at_alice, "dora@example.com")
    at_alice.post(f"members/{bob.id}/{change}", {"role": "viewer"})
    assert at_charlie.client.post(path).status_code == 404
    assert Client().get(kept).status_code == 200, "those of others stay"
    (entry,) = AuditEntry.objects.for_organisation(at_alice.organisation).filter(action="invitation.withdraw")
    assert (entry.actor, entry.target) == ("alice@example.com", "charlie@example.com")


def test_whoever_is_in_already_keeps_the_role(at_alice, at_charlie):
    path = invite(at_alice, "charlie@example.com", "viewer")
    Membership.objects.create(organisation=at_alice.organisation, user=at_charlie.user, role=Role.OWNER)
    assert at_charlie.client.post(path).status_code == 302
    assert role_of("charlie@example.com", at_alice.organisation) == Role.OWNER


def test_a_password_that_will_not_do_leaves_everything_as_it_was(at_alice):
    path = invite(at_alice, "dora@example.com")
    page = Client().post(path, {"password": "short"})
    assert page.status_code == 422
    assert problem_beside(page, "password").startswith("This password is too short.")
    assert not User.objects.filter(email="dora@example.com").exists()
    assert only(at_alice).accepted_at is None


def test_someone_with_an_account_is_told_to_sign_in_and_comes_back(at_alice):
    browser = Client()
    browser.post("/sign-up", {"email": "dora@example.com", "password": PASSWORD, "organisation_name": "Mill"})
    browser.post("/sign-out")
    path = invite(at_alice, "dora@example.com")
    page = browser.post(path, {"password": "another password of hers"})
    assert problem_beside(page, "password") == "There is an account with this address; sign in instead."
    answer = browser.post("/sign-in", {"email": "dora@example.com", "password": PASSWORD, "next": path})
    assert answer["Location"] == path
    assert browser.post(path).status_code == 302


def test_only_the_hash_of_a_link_is_kept(at_alice):
    token = invite(at_alice, "dora@example.com").removeprefix("/invitations/")
    assert token not in str(Invitation.objects.unscoped("a test").values().get())
    assert token not in at_alice.get("members").content.decode()


def test_there_is_an_end_to_what_is_open(at_alice, monkeypatch):
    monkeypatch.setattr(invitations, "MOST_OPEN", 2)
    for name in ("a", "b"):
        invite(at_alice, f"{name}@example.com")
    page = at_alice.post("members", {"email": "c@example.com", "role": "member"})
    assert problem_beside(page, "email") == "2 invitations are open already: withdraw some first."
    invite(at_alice, "a@example.com")  # instead of the one before
    invitations.invitation_list(organisation=at_alice.organisation).update(expires_at=SYSTEM_CLOCK.now())
    invite(at_alice, "c@example.com")


@pytest.mark.parametrize("who", ["at_bob", "at_viewer"])
def test_only_owners_see_and_withdraw_invitations(request, at_alice, who):
    invite(at_alice, "dora@example.com")
    visitor = request.getfixturevalue(who)
    assert "dora@example.com" not in text_of(visitor.get("members"))
    assert visitor.post(f"invitations/{only(at_alice).id}/withdraw").status_code == 403


@pytest.mark.parametrize("token", ["x", "\u00e9", "a" * 1000])
def test_what_is_no_link_is_not_there(db, token):
    assert Client().get(f"/invitations/{token}").status_code == 404


def test_two_who_use_a_link_at_once_are_one(at_alice, at_charlie, monkeypatch):
    """The second one waits for the lock, and finds the invitation used."""
    path = invite(at_alice, "charlie@example.com")
    token = path.removeprefix("/invitations/")
    find, met = invitations.invitation_find, []

    def found(**asked):
        invitation = find(**asked)
        if not met:
            met.append(True)
            invitations.invitation_use(token=token)
        return invitation

    monkeypatch.setattr(invitations, "invitation_find", found)
    with pytest.raises(invitations.NotFound):
        invitations.invitation_use(token=token)


def test_an_inactive_account_does_not_join(at_alice, charlie):
    path = invite(at_alice, "charlie@example.com")
    visitor = visit(charlie)
    User.objects.filter(pk=charlie.user.pk).update(is_active=False)
    visitor.client.post(path, {"password": PASSWORD})
    assert role_of("charlie@example.com", at_alice.organisation) is None


def test_an_invitation_of_somebody_whose_account_is_closed_opens_nothing(at_alice, at_bob, at_charlie):
    bob = Membership.objects.filter(organisation=at_alice.organisation, user=at_bob.user)
    bob.update(role=Role.OWNER)
    path = invite(at_bob, "charlie@example.com", "owner")
    User.objects.filter(pk=at_bob.user.pk).update(is_active=False)
    assert at_charlie.client.post(path).status_code == 404
    assert role_of("charlie@example.com", at_alice.organisation) is None


def test_an_invitation_that_was_asked_for_while_its_owner_was_still_one_opens_nothing_after(at_alice, at_bob):
    """The page looks at the role before the lock is had: in between, another owner may have taken it."""
    bob = Membership.objects.get(organisation=at_alice.organisation, user=at_bob.user)
    at_alice.post(f"members/{bob.id}/role", {"role": "owner"})
    at_alice.post(f"members/{bob.id}/role", {"role": "viewer"})
    asked = {"inviter": at_bob.user, "email": "bobs-friend@example.com", "role": Role.OWNER}
    _, token = invitations.invitation_create(organisation=at_alice.organisation, **asked)
    assert Client().get(f"/invitations/{token}").status_code == 404


def test_an_owner_elsewhere_is_no_owner_here(at_alice, at_bob, at_charlie):
    _, token = invitations.invitation_create(
        organisation=at_alice.organisation, inviter=at_charlie.user, email="dora@example.com", role=Role.OWNER
    )
    assert Client().get(f"/invitations/{token}").status_code == 404


# --- where joining leads ----------------------------------------------------------------------------------------------------

OWN_ROLES = ({"topics": "look"}, {"instances": "look"}, {"billing": "look"}, {"audit": "look"}, {"members": "look"})


def came_to(path, user=None):
    """The page at the end of the way: of somebody who has an account, or of a new person."""
    browser = Client()
    if user is not None:
        browser.force_login(user)
    page = browser.post(path, {} if user else {"name": "Dora", "password": PASSWORD}, follow=True)
    assert "You are a member of alice's now." in text_of(page)
    return page


@pytest.mark.parametrize("has_account", [True, False])
@pytest.mark.parametrize("role", Role.values)
def test_whoever_joins_comes_to_a_page_that_is_open_to_them(at_alice, alice, charlie, role, has_account):
    user = charlie.user if has_account else None
    page = came_to(invite(at_alice, user.email if user else "dora@example.com", role), user)
    assert page.status_code == 200, page.redirect_chain
    first = "bills" if role == Role.BILLING else "instances"
    assert page.redirect_chain[-1][0] == at_alice.address(first)
    assert not AuditEntry.objects.for_organisation(alice.organisation).filter(action="access.denied").exists()


@pytest.mark.parametrize("scopes", OWN_ROLES, ids=lambda scopes: next(iter(scopes)))
def test_so_does_whoever_joins_with_a_role_of_the_organisations_own(at_alice, alice, charlie, scopes):
    role = alice.api.post("/api/v1/roles", {"name": "Night watch", "scopes": scopes}).json()["id"]
    page = came_to(invite(at_alice, "charlie@example.com", role), charlie.user)
    assert page.status_code == 200, page.redirect_chain
    assert page.redirect_chain[-1][0].startswith(f"/{at_alice.organisation.id}/")
    assert not AuditEntry.objects.for_organisation(alice.organisation).filter(action="access.denied").exists()


def test_where_single_sign_on_is_required_they_come_to_the_page_on_which_they_connect(at_alice, charlie):
    path = invite(at_alice, "charlie@example.com")
    row = provider_row(at_alice.organisation)
    row.is_on = row.is_required = True
    row.save()
    page = came_to(path, charlie.user)
    assert (page.status_code, page.redirect_chain[-1][0]) == (200, f"/{at_alice.organisation.id}/sso")
    assert 'name="do" value="connect"' in page.content.decode()


def test_where_a_second_factor_is_required_they_come_to_the_page_on_which_they_set_one_up(at_alice, charlie):
    path = invite(at_alice, "charlie@example.com")
    Organisation.objects.update(second_factor_demanded=True)
    page = came_to(path, charlie.user)
    assert (page.status_code, page.redirect_chain[-1][0]) == (200, "/account/second-factor")
    assert "requires its members to have a second factor" in text_of(page)


def test_why_a_link_is_refused_is_said(at_alice, at_charlie):
    """Between the look at the invitation and its use, the organisation was marked for deletion."""
    path = invite(at_alice, "charlie@example.com")
    in_time = SYSTEM_CLOCK.now()
    Organisation.objects.update(deletion_asked_at=in_time, deletes_at=in_time + timedelta(days=7))
    page = at_charlie.client.post(path)
    assert page.status_code == 409
    assert "until when an owner can take that back" in text_of(page)
    assert role_of("charlie@example.com", at_alice.organisation) is None
