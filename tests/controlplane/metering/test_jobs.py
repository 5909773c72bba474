"""Jobs of the pipeline as operators see them, by REST, in the console and in metrics."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import Client

from controlplane.accounts import services as accounts
from controlplane.accounts.models import User
from controlplane.core.errors import Invalid
from controlplane.metering import jobs
from controlplane.metering.metrics import jobs_text
from controlplane.metering.models import JobRun
from controlplane.metering.pipeline.schedule import JOBS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
REPORT = "/api/v1/jobs/quota_report/runs"


class Clock:
    def now(self) -> datetime:
        return NOON


@pytest.fixture
def as_operator(charlie):
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    return charlie.api


@pytest.fixture
def operator(db):
    user, _ = accounts.admin_ensure(email="admin@example.com", password="x")
    client = Client()
    client.force_login(user)
    return client


def ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def ran(
    job: str = "quota_report", state: str = "succeeded", *, begun: datetime, took_s: float = 90, **members
) -> JobRun:
    what = {
        "asked_at_ms": ms(begun), "started_at_ms": ms(begun), "seen_at_ms": ms(begun + timedelta(seconds=took_s)),
        "ended_at_ms": None if state == "running" else ms(begun + timedelta(seconds=took_s)), "row_count": 6000,
    }  # fmt: skip
    return JobRun.objects.create(job=job, state=state, **what | members)


def listed() -> dict[str, jobs.JobShown]:
    return {each.name: each for each in jobs.job_list(clock=Clock())}


def test_before_anything_ran_the_daily_job_is_due(db):
    found = listed()
    assert {name: each.state for name, each in found.items()} == dict.fromkeys(JOBS, "never")
    assert found["quota_report"].next_at == datetime(2026, 11, 21, 0, 10, tzinfo=UTC)
    assert found["usage"].next_at is None


def test_a_job_shows_its_last_run_its_next_and_how_far_it_is_behind(db):
    midnight = datetime(2026, 11, 21, tzinfo=UTC)
    ran(begun=midnight - timedelta(hours=20), done_to_ms=ms(midnight - timedelta(days=1)))
    ran(begun=midnight + timedelta(minutes=10), state="failed", reason="ValueError: no")
    ran(
        "usage",
        "running",
        begun=NOON - timedelta(hours=3),
        took_s=3 * 3600 - 5,
        done_to_ms=ms(NOON - timedelta(seconds=8)),
    )
    ran("runner", "running", begun=NOON - timedelta(hours=3), took_s=60)
    found = listed()
    report, usage, runner = found["quota_report"], found["usage"], found["runner"]
    assert (report.state, report.failures, report.lag_s) == ("failed", 1, 86_400)
    assert report.next_at == midnight + timedelta(minutes=10, seconds=90) + timedelta(minutes=15)
    assert report.succeeded is not None
    assert report.succeeded.duration_s == 90
    assert (usage.state, usage.lag_s, usage.last.duration_s) == ("running", 8, 3 * 3600)
    assert (runner.state, runner.last.duration_s) == ("died", 60)
    text = jobs_text(jobs.job_list(clock=Clock()), now=NOON)
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples['sluice_job_lag_seconds{job="quota_report"}'] == "86400.0"
    assert samples['sluice_job_running{job="usage"}'] == "1"
    assert samples['sluice_job_running{job="runner"}'] == "0"
    assert samples['sluice_job_failures{job="quota_report"}'] == "1"
    assert float(samples['sluice_job_last_success_age_seconds{job="quota_report"}']) == 32 * 3600 - 90
    assert samples['sluice_job_last_rows{job="quota_report"}'] == "6000"
    typed = re.findall(r"^# TYPE (\S+) gauge$", text, re.MULTILINE)
    assert len(typed) == len(set(typed))
    assert {name.partition("{")[0] for name in samples} == set(typed)


def test_how_far_a_job_has_come_and_when_it_succeeded_last_is_known_however_often_it_has_failed_since(db):
    midnight = datetime(2026, 11, 21, tzinfo=UTC)
    ran(begun=midnight - timedelta(days=9), done_to_ms=ms(midnight - timedelta(days=10)))
    for hours in range(jobs.LOOKED_AT + 5):
        ran(begun=midnight - timedelta(days=8) + timedelta(hours=hours), state="failed")
    report = listed()["quota_report"]
    assert report.succeeded is not None
    assert (report.failures, report.lag_s) == (jobs.LOOKED_AT, 10 * 86_400)


def test_a_clock_that_was_ahead_is_not_believed(db):
    tomorrow = NOON + timedelta(days=1)
    ran(begun=NOON - timedelta(hours=11), done_to_ms=ms(NOON - timedelta(hours=36)))
    ran(begun=tomorrow, done_to_ms=ms(tomorrow))
    ran("runner", "running", begun=NOON - timedelta(hours=1), took_s=86_400)
    found = listed()
    assert (found["quota_report"].lag_s, found["runner"].state) == (24 * 3600, "died")
    assert found["runner"].last.duration_s == 3600
    assert found["quota_report"].next_at == NOON - timedelta(hours=11) + timedelta(seconds=90, minutes=15)


def test_a_stream_that_runs_has_no_failures_behind_it(db):
    for hours in (3, 2):
        ran("usage", "failed", begun=NOON - timedelta(hours=hours))
    assert listed()["usage"].failures == 2
    ran("usage", "running", begun=NOON - timedelta(minutes=1), took_s=55)
    assert listed()["usage"].failures == 0


def today() -> date:
    return datetime.now(UTC).date()


def test_operators_ask_for_a_run_once_and_of_a_day_that_is_over(as_operator):
    yesterday = today() - timedelta(days=1)
    answer = as_operator.post(REPORT, {"what": yesterday.isoformat()})
    assert answer.status_code == 201, answer.content
    assert (answer.json()["state"], answer.json()["asked_by"]) == ("waiting", JobRun.objects.get().asked_by)
    assert JobRun.objects.get().asked_by
    assert as_operator.post(REPORT, {"what": f"{yesterday:%Y%m%d}"}).status_code == 409
    assert as_operator.post(REPORT, {}).status_code == 201
    assert as_operator.post(REPORT, {}).status_code == 409
    for wrong in ({"what": "2999-01-01"}, {"what": "yesterday"}, {"day": yesterday.isoformat()}):
        assert as_operator.post(REPORT, wrong).status_code == 400
    for name in ("usage", "nothing"):
        assert as_operator.post(f"/api/v1/jobs/{name}/runs", {}).status_code == 404
    found = {row["name"]: row for row in as_operator.get("/api/v1/jobs").json()["items"]}
    assert found["quota_report"]["waiting"] == 2
    assert (found["quota_report"]["kind"], found["usage"]["kind"]) == ("daily", "stream")


def test_runs_are_read_page_by_page_the_newest_first(as_operator):
    made = [ran(begun=NOON - timedelta(days=days)) for days in range(3, 0, -1)]
    ran("usage", begun=NOON)
    found, cursor = [], ""
    while cursor is not None:
        page = as_operator.get(f"{REPORT}?limit=2{cursor and f'&cursor={cursor}'}").json()
        found += [row["id"] for row in page["items"]]
        cursor = page["next"]
    assert found == [row.pk for row in reversed(made)]
    for name in ("nothing", "%00"):
        assert as_operator.get(f"/api/v1/jobs/{name}/runs").status_code == 404


def test_a_tenant_sees_and_runs_none(alice):
    for answer in (alice.api.get("/api/v1/jobs"), alice.api.get(REPORT), alice.api.post(REPORT, {})):
        assert answer.status_code == 403
    assert not JobRun.objects.exists()


def test_a_day_whose_minutes_are_gone_is_not_made_again(db):
    """They are kept for 15 days, the report for 400: made again it would be empty."""
    last = jobs.job_run(job="quota_report", what="2026-11-07", actor="a", clock=Clock())
    assert last.what == "2026-11-07"
    for what in ("2026-11-06", "2020-01-01", "2026-11-21"):
        with pytest.raises(Invalid, match="must be one of the last 14 days"):
            jobs.job_run(job="quota_report", what=what, actor="a", clock=Clock())
    old = ran(begun=NOON - timedelta(days=20), what="2026-10-31", state="failed")
    new = ran(begun=NOON - timedelta(days=1), what="2026-11-19")
    many = ran(begun=NOON - timedelta(days=1), what="2026-11-18 2026-11-19")
    due, stream = ran(begun=NOON), ran("usage", begun=NOON)
    waits = ran(begun=NOON, state="waiting", ended_at_ms=None)
    again = {
        row.pk: jobs.can_be_run_again(jobs.run_shown(row, NOON), NOON) for row in (old, new, many, due, stream, waits)
    }
    assert [pk for pk, is_again in again.items() if is_again] == [new.pk, due.pk]


def test_the_page_shows_jobs_and_runs_and_its_buttons_run_one_again(operator):
    yesterday = (today() - timedelta(days=1)).isoformat()
    ran(begun=NOON, state="failed", what=yesterday, reason="the database is away")
    page = operator.get("/fleet/jobs").content.decode()
    assert "The database is away." in page
    assert f'name="what" value="{yesterday}"' in page
    assert "The runner gives no sign of life" in page
    assert "Nothing has run yet" in operator.get("/fleet/jobs?job=usage").content.decode()
    assert operator.get("/fleet/jobs?job=nothing").status_code == 404
    answer = operator.post("/fleet/jobs", {"job": "quota_report", "what": yesterday}, follow=True).content.decode()
    assert f"Quota report of {yesterday} is asked for: it runs as soon as the runner is free." in answer
    row = JobRun.objects.get(state="waiting")
    assert (row.what, row.asked_by) == (yesterday, "admin@example.com")
    again = operator.post("/fleet/jobs", {"job": "quota_report", "what": yesterday}, follow=True).content.decode()
    assert "waits to be started already" in again
    for what, words in (
        ("soon", "it must be a day such as 2026-11-21."),
        ("2020-01-01", "it must be one of the last 14 days."),
    ):
        wrong = operator.post("/fleet/jobs", {"job": "quota_report", "what": what}, follow=True).content.decode()
        assert f"Say which day: {words}" in wrong
    assert operator.post("/fleet/jobs", {"job": "usage"}).status_code == 404
    ran("runner", "running", begun=datetime.now(UTC), took_s=0)
    assert "The runner gives no sign of life" not in operator.get("/fleet/jobs").content.decode()


def test_a_stream_is_stopped_and_nobodys_schedule_asks_for_it(operator):
    ran("usage", begun=NOON)
    page = operator.get("/fleet/jobs?job=usage").content.decode()
    assert "Stopped" in page
    assert "Succeeded" not in page
    assert "Schedule" not in page
    ran(begun=NOON)
    page = operator.get("/fleet/jobs?job=quota_report").content.decode()
    assert page.count("Succeeded") == 2  # of the job, and of its run
    assert "Schedule" in page


def test_where_no_jobs_run_the_page_says_why_and_blames_no_runner(operator, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, metering_absent="metering needs Java")
    page = operator.get("/fleet/jobs").content.decode()
    assert "No jobs run here: Metering needs Java." in page
    assert "gives no sign of life" not in page
