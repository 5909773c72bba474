"""Sizes that are changed later: judged when they are scheduled and at their time, made once, cancelled before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.admission import purchases, scheduling
from controlplane.admission.models import ScheduledChange
from controlplane.core import operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ConcurrentChange
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances.models import Instance, SpecChange
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.test_instances_api import URL, problem

from .rows import change_row

GIB = 2**30


@pytest.fixture
def url(instance):
    return f"{URL}/{instance.id}/scheduled-changes"


def at(**later):
    return f"{SYSTEM_CLOCK.now() + timedelta(**later):%Y-%m-%dT%H:%M:%SZ}"


def wanted(**members):
    return {"at": at(days=3), "bandwidth_mib_per_s": 20, **members}


def row():
    return Instance.objects.unscoped("a test").get()


def change():
    return ScheduledChange.objects.unscoped("a test").get()


def due(clock, **later):
    clock.time = change().at + timedelta(**later)
    return clock


def test_it_is_listed_and_nothing_is_changed_yet(alice, bob, url, instance):
    asked = wanted(partitions=90)
    made = alice.api.post(url, asked)
    assert made.status_code == 201
    body = made.json()
    assert {name: body[name] for name in asked} == asked
    assert (body["state"], body["storage_gib"], body["operation_id"], body["problem"]) == ("waiting", None, None, None)
    assert (body["actor"], body["ended_at"]) == ("alice@example.com", None)
    assert bob.api.get(url).json() == {"items": [body], "next": None}
    assert bob.api.get(f"{url}/{body['id']}").json() == body
    assert (row().bandwidth_mib_per_s, row().partitions) == (5, 60)
    assert not Operation.objects.unscoped("a test").filter(kind="instance.update").exists()
    assert SpecChange.objects.unscoped("a test").count() == 1
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="instance.schedule")
    assert entry.detail["partitions"] == 90


def test_at_its_time_it_is_made_by_who_asked_for_it(alice, url, clock):
    alice.api.post(url, wanted())
    assert scheduling.changes_carry_out(clock=due(clock, seconds=-1)) == 0
    assert scheduling.changes_carry_out(clock=due(clock)) == 1
    assert scheduling.changes_carry_out(clock=clock) == 0
    operation = Operation.objects.unscoped("a test").get(kind="instance.update")
    assert (change().state, change().operation_id, operation.actor) == ("begun", operation.id, "alice@example.com")
    assert run_to_the_end(operation.id, clock).state == "succeeded"
    assert row().bandwidth_mib_per_s == 20
    assert alice.api.get(url).json()["items"][0]["operation_id"] == operation.id
    resized = SpecChange.objects.unscoped("a test").get(kind="resized")
    assert (resized.at, resized.bandwidth_mib_per_s) == (clock.time, 20)


def test_cancelled_it_is_not_made(alice, url, clock):
    made = alice.api.post(url, wanted()).json()
    for _ in range(2):
        assert alice.api.delete(f"{url}/{made['id']}").status_code == 204
    assert scheduling.changes_carry_out(clock=due(clock)) == 0
    shown = alice.api.get(url).json()["items"][0]
    assert (shown["state"], row().bandwidth_mib_per_s) == ("cancelled", 5)
    assert shown["ended_at"]
    assert AuditEntry.objects.for_organisation(alice.organisation).filter(action="instance.unschedule").count() == 1


def test_what_was_made_is_not_cancelled(alice, url, clock):
    made = alice.api.post(url, wanted()).json()
    scheduling.changes_carry_out(clock=due(clock))
    refused = problem(alice.api.delete(f"{url}/{made['id']}"), 409, "change_not_waiting")
    assert refused["detail"] == "the change was begun already"


def test_asked_twice_it_is_one(alice, url):
    asked = wanted()
    first, second = (alice.api.post(url, asked).json() for _ in range(2))
    assert first == second
    assert len(alice.api.get(url).json()["items"]) == 1
    assert alice.api.post(url, asked | {"partitions": 90}).json()["id"] != first["id"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"at": at(seconds=-5)}, "at"),
        ({"at": at(days=31)}, "at"),
        ({"at": "tomorrow"}, "at"),
        ({"at": None}, "at"),
        ({"bandwidth_mib_per_s": 0}, "bandwidth_mib_per_s"),
        ({"name": "other"}, "name"),
    ],
)
def test_what_is_wrong_is_named(alice, url, asked, field):
    body = problem(alice.api.post(url, wanted(**asked)), 400, "invalid")
    assert [each["field"] for each in body["errors"]] == [field]
    assert not ScheduledChange.objects.unscoped("a test").exists()


def test_a_moment_without_sizes_is_no_change(alice, url):
    body = problem(alice.api.post(url, {"at": at(days=1), "confirm_price": True}), 400, "invalid")
    assert [each["field"] for each in body["errors"]] == ["at"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"bandwidth_mib_per_s": 401, "confirm_price": True}, "organisation_cap"),
        ({"bandwidth_mib_per_s": 240, "storage_gib": 1000, "partitions": 1700}, "price_unconfirmed"),
        ({"storage_gib": 5}, "storage_below_use"),
    ],
)
def test_what_could_not_be_done_now_is_refused_at_once(alice, url, flow_master, instance, asked, code):
    flow_master.answers[instance.id] = {"storage_used_bytes": 6 * GIB, "storage_full": False}
    problem(alice.api.post(url, wanted(**asked)), 409, code)
    assert not ScheduledChange.objects.unscoped("a test").exists()


def test_it_is_judged_again_at_its_time(alice, url, clock, flow_master, instance):
    alice.api.post(url, wanted(storage_gib=5))
    flow_master.answers[instance.id] = {"storage_used_bytes": 6 * GIB, "storage_full": False}
    assert scheduling.changes_carry_out(clock=due(clock)) == 0
    assert change().state == "refused"
    assert "6 GiB are used" in alice.api.get(url).json()["items"][0]["problem"]
    assert (row().storage_gib, row().bandwidth_mib_per_s) == (10, 5), "nothing of it"
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="instance.schedule.refuse")
    assert entry.actor == "system"


def test_a_word_that_was_said_holds_at_its_time(alice, url, clock, flow_master, instance):
    flow_master.answers[instance.id] = {"storage_used_bytes": 6 * GIB, "storage_full": False}
    assert alice.api.post(url, wanted(storage_gib=5, accept_full_storage=True)).status_code == 201
    assert scheduling.changes_carry_out(clock=due(clock)) == 1
    assert row().storage_gib == 5


def test_what_may_pass_is_tried_again_for_an_hour(alice, url, clock, monkeypatch):
    alice.api.post(url, wanted())

    def busy(**_members):
        raise ConcurrentChange("the instance is being changed by others; try again")

    monkeypatch.setattr(purchases, "instance_change", busy)
    assert scheduling.changes_carry_out(clock=due(clock)) == 0
    assert (change().state, change().problem) == ("waiting", "the instance is being changed by others; try again")
    monkeypatch.undo()
    assert scheduling.changes_carry_out(clock=due(clock, minutes=59)) == 1
    assert (change().state, change().problem) == ("begun", "")


def test_and_is_refused_after_that(alice, url, clock, monkeypatch):
    alice.api.post(url, wanted())
    monkeypatch.setattr(operations, "MOST_RUNNING", 0)
    scheduling.changes_carry_out(clock=due(clock, minutes=59))
    assert change().state == "waiting"
    scheduling.changes_carry_out(clock=due(clock, minutes=60))
    assert (change().state, row().bandwidth_mib_per_s) == ("refused", 5)


@pytest.mark.parametrize("state", ["isolated", "deleting", "deleted"])
def test_an_instance_that_is_gone_is_not_changed(alice, url, clock, state):
    alice.api.post(url, wanted())
    Instance.objects.unscoped("a test").update(state=state)
    assert scheduling.changes_carry_out(clock=due(clock)) == 0
    assert (change().state, row().bandwidth_mib_per_s) == ("refused", 5)


def test_one_that_fails_is_no_obstacle_to_the_next(alice, url, clock, monkeypatch):
    alice.api.post(url, wanted(at=at(days=1), partitions=90))
    alice.api.post(url, wanted(at=at(days=2)))
    real = purchases.instance_change

    def ill(*, changes, **members):
        if "partitions" in changes:
            raise ValueError("not foreseen")
        return real(changes=changes, **members)

    monkeypatch.setattr(purchases, "instance_change", ill)
    clock.time = SYSTEM_CLOCK.now() + timedelta(days=3)
    assert scheduling.changes_carry_out(clock=clock) == 1
    states = ScheduledChange.objects.unscoped("a test").order_by("at").values_list("state", flat=True)
    assert list(states) == ["waiting", "begun"]


class Killed(BaseException):
    """SIGKILL."""


def test_a_worker_that_dies_between_the_change_and_its_note_leaves_neither(alice, url, clock, monkeypatch):
    alice.api.post(url, wanted())

    def dies(*_):
        raise Killed

    monkeypatch.setattr(scheduling, "_end", dies)
    with pytest.raises(Killed):
        scheduling.changes_carry_out(clock=due(clock))
    assert (change().state, row().bandwidth_mib_per_s) == ("waiting", 5)
    monkeypatch.undo()
    assert scheduling.changes_carry_out(clock=clock) == 1
    assert Operation.objects.unscoped("a test").filter(kind="instance.update").count() == 1


def test_so_many_wait_and_no_more(alice, url, instance):
    for number in range(scheduling.MOST_WAITING):
        change_row(instance, f"chg-{number:012}")
    problem(alice.api.post(url, wanted()), 409, "too_many_scheduled")
    assert alice.api.delete(f"{url}/chg-000000000007").status_code == 204
    assert alice.api.post(url, wanted()).status_code == 201


def test_a_dry_run_says_what_would_change_and_keeps_nothing(alice, url):
    said = alice.api.post(f"{url}?dry_run=true", wanted()).json()
    assert said["changes"] == {"bandwidth_mib_per_s": [5, 20]}
    assert alice.api.get(url).json()["items"] == []
    problem(alice.api.post(f"{url}?dry_run=true", wanted(at=at(days=31))), 400, "invalid")


def test_a_viewer_looks_and_a_stranger_finds_nothing(alice, viewer, charlie, url):
    made = alice.api.post(url, wanted()).json()
    assert viewer.api.get(url).json()["items"] == [made]
    problem(viewer.api.delete(f"{url}/{made['id']}"), 403, "forbidden")
    problem(viewer.api.post(url, wanted()), 403, "forbidden")
    for method in ("get", "delete"):
        problem(getattr(charlie.api, method)(f"{url}/{made['id']}"), 404, "not_found")
    problem(charlie.api.post(url, wanted()), 404, "not_found")
    assert change().state == "waiting"


def test_a_moment_of_another_zone_is_the_same_moment(alice, url):
    moment = (SYSTEM_CLOCK.now() + timedelta(days=2)).astimezone(UTC).replace(microsecond=0)
    there = (moment + timedelta(hours=5)).replace(tzinfo=None).isoformat() + "+05:00"
    made = alice.api.post(url, wanted(at=there)).json()
    assert datetime.fromisoformat(made["at"]) == moment
