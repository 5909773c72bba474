"""What a partition of a coordinator's topic says, read back at an election: every record, oldest first, in steps.

A batch that cannot be read is passed over, and told. In ``__consumer_offsets`` it is one commit, or one generation, of one
group; the partition holds the groups of many tenants, and what was in it is mostly said again behind it: consumers commit
every few seconds. At worst this group repeats what it has read since the commit before. (Kafka's coordinator stops there and
serves whatever came before, so that all groups lose what came behind; its newer one serves none of the partition's groups.
Rejected, too: not to serve this one group. The batch does not say any more whose it was.)

Where even the place of the next batch cannot be told, or the disk does not answer, all that is behind would be missing,
which for many groups means to begin anew. Then nothing of the partition is served: the error goes to the runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.records.batch import HEADER_SIZE, CorruptBatchError, check_stored, each_record
from dataplane.records.compression import MAX_DECOMPRESSED
from dataplane.records.steps import unpacked
from dataplane.storage.segments.replay import Replay

if TYPE_CHECKING:
    from dataplane.records.header import BatchHeader
    from dataplane.records.steps import Steps
    from dataplane.storage.log import Log

RECORDS_PER_PAUSE = 16
"""Reading a record and taking it costs some ten microseconds."""

Take = Callable[[bytes, bytes | None], None]
"""Gets the key and the value of a record."""


def load(log: Log, take: Take) -> Steps[list[str]]:
    """Give every record to `take`; returns a sentence for each batch that could not be read.

    Raises OSError or CorruptBatchError where the log cannot be read to its end.
    """
    replay, unreadable, since_pause = Replay(log), [], 0
    while batches := (yield from replay.next()):
        for header, batch in batches:
            if header.is_control:
                continue
            try:
                since_pause = yield from _take_batch(header, batch, take, since_pause)
            except CorruptBatchError as error:
                unreadable.append(f"{error} (offsets {header.base_offset} to {header.last_offset})")
    return unreadable


def _take_batch(header: BatchHeader, batch: memoryview, take: Take, since_pause: int) -> Steps[int]:
    check_stored(batch, header)
    body = yield from unpacked(header.compression, batch[HEADER_SIZE:], MAX_DECOMPRESSED)
    for record in each_record(body, header):
        if since_pause >= RECORDS_PER_PAUSE:
            yield None
            since_pause = 0
        if record.key is not None:
            take(record.key, record.value)
        since_pause += 1
    return since_pause
