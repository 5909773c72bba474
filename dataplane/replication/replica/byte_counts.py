"""Bytes of one partition: stored, taken as the leader and not known to be committed, committed, announced.

What is committed is what the partition's owner has produced. The markers of transactions are the broker's own: they are
stored, and announced to those who read, and nobody's produce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.replication.replica.uncommitted import Uncommitted

if TYPE_CHECKING:
    from dataplane.storage.log import Log


class ByteCounts:
    """What the log does, told as it happens."""

    __slots__ = ("_announced", "_committed", "_markers", "_own_end", "_readable", "_stored", "uncommitted")

    def __init__(self) -> None:
        self._stored = 0  # of the log, as last added to the instance's storage
        self._committed = 0  # of what we appended as the leader
        self._readable = 0  # the same with markers
        self._announced = 0  # of these, to fetches that wait
        self._markers = 0  # staged for the next commit
        self._own_end = 0  # of the log, while we lead, as of the last append
        self.uncommitted = Uncommitted()

    @property
    def committed(self) -> int:
        """Of what this broker took as the leader, also where another one led when that became known."""
        return self._committed

    def measured(self, size: int) -> int:
        """The log has this size now. Returns how much more that is than when last measured."""
        change, self._stored = size - self._stored, size
        return change

    def leads_from(self, end_offset: int) -> None:
        """We begin to lead, with a log that ends there."""
        self._own_end = end_offset
        self._announced = self._readable

    def marker_staged(self, size: int) -> None:
        """The next commit writes one."""
        self._markers += size

    def appended(self, end_offset: int, size: int, leader_epoch: int) -> None:
        """A commit has written `size` bytes, up to there, as the leader of an epoch."""
        start, self._own_end = self._own_end, end_offset
        markers, self._markers = self._markers, 0
        self.uncommitted.appended(start, end_offset, size, leader_epoch, markers)

    def passed(self, high_watermark: int, log: Log) -> int:
        """The high watermark is here now. Returns the bytes that are committed by that."""
        size = self.uncommitted.passed(high_watermark, log)
        self._readable += size
        if self.uncommitted.markers_passed:
            size = max(0, size - self.uncommitted.take_markers_passed())
        self._committed += size
        return size

    def take_unannounced(self) -> int:
        """Committed bytes that fetches which wait have not heard of. They do now."""
        size, self._announced = self._readable - self._announced, self._readable
        return size
