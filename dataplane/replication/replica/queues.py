"""What waits for something of a partition: for this turn's commit, for the disk, for what is committed, for bytes.

They hang on the partition, so that an idle one costs nothing and progress of one looks at its own. `waiting` and
`appending` say when they are told; `upkeep.syncing` those who wait for the disk.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.replication.replica.waiters import (
        AckWaiter,
        Done,
        LowWatermarkWaiter,
        Watcher,
    )


class Queues:
    """Those of one partition. They are filled and emptied in place, and taken whole."""

    __slots__ = (
        "ack_waiters",
        "dirty",
        "low_watermark_waiters",
        "read_waiters",
        "replica_waiters",
        "stable_waiters",
        "sync_calls",
        "turn_end_acks",
        "turn_end_calls",
    )

    def __init__(self) -> None:
        self.dirty = False  # something is staged, or waits for the turn's commit
        self.turn_end_calls: list[Done] = []
        self.turn_end_acks: list[tuple[int, float, Done]] = []  # last offset, timeout in seconds, whom
        self.sync_calls: list[tuple[int, list[Done]]] = []  # end offset to be on disk, whom
        self.ack_waiters: deque[AckWaiter] = deque()
        self.low_watermark_waiters: dict[LowWatermarkWaiter, None] = {}
        self.read_waiters: dict[Watcher, None] = {}
        self.stable_waiters: dict[Watcher, None] = {}  # who reads only what is stable
        self.replica_waiters: dict[Watcher, None] = {}

    def readers(self, *, stable_only: bool) -> dict[Watcher, None]:
        """Where a consumer waits."""
        return self.stable_waiters if stable_only else self.read_waiters

    def mark_dirty(self) -> None:
        """There is something to commit at the end of this turn."""
        self.dirty = True

    def mark_clean(self) -> bool:
        """It is committed now. Returns whether there was anything."""
        was_dirty, self.dirty = self.dirty, False
        return was_dirty

    def take_turn_end_calls(self) -> list[Done]:
        """Whom to call when the turn's bytes are in the file; they are not called twice."""
        calls, self.turn_end_calls = self.turn_end_calls, []
        return calls

    def take_turn_end_acks(self) -> list[tuple[int, float, Done]]:
        """The same of those who wait until what they appended is committed."""
        acks, self.turn_end_acks = self.turn_end_acks, []
        return acks

    def take_sync_calls(self) -> list[Done]:
        """All who wait for the disk, in order."""
        held_back, self.sync_calls = self.sync_calls, []
        return [call for _, calls in held_back for call in calls]
