"""What a partition of a coordinator's topic says, read back at an election: every record, oldest first, in steps.

A batch that cannot be read is passed over, and told. In ``__consumer_offsets`` it is one commit, or one generation, of one
group; the partition holds the groups of many tenants, and what was in it is mostly said again behind it: consumers commit
every few seconds. At worst this group repeats what it has read since the commit before. (Kafka's coordinator stops there and
serves whatever came before, so that all groups lose what came behind; its newer one serves none of the partition's groups.
Rejected, too: not to serve this one group. The batch does not say any more whose it was.)

Where even the place of the next batch cannot be told, or the disk does not answer, all that is behind would be missing,
which for many groups means to begin anew. Then nothing of the partition is served: the error goes to the runtime.

Records of transactions are records like others, unless somebody asks to be told of `Transactions`: a coordinator that
appends to the transactions of producers. It waits with each for the marker that ends it. What is appended while the log is
read is read as well, so that no marker is lost between reading and serving: it is in the log when this ends, or comes later.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dataplane.records.batch import HEADER_SIZE, CorruptBatchError, check_stored, each_record
from dataplane.records.compression import MAX_DECOMPRESSED
from dataplane.records.control import Marker, read_marker
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


class Transactions(Protocol):
    """What somebody does with records that count when a transaction is committed, and not before."""

    def take(self, producer_id: int, position: int, key: bytes, value: bytes | None) -> None:
        """A record of the producer's open transaction, in a batch that begins at this offset of the log."""
        ...

    def end(self, producer_id: int, *, committed: bool) -> Steps[None]:
        """The marker of the producer's transaction. Harmless where it has none."""
        ...


def load(log: Log, take: Take, transactions: Transactions | None = None) -> Steps[list[str]]:
    """Give every record to `take`; returns a sentence for each batch that could not be read.

    Raises OSError or CorruptBatchError where the log cannot be read to its end.
    """
    replay, unreadable, since_pause = Replay(log), [], 0
    while batches := (yield from replay.next()):
        for header, batch in batches:
            try:
                if not header.is_control:
                    taken = _taker(header, take, transactions)
                    since_pause = yield from _take_batch(header, batch, taken, since_pause)
                elif transactions is not None:
                    yield from _take_marker(header, batch, transactions)
            except CorruptBatchError as error:
                unreadable.append(f"{error} (offsets {header.base_offset} to {header.last_offset})")
    return unreadable


def _taker(header: BatchHeader, take: Take, transactions: Transactions | None) -> Take:
    if transactions is None or not header.is_transactional:
        return take
    return partial(transactions.take, header.producer_id, header.base_offset)


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


def _take_marker(header: BatchHeader, batch: memoryview, transactions: Transactions) -> Steps[None]:
    check_stored(batch, header)
    if header.count:  # compaction leaves the last batch of a producer empty
        marker, _ = read_marker(batch)
        yield from transactions.end(header.producer_id, committed=marker is Marker.COMMIT)
