"""The runner with processes: shell commands in the place of `spark-submit`, each a job that misbehaves in a way of its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.env import ROOT, Environment
from controlplane.metering.pipeline import runner, runs
from controlplane.metering.pipeline.schedule import HOUR_MS, JOBS
from controlplane.metering.pipeline.tables import Database
from controlplane.spark import keeper
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]
PATIENCE_S = 20


@pytest.fixture(autouse=True)
def _one_daily_job(monkeypatch):
    monkeypatch.setattr(runner, "JOBS", {name: job for name, job in JOBS.items() if name != "reconcile"})


@pytest.fixture
def environment(database_file):
    return Environment.read({"DATABASE_URL": f"sqlite:///{database_file}"})


@pytest.fixture
def database(environment):
    made = Database(environment)
    yield made
    made.close()


@pytest.fixture
def rows(database) -> Callable[[], list[tuple]]:
    return lambda: list(database.read(f"SELECT state, reason FROM {runs.TABLE} ORDER BY id"))


def work(environment: Environment, submit: str, until: Callable[[], object]) -> None:
    """The runner's turns, one quickly after the other, until something holds; then it is told to stop."""
    end = time.monotonic() + PATIENCE_S

    def pause(_: float) -> None:
        if until():
            raise runner.Stop
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)

    with pytest.raises(runner.Stop):
        runner.work(environment, submit=submit, pause=pause)


def shell(script: str) -> str:
    return shlex.join(["sh", "-c", script])


def number_in(file: Path) -> int | None:
    text = file.read_text() if file.exists() else ""
    return int(text) if text.endswith("\n") else None


def has_ended(found: list[tuple]) -> bool:
    return bool(found) and found[0][0] not in ("waiting", "running")


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def some_turns_after(holds: Callable[[], object]) -> Callable[[], bool]:
    """Whether something has held for ten turns: what would have happened again has had the time."""
    turns: list[bool] = []

    def until() -> bool:
        turns.append(bool(holds()))
        return sum(turns) > 10

    return until


def test_a_job_that_ends_at_once_has_failed_once(environment, rows):
    work(environment, shell("exit 1"), some_turns_after(lambda: has_ended(rows())))
    assert rows() == [("failed", "the process ended with status 1, and did not say why")]


def test_a_program_that_is_not_there_ends_the_run(environment, rows):
    work(environment, "no-such-program", some_turns_after(lambda: has_ended(rows())))
    assert rows() == [("failed", "no-such-program cannot be started: No such file or directory")]


def test_a_job_that_hangs_is_stopped_and_killed_where_it_does_not_listen(environment, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "JOBS", {"quota_report": replace(JOBS["quota_report"], longest_ms=1000)})
    monkeypatch.setattr(runner, "STOPS_WITHIN_S", 0.2)
    file = tmp_path / "process"
    submit = shell(f"trap '' TERM; echo $$ > {file}; exec sleep 60")
    work(environment, submit, lambda: has_ended(rows()))
    assert rows() == [("failed", "stopped after 1 s")]
    assert is_gone(number_in(file) or 0)


def test_a_runner_that_stops_takes_its_job_with_it(environment, rows, tmp_path):
    file = tmp_path / "process"
    work(environment, shell(f"echo $$ > {file}; exec sleep 60"), lambda: number_in(file))
    assert rows() == [("failed", "it was stopped together with the runner")]
    assert is_gone(number_in(file) or 0)


def test_a_job_that_found_its_run_taken_leaves_it_to_the_other(environment, database, rows, tmp_path):
    """Two runners have started it. The other one's process, here the test, was quicker."""
    file = tmp_path / "go"
    numbers: list[int] = []

    def until() -> bool:
        if not numbers:
            with database.transaction() as cursor:
                database.run(cursor, f"SELECT id FROM {runs.TABLE}")
                ((number,),) = cursor.fetchall()
                numbers.append(
                    runs.begin(database, cursor, job="quota_report", what="", at_ms=runs.now_ms(), number=number)
                )
            file.touch()
        number = number_in(file.with_name("job"))
        return number is not None and is_gone(number)  # the runner has seen it end: else it would stop it

    script = f"while [ ! -e {file} ]; do sleep 0.02; done; echo $$ > {file.with_name('job')}; exit {runs.TAKEN}"
    work(environment, shell(script), until)
    assert rows() == [("running", "")]


def test_a_job_that_does_well_says_so_itself(environment, database, rows):
    """As the quota report does: in the row of the number that it is given."""

    def it_says() -> bool:
        with database.transaction() as cursor:
            what = "state = 'succeeded', started_at_ms = asked_at_ms, ended_at_ms = asked_at_ms"
            return bool(database.run(cursor, f"UPDATE {runs.TABLE} SET {what}"))

    work(environment, shell("exit 0"), some_turns_after(it_says))
    assert rows() == [("succeeded", "")]


def test_how_long_a_job_may_take_is_said_in_hours():
    assert runner._span(6 * HOUR_MS) == "6 hours"
    assert runner._span(HOUR_MS) == "1 hour"


class TestWhatAJobHasStarted:
    """Each job writes who it is, and whom it has started, into files of the folder."""

    LEAVES = "sleep 60 & echo $! > {folder}/child; "
    LEAVES_DEEPER = "setsid sh -c 'trap \"\" TERM; echo $$ > {folder}/apart; sleep 60 & wait' & "

    def numbers(self, folder: Path, *names: str) -> list[int]:
        found = [number_in(folder / name) for name in names]
        return [] if None in found else [number or 0 for number in found]

    def test_what_a_job_leaves_behind_ends_with_it(self, environment, rows, tmp_path):
        script = self.LEAVES + self.LEAVES_DEEPER + "while [ ! -s {folder}/apart ]; do sleep 0.02; done; exit 3"
        work(environment, shell(script.format(folder=tmp_path)), lambda: has_ended(rows()))
        assert rows() == [("failed", "the process ended with status 3, and did not say why")]
        left = self.numbers(tmp_path, "child", "apart")
        assert len(left) == 2
        assert all(map(is_gone, left))

    def test_a_job_that_is_killed_leaves_nothing(self, environment, rows, tmp_path):
        script = (self.LEAVES + self.LEAVES_DEEPER + "echo $$ > {folder}/job; exec sleep 60").format(folder=tmp_path)
        killed: list[int] = []

        def until() -> bool:
            found = self.numbers(tmp_path, "job", "child", "apart")
            if found and not killed:
                killed.extend(found)
                os.kill(found[0], signal.SIGKILL)
            return has_ended(rows())

        work(environment, shell(script), until)
        assert rows() == [("failed", "the process ended with status -9, and did not say why")]
        assert all(map(is_gone, killed))

    def test_a_job_that_does_not_listen_is_killed_with_what_it_has_started(
        self, environment, rows, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(runner, "JOBS", {"quota_report": replace(JOBS["quota_report"], longest_ms=1000)})
        monkeypatch.setattr(runner, "STOPS_WITHIN_S", 0.2)
        script = ("trap '' TERM; " + self.LEAVES + "echo $$ > {folder}/job; exec sleep 60").format(folder=tmp_path)
        work(environment, shell(script), lambda: has_ended(rows()))
        assert rows() == [("failed", "stopped after 1 s")]
        assert all(map(is_gone, self.numbers(tmp_path, "job", "child")))

    def test_all_of_it_is_in_the_runners_process_group(self, environment, tmp_path):
        """By it the local stack ends what is left."""
        groups: dict[str, int] = {}

        def until() -> bool:
            for name, number in zip(("job", "child"), self.numbers(tmp_path, "job", "child"), strict=False):
                groups[name] = os.getpgid(number)
                groups["keeper"] = os.getpgid(parent_of(self.numbers(tmp_path, "job")[0]))
            return bool(groups)

        work(environment, shell((self.LEAVES + "echo $$ > {folder}/job; wait").format(folder=tmp_path)), until)
        assert groups == dict.fromkeys(("job", "child", "keeper"), os.getpgid(0))

    @pytest.mark.parametrize("victim", ["runner", "keeper"])
    def test_where_the_runner_or_the_keeper_is_killed_the_job_ends(self, environment, tmp_path, victim):
        script = f"echo $$ > {tmp_path}/job; exec sleep 60"
        program = (
            "import sys, time; from controlplane.env import Environment; from controlplane.metering.pipeline import runner;"
            "environment = Environment.read({'DATABASE_URL': sys.argv[1]});"
            "runner.work(environment, submit=sys.argv[2], pause=lambda _: time.sleep(1))"
        )
        url = f"sqlite:///{tmp_path / 'usage.sqlite3'}"
        running = subprocess.Popen([sys.executable, "-c", program, url, shell(script)], cwd=ROOT)
        try:
            wait_for(lambda: self.numbers(tmp_path, "job"), PATIENCE_S, "the job to begin")
            (job,) = self.numbers(tmp_path, "job")
            keeping = parent_of(job)
            assert parent_of(keeping) == running.pid
            os.kill({"runner": running.pid, "keeper": keeping}[victim], signal.SIGKILL)
            wait_for(lambda: has_died(job), PATIENCE_S, "the job to end")
            wait_for(lambda: has_died(keeping), PATIENCE_S, "its keeper to end")
        finally:
            running.kill()
            running.wait()

    def test_systems_that_have_no_keeper_start_jobs_themselves(self, environment, rows, tmp_path, monkeypatch):
        monkeypatch.setattr(keeper, "is_possible", lambda: False)
        script = f"echo $PPID > {tmp_path}/parent; exit 5"
        work(environment, shell(script), lambda: has_ended(rows()))
        assert rows() == [("failed", "the process ended with status 5, and did not say why")]
        assert self.numbers(tmp_path, "parent") == [os.getpid()]
        work(environment, "no-such-program", some_turns_after(lambda: has_ended(rows())))


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def has_died(process: int) -> bool:
    """Also where nobody has waited for it yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
