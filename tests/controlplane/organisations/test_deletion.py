"""Marked for deletion: what is in the way, who may do it, that nobody uses it from then on, and the way back."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.conf import settings

from controlplane.accounts import joining
from controlplane.accounts import services as accounts
from controlplane.accounts.key_expiry import expiries_tell
from controlplane.accounts.models import ApiKey, User
from controlplane.accounts.selectors import access_key_get, caller_of_key
from controlplane.admission.purchases import instance_buy
from controlplane.admission.services import caps_set
from controlplane.billing.pricing.rating import Month
from controlplane.billing.services import plan_choose, tax_set
from controlplane.budgets.services import budget_create
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict, Forbidden, NotFound, Unauthenticated
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances.models import Instance
from controlplane.loads.models import LoadRun
from controlplane.mail.outbox import send_due
from controlplane.organisations import deletion, telling
from controlplane.sso.selectors import provider_in_force
from controlplane.tenants import invitations
from controlplane.tenants.models import Membership, Organisation, Role
from tests.controlplane.conftest import WANTED
from tests.controlplane.loads.rows import kept_table_row, load_row
from tests.controlplane.rows import instance_row, service_account_row
from tests.controlplane.sso.rows import provider_row
from tests.controlplane.test_instances_api import problem
from tests.controlplane.test_limited_keys import made

from .rows import LONG_AGO, emptied
from .test_names_and_owners import at, audited, handed_over, membership

NAME = {"name": "alice's"}


@pytest.fixture
def installation_key(tmp_path, monkeypatch):
    """Makes access keys."""
    path = tmp_path / "secrets.json"
    path.write_text(json.dumps({"access_key_secret": "k" * 40}))
    monkeypatch.setattr(settings, "ENVIRONMENT", dataclasses.replace(settings.ENVIRONMENT, secrets_file=path))


def marked(person):
    answer = person.api.post(at(person, "/deletion"), {"name": person.organisation.name})
    assert answer.status_code == 200, answer.content
    person.organisation.refresh_from_db()
    return answer.json()


def in_the_way(person):
    return [each["code"] for each in person.api.get(at(person, "/deletion")).json()["items"]]


# --- what is in the way ----------------------------------------------------------------------------------------------------


def test_an_empty_organisation_is_marked_for_seven_days(alice):
    assert in_the_way(alice) == []
    before = SYSTEM_CLOCK.now()
    said = marked(alice)
    ends = datetime.fromisoformat(said["deletes_at"])
    assert said["state"] == "deleting"
    assert timedelta(days=7) <= ends - before < timedelta(days=7, minutes=5)
    (entry,) = audited(alice.organisation, "organisation.delete")
    assert (entry.actor, entry.detail["name"]) == ("alice@example.com", "alice's")


def test_each_reason_is_named(alice, instance):
    load_row(instance)
    kept_table_row(instance, "load-000000000002")
    Operation.objects.for_organisation(alice.organisation).update(state="running")
    assert in_the_way(alice) == ["instances", "operations", "loads", "usage"]
    refused = problem(alice.api.post(at(alice, "/deletion"), NAME), 409, "organisation_in_use")
    told = " ".join(each["detail"] for each in refused["errors"])
    assert len(refused["errors"]) == 4
    for said in (instance.id, "events", "load-000000000001", "load-000000000002", f"{SYSTEM_CLOCK.now():%Y-%m}"):
        assert said in told
    assert [each["code"] for each in refused["obstacles"]] == in_the_way(alice)
    alice.organisation.refresh_from_db()
    assert alice.organisation.is_in_use


def test_what_a_refusal_says_to_programs_stands_at_the_place_of_what_it_says_to_people(alice, instance):
    load_row(instance)
    Operation.objects.for_organisation(alice.organisation).update(state="running")
    told = alice.api.get(at(alice, "/deletion")).json()["items"]
    refused = problem(alice.api.post(at(alice, "/deletion"), NAME), 409, "organisation_in_use")
    assert [each["detail"] for each in refused["errors"]] == [each["detail"] for each in told]
    for shown in ("code", "count"):
        assert [each[shown] for each in refused["obstacles"]] == [each[shown] for each in told]


@pytest.mark.parametrize("state", ["creating", "running", "failed", "isolated", "restoring", "deleting"])
def test_an_instance_is_in_the_way_until_it_is_destroyed(alice, instance, state):
    emptied(alice.organisation)
    Instance.objects.for_organisation(alice.organisation).update(state=state)
    assert "instances" in in_the_way(alice)


def test_what_was_used_is_on_an_invoice_first(alice, instance):
    emptied(alice.organisation)
    assert in_the_way(alice) == []
    now = SYSTEM_CLOCK.now()
    Instance.objects.for_organisation(alice.organisation).update(created_at=now, deleted_at=now)
    assert in_the_way(alice) == ["usage"]
    last = (now.replace(day=1) - timedelta(days=1)).replace(day=15)
    Instance.objects.for_organisation(alice.organisation).update(created_at=last, deleted_at=last)
    assert in_the_way(alice) == ["usage"]


def test_loads_of_an_instance_that_is_gone_are_in_the_way_while_a_runner_works_on_them(alice, instance):
    """Where no runner is, nobody would ever remove them."""
    emptied(alice.organisation)
    load = load_row(instance)
    kept_table_row(instance, "load-000000000002")
    run = LoadRun(organisation=alice.organisation, load=load, asked_by="alice", asked_at=LONG_AGO)
    run.save(force_insert=True)
    assert in_the_way(alice) == [], "it waits for a runner"
    run.state, run.seen_at = "running", SYSTEM_CLOCK.now()
    run.save()
    assert in_the_way(alice) == ["loads"]
    run.seen_at = SYSTEM_CLOCK.now() - timedelta(minutes=5)
    run.save()
    assert in_the_way(alice) == [], "its runner is gone"


def test_nothing_of_another_organisation_is_in_the_way(alice, instance, charlie):
    load_row(instance)
    assert in_the_way(charlie) == []
    assert marked(charlie)["state"] == "deleting"


def test_many_instances_are_named_in_part(alice):
    for number in range(8):
        instance_row(alice.organisation, f"ins-0000000{number}")
    (first, *_) = alice.api.get(at(alice, "/deletion")).json()["items"]
    assert (first["count"], first["detail"].count("ins-")) == (8, 5)
    assert first["detail"].endswith(", … (8)")


# --- who may ---------------------------------------------------------------------------------------------------------------


def test_owners_do_it_with_the_name_typed(alice, bob, viewer, charlie):
    for person in (bob, viewer):
        problem(person.api.post(at(alice, "/deletion"), NAME), 403, "forbidden")
        problem(person.api.get(at(alice, "/deletion")), 403, "forbidden")
    problem(charlie.api.post(at(alice, "/deletion"), NAME), 404, "not_found")
    for body in ({"name": "charlie's"}, {"name": "alice"}, {}):
        assert problem(alice.api.post(at(alice, "/deletion"), body), 400, "invalid")["errors"][0]["field"] == "name"
    assert Organisation.objects.get(pk=alice.organisation.pk).is_in_use
    assert marked(alice)["state"] == "deleting"


def test_who_is_no_owner_any_more_deletes_nothing_though_the_request_was_let_in(alice, bob):
    caller = caller_of_key(alice.key)
    handed_over(alice, bob, step_down_to="member")
    with pytest.raises(Forbidden):
        deletion.organisation_delete(
            organisation=caller.organisation, by=caller.person, confirmation="alice's", with_key=caller.key
        )
    assert Organisation.objects.get(pk=alice.organisation.pk).is_in_use


def test_a_dry_run_marks_nothing(alice):
    said = alice.api.post(f"{at(alice, '/deletion')}?dry_run=true", NAME).json()["changes"]
    assert said["state"] == ["active", "deleting"]
    assert set(said) == {"state", "deletes_at"}
    assert alice.api.get("/api/v1/me").status_code == 200
    problem(alice.api.post(f"{at(alice, '/deletion')}?dry_run=true", {"name": "x"}), 400, "invalid")


def test_a_call_that_is_repeated_is_refused_like_any_other(alice):
    """The answer is kept, and is not for a key of an organisation that nobody uses."""
    key = {"HTTP_IDEMPOTENCY_KEY": "once"}
    assert alice.api.post(at(alice, "/deletion"), NAME, **key).status_code == 200
    problem(alice.api.post(at(alice, "/deletion"), NAME, **key), 401, "organisation_deleting")
    assert len(audited(alice.organisation, "organisation.delete")) == 1


# --- nobody uses it --------------------------------------------------------------------------------------------------------


def test_every_key_is_refused_from_the_next_request_on(alice, bob, viewer):
    account = service_account_row(alice.organisation)
    _, text = accounts.api_key_save(
        whose={"organisation": alice.organisation, "service_account": account},
        actor="a",
        name="deploy",
        limits=dict.fromkeys(("scopes", "instances", "addresses", "expires_at")),
        now=SYSTEM_CLOCK.now(),
    )
    marked(alice)
    for person in (alice, bob, viewer):
        problem(person.api.get("/api/v1/me"), 401, "organisation_deleting")
        problem(person.api.post("/api/v1/instances", WANTED), 401, "organisation_deleting")
    with pytest.raises(Unauthenticated):
        caller_of_key(text)


def test_a_wrong_key_learns_nothing_of_that(alice):
    marked(alice)
    wrong = alice.key[:-1] + ("a" if alice.key[-1] != "a" else "b")
    with pytest.raises(Unauthenticated) as refused:
        caller_of_key(wrong)
    assert refused.value.code == "unauthenticated"


def test_signatures_by_its_access_keys_are_nobodys(alice, installation_key):
    key, secret = accounts.access_key_create(organisation=alice.organisation, user=alice.user, name="sdk")
    assert access_key_get(key.secret_id).secret == secret
    marked(alice)
    assert access_key_get(key.secret_id) is None
    deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    assert access_key_get(key.secret_id).secret == secret


def test_a_key_that_would_be_refused_anyway_is_not_told_of_it(alice):
    """Whoever has found one that expired, or is somewhere else, learns nothing about the organisation."""
    _, bound = made(alice, addresses=["192.0.2.0/24"])
    key, expired = made(alice)
    ApiKey.objects.for_organisation(alice.organisation).filter(pk=key.pk).update(expires_at=LONG_AGO)
    marked(alice)
    problem(bound.get("/api/v1/me"), 403, "address_not_allowed")
    problem(expired.get("/api/v1/me"), 401, "api_key_expired")


def test_a_key_that_sleeps_is_told_of_the_deletion_first(alice):
    """To sign in by the provider, which is what a sleeping key is told otherwise, leads nowhere while it is marked."""
    rows = ApiKey.objects.for_organisation(alice.organisation)
    rows.update(sso_until=LONG_AGO)
    problem(alice.api.get("/api/v1/me"), 401, "sso_key_asleep")
    rows.update(sso_until=None)
    marked(alice)
    rows.update(sso_until=LONG_AGO)
    problem(alice.api.get("/api/v1/me"), 401, "organisation_deleting")
    rows.update(addresses=["10.0.0.0/8"])
    problem(alice.api.get("/api/v1/me"), 403, "address_not_allowed")


def test_nobody_is_told_that_a_key_of_it_expires(alice, mails):
    now = SYSTEM_CLOCK.now()
    made(alice, expires_at=now + timedelta(days=8))
    later = now + timedelta(days=2)
    marked(alice)
    assert expiries_tell(now=later) == 0
    deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    assert expiries_tell(now=later) == 1


def test_operators_set_no_caps_of_it_and_only_who_is_left_has_a_tax_on_record(alice, charlie):
    marked(alice)
    with pytest.raises(Conflict) as refused:
        caps_set(organisation=alice.organisation, actor="operator", caps={"instances": 40}, reason="more")
    assert refused.value.code == "organisation_deleting"
    assert "is being deleted" in refused.value.detail
    Organisation.objects.filter(pk=alice.organisation.pk).update(deleted_at=LONG_AGO)
    with pytest.raises(Conflict) as refused:
        caps_set(organisation=alice.organisation, actor="operator", caps={"instances": 40}, reason="more")
    assert "was deleted" in refused.value.detail
    tax_set(organisation=None, month=Month(2100, 1), name="VAT", percent=Decimal(20), actor="operator")
    assert (audited(alice.organisation, "tax.set"), len(audited(charlie.organisation, "tax.set"))) == ([], 1)


def test_the_demo_makes_no_key_of_it(alice):
    organisation, _ = joining.demo_tenant_ensure(name="Demo")
    Organisation.objects.filter(pk=organisation.pk).update(deletion_asked_at=LONG_AGO, deletes_at=LONG_AGO)
    with pytest.raises(Conflict):
        joining.demo_tenant_ensure(name="Demo")


def test_keys_of_other_organisations_of_its_members_go_on(alice, charlie):
    Membership.objects.create(organisation=alice.organisation, user=charlie.user, role=Role.MEMBER)
    marked(alice)
    assert charlie.api.get("/api/v1/me").status_code == 200


def test_its_provider_signs_nobody_in(alice):
    provider_row(alice.organisation)
    alice.api.patch("/api/v1/sso", {"in_force": True})
    assert provider_in_force(alice.organisation.id) is not None
    marked(alice)
    assert provider_in_force(alice.organisation.id) is None


def test_links_of_invitations_lead_nowhere(alice, charlie):
    _, token = invitations.invitation_create(
        organisation=alice.organisation, inviter=alice.user, email=charlie.user.email, role=Role.OWNER
    )
    marked(alice)
    with pytest.raises(NotFound):
        joining.invitation_accept(token=token, user=charlie.user)
    assert not Membership.objects.filter(organisation=alice.organisation, user=charlie.user).exists()


# --- what was under way ----------------------------------------------------------------------------------------------------


def test_a_purchase_that_was_let_in_before_is_refused(alice, brokers):
    """The key was looked at, and the organisation marked while the request was on its way."""
    caller = caller_of_key(alice.key)
    marked(alice)
    with pytest.raises(Conflict) as refused:
        instance_buy(organisation=caller.organisation, actor=caller.actor, confirm_price=True, **WANTED)
    assert refused.value.code == "organisation_deleting"
    assert not Instance.objects.for_organisation(alice.organisation).exists()


def test_so_is_whatever_would_change_who_belongs_to_it_or_what_it_pays(alice, bob):
    caller = caller_of_key(alice.key)
    marked(alice)
    place = {"organisation": caller.organisation}
    for change in (
        lambda: joining.invite(**place, inviter=alice.user, email="dora@example.com", role=Role.OWNER),
        lambda: joining.member_remove(**place, by=alice.user, membership_id=membership(bob).pk),
        lambda: plan_choose(**place, actor="a", plan="pro"),
        lambda: budget_create(**place, actor="a", name="all", amount="10.00"),
        lambda: deletion.organisation_delete(**place, by=alice.user, confirmation="alice's"),
    ):
        with pytest.raises(Conflict) as refused:
            change()
        assert refused.value.code == "organisation_deleting"


# --- the way back ------------------------------------------------------------------------------------------------------------


def test_an_owner_takes_it_back_and_everything_is_as_before(alice, bob):
    marked(alice)
    with pytest.raises(Forbidden):
        deletion.organisation_restore(organisation=alice.organisation, by=bob.user)
    row = deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    assert (row.is_in_use, row.deletes_at) == (True, None)
    for person in (alice, bob):
        assert person.api.get("/api/v1/me").status_code == 200
    assert [entry.actor for entry in audited(alice.organisation, "organisation.restore")] == ["alice@example.com"]
    deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    assert len(audited(alice.organisation, "organisation.restore")) == 1, "twice is once"


def test_or_revokes_every_key_that_was_there(alice, bob, installation_key):
    """Where keys were stolen, they would come alive again with it."""
    pair, _ = accounts.access_key_create(organisation=alice.organisation, user=bob.user, name="sdk")
    account = service_account_row(alice.organisation)
    accounts.api_key_save(
        whose={"organisation": alice.organisation, "service_account": account},
        actor="a",
        name="deploy",
        limits=dict.fromkeys(("scopes", "instances", "addresses", "expires_at")),
        now=SYSTEM_CLOCK.now(),
    )
    marked(alice)
    deletion.organisation_restore(organisation=alice.organisation, by=alice.user, revokes_keys=True)
    for person in (alice, bob):
        problem(person.api.get("/api/v1/me"), 401, "unauthenticated")
    assert access_key_get(pair.secret_id) is None
    assert not ApiKey.objects.for_organisation(alice.organisation).filter(revoked_at=None).exists()
    assert len(audited(alice.organisation, "api_key.revoke")) == 3
    assert len(audited(alice.organisation, "access_key.revoke")) == 1
    (entry,) = audited(alice.organisation, "organisation.restore")
    assert entry.detail == {"keys": "revoked", "in_use": {"from": False, "to": True}}


def test_another_owner_who_was_faster_keeps_no_key_alive(alice, bob):
    handed_over(alice, bob)
    marked(alice)
    deletion.organisation_restore(organisation=alice.organisation, by=bob.user)
    deletion.organisation_restore(organisation=alice.organisation, by=alice.user, revokes_keys=True)
    problem(bob.api.get("/api/v1/me"), 401, "unauthenticated")
    assert len(audited(alice.organisation, "organisation.restore")) == 1


def test_invitations_of_before_have_ended(alice):
    invitation, token = invitations.invitation_create(
        organisation=alice.organisation, inviter=alice.user, email="dora@example.com", role=Role.OWNER
    )
    marked(alice)
    deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    with pytest.raises(NotFound):
        invitations.invitation_find(token=token)
    assert [entry.target for entry in audited(alice.organisation, "invitation.withdraw")] == [invitation.email]


def test_owners_are_not_written_to_without_an_end(alice, bob, mails, monkeypatch):
    for _ in range(10):
        marked(alice)
        deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    problem(alice.api.post(at(alice, "/deletion"), NAME), 409, "too_many_mails")
    problem(handed_over(alice, bob), 409, "too_many_mails")
    monkeypatch.setattr(telling, "LATELY", timedelta(0))
    assert handed_over(alice, bob).status_code == 200


def test_when_the_time_is_over_it_is_too_late(alice):
    marked(alice)
    Organisation.objects.filter(pk=alice.organisation.pk).update(deletes_at=datetime(2026, 6, 1, tzinfo=UTC))
    with pytest.raises(Conflict) as refused:
        deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    assert refused.value.code == "grace_over"


def test_owners_are_told_of_both(alice, bob, mails):
    Membership.objects.filter(organisation=alice.organisation, user=bob.user).update(role=Role.OWNER)
    User.objects.filter(pk=alice.user.pk).update(email_verified_at=SYSTEM_CLOCK.now())
    marked(alice)
    deletion.organisation_restore(organisation=alice.organisation, by=bob.user)
    send_due()
    told = [(mail["To"], mail["Subject"]) for mail in mails.mails]
    assert sorted(to for to, _ in told) == ["alice@example.com"] * 2 + ["bob@example.com"] * 2
    assert all(("alice's" in subject) == (to == "alice@example.com") for to, subject in told)
    assert any("will not be deleted" in subject for _, subject in told)


def test_operators_still_see_it_and_nothing_is_lost_of_the_log(alice, charlie):
    marked(alice)
    charlie.user.is_staff = True
    charlie.user.save()
    shown = charlie.api.get(at(alice)).json()
    assert (shown["state"], shown["name"]) == ("deleting", "alice's")
    assert AuditEntry.objects.for_organisation(alice.organisation).filter(action="organisation.create").exists()
