"""``python -m tests.benchmarks.history_size``: how large a day of history is in the database, table by table.

The world is `--instances` of `--topics` each, on three brokers, with `--groups` consumer groups of all of them. Twice: *busy*,
where in each ten seconds every instance is asked something, every topic moves and the lag of every group changes; and *still*,
where nobody asks anything and every group stands still, so that its rows are runs of an hour. What there is lies between.

Rows of `--measured` instances, and of their share of the groups, are written in the order of time, as workers write them: an
hour of what is kept for an hour, a day of minutes, and more of what has few rows. Bytes are of a table with its
indexes, less what the empty one takes, by row; a day of all instances is that times their rows. `--measured` as large as
`--instances` writes all of it. PostgreSQL where it is installed, else (or with `--sqlite`) SQLite. Not in it: rows of brokers,
whose number is that of brokers.

A table at the end, and var/reports/history_size.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tests.benchmarks.pipeline import _database
from tests.benchmarks.report import keep, progress

REPORT = Path("var/reports/history_size.json")
FIRST = 1_795_996_800  # 2026-11-30T00:00:00Z
BROKERS = 3
HOUR_S, DAY_S = 3600, 86_400
ENOUGH = 5_000
"""Of each table so many are written at least, or its first pages would be most of what is measured."""
ROWS_AT_ONCE = 2_000
TEXTS = 40
GB = 10**9


@dataclass(frozen=True)
class Table:
    """What was measured of one, and what it comes to for all instances."""

    name: str
    rows: int
    bytes_a_row: float
    rows_a_day: int
    kept_days: float

    @property
    def day_bytes(self) -> int:
        """Written in a day."""
        return round(self.bytes_a_row * self.rows_a_day)

    @property
    def kept_bytes(self) -> int:
        """There at any time, once the oldest rows expire."""
        return round(self.day_bytes * self.kept_days)

    @property
    def grows(self) -> bool:
        """Its rows of a day are all there at its end: what is kept for an hour does not make the database grow by days."""
        return self.kept_days >= 1


@dataclass(frozen=True)
class Rows:
    """Of one table: `make(instance, at)` has those of an instance, or of its groups, that begin at a moment."""

    model: Any
    step_s: int
    kept_s: int
    make: Callable[[int, int], list[Any]]

    def written_s(self, instances: int) -> int:
        """So long a time of so many instances is enough: in hours of what is kept for one, else in days."""
        whole_s = HOUR_S if self.kept_s < DAY_S else DAY_S
        rows = max(1, whole_s // self.step_s * instances * len(self.make(0, FIRST)))
        return whole_s * -(-max(ENOUGH, rows) // rows)


class World:
    """Rows of made-up figures. Texts of requests are drawn from some dozens: a database shortens each by itself."""

    def __init__(self, options: argparse.Namespace, *, busy: bool) -> None:
        self.busy = busy
        self.topics = options.topics
        self.groups = max(1, round(options.groups / options.instances))
        self._random = random.Random(7)

    def tables(self) -> list[Rows]:
        """Which there are."""
        from controlplane.history import models
        from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES
        from tests.controlplane.history.conftest import rolled, sample

        def name(instance: int) -> str:
            return f"ins-{instance:08}"

        def rows_of(model: Any, windows: int) -> Callable[[int, int], list[Any]]:
            texts = [self._asked(windows) for _ in range(TEXTS)] if self.busy else []
            return lambda instance, at: [
                model(instance=name(instance), at=at, windows=windows, **self._random.choice(texts))
            ]

        found = [
            Rows(
                models.Sample, SAMPLES.step_s, SAMPLES.kept_s, lambda one, at: [models.Sample(**sample(at, name(one)))]
            ),
            Rows(models.Minute, MINUTES.step_s, MINUTES.kept_s, lambda one, at: [rolled(models.Minute, at, name(one))]),
            Rows(models.Hour, HOURS.step_s, HOURS.kept_s, lambda one, at: [rolled(models.Hour, at, name(one))]),
            Rows(
                models.LagSample, self._steps(10, 600), SAMPLES.kept_s, lambda one, at: self._lag_sample(name(one), at)
            ),
            Rows(models.LagMinutes, self._steps(60, HOUR_S), MINUTES.kept_s, self._lag_minutes),
            Rows(models.LagHours, self._steps(HOUR_S, DAY_S), HOURS.kept_s, self._lag_hours),
        ]
        if self.busy:
            found += [
                Rows(models.RequestSample, SAMPLES.step_s, SAMPLES.kept_s, rows_of(models.RequestSample, 1)),
                Rows(models.RequestMinute, MINUTES.step_s, MINUTES.kept_s, rows_of(models.RequestMinute, 6)),
                Rows(models.RequestHour, HOURS.step_s, HOURS.kept_s, rows_of(models.RequestHour, 360)),
                Rows(models.RequestDay, DAY_S, HOURS.kept_s, rows_of(models.RequestDay, 8640)),
            ]
        return found

    def _steps(self, busy_s: int, still_s: int) -> int:
        """A row begins so often: runs go on for as long as nothing changes."""
        return busy_s if self.busy else still_s

    def _asked(self, windows: int) -> dict[str, str]:
        """Of ten APIs, in each window ten requests of each; what topics moved; and the same of each broker."""
        from controlplane.history.requests.by_broker import text_of
        from quota.contracts.requests import ApiCounts, RequestCounts
        from quota.contracts.topics_moved import TopicsMoved

        def counts(requests: int) -> RequestCounts:
            by_api = {}
            for api in APIS:
                by_api[api] = found = ApiCounts(errors={"NOT_LEADER_OR_FOLLOWER": 1} if api == "Produce" else {})
                for _ in range(min(requests, 100)):  # more of them make numbers larger, and hardly a text longer
                    found.at_once.observe(round(self._random.lognormvariate(7, 1.5)))
            return RequestCounts(by_api)

        moved = TopicsMoved()
        for topic in range(self.topics):
            moved.count(f"orders-of-the-north-{topic:03}", *(self._bytes(windows) for _ in range(2)))
        return {
            "counts": counts(10 * windows).to_text(),
            "topics": json.dumps(moved.to_json(), separators=(",", ":")),
            "brokers": text_of({broker: counts(3 * windows) for broker in range(1, BROKERS + 1)}),
        }

    def _bytes(self, windows: int) -> int:
        return self._random.randrange(1_000, 10_000_000) * windows

    def _lag_sample(self, instance: str, at: int) -> list[Any]:
        from controlplane.history.lag import samples
        from controlplane.history.models import LagSample

        keys = [samples.INSTANCE, *(samples.group_key(f"group {number}") for number in range(self.groups))]
        keys += [samples.topic_key(f"topic-{topic:03}") for topic in range(self.topics)]
        items = {key: samples.Figures(*self._lag(at)) for key in keys}
        texts = samples._texts(instance, items)
        return [LagSample(at=at, until=at, late_s=1, digest=each.digest, **each._asdict()) for each in texts]

    def _lag(self, at: int) -> tuple[int, int, int]:
        """Records, the moment of the oldest, bytes."""
        messages = self._random.randrange(1, 10_000_000)
        return messages, 1000 * at - self._random.randrange(10**6), 300 * messages

    def _of_groups(self, instance: int) -> range:
        return range(instance * self.groups, (instance + 1) * self.groups)

    def _lag_minutes(self, instance: int, at: int) -> list[Any]:
        from controlplane.history.models import LagMinutes

        until = at if self.busy else at + HOUR_S - 60
        made = []
        for group in self._of_groups(instance):
            messages, oldest_ms, size = self._lag(at)
            made.append(
                LagMinutes(group=group, at=at, until=until, late_s=3, messages=messages, oldest_ms=oldest_ms, size=size)
            )
        return made

    def _lag_hours(self, instance: int, at: int) -> list[Any]:
        from controlplane.history.models import LagHours

        until = at if self.busy else at + DAY_S - HOUR_S
        made = []
        for group in self._of_groups(instance):
            messages, _, size = self._lag(at)
            counts = dict.fromkeys(("samples", "dated", "sized"), 60)
            sums = {"messages_sum": 60 * messages, "seconds_sum": 60.0 * messages, "size_sum": 60 * size}
            most = {"messages_max": messages, "seconds_max": float(messages), "size_max": size}
            made.append(LagHours(group=group, at=at, until=until, **counts, **sums, **most))
        return made


APIS = (
    "Produce", "Fetch", "Metadata", "ListOffsets", "OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat",
    "ApiVersions",
)  # fmt: skip


def measured(url: str, options: argparse.Namespace, *, busy: bool) -> list[Table]:
    """Of every table, on an empty database."""
    from django.db import connections

    from tests.pipeline.conftest import wrapper_of

    say, wrapper = progress(), wrapper_of(url)
    connections[wrapper.alias] = wrapper  # models and the editor look it up by that
    try:
        found = []
        for rows in World(options, busy=busy).tables():
            with wrapper.schema_editor() as editor:
                editor.create_model(rows.model)
            found.append(_measured(wrapper, rows, options))
            say(f"{found[-1].name}: {found[-1].rows:,} rows of {found[-1].bytes_a_row:.0f} bytes")
        return found
    finally:
        wrapper.close()
        del connections[wrapper.alias]


def _measured(wrapper: Any, rows: Rows, options: argparse.Namespace) -> Table:
    before, written_s = size(wrapper), rows.written_s(options.measured)
    moments = range(FIRST, FIRST + written_s, rows.step_s)
    made = chain.from_iterable(rows.make(one, at) for at in moments for one in range(options.measured))
    count = written(rows.model, made, wrapper.alias)
    return Table(
        rows.model.__name__,
        count,
        (size(wrapper) - before) / count,
        round(count * DAY_S / written_s * options.instances / options.measured),
        rows.kept_s / DAY_S,
    )


def written(model: Any, rows: Iterator[Any], alias: str) -> int:
    """How many there were."""
    count = 0
    while portion := list(islice(rows, ROWS_AT_ONCE)):
        model.objects.using(alias).bulk_create(portion)
        count += len(portion)
    return count


def size(wrapper: Any) -> int:
    """Bytes of all tables and indexes: each table is measured by what its rows add."""
    with wrapper.cursor() as cursor:
        if wrapper.vendor == "sqlite":
            pages, each = (cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
            return int(pages * each)
        cursor.execute(
            "SELECT COALESCE(SUM(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'history_%%'"
        )
        return int(cursor.fetchone()[0])


def shown(world: str, tables: Sequence[Table]) -> str:
    """For the terminal."""
    lines = [f"{world:<16}{'bytes a row':>12}{'rows a day':>14}{'GB a day':>10}{'kept, days':>12}{'GB kept':>10}"]
    lines += [
        f"{each.name:<16}{each.bytes_a_row:>12.0f}{each.rows_a_day:>14,}{each.day_bytes / GB:>10.2f}"
        f"{each.kept_days:>12.2f}{each.kept_bytes / GB:>10.2f}"
        for each in tables
    ]
    sums = sums_of(tables)
    lines.append(
        f"A day: {sums['day_bytes'] / GB:.2f} GB, beside {sums['hour_bytes'] / GB:.2f} GB of the last hour;"
        f" {sums['kept_bytes'] / GB:.1f} GB once the oldest rows expire"
    )
    return "\n".join(lines)


def sums_of(tables: Sequence[Table]) -> dict[str, int]:
    """What the database grows by in a day, what is there of the last hour at any time, and all of it in the end."""
    return {
        "day_bytes": sum(each.day_bytes for each in tables if each.grows),
        "hour_bytes": sum(each.kept_bytes for each in tables if not each.grows),
        "kept_bytes": sum(each.kept_bytes for each in tables),
    }


def document(tables: Sequence[Table]) -> dict[str, Any]:
    """Of one world, for the report."""
    return {"tables": [{**asdict(each), "day_bytes": each.day_bytes} for each in tables], **sums_of(tables)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default in (("instances", 2_000), ("topics", 50), ("groups", 10_000), ("measured", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--sqlite", action="store_true")
    options = parser.parse_args(arguments)
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    from tests.support import postgresql

    uses_postgresql = postgresql.is_installed() and not options.sqlite
    worlds = {}
    for world in ("busy", "still"):
        with (
            tempfile.TemporaryDirectory() as name,
            _database(Path(name), postgresql=uses_postgresql) as url,
        ):
            worlds[world] = measured(url, options, busy=world == "busy")
    figures: dict[str, Any] = {"database": "postgresql" if uses_postgresql else "sqlite", **vars(options)}
    for world, tables in worlds.items():
        print(f"\n{shown(world, tables)}")
        figures[world] = document(tables)
    keep(REPORT, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
