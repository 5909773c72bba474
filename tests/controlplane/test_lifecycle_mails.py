"""Owners are told of an instance's end, and of what became of scheduled changes: each once, whoever dies in between."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from controlplane.accounts import owners
from controlplane.accounts.models import User
from controlplane.admission import scheduling
from controlplane.admission.models import ScheduledChange
from controlplane.core import operations
from controlplane.core.models import Operation
from controlplane.instances import lifecycle, provisioning
from controlplane.instances.models import Instance
from controlplane.mail import outbox
from controlplane.mail.models import Mail
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Role

from .admission.rows import change_row
from .conftest import CONSOLE_URL, run_to_the_end
from .fakes import ManualClock
from .test_instances_api import URL

pytestmark = pytest.mark.usefixtures("grace", "mails")
DAY = timedelta(days=1)


class Killed(BaseException):
    """SIGKILL."""


@pytest.fixture
def url(instance):
    User.objects.update(email_verified_at=timezone.now())
    return f"{URL}/{instance.id}"


def row():
    return Instance.objects.unscoped("a test").get()


def send():
    """Each at the moment at which it was written, be that one to come."""
    clock = ManualClock()
    for clock.time in Mail.objects.filter(state="waiting").order_by("created_at").values_list("created_at", flat=True):
        outbox.send_due(clock=clock)


def subjects(mails):
    """Of what has been written by now, in order; and to whom."""
    send()
    return [(mail["To"], mail["Subject"]) for mail in mails.mails]


def only(mails):
    send()
    (mail,) = mails.mails
    return mail


def dies(*_args, **_members):
    raise Killed


@pytest.fixture
def isolated(alice, url, mails):
    operation = alice.api.delete(url).json()["operation_id"]
    run_to_the_end(operation)
    send()
    mails.mails.clear()
    return url


def near_its_end(clock, **before):
    clock.time = row().destroys_at - timedelta(**before)
    return clock


# --- isolated -------------------------------------------------------------------------------------------------


def test_owners_are_told_until_when_and_how_it_can_be_restored(alice, bob, viewer, charlie, url, mails, instance):
    alice.api.delete(url)
    mail, until = only(mails), f"{row().destroys_at:%Y-%m-%d %H:%M} UTC"
    assert (mail["To"], mail["Subject"]) == (
        "alice@example.com",
        f"Instance events ({instance.id}) is isolated until {until}",
    )
    text = mail.get_content()
    assert f"sluice instance restore {instance.id}" in text
    assert f"{CONSOLE_URL}/{alice.organisation.id}/instances/{instance.id}" in text.split()
    assert f"Until {until} it can be restored" in text


def test_deleted_again_nobody_is_told_again(alice, url, mails):
    for _ in range(3):
        alice.api.delete(url)
    only(mails)


def test_a_deletion_that_is_taken_back_tells_nobody(alice, url, instance):
    with transaction.atomic():
        lifecycle.instance_delete(organisation=alice.organisation, actor="alice", instance_id=instance.id)
        transaction.set_rollback(True)
    assert not Mail.objects.exists()


def test_each_owner_is_told_and_those_who_cannot_be(alice, bob, url, mails):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    for name, members in (("gone", {"is_active": False}), ("new", {"must_confirm_email": True})):
        other = User.objects.create_user(f"{name}@example.com", **members)
        tenants.membership_set(organisation=alice.organisation, user=other, role=Role.OWNER)
    alice.api.delete(url)
    assert sorted(to for to, _ in subjects(mails)) == ["alice@example.com", "bob@example.com"]


def test_a_name_stands_only_in_a_mail_to_an_address_that_was_confirmed(alice, url, mails, instance):
    User.objects.update(email_verified_at=None)
    alice.api.delete(url)
    mail = only(mails)
    assert "events" not in mail["Subject"] + mail.get_content()
    assert instance.id in mail["Subject"]


def test_a_service_that_sends_no_mails_writes_none(alice, url, settings, clock):
    settings.ENVIRONMENT = type(settings.ENVIRONMENT).read({})
    run_to_the_end(alice.api.delete(url).json()["operation_id"])
    lifecycle.ends_foretell(clock=near_its_end(clock, hours=1))
    assert not Mail.objects.exists()


# --- a day before -----------------------------------------------------------------------------------------------


def test_a_day_before_its_end_owners_are_told_once(alice, isolated, mails, clock, instance):
    assert lifecycle.ends_foretell(clock=near_its_end(clock, hours=24, seconds=1)) == 0
    assert lifecycle.ends_foretell(clock=near_its_end(clock, hours=24)) == 1
    for hours in (24, 12, 1):
        assert lifecycle.ends_foretell(clock=near_its_end(clock, hours=hours)) == 0
    mail = only(mails)
    assert (
        mail["Subject"]
        == f"Instance events ({instance.id}) will be destroyed at {row().destroys_at:%Y-%m-%d %H:%M} UTC"
    )
    assert f"sluice instance restore {instance.id}" in mail.get_content()


def test_a_worker_that_dies_before_it_has_committed_leaves_neither_mail_nor_mark(isolated, mails, clock, monkeypatch):
    near_its_end(clock, hours=3)
    real = owners.owners_write

    def writes_and_dies(**members):
        real(**members)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("controlplane.instances.telling.owners_write", writes_and_dies)
        with pytest.raises(Killed):
            lifecycle.ends_foretell(clock=clock)
    assert (row().end_foretold_at, subjects(mails)) == (None, [])
    assert lifecycle.ends_foretell(clock=clock) == 1
    assert lifecycle.ends_foretell(clock=clock) == 0
    assert len(subjects(mails)) == 1


def test_of_two_workers_that_have_seen_the_same_one_tells(isolated, mails, clock, monkeypatch):
    """The second has read the list before the first has written."""
    near_its_end(clock, hours=3)
    real = lifecycle._end_foretell

    def overtaken(instance_id, at):
        assert real(instance_id, at)
        return real(instance_id, at)

    monkeypatch.setattr(lifecycle, "_end_foretell", overtaken)
    assert lifecycle.ends_foretell(clock=clock) == 0
    assert len(subjects(mails)) == 1


def test_restored_and_isolated_again_it_is_foretold_again(alice, isolated, mails, clock):
    lifecycle.ends_foretell(clock=near_its_end(clock, hours=3))
    run_to_the_end(alice.api.post(f"{isolated}/restore").json()["operation_id"])
    assert lifecycle.ends_foretell(clock=clock) == 0
    alice.api.delete(isolated)
    assert lifecycle.ends_foretell(clock=near_its_end(clock, hours=3)) == 1
    assert sorted(" is isolated " in subject for _, subject in subjects(mails)) == [False, False, True]


def test_with_a_grace_period_of_a_day_the_first_mail_was_that_one(alice, url, mails, clock, settings):
    settings.ENVIRONMENT = type(settings.ENVIRONMENT).read({"SLUICE_DELETION_GRACE_S": "86400"})
    alice.api.delete(url)
    assert lifecycle.ends_foretell(clock=near_its_end(clock, hours=3)) == 0


def test_beat_asks_for_it_before_it_destroys(isolated, clock, monkeypatch):
    from controlplane.instances import tasks

    asked = []
    monkeypatch.setattr(lifecycle, "ends_foretell", lambda: asked.append("foretell"))
    monkeypatch.setattr(lifecycle, "grace_periods_end", lambda: asked.append("end"))
    tasks.grace_periods_end()
    assert asked == ["foretell", "end"]


# --- destroyed --------------------------------------------------------------------------------------------------


def test_when_it_was_destroyed_owners_are_told_once(alice, isolated, mails, clock, instance):
    clock.time = row().destroys_at
    lifecycle.grace_periods_end(clock=clock)
    operation = Operation.objects.unscoped("a test").get(kind="instance.delete")
    assert subjects(mails) == [], "not before it is gone"
    assert run_to_the_end(operation.id, clock).state == "succeeded"
    provisioning.free_addresses(operation)  # a worker that died before it could say that the step was done
    ((to, subject),) = subjects(mails)
    assert (to, subject) == ("alice@example.com", f"Instance events ({instance.id}) was destroyed")


def test_a_worker_that_dies_while_it_writes_that_it_is_gone_leaves_it_to_the_next(
    alice, isolated, mails, clock, monkeypatch
):
    clock.time = row().destroys_at
    lifecycle.grace_periods_end(clock=clock)
    operation = Operation.objects.unscoped("a test").get(kind="instance.delete")
    with monkeypatch.context() as patch:
        patch.setattr(provisioning, "destroyed_tell", dies)
        with pytest.raises(Killed):
            run_to_the_end(operation.id, clock)
    assert (row().state, subjects(mails)) == ("deleting", [])
    clock.advance(3600)
    assert run_to_the_end(operation.id, clock).state == "succeeded"
    assert len(subjects(mails)) == 1


def test_what_never_was_open_is_missed_by_nobody(alice, brokers, mails):
    User.objects.update(email_verified_at=timezone.now())
    brokers.paused.add(1)
    body = {"name": "e", "bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60, "whitelist": []}
    made = alice.api.post(URL, body).json()
    brokers.paused.clear()
    run_to_the_end(alice.api.delete(f"{URL}/{made['id']}").json()["operation_id"])
    assert (row().state, subjects(mails)) == ("deleted", [])


# --- scheduled changes --------------------------------------------------------------------------------------------


@pytest.fixture
def change(url, instance):
    return change_row(instance, changes={"bandwidth_mib_per_s": 20, "partitions": 90})


def due(change, clock, **later):
    clock.time = change.at + timedelta(**later)
    return clock


def ended_change(change, clock):
    scheduling.changes_carry_out(clock=due(change, clock))
    change.refresh_from_db()
    return run_to_the_end(change.operation_id, clock)


def test_when_brokers_have_it_owners_are_told_that_it_was_made(change, mails, clock, instance):
    scheduling.changes_carry_out(clock=due(change, clock))
    assert scheduling.changes_tell(clock=clock) == 0
    change.refresh_from_db()
    run_to_the_end(change.operation_id, clock)
    assert scheduling.changes_tell(clock=clock) == 1
    assert scheduling.changes_tell(clock=clock) == 0
    mail = only(mails)
    assert mail["Subject"] == f"The scheduled change of instance events ({instance.id}) was made"
    assert "20 MiB/s of bandwidth, 90 partitions" in mail.get_content()


def test_when_brokers_do_not_take_it_owners_are_told_so(change, mails, clock, brokers):
    brokers.paused.add(1)
    assert ended_change(change, clock).state == "failed"
    assert scheduling.changes_tell(clock=clock) == 1
    assert only(mails)["Subject"].endswith("is not in force yet")


def test_when_it_is_refused_owners_are_told_why_once(change, mails, clock, monkeypatch):
    monkeypatch.setattr(operations, "MOST_RUNNING", 0)
    for minutes in (10, 59):
        scheduling.changes_carry_out(clock=due(change, clock, minutes=minutes))
    assert subjects(mails) == [], "it is tried again"
    for _ in range(2):
        scheduling.changes_carry_out(clock=due(change, clock, minutes=60))
        scheduling.changes_tell(clock=clock)
    mail = only(mails)
    assert mail["Subject"].endswith("failed")
    assert "The reason: 0 operations are running" in mail.get_content()


def test_why_it_was_refused_is_not_said_to_an_address_that_nobody_confirmed(change, mails, clock, monkeypatch):
    User.objects.update(email_verified_at=None)
    monkeypatch.setattr(operations, "MOST_RUNNING", 0)
    scheduling.changes_carry_out(clock=due(change, clock, minutes=60))
    assert "The reason" not in only(mails).get_content()


def test_a_cancelled_one_is_told_to_nobody(alice, change, url, mails, clock):
    alice.api.delete(f"{url}/scheduled-changes/{change.id}")
    scheduling.changes_carry_out(clock=due(change, clock))
    assert (scheduling.changes_tell(clock=clock), subjects(mails)) == (0, [])


@pytest.mark.parametrize("state", ["deleting", "deleted"])
@pytest.mark.parametrize("made", [True, False])
def test_of_an_instance_that_is_gone_no_sizes_are_told(change, mails, clock, state, made):
    if made:
        ended_change(change, clock)
    Instance.objects.unscoped("a test").update(state=state)
    scheduling.changes_carry_out(clock=due(change, clock))
    scheduling.changes_tell(clock=clock)
    change.refresh_from_db()
    assert (change.state, subjects(mails)) == ("begun" if made else "refused", [])
    assert change.told_at


@pytest.mark.parametrize("refused", [True, False])
def test_a_worker_that_dies_leaves_mail_and_mark_to_the_next(change, mails, clock, monkeypatch, refused):
    if not refused:
        ended_change(change, clock)

    def a_round():
        scheduling.changes_carry_out(clock=due(change, clock, hours=2))
        scheduling.changes_tell(clock=clock)

    monkeypatch.setattr(operations, "MOST_RUNNING", 0 if refused else 20)
    with monkeypatch.context() as patch:
        patch.setattr(ScheduledChange, "save", dies)
        with pytest.raises(Killed):
            a_round()
    assert subjects(mails) == []
    for _ in range(2):
        a_round()
    assert len(subjects(mails)) == 1


def test_of_two_workers_that_have_seen_the_same_change_one_tells(change, mails, clock):
    ended_change(change, clock)
    state = Operation.objects.unscoped("a test").get(pk=change.operation_id).state
    told = [scheduling._tell(change.pk, state, clock) for _ in range(2)]
    assert (told, len(subjects(mails))) == ([True, False], 1)
