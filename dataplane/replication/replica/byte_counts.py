"""Bytes of one partition: stored, taken as the leader and not known to be committed, committed, announced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.replication.replica.uncommitted import Uncommitted

if TYPE_CHECKING:
    from dataplane.storage.log import Log


class ByteCounts:
    """What the log does, told as it happens."""

    __slots__ = ("_announced", "_committed", "_own_end", "_stored", "uncommitted")

    def __init__(self) -> None:
        self._stored = 0  # of the log, as last added to the instance's storage
        self._committed = 0  # of what we appended as the leader
        self._announced = 0  # of the committed ones, to fetches that wait
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
        self._announced = self._committed

    def appended(self, end_offset: int, size: int, leader_epoch: int) -> None:
        """A commit has written `size` bytes, up to there, as the leader of an epoch."""
        start, self._own_end = self._own_end, end_offset
        self.uncommitted.appended(start, end_offset, size, leader_epoch)

    def passed(self, high_watermark: int, log: Log) -> int:
        """The high watermark is here now. Returns the bytes that are committed by that."""
        size = self.uncommitted.passed(high_watermark, log)
        self._committed += size
        return size

    def take_unannounced(self) -> int:
        """Committed bytes that fetches which wait have not heard of. They do now."""
        size, self._announced = self._committed - self._announced, self._committed
        return size
