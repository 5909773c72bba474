"""Service accounts: identities of an organisation without a person. Owners make them; their keys outlive whoever made these."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db import IntegrityError, transaction

from controlplane.accounts import joining, key_expiry, selectors, service_accounts
from controlplane.accounts import services as accounts
from controlplane.accounts.models import ApiKey, ServiceAccount, User
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Forbidden, Unauthenticated
from controlplane.core.models import AuditEntry, Operation
from controlplane.mail.models import Mail
from controlplane.mail.outbox import send_due
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Membership, Role

from .conftest import WANTED, client_of
from .fakes import ManualClock
from .rows import service_account_row
from .test_instances_api import problem

ACCOUNTS, KEYS = "/api/v1/service-accounts", "/api/v1/api-keys"


@pytest.fixture
def account(alice):
    """One of alice's organisation."""
    answer = alice.api.post(ACCOUNTS, {"name": "pipeline", "role": "member", "description": "deploys"})
    assert answer.status_code == 201, answer.content
    return answer.json()


def key_of(person, account, **limits):
    """A key of it as REST answers it, and a client that has it."""
    answer = person.api.post(f"{ACCOUNTS}/{account['id']}/keys", {"name": "ci", **limits})
    assert answer.status_code == 201, answer.content
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.json(), client_of(answer.json()["key"])


def audited(organisation, action):
    rows = AuditEntry.objects.for_organisation(organisation).filter(action=action).order_by("pk")
    return [(row.actor, row.target) for row in rows]


def membership(person):
    return Membership.objects.get(organisation=person.organisation, user=person.user)


# --- what it is -----------------------------------------------------------------------------------------------------------


def test_its_key_says_whom_it_speaks_for(alice, account):
    shown, api = key_of(alice, account)
    assert (shown["owner"], shown["service_account"]) == (None, {"id": account["id"], "name": "pipeline"})
    me = api.get("/api/v1/me").json()
    assert (me["email"], me["role"]) == (None, "member")
    assert me["service_account"] == {"id": account["id"], "name": "pipeline"}
    assert alice.api.get("/api/v1/me").json()["service_account"] is None


def test_what_it_does_bears_its_name_and_its_id_also_when_it_is_called_otherwise(alice, account, tree, flow_master):
    shown, api = key_of(alice, account)
    assert api.post("/api/v1/instances", WANTED).status_code == 202
    actor = f"service account pipeline ({account['id']})"
    (entry,) = AuditEntry.objects.for_organisation(alice.organisation).filter(action="instance.create")
    assert (entry.actor, entry.key) == (actor, shown["id"])
    assert Operation.objects.for_organisation(alice.organisation).get().actor == actor
    alice.api.patch(f"{ACCOUNTS}/{account['id']}", {"name": "deployer"})
    assert api.get("/api/v1/me").json()["service_account"]["name"] == "deployer"


def test_the_longest_name_fits_wherever_an_actor_is_written(alice):
    made = alice.api.post(ACCOUNTS, {"name": "n" * 128, "role": "viewer"}).json()
    assert len(ServiceAccount.objects.for_organisation(alice.organisation).get(pk=made["id"]).actor) <= 254


def test_it_is_no_member_no_account_and_has_no_mails(alice, account, mails):
    before = User.objects.count()
    key_of(alice, account)
    assert User.objects.count() == before
    assert [each["email"] for each in alice.api.get("/api/v1/members").json()["items"]] == ["alice@example.com"]
    assert not Mail.objects.exists()


def test_a_viewer_among_them_changes_nothing(alice, account):
    _, api = key_of(alice, account)
    alice.api.patch(f"{ACCOUNTS}/{account['id']}", {"role": "viewer"})
    assert api.get("/api/v1/instances").status_code == 200
    problem(api.post("/api/v1/instances", WANTED), 403, "forbidden")


def test_its_keys_are_limited_as_those_of_people_are(alice, account):
    _, api = key_of(alice, account, scopes=["read"])
    problem(api.post("/api/v1/instances", WANTED), 403, "scope_needed")
    _, elsewhere = key_of(alice, account, addresses=["203.0.113.0/24"])
    problem(elsewhere.get("/api/v1/me"), 403, "address_not_allowed")
    (refused,) = audited(alice.organisation, "api_key.refused")
    assert refused[0] == f"service account pipeline ({account['id']})"
    shown, late = key_of(alice, account, expires_at="2030-01-01T00:00:00Z")
    ApiKey.objects.for_organisation(alice.organisation).filter(pk=shown["id"]).update(expires_at=SYSTEM_CLOCK.now())
    problem(late.get("/api/v1/me"), 401, "api_key_expired")


def test_a_second_factor_is_demanded_of_people_alone(alice, account):
    _, api = key_of(alice, account)
    alice.organisation.second_factor_demanded = True
    alice.organisation.save()
    assert api.get("/api/v1/instances").status_code == 200
    problem(alice.api.get("/api/v1/instances"), 403, "second_factor_needed")


def test_a_repeated_call_is_answered_once_and_each_account_has_its_own_keys_of_calls(
    alice, bob, account, tree, flow_master
):
    other = alice.api.post(ACCOUNTS, {"name": "other", "role": "member"}).json()
    first, second = (key_of(alice, each)[1] for each in (account, other))
    once = {"Idempotency-Key": "once"}
    made = first.post("/api/v1/instances", WANTED, headers=once)
    again = first.post("/api/v1/instances", WANTED, headers=once)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == made.json()
    for somebody in (second, bob.api):
        answer = somebody.post("/api/v1/instances", WANTED | {"name": "x"}, headers=once)
        assert "Idempotency-Replayed" not in answer.headers
        assert answer.json().get("code") != "idempotency_key_reused"


# --- what it never does ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_it_manages_no_keys_no_members_and_no_service_accounts(alice, bob, account, role):
    alice.api.patch(f"{ACCOUNTS}/{account['id']}", {"role": role})
    own, api = key_of(alice, account)
    other = ApiKey.objects.for_organisation(alice.organisation).get(user=bob.user)
    at = f"{ACCOUNTS}/{account['id']}"
    calls = [
        (api.post, KEYS, {"name": "more"}),
        (api.post, f"{KEYS}/{own['id']}/rotate", {"overlap_s": 60}),
        (api.delete, f"{KEYS}/{own['id']}", None),
        (api.delete, f"{KEYS}/{other.pk}", None),
        (api.post, "/api/v1/access-keys", {"name": "more"}),
        (api.post, "/api/v1/invitations", {"email": "eve@example.com", "role": "owner"}),
        (api.patch, f"/api/v1/members/{membership(bob).pk}", {"role": "owner"}),
        (api.delete, f"/api/v1/members/{membership(alice).pk}", None),
        (api.post, ACCOUNTS, {"name": "more", "role": "member"}),
        (api.post, f"{at}/keys", {"name": "more"}),
        (api.patch, at, {"role": "member"}),
        (api.delete, at, None),
    ]
    before = ApiKey.objects.for_organisation(alice.organisation).filter(revoked_at=None).count()
    for call, path, body in calls:
        problem(call(path, body), 403, "person_needed")
    assert ApiKey.objects.for_organisation(alice.organisation).filter(revoked_at=None).count() == before
    assert membership(bob).role == Role.MEMBER


def test_behind_the_permission_services_ask_for_a_person_as_well(alice, account):
    _, api = key_of(alice, account)
    del api
    row = ApiKey.objects.for_organisation(alice.organisation).get(service_account_id=account["id"])
    caller = selectors.Caller(None, alice.organisation, Role.OWNER, key=row, service_account=row.service_account)
    assert not caller.may_manage, "whatever its row says"
    assert not caller.is_operator
    for attribute in ("person", "whose_keys"):
        with pytest.raises(Forbidden):
            getattr(caller, attribute)


def test_it_cannot_be_an_owner_by_rest_or_in_the_database(alice, account):
    problem(alice.api.post(ACCOUNTS, {"name": "boss", "role": "owner"}), 400, "invalid")
    problem(alice.api.patch(f"{ACCOUNTS}/{account['id']}", {"role": "owner"}), 400, "invalid")
    with pytest.raises(IntegrityError), transaction.atomic():
        ServiceAccount.objects.for_organisation(alice.organisation).update(role="owner")


# --- who decides ----------------------------------------------------------------------------------------------------------


def test_members_and_viewers_look_and_change_nothing(alice, bob, viewer, account):
    at = f"{ACCOUNTS}/{account['id']}"
    for person in (bob, viewer):
        assert [each["id"] for each in person.api.get(ACCOUNTS).json()["items"]] == [account["id"]]
        assert person.api.get(f"{at}/keys").status_code == 200
        for call, path, body in (
            (person.api.post, ACCOUNTS, {"name": "x", "role": "viewer"}),
            (person.api.post, f"{at}/keys", {"name": "x"}),
            (person.api.patch, at, {"disabled": True}),
            (person.api.delete, at, None),
        ):
            problem(call(path, body), 403, "forbidden")


def test_a_key_with_limits_of_an_owner_makes_none(alice, account):
    for limits in ({"scopes": ["members"]}, {"expires_at": SYSTEM_CLOCK.now() + timedelta(days=1)}):
        _, text = accounts.api_key_create(organisation=alice.organisation, user=alice.user, name="limited", **limits)
        problem(client_of(text).post(ACCOUNTS, {"name": "x", "role": "member"}), 403, "whole_key_needed")
        problem(client_of(text).post(f"{ACCOUNTS}/{account['id']}/keys", {"name": "x"}), 403, "whole_key_needed")


def test_owners_rotate_and_revoke_its_keys_and_members_do_not(alice, bob, account):
    shown, before = key_of(alice, account)
    at = f"{KEYS}/{shown['id']}"
    problem(bob.api.post(f"{at}/rotate", {"overlap_s": 60}), 403, "forbidden")
    problem(bob.api.delete(at), 403, "forbidden")
    after = client_of(alice.api.post(f"{at}/rotate", {"overlap_s": 0}).json()["key"])
    problem(before.get("/api/v1/me"), 401, "unauthenticated")
    assert after.get("/api/v1/me").status_code == 200
    assert alice.api.delete(at).status_code == 204
    problem(after.get("/api/v1/me"), 401, "unauthenticated")


def test_a_key_that_was_revoked_since_it_was_looked_at_rotates_none(alice, account):
    """Whoever has stolen an owner's key has no secret of a service account left when it is revoked."""
    shown, _ = key_of(alice, account)
    asking, _ = accounts.api_key_create(organisation=alice.organisation, user=alice.user, name="stolen")
    accounts.api_key_revoke(organisation=alice.organisation, actor="alice@example.com", key_id=asking.pk)
    one = {"organisation": alice.organisation, "user": alice.user, "overlap": timedelta(0)}
    own, _ = accounts.api_key_create(organisation=alice.organisation, user=alice.user, name="own")
    for key_id in (shown["id"], own.pk):
        with pytest.raises(Unauthenticated):
            accounts.api_key_rotate(**one, key_id=key_id, by=asking)


def test_an_owner_who_is_none_any_more_when_the_lock_is_had_makes_nothing(alice, bob, account):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    tenants.member_role_set(
        organisation=alice.organisation, actor="bob@example.com", membership_id=membership(alice).pk, role=Role.MEMBER
    )
    asked = {"organisation": alice.organisation, "by": alice.user}
    one = {**asked, "service_account_id": account["id"]}
    for make in (
        partial(service_accounts.service_account_create, **asked, name="x", role="member"),
        partial(service_accounts.service_account_key_create, **one, name="x"),
        partial(service_accounts.service_account_change, **one, disabled=True),
        partial(service_accounts.service_account_delete, **one),
    ):
        with pytest.raises(Forbidden):
            make()


# --- its life -------------------------------------------------------------------------------------------------------------


def test_its_keys_outlive_the_membership_of_whoever_made_them(alice, bob, account):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    _, api = key_of(bob, account)
    joining.member_remove(organisation=alice.organisation, by=alice.user, membership_id=membership(bob).pk)
    accounts.keys_revoke(user=bob.user)
    User.objects.filter(pk=bob.user.pk).update(is_active=False)
    assert api.get("/api/v1/me").status_code == 200
    problem(bob.api.get("/api/v1/me"), 401, "unauthenticated")


def test_disabling_refuses_its_keys_at_once_and_enabling_takes_them_again(alice, account):
    _, api = key_of(alice, account)
    at = f"{ACCOUNTS}/{account['id']}"
    for _ in range(2):  # twice is once
        assert alice.api.patch(at, {"disabled": True}).json()["disabled_at"] is not None
    problem(api.get("/api/v1/me"), 401, "service_account_disabled")
    problem(client_of(f"{api._credentials['HTTP_AUTHORIZATION'][7:]}x").get("/api/v1/me"), 401, "unauthenticated")
    assert alice.api.patch(at, {"disabled": False}).json()["disabled_at"] is None
    assert api.get("/api/v1/me").status_code == 200
    for action in ("service_account.disable", "service_account.enable"):
        assert audited(alice.organisation, action) == [("alice@example.com", account["id"])]


def test_deleting_revokes_its_keys_for_good_and_its_name_may_be_given_again(alice, account):
    shown, api = key_of(alice, account)
    at = f"{ACCOUNTS}/{account['id']}"
    assert alice.api.delete(at).status_code == 204
    problem(api.get("/api/v1/me"), 401, "unauthenticated")
    for answer in (alice.api.get(at), alice.api.delete(at), alice.api.patch(at, {"disabled": False})):
        problem(answer, 404, "not_found")
    problem(alice.api.post(f"{at}/keys", {"name": "x"}), 404, "not_found")
    kept = next(each for each in alice.api.get(KEYS).json()["items"] if each["id"] == shown["id"])
    assert kept["revoked_at"] is not None
    assert kept["service_account"]["id"] == account["id"]
    again = alice.api.post(ACCOUNTS, {"name": "pipeline", "role": "member"}).json()
    assert again["id"] != account["id"]
    assert audited(alice.organisation, "api_key.revoke") == [("alice@example.com", shown["id"])]


def test_a_key_of_a_deleted_account_opens_nothing_even_if_its_row_were_not_revoked(alice, account):
    _, api = key_of(alice, account)
    ServiceAccount.objects.for_organisation(alice.organisation).update(deleted_at=SYSTEM_CLOCK.now())
    problem(api.get("/api/v1/me"), 401, "unauthenticated")


def test_two_cannot_have_one_name_and_another_organisation_may(alice, charlie, account):
    problem(alice.api.post(ACCOUNTS, {"name": "pipeline", "role": "viewer"}), 409, "already_exists")
    other = alice.api.post(ACCOUNTS, {"name": "other", "role": "viewer"}).json()
    problem(alice.api.patch(f"{ACCOUNTS}/{other['id']}", {"name": "pipeline"}), 409, "already_exists")
    assert charlie.api.post(ACCOUNTS, {"name": "pipeline", "role": "viewer"}).status_code == 201


def test_an_organisation_has_at_most_fifty_and_those_deleted_do_not_count(alice, account):
    for number in range(service_accounts.MOST - 1):
        service_account_row(alice.organisation, f"svc-{number:012}")
    problem(alice.api.post(ACCOUNTS, {"name": "x", "role": "viewer"}), 409, "too_many_service_accounts")
    alice.api.delete(f"{ACCOUNTS}/{account['id']}")
    assert alice.api.post(ACCOUNTS, {"name": "x", "role": "viewer"}).status_code == 201


def test_a_change_of_nothing_is_refused(alice, account):
    problem(alice.api.patch(f"{ACCOUNTS}/{account['id']}", {}), 400, "invalid")


@pytest.mark.parametrize("name", ["", "a\nb", "x\u202ey", "n" * 129])
def test_names_keep_to_the_rule_of_names(alice, name):
    problem(alice.api.post(ACCOUNTS, {"name": name, "role": "member"}), 400, "invalid")


# --- mails ----------------------------------------------------------------------------------------------------------------


def test_owners_are_told_a_week_before_a_key_of_it_expires_and_once(alice, bob, account, mails):
    now = SYSTEM_CLOCK.now()
    shown, _ = key_of(alice, account, expires_at=(now + timedelta(days=30)).isoformat())
    User.objects.update(email_verified_at=now)
    assert key_expiry.expiries_tell(now=now) == 0
    later = now + timedelta(days=24)
    assert key_expiry.expiries_tell(now=later) == 1
    assert key_expiry.expiries_tell(now=later) == 0
    clock = ManualClock()
    clock.time = later
    send_due(clock=clock)
    (mail,) = mails.mails
    assert (mail["To"], mail["Subject"]) == ("alice@example.com", "An API key of a service account expires soon")
    told = mail.get_content()
    assert shown["prefix"] in told
    assert account["id"] in told
    assert "pipeline" not in told, "a tenant has written that"
