"""A consumer that reads committed transactions as Kafka's Java client does: it believes the list that comes with the records."""

from __future__ import annotations

from heapq import heapify, heappop

from dataplane.protocol.messages.fetch import FetchPartition
from dataplane.records.batch import read_records, split_batches
from dataplane.records.control import Marker, read_marker
from tests.dataplane.fetching.support import rows

COMMITTED = 1


class CommittedReader:
    """Of partition 0."""

    def __init__(self, door, *, max_bytes=2**20, offset=0, version=12):
        self._door, self._max_bytes, self._version = door, max_bytes, version
        self.offset = offset
        self.values: list[bytes] = []
        self.aborted_listed = 0

    def read_all(self):
        while self.poll():
            pass
        return self.values

    def poll(self):
        wanted = FetchPartition(partition=0, fetch_offset=self.offset, partition_max_bytes=self._max_bytes)
        data = rows(self._door.fetch({0: wanted}, self._version, isolation_level=COMMITTED, min_bytes=0))[0]
        assert data.error_code == 0
        before = self.offset
        self._take(bytes(data.records or b""), data.aborted_transactions)
        assert self.offset <= data.last_stable_offset
        return self.offset > before

    def _take(self, records, listed):
        self.aborted_listed += len(listed)
        to_come = [(one.first_offset, one.producer_id) for one in listed]
        heapify(to_come)
        aborted = set()
        for header, batch in split_batches(records):
            if header.next_offset <= self.offset:
                continue
            is_left_out = False
            if header.producer_id >= 0:
                while to_come and to_come[0][0] <= header.last_offset:
                    aborted.add(heappop(to_come)[1])
                if header.is_control:
                    if read_marker(batch)[0] is Marker.ABORT:
                        aborted.discard(header.producer_id)
                else:
                    is_left_out = header.is_transactional and header.producer_id in aborted
            if not (is_left_out or header.is_control):
                found = read_records(bytes(batch))
                self.values += [record.value for record in found if record.offset >= self.offset]
            self.offset = header.next_offset
