"""Largest counters: staged, and merged into the tables that keep them. Statements as texts, for SQLite and PostgreSQL; pure.

Whoever brings counters (executors of the stream, or of `reconcile`) puts them into one staging table under the name of a run;
one transaction then merges all that the run has staged. A run that dies leaves staged rows and nothing else.

A merge only ever raises: a row's counters become the larger of what is there and what comes, so any order, repetition or
interruption ends in the same tables. Its provenance follows the record that raised it last, and among records that say the same
the newest.

Beside each counter stands the largest one of the same owner in any earlier hour, in a column `…_before`: an hour's usage is then
a subtraction within a row, and a month's a plain sum. What a record raises, it raises in the `…_before` of all later hours too; a
row that is new takes over what the row before it knows. Both are again only larger ones, so order and repetition still do not
matter.

The exception are caps (model `Cap`): what operators have ruled out is lowered before it is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quota.contracts.usage import COUNTERS, INSTANCE_COUNTERS, USER_COUNTERS

MAXIMUM_TABLE = "metering_usagemaximum"
INSTANCE_TABLE = "metering_instancemaximum"
USER_TABLE = "metering_usermaximum"
CAP_TABLE = "metering_cap"
STAGED_TABLE = "metering_stagedmaximum"
ALL_COUNTERS = (*COUNTERS, *INSTANCE_COUNTERS)
STAGED = (
    "kind", "instance", "boot", "name", "hour", "broker", *ALL_COUNTERS, "source_partition", "source_offset",
)  # fmt: skip
"""What is staged of a key, beside the run and when it was staged. `name` is that of a topic or of a user, empty of instances."""
_STAGED_KEY = ("kind", "instance", "boot", "name", "hour")


@dataclass(frozen=True, slots=True)
class Maxima:
    """A table of the largest counters of an owner on a boot, by the hour, and its statements. Names are constants."""

    kind: str
    table: str
    owner: tuple[str, ...]  # columns: with the hour they are a row's identity
    counters: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """In the order in which rows come."""
        return (*self.owner, "hour", "broker", *self.counters, "source_partition", "source_offset", "updated_at_ms")

    def staged(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """A row in the order of `columns` as one in the order of STAGED; without when it was updated, the last one."""
        if len(row) != len(self.columns):
            raise ValueError(f"a row of {self.table} has {len(self.columns)} values, not {len(row)}")
        values = dict(zip(self.columns, row, strict=True))
        name = values[self.owner[2]] if len(self.owner) > 2 else ""
        return tuple({"kind": self.kind, "name": name, **values}.get(column, 0) for column in STAGED)

    def merging(self, run: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """The statements that merge what the run has staged of this kind, each with its values, in this order."""
        yield self._raise(), (run, self.kind)
        yield self._carry_on(), (run, self.kind)

    def _raise(self) -> str:
        """A row's counters become the larger ones. In the order of keys, as the indexes have them."""
        table, key = self.table, (*self.owner, "hour")
        staged = (*_STAGED_NAMES[: len(self.owner)], *self.columns[len(self.owner) :])
        larger = ", ".join(
            f"{name} = CASE WHEN excluded.{name} > {table}.{name} THEN excluded.{name} ELSE {table}.{name} END"
            for name in self.counters
        )
        any_larger = " OR ".join(f"excluded.{name} > {table}.{name}" for name in self.counters)
        all_equal = " AND ".join(f"excluded.{name} = {table}.{name}" for name in self.counters)
        return (
            f"INSERT INTO {table} ({', '.join(self.columns)}) SELECT {', '.join(staged)} FROM {STAGED_TABLE}"  # noqa: S608
            f" WHERE run = ? AND kind = ? ORDER BY {', '.join(_STAGED_KEY)}"
            f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {larger},"
            " broker = excluded.broker, source_partition = excluded.source_partition,"
            " source_offset = excluded.source_offset, updated_at_ms = excluded.updated_at_ms"
            f" WHERE {any_larger} OR ({all_equal} AND excluded.source_offset > {table}.source_offset)"
        )

    def _carry_on(self) -> str:
        """What rows know of earlier hours, from the row before the first that was staged of their owner on.

        That row knows of all before it, so no row further back is read. `CROSS JOIN`: SQLite then looks rows up by what was
        staged, and never the other way round.
        """
        names = dict(zip(self.owner, _STAGED_NAMES, strict=False))
        owner, staged_owner = ", ".join(f"t.{name}" for name in self.owner), ", ".join(names.values())
        known = ", ".join(
            f"MAX(CASE WHEN t.{name} > t.{name}_before THEN t.{name} ELSE t.{name}_before END) OVER earlier AS {name}"
            for name in self.counters
        )
        raised = ", ".join(
            f"{name}_before = CASE WHEN known.{name} > {self.table}.{name}_before THEN known.{name}"
            f" ELSE {self.table}.{name}_before END"
            for name in self.counters
        )
        is_raised = " OR ".join(f"known.{name} > {self.table}.{name}_before" for name in self.counters)
        before = f"SELECT MAX(e.hour) FROM {self.table} e WHERE {self._same('e', 'f')} AND e.hour < f.hour"  # noqa: S608
        return (
            f"WITH firsts AS (SELECT {staged_owner}, MIN(hour) AS hour FROM {STAGED_TABLE}"  # noqa: S608
            f" WHERE run = ? AND kind = ? GROUP BY {staged_owner}),"
            f" spans AS (SELECT {staged_owner}, COALESCE(({before}), f.hour) AS begins FROM firsts f),"
            f" known AS (SELECT t.id, {known} FROM spans s CROSS JOIN {self.table} t"
            f" WHERE {self._same('t', 's')} AND t.hour >= s.begins"
            f" WINDOW earlier AS (PARTITION BY {owner} ORDER BY t.hour ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))"
            f" UPDATE {self.table} SET {raised} FROM known WHERE {self.table}.id = known.id AND ({is_raised})"
        )

    def _same(self, table: str, staged: str) -> str:
        """An owner's row, and what was staged of it."""
        return " AND ".join(
            f"{table}.{name} = {staged}.{theirs}" for name, theirs in zip(self.owner, _STAGED_NAMES, strict=False)
        )


_STAGED_NAMES = ("instance", "boot", "name")

TOPICS = Maxima("topic", MAXIMUM_TABLE, ("instance", "boot", "topic"), COUNTERS)
INSTANCES = Maxima("instance", INSTANCE_TABLE, ("instance", "boot"), INSTANCE_COUNTERS)
USERS = Maxima("user", USER_TABLE, ("instance", "boot", "user_name"), USER_COUNTERS)
KINDS = (TOPICS, INSTANCES, USERS)


def staging() -> str:
    """The statement that stages a row: run, cluster, the values of STAGED, and when. Again, if need be, to no effect."""
    columns = ("run", "cluster", *STAGED, "updated_at_ms")
    return (
        f"INSERT INTO {STAGED_TABLE} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
        f" ON CONFLICT (run, {', '.join(_STAGED_KEY)}) DO NOTHING"
    )


def capping(run: str) -> tuple[str, tuple[Any, ...]]:
    """What the run has staged of topics, lowered to what operators believe."""
    same = " AND ".join(f"c.{name} = {STAGED_TABLE}.{staged}" for name, staged in _CAPPED.items())
    cap = f"FROM {CAP_TABLE} c WHERE {same}"
    lowered = ", ".join(
        f"{name} = CASE WHEN {name} > (SELECT c.{name} {cap}) THEN (SELECT c.{name} {cap}) ELSE {name} END"
        for name in COUNTERS
    )
    statement = f"UPDATE {STAGED_TABLE} SET {lowered} WHERE run = ? AND kind = ? AND EXISTS (SELECT 1 {cap})"  # noqa: S608
    return statement, (run, TOPICS.kind)


_CAPPED = dict(zip(TOPICS.owner, _STAGED_NAMES, strict=True))


def merging(run: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """All statements that merge what a run has staged, each with its values, in this order. The last one removes it."""
    yield capping(run)
    for kind in KINDS:
        yield from kind.merging(run)
    yield f"DELETE FROM {STAGED_TABLE} WHERE run = ?", (run,)  # noqa: S608
