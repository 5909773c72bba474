"""The program: `python -m controlplane.lake.load --brokers host:port --topic orders --to file:/lake/orders`, or spark-submit.

Progress goes to standard error, the summary to standard output. The exit status is 0, or that of the error (`errors`); 2
as well for words that make no sense.

===================== ========================================================= ================================
variable              meaning                                                   default
===================== ========================================================= ================================
SPARK_MASTER          a Spark cluster, where spark-submit does not say it       ``local[*]``
SLUICE_STACK_DIR      below it the JVM's files (jars of Delta and Kafka source) ``var``
===================== ========================================================= ================================
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from controlplane.env import Environment
from controlplane.java import JavaNotFoundError
from controlplane.lake import timestamps
from controlplane.lake.errors import LakeError
from controlplane.lake.loading import Load, Summary
from controlplane.lake.progress import Say
from controlplane.lake.report import Reporter
from controlplane.lake.request import LONGEST_RUN_S, Request
from controlplane.spark.archive import archive_write
from controlplane.spark.delta import OPTIONS
from controlplane.spark.errors import first_line
from controlplane.spark.jars import DELTA, KAFKA_SOURCE
from controlplane.spark.session import Setup, close_session, is_submitted, open_session
from controlplane.spark.topics import TopicAwayError

PACKAGES = (KAFKA_SOURCE, DELTA)
ON_ONE_MACHINE = {
    # Of 50 tasks to read a table's log, and 200 after a shuffle, most of a small load would be spent on starting them.
    "spark.databricks.delta.snapshotPartitions": "4",
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.memory": "2g",  # at most: each task that writes Parquet keeps up to 128 MB
}
"""Where the driver's JVM does the work of executors."""
FAILED = 1
ENDS_AFTER_S = LONGEST_RUN_S + 600
"""A service's load, which somebody should have stopped before."""


def setup(variables: Mapping[str, str]) -> Setup:
    """What a load wants of Spark."""
    home = Environment.read(variables).stack_dir / "lake-load"
    master = variables.get("SPARK_MASTER") or "local[*]"
    made = Setup("sluice-lake-load", home, master, PACKAGES, OPTIONS, timestamps.JAVA_OPTIONS)
    return replace(made, options={**OPTIONS, **ON_ONE_MACHINE}) if made.is_local else made


def run(spark: SparkSession, request: Request, say: Say) -> tuple[int, Summary | None]:
    """The exit status, and what was loaded. Errors are said."""
    try:
        return 0, Load(spark, request, say).run()
    except LakeError as error:
        say(str(error))
        return error.exit_status, None
    except TopicAwayError as error:
        say(str(error))
    except (PySparkException, Py4JError, OSError) as error:
        say(f"{type(error).__name__}: {first_line(error)}")
    except Exception as error:  # whoever has started it has to hear of that, too
        logging.getLogger("sluice.lake").exception("the load ends")
        say(f"{type(error).__name__}: {first_line(error)}")
    return FAILED, None


def _end_after(longest_s: float) -> None:
    """Whoever has started it may be stopped, and not see that it is time: what it writes then may be deleted by the next load.

    The JVM ends when its standard input does.
    """
    timer = threading.Timer(longest_s, os._exit, (FAILED,))
    timer.daemon = True
    timer.start()


def main(words: Sequence[str]) -> int:
    """The exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    log = logging.getLogger("sluice.lake")
    request = Request.read(words)
    if request.tidies:
        _end_after(ENDS_AFTER_S)
    wanted = setup(os.environ)
    reporter = Reporter(request.report, log.info)
    summaries = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the JVM inherits as standard output is not for its own words
    try:
        spark = open_session(wanted)
    except (PySparkException, Py4JError, JavaNotFoundError, OSError) as error:
        reporter.say(f"Spark does not run: {first_line(error)}")
        reporter.end(FAILED, None)
        return FAILED
    try:
        status, summary = run(spark, request, reporter.say)
        reporter.end(status, summary)
        if summary is not None:
            summaries.writelines(f"{line}\n" for line in summary.lines())
            summaries.flush()
            if summary.commits and wanted.is_local and not is_submitted():
                archive_write(spark, wanted.home, wanted.jars)
        return status
    finally:
        close_session(spark)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
