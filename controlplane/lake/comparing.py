"""What the programs that compare have in common: a session of Spark, the exit status, a line for each partition."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from controlplane.java import JavaNotFoundError
from controlplane.lake.load import FAILED, setup
from controlplane.lake.progress import Say
from controlplane.spark.errors import first_line
from controlplane.spark.session import close_session, open_session

DIFFERENT = 7

Compare = Callable[[SparkSession, Say], tuple[int, Sequence[str]]]
"""The exit status, and a line for each partition. Errors are said."""


def compared(compare: Compare) -> int:
    """The exit status of a program that does this and no more. Words of the command line are read before: a JVM takes seconds."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    log = logging.getLogger("sluice.lake")
    try:
        spark = open_session(setup(os.environ))
    except (PySparkException, Py4JError, JavaNotFoundError, OSError) as error:
        log.error("Spark does not run: %s", first_line(error))  # noqa: TRY400  # a page of Java says no more
        return FAILED
    try:
        status, lines = compare(spark, log.info)
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return status
    finally:
        close_session(spark)
