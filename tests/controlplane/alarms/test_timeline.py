"""Events of an instance in one order, over pages; and when health came and went."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.alarms.timeline import KINDS, events_get
from controlplane.core.models import Operation
from controlplane.health import services as health
from controlplane.health.models import HealthReason, HealthSpell
from controlplane.instances.models import Instance
from tests.controlplane.test_instances_api import problem

from .rows import alarm_row, event_row

ROWS = "a test"


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/events"


def spell(instance, began, ended=None, code="storage_full"):
    HealthSpell.objects.create(instance=instance.pk, code=code, title="Storage is full", began_at=began, ended_at=ended)


def operation(instance, key, created, finished=None, state="succeeded", **members):
    Operation(
        id=key, organisation=instance.organisation, kind="instance.update", target=instance.pk, state=state,
        runnable_at=created, created_at=created, finished_at=finished, **members,
    ).save(force_insert=True)  # fmt: skip


def test_what_happened_is_listed_the_newest_first(alice, instance, url):
    now = datetime.now(UTC)
    Operation.objects.unscoped(ROWS).all().delete()
    ago = lambda minutes: now - timedelta(minutes=minutes)  # noqa: E731
    spell(instance, ago(50), ago(20))
    operation(instance, "op-000000000001", ago(40), ago(39), actor="bob@example.com")
    operation(instance, "op-000000000002", ago(10), ago(9), state="failed", error="it gave up")
    operation(instance, "op-000000000003", ago(5), state="running")
    alarm = alarm_row(instance)
    event_row(alarm, "fired", ago(45), value=93)
    event_row(alarm, "told", ago(30))
    event_row(alarm, "resolved", ago(15))
    found = alice.api.get(url).json()["items"]
    assert [(each["kind"], each["subject"], each["object"]) for each in found] == [
        ("operation.began", "instance.update", "op-000000000003"),
        ("operation.failed", "instance.update", "op-000000000002"),
        ("operation.began", "instance.update", "op-000000000002"),
        ("alarm.resolved", "storage", alarm.id),
        ("health.ended", "Storage is full", "storage_full"),
        ("operation.succeeded", "instance.update", "op-000000000001"),
        ("operation.began", "instance.update", "op-000000000001"),
        ("alarm.fired", "storage", alarm.id),
        ("health.began", "Storage is full", "storage_full"),
    ]
    assert (found[1]["detail"], found[5]["actor"]) == ("it gave up", "bob@example.com")
    assert {each["kind"] for each in found} == set(KINDS)


def test_what_is_of_another_instance_or_older_than_90_days_is_not(alice, instance, url):
    now = datetime.now(UTC)
    Operation.objects.unscoped(ROWS).all().delete()
    other = Instance.objects.unscoped(ROWS).get()
    other.pk = "ins-00000001"
    other.save(force_insert=True)
    spell(other, now)
    spell(instance, now - timedelta(days=91), now - timedelta(days=90, hours=1))
    assert alice.api.get(url).json() == {"items": [], "next": None}


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
def test_over_pages_nothing_comes_twice_and_nothing_is_left_out(alice, instance, url, limit):
    source = random.Random(7)
    moments = [datetime.now(UTC) - timedelta(hours=each) for each in range(1, 5)]  # few: many events at one moment
    alarms = [alarm_row(instance, f"alm-{number:012}") for number in range(4)]
    for number, alarm in enumerate(alarms):
        for at in moments:
            event_row(alarm, source.choice(["fired", "resolved"]), at)
            spell(instance, at, source.choice([*moments, None]), code=f"code_{number}")
    for number in range(10):
        began = source.choice(moments)
        operation(instance, f"op-{number:012}", began, source.choice(moments))
    whole = events_get(organisation=alice.organisation, instance_id=instance.id, most=1_000)
    assert len({(each.kind, each.place) for each in whole}) == len(whole) > 40
    assert [each.time for each in whole] == sorted((each.time for each in whole), reverse=True)
    found, cursor = [], ""
    while cursor is not None:
        page = alice.api.get(f"{url}?limit={limit}{cursor and '&cursor='}{cursor}").json()
        assert len(page["items"]) <= limit
        found += [(each["time"], each["kind"], each["object"]) for each in page["items"]]
        cursor = page["next"]
    assert [(kind, key) for _, kind, key in found] == [(each.kind, each.object) for each in whole]


@pytest.mark.parametrize(
    "cursor", ["x", "W10", "WyIyMDI2IiwgIjkiLCAiMSJd", "WyIyMDI2IiwgIjAiLCAiYSJd", "WyJub3ciLCAiMCIsICIxIl0"]
)
def test_a_cursor_that_was_not_given_out_is_refused(alice, url, cursor):
    problem(alice.api.get(f"{url}?cursor={cursor}"), 400, "invalid")


# --- health that comes and goes -------------------------------------------------------------------------------------------


def test_a_reason_that_comes_begins_a_spell_and_ends_it_when_it_goes(instance, storage, clock):
    health.health_observe(clock=clock)
    assert not HealthSpell.objects.exists()
    storage.percent = 100
    for _ in range(3):
        clock.advance(5)
        health.health_observe(clock=clock)
    (row,) = HealthSpell.objects.all()
    assert (row.code, row.ended_at) == ("storage_full", None)
    assert row.began_at == HealthReason.objects.get().since
    storage.percent = 10
    clock.advance(5)
    health.health_observe(clock=clock)
    assert HealthSpell.objects.get().ended_at == clock.now()
    storage.percent = 100
    clock.advance(5)
    health.health_observe(clock=clock)
    assert HealthSpell.objects.count() == 2


def test_of_two_workers_that_see_it_first_one_begins_the_spell(instance, storage, clock, monkeypatch):
    storage.percent = 100
    real = health.health_get

    def interrupted(instances, **options):
        found = real(instances, **options)
        if not HealthReason.objects.exists():
            clock.advance(1)
            monkeypatch.setattr(health, "health_get", real)
            health.health_observe(clock=clock)
        return found

    monkeypatch.setattr(health, "health_get", interrupted)
    health.health_observe(clock=clock)
    assert HealthSpell.objects.count() == 1
    assert HealthSpell.objects.get().began_at == HealthReason.objects.get().since


def test_an_instance_that_runs_no_more_ends_its_spells(instance, storage, clock):
    storage.percent = 100
    health.health_observe(clock=clock)
    Instance.objects.unscoped(ROWS).update(state="deleting")
    clock.advance(5)
    health.health_observe(clock=clock)
    assert HealthSpell.objects.get().ended_at == clock.now()
