"""What a log has promised at some moment, and whether a log that was opened again keeps it.

    must    records that have to be there
    may     values that an offset can have: those of the present, of what is being written, and what was deleted but
            may come back (its deletion was acknowledged to nobody)

Without a power cut everything committed must be there. With one, everything below the recovery point, or the offset up
to which a sync was acknowledged. What was cut or reset never comes back: that is on disk before the call returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dataplane.records.batch import read_records
from dataplane.records.header import check_stored
from dataplane.records.steps import run_through
from dataplane.storage.checkpoints.producers import Duplicate
from dataplane.storage.log import lookup, producing, reading

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.storage.log import Log

Record = tuple[bytes, int]
"""Value and leader epoch."""


class BrokenPromiseError(AssertionError):
    """What was opened is not what was promised."""


@dataclass
class Promise:
    """Of one log, under one topic id."""

    topic_id: UUID
    log: Log | None = None
    records: dict[int, Record] = field(default_factory=dict)
    coming: dict[int, Record] = field(default_factory=dict)  # staged, being written
    leaving_from: int | None = None  # being cut from here on; 0: being reset
    ghosts: dict[int, list[Record]] = field(default_factory=dict)  # deleted at the front
    start: int = 0
    settled_start: int = 0  # a DeleteRecords was answered
    is_alive: bool = True

    def frozen(self) -> Claim:
        """What is promised now. The log itself says how far its syncs have come and what it deletes."""
        log = self.log
        start = self.start if log is None else max(self.start, log.start_offset)
        kept = {
            offset: record
            for offset, record in self.records.items()
            if offset >= start and (self.leaving_from is None or offset < self.leaving_from)
        }
        may: dict[int, list[Record]] = {offset: list(records) for offset, records in self.ghosts.items()}
        for records in (self.records, self.coming):
            for offset, record in records.items():
                may.setdefault(offset, []).append(record)
        synced = 0 if log is None else log.recovery_point
        return Claim(self.topic_id, kept, may, synced, self.settled_start, self.is_alive)

    def drop_front(self, start: int) -> None:
        """Records before `start` are gone, but their files may come back."""
        for offset in [offset for offset in self.records if offset < start]:
            self.ghosts.setdefault(offset, []).append(self.records.pop(offset))
        self.start = max(self.start, start)


@dataclass
class Claim:
    """A promise at the moment of a crash."""

    topic_id: UUID
    must: dict[int, Record]
    may: dict[int, list[Record]]
    synced: int
    settled_start: int
    is_alive: bool

    def must_exist(self, *, power: bool) -> bool:
        """Whether the log itself was promised."""
        return self.is_alive and (not power or any(offset < self.synced for offset in self.must))

    def check(self, log: Log, *, power: bool) -> dict[int, Record]:
        """Raise BrokenPromiseError unless the log keeps it; returns what the log holds."""
        found = contents(log)
        for offset, record in self.must.items():
            if (not power or offset < self.synced) and found.get(offset) != record:
                raise BrokenPromiseError(f"offset {offset} should be {record}, is {found.get(offset)}")
        for offset, record in found.items():
            if record not in self.may.get(offset, []):
                raise BrokenPromiseError(f"offset {offset} is {record}, may be {self.may.get(offset)}")
        if log.start_offset < self.settled_start and log.end_offset > log.start_offset:
            raise BrokenPromiseError(f"starts at {log.start_offset}, but {self.settled_start} was acknowledged")
        return found


def contents(log: Log) -> dict[int, Record]:
    """All records of a log, after a look at everything that has to hold in any log."""
    found: dict[int, Record] = {}
    expected = None
    last_of: dict[int, tuple] = {}
    for header, batch in lookup.batches(log, log.start_offset, log.end_offset):
        check_stored(batch, header)
        if expected is not None and header.base_offset != expected:
            raise BrokenPromiseError(f"a gap: {header.base_offset} follows {expected}")
        expected = header.next_offset
        if log.epochs.epoch_of(max(header.base_offset, log.start_offset)) != header.leader_epoch:
            raise BrokenPromiseError(
                f"epoch {header.leader_epoch} at {header.base_offset}, but epochs are {log.epochs.entries()}"
            )
        for record in read_records(bytes(batch)):
            if record.offset >= log.start_offset:
                found[record.offset] = (record.value or b"", header.leader_epoch)
        if header.producer_id >= 0:
            last_of[header.producer_id] = header
    if (expected or log.end_offset) != log.end_offset:
        raise BrokenPromiseError(f"the log ends at {log.end_offset}, its batches at {expected}")
    if set(found) != set(range(log.start_offset, log.end_offset)):
        raise BrokenPromiseError(f"{log.start_offset} to {log.end_offset} holds only {sorted(found)}")
    for header in last_of.values():
        if producing.producers_of(log).check(header) != Duplicate(header.base_offset):
            raise BrokenPromiseError(f"producer {header.producer_id} is not remembered as of {header.base_offset}")
    _check_look_ups(log, found)
    return found


def _check_look_ups(log: Log, found: dict[int, Record]) -> None:
    """Any offset can be read on its own, and any time finds the first record of it (values end with their time)."""
    for offset in found:
        piece = reading.read(log, offset, 1, log.end_offset, at_least_one=True)
        got = [] if piece is None else [r.offset for r in read_records(piece.read())]
        if offset not in got:
            raise BrokenPromiseError(f"a read of {offset} finds {got}")
    times = {offset: int(value.rpartition(b"@")[2]) for offset, (value, _) in found.items()}
    for time in sorted(set(times.values())):
        wanted = min(offset for offset, at in times.items() if at >= time)
        answer = run_through(lookup.find_timestamp(log, time, log.end_offset))
        if answer is None or answer[0] != wanted:
            raise BrokenPromiseError(f"time {time} is at {wanted}, found {answer}")
