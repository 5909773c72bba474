"""What brokers say of whole hours, in the order in which they said it, and what follows: up to where one has told all. Pure.

A boot that follows the one that spoke before it names it (quota/contracts/usage.py, `after`): it has told what that one
counted. Where it does not, there is a *gap*: the broker does not see those counters any more (a disk that is away, another
machine with its id), and what the earlier boot counted last may be missing. Then nothing that is said counts, until a boot
comes that has seen them after all, or an operator has judged the boot that has not.

So it is with every boot that has told usage of these hours, whether it ever spoke of whole ones or died before, and with every
boot whose words did not count: it has to be *accounted for*, as the one that speaks, as one that did and counted, or as one
that was named since. A boot that tells something for the first time after a statement was written is no matter to it.
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


class Boot(NamedTuple):
    """One that has told usage. Those that are accounted for by statements that were dropped are left out."""

    broker: int
    boot: str
    first_hour: str  # under which it told anything
    last_hour: str
    first_at_ms: int  # when the first of it was written


class Told(NamedTuple):
    """Of one broker."""

    last: Statement | None = None  # that counts
    hour: str = ""  # the last that is told; "": none
    gap: Statement | None = None  # the first behind it that does not count
    lost: tuple[str, ...] = ()  # boots for which that one does not account
    accounted: frozenset[str] = frozenset()  # boots, when the last that counts was said, by it and those before it


def told(statements: Iterable[Statement], judged: Collection[str] = (), boots: Sequence[Boot] = ()) -> Told:
    """What one broker's statements come to.

    `judged`: boots that may follow a gap. `boots`: those of the broker that have told usage.
    """
    found, accounted = Told(), set[str]()
    unheard: dict[str, None] = {}  # boots whose words did not count
    for statement in statements:
        hour, known = max(found.hour, statement.hour), {statement.boot, *statement.after}
        concerned = [*unheard, *(each.boot for each in boots if _concerns(each, statement, hour))]
        lost = [boot for boot in concerned if boot not in known and boot not in accounted]
        if found.last is not None and not statement.follows(found.last):
            lost.insert(0, found.last.boot)
        if statement.boot in judged:
            accounted.update(concerned, (each.boot for each in boots if each.first_at_ms <= statement.said_at_ms))
        if not lost or statement.boot in judged:
            accounted |= known
            found = Told(statement, hour, accounted=frozenset(accounted))
            continue
        unheard[statement.boot] = None
        accounted.discard(statement.boot)  # it was named before it spoke, and has counted since
        if found.gap is None:
            found = found._replace(gap=statement, lost=tuple(dict.fromkeys(lost)))
    return found


def _concerns(boot: Boot, statement: Statement, hour: str) -> bool:
    """Whether it may have counted anything under the hours up to this one, before they were said to be told."""
    return boot.first_at_ms <= statement.said_at_ms and boot.first_hour <= hour


def superseded(
    statements: Sequence[Statement], read_to_ms: int, judged: Collection[str] = (), boots: Sequence[Boot] = ()
) -> tuple[Told, list[int]]:
    """What is certain, all having been read that was written up to a moment; and ids of statements that say no more.

    Who drops these has to keep in mind which boots are accounted for.
    """
    certain = told((each for each in statements if each.said_at_ms <= read_to_ms), judged, boots)
    if certain.last is None:
        return certain, []
    return certain, [each.id for each in statements if each.id < certain.last.id]
