"""What `__usage` says, computed once more: librdkafka reads the records, SQLite computes hours from their JSON.

Nothing of the pipeline is used, neither its reader nor its SQL nor its parser. The rule is that of `quota/contracts/usage.py`: an
hour's usage is the largest counter of its key minus the largest of the same (boot, instance, topic) in any earlier hour; a
record is of no later hour than the one in which it was written, ten minutes of clocks that differ allowed.

records = Records(folder / "records.sqlite")
records.add([(0, 4711, 1764345600123, b'{"instance": …}')])        # partition, offset, time in ms, value
records.hours({0: 4712})            # of the records before these offsets: what a database has that has read so far
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

COUNTERS = ("produced_bytes", "consumed_bytes", "stored_byte_seconds")
Key = tuple[str, str, str, str]
"""Instance, boot, topic, hour."""
Used = tuple[int, ...]
"""In the order of COUNTERS."""

_TABLES = """
CREATE TABLE IF NOT EXISTS record (
    partition INTEGER, offset INTEGER, at_ms INTEGER, value TEXT, PRIMARY KEY (partition, offset)
);
CREATE TEMP TABLE ends (partition INTEGER PRIMARY KEY, next INTEGER);
CREATE TEMP VIEW said AS SELECT r.* FROM record r JOIN ends ON ends.partition = r.partition AND r.offset < ends.next;
CREATE TEMP VIEW usage AS
    SELECT partition, json_extract(value, '$.instance') AS instance, json_extract(value, '$.boot') AS boot,
           json_extract(value, '$.topic') AS topic,
           MIN(json_extract(value, '$.hour'), strftime('%Y-%m-%dT%H:00:00Z', at_ms / 1000 + 600, 'unixepoch')) AS hour,
           json_extract(value, '$.produced_bytes') AS produced_bytes,
           json_extract(value, '$.consumed_bytes') AS consumed_bytes,
           json_extract(value, '$.stored_byte_seconds') AS stored_byte_seconds
    FROM said WHERE json_valid(value) AND json_extract(value, '$.kind') IS NULL;
CREATE TEMP TABLE largest (
    instance TEXT, boot TEXT, topic TEXT, hour TEXT,
    produced_bytes INTEGER, consumed_bytes INTEGER, stored_byte_seconds INTEGER, PRIMARY KEY (instance, boot, topic, hour)
);
"""
_LARGEST = """
INSERT INTO largest
SELECT instance, boot, topic, hour, MAX(produced_bytes), MAX(consumed_bytes), MAX(stored_byte_seconds)
FROM usage GROUP BY instance, boot, topic, hour
"""


def _grown(name: str) -> str:
    earlier = (
        f"SELECT MAX(e.{name}) FROM largest e"
        " WHERE e.instance = l.instance AND e.boot = l.boot AND e.topic = l.topic AND e.hour < l.hour"
    )
    return f"MAX(0, l.{name} - COALESCE(({earlier}), 0))"


_HOURS = f"SELECT instance, boot, topic, hour, {', '.join(map(_grown, COUNTERS))} FROM largest l"


class Records:
    """All that was read of the topic, in a file."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(_TABLES)

    def close(self) -> None:
        self._database.close()

    def add(self, records: Iterable[tuple[int, int, int, bytes]]) -> None:
        """(partition, offset, time in ms, value) of each."""
        rows = ((*place, value.decode(errors="replace")) for *place, value in records)
        self._database.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", rows)
        self._database.commit()

    def ends(self) -> dict[int, int]:
        """By partition, the first offset that was not read."""
        return dict(self._database.execute("SELECT partition, MAX(offset) + 1 FROM record GROUP BY partition"))

    def hours(self, until: Mapping[int, int]) -> dict[Key, Used]:
        """Usage by key, of the records before these offsets."""
        self._until(until)
        self._database.execute("DELETE FROM largest")
        self._database.execute(_LARGEST)
        return {tuple(row[:4]): tuple(row[4:]) for row in self._database.execute(_HOURS)}

    def places(self, until: Mapping[int, int]) -> dict[int, tuple[int, int, int]]:
        """By partition, of the records before these offsets: how many, the sum of their offsets, that of all counters."""
        self._until(until)
        told = "COALESCE(produced_bytes, 0) + COALESCE(consumed_bytes, 0) + COALESCE(stored_byte_seconds, 0)"
        sums = dict(self._database.execute(f"SELECT partition, SUM({told}) FROM usage GROUP BY partition"))
        rows = self._database.execute("SELECT partition, COUNT(*), SUM(offset) FROM said GROUP BY partition")
        return {partition: (count, offsets, sums.get(partition, 0)) for partition, count, offsets in rows}

    def _until(self, until: Mapping[int, int]) -> None:
        self._database.execute("DELETE FROM ends")
        self._database.executemany("INSERT INTO ends VALUES (?, ?)", until.items())


def of_instances(hours: Mapping[Key, Used]) -> dict[str, dict[str, Used]]:
    """By instance and hour."""
    found: dict[str, dict[str, Used]] = {}
    for (instance, _, _, hour), used in hours.items():
        by_hour = found.setdefault(instance, {})
        by_hour[hour] = tuple(map(sum, zip(by_hour.get(hour, (0,) * len(COUNTERS)), used, strict=True)))
    return found
