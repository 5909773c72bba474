"""Maintenance windows: when in a week they are open, who sets them, and what waits for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.admission import scheduling
from controlplane.admission.models import ScheduledChange
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.instances.models import Instance
from controlplane.instances.windows import DAYS, begins_next, hours_text, is_open, window_problem

from .conftest import WANTED, run_to_the_end
from .test_instances_api import URL, problem

SUNDAY = {"day": "sunday", "hour_utc": 3, "length_hours": 2}
windows = st.fixed_dictionaries(
    {"day": st.sampled_from(DAYS), "hour_utc": st.integers(0, 23), "length_hours": st.integers(1, 24)}
)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # naive bounds are Hypothesis's


@pytest.fixture
def url(instance):
    return f"{URL}/{instance.id}"


def row():
    return Instance.objects.unscoped("a test").get()


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- pure -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "is_it"),
    [  # 2026-11-29 is a Sunday
        ("2026-11-29T02:59:59", False),
        ("2026-11-29T03:00", True),
        ("2026-11-29T04:59:59", True),
        ("2026-11-29T05:00", False),
        ("2026-11-28T03:30", False),
    ],
)
def test_it_is_open_from_its_beginning_to_its_end(moment, is_it):
    assert is_open(SUNDAY, at(moment)) is is_it


def test_it_goes_on_into_the_next_week():
    late = {"day": "sunday", "hour_utc": 23, "length_hours": 3}
    assert is_open(late, at("2026-11-30T01:59"))
    assert not is_open(late, at("2026-11-30T02:00"))
    assert hours_text(late) == "23:00-02:00"


def test_without_one_nothing_is_held_up():
    assert is_open(None, at("2026-11-28T03:30"))


@given(window=windows, moment=moments)
def test_the_next_beginning_is_within_a_week_and_it_is_open_then_and_not_just_before(window, moment):
    begins = begins_next(window, moment)
    assert moment < begins <= moment + timedelta(days=7)
    assert (DAYS[begins.weekday()], begins.hour) == (window["day"], window["hour_utc"])
    assert (begins.minute, begins.second, begins.microsecond) == (0, 0, 0)
    assert is_open(window, begins)
    assert not is_open(window, begins - timedelta(microseconds=1))


@given(window=windows, moment=moments)
def test_of_a_week_it_is_open_for_its_length(window, moment):
    hour = moment.replace(minute=30)
    assert sum(is_open(window, hour + timedelta(hours=each)) for each in range(168)) == window["length_hours"]


@given(window=windows)
def test_what_is_a_window_is_none_of_the_problems(window):
    assert window_problem(window) is None


# --- set and shown ----------------------------------------------------------------------------------------------------


def test_it_is_set_shown_and_taken_away(alice, url):
    assert alice.api.get(url).json()["maintenance_window"] is None
    run_to_the_end(alice.api.patch(url, {"maintenance_window": SUNDAY}).json()["operation_id"])
    assert alice.api.get(url).json()["maintenance_window"] == SUNDAY
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="instance.update")
    assert entry.detail == {"maintenance_window": {"from": None, "to": SUNDAY}}
    assert alice.api.patch(url, {"maintenance_window": None}).status_code == 202
    assert alice.api.get(url).json()["maintenance_window"] is None


def test_an_instance_can_begin_with_one(alice, brokers):
    made = alice.api.post(URL, {**WANTED, "maintenance_window": SUNDAY}).json()
    assert alice.api.get(f"{URL}/{made['id']}").json()["maintenance_window"] == SUNDAY


@pytest.mark.parametrize(
    "wrong",
    [
        {"day": "someday"},
        {"hour_utc": 24},
        {"hour_utc": -1},
        {"hour_utc": "3"},
        {"hour_utc": True},
        {"length_hours": 0},
        {"length_hours": 25},
        {"zone": "Europe/Berlin"},
    ],
)
def test_what_is_no_window_is_refused_and_nothing_is_changed(alice, url, wrong):
    body = problem(alice.api.patch(url, {"maintenance_window": SUNDAY | wrong}), 400, "invalid")
    assert body["errors"][0]["field"].startswith("maintenance_window")
    assert window_problem(SUNDAY | wrong)
    assert row().maintenance_window is None


def test_a_part_of_one_is_refused(alice, url):
    problem(alice.api.patch(url, {"maintenance_window": {"day": "sunday"}}), 400, "invalid")


def test_a_dry_run_says_what_would_change(alice, url):
    said = alice.api.patch(f"{url}?dry_run=true", {"maintenance_window": SUNDAY}).json()
    assert said["changes"] == {"maintenance_window": [None, SUNDAY]}
    assert row().maintenance_window is None


def test_a_viewer_sees_it_and_a_stranger_does_not(alice, viewer, charlie, url):
    alice.api.patch(url, {"maintenance_window": SUNDAY})
    assert viewer.api.get(url).json()["maintenance_window"] == SUNDAY
    problem(viewer.api.patch(url, {"maintenance_window": None}), 403, "forbidden")
    problem(charlie.api.patch(url, {"maintenance_window": None}), 404, "not_found")


# --- sizes in the next window -----------------------------------------------------------------------------------------

IN_WINDOW = {"in_next_window": True, "bandwidth_mib_per_s": 20}


def test_sizes_are_changed_when_it_opens_next(alice, url):
    alice.api.patch(url, {"maintenance_window": SUNDAY})
    made = alice.api.post(f"{url}/scheduled-changes", IN_WINDOW)
    assert made.status_code == 201, made.content
    change = ScheduledChange.objects.unscoped("a test").get()
    assert change.at == begins_next(SUNDAY, SYSTEM_CLOCK.now())
    assert change.changes == {"bandwidth_mib_per_s": 20}
    assert alice.api.post(f"{url}/scheduled-changes", IN_WINDOW).json() == made.json(), "asked twice it is one"


def test_when_workers_are_late_it_waits_for_the_next_opening(alice, url, clock):
    alice.api.patch(url, {"maintenance_window": SUNDAY})
    alice.api.post(f"{url}/scheduled-changes", IN_WINDOW)
    opens = begins_next(SUNDAY, SYSTEM_CLOCK.now())
    for clock.time in (opens + timedelta(hours=6), opens + timedelta(days=6)):
        assert scheduling.changes_carry_out(clock=clock) == 0
    change = ScheduledChange.objects.unscoped("a test").get()
    assert (change.state, change.at, row().bandwidth_mib_per_s) == ("waiting", opens + timedelta(days=7), 5)
    clock.time = change.at + timedelta(hours=1)
    assert scheduling.changes_carry_out(clock=clock) == 1
    assert row().bandwidth_mib_per_s == 20


def test_late_but_within_the_window_it_is_made(alice, url, clock):
    alice.api.patch(url, {"maintenance_window": SUNDAY})
    alice.api.post(f"{url}/scheduled-changes", IN_WINDOW)
    clock.time = begins_next(SUNDAY, SYSTEM_CLOCK.now()) + timedelta(minutes=119)
    assert scheduling.changes_carry_out(clock=clock) == 1


def test_without_a_window_there_is_no_next_one(alice, url):
    for dry_run in ("", "?dry_run=true"):
        refused = problem(alice.api.post(f"{url}/scheduled-changes{dry_run}", IN_WINDOW), 409, "no_maintenance_window")
        assert "give it one" in refused["detail"]


@pytest.mark.parametrize(
    "moment", [{}, {"in_next_window": False}, {"at": "2099-01-01T00:00:00Z", "in_next_window": True}]
)
def test_it_is_one_moment_and_no_other(alice, url, moment):
    alice.api.patch(url, {"maintenance_window": SUNDAY})
    body = problem(alice.api.post(f"{url}/scheduled-changes", {"partitions": 90, **moment}), 400, "invalid")
    assert [each["field"] for each in body["errors"]] == ["at"]


def test_a_stranger_learns_of_no_window(charlie, url):
    problem(charlie.api.post(f"{url}/scheduled-changes", IN_WINDOW), 404, "not_found")
