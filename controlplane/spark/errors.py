"""Spark's errors in a line."""

from __future__ import annotations

from collections.abc import Sequence

TRACEBACK = "Traceback (most recent call last):"
LONGEST = 500


class PlainError(Exception):
    """An error of ours whose text says all: people read it without the name of its class."""


def said(error: BaseException) -> str:
    """What went wrong, in a line: the name of its class before it where it is not ours."""
    return first_line(error) if isinstance(error, PlainError) else f"{type(error).__name__}: {first_line(error)}"


def first_line(error: BaseException) -> str:
    """What went wrong, without the JVM's stack. Of an executor's Python: the error itself, without Python's stack."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    causes = [at for at, line in enumerate(lines) if line.strip().startswith(("Caused by:", "org.apache.kafka"))]
    if not lines:
        return type(error).__name__
    at = causes[-1] if causes else 0
    found = lines[at].strip()
    if not causes or found.endswith(TRACEBACK):
        found = _of_python(lines[at:]) or found
    return found[:LONGEST]


def _of_python(lines: Sequence[str]) -> str | None:
    """The error below the last traceback: an earlier one was being handled when it was raised. None: there is none."""
    headers = [at for at, line in enumerate(lines) if line.endswith(TRACEBACK)]
    if not headers:
        return None
    # Frames and source are indented, as is the JVM's stack behind it.
    return next((line.strip() for line in lines[headers[-1] + 1 :] if not line[:1].isspace()), None)
