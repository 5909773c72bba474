"""A log in memory that commits when it is told to."""

from functools import partial
from typing import Any, NamedTuple

from dataplane.coordination.effects import Producer
from dataplane.coordination.loading import RECORDS_PER_PAUSE
from dataplane.coordination.log import NOT_APPENDED
from dataplane.protocol.errors import ErrorCode


class Batch(NamedTuple):
    """What was appended together; a marker has no records and says how the transaction has ended."""

    records: list[Any]
    producer: Producer | None = None
    committed: bool | None = None


class MemoryLog:
    """What was appended to each partition; `done` is called in the next turn, or by `commit` while it is slow."""

    def __init__(self, loop):
        self.loop = loop
        self.batches = {}
        self.waiting = []
        self.slow = False
        self.error = ErrorCode.NONE
        self.read_error = None
        self.unreadable = []

    def append(self, partition_index, records, done, producer=None):
        if self.error != ErrorCode.NONE:
            done(self.error)
            return NOT_APPENDED
        batches = self.batches.setdefault(partition_index, [])
        batches.append(Batch(records, producer))
        if self.slow:
            self.waiting.append(done)
        else:
            self.loop.call_soon(lambda: done(ErrorCode.NONE))
        return len(batches) - 1

    def mark(self, partition_index, producer_id, *, committed):
        """The marker of a transaction is appended."""
        self.batches.setdefault(partition_index, []).append(Batch([], Producer(producer_id, 0), committed))

    def put(self, partition_index, records):
        """All there is."""
        self.batches[partition_index] = [Batch(records)]

    @property
    def records(self):
        """Of each partition, whatever became of the transactions they were appended in."""
        return {
            index: [record for batch in batches for record in batch.records] for index, batches in self.batches.items()
        }

    def commit(self, error=ErrorCode.NONE):
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done(error)

    def read(self, partition_index, take, transactions=None):
        batches, position, number = self.batches.get(partition_index, []), 0, 0
        while position < len(batches):  # what is appended meanwhile as well
            records, producer, committed = batches[position]
            if transactions is not None and producer is not None:
                taken = partial(transactions.take, producer.id, position)
            else:
                taken = take
            for record in records:
                number += 1
                taken(*record)
                if number % RECORDS_PER_PAUSE == 1:
                    yield lambda: None  # a piece of the file
            if transactions is not None and committed is not None:
                yield from transactions.end(producer.id, committed=committed)
            position += 1
        if self.read_error is not None:
            raise self.read_error
        return self.unreadable

    def compacted(self, partition_index):
        latest = dict(self.records.get(partition_index, []))
        return {key: value for key, value in latest.items() if value is not None}
