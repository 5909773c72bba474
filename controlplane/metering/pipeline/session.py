"""The jobs' own Spark: of the stream with Kafka source and Delta Lake, and options that suit batches of some thousand rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane.metering.pipeline.settings import Settings
from controlplane.spark import archive, delta, jars
from controlplane.spark import session as spark
from controlplane.spark.jars import DELTA, KAFKA_SOURCE
from controlplane.spark.session import close_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["archive_write", "close_session", "kafka_jars", "open_batch_session", "open_session", "options"]

OPTIONS = {
    "spark.sql.shuffle.partitions": "2",  # a batch is thousands of rows, not millions
    "spark.sql.adaptive.enabled": "false",  # plans anew what is too small to matter
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.metricsEnabled": "false",
}
"""Of the stream. On a cluster: as long as its operator says nothing else."""
PACKAGES = (KAFKA_SOURCE, DELTA)
"""Of the stream."""
ON_ONE_MACHINE = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}
"""Of 50 tasks to read a table's log most of a batch would be spent on starting them; VACUUM lists folders in up to 10,000."""

BATCH_OPTIONS = {"spark.sql.shuffle.partitions": "4"}
"""Of jobs that run for a minute a day, where one machine does the work of executors."""


def open_batch_session(settings: Settings, app: str, *, with_delta: bool = False) -> SparkSession:
    """For a job that ends. By spark-submit master and memory are the operator's, on a cluster all options. Raises as below.

    `with_delta`: it reads the lake. The jars are the stream's, which has fetched them.
    """
    if with_delta:
        setup = spark.Setup(app, settings.home, settings.master, PACKAGES, delta.OPTIONS)
        on_one_machine = {**delta.OPTIONS, **BATCH_OPTIONS, **ON_ONE_MACHINE}
    else:
        setup = spark.Setup(app, settings.environment.stack_dir / app, settings.master)
        on_one_machine = BATCH_OPTIONS
    return spark.open_session(replace(setup, options=on_one_machine) if setup.is_local else setup)


def open_session(settings: Settings, *, with_kafka: bool = True) -> SparkSession:
    """A running session. Raises JavaNotFoundError, and PySpark's errors where the JVM does not come up."""
    return spark.open_session(_setup(settings, with_kafka=with_kafka))


def options(settings: Settings, *, with_kafka: bool) -> dict[str, str]:
    """Spark's configuration. Nothing secret: it goes over the JVM's command line."""
    return spark.options(_setup(settings, with_kafka=with_kafka))


def _setup(settings: Settings, *, with_kafka: bool) -> spark.Setup:
    packages, chosen = (PACKAGES, delta.OPTIONS) if with_kafka else ((), {})
    setup = spark.Setup("sluice-usage", settings.home, settings.master, packages, chosen, spark.QUICK_COMPILER, OPTIONS)
    if not setup.is_local:
        return setup
    return replace(setup, options={**OPTIONS, **chosen, **(ON_ONE_MACHINE if with_kafka else {})})


def kafka_jars(home: Path) -> list[Path]:
    """The Kafka source, Delta Lake and what they need, once they have been fetched."""
    return jars.fetched(home, PACKAGES)


def archive_write(session: SparkSession, home: Path) -> bool:
    """Have the running JVM write its class archive, if it was started to. Called when all is loaded."""
    return archive.archive_write(session, home, kafka_jars(home))
