"""The job, of one cluster: `python -m controlplane.metering.pipeline.jobs.usage` (or spark-submit); settings.py has its words.

Runs until SIGTERM. Two loops: the outer one brings Spark up again where its JVM has died (by spark-submit that is for who has
started it: the job ends), the inner one the query where a batch has failed (database away, topic not there yet, brokers gone).
Neither loses anything: the checkpoint says where to go on, and what was half done is done again. Every few seconds it leaves a
sign of life in the database.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.streaming import StreamingQuery

from controlplane.env import Environment
from controlplane.java import JavaNotFoundError
from controlplane.metering.pipeline import progress_table, runs, session, signs, source, transforms
from controlplane.metering.pipeline.listener import Listener
from controlplane.metering.pipeline.positions import Looks, TopicState, reaching_back, starting
from controlplane.metering.pipeline.raw_table import RawTable
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER, Settings
from controlplane.metering.pipeline.tables import Database, put_in_portions
from controlplane.spark import submitted
from controlplane.spark.errors import first_line

LOG = logging.getLogger("sluice.metering")
JOB = "usage"
LIFE_S = 5
PAUSE_S = 2.0
LONGEST_PAUSE_S = 30.0
FAILED = 1


class Stop(BaseException):
    """Raised in the main thread by SIGTERM. A batch that is given up is read again by the next job."""


class NotReadyError(Exception):
    """A query cannot begin: the topic or the database is away. The text is for operators."""


class AheadError(Exception):
    """The checkpoint is ahead of the database: a batch begins behind records that the database does not have."""


class UsageJob:
    """One query, from `__usage` to lake and database."""

    def __init__(self, settings: Settings, spark: SparkSession, raw: RawTable | None = None) -> None:
        """`raw`: where every record goes, too; None: to no such table."""
        self._settings = settings
        self._spark = spark
        self._raw = raw
        # Of batches, which come on py4j's threads.
        self._database = Database(settings.environment, cluster=settings.cluster)
        # Of the thread that runs the job.
        self._signs = Database(settings.environment, cluster=settings.cluster, patience_s=LIFE_S)
        self._listener = Listener()
        self._kafka: source.UsageTopic | None = None
        self._tls_files = settings.tls_files()
        self._looks = Looks()
        self.topic_id = ""  # of the topic that is being read
        self._unchecked: dict[int, int] = {}  # of a query that began where its checkpoint said: what the database had
        self._follow_database = False
        self._run: runs.Current | None = None  # this job's row among the runs
        self.records = 0
        self.batches = 0
        self.problem = ""  # of the batch that failed last

    def start(self) -> StreamingQuery:
        """The running query. Raises NotReadyError."""
        if self._kafka is None:
            self._kafka = source.UsageTopic(self._spark, self._settings)
        at_ms = _now_ms()
        try:
            topic = self._kafka.look()
            offsets = self._begin(topic, at_ms, self._held(topic.id))
        except source.TopicAwayError as error:
            raise NotReadyError(str(error)) from error
        stream = source.records(self._spark, self._settings, offsets)
        return (
            stream.writeStream.queryName("usage")
            .option("checkpointLocation", self._checkpoint.as_uri())  # a path alone may be HDFS's
            .trigger(processingTime=f"{self._settings.trigger_s} seconds")
            .foreachBatch(self._batch)
            .start()
        )

    def _held(self, topic_id: str) -> Mapping[int, int]:
        """Up to where the lake has each partition. Raises NotReadyError."""
        try:
            return {} if self._raw is None else self._raw.held(topic_id)
        except Exception as error:  # of Spark, of whatever store the lake is in
            raise NotReadyError(f"the lake does not say how far it is: {first_line(error)}") from error

    def _begin(self, topic: TopicState, at_ms: int, held: Mapping[int, int] | None = None) -> Mapping[int, int] | None:
        """The offsets to begin at; None: where the checkpoint says. Raises NotReadyError."""
        try:
            return self._begin_guarded(topic, at_ms, held or {})
        except Exception as error:  # drivers have error trees of their own
            raise NotReadyError(f"the database does not say how far it is: {first_line(error)}") from error

    def _begin_guarded(self, topic: TopicState, at_ms: int, held: Mapping[int, int]) -> Mapping[int, int] | None:
        has_checkpoint = self._checkpoint.exists()
        with self._signs.transaction() as cursor:
            known, reaches_back = reaching_back(progress_table.positions(self._signs, cursor), topic, held)
            if reaches_back:
                LOG.warning("the lake is behind the database: what it lacks is read again")
            follow = self._follow_database or reaches_back
            start = starting(known, topic, has_checkpoint=has_checkpoint, follow_database=follow)
            for loss in start.losses:
                LOG.error("%s", loss.sentence)
            if start.offsets is not None:
                self._set_checkpoint_aside()  # before the rows are committed: with them, nothing would say that it must go
            progress_table.begin(self._signs, cursor, topic, start.offsets, start.losses, at_ms)
        self._follow_database = False
        follows_checkpoint = has_checkpoint and start.offsets is None
        self._unchecked = {at: position.next_offset for at, position in known.items()} if follows_checkpoint else {}
        self.topic_id, self._looks = topic.id, Looks()
        self._looks.add(at_ms, topic.end)
        return start.offsets

    @property
    def _checkpoint(self) -> Path:
        return self._settings.checkpoint

    def _set_checkpoint_aside(self) -> None:
        if self._checkpoint.exists():
            aside = self._checkpoint.with_name(f"{self._checkpoint.name}-before")
            shutil.rmtree(aside, ignore_errors=True)
            self._checkpoint.rename(aside)

    def _batch(self, records: DataFrame, number: int) -> None:
        try:
            rows = transforms.parsed(records, self._settings.cluster).persist()
            try:
                self.take(rows, query=self._query_id(), number=number)
            finally:
                rows.unpersist()
        except Exception as error:
            # Through py4j it would come back as a page of Java.
            LOG.exception("batch %d", number)
            self.problem = f"{type(error).__name__}: {first_line(error)}"
            raise
        self.batches += 1

    def _query_id(self) -> str:
        """Spark's id of the query: it lives as long as the checkpoint."""
        return str(json.loads((self._checkpoint / "metadata").read_text())["id"])

    def take(self, rows: DataFrame, *, query: str, number: int) -> None:
        """One batch of parsed rows into lake and database; again, if need be: the same ends in the same."""
        spans = rows.groupBy("source_partition").agg(
            F.count("*").alias("seen"), F.count("problem").alias("refused"), F.max("recorded_at").alias("newest"),
            F.min("source_offset").alias("first"), F.max("source_offset").alias("last"),
        ).collect()  # fmt: skip
        if not spans:
            return
        refused = sum(span.refused for span in spans)
        self._check({span.source_partition: span.first for span in spans})
        now_ms = _now_ms()
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        if self._raw is not None:  # first: the database is never ahead of it
            offsets = {span.source_partition: (span.first, span.last + 1) for span in spans}
            self._raw.append(rows, self.topic_id, offsets, now)
        statements = transforms.statements(rows, now).collect()
        boots = transforms.boots(rows, now).collect()
        early = transforms.early_count(transforms.good(rows), now)
        run = uuid4().hex
        staged = self._stage(rows, run, now)
        with self._database.transaction() as cursor:
            self._database.maxima_merge(cursor, run, staged)
            self._database.boots_note(cursor, boots)
            self._database.statements_note(cursor, self.topic_id, statements)
            newest = [span.newest for span in spans if span.newest]
            self._database.batch_note(
                cursor, query=query, batch=number, seen=sum(span.seen for span in spans), refused=refused, early=early,
                newest_ms=int(max(newest).timestamp() * 1000) if newest else None,
            )  # fmt: skip
            following = {span.source_partition: span.last + 1 for span in spans}
            progress_table.advance(self._database, cursor, self.topic_id, following)
        self.records += sum(span.seen for span in spans)
        if early:
            LOG.warning("batch %d: %d records told under hours that had not come", number, early)
        if refused:
            LOG.warning("batch %d: %d records refused", number, refused)

    def _stage(self, rows: DataFrame, run: str, now: datetime) -> int:
        """The largest counters of a batch into the staging table, by executors: no key comes to the driver. How many."""
        with self._database.transaction() as cursor:
            self._database.staged_remove(cursor)
        put = partial(_stage, self._settings.environment, self._settings.cluster, run, int(now.timestamp() * 1000))
        return int(transforms.largest(rows, now).rdd.mapPartitions(put).sum())

    def _check(self, first: Mapping[int, int]) -> None:
        """Raises AheadError. Once for each partition: what a batch leaves is where the next one begins."""
        for partition, begins in first.items():
            known = self._unchecked.get(partition, begins)
            if begins > known:
                self._follow_database = True
                raise AheadError(
                    f"the checkpoint is ahead of the database: partition {partition} goes on at {begins}, and the"
                    f" database has it up to {known}; it is read again from there"
                )
            self._unchecked.pop(partition, None)

    def sign_of_life(self, problem: str = "", *, started: bool = False, topic: TopicState | None = None) -> None:
        """For whoever looks into the database. A database that is away is no reason to stop.

        `topic`: what Kafka has just said of the topic that is being read.
        """
        signs.ROUNDS.note()
        now_ms = _now_ms()
        try:
            with self._signs.transaction() as cursor:
                self._signs.sign_of_life(cursor, now_ms=now_ms, problem=problem, started=started)
                self._signs.movement_note(cursor, self._listener.moved)
                begun = self._run_note(cursor, now_ms)
                if topic is not None:
                    known = progress_table.positions(self._signs, cursor)
                    complete = self._looks.complete({at: position.next_offset for at, position in known.items()})
                    read_to_ms = progress_table.note_look(self._signs, cursor, topic, now_ms, complete)
                    if read_to_ms is not None:
                        self._signs.statements_settle(cursor, read_to_ms)
                        begun.done_to_ms = read_to_ms
            self._run = begun
        except Exception as error:  # noqa: BLE001  # drivers have error trees of their own
            LOG.warning("the database does not take a sign of life: %s", error)

    def _run_note(self, cursor: Any, now_ms: int) -> runs.Current:
        """That this run goes on: in a row that it makes when it can."""
        run = self._run
        if run is None:
            cluster = self._settings.cluster
            what = "" if cluster == DEFAULT_CLUSTER else cluster
            return runs.Current(runs.begin(self._signs, cursor, job=JOB, what=what, at_ms=now_ms))
        run.rows = self.records
        runs.seen(self._signs, cursor, run, now_ms)
        return run

    def _run_end(self, problem: str | None) -> None:
        if self._run is None:
            return
        try:
            with self._signs.transaction() as cursor:
                runs.end(self._signs, cursor, self._run, _now_ms(), problem=problem)
        except Exception as error:  # noqa: BLE001  # see sign_of_life
            LOG.warning("the database does not take the end of the run: %s", error)

    def look(self) -> bool:
        """A sign of life with what Kafka says; whether the topic is still the one that is being read."""
        assert self._kafka is not None
        at_ms = _now_ms()
        try:
            topic = self._kafka.look()
        except source.TopicAwayError as error:
            self.sign_of_life(str(error))
            return True
        if topic.id != self.topic_id:
            return False
        self._looks.add(at_ms, topic.end)
        self.sign_of_life(topic=topic)
        return True

    def run(self) -> None:
        """Queries, one after the other, until Stop or until the JVM is gone."""
        try:
            self._queries()
        except Stop:
            self._run_end(None)
            raise
        except BaseException as error:
            self._run_end(f"{type(error).__name__}: {first_line(error)}")
            raise

    def _queries(self) -> None:
        self._spark.streams.addListener(self._listener)
        self.sign_of_life(started=True)
        pause = PAUSE_S
        while True:
            before = self.batches
            self.problem = ""
            self._forget_old_certificate()
            try:
                query = self.start()
                while not query.awaitTermination(LIFE_S):
                    if self._has_new_certificate() or not self.look():
                        query.stop()
                        break
                    self._once_all_is_loaded()
            except NotReadyError as error:
                LOG.warning("%s", error)
                self.sign_of_life(str(error))
            except PySparkException as error:
                sentence = self.problem or first_line(error)
                LOG.warning("the query ended: %s", sentence)
                self.sign_of_life(sentence)
            pause = PAUSE_S if self.batches > before else min(LONGEST_PAUSE_S, pause * 1.5)
            time.sleep(pause)

    def _has_new_certificate(self) -> bool:
        """Clients of Kafka keep the one that they began with: a query that begins anew has the new one."""
        found = self._settings.tls_files()
        return found is not None and found != self._tls_files

    def _forget_old_certificate(self) -> None:
        if self._has_new_certificate():
            LOG.info("the certificate for the cluster is another one: a query begins with it")
            self._tls_files = self._settings.tls_files()
            if self._kafka is not None:
                self._kafka.close()
                self._kafka = None

    def _once_all_is_loaded(self) -> None:
        if self.batches and session.archive_write(self._spark, self._settings.home):
            LOG.info("class archive written: the next start is faster")


def _stage(environment: Environment, cluster: str, run: str, now_ms: int, rows: Iterable[Any]) -> Iterable[int]:
    def put(database: Database, cursor: Any, portion: list[Any]) -> None:
        database.maxima_stage(cursor, run, portion, now_ms)

    return put_in_portions(environment, rows, put, cluster)


def _now_ms() -> int:
    return int(time.time() * 1000)


def main() -> int:
    """Until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    settings = Settings.read(os.environ)
    with signs.given(settings), submitted.told_to_end():  # which waits for a JVM
        return _work(settings)


def _work(settings: Settings) -> int:
    """The exit status."""
    spark: SparkSession | None = None
    try:
        while True:
            signs.ROUNDS.note()
            try:
                spark = session.open_session(settings)
                LOG.info("Spark %s runs as %s", spark.version, spark.sparkContext.master)
                UsageJob(settings, spark, RawTable(spark, settings.lake, settings.environment, settings.cluster)).run()
            except (PySparkException, Py4JError, JavaNotFoundError, OSError) as error:
                LOG.exception("Spark does not run")
                _say(settings, f"Spark does not run: {first_line(error)}")
                spark = _closed(spark)
                if submitted.is_lost():
                    return FAILED
                time.sleep(LONGEST_PAUSE_S)
    except Stop:
        LOG.info("stopping")
    finally:
        _closed(spark)
    return 0


def _say(settings: Settings, problem: str) -> None:
    database = Database(settings.environment, cluster=settings.cluster)
    try:
        with database.transaction() as cursor:
            database.sign_of_life(cursor, now_ms=_now_ms(), problem=problem)
    except Exception as error:  # noqa: BLE001  # see sign_of_life
        LOG.warning("the database does not take a sign of life: %s", error)
    finally:
        database.close()


def _closed(spark: SparkSession | None) -> None:
    if spark is not None:
        try:
            session.close_session(spark)
        except Exception as error:  # noqa: BLE001  # it is going away anyhow
            LOG.warning("Spark did not stop by itself: %s", error)


def _stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stop


if __name__ == "__main__":
    sys.exit(main())
