"""REST of members and invitations: the same rules as the console's pages, by role and by what a key may do."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from controlplane.accounts import joining
from controlplane.accounts import services as accounts
from controlplane.accounts.models import User
from controlplane.accounts.scopes import SCOPES
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Forbidden, Unauthenticated
from controlplane.core.models import AuditEntry
from controlplane.mail.outbox import send_due
from controlplane.tenants import invitations
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Invitation, Membership, Role

from .conftest import CONSOLE_URL
from .test_instances_api import problem
from .test_limited_keys import made

MEMBERS, INVITATIONS = "/api/v1/members", "/api/v1/invitations"
DORA = {"email": "dora@example.com", "role": "member"}


def membership(person):
    return Membership.objects.get(organisation=person.organisation, user=person.user)


def at(person):
    return f"{MEMBERS}/{membership(person).pk}"


def invited(person, **other):
    answer = person.api.post(INVITATIONS, {**DORA, **other})
    assert answer.status_code == 201, answer.content
    return answer.json()


def audited(person, action):
    rows = AuditEntry.objects.for_organisation(person.organisation).filter(action=action).order_by("pk")
    return [(row.actor, row.target) for row in rows]


# --- members --------------------------------------------------------------------------------------------------------------


def test_every_member_sees_who_belongs_to_it_and_owners_who_has_a_second_factor(alice, bob, viewer, charlie):
    User.objects.filter(pk=bob.user.pk).update(name="Bob", second_factor_at=SYSTEM_CLOCK.now())
    items = alice.api.get(MEMBERS).json()["items"]
    assert [(each["email"], each["name"], each["role"], each["second_factor"]) for each in items] == [
        ("alice@example.com", "", "owner", False),
        ("bob@example.com", "Bob", "member", True),
        ("vera@example.com", "", "viewer", False),
    ]
    for person in (bob, viewer):
        shown = person.api.get(MEMBERS).json()["items"]
        assert shown == [{**each, "second_factor": None} for each in items]
    assert [each["email"] for each in charlie.api.get(MEMBERS).json()["items"]] == ["charlie@example.com"]


def test_they_come_page_by_page(alice, bob, viewer):
    seen, cursor = [], None
    while True:
        page = alice.api.get(MEMBERS, {"limit": 1, **({"cursor": cursor} if cursor else {})}).json()
        seen += [each["email"] for each in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == ["alice@example.com", "bob@example.com", "vera@example.com"]
    assert problem(alice.api.get(MEMBERS, {"cursor": "WzFd"}), 400, "invalid")["errors"][0]["field"] == "cursor"


def test_an_owner_gives_another_role(alice, bob):
    answer = alice.api.patch(at(bob), {"role": "viewer"})
    assert answer.status_code == 200
    assert (answer.json()["email"], answer.json()["role"]) == ("bob@example.com", "viewer")
    assert membership(bob).role == Role.VIEWER
    assert audited(alice, "member.role") == [("alice@example.com", "bob@example.com")]
    problem(bob.api.post("/api/v1/api-keys", {"name": "x"}), 403, "forbidden")


def test_an_owner_takes_a_member_out_and_their_keys_end(alice, bob):
    assert alice.api.delete(at(bob)).status_code == 204
    problem(bob.api.get("/api/v1/me"), 401, "unauthenticated")
    assert audited(alice, "member.remove") == [("alice@example.com", "bob@example.com")]
    assert len(audited(alice, "api_key.revoke")) == 1
    problem(alice.api.delete(f"{MEMBERS}/999999"), 404, "not_found")


def test_the_last_owner_stays_one(alice, bob):
    for answer in (alice.api.patch(at(alice), {"role": "member"}), alice.api.delete(at(alice))):
        problem(answer, 409, "last_owner")
    alice.api.patch(at(bob), {"role": "owner"})
    assert alice.api.delete(at(alice)).status_code == 204
    assert membership(bob).role == Role.OWNER


def test_of_two_owners_who_take_each_other_out_at_once_one_stays(alice, bob, monkeypatch):
    """Both may, when they are asked; the lock on the organisation lets one change happen after the other.

    Whoever comes second is no owner any more.
    """
    alice.api.patch(at(bob), {"role": "owner"})
    remove, met = joining.member_remove, []

    def meanwhile(**asked):
        if not met:
            met.append(True)
            remove(organisation=alice.organisation, by=bob.user, membership_id=membership(alice).pk)
        return remove(**asked)

    monkeypatch.setattr(joining, "member_remove", meanwhile)
    problem(alice.api.delete(at(bob)), 403, "forbidden")
    assert membership(bob).role == Role.OWNER


# --- meanwhile ----------------------------------------------------------------------------------------------------------------


def demoted(alice, bob):
    """She was an owner when the request was let in; he has taken the role from her since."""
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    tenants.membership_set(organisation=alice.organisation, user=alice.user, role=Role.MEMBER)


def test_who_owned_when_the_request_began_takes_nobody_out(alice, bob):
    demoted(alice, bob)
    with pytest.raises(Forbidden):
        joining.member_remove(organisation=alice.organisation, by=alice.user, membership_id=membership(bob).pk)
    assert membership(bob).role == Role.OWNER
    assert bob.api.get("/api/v1/me").status_code == 200


def test_who_owned_when_the_request_began_withdraws_no_invitation(alice, bob):
    demoted(alice, bob)
    by_bob = invited(bob)["id"]
    with pytest.raises(Forbidden):
        joining.invitation_withdraw(organisation=alice.organisation, by=alice.user, invitation_id=by_bob)
    assert Invitation.objects.for_organisation(alice.organisation).get(pk=by_bob).withdrawn_at is None


@pytest.mark.parametrize("does", ["member_remove", "invitation_withdraw"])
def test_a_key_that_was_revoked_meanwhile_takes_out_nobody_and_nothing(alice, bob, does):
    asked = (
        {"membership_id": membership(bob).pk} if does == "member_remove" else {"invitation_id": invited(alice)["id"]}
    )
    key, _ = accounts.api_key_create(organisation=alice.organisation, user=alice.user, name="gone")
    accounts.api_key_revoke(organisation=alice.organisation, actor="a", key_id=key.pk)
    with pytest.raises(Unauthenticated):
        getattr(joining, does)(organisation=alice.organisation, by=alice.user, with_key=key, **asked)
    assert Membership.objects.filter(organisation=alice.organisation, user=bob.user).exists()
    assert not audited(alice, "invitation.withdraw")


def test_an_owner_who_is_none_any_more_leaves_no_invitation_open(alice, bob):
    alice.api.patch(at(bob), {"role": "owner"})
    by_bob = invited(bob)["id"]
    by_alice = invited(alice, email="eve@example.com")["id"]
    alice.api.patch(at(bob), {"role": "member"})
    assert [each["id"] for each in alice.api.get(INVITATIONS).json()["items"]] == [by_alice]
    assert audited(alice, "invitation.withdraw") == [("alice@example.com", "dora@example.com")]
    assert Invitation.objects.for_organisation(alice.organisation).get(pk=by_bob).withdrawn_at is not None


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "role"), ({"role": "king"}, "role"), ({"role": None}, "role"), ({"role": "member", "x": 1}, "x")],
)
def test_what_is_wrong_with_a_role_is_named(alice, bob, body, field):
    assert problem(alice.api.patch(at(bob), body), 400, "invalid")["errors"][0]["field"] == field
    assert membership(bob).role == Role.MEMBER


@pytest.mark.parametrize("number", ["0", str(2**63), "9" * 40])
def test_what_is_no_member_is_not_found(alice, number):
    problem(alice.api.patch(f"{MEMBERS}/{number}", {"role": "viewer"}), 404, "not_found")
    problem(alice.api.delete(f"{MEMBERS}/{number}"), 404, "not_found")


def test_a_member_of_another_organisation_is_not_found_and_stays(alice, charlie):
    problem(alice.api.patch(at(charlie), {"role": "viewer"}), 404, "not_found")
    problem(alice.api.delete(at(charlie)), 404, "not_found")
    assert membership(charlie).role == Role.OWNER


# --- invitations ----------------------------------------------------------------------------------------------------------


def test_where_no_mail_is_sent_the_link_is_in_the_answer_this_once(alice):
    answer = alice.api.post(INVITATIONS, {"email": " Dora@Example.com ", "role": "viewer"})
    found = answer.json()
    assert answer["Cache-Control"] == "no-store"
    assert (found["email"], found["role"], found["invited_by"], found["is_mailed"]) == (
        "dora@example.com", "viewer", "alice@example.com", False,
    )  # fmt: skip
    path = re.fullmatch(r"http://testserver(/invitations/[\w-]{43})", found["link"])[1]
    assert "link" not in alice.api.get(INVITATIONS).json()["items"][0]
    page = Client().post(path, {"name": "Dora", "password": "water over the wheel"})
    assert page.status_code == 302
    assert [each["role"] for each in alice.api.get(MEMBERS).json()["items"]] == ["owner", "viewer"]
    assert alice.api.get(INVITATIONS).json()["items"] == []


def test_where_mail_is_sent_the_link_goes_to_the_address_and_to_nobody_else(alice, mails):
    answer = alice.api.post(INVITATIONS, DORA)
    assert (answer.json()["link"], answer.json()["is_mailed"]) == (None, True)
    assert "/invitations/" not in answer.content.decode()
    send_due()
    (mail,) = mails.mails
    assert mail["To"] == "dora@example.com"
    assert f"{CONSOLE_URL}/invitations/" in mail.get_content()


def test_it_is_not_said_who_has_an_account(alice, charlie, mails):
    told = []
    for email in ("charlie@example.com", "charles@example.com"):
        found = invited(alice, email=email)
        told.append(
            {name: value for name, value in found.items() if name not in ("id", "created_at", "expires_at", "email")}
        )
    assert told[0] == told[1]


def test_they_are_withdrawn_and_twice_is_once(alice):
    invitation = invited(alice)
    path = f"{INVITATIONS}/{invitation['id']}"
    assert [alice.api.delete(path).status_code for _ in range(2)] == [204, 204]
    assert audited(alice, "invitation.withdraw") == [("alice@example.com", "dora@example.com")]
    assert Client().get(invitation["link"].removeprefix("http://testserver")).status_code == 404
    problem(alice.api.delete(f"{INVITATIONS}/join-000000000000"), 404, "not_found")


def test_what_was_accepted_is_not_withdrawn(alice, charlie):
    invitation = invited(alice, email="charlie@example.com")
    joining.invitation_accept(token=invitation["link"].rpartition("/")[2], user=charlie.user)
    problem(alice.api.delete(f"{INVITATIONS}/{invitation['id']}"), 409, "accepted")
    assert alice.api.get(INVITATIONS).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"email": "dora"}, "email"), ({"email": ""}, "email"), ({"email": 5}, "email"), ({"email": None}, "email"),
        ({"email": '"Pay\\ at\\ evil.example"@example.com'}, "email"), ({"email": f"{'a' * 250}@example.com"}, "email"),
        ({"email": "alice@example.com"}, "email"), ({"role": "king"}, "role"), ({"role": ""}, "role"), ({"x": 1}, "x"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_invitation_is_named(alice, body, field):
    assert problem(alice.api.post(INVITATIONS, DORA | body), 400, "invalid")["errors"][0]["field"] == field
    assert not Invitation.objects.for_organisation(alice.organisation).exists()


def test_invitations_have_the_limits_of_the_console(alice, mails, monkeypatch):
    for number in range(20):
        invited(alice, email=f"person{number}@example.com")
    problem(alice.api.post(INVITATIONS, DORA), 409, "too_many_mails")
    monkeypatch.setattr(invitations, "MOST_OPEN", 20)
    monkeypatch.setattr(joining, "MAILED_OF_ORGANISATION", (100, timedelta(hours=1)))
    problem(alice.api.post(INVITATIONS, DORA), 409, "too_many_invitations")


def test_a_link_of_before_is_not_repeated_under_an_idempotency_key(alice):
    """The answer holds a secret, and is not kept."""
    key = {"Idempotency-Key": "k"}
    assert alice.api.post(INVITATIONS, DORA, headers=key).status_code == 201
    again = alice.api.post(INVITATIONS, DORA, headers=key)
    assert "/invitations/" not in again.content.decode()
    assert again.status_code == 409
    assert len(alice.api.get(INVITATIONS).json()["items"]) == 1


# --- who may --------------------------------------------------------------------------------------------------------------

CHANGES = [
    ("patch", lambda alice, bob, invitation: at(bob), {"role": "owner"}),
    ("delete", lambda alice, bob, invitation: at(alice), None),
    ("post", lambda alice, bob, invitation: INVITATIONS, {"email": "friend@example.com", "role": "owner"}),
    ("delete", lambda alice, bob, invitation: f"{INVITATIONS}/{invitation['id']}", None),
]


def state(person):
    return (
        sorted(Membership.objects.filter(organisation=person.organisation).values_list("user__email", "role")),
        sorted(Invitation.objects.for_organisation(person.organisation).values_list("email", "withdrawn_at")),
    )


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
@pytest.mark.parametrize("who", ["bob", "viewer"])
def test_members_and_viewers_change_nothing(request, alice, bob, who, method, path, body):
    invitation = invited(alice)
    person, before = request.getfixturevalue(who), state(alice)
    problem(getattr(person.api, method)(path(alice, bob, invitation), body), 403, "forbidden")
    assert state(alice) == before
    problem(person.api.get(INVITATIONS), 403, "forbidden")


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_key_without_the_administrative_scope_may_not(alice, bob, method, path, body):
    invitation = invited(alice)
    before, address = state(alice), path(alice, bob, invitation)
    for limits, code in (
        ({"scopes": [each for each in SCOPES if each != "members"]}, "scope_needed"),
        ({"instances": ["ins-00000000"]}, "instances_limited"),
        ({"scopes": ["members"], "addresses": ["127.0.0.0/8"]}, "whole_key_needed"),
        ({"expires_at": SYSTEM_CLOCK.now() + timedelta(days=1)}, "whole_key_needed"),
    ):
        _, api = made(alice, **limits)
        problem(getattr(api, method)(address, body), 403, code)
    assert state(alice) == before


def test_reading_is_not_enough_to_see_people(alice):
    _, api = made(alice, scopes=["read"])
    for address in (MEMBERS, INVITATIONS):
        assert problem(api.get(address), 403, "scope_needed")["detail"].endswith("members")
    _, api = made(alice, addresses=["127.0.0.0/8"])
    assert api.get(MEMBERS).status_code == 200


def test_a_key_with_the_scope_does_what_its_owner_may(alice, bob):
    _, api = made(alice, scopes=["members"])
    assert api.patch(at(bob), {"role": "viewer"}).status_code == 200
    made_by_it = api.post(INVITATIONS, DORA).json()
    assert api.delete(f"{INVITATIONS}/{made_by_it['id']}").status_code == 204
    assert api.delete(at(bob)).status_code == 204
    _, api = made(alice, scopes=["members"])
    problem(api.get("/api/v1/instances"), 403, "scope_needed")


def test_a_members_key_with_the_scope_has_no_more_than_the_role(bob, alice):
    _, api = made(bob, scopes=["members"])
    assert api.get(MEMBERS).status_code == 200
    problem(api.post(INVITATIONS, DORA), 403, "forbidden")


def test_who_has_not_confirmed_their_address_invites_nobody(alice, mails):
    User.objects.filter(pk=alice.user.pk).update(must_confirm_email=True)
    problem(alice.api.post(INVITATIONS, DORA), 403, "address_not_confirmed")


def test_a_second_factor_that_is_demanded_is_needed_here_too(alice, bob):
    tenants.Organisation.objects.filter(pk=alice.organisation.pk).update(second_factor_demanded=True)
    problem(bob.api.get(MEMBERS), 403, "second_factor_needed")
