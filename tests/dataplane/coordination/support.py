"""A log in memory that commits when it is told to."""

from dataplane.coordination.loading import RECORDS_PER_PAUSE
from dataplane.protocol.errors import ErrorCode


class MemoryLog:
    """What was appended to each partition; `done` is called in the next turn, or by `commit` while it is slow."""

    def __init__(self, loop):
        self.loop = loop
        self.records = {}
        self.waiting = []
        self.slow = False
        self.error = ErrorCode.NONE
        self.read_error = None
        self.unreadable = []

    def append(self, partition_index, records, done):
        if self.error != ErrorCode.NONE:
            done(self.error)
            return
        self.records.setdefault(partition_index, []).extend(records)
        if self.slow:
            self.waiting.append(done)
        else:
            self.loop.call_soon(lambda: done(ErrorCode.NONE))

    def commit(self, error=ErrorCode.NONE):
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done(error)

    def read(self, partition_index, take):
        for number, record in enumerate(list(self.records.get(partition_index, [])), 1):
            take(*record)
            if number % RECORDS_PER_PAUSE == 1:
                yield lambda: None  # a piece of the file
        if self.read_error is not None:
            raise self.read_error
        return self.unreadable

    def compacted(self, partition_index):
        latest = dict(self.records.get(partition_index, []))
        return {key: value for key, value in latest.items() if value is not None}
