"""The one aggregation, in SQL: rows of a table as longer steps. Rolling up inserts what it selects; reading shows it.

PostgreSQL and SQLite understand the same text. Names are of our own models, values are bound. Of measured metrics a step has sum
and maximum, of those that are set what its last row says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.history.metrics import MEASURED, SET
from controlplane.history.models import Hour, Minute, Sample
from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from controlplane.history.models import Row

THROTTLED = tuple(f"{direction}_throttled_ms" for direction in DIRECTIONS)
_COUNTS = ("samples", "minutes")
SUMS = tuple(f"{name}_sum" for name in MEASURED)
MAXIMA = tuple(f"{name}_max" for name in MEASURED)
ROLLED = (*_COUNTS, *SUMS, *MAXIMA, *THROTTLED, *(f"{name}_max" for name in THROTTLED))
"""The columns that are aggregated; those of SET are taken from the last row."""
LARGEST = (*MAXIMA, *(f"{name}_max" for name in THROTTLED))
"""Of these the largest; the others are sums."""
COLUMNS = ("instance", "at", *ROLLED, *SET)
"""Of a minute and an hour, in the order in which `selected` gives them."""


def selected(source: type[Row], step_s: int, *, of_one: bool) -> str:
    """COLUMNS of each step of rows in [%s, %s), and of one instance (%s) if wanted."""
    table = source._meta.db_table  # noqa: SLF001  # Django's documented API, despite its name
    aggregates = _of_samples() if source is Sample else _of_rolled()
    columns = ", ".join(f"{text} AS {name}" for name, text in zip(ROLLED, aggregates, strict=True))
    where = "at >= %s AND at < %s" + (" AND instance = %s" if of_one else "")
    return (
        f"SELECT step.instance, step.begins, {_named('step', ROLLED)}, {_named('final', SET)} FROM "  # noqa: S608  # our own names
        f"(SELECT instance, at - at %% {step_s:d} AS begins, MAX(at) AS final_at, {columns} FROM {table} WHERE {where} "
        f"GROUP BY instance, at - at %% {step_s:d}) AS step "
        f"JOIN {table} AS final ON final.instance = step.instance AND final.at = step.final_at "
        "WHERE true ORDER BY step.instance, step.begins"
    )


def samples_by_step(source: type[Row], step_s: int) -> str:
    """(beginning, samples) of each step of rows in [%s, %s) of one instance (%s)."""
    table = source._meta.db_table  # noqa: SLF001
    count = "COUNT(*)" if source is Sample else "SUM(samples)"
    return (
        f"SELECT at - at %% {step_s:d}, {count} FROM {table} "  # noqa: S608  # our own names
        f"WHERE at >= %s AND at < %s AND instance = %s GROUP BY at - at %% {step_s:d}"
    )


def rolled_up(source: type[Row], target: type[Row], step_s: int) -> str:
    """Rows of `target` from those of `source` in [%s, %s), in place of others only where they differ.

    Samples never change, so a step is another one only where there are more of them; throttled time is set in minutes afterwards
    (`throttled_set`) and stays.
    """
    table = target._meta.db_table  # noqa: SLF001
    stays = () if target is Hour else (*THROTTLED, *(f"{name}_max" for name in THROTTLED))
    changed = [name for name in (*ROLLED, *SET) if name not in stays]
    differs = [f"{table}.{name} <> excluded.{name}" for name in (*_COUNTS, *THROTTLED) if name not in stays]
    return (
        f"INSERT INTO {table} ({', '.join(COLUMNS)}) {selected(source, step_s, of_one=False)} "
        f"ON CONFLICT (instance, at) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in changed)} "
        f"WHERE {' OR '.join(differs)}"
    )


def throttled_set(rows: int) -> str:
    """Throttled time of so many minutes: (instance, at, produce, consume) each."""
    table = Minute._meta.db_table  # noqa: SLF001
    values = ", ".join(["(%s, %s, %s, %s)"] * rows)
    places = {"produce_throttled_ms": "column3", "consume_throttled_ms": "column4"}
    sets = ", ".join(f"{name} = told.{place}, {name}_max = told.{place}" for name, place in places.items())
    differs = " OR ".join(f"{table}.{name} <> told.{place}" for name, place in places.items())
    return (
        f"UPDATE {table} SET {sets} FROM (VALUES {values}) AS told "  # noqa: S608  # our own names
        f"WHERE {table}.instance = told.column1 AND {table}.at = told.column2 AND ({differs})"
    )


def _of_samples() -> list[str]:
    sums = [f"SUM({name})" for name in MEASURED]
    maxima = [f"MAX({name})" for name in MEASURED]
    return ["COUNT(*)", "1", *sums, *maxima, *(["0"] * 2 * len(THROTTLED))]


def _of_rolled() -> list[str]:
    sums = [f"SUM({name})" for name in (*_COUNTS, *SUMS)]
    maxima = [f"MAX({name})" for name in MAXIMA]
    waits = [*(f"SUM({name})" for name in THROTTLED), *(f"MAX({name}_max)" for name in THROTTLED)]
    return [*sums, *maxima, *waits]


def _named(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)
