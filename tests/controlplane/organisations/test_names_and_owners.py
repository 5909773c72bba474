"""What an organisation is called and who owns it: owners decide, one act at a time, and it is never without one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.accounts import services as accounts
from controlplane.accounts.models import ApiKey, User
from controlplane.accounts.selectors import caller_of_key
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict, Forbidden, NotFound, Unauthenticated
from controlplane.core.models import AuditEntry
from controlplane.mail.outbox import send_due
from controlplane.organisations import ownership
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.tenants import invitations
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Invitation, Membership, Organisation, Role
from tests.controlplane.conftest import client_of
from tests.controlplane.rows import custom_role_row, service_account_row
from tests.controlplane.sso.rows import provider_row
from tests.controlplane.test_instances_api import problem
from tests.controlplane.test_limited_keys import made


def at(person, rest=""):
    return f"/api/v1/organisations/{person.organisation.id}{rest}"


def membership(person):
    return Membership.objects.get(organisation=person.organisation, user=person.user)


def owners(organisation):
    rows = Membership.objects.filter(organisation=organisation, role=Role.OWNER)
    return sorted(rows.values_list("user__email", flat=True))


def handed_over(person, to, **other):
    return person.api.post(at(person, "/transfer"), {"member_id": membership(to).pk, **other})


def audited(organisation, action):
    return list(AuditEntry.objects.for_organisation(organisation).filter(action=action).order_by("pk"))


# --- the name --------------------------------------------------------------------------------------------------------------


def test_every_member_sees_it_and_a_stranger_does_not(alice, bob, viewer, charlie):
    for person in (alice, bob, viewer):
        shown = person.api.get(at(alice)).json()
        assert (shown["name"], shown["state"], shown["deletes_at"]) == ("alice's", "active", None)
    missing = problem(charlie.api.get("/api/v1/organisations/org-000000000000"), 404, "not_found")
    foreign = problem(charlie.api.get(at(alice)), 404, "not_found")
    assert foreign["detail"].replace(alice.organisation.id, "org-000000000000") == missing["detail"]


def test_an_owner_renames_it_and_nobody_else(alice, bob, viewer, charlie):
    for person in (bob, viewer):
        problem(person.api.patch(at(alice), {"name": "mine"}), 403, "forbidden")
    problem(charlie.api.patch(at(alice), {"name": "mine"}), 404, "not_found")
    assert alice.api.patch(at(alice), {"name": " Harbour "}).json()["name"] == "Harbour"
    assert alice.api.get("/api/v1/me").json()["organisation"]["name"] == "Harbour"
    (entry,) = audited(alice.organisation, "organisation.rename")
    assert (entry.actor, entry.detail) == ("alice@example.com", {"name": {"from": "alice's", "to": "Harbour"}})
    assert alice.api.patch(at(alice), {"name": "Harbour"}).status_code == 200
    assert len(audited(alice.organisation, "organisation.rename")) == 1, (
        "of nothing that is different nothing is written"
    )


def test_a_name_that_another_organisation_has_is_taken(alice, charlie):
    problem(alice.api.patch(at(alice), {"name": "charlie's"}), 409, "already_exists")
    Organisation.objects.filter(pk=charlie.organisation.pk).update(
        deletion_asked_at=SYSTEM_CLOCK.now(), deletes_at=SYSTEM_CLOCK.now()
    )
    problem(alice.api.patch(at(alice), {"name": "charlie's"}), 409, "already_exists")
    Organisation.objects.filter(pk=charlie.organisation.pk).update(deleted_at=SYSTEM_CLOCK.now())
    assert alice.api.patch(at(alice), {"name": "charlie's"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "name"), ({"name": " "}, "name"), ({"name": "a\u202eb"}, "name"), ({"name": "x", "id": 1}, "id")],
)
def test_what_is_wrong_with_a_name_is_said(alice, body, field):
    assert problem(alice.api.patch(at(alice), body), 400, "invalid")["errors"][0]["field"] == field


def test_an_operator_sees_any_and_changes_none(alice, charlie):
    charlie.user.is_staff = True
    charlie.user.save()
    assert charlie.api.get(at(alice)).json()["name"] == "alice's"
    problem(charlie.api.patch(at(alice), {"name": "x"}), 404, "not_found")
    problem(charlie.api.post(at(alice, "/transfer"), {"member_id": membership(alice).pk}), 404, "not_found")
    problem(charlie.api.get(at(alice, "/deletion")), 404, "not_found")
    problem(charlie.api.post(at(alice, "/deletion"), {"name": "alice's"}), 404, "not_found")


# --- handing over ----------------------------------------------------------------------------------------------------------


def test_an_owner_makes_another_member_owner_and_stays_one(alice, bob):
    answer = handed_over(alice, bob)
    assert (answer.status_code, answer.json()["email"], answer.json()["role"]) == (200, "bob@example.com", "owner")
    assert owners(alice.organisation) == ["alice@example.com", "bob@example.com"]
    (entry,) = audited(alice.organisation, "organisation.transfer")
    assert (entry.actor, entry.target) == ("alice@example.com", "bob@example.com")
    assert entry.detail == {"by": "alice@example.com", "steps_down_to": None}


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_they_step_down_in_the_same_act(alice, bob, role):
    assert handed_over(alice, bob, step_down_to=role).status_code == 200
    assert owners(alice.organisation) == ["bob@example.com"]
    assert membership(alice).role == role
    problem(alice.api.patch(at(alice), {"name": "x"}), 403, "forbidden")
    problem(handed_over(alice, bob), 403, "forbidden")


def test_they_step_down_to_a_role_of_the_organisations_own(alice, bob):
    role = custom_role_row(alice.organisation)
    assert handed_over(alice, bob, custom_role=role.id).status_code == 200
    assert membership(alice).custom_role_id == role.id
    assert owners(alice.organisation) == ["bob@example.com"]
    problem(alice.api.get(at(alice)), 403, "not_in_role")


def test_what_cannot_be_done_leaves_everything_as_it_was(alice, bob, charlie):
    foreign = custom_role_row(charlie.organisation)
    for body, status, code in (
        ({"step_down_to": "owner"}, 400, "invalid"),
        ({"step_down_to": "member", "custom_role": foreign.id}, 400, "invalid"),
        ({"custom_role": foreign.id}, 404, "not_found"),
    ):
        problem(handed_over(alice, bob, **body), status, code)
    problem(alice.api.post(at(alice, "/transfer"), {"member_id": membership(charlie).pk}), 404, "not_found")
    answer = problem(handed_over(alice, alice, step_down_to="member"), 400, "invalid")
    assert answer["errors"][0]["field"] == "member_id"
    assert owners(alice.organisation) == ["alice@example.com"]
    assert membership(bob).role == Role.MEMBER
    assert audited(alice.organisation, "organisation.transfer") == []


def test_beside_an_owner_they_can_step_down_and_nothing_else_is_left_to_do(alice, bob):
    handed_over(alice, bob)
    problem(handed_over(alice, bob), 409, "already_owner")
    assert handed_over(alice, bob, step_down_to="viewer").status_code == 200
    assert owners(alice.organisation) == ["bob@example.com"]


def test_to_whom_it_is_handed_over_can_act(alice, bob, mails):
    User.objects.filter(pk=bob.user.pk).update(is_active=False)
    problem(handed_over(alice, bob, step_down_to="member"), 409, "member_cannot_act")
    User.objects.filter(pk=bob.user.pk).update(is_active=True, must_confirm_email=True)
    problem(handed_over(alice, bob, step_down_to="member"), 409, "member_cannot_act")
    User.objects.filter(pk=bob.user.pk).update(must_confirm_email=False)
    now = SYSTEM_CLOCK.now()
    User.objects.filter(pk=alice.user.pk).update(second_factor_at=now)
    Organisation.objects.filter(pk=alice.organisation.pk).update(second_factor_demanded=True)
    problem(handed_over(alice, bob, step_down_to="member"), 409, "member_cannot_act")
    assert owners(alice.organisation) == ["alice@example.com"]
    User.objects.filter(pk=bob.user.pk).update(second_factor_at=now)
    assert handed_over(alice, bob, step_down_to="member").status_code == 200


# --- handing over where single sign-on is required ------------------------------------------------------------------------------


@pytest.fixture
def required(alice):
    """Since this moment; alice had a second factor a day before."""
    now = SYSTEM_CLOCK.now()
    provider = provider_row(alice.organisation)
    provider.is_on = provider.is_required = True
    provider.required_at = now
    provider.save()
    User.objects.filter(pk=alice.user.pk).update(second_factor_at=now - timedelta(days=1))
    return provider


def connected(person, provider, **other):
    row = {"organisation": person.organisation, "issuer": provider.issuer, "subject": person.user.email}
    SsoLink(**(row | other), membership=membership(person), created_at=SYSTEM_CLOCK.now()).save(force_insert=True)


@pytest.mark.parametrize("is_dry", [False, True])
def test_an_organisation_is_not_left_to_whom_its_single_sign_on_keeps_out(alice, bob, required, is_dry):
    to = at(alice, "/transfer") + ("?dry_run=true" if is_dry else "")
    for role in ("member", "viewer"):
        answer = alice.api.post(to, {"member_id": membership(bob).pk, "step_down_to": role})
        assert "single sign-on" in problem(answer, 409, "member_cannot_act")["detail"]
    assert owners(alice.organisation) == ["alice@example.com"]
    assert audited(alice.organisation, "organisation.transfer") == []
    assert handed_over(alice, bob).status_code == 200, "alice goes on, and gets in"
    problem(handed_over(alice, bob, step_down_to="viewer"), 409, "member_cannot_act")
    assert owners(alice.organisation) == ["alice@example.com", "bob@example.com"]


def test_a_connection_to_the_provider_of_before_or_of_an_operator_is_none(alice, bob, required):
    connected(bob, required, issuer="https://before.example.com")
    problem(handed_over(alice, bob, step_down_to="member"), 409, "member_cannot_act")
    SsoLink.objects.for_organisation(alice.organisation).update(issuer=required.issuer)
    User.objects.filter(pk=bob.user.pk).update(is_staff=True)
    problem(handed_over(alice, bob, step_down_to="member"), 409, "member_cannot_act")


def test_it_is_left_to_who_is_connected_or_gets_in_without_or_beside_an_owner_who_does(
    alice, bob, viewer, required, mails
):
    connected(bob, required)
    assert handed_over(alice, bob, step_down_to="member").status_code == 200
    assert owners(alice.organisation) == ["bob@example.com"]
    assert handed_over(bob, viewer).status_code == 200
    assert handed_over(bob, viewer, step_down_to="member").status_code == 409, (
        "vera does not get in, and bob is the last"
    )
    User.objects.filter(pk=viewer.user.pk).update(second_factor_at=required.required_at)
    assert handed_over(bob, viewer, step_down_to="member").status_code == 200


def test_a_second_factor_that_is_younger_than_the_rule_is_no_way_in_here_either(alice, bob, required):
    User.objects.filter(pk=bob.user.pk).update(second_factor_at=required.required_at + timedelta(seconds=1))
    problem(handed_over(alice, bob, step_down_to="member"), 409, "member_cannot_act")
    User.objects.filter(pk=bob.user.pk).update(second_factor_at=required.required_at)
    assert handed_over(alice, bob, step_down_to="member").status_code == 200


@pytest.mark.parametrize("state", [{"is_on": False, "is_required": False, "required_at": None}, {"is_required": False}])
def test_where_it_is_not_required_nobody_is_asked_for_a_connection(alice, bob, required, state):
    SsoProvider.objects.for_organisation(alice.organisation).update(**state)
    assert handed_over(alice, bob, step_down_to="member").status_code == 200


@pytest.mark.parametrize("has_way", [False, True])
def test_both_are_told_where_no_owner_gets_in_without_the_provider_then(alice, bob, required, mails, has_way):
    connected(bob, required)
    if has_way:
        User.objects.filter(pk=bob.user.pk).update(second_factor_at=required.required_at)
    assert handed_over(alice, bob, step_down_to="member").status_code == 200
    send_due()
    told = {mail["To"]: " ".join(mail.get_content().split()) for mail in mails.mails}
    for address in ("alice@example.com", "bob@example.com"):
        assert ("no owner gets in without the provider" in told[address]) == (not has_way)


def test_both_are_told_and_the_name_stands_only_where_the_address_is_known(alice, bob, mails):
    User.objects.filter(pk=bob.user.pk).update(email_verified_at=SYSTEM_CLOCK.now())
    handed_over(alice, bob, step_down_to="member")
    send_due()
    told = {mail["To"]: f"{mail['Subject']}\n{mail.get_content()}" for mail in mails.mails}
    assert set(told) == {"alice@example.com", "bob@example.com"}
    assert "alice's" in told["bob@example.com"]
    assert "alice's" not in told["alice@example.com"]
    assert "You are no owner any more." in told["alice@example.com"]
    assert alice.organisation.id in told["alice@example.com"]


def test_invitations_of_who_steps_down_end(alice, bob):
    invitations.invitation_create(
        organisation=alice.organisation, inviter=alice.user, email="dora@example.com", role=Role.OWNER
    )
    handed_over(alice, bob, step_down_to="member")
    (row,) = Invitation.objects.for_organisation(alice.organisation)
    assert row.withdrawn_at is not None


# --- somebody tries -----------------------------------------------------------------------------------------------------------


def test_who_is_no_owner_any_more_hands_over_nothing_though_the_request_was_let_in(alice, bob, viewer):
    """The page was opened, and the key looked at, before the role was taken."""
    caller = caller_of_key(alice.key)
    handed_over(alice, bob, step_down_to="member")
    with pytest.raises(Forbidden):
        ownership.ownership_transfer(
            organisation=caller.organisation, by=caller.person, membership_id=membership(viewer).pk, with_key=caller.key
        )
    with pytest.raises(Forbidden):
        ownership.organisation_rename(organisation=caller.organisation, by=caller.person, name="mine")
    assert owners(alice.organisation) == ["bob@example.com"]


def test_a_key_that_was_revoked_meanwhile_decides_nothing(alice, bob):
    caller = caller_of_key(alice.key)
    accounts.api_key_revoke(organisation=alice.organisation, actor="a", key_id=caller.key.pk)
    with pytest.raises(Unauthenticated):
        ownership.ownership_transfer(
            organisation=caller.organisation, by=caller.person, membership_id=membership(bob).pk, with_key=caller.key
        )


def test_of_two_owners_who_step_down_beside_each_other_one_stays(alice, bob, viewer):
    """Both pages were open while both were owners: whoever comes second is none any more."""
    handed_over(alice, bob)
    second = caller_of_key(bob.key)
    assert handed_over(alice, bob, step_down_to="member").status_code == 200
    with pytest.raises(Conflict) as refused:
        tenants.member_role_set(
            organisation=alice.organisation, actor="a", membership_id=membership(bob).pk, role=Role.MEMBER
        )
    assert refused.value.code == "last_owner"
    assert handed_over(bob, alice, step_down_to="member").status_code == 200
    with pytest.raises(Forbidden):
        ownership.ownership_transfer(
            organisation=second.organisation,
            by=second.person,
            membership_id=membership(viewer).pk,
            step_down_to="member",
        )
    assert owners(alice.organisation) == ["alice@example.com"]


def test_an_owner_whose_account_is_closed_is_nobody_to_leave_it_to(alice, bob):
    handed_over(alice, bob)
    User.objects.filter(pk=bob.user.pk).update(is_active=False)
    problem(alice.api.delete(f"/api/v1/members/{membership(alice).pk}"), 409, "last_owner")
    problem(alice.api.patch(f"/api/v1/members/{membership(alice).pk}", {"role": "member"}), 409, "last_owner")
    assert alice.api.delete(f"/api/v1/members/{membership(bob).pk}").status_code == 204


def test_names_of_others_are_not_found_out_by_a_dry_run(alice, charlie):
    """One that is taken and one that is free are answered alike, but for the name."""
    answers = []
    for name in ("charlie's", "nobody's1"):
        answer = alice.api.patch(f"{at(alice)}?dry_run=true", {"name": name})
        assert answer.status_code == 200
        answers.append(answer.content.decode().replace(name, "NAME"))
    assert answers[0] == answers[1]


def test_who_was_an_owner_already_is_told_that_another_one_has_stepped_down(alice, bob, viewer, mails):
    """And nothing of who else is one."""
    handed_over(alice, bob)
    Membership.objects.filter(pk=membership(viewer).pk).update(role=Role.OWNER)
    handed_over(alice, bob, step_down_to="member")
    send_due()
    (told,) = [mail for mail in mails.mails if mail["To"] == "bob@example.com" and "no owner" in mail["Subject"]]
    assert "You are an owner still, as before." in " ".join(told.get_content().split())


def test_whoever_was_taken_out_meanwhile_is_no_owner(alice, bob):
    pk = membership(bob).pk
    tenants.member_remove(organisation=alice.organisation, actor="a", membership_id=pk)
    with pytest.raises(NotFound):
        ownership.ownership_transfer(organisation=alice.organisation, by=alice.user, membership_id=pk)


def test_keys_that_may_do_less_and_service_accounts_decide_nothing_of_it(alice, bob):
    for limits, code in (
        ({"scopes": ["members", "billing", "read"]}, "whole_key_needed"),
        ({"addresses": ["127.0.0.0/8"]}, "whole_key_needed"),
    ):
        _, api = made(alice, **limits)
        problem(api.patch(at(alice), {"name": "x"}), 403, code)
        problem(api.post(at(alice, "/transfer"), {"member_id": membership(bob).pk}), 403, code)
        problem(api.post(at(alice, "/deletion"), {"name": "alice's"}), 403, code)
    _, api = made(alice, addresses=["127.0.0.0/8"])
    assert api.get(at(alice)).status_code == 200
    account = service_account_row(alice.organisation)
    _, text = accounts.api_key_save(
        whose={"organisation": alice.organisation, "service_account": account},
        actor="a",
        name="deploy",
        limits=dict.fromkeys(("scopes", "instances", "addresses", "expires_at")),
        now=SYSTEM_CLOCK.now(),
    )
    for rest, body in (("", {"name": "x"}), ("/transfer", {"member_id": 1}), ("/deletion", {"name": "alice's"})):
        call = client_of(text).patch if not rest else client_of(text).post
        problem(call(at(alice, rest), body), 403, "person_needed")
    assert ApiKey.objects.for_organisation(alice.organisation).filter(revoked_at=None).count() > 0


def test_operators_go_on_with_caps_by_a_key_that_is_bound_to_addresses(alice, charlie):
    """What is closed to such keys is the organisation itself, not what operators decide about it."""
    charlie.user.is_staff = True
    charlie.user.save()
    _, api = made(charlie, addresses=["127.0.0.0/8"])
    assert api.patch(at(alice, "/caps"), {"instances": 40, "reason": "more"}).status_code == 200
