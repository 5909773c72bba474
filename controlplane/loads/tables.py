"""What the tables of an instance's loads still have of a topic whose records have expired: for a look at messages.

Which table that may be is said by rows of this instance alone: a load of the topic, one of whose runs has read the topic that has
that name now, by its id. The table says itself what it has (its last commit's manifest). It is read by a process of its own
(`lake.lookup`), which ends when its time is up.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from controlplane.env import ROOT
from controlplane.lake.planning import Span, Spans
from controlplane.lake.rows import Found, Row
from controlplane.loads.destinations import table_of
from controlplane.loads.models import Load, LoadRun
from controlplane.loads.unread import BROKEN, BUSY, ELSEWHERE, REASONS, SILENT, TableProblem

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from controlplane.instances.models import Instance

MODULE = "controlplane.lake.lookup"
MOST_TABLES = 3
"""That are asked, where a topic has more loads: those whose runs began last."""
OPEN_S = 5.0
"""Within which tables have said what they have."""
MOST_S = 12.0
"""How long a process may live."""
AT_ONCE, AT_ONCE_OF_ONE = 4, 2
"""Processes of one of ours, and of these for one organisation. Each may take `lookup.MOST_MEMORY_BYTES`."""
LONGEST_LINE = 64 * 2**20
PASSED_ON = ("PATH",)
ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "2",
    "TOKIO_WORKER_THREADS": "2",
}
_LOG = logging.getLogger("sluice.loads")


def has_loads(instance: Instance, topic: str) -> bool:
    """Whether there is any of the topic."""
    return _loads(instance, topic).exists()


def candidates(instance: Instance, topic: str, topic_id: str) -> list[Load]:
    """Loads that have read this topic, the one that ran last first."""
    rows = list(_loads(instance, topic)) if topic_id else []
    runs = LoadRun.objects.unscoped("the loads were found within their organisation")
    runs = runs.filter(load__in=rows, topic_id=as_in_tables(topic_id))
    last = dict(runs.order_by("pk").values_list("load_id", "pk"))
    return sorted((load for load in rows if load.pk in last), key=lambda load: -last[load.pk])[:MOST_TABLES]


def _loads(instance: Instance, topic: str) -> QuerySet[Load]:
    rows = Load.objects.unscoped("the instance was found within its organisation")
    return rows.filter(instance_id=instance.pk, organisation_id=instance.organisation_id, topic=topic)


def as_in_tables(topic_id: str) -> str:
    """An id as Java's clients write it, and so Spark: librdkafka has two other letters."""
    return topic_id.translate({ord("+"): "-", ord("/"): "_"})


class Turns:
    """Who may start a process now. A tenant whose store is slow keeps nobody else out."""

    def __init__(self) -> None:
        self._freed = threading.Condition()
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def turn(self, organisation_id: str, until_s: float) -> Iterator[bool]:
        """Whether it has come in time."""
        with self._freed:
            left_s = max(0.0, until_s - time.monotonic())
            has_come = self._freed.wait_for(lambda: self._is_free(organisation_id), left_s)
            self._under_way[organisation_id] += has_come
        try:
            yield has_come
        finally:
            with self._freed:
                self._under_way[organisation_id] -= has_come
                self._under_way += Counter()  # without those that have none
                self._freed.notify_all()

    def _is_free(self, organisation_id: str) -> bool:
        return self._under_way.total() < AT_ONCE and self._under_way[organisation_id] < AT_ONCE_OF_ONE


TURNS = Turns()


@contextmanager
def opened(load: Load, topic_id: str, until_s: float) -> Iterator[OpenTable]:
    """The table of a load, which has said what it has by `until_s` of the monotonic clock. Raises TableProblem."""
    order = {"uri": _uri(load), "options": {}, "topic_id": as_in_tables(topic_id), "within_s": MOST_S}
    with TURNS.turn(load.organisation_id, until_s) as has_come:
        if not has_come:
            raise TableProblem(load.pk, BUSY, is_passing=True)
        with _Process(load.pk) as process:
            said = process.ask(order, until_s)["spans"]
            yield OpenTable(load.pk, {int(at): Span(*pair) for at, pair in said.items()}, process)


@dataclass(frozen=True, slots=True)
class OpenTable:
    """One that has said what it has of the topic."""

    load_id: str
    spans: Spans
    _process: _Process

    def read(self, partition: int, span: Span, *, rows: int, most_bytes: int, until_s: float) -> Found:
        """Raises TableProblem. `until_s` is of the monotonic clock."""
        asked = {"partition": partition, "first": span.first, "end": span.end, "rows": rows, "bytes": most_bytes}
        self._process.send(asked)
        found: list[Row] = []
        while True:
            said = self._process.line(until_s)
            if "upto" in said:
                return Found(found, said["upto"])
            found.append(_row(said["row"]))


class _Process:
    """`lake.lookup` as a process; killed at the end of the `with` statement, wherever it is."""

    def __init__(self, load_id: str) -> None:
        self._load_id = load_id
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | ENVIRONMENT
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own program, without words
                [sys.executable, "-m", MODULE], cwd=ROOT, env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise TableProblem(load_id, BUSY, is_passing=True) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._read = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._process.kill()
        self._selector.close()
        self._output.close()
        self._input.close()
        self._process.wait()

    def ask(self, question: Mapping[str, Any], until_s: float) -> Any:
        """The one line that answers."""
        self.send(question)
        return self.line(until_s)

    def send(self, question: Mapping[str, Any]) -> None:
        """One line."""
        try:
            self._input.write(json.dumps(question).encode() + b"\n")
        except BrokenPipeError:
            return  # its last words, or that it has none, are read next

    def line(self, until_s: float) -> Any:
        """What it says next. Raises TableProblem."""
        end = self._read.find(b"\n")
        while end < 0:
            if not self._selector.select(max(0.0, until_s - time.monotonic())):
                raise TableProblem(self._load_id, SILENT, is_passing=True)
            more = os.read(self._output.fileno(), 2**16)
            if not more or len(self._read) > LONGEST_LINE:
                _LOG.warning("the table of %s was not read: the reader ended without a word", self._load_id)
                raise TableProblem(self._load_id, BROKEN)
            at = len(self._read)
            self._read += more
            end = self._read.find(b"\n", at)
        said = json.loads(self._read[:end])
        del self._read[: end + 1]
        if "problem" in said:
            _LOG.warning("the table of %s was not read: %s: %s", self._load_id, said["problem"], said["says"][:1000])
            raise TableProblem(self._load_id, REASONS[said["problem"]], is_passing=said["problem"] == "away")
        return said


def _row(said: list[Any]) -> Row:
    offset, timestamp_ms, key, value, headers = said
    return Row(offset, timestamp_ms, _bytes(key), _bytes(value), tuple((name, _bytes(text)) for name, text in headers))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _uri(load: Load) -> str:
    """As delta-rs writes it. A bucket has a copy, which is never read."""
    table = table_of(load.folder)
    if table is None:
        raise TableProblem(load.pk, ELSEWHERE)
    return table.as_uri()
