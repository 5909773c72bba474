"""When the time is over: what goes, what stays, and that bills and the audit log hold as before."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.db import models

from controlplane.accounts.models import ApiKey, User
from controlplane.alarms.models import Receiver
from controlplane.billing.models import Invoice, PrepaidEvent
from controlplane.billing.verification import organisation_verify
from controlplane.certificates.models import Authority, RouteCertificate
from controlplane.core import audit_sealing
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry, Operation
from controlplane.core.sealed import sealed
from controlplane.instances.models import Instance, Route
from controlplane.loads.models import Load
from controlplane.mail.outbox import send_due
from controlplane.organisations import deletion, removal
from controlplane.organisations.kept import EMPTIED, GOES, STAYS
from controlplane.sealing.fields import SealedField
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Membership, Organisation
from controlplane.tenants.selectors import organisation_list
from tests.controlplane.alarms.rows import alarm_row, event_row, receiver_row
from tests.controlplane.budgets.rows import alert_row, budget_row
from tests.controlplane.fakes import ManualClock
from tests.controlplane.loads.rows import load_row
from tests.controlplane.rows import custom_role_row, service_account_row
from tests.controlplane.sso.rows import provider_row
from tests.controlplane.test_foreign_ids import theirs  # noqa: F401  # a fixture
from tests.controlplane.test_instances_api import problem
from tests.controlplane.token_issuers.rows import token_issuer_row

from .rows import LONG_AGO, emptied
from .test_deletion import marked
from .test_names_and_owners import at, audited

DAY, LOAD = timedelta(days=1), "load-000000000001"
SEALED = [model for model in (*GOES, *STAYS) if any(isinstance(field, SealedField) for field in model._meta.fields)]


def later(organisation, days):
    clock = ManualClock()
    organisation.refresh_from_db()
    clock.time = organisation.deletion_asked_at + days * DAY
    return clock


def looked_after_and_sent(organisation, days):
    """A mail that waits for a day is given up: the clock of mails goes with that of the removal."""
    clock = later(organisation, days)
    removal.look_after(clock=clock)
    while send_due(clock=clock):
        pass


def deleted(person, meanwhile=None):
    emptied(person.organisation)
    if meanwhile is not None:
        meanwhile.save(force_insert=True)
    marked(person)
    assert removal.look_after(clock=later(person.organisation, 7)) == 1
    person.organisation.refresh_from_db()


def of(model, organisation):
    return model._base_manager.filter(organisation=organisation)


def test_every_kind_of_row_that_names_an_organisation_goes_or_stays():
    """Who makes another one has to say which."""
    named = {
        model
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.ForeignKey) and field.related_model is Organisation
    }
    assert named == {*GOES, *STAYS}
    assert not set(GOES) & set(STAYS)
    assert {model for model, _ in EMPTIED} <= set(STAYS)


BY_TEXT = {
    "alarms.ThrottledSpell", "health.HealthReason", "health.HealthSpell", "history.ExpiringUnread", "history.GroupRebalances",
    "history.Hour",
    "history.LagGroup", "history.LagSample", "history.Minute", "history.RequestDay", "history.RequestHour",
    "history.RequestMinute", "history.RequestSample", "history.RequestTotal", "history.Sample", "metering.Cap",
    "metering.Difference", "metering.ElasticMinute",
    "metering.FoldedHour", "metering.FoldedInstanceHour", "metering.FoldedTopicDay", "metering.FoldedUserDay",
    "metering.FoldedUserHour", "metering.InstanceMaximum", "metering.StagedMaximum", "metering.UsageMaximum",
    "metering.UserMaximum", "quotas.QuotaDay", "quotas.QuotaDayStaged", "quotas.RecordedInterval", "rebalancing.RebalanceMove",
    "remedies.NeighbourMinute", "remedies.Witness",
}  # fmt: skip
"""Rows that name an instance by its id as text: they stay as long as those of any instance that is gone."""


def test_what_names_an_instance_by_text_alone_is_listed_in_what_is_said_of_it():
    """docs/subsystems/identity.md: who makes another one looks whether the sentence there is true of it."""
    found = {
        model._meta.label
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.CharField) and field.name == "instance"
    }
    assert found == BY_TEXT


def test_nothing_happens_before_the_time_is_over(alice):
    marked(alice)
    assert removal.look_after(clock=later(alice.organisation, 6.99)) == 0
    assert Membership.objects.filter(organisation=alice.organisation).exists()


def test_what_may_go_is_gone_and_what_must_stay_is_there(alice, bob, theirs):  # noqa: F811
    organisation = alice.organisation
    instance = Instance.objects.for_organisation(organisation).get()
    alert_row(budget_row(organisation, receiver_row(instance, "rcv-000000000009"), budget_id="bud-000000000009"))
    stayed = {model: of(model, organisation).count() for model in STAYS}
    assert all(of(model, organisation).exists() for model in (ApiKey, Receiver, Membership))
    deleted(alice)
    for model in GOES:
        assert not of(model, organisation).exists(), model
    for model, count in stayed.items():
        assert of(model, organisation).count() >= count, model
    assert Invoice.objects.for_organisation(organisation).exists()
    (entry,) = audited(organisation, "organisation.remove")
    assert entry.actor == "system"
    assert entry.detail["gone"]["Membership"] == 3
    assert User.objects.filter(pk=alice.user.pk, is_active=True).exists(), "people keep their accounts"


def test_bills_are_computed_again_from_what_is_kept_and_the_log_holds(alice, theirs):  # noqa: F811
    before = [(row.number, row.total, row.hash) for row in Invoice.objects.for_organisation(alice.organisation)]
    differences = organisation_verify(organisation=alice.organisation)
    deleted(alice)
    after = [(row.number, row.total, row.hash) for row in Invoice.objects.for_organisation(alice.organisation)]
    assert (before, bool(before)) == (after, True)
    assert organisation_verify(organisation=alice.organisation) == differences
    audit_sealing.extend(alice.organisation.pk)
    found = audit_sealing.verify(organisation=alice.organisation)
    assert found.broken is None
    assert AuditEntry.objects.for_organisation(alice.organisation).filter(number=None).count() == 0


def test_what_says_something_of_people_is_emptied_where_no_bill_needs_it(alice, instance):
    assert instance.whitelist
    route = Route.objects.for_organisation(alice.organisation).first()
    route.advertised_host, route.advertised_hosts = "kafka.alice.example", {"1": "one.alice.example"}
    route.principal_mapping = ["RULE:^CN=(.*)$/$1/"]
    route.save()
    event = PrepaidEvent(
        organisation=alice.organisation,
        instance=instance,
        number=1,
        kind="bought",
        actor="alice@example.com",
        at=LONG_AGO,
    )
    deleted(alice, meanwhile=event)
    route.refresh_from_db()
    assert (route.advertised_host, route.advertised_hosts, route.principal_mapping) == ("", {}, [])
    event.refresh_from_db()
    assert event.actor == ""
    instance.refresh_from_db()
    assert (instance.whitelist, instance.topic_whitelists) == ([], {})
    assert instance.name == "events", "it stands on the invoice"
    assert set(Operation.objects.for_organisation(alice.organisation).values_list("actor", flat=True)) <= {""}


def test_its_people_have_no_organisation_then_and_go_on(alice):
    deleted(alice)
    assert not organisation_list(user=alice.user).exists()
    problem(alice.api.get("/api/v1/me"), 401, "unauthenticated")
    again = tenants.organisation_create(name="alice's", owner=alice.user)
    assert again.pk != alice.organisation.pk, "the name is free, the id is not given again"


def test_secrets_that_were_sealed_are_gone(alice, instance):
    provider_row(alice.organisation)
    token_issuer_row(instance)
    event_row(alarm_row(instance))
    receiver_row(instance)
    custom_role_row(alice.organisation)
    service_account_row(alice.organisation)
    load_row(instance, LOAD, access_key="AK", secret_key=sealed(Load, "secret_key", b"x", id=LOAD))
    organisation = alice.organisation
    whose = {"instance": instance, "organisation": organisation}
    key = sealed(Authority, "key", b"x", instance_id=instance.pk)
    Authority(**whose, key=key, certificate="", not_after=LONG_AGO).save(force_insert=True)
    key = sealed(RouteCertificate, "key", b"x", instance_id=instance.pk, route="default")
    RouteCertificate(**whose, key=key, route="default").save(force_insert=True)
    assert not set(SEALED) & set(STAYS)
    assert {model for model in SEALED if of(model, organisation).exists()} == set(SEALED)
    deleted(alice)
    assert not [model for model in SEALED if of(model, organisation).exists()]


def test_an_organisation_that_was_taken_back_stays(alice):
    marked(alice)
    clock = later(alice.organisation, 7)
    deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    assert removal.look_after(clock=clock) == 0
    assert alice.api.get("/api/v1/me").status_code == 200


def test_one_that_is_taken_back_while_the_clock_looks_stays(alice, monkeypatch):
    marked(alice)
    clock, real = later(alice.organisation, 7), removal._remove

    def meanwhile(row, given):
        Organisation.objects.filter(pk=row.pk).update(deletion_asked_at=None, deletes_at=None)
        return real(row, given)

    monkeypatch.setattr(removal, "_remove", meanwhile)
    assert removal.look_after(clock=clock) == 0
    assert Membership.objects.filter(organisation=alice.organisation).exists()


def test_what_has_come_in_the_way_meanwhile_is_waited_for(alice, instance):
    emptied(alice.organisation)
    marked(alice)
    Operation.objects.for_organisation(alice.organisation).update(state="running")
    clock = later(alice.organisation, 8)
    assert removal.look_after(clock=clock) == 0
    assert Membership.objects.filter(organisation=alice.organisation).exists()
    Operation.objects.for_organisation(alice.organisation).update(state="succeeded")
    assert removal.look_after(clock=clock) == 1
    assert removal.look_after(clock=clock) == 0, "once"


def test_an_owner_takes_it_back_as_long_as_it_is_waited_for(alice, instance):
    emptied(alice.organisation)
    marked(alice)
    Operation.objects.for_organisation(alice.organisation).update(state="running")
    clock = later(alice.organisation, 8)
    assert removal.look_after(clock=clock) == 0
    row = deletion.organisation_restore(organisation=alice.organisation, by=alice.user, clock=clock)
    assert row.is_in_use
    assert alice.api.get("/api/v1/me").status_code == 200


def test_that_it_is_waited_for_is_said_to_owners_once_and_to_the_log_each_day(alice, instance, mails, caplog):
    emptied(alice.organisation)
    marked(alice)
    Operation.objects.for_organisation(alice.organisation).update(state="running")
    for days in (6.5, 7, 7.001, 7.9, 8.1, 8.2):
        looked_after_and_sent(alice.organisation, days)
    assert [each.levelname for each in caplog.records if "is not deleted yet" in each.message] == ["WARNING"] * 2
    told = [mail for mail in mails.mails if "is not deleted yet" in mail["Subject"]]
    assert [mail["To"] for mail in told] == ["alice@example.com"]
    assert f"/{alice.organisation.id}/deletion" in told[0].get_content()


def test_many_that_are_waited_for_keep_no_other_from_its_turn(alice, instance, charlie, monkeypatch):
    monkeypatch.setattr(removal, "AT_ONCE", 1)
    emptied(alice.organisation)
    marked(alice)
    marked(charlie)
    Operation.objects.for_organisation(alice.organisation).update(state="running")
    assert removal.look_after(clock=later(charlie.organisation, 8)) == 1
    charlie.organisation.refresh_from_db()
    assert charlie.organisation.deleted_at is not None


def test_one_that_fails_is_no_obstacle_to_another(alice, charlie, monkeypatch):
    marked(alice)
    marked(charlie)
    clock, real = later(charlie.organisation, 8), removal._remove

    def failing(row, given):
        if row.pk == alice.organisation.pk:
            raise RuntimeError("away")
        return real(row, given)

    monkeypatch.setattr(removal, "_remove", failing)
    assert removal.look_after(clock=clock) == 1
    charlie.organisation.refresh_from_db()
    assert charlie.organisation.deleted_at is not None


def test_owners_are_told_a_day_before_once_and_afterwards(alice, mails):
    marked(alice)
    organisation = alice.organisation
    for days in (0, 5.9, 6.1, 6.2, 7, 7.1):
        looked_after_and_sent(organisation, days)
    subjects = [mail["Subject"] for mail in mails.mails if mail["To"] == "alice@example.com"]
    assert len(subjects) == 3, subjects
    assert sum("will be deleted on" in each for each in subjects) == 2
    assert sum("was deleted" in each for each in subjects) == 1


def test_operators_find_it_and_what_it_was_billed(alice, charlie, theirs):  # noqa: F811
    deleted(alice)
    charlie.user.is_staff = True
    charlie.user.save()
    assert charlie.api.get(at(alice)).json()["state"] == "deleted"
    notes = charlie.api.get(at(alice, "/invoices/inv-00000001/credit-notes"))
    assert notes.status_code == 200


@pytest.mark.parametrize("member", ["deletes_at", "deletion_asked_at"])
def test_the_database_takes_no_row_that_is_deleted_and_never_was_marked(alice, member):
    from django.db import IntegrityError, transaction

    with pytest.raises(IntegrityError), transaction.atomic():
        Organisation.objects.filter(pk=alice.organisation.pk).update(deleted_at=SYSTEM_CLOCK.now())
    with pytest.raises(IntegrityError), transaction.atomic():
        Organisation.objects.filter(pk=alice.organisation.pk).update(**{member: SYSTEM_CLOCK.now()})
