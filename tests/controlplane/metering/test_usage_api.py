"""Usage by REST: the fixed row, the way from a row to its records, whose it is, and what is not a date."""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime

import pytest
from django.conf import settings

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.metering.models import PipelineStatus, Progress
from tests.controlplane.test_instances_api import problem

DAY = "from=2026-05-01T00:00:00Z&to=2026-05-02"


def url(instance, rest: str = "", query: str = DAY) -> str:
    return f"/api/v1/instances/{instance.id}/usage{rest}?{query}"


def test_rows_are_hours_with_the_fixed_fields(alice, usage):
    answer = alice.api.get(url(usage))
    assert answer.status_code == 200
    body = answer.json()
    assert body["next"] is None
    fixed = ("hour", "produced_bytes", "consumed_bytes", "stored_byte_hours")
    assert [tuple(row[name] for name in fixed) for row in body["items"]] == [
        ("2026-05-01T10:00:00Z", 1000, 10, 2),
        ("2026-05-01T11:00:00Z", 900, 0, 1),
    ]


def test_each_row_leads_to_its_records_with_partition_and_offset(alice, usage):
    row = alice.api.get(url(usage)).json()["items"][1]
    records = alice.api.get(row["records"]).json()["items"]
    about = ("broker", "boot", "produced_bytes", "produced_bytes_since_boot", "partition", "offset")
    assert [tuple(record[name] for name in about) for record in records] == [
        (1, "b1", 500, 1500, 3, 9),
        (2, "b2", 400, 400, 5, 7),
    ]
    assert sum(record["produced_bytes"] for record in records) == row["produced_bytes"]


@pytest.mark.parametrize("rest", ["", "/records"])
def test_another_organisations_usage_does_not_exist(charlie, usage, rest):
    problem(charlie.api.get(url(usage, rest)), 404, "not_found")


def test_the_team_sees_it_too(bob, usage):
    assert len(bob.api.get(url(usage)).json()["items"]) == 2


@pytest.mark.parametrize(
    ("query", "hours"),
    [
        ("from=2026-05-01T10:00:00Z&to=2026-05-01T11:00:00Z", [10]),
        ("from=2026-05-01T10:59:00Z&to=2026-05-01T11:00:01Z", [10, 11]),
        ("from=2026-05-01T19:00:00%2B08:00&to=2026-05-01T20:00:00+08:00", [11]),
        ("from=2026-05-01T11:00:00&to=2026-05-01T12:00:00", [11]),
        ("from=2026-05-02&to=2026-05-03", []),
        ("from=0001-01-01&to=9999-12-31T23:59:59Z", [10, 11]),
    ],
)
def test_a_range_takes_the_hours_that_begin_in_it(alice, usage, query, hours):
    items = alice.api.get(url(usage, query=query)).json()["items"]
    assert [int(item["hour"][11:13]) for item in items] == hours


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=yesterday", "from"), ("to=2026-13-01", "to"), ("from=", "from"), ("from=2026-05-02&to=2026-05-01", "from"),
        ("from=0001-01-01T00:00:00%2B14:00", "from"), ("limit=0", "limit"), ("cursor=x", "cursor"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rest", ["", "/records"])
def test_what_is_no_date_is_refused_by_name(alice, usage, query, field, rest):
    body = problem(alice.api.get(url(usage, rest, query)), 400, "invalid")
    assert [error["field"] for error in body["errors"]] == [field]


def test_both_ends_that_are_no_dates_are_said_at_once(alice, usage):
    body = problem(alice.api.get(url(usage, "", "from=x&to=y")), 400, "invalid")
    assert [error["field"] for error in body["errors"]] == ["from", "to"]


def test_without_a_range_it_is_this_month_so_far(alice, usage, monkeypatch):
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: datetime(2026, 5, 1, 11, 30, tzinfo=UTC))
    items = alice.api.get(f"/api/v1/instances/{usage.id}/usage").json()["items"]
    assert [item["hour"] for item in items] == ["2026-05-01T10:00:00Z", "2026-05-01T11:00:00Z"]


def test_pages_follow_each_other(alice, usage):
    first = alice.api.get(url(usage, query=f"{DAY}&limit=1")).json()
    second = alice.api.get(url(usage, query=f"{DAY}&limit=1&cursor={first['next']}")).json()
    assert [item["hour"][11:13] for item in first["items"] + second["items"]] == ["10", "11"]
    assert second["next"] is None


def test_a_row_costs_no_query_of_its_own(alice, usage, django_assert_max_num_queries):
    with django_assert_max_num_queries(10):
        alice.api.get(url(usage))


class TestHowTheMeterIs:
    """GET /api/v1/metering."""

    def status(self, alice) -> tuple[str, str]:
        body = alice.api.get("/api/v1/metering").json()
        return body["state"], body["reason"]

    def row(self, *, age_s: float = 0, problem: str = "", moved_s: float = 0) -> None:
        now_ms = int(time.time() * 1000)
        PipelineStatus.objects.create(
            id=1, query="q", batch=3, records=7, bad_records=1, last_record_at_ms=now_ms, started_at_ms=now_ms,
            seen_at_ms=now_ms - int(age_s * 1000), problem=problem, moved_at_ms=now_ms - int(moved_s * 1000),
        )  # fmt: skip

    def test_starting_before_its_first_sign_of_life(self, alice):
        assert self.status(alice)[0] == "starting"

    def test_stalled_where_no_query_ever_began(self, alice):
        self.row()
        before_ms = int(time.time() * 1000) - 130_000
        PipelineStatus.objects.update(moved_at_ms=None, started_at_ms=before_ms)
        assert self.status(alice) == ("stalled", "no batch has ended for 2 minutes")
        PipelineStatus.objects.update(started_at_ms=before_ms + 60_000)
        assert self.status(alice)[0] == "running"

    def test_running_while_it_gives_signs_of_life(self, alice):
        self.row()
        assert self.status(alice) == ("running", "")
        assert alice.api.get("/api/v1/metering").json()["last_record_at"] is not None

    def test_silent_after_a_minute_without(self, alice):
        self.row(age_s=61)
        assert self.status(alice)[0] == "silent"

    def test_stalled_where_it_lives_and_no_batch_has_ended_for_two_minutes(self, alice):
        self.row(moved_s=119)
        assert self.status(alice)[0] == "running"
        PipelineStatus.objects.all().delete()
        self.row(moved_s=190)
        assert self.status(alice) == ("stalled", "no batch has ended for 3 minutes")

    def test_up_to_when_usage_is_complete(self, alice):
        self.row()
        assert alice.api.get("/api/v1/metering").json()["complete_to"] is None
        Progress.objects.create(
            partition=0, topic_id="t", next_offset=1, end_offset=1, looked_at_ms=0, complete_to_ms=1_777_629_600_000
        )
        assert alice.api.get("/api/v1/metering").json()["complete_to"] == "2026-05-01T10:00:00Z"

    def test_failing_with_its_reason(self, alice):
        self.row(problem="the topic is not there")
        assert self.status(alice) == ("failing", "the topic is not there")

    def test_absent_with_the_sentence_of_make_up(self, alice, monkeypatch):
        absent = dataclasses.replace(settings.ENVIRONMENT, metering_absent="metering needs Java")
        monkeypatch.setattr(settings, "ENVIRONMENT", absent)
        assert self.status(alice) == ("absent", "metering needs Java")
