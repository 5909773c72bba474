"""What earlier boots of this broker counted last: read from the files that they left, and told as they would have.

A file is removed when everything in it has been acknowledged; until then the next boot finds it again. Its records go
under the hour of the boot's last sign of life. A boot counts in the first data directory that it can open, so all of them
are looked into.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from uuid import UUID

from dataplane.metering.counters import CountersError, CounterSnapshot
from dataplane.metering.hours import hour_text
from dataplane.metering.usage import boot_text, id_text, owner_of
from quota.contracts.namespace import split_physical
from quota.contracts.usage import UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dataplane.doors import Files

_PREFIX, _SUFFIX = "usage-", ".counters"
_LOOKED_AT_ONCE = 256
"""Slots, most of which may have counted nothing: eight thousand of them were a turn of 15 ms."""


def counters_path(directory: str, boot: str) -> str:
    """Where a boot counts."""
    return f"{directory}/{_PREFIX}{boot}{_SUFFIX}"


class PreviousBoots:
    """The files that lie there at the start."""

    def __init__(self, files: Files, directories: Sequence[str], log: Callable[[str], None], cluster: str = "") -> None:
        self._files, self._log, self._cluster = files, log, cluster
        self._paths = [
            f"{directory}/{name}"
            for directory in directories
            for name in files.list(directory)
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX)
        ]
        self.floor = 0  # the first hour that no boot has called told in full
        self._boots: dict[str, list[int]] = {}  # by file: boots that were told, and the one that counted in it
        self._look()
        self._told: list[str] = []  # handed out to the last record, not known to be acknowledged
        self._records = self._all()
        self.has_more = True

    def _look(self) -> None:
        """Only headers count: what cannot be read now is said when its records are due."""
        for path in self._paths:
            with contextlib.suppress(CountersError, OSError):
                snapshot = CounterSnapshot(self._files.read_file(path))
                self.floor = max(self.floor, snapshot.floor)
                self._boots[path] = snapshot.boots()

    @property
    def boots(self) -> set[int]:
        """Whose counters are here, or were told by those whose are."""
        return {boot for boots in self._boots.values() for boot in boots}

    @property
    def owes(self) -> bool:
        """Whether anything of it is not known to be in the topic."""
        return self.has_more or bool(self._told)

    def next(self, most: int) -> list[UsageRecord]:
        """Some more records, perhaps none: `has_more` says whether that was all."""
        records: list[UsageRecord] = []
        for _ in range(_LOOKED_AT_ONCE):
            if len(records) >= most:
                break
            try:
                record = next(self._records)
            except StopIteration:
                self.has_more = False
                break
            if record is not None:
                records.append(record)
        return records

    def acknowledged(self, has_told: Callable[[int], None]) -> None:
        """Every record handed out so far is in the topic: `has_told` hears of each boot before its file goes.

        A file that cannot be removed is told again by the next boot.
        """
        while self._told:
            path = self._told.pop()
            for boot in self._boots.get(path, ()):
                has_told(boot)
            try:
                self._files.remove(path)
            except OSError as error:
                self._log(f"what an earlier boot counted is told, and its file cannot be removed: {error}")

    def _all(self) -> Iterator[UsageRecord | None]:
        for path in self._paths:
            try:
                yield from _records(CounterSnapshot(self._files.read_file(path)), self._cluster)
            except CountersError as error:  # what a power cut has left: it will not get better
                self._log(f"usage of an earlier boot cannot be read: {error}")
            except OSError as error:
                self._log(f"usage of an earlier boot cannot be read now: {error}; the file stays")
                self._boots.pop(path, None)  # its header could be read before: it is not told all the same
                continue
            self._told.append(path)


def _records(snapshot: CounterSnapshot, cluster: str) -> Iterator[UsageRecord | None]:
    for row in snapshot.rows():
        if row is None or split_physical(row.name) is None:
            yield None
        else:
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
                topic_id=id_text(UUID(bytes=row.topic_id)),
                cluster=cluster,
            )
