"""Every replica of every partition, from the files of brokers that are at rest: nothing they serve could hide anything.

The bytes are in the files as soon as a broker's log knows of them, so brokers may run on while they are read; a batch
that is just being written is not whole and ends what is read.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dataplane.records.batch import read_records
from dataplane.records.header import check_stored
from dataplane.storage.files import SystemFiles
from dataplane.storage.startup.recovery import read_batches

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class Replica:
    """One broker's copy. `batches`: base offset, end offset, hash of all its bytes."""

    broker: int
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    values: dict[int, bytes] = field(default_factory=dict)  # by offset, where asked for
    numbering: dict[int, tuple[int, int]] = field(default_factory=dict)  # by offset: producer's id and epoch
    problem: str | None = None

    @property
    def end(self) -> int:
        return self.batches[-1][1] if self.batches else 0


def read_replica(broker: int, directory: Path, *, whole: bool, values: bool = False) -> Replica:
    """All segments of a log in order; CRCs are checked, and of one that must be whole, that no offset is missing."""
    replica, files = Replica(broker), SystemFiles()
    for path in sorted(directory.glob("[0-9]*.log")):
        opened = files.open(str(path), create=False)
        try:
            for header, batch in read_batches(opened, path.stat().st_size):
                check_stored(batch, header)
                if whole and header.base_offset != replica.end:
                    raise ValueError(f"offset {header.base_offset} follows {replica.end - 1}")
                replica.batches.append(
                    (header.base_offset, header.last_offset + 1, hashlib.blake2b(batch, digest_size=8).digest())
                )
                if values and not header.is_control:
                    replica.values.update((record.offset, record.value or b"") for record in read_records(batch))
                    who = header.producer_id, header.producer_epoch
                    replica.numbering.update(dict.fromkeys(range(header.base_offset, header.last_offset + 1), who))
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            replica.problem = f"{path.name}: {type(error).__name__}: {error}"
        finally:
            opened.close()
    return replica


def differences(name: str, replicas: list[Replica], *, at_rest: bool) -> list[str]:
    """What two replicas do not agree on. Not at rest: one may be ahead of the others."""
    found = [f"{name}: broker {replica.broker}: {replica.problem}" for replica in replicas if replica.problem]
    if at_rest and len({replica.end for replica in replicas}) > 1:
        found.append(f"{name}: replicas end at " + str({replica.broker: replica.end for replica in replicas}))
    for one, other in itertools.pairwise(replicas):
        start = max((replica.batches[0][0] for replica in (one, other) if replica.batches), default=0)
        end = min(one.end, other.end)
        first, second = (
            [batch for batch in replica.batches if start <= batch[0] and batch[1] <= end] for replica in (one, other)
        )
        if first != second:
            where = next((a for a, b in zip(first, second, strict=False) if a != b), (start, end, b""))
            found.append(f"{name}: brokers {one.broker} and {other.broker} differ at {where[0]}")
    return found
