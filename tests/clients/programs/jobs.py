"""What the Python programs share: jobs from standard input, answers to standard output, and what the client logs.

A client's log counts as what it says, since some do not raise what has happened: warnings and errors of a job are added to the
words of its answer.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAUSE_S = 0.01
"""Between two records of a steady job."""
KEYS = 97
_MOST_LOGGED = 50


@dataclass
class Outcome:
    """Of a job; without words nothing has gone wrong."""

    words: list[str] = field(default_factory=list)
    sent: int = 0
    received: int = 0
    distinct: int = 0


def key_of(number: int) -> bytes:
    return b"k%d" % (number % KEYS)


def value_of(number: int) -> bytes:
    return b"v%d" % number


def serve(does: Mapping[str, Callable[[dict[str, Any]], Outcome]]) -> None:
    """Do what each line asks for, until there are no more."""
    logged = _Logged()
    logging.getLogger().addHandler(logged)
    for line in sys.stdin:
        job = json.loads(line)
        logged.lines.clear()
        try:
            outcome = does[job["do"]](job)
        except Exception as error:  # noqa: BLE001 - whatever a client raises is what it says
            outcome = Outcome([f"{type(error).__name__}: {error}"])
        is_good = not outcome.words
        numbers = {"sent": outcome.sent, "received": outcome.received, "distinct": outcome.distinct}
        words = "; ".join([*outcome.words, *(f"log: {one}" for one in logged.lines[:_MOST_LOGGED])])
        print(json.dumps({"name": job["name"], "ok": is_good, "words": words, **numbers}), flush=True)


class _Logged(logging.Handler):
    """Keeps warnings and worse, once each."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self.lines:
            self.lines.append(text)


class Deadline:
    """Of a job."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end
