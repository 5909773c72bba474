"""What the running thread writes every few seconds: what Kafka said, how far the database is, and what Spark's listener heard."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from controlplane.metering.pipeline import progress_table
from controlplane.metering.pipeline.jobs import usage
from controlplane.metering.pipeline.jobs.usage import NotReadyError, UsageJob
from controlplane.metering.pipeline.listener import Listener
from controlplane.metering.pipeline.positions import Moved, TopicState
from controlplane.metering.pipeline.settings import Settings
from controlplane.metering.pipeline.source import TopicAwayError

pytestmark = pytest.mark.integration


class Kafka:
    """What it answers next."""

    def __init__(self) -> None:
        self.topic = TopicState("t1", {0: 0}, {0: 10})
        self.away = False

    def look(self) -> TopicState:
        if self.away:
            raise TopicAwayError("nobody answers")
        return self.topic


@pytest.fixture
def job(tmp_path, database_url, monkeypatch):
    made = UsageJob(Settings.read({"SLUICE_STACK_DIR": str(tmp_path), "DATABASE_URL": database_url}), spark=None)
    made._kafka = Kafka()
    made.clock_ms = 1000
    monkeypatch.setattr(usage, "_now_ms", lambda: made.clock_ms)
    made.sign_of_life(started=True)
    made._begin(made._kafka.look(), 1000)
    yield made
    made._database.close()
    made._signs.close()


def said(job, columns: str, table: str = "metering_pipelinestatus") -> tuple:
    with job._signs.transaction() as cursor:
        cursor.execute(f"SELECT {columns} FROM {table}")
        return cursor.fetchone()


def read(job, offset: int) -> None:
    with job._database.transaction() as cursor:
        progress_table.advance(job._database, cursor, job.topic_id, {0: offset})


def progress(job) -> tuple:
    return said(job, "next_offset, end_offset, complete_to_ms", "metering_progress")


def look(job, at_ms: int, end: int) -> bool:
    job.clock_ms = at_ms
    job._kafka.topic = TopicState("t1", {0: 0}, {0: end})
    return job.look()


def test_while_a_batch_hangs_the_lag_grows_and_neither_completeness_nor_movement_does(job):
    read(job, 10)
    job._listener.moved = Moved("r", 1500, 450, 10)
    assert look(job, 6000, 30)
    assert progress(job) == (10, 30, 1000)
    assert look(job, 11_000, 70)
    assert progress(job) == (10, 70, 1000)
    assert said(job, "seen_at_ms, moved_at_ms, batch_ms, batch_records") == (11_000, 1500, 450, 10)
    read(job, 30)
    assert look(job, 16_000, 90)
    assert progress(job) == (30, 90, 6000)


def test_kafka_that_does_not_answer_is_a_problem_until_it_does(job):
    job._kafka.away = True
    assert job.look()
    assert said(job, "problem") == ("nobody answers",)
    job._kafka.away = False
    assert job.look()
    assert said(job, "problem") == ("",)


def test_another_topic_of_that_name_ends_the_query_and_is_not_noted_as_the_first(job):
    job._kafka.topic = TopicState("t2", {0: 0}, {0: 3})
    assert not job.look()
    assert progress(job) == (0, 10, None)


def test_a_query_that_cannot_begin_says_why(job):
    job._kafka.away = True
    with pytest.raises(NotReadyError, match="nobody answers"):
        job.start()
    job._kafka.away = False
    job._signs.close()
    with job._database.transaction() as cursor:
        cursor.execute("DROP TABLE metering_loss")
        cursor.execute("DROP TABLE metering_progress")
    with pytest.raises(NotReadyError, match="the database does not say how far it is"):
        job.start()


class TestListener:
    """Of Spark's words the last one counts, if it is of the query that runs."""

    @staticmethod
    def event(run: str, **members: object) -> SimpleNamespace:
        return SimpleNamespace(runId=run, **members)

    def progress(self, run: str, took_ms: int, records: int) -> SimpleNamespace:
        return SimpleNamespace(progress=self.event(run, batchDuration=took_ms, numInputRows=records))

    def test_batches_and_idle_moments_move_it(self):
        now = iter(range(1000, 9000, 1000))
        listener = Listener(lambda: next(now))
        listener.onQueryStarted(self.event("a"))
        assert listener.moved == Moved("a", 1000)
        listener.onQueryProgress(self.progress("a", 450, 10))
        assert listener.moved == Moved("a", 2000, 450, 10)
        listener.onQueryIdle(self.event("a"))
        assert listener.moved == Moved("a", 3000, 450, 10)

    def test_neither_a_start_nor_a_late_word_of_the_query_before_does(self):
        now = iter(range(1000, 9000, 1000))
        listener = Listener(lambda: next(now))
        listener.onQueryStarted(self.event("a"))
        listener.onQueryStarted(self.event("b"))
        listener.onQueryProgress(self.progress("a", 450, 10))
        listener.onQueryIdle(self.event("a"))
        listener.onQueryTerminated(self.event("a"))
        assert listener.moved == Moved("b", 1000)


def test_its_run_is_a_row_that_goes_on_with_it_and_ends_with_it(job, monkeypatch):
    columns = "job, state, started_at_ms, seen_at_ms, row_count, done_to_ms, reason"
    assert said(job, columns, "metering_jobrun") == ("usage", "running", 1000, 1000, 0, None, "")
    job.records = 30
    read(job, 10)
    assert look(job, 6000, 10)
    assert look(job, 11_000, 10)  # tells what followed from the look before
    assert said(job, columns, "metering_jobrun") == ("usage", "running", 1000, 11_000, 30, 6000, "")

    def broken() -> None:
        raise OSError("the JVM is gone\n\tat java.lang …")

    monkeypatch.setattr(job, "_queries", broken)
    with pytest.raises(OSError):
        job.run()
    assert said(job, columns, "metering_jobrun")[1::5] == ("failed", "OSError: the JVM is gone")


def test_a_job_that_is_told_to_stop_has_succeeded(job, monkeypatch):
    def told() -> None:
        raise usage.Stop

    monkeypatch.setattr(job, "_queries", told)
    with pytest.raises(usage.Stop):
        job.run()
    assert said(job, "state, ended_at_ms", "metering_jobrun") == ("succeeded", 1000)
