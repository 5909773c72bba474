"""Jobs of the pipeline as operators see them, by REST, in the console and in metrics."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from controlplane.accounts import services as accounts
from controlplane.accounts.models import User
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


def test_operators_ask_for_a_run_once_and_of_a_day_that_is_over(as_operator):
    answer = as_operator.post(REPORT, {"what": "2026-11-20"})
    assert answer.status_code == 201, answer.content
    assert (answer.json()["state"], answer.json()["asked_by"]) == ("waiting", JobRun.objects.get().asked_by)
    assert JobRun.objects.get().asked_by
    assert as_operator.post(REPORT, {"what": "20261120"}).status_code == 409
    assert as_operator.post(REPORT, {}).status_code == 201
    assert as_operator.post(REPORT, {}).status_code == 409
    for wrong in ({"what": "2999-01-01"}, {"what": "yesterday"}, {"day": "2026-11-20"}):
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


def test_the_page_shows_jobs_and_runs_and_its_buttons_run_one_again(operator):
    ran(begun=NOON, state="failed", what="2026-11-20", reason="the database is away")
    page = operator.get("/fleet/jobs").content.decode()
    assert "The database is away." in page
    assert "The runner gives no sign of life" in page
    assert "Nothing has run yet" in operator.get("/fleet/jobs?job=usage").content.decode()
    assert operator.get("/fleet/jobs?job=nothing").status_code == 404
    answer = operator.post("/fleet/jobs", {"job": "quota_report", "what": "2026-11-20"}, follow=True).content.decode()
    assert "Quota report runs within seconds, for 2026-11-20." in answer
    row = JobRun.objects.get(state="waiting")
    assert (row.what, row.asked_by) == ("2026-11-20", "admin@example.com")
    again = operator.post("/fleet/jobs", {"job": "quota_report", "what": "2026-11-20"}, follow=True).content.decode()
    assert "waits to be started already" in again
    wrong = operator.post("/fleet/jobs", {"job": "quota_report", "what": "soon"}, follow=True).content.decode()
    assert "Say which day" in wrong
    assert operator.post("/fleet/jobs", {"job": "usage"}).status_code == 404
    ran("runner", "running", begun=datetime.now(UTC))
    assert "The runner gives no sign of life" not in operator.get("/fleet/jobs").content.decode()
