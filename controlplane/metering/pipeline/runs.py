"""What jobs say of their runs, by DB-API (model `JobRun`): each writes its own row, whoever started it.

A row is `waiting` when somebody asks for a run, and `running` once the job has begun; one that nobody asked for begins as
running. While it runs the job leaves signs of life. One that was killed leaves none: whoever begins a job a minute later, or the
runner, says of it that it died. Where it lives after all (its machine stood still, the database was away), its next sign of life
takes that back.

A daily job has one run at a time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from controlplane.env import Environment
from controlplane.metering.pipeline.schedule import DAY_MS, JOBS, SILENT_MS, State
from controlplane.metering.pipeline.tables import Database
from controlplane.spark.errors import PlainError, said

LOG = logging.getLogger("sluice.runs")
TABLE = "metering_jobrun"
KEPT_MS = 400 * DAY_MS
LONGEST_WHAT = 64
LIFE_S = 5
SIGNS_END_WITHIN_S = 4 * LIFE_S
"""More than a sign waits for a lock. A database that never answers must not keep the job from ending."""
DIED = "it died without a word"
TAKEN = 4
"""The exit status of a job that has not begun: NotBegunError. Its row is another process's, or waits."""
_IS_LIVE = "(state = ? OR (state = ? AND reason = ?))"
_LIVE = (State.RUNNING.value, State.FAILED.value, DIED)
"""It runs, or was only thought to have died."""


class NotBegunError(PlainError):
    """There is to be no run now."""


class NotWaitingError(NotBegunError):
    """The run that was named is not there, or has begun already."""


class BusyError(NotBegunError):
    """Another run of the job is under way."""


@dataclass(slots=True)
class Current:
    """The run that is under way; what it has done is filled in while it goes on."""

    number: int
    rows: int = 0
    done_to_ms: int | None = None


def ask(database: Database, cursor: Any, *, job: str, what: str, at_ms: int) -> int:
    """A run that waits to be started, by the schedule."""
    return _insert(database, cursor, job, what, State.WAITING, at_ms, None)


def begin(database: Database, cursor: Any, *, job: str, what: str, at_ms: int, number: int | None = None) -> int:
    """The job has begun: the run that was asked for (`number`), or one of its own. Raises NotWaitingError and BusyError."""
    is_daily = job in JOBS and JOBS[job].is_daily
    if is_daily:
        database.writers_wait(cursor, TABLE)
    bury(database, cursor, at_ms)
    if is_daily:
        statement = f"SELECT id FROM {TABLE} WHERE job = ? AND state = ?"  # noqa: S608
        database.run(cursor, statement, [job, State.RUNNING.value])
        others = [other for (other,) in cursor.fetchall() if other != number]
        if others:
            raise BusyError(f"run {others[0]} of {job} is under way")
    database.run(cursor, f"DELETE FROM {TABLE} WHERE job = ? AND asked_at_ms < ?", [job, at_ms - KEPT_MS])  # noqa: S608
    if number is None:
        return _insert(database, cursor, job, what, State.RUNNING, at_ms, at_ms)
    taken = database.run(
        cursor,
        f"UPDATE {TABLE} SET state = ?, started_at_ms = ?, seen_at_ms = ? WHERE id = ? AND job = ? AND state = ?",  # noqa: S608
        [State.RUNNING.value, at_ms, at_ms, number, job, State.WAITING.value],
    )
    if not taken:
        raise NotWaitingError(f"run {number} of {job} does not wait to be started")
    return number


def seen(database: Database, cursor: Any, run: Current, at_ms: int) -> None:
    """A sign of life, with what has been done so far. It is worth more than what others have concluded from silence."""
    database.run(
        cursor,
        f"UPDATE {TABLE} SET state = ?, ended_at_ms = NULL, reason = '', seen_at_ms = ?, row_count = ?, done_to_ms = ?"  # noqa: S608
        f" WHERE id = ? AND {_IS_LIVE}",
        [State.RUNNING.value, at_ms, run.rows, run.done_to_ms, run.number, *_LIVE],
    )


def end(database: Database, cursor: Any, run: Current, at_ms: int, *, problem: str | None = None) -> None:
    """It is over; `problem`: why it failed. What has said how it ended stays so.

    One that never began has begun now: what goes by the last runs must see it.
    """
    state = State.SUCCEEDED if problem is None else State.FAILED
    database.run(
        cursor,
        f"UPDATE {TABLE} SET state = ?, started_at_ms = COALESCE(started_at_ms, ?), ended_at_ms = ?, seen_at_ms = ?,"  # noqa: S608
        f" row_count = ?, done_to_ms = ?, reason = ? WHERE id = ? AND (state = ? OR {_IS_LIVE})",
        [
            state.value, at_ms, at_ms, at_ms, run.rows, run.done_to_ms, problem or "", run.number, State.WAITING.value,
            *_LIVE,
        ],
    )  # fmt: skip


def bury(database: Database, cursor: Any, at_ms: int) -> None:
    """Say of runs that give no sign of life that they died. One from times to come is none: it was a clock that was ahead."""
    ended = "CASE WHEN seen_at_ms > ? THEN ? ELSE seen_at_ms END"
    database.run(
        cursor,
        f"UPDATE {TABLE} SET state = ?, ended_at_ms = {ended}, reason = ?"  # noqa: S608
        " WHERE state = ? AND (seen_at_ms < ? OR seen_at_ms > ?)",
        [State.FAILED.value, at_ms, at_ms, DIED, State.RUNNING.value, at_ms - SILENT_MS, at_ms + SILENT_MS],
    )


@contextlib.contextmanager
def recorded(environment: Environment, *, job: str, what: str = "", number: int | None = None) -> Iterator[Current]:
    """The row of a run around its work: how it ends is how the block ends. Raises NotWaitingError and BusyError."""
    database = Database(environment)
    with database.transaction() as cursor:
        run = Current(begin(database, cursor, job=job, what=what, at_ms=now_ms(), number=number))
    over = threading.Event()
    signs = threading.Thread(target=_signs, args=(environment, run, over), daemon=True)
    signs.start()
    problem: str | None = DIED
    try:
        yield run
        problem = None
    except BaseException as error:
        problem = said(error)
        raise
    finally:
        over.set()
        signs.join(SIGNS_END_WITHIN_S)
        with database.transaction() as cursor:
            end(database, cursor, run, now_ms(), problem=problem)
        database.close()


def _signs(environment: Environment, run: Current, over: threading.Event) -> None:
    database = Database(environment, patience_s=LIFE_S)  # a thread that writes has a connection of its own
    while not over.wait(LIFE_S):
        try:
            with database.transaction() as cursor:
                seen(database, cursor, run, now_ms())
        except Exception as error:  # noqa: BLE001  # drivers have error trees of their own
            LOG.warning("the database does not take a sign of life: %s", error)
    database.close()


def _insert(
    database: Database, cursor: Any, job: str, what: str, state: State, at_ms: int, started_at_ms: int | None
) -> int:
    database.run(
        cursor,
        f"INSERT INTO {TABLE} (job, what, state, asked_at_ms, asked_by, started_at_ms, seen_at_ms, row_count, reason)"  # noqa: S608
        " VALUES (?, ?, ?, ?, '', ?, ?, 0, '') RETURNING id",
        [job, what, state.value, at_ms, started_at_ms, started_at_ms],
    )
    return int(cursor.fetchone()[0])


def now_ms() -> int:
    """By the clock of this machine."""
    return int(time.time() * 1000)
