"""Days that are over, as the database keeps them: instance-hours and topic-days, and no row for each topic, boot and hour.

Key rows (`maxima.Maxima`) are the form in which the stream writes: because a maximum is only ever raised, kills, repetitions and
late records do no harm. They stay so. Once a day is final it is *folded*: what its key rows come to is added up into rows of the
tables FOLDED, and the horizon, `folded_to` of the one row of `metering_fold`, moves behind it, all in one transaction. From then
on nobody reads key rows before the horizon::

                 folded_to
    ──────────────────┤──────────────────────────────> hours
    FOLDED tables     │  key rows
    key rows: anchors │

Readers take both sides in one statement (`hours_sql`), in which the horizon is a subquery: so a fold that comes between two
statements of theirs takes nothing from them. What is late for a folded hour is raised in its key row as ever, which keeps
`…_before` of later hours right and is otherwise not seen; the reconciliation recomputes folded days from the raw records and puts
them right.

Of the key rows before the horizon the last of each key stays, its *anchor*: the next row of the key takes over from it what was
counted before. All others are deleted, so many at a time. An anchor goes when its boot tells nothing any more (`boots_gone`).

Another kind of record that is to be folded is a line in FOLDED and its model.

Here are the statements, and what runs them: a `Runs`, the jobs' `Database` or Django's connection.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from controlplane.metering.pipeline.maxima import INSTANCES, TOPICS, USERS, Maxima
from controlplane.metering.pipeline.tables import STATEMENT_TABLE

FOLD_TABLE = "metering_fold"
FOLDED_TO = f"COALESCE((SELECT folded_to FROM {FOLD_TABLE} WHERE id = 1), '')"  # noqa: S608
"""The horizon within a statement: the first hour that is not folded; '': none is."""
WIDE = frozenset({"stored_byte_seconds"})
"""Counters whose sums pass 63 bits: 2.5 PB of an instance for an hour, 107 TB of a topic for a day. They stand in two columns."""
MILLION = 1_000_000
SLICE = 5000
"""Key rows that one transaction looks at to delete them."""
SERIALIZATION_FAILURE = "40001"


class Runs(Protocol):
    """What can run statements with ``?`` for values: `tables.Database`, and Django's connection."""

    @property
    def is_sqlite(self) -> bool: ...

    def transaction(self) -> contextlib.AbstractContextManager[Any]: ...

    def run(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> int: ...

    def read(self, statement: str, values: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]: ...


def grown(name: str) -> str:
    """What a counter of a key row has grown by in its hour."""
    return f"CASE WHEN {name} > {name}_before THEN {name} - {name}_before ELSE 0 END"


def largest(name: str) -> str:
    """The largest that a key row knows of its counter: a late record of an earlier hour may have said more."""
    return f"CASE WHEN {name} > {name}_before THEN {name} ELSE {name}_before END"


@dataclass(frozen=True, slots=True)
class Folded:
    """A table of sums: of some key rows, by a part of their owner and by hour or day. Names are constants."""

    table: str
    source: Maxima
    key: tuple[str, ...]
    unit: str  # "hour" or "day", which is the column's name as well

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the table, in the order of `values`."""
        return (*self.key, self.unit, *(column for name in self.source.counters for column in self.stored_as(name)))

    @staticmethod
    def stored_as(name: str) -> tuple[str, ...]:
        """The columns of a counter."""
        return (f"{name}_millions", f"{name}_rest") if name in WIDE else (name,)

    def summed(self, counters: Iterable[str] | None = None) -> str:
        """Sums of the table's own columns."""
        names = self.source.counters if counters is None else counters
        return ", ".join(f"SUM({column}) AS {column}" for name in names for column in self.stored_as(name))

    def counted(self, counters: Iterable[str] | None = None) -> str:
        """The same columns of a key row."""
        return ", ".join(f"{value} AS {column}" for column, value in self.of_keys(counters).items())

    def of_keys(self, counters: Iterable[str] | None = None) -> dict[str, str]:
        """What each column is of a key row. Without a remainder sign, which drivers would take for their own."""
        found: dict[str, str] = {}
        for name in self.source.counters if counters is None else counters:
            used = f"({grown(name)})"
            millions = f"{used} / {MILLION}"
            values = (millions, f"{used} - {millions} * {MILLION}") if name in WIDE else (used,)
            found.update(zip(self.stored_as(name), values, strict=True))
        return found

    def counters_of(self, row: Sequence[Any], counters: Iterable[str] | None = None) -> tuple[int, ...]:
        """Whole numbers from a row of `summed` or `counted`."""
        left = iter(row)
        return tuple(
            int(next(left)) * MILLION + int(next(left)) if name in WIDE else int(next(left))
            for name in (self.source.counters if counters is None else counters)
        )

    def values(self, key: Sequence[Any], counters: Sequence[int]) -> tuple[Any, ...]:
        """A row in the order of `columns`; `key` with the hour or day."""
        stored: list[int] = []
        for name, value in zip(self.source.counters, counters, strict=True):
            stored += divmod(value, MILLION) if name in WIDE else (value,)
        return (*key, *stored)

    def fold_sql(self) -> str:
        """Add up the key rows of hours [?, ?). An instance at a time: the index is by instance and hour."""
        unit = "m.hour" if self.unit == "hour" else "SUBSTR(m.hour, 1, 10)"
        key = ", ".join(f"m.{name}" for name in self.key)
        return (
            f"INSERT INTO {self.table} ({', '.join(self.columns)}) {_instances(self.source)}"  # noqa: S608
            f" SELECT {key}, {unit}, {self.summed()} FROM owners CROSS JOIN"
            f" (SELECT {', '.join(self.source.owner)}, hour, {self.counted()} FROM {self.source.table}) m"
            f" WHERE m.instance = owners.instance AND m.hour >= ? AND m.hour < ? GROUP BY {key}, {unit}"
        )

    def put_sql(self) -> str:
        """One row in the order of `columns`, in place of what is there, if it is of a day that is folded."""
        counters = self.columns[len(self.key) + 1 :]
        taken = ", ".join(f"{name} = excluded.{name}" for name in counters)
        return (
            f"INSERT INTO {self.table} ({', '.join(self.columns)}) VALUES ({', '.join('?' * len(self.columns))})"  # noqa: S608
            f" ON CONFLICT ({', '.join((*self.key, self.unit))}) DO UPDATE SET {taken}"
        )

    def hours_sql(self) -> str:
        """(hour, columns) of an instance's hours on both sides of the horizon, in order. Values: `scope` twice."""
        return (
            f"SELECT hour, {self.summed()} FROM ("  # noqa: S608
            f"SELECT hour, {', '.join(self.columns[2:])} FROM {self.table} WHERE {SCOPE}"
            f" UNION ALL SELECT hour, {self.counted()} FROM {self.source.table} WHERE {SCOPE} AND hour >= {FOLDED_TO}"
            ") AS used GROUP BY hour ORDER BY hour"
        )


SCOPE = "instance = ? AND hour >= ? AND hour < ?"
"""Hours of an instance, of key rows and of instance-hours."""
TOPIC_HOURS = Folded("metering_foldedhour", TOPICS, ("instance",), "hour")
TOPIC_DAYS = Folded("metering_foldedtopicday", TOPICS, ("instance", "topic"), "day")
INSTANCE_HOURS = Folded("metering_foldedinstancehour", INSTANCES, ("instance",), "hour")
USER_HOURS = Folded("metering_foldeduserhour", USERS, ("instance",), "hour")
USER_DAYS = Folded("metering_foldeduserday", USERS, ("instance", "user_name"), "day")
FOLDED = (TOPIC_HOURS, TOPIC_DAYS, INSTANCE_HOURS, USER_HOURS, USER_DAYS)
SOURCES = tuple(dict.fromkeys(each.source for each in FOLDED))
"""Tables of key rows; each has an index by instance and hour."""


class Horizon(NamedTuple):
    """The one row: how far days are folded, and how far the key rows before it are deleted."""

    folded_to: str  # an hour, the beginning of a day; "": nothing is folded
    swept_to: str  # of the last pass that came to its end
    sweep_to: str  # of the pass that is under way; "": none is
    sweep_source: int  # of SOURCES
    sweep_id: int  # up to where the pass has looked


_HORIZON = f"SELECT {', '.join(Horizon._fields)} FROM {FOLD_TABLE} WHERE id = 1"  # noqa: S608


def horizon(database: Runs, cursor: Any) -> Horizon:
    """As it is now."""
    database.run(cursor, _HORIZON)
    row = cursor.fetchone()
    return Horizon("", "", "", 0, 0) if row is None else Horizon(*row)


def begin(database: Runs) -> None:
    """See to it that the row is there."""
    with database.transaction() as cursor:
        database.run(
            cursor,
            f"INSERT INTO {FOLD_TABLE} (id, folded_to, swept_to, sweep_to, sweep_source, sweep_id, reason)"  # noqa: S608
            " VALUES (1, '', '', '', 0, 0, '') ON CONFLICT (id) DO NOTHING",
        )


def first_hour(database: Runs, cursor: Any, since: str) -> str | None:
    """The first hour from one on that has key rows; None: there is none."""
    found = []
    for source in SOURCES:
        least = f"(SELECT MIN(hour) FROM {source.table} WHERE instance = owners.instance AND hour >= ?)"  # noqa: S608
        database.run(cursor, f"{_instances(source)} SELECT MIN({least}) FROM owners", [since])  # noqa: S608
        found.append(cursor.fetchone()[0])
    return min(filter(None, found), default=None)


def fold(database: Runs, *, since: str, until: str) -> bool:
    """Fold hours [since, until) and move the horizon; False: somebody else has moved it. Again, if need be: it counts once."""
    try:
        with database.transaction() as cursor:
            if not database.is_sqlite:  # all sums of one moment, and no writer waits: what comes meanwhile is late
                database.run(cursor, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            move = f"UPDATE {FOLD_TABLE} SET folded_to = ? WHERE id = 1 AND folded_to = ?"  # noqa: S608
            if not database.run(cursor, move, [until, since]):  # first: the second of two waits here
                return False
            for folded in FOLDED:
                database.run(cursor, folded.fold_sql(), [since, until])
        return True
    except Exception as error:
        if SERIALIZATION_FAILURE in (getattr(error, "sqlstate", ""), getattr(error.__cause__, "sqlstate", "")):
            return False
        raise


def sweep(database: Runs, gone: Gone, *, most: int = SLICE) -> bool:
    """Delete what one transaction may of the key rows before the horizon; False: there is nothing left to do.

    A pass goes by id through all tables. Where it is stands in the row, so that a pass that is killed goes on.
    """
    with database.transaction() as cursor:
        now = horizon(database, cursor)
        if not now.sweep_to:
            if now.swept_to >= now.folded_to:
                return False
            now = now._replace(sweep_to=now.folded_to, sweep_source=0, sweep_id=0)
        source = SOURCES[now.sweep_source]
        last = _slice_end(database, cursor, source, now.sweep_id, most)
        if last is not None:
            _delete(database, cursor, source, (now.sweep_id, last), now.sweep_to, gone)
            now = now._replace(sweep_id=last)
        elif now.sweep_source + 1 < len(SOURCES):
            now = now._replace(sweep_source=now.sweep_source + 1, sweep_id=0)
        else:
            now = now._replace(swept_to=now.sweep_to, sweep_to="", sweep_source=0, sweep_id=0)
        database.run(
            cursor,
            f"UPDATE {FOLD_TABLE} SET swept_to = ?, sweep_to = ?, sweep_source = ?, sweep_id = ? WHERE id = 1",  # noqa: S608
            now[1:],
        )
        return bool(now.sweep_to)


class Gone(NamedTuple):
    """Boots that tell nothing any more, without generations, and before which hour their anchors go."""

    before: str
    boots: Collection[str] = ()


NOBODY = Gone("")


def boots_gone(database: Runs, *, before: str, before_ms: int) -> Gone:
    """Boots that no key row names from a moment on, and that a later boot of their broker has told to their end.

    By the moment `__usage` must have lost their records: one that came again would be counted from 0.
    """
    statements = database.read(f"SELECT after FROM {STATEMENT_TABLE}")  # noqa: S608
    told = {boot for (after,) in statements for boot in after.split(",") if boot}
    named, live = set[str](), set[str]()
    for source in SOURCES:
        newest = f"SELECT boot, MAX(hour), MAX(updated_at_ms) FROM {source.table} GROUP BY boot"  # noqa: S608
        for boot, hour, at_ms in database.read(newest):
            (named if hour < before and at_ms < before_ms else live).add(boot)
    alive = {_without_generation(boot) for boot in live}
    return Gone(before, sorted(({_without_generation(boot) for boot in named} & told) - alive))


def rows_kept(database: Runs) -> dict[str, int]:
    """Key rows by table."""
    counts = {source.table: database.read(f"SELECT COUNT(*) FROM {source.table}") for source in SOURCES}  # noqa: S608
    return {table: int(count) for table, rows in counts.items() for (count,) in rows}


def _without_generation(boot: str) -> str:
    return boot.partition(".")[0]


def _slice_end(database: Runs, cursor: Any, source: Maxima, after: int, most: int) -> int | None:
    few = f"SELECT id FROM {source.table} WHERE id > ? ORDER BY id LIMIT {most}"  # noqa: S608
    database.run(cursor, f"SELECT MAX(id) FROM ({few}) AS few", [after])  # noqa: S608
    last: int | None = cursor.fetchone()[0]
    return last


def _delete(database: Runs, cursor: Any, source: Maxima, ids: tuple[int, int], before: str, gone: Gone) -> None:
    """Rows with ids (first, last] that a newer one before the horizon stands for, and those of boots that are gone.

    A row that a writer holds is left for the next pass: whoever waits for nobody is in nobody's deadlock.
    """
    base = "SPLIT_PART({}.boot, '.', 1)"
    if database.is_sqlite:
        base = "CASE WHEN INSTR({0}.boot, '.') = 0 THEN {0}.boot ELSE SUBSTR({0}.boot, 1, INSTR({0}.boot, '.') - 1) END"
    # Of a user another generation stands for those before it as well: a broker never goes on with one that it has forgotten.
    boot = f"{base.format('b')} = {base.format('a')}" if source is USERS else "b.boot = a.boot"
    same = " AND ".join([*(f"b.{name} = a.{name}" for name in source.owner if name != "boot"), boot])
    newer = f"SELECT 1 FROM {source.table} b WHERE {same} AND b.hour > a.hour AND b.hour < ?"  # noqa: S608
    dispensable, values = f"EXISTS ({newer})", [*ids, before, before]
    if gone.boots:
        names = ", ".join("?" * len(gone.boots))
        dispensable = f"({dispensable} OR (a.hour < ? AND {base.format('a')} IN ({names})))"
        values += [gone.before, *gone.boots]
    skipping = "" if database.is_sqlite else " FOR UPDATE OF a SKIP LOCKED"
    database.run(
        cursor,
        f"DELETE FROM {source.table} WHERE id IN (SELECT a.id FROM {source.table} a"  # noqa: S608
        f" WHERE a.id > ? AND a.id <= ? AND a.hour < ? AND {dispensable}{skipping})",
        values,
    )


def _instances(source: Maxima) -> str:
    """A table `owners` of the instances that key rows name, each by one step into the index by instance and hour."""
    following = f"SELECT MIN(instance) FROM {source.table} WHERE instance > owners.instance"  # noqa: S608
    return (
        f"WITH RECURSIVE owners(instance) AS (SELECT MIN(instance) FROM {source.table}"  # noqa: S608
        f" UNION ALL SELECT ({following}) FROM owners WHERE owners.instance IS NOT NULL)"
    )
