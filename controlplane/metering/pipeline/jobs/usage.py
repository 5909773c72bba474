"""The job: `python -m controlplane.metering.pipeline.jobs.usage` (or spark-submit); settings.py says what it reads.

Runs until SIGTERM. Two loops: the outer one brings Spark up again where its JVM has died, the inner one the query where
a batch has failed (database away, topic not there yet, brokers gone). Neither loses anything: the checkpoint says where
to go on, and what was half done is done again. Every few seconds it leaves a sign of life in the database.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from types import FrameType

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.streaming import StreamingQuery

from controlplane.metering.pipeline import session, transforms
from controlplane.metering.pipeline.schemas import MAXIMA
from controlplane.metering.pipeline.settings import Settings
from controlplane.metering.pipeline.tables import Database
from controlplane.stack.java import JavaNotFoundError
from quota.contracts.usage import USAGE_TOPIC

LOG = logging.getLogger("sluice.metering")
LIFE_S = 5
PAUSE_S = 2.0
LONGEST_PAUSE_S = 30.0
MOST_PER_BATCH = 200_000


class Stop(BaseException):
    """SIGTERM came."""


class UsageJob:
    """One query, from `__usage` to database and lake."""

    def __init__(self, settings: Settings, spark: SparkSession) -> None:
        self._settings = settings
        self._spark = spark
        self._database = Database(settings.environment)  # of batches, which come on py4j's threads
        self._signs = Database(settings.environment, patience_s=LIFE_S)  # of the thread that runs the job
        self.batches = 0
        self.problem = ""  # of the batch that failed last

    def start(self) -> StreamingQuery:
        """The running query."""
        source = (
            self._spark.readStream.format("kafka")
            .options(**self._settings.kafka_options())
            .option("subscribe", USAGE_TOPIC)
            .option("startingOffsets", "earliest")
            # Retention may have taken records that were never read; the newer ones of the same boot say as much.
            .option("failOnDataLoss", "false")
            .option("maxOffsetsPerTrigger", MOST_PER_BATCH)
            .load()
        )
        return (
            source.writeStream.queryName("usage")
            .option("checkpointLocation", str(self._settings.home / "checkpoint"))
            .trigger(processingTime=f"{self._settings.trigger_s} seconds")
            .foreachBatch(self._batch)
            .start()
        )

    def _batch(self, records: DataFrame, number: int) -> None:
        try:
            rows = transforms.parsed(records).persist()
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
        metadata = self._settings.home / "checkpoint" / "metadata"
        return str(json.loads(metadata.read_text())["id"])

    def take(self, rows: DataFrame, *, query: str, number: int) -> None:
        """One batch of parsed rows into database and lake; again, if need be: the same ends in the same."""
        totals = rows.agg(
            F.count("*").alias("seen"), F.count("problem").alias("refused"), F.max("recorded_at").alias("newest")
        ).first()
        if totals is None or not totals.seen:
            return
        facts = transforms.good(rows)
        largest = transforms.maxima(facts).select(*MAXIMA).collect()
        now_ms = int(time.time() * 1000)
        with self._database.transaction() as cursor:
            self._database.maxima_raise(cursor, ((*row, now_ms) for row in largest))
            newest_ms = int(totals.newest.timestamp() * 1000) if totals.newest else None
            self._database.batch_note(
                cursor, query=query, batch=number, seen=totals.seen, refused=totals.refused, newest_ms=newest_ms
            )
        self._to_lake(rows, facts, f"{query[:8]}-{number:08d}", refused=totals.refused)

    def _to_lake(self, rows: DataFrame, facts: DataFrame, batch: str, *, refused: int) -> None:
        lake_rows = transforms.lake_rows(facts, batch).coalesce(1)
        lake_rows.write.mode("overwrite").partitionBy("hour", "batch").parquet(f"{self._settings.lake}/usage")
        if refused:
            LOG.warning("batch %s: %d records refused", batch, refused)
            folder = f"{self._settings.lake}/usage_bad/batch={batch}"
            transforms.bad(rows).coalesce(1).write.mode("overwrite").json(folder)

    def sign_of_life(self, problem: str = "", *, started: bool = False) -> None:
        """For whoever looks into the database. A database that is away is no reason to stop."""
        try:
            with self._signs.transaction() as cursor:
                now_ms = int(time.time() * 1000)
                self._signs.sign_of_life(cursor, now_ms=now_ms, problem=problem, started=started)
        except Exception as error:  # noqa: BLE001  # drivers have error trees of their own
            LOG.warning("the database does not take a sign of life: %s", error)

    def run(self) -> None:
        """Queries, one after the other, until Stop or until the JVM is gone."""
        self.sign_of_life(started=True)
        pause = PAUSE_S
        while True:
            before = self.batches
            self.problem = ""
            try:
                query = self.start()
                while not query.awaitTermination(LIFE_S):
                    self.sign_of_life()
                    self._once_all_is_loaded()
            except PySparkException as error:
                sentence = self.problem or first_line(error)
                LOG.warning("the query ended: %s", sentence)
                self.sign_of_life(sentence)
            pause = PAUSE_S if self.batches > before else min(LONGEST_PAUSE_S, pause * 1.5)
            time.sleep(pause)

    def _once_all_is_loaded(self) -> None:
        if self.batches and session.archive_write(self._spark, self._settings.home):
            LOG.info("class archive written: the next start is faster")


def first_line(error: BaseException) -> str:
    """What went wrong, without the JVM's stack."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    causes = [line.strip() for line in lines if line.startswith(("Caused by:", "org.apache.kafka"))]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0][:500]


def main() -> int:
    """Until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    settings = Settings.read(os.environ)
    spark: SparkSession | None = None
    try:
        while True:
            try:
                spark = session.open_session(settings)
                session.kafka_jars_note(settings.home)
                LOG.info("Spark %s runs as %s", spark.version, settings.master)
                UsageJob(settings, spark).run()
            except (PySparkException, Py4JError, JavaNotFoundError, OSError) as error:
                LOG.exception("Spark does not run")
                _say(settings, f"Spark does not run: {first_line(error)}")
                spark = _closed(spark)
                time.sleep(LONGEST_PAUSE_S)
    except Stop:
        LOG.info("stopping")
    finally:
        _closed(spark)
    return 0


def _say(settings: Settings, problem: str) -> None:
    database = Database(settings.environment)
    try:
        with database.transaction() as cursor:
            database.sign_of_life(cursor, now_ms=int(time.time() * 1000), problem=problem)
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
