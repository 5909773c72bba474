"""What jobs say of their runs, and what the runner makes of it; on both databases, without Spark."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

import pytest

from controlplane.env import Environment
from controlplane.metering.pipeline import runner as runner_module
from controlplane.metering.pipeline import runs
from controlplane.metering.pipeline.runner import Runner
from controlplane.metering.pipeline.schedule import DAY_MS, HOUR_MS, JOBS, SILENT_MS, State
from controlplane.metering.pipeline.tables import Database
from controlplane.spark.errors import PlainError

pytestmark = pytest.mark.integration
NOON = 20_000 * DAY_MS + DAY_MS // 2


@pytest.fixture
def environment(database_url):
    return Environment.read({"DATABASE_URL": database_url})


@pytest.fixture
def database(environment):
    made = Database(environment)
    yield made
    made.close()


@pytest.fixture
def runner(environment, monkeypatch):
    """With one daily job."""
    monkeypatch.setattr(runner_module, "JOBS", {name: job for name, job in JOBS.items() if name != "reconcile"})
    made = Runner(environment)
    yield made
    made.close()


def shown(database, columns: str = "job, what, state, row_count, done_to_ms, reason") -> list[tuple]:
    return list(database.read(f"SELECT {columns} FROM {runs.TABLE} ORDER BY id"))


def begun(database, cursor, job: str, *, at_ms: int = NOON) -> runs.Current:
    return runs.Current(runs.begin(database, cursor, job=job, what="", at_ms=at_ms), rows=5)


def test_a_run_that_nobody_asked_for_says_what_it_has_done(database, environment):
    with runs.recorded(environment, job="quota_report", what="2026-11-21") as run:
        assert shown(database, "state") == [("running",)]
        run.rows, run.done_to_ms = 1500, 7
    assert shown(database) == [("quota_report", "2026-11-21", "succeeded", 1500, 7, "")]
    ((asked, started, ended),) = shown(database, "asked_at_ms, started_at_ms, ended_at_ms")
    assert asked == started <= ended


def test_a_run_that_raises_says_why_in_a_line(database, environment):
    def work() -> None:
        with runs.recorded(environment, job="quota_report") as run:
            run.rows = 3
            raise ValueError("the lake is away\n\tat org.apache.spark …")

    with pytest.raises(ValueError):
        work()
    assert shown(database) == [("quota_report", "", "failed", 3, None, "ValueError: the lake is away")]


def test_an_error_of_ours_is_read_without_the_name_of_its_class(database, environment):
    with pytest.raises(PlainError), runs.recorded(environment, job="quota_report"):
        raise PlainError("2026-11-21 cannot have a report yet")
    assert shown(database, "reason") == [("2026-11-21 cannot have a report yet",)]


def test_a_database_that_never_takes_a_sign_of_life_keeps_no_job_from_ending(database, environment, monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(runs, "_signs", lambda *_: answers.wait(30))
    monkeypatch.setattr(runs, "SIGNS_END_WITHIN_S", 0.1)
    began = time.monotonic()
    with runs.recorded(environment, job="quota_report"):
        pass
    assert time.monotonic() - began < 20
    answers.set()
    assert shown(database, "state") == [("succeeded",)]


def test_a_run_that_was_asked_for_is_taken_once(database, environment):
    with database.transaction() as cursor:
        number = runs.ask(database, cursor, job="quota_report", what="", at_ms=runs.now_ms())
    with runs.recorded(environment, job="quota_report", number=number):
        assert shown(database, "state") == [("running",)]
        with pytest.raises(runs.NotWaitingError), runs.recorded(environment, job="quota_report", number=number):
            raise AssertionError
    assert shown(database, "state") == [("succeeded",)]
    with pytest.raises(runs.NotWaitingError), runs.recorded(environment, job="quota_report", number=number):
        raise AssertionError


def test_who_gives_no_sign_of_life_for_a_minute_has_died(database):
    with database.transaction() as cursor:
        silent, alive = (begun(database, cursor, job) for job in ("usage", "runner"))
        runs.seen(database, cursor, alive, NOON + 1)
        runs.bury(database, cursor, NOON + SILENT_MS)
    assert shown(database, "state") == [("running",), ("running",)]
    with database.transaction() as cursor:
        begun(database, cursor, "usage", at_ms=NOON + SILENT_MS + 1)
    found = shown(database, "id, state, reason, ended_at_ms, row_count")
    assert found[0] == (silent.number, "failed", runs.DIED, NOON, 0)
    assert [row[1:] for row in found[1:]] == [("running", "", None, 5), ("running", "", None, 0)]


def test_whoever_was_thought_dead_and_gives_a_sign_of_life_runs_on(database):
    with database.transaction() as cursor:
        run = begun(database, cursor, "quota_report")
        runs.bury(database, cursor, NOON + HOUR_MS)
        runs.seen(database, cursor, run, NOON + HOUR_MS)
    assert shown(database, "state, reason, seen_at_ms, ended_at_ms") == [("running", "", NOON + HOUR_MS, None)]
    with database.transaction() as cursor:
        runs.bury(database, cursor, NOON + 2 * HOUR_MS)
        runs.end(database, cursor, run, NOON + 2 * HOUR_MS)
    assert shown(database, "state, reason, ended_at_ms") == [("succeeded", "", NOON + 2 * HOUR_MS)]


def test_what_has_said_how_it_ended_stays_so(database):
    with database.transaction() as cursor:
        run = begun(database, cursor, "usage")
        runs.end(database, cursor, run, NOON + 1, problem="no")
        runs.seen(database, cursor, run, NOON + 2)
        runs.end(database, cursor, run, NOON + 3)
    assert shown(database, "state, reason, ended_at_ms") == [("failed", "no", NOON + 1)]


def test_a_sign_of_life_from_times_to_come_is_none(database):
    """The machine's clock was ahead when the job was killed."""
    with database.transaction() as cursor:
        begun(database, cursor, "quota_report", at_ms=NOON + DAY_MS)
        runs.bury(database, cursor, NOON)
    assert shown(database, "state, reason, ended_at_ms") == [("failed", runs.DIED, NOON)]


def test_a_daily_job_has_one_run_at_a_time_and_who_died_stands_in_nobodys_way(database, environment):
    with database.transaction() as cursor:
        first = begun(database, cursor, "quota_report")
        waits = runs.ask(database, cursor, job="quota_report", what="", at_ms=NOON)
        for number in (None, waits):
            with pytest.raises(runs.BusyError, match=f"run {first.number} of quota_report is under way"):
                runs.begin(database, cursor, job="quota_report", what="", at_ms=NOON, number=number)
        for _ in range(2):
            begun(database, cursor, "usage")
    assert shown(database, "state") == [("running",), ("waiting",), ("running",), ("running",)]
    with database.transaction() as cursor:
        begun(database, cursor, "quota_report", at_ms=NOON + SILENT_MS + 1)


def test_of_many_that_begin_a_daily_job_at_once_one_does(environment):
    numbers: list[int] = []
    gate = threading.Barrier(4)

    def one() -> None:
        mine = Database(environment)
        gate.wait(10)
        with contextlib.suppress(runs.BusyError), mine.transaction() as cursor:
            numbers.append(runs.begin(mine, cursor, job="quota_report", what="", at_ms=NOON))
        mine.close()

    threads = [threading.Thread(target=one) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert len(numbers) == 1


def test_runs_are_kept_for_400_days(database):
    with database.transaction() as cursor:
        for at_ms in (NOON - runs.KEPT_MS - 1, NOON - runs.KEPT_MS, NOON):
            runs.begin(database, cursor, job="usage", what="", at_ms=at_ms)
    assert len(shown(database)) == 2


def test_the_runner_starts_what_is_due_once_and_leaves_the_rest_to_the_job(database, runner):
    wanted = runner.turn(NOON)
    assert wanted is not None
    assert (wanted.job.name, wanted.what) == ("quota_report", "")
    assert runner.turn(NOON) == wanted, "it waits until it has begun"
    with database.transaction() as cursor:
        runs.begin(database, cursor, job="quota_report", what="", at_ms=NOON, number=wanted.number)
    assert runner.turn(NOON + 1000) is None
    runner.ended(wanted, -9, NOON + 2000)
    assert shown(database, "state, reason") == [("failed", "the process ended with status -9, and did not say why")]
    assert runner.turn(NOON + 3000) is None, "not at once again"
    assert runner.turn(NOON + DAY_MS // 24) is not None


def test_a_job_that_dies_before_it_has_taken_its_run_is_not_started_at_once_again(database, runner):
    wanted = runner.turn(NOON)
    runner.ended(wanted, 1, NOON + 1000)
    assert shown(database, "state, started_at_ms, ended_at_ms") == [("failed", NOON + 1000, NOON + 1000)]
    assert runner.turn(NOON + 6000) is None
    assert runner.turn(NOON + HOUR_MS) is not None


def test_a_process_that_found_its_run_taken_says_nothing_of_it(database, runner):
    wanted = runner.turn(NOON)
    with database.transaction() as cursor:
        runs.begin(database, cursor, job="quota_report", what="", at_ms=NOON, number=wanted.number)
    runner.ended(wanted, runs.TAKEN, NOON + 1)
    assert shown(database, "state") == [("running",)]


def test_what_waits_for_a_run_of_the_same_job_is_passed_over(database, runner):
    with database.transaction() as cursor:
        run = begun(database, cursor, "quota_report")
        number = runs.ask(database, cursor, job="quota_report", what="2026-11-21", at_ms=NOON)
    assert runner.turn(NOON + 1) is None
    with database.transaction() as cursor:
        runs.end(database, cursor, run, NOON + 2)
    assert runner.turn(NOON + 3).number == number


def test_what_somebody_asked_for_comes_first_and_a_process_that_said_how_it_went_is_believed(database, runner):
    with database.transaction() as cursor:
        number = runs.ask(database, cursor, job="quota_report", what="2026-11-21", at_ms=NOON)
    wanted = runner.turn(NOON)
    assert wanted is not None
    assert (wanted.number, wanted.what) == (number, "2026-11-21")
    with database.transaction() as cursor:
        runs.begin(database, cursor, job="quota_report", what="", at_ms=NOON, number=number)
        runs.end(database, cursor, runs.Current(number, 9, NOON), NOON + 5)
    runner.ended(wanted, 0, NOON + 10)
    assert shown(database) == [("quota_report", "2026-11-21", State.SUCCEEDED, 9, NOON, "")]
    assert runner.turn(NOON + 20) is None


def test_daily_jobs_are_started_one_after_the_other(database, environment):
    made = Runner(environment)
    names = []
    for turn in range(3):
        wanted = made.turn(NOON + turn)
        if wanted is not None:
            names.append(wanted.job.name)
            with database.transaction() as cursor:
                runs.begin(database, cursor, job=wanted.job.name, what="", at_ms=NOON + turn, number=wanted.number)
    made.close()
    assert names == ["quota_report", "reconcile"]


def test_jobs_are_started_as_modules_or_by_spark_submit(environment, runner):
    wanted = runner.turn(NOON)
    module = "controlplane.metering.pipeline.jobs.quota_report"
    assert runner.command(wanted) == [sys.executable, "-m", module, "--run", str(wanted.number)]
    submitting = Runner(environment, submit="spark-submit --master 'spark://a b'")
    *words, file, run, number = submitting.command(wanted)
    submitting.close()
    assert words == ["spark-submit", "--master", "spark://a b"]
    assert file.endswith("/controlplane/metering/pipeline/jobs/quota_report.py")
    assert (run, number) == ("--run", str(wanted.number))
