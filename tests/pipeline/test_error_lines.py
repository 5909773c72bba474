"""What is said of an error of Spark's in one line."""

from __future__ import annotations

import pytest

from controlplane.spark.errors import TRACEBACK, PlainError, first_line, said

_JVM = (
    "\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)\n"
)
_PYTHON = (
    "Traceback (most recent call last):\n"
    '  File "/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1247, in main\n'
    "    process()\n"
    '  File "/srv/sluice/controlplane/metering/pipeline/quota_tables.py", line 98, in stage\n'
    "    database.run_many(cursor, statement, portion)\n"
)
OF_AN_EXECUTOR = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent "
    f"failure: Lost task 0.0 in stage 3.0 (TID 7) (host executor driver): org.apache.spark.api.python.PythonException: {_PYTHON}"
    "psycopg.OperationalError: connection failed: connection refused\n"
    "\tIs the server running on that host?\n"
    "\n"
    f"{_JVM}"
    f"Caused by: org.apache.spark.api.python.PythonException: {_PYTHON}"
    "psycopg.OperationalError: connection failed: connection refused\n"
    "\tIs the server running on that host?\n"
    "\n"
    f"{_JVM}"
)


WHILE_ANOTHER = (
    f"Caused by: org.apache.spark.api.python.PythonException: {_PYTHON}KeyError: 7\n\n"
    "During handling of the above exception, another exception occurred:\n\n"
    f"{_PYTHON}ValueError: no minute has 7\n\n{_JVM}"
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "RuntimeError"),
        ("\n  the lake is away\n\tat org.apache.spark …", "the lake is away"),
        (f"no\n{_JVM}Caused by: java.net.ConnectException: refused\n{_JVM}", "Caused by: java.net.ConnectException: refused"),
        (OF_AN_EXECUTOR, "psycopg.OperationalError: connection failed: connection refused"),
        (
            WHILE_ANOTHER,
            "ValueError: no minute has 7",
        ),
        (f"An exception was thrown: {_PYTHON}ZeroDivisionError: division by zero\n", "ZeroDivisionError: division by zero"),
        (f"Caused by: PythonException: {TRACEBACK}", f"Caused by: PythonException: {TRACEBACK}"),
        ("x" * 1000, "x" * 500),
    ],
)  # fmt: skip
def test_a_line_has_what_went_wrong_and_neither_stack(text, line):
    assert first_line(RuntimeError(text)) == line


def test_of_others_errors_the_class_is_named():
    assert said(ValueError("no")) == "ValueError: no"
    assert said(PlainError("the day has no minutes")) == "the day has no minutes"
