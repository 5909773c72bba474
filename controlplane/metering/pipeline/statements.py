"""What brokers say of whole hours, in the order in which they said it, and what follows: up to where one has told all. Pure.

A boot that follows the one that spoke before it names it (quota/contracts/usage.py, `after`): it has told what that one
counted. Where it does not, there is a *gap*: the broker does not see those counters any more (a disk that is away, another
machine with its id), and what the earlier boot counted last may be missing. Then nothing that is said counts, until a boot
comes that has seen them after all, or an operator has judged the boot that has not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple


class Statement(NamedTuple):
    """All that this broker counted under `hour`, and before, is in the topic."""

    id: int  # in the order of the topic
    broker: int
    hour: str
    boot: str
    after: tuple[str, ...]
    said_at_ms: int

    def follows(self, other: Statement) -> bool:
        """Whether it has told what the other one's boot counted."""
        return self.boot == other.boot or other.boot in self.after


class Told(NamedTuple):
    """Of one broker."""

    last: Statement | None = None  # that counts
    hour: str = ""  # the last that is told; "": none
    gap: Statement | None = None  # the first behind it that does not count


def told(statements: Iterable[Statement], judged: Collection[str] = ()) -> Told:
    """What one broker's statements come to. `judged`: boots that may follow a gap."""
    last, hour, gap = None, "", None
    for statement in statements:
        if last is None or statement.follows(last) or statement.boot in judged:
            last, hour, gap = statement, max(hour, statement.hour), None
        elif gap is None:
            gap = statement
    return Told(last, hour, gap)


def superseded(
    statements: Sequence[Statement], read_to_ms: int, judged: Collection[str] = ()
) -> tuple[Told, list[int]]:
    """What is certain, all having been read that was written up to a moment; and ids of statements that say no more."""
    certain = told((each for each in statements if each.said_at_ms <= read_to_ms), judged)
    if certain.last is None:
        return certain, []
    return certain, [each.id for each in statements if each.id < certain.last.id]
