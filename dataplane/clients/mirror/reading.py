"""A partition from one end to the other, a fetch at a time in memory."""

from __future__ import annotations

from collections.abc import Iterator

from dataplane.clients.cluster import Cluster
from dataplane.clients.fetching import EARLIEST_TIME, LATEST_TIME, FetchRequest, Place, fetch_from, offset_in
from dataplane.clients.messages import MessageAndOffset


class Reading:
    """Its committed messages one by one, from its beginning or from an offset, to where it ends now. Raises ClientError.

    It ends before the first transaction that is open, which may stay so for as long as its producer likes; `open_from` then says
    where. `end` is where the partition ended when it was asked.
    """

    def __init__(self, cluster: Cluster, place: Place, begin: int | None = None) -> None:
        self._cluster, self._place, self._begin = cluster, place, begin
        self.open_from: int | None = None
        self.end = 0

    def __iter__(self) -> Iterator[MessageAndOffset]:
        cluster, place = self._cluster, self._place
        leader = cluster.leader(*place)
        first, end = offset_in(cluster, place, EARLIEST_TIME), offset_in(cluster, place, LATEST_TIME)
        offset = first if self._begin is None else max(self._begin, first)
        self.end = max(offset, end)
        while offset < end:
            request = FetchRequest(*place, offset)
            (fetched,) = fetch_from(cluster, leader, [request], max_wait_ms=100, committed_only=True)
            fetched.raise_for_error()
            yield from (one for one in fetched.entries.messages if one.offset < end)
            offset = fetched.entries.next_offset
            if 0 <= fetched.last_stable_offset <= offset < end:
                self.open_from = offset
                return
