"""Where a group's offsets go when they are moved. Pure.

    earliest, latest      the first and the end of what the partition holds
    timestamp (ms)        the first record of that time or later; the end where there is none
    shift (records)       so many forward, or (negative) back
    offset                that one

Every result is within what the partition holds, as CKafka's ModifyGroupOffsets has it: beyond it a consumer would do what
its `auto.offset.reset` says, which is not what was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Strategy(StrEnum):
    """How the new offsets are found."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    SHIFT = "shift"
    OFFSET = "offset"


NEEDS_VALUE = frozenset({Strategy.TIMESTAMP, Strategy.SHIFT, Strategy.OFFSET})


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's offset: `before` (None: never committed) and `after`; the partition holds `start` to before `end`."""

    topic: str
    partition: int
    before: int | None
    after: int
    start: int
    end: int
    clamped: bool = False  # the offset asked for is not in the partition: this is the nearest

    @property
    def again(self) -> int:
        """Records that will be read once more."""
        return 0 if self.before is None else max(0, min(max(self.before, self.start), self.end) - self.after)

    @property
    def skipped(self) -> int:
        """Records that will never be read by this group."""
        return 0 if self.before is None else max(0, self.after - max(self.before, self.start))

    @property
    def passed(self) -> int:
        """Records before the first offset of a partition that had none: who begins with the earliest would have read them."""
        return self.after - self.start if self.before is None else 0

    @property
    def changes(self) -> bool:
        """Whether anything has to be committed."""
        return self.before != self.after


def value_problem(strategy: str, value: int | None) -> str | None:
    """Why a value does not fit its strategy, as a sentence; None where it does."""
    if strategy not in NEEDS_VALUE:
        return None if value is None else f"{strategy} takes no value"
    if value is None:
        return f"{strategy} needs a value"
    if strategy != Strategy.SHIFT and value < 0:
        return "must not be negative"
    return None


def target(
    strategy: str, value: int | None, before: int | None, start: int, end: int, at_time: int | None
) -> int | None:
    """The offset asked for, which may lie outside the partition; None: there is nothing to shift from."""
    if strategy == Strategy.EARLIEST:
        return start
    if strategy == Strategy.LATEST:
        return end
    if strategy == Strategy.TIMESTAMP:
        return end if at_time is None else at_time
    if strategy == Strategy.SHIFT:
        return None if before is None else before + (value or 0)
    return value


def within(asked: int, start: int, end: int) -> int:
    """The nearest offset that the partition holds, or its end."""
    return min(max(asked, start), end)


def totals(moves: Sequence[Move]) -> tuple[int, int]:
    """Records that are read again, and that are skipped."""
    return sum(move.again for move in moves), sum(move.skipped for move in moves)
