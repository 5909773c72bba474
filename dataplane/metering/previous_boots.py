"""What earlier boots of this broker counted last: read from the files that they left, and told as they would have.

A file is removed when everything in it has been acknowledged; until then the next boot finds it again. Its records go
under the hour of the boot's last sign of life.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.metering.counters import CountersError, CounterSnapshot
from dataplane.metering.hours import hour_text
from dataplane.metering.usage import boot_text, owner_of
from quota.contracts.namespace import split_physical
from quota.contracts.usage import UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataplane.doors import Files

_PREFIX, _SUFFIX = "usage-", ".counters"


def counters_path(directory: str, boot: str) -> str:
    """Where a boot counts."""
    return f"{directory}/{_PREFIX}{boot}{_SUFFIX}"


class PreviousBoots:
    """The files that lie there at the start."""

    def __init__(self, files: Files, directory: str, log: Callable[[str], None]) -> None:
        self._files, self._log = files, log
        names = [name for name in files.list(directory) if name.startswith(_PREFIX) and name.endswith(_SUFFIX)]
        self._paths = [f"{directory}/{name}" for name in names]
        self._told: list[str] = []  # handed out to the last record, not known to be acknowledged
        self._records = self._all()
        self.has_more = True

    def next(self, most: int) -> list[UsageRecord]:
        """Some more records; none when that was all."""
        records: list[UsageRecord] = []
        while len(records) < most and self.has_more:
            record = next(self._records, None)
            if record is None:
                self.has_more = False
            else:
                records.append(record)
        return records

    def acknowledged(self) -> None:
        """Every record handed out so far is in the topic."""
        for path in self._told:
            self._files.remove(path)
        self._told.clear()

    def _all(self) -> Iterator[UsageRecord]:
        for path in self._paths:
            try:
                yield from _records(CounterSnapshot(self._files.read_file(path)))
            except (CountersError, OSError) as error:
                self._log(f"usage of an earlier boot cannot be read: {error}")
            self._told.append(path)


def _records(snapshot: CounterSnapshot) -> Iterator[UsageRecord]:
    for row in snapshot.rows():
        if split_physical(row.name) is not None:
            instance, topic = owner_of(row.name)
            yield UsageRecord(
                broker=snapshot.broker,
                boot=boot_text(f"{snapshot.boot:016x}", row.generation),
                hour=hour_text(snapshot.hour),
                instance=instance,
                topic=topic,
                produced_bytes=row.produced_bytes,
                consumed_bytes=row.consumed_bytes,
                stored_byte_seconds=row.byte_seconds,
            )
