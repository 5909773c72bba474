"""Which transactions of one log are open, or have ended and are not known to be committed: what keeps readers back.

A transactional batch opens a transaction of its producer; the marker behind its last batch ends it. Who reads only what is
stable reads up to the *first unstable offset*, where the oldest of these begins

    open     no marker yet
    ended    its marker is in the log, but not below the high watermark: it may yet be cut, and the transaction go on

or up to the high watermark, if that comes first (Kafka's last stable offset). A transaction that was aborted stays in the log;
readers leave its records out, going by a list of them (`segments.aborted`), of which an entry is made here.

Of a log that was opened and never asked nothing is known (`UNKNOWN`): see `log.producing`. Who uses no transactions pays the
comparison with `first_unstable`, which is `NEVER` then.

A *guard* says that somebody asks a producer's coordinator whether this partition is in its transaction (KIP-890). It is spoiled
by a marker that comes meanwhile, as the answer may be of the transaction that has ended, and used up by the first batch. Each
transactional id has its own: a log may be of many instances (``__consumer_offsets``), anybody may name a producer id, and
who asks about another's must spoil nothing, and gain nothing by the answer that the other gets.

A batch that was told to come again, since the coordinator could not say, is *awaited*: of a producer that the log knows nothing
of, no later one is taken before it. Several are on their way at a time, and it could not come any more.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN = -1
MOST_AWAITED = 100
"""Producers of one log, which a client may invent: 20 KB. Of those that are more the ones that have waited for longest are
forgotten. So many threads may begin on a partition while a coordinator cannot be asked."""
NEVER = 2**63 - 1
"""Instead of the first unstable offset."""


class AbortedTransaction(NamedTuple):
    """What readers leave out: the producer's records from its first offset up to the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int  # the marker's
    last_stable_offset: int  # when the marker was written, the marker counting as committed


class Ended(NamedTuple):
    """A transaction whose marker is in the log."""

    first_offset: int
    marker_offset: int


class Guard:
    """Of one producer: the coordinator of a transactional id is being asked, or has said yes."""

    __slots__ = ("epoch", "is_verified", "transactional_id")

    def __init__(self, transactional_id: str, epoch: int) -> None:
        self.transactional_id, self.epoch = transactional_id, epoch
        self.is_verified = False


class Transactions:
    """Those of one log. `first_unstable` is never too high, and exact after `stable_end`."""

    __slots__ = ("_awaited", "_ended", "first_unstable", "guards", "open")

    def __init__(self) -> None:
        self.open: dict[int, int] = {}  # first offsets by producer id, ascending: they come in the log's order
        self._ended: list[Ended] = []  # a heap
        self.guards: dict[int, dict[str, Guard]] = {}  # by producer id and transactional id
        self._awaited: dict[int, tuple[int, int]] = {}  # by producer id: the epoch, and the lowest sequence
        self.first_unstable = NEVER

    def forget(self) -> None:
        """Nothing is known of the log."""
        self.clear()
        self.first_unstable = UNKNOWN

    def clear(self) -> None:
        """There are none."""
        self.open, self._ended, self.guards, self._awaited = {}, [], {}, {}
        self.first_unstable = NEVER

    def restore(self, opened: Iterable[tuple[int, int]], ended: Iterable[Ended]) -> None:
        """Know these, and no others: (producer id, first offset) of those that are open."""
        self.clear()
        self.open = dict(sorted(opened, key=lambda one: one[1]))
        self._ended = sorted(ended)
        self.first_unstable = self._first()

    def continued(self, producer_id: int, offset: int) -> None:
        """A transactional batch at `offset`: its producer's transaction begins, if it is not open."""
        self._comes(producer_id)
        if producer_id not in self.open:
            self.open[producer_id] = offset
            self.first_unstable = min(self.first_unstable, offset)

    def ends(self, producer_id: int, marker_offset: int, *, aborted: bool) -> AbortedTransaction | None:
        """A marker. What it says to readers, if it aborts anything."""
        self._comes(producer_id)
        first = self.open.pop(producer_id, None)
        if first is None:
            return None
        heappush(self._ended, Ended(first, marker_offset))
        if not aborted:
            return None
        stable = next(iter(self.open.values()), marker_offset + 1)
        return AbortedTransaction(producer_id, first, marker_offset, stable)

    def _comes(self, producer_id: int) -> None:
        """Something of a producer: what was waited for is here, or comes no more."""
        if self.guards:
            self.guards.pop(producer_id, None)
        if self._awaited:
            self._awaited.pop(producer_id, None)

    def stable_end(self, high_watermark: int, start_offset: int) -> int:
        """The last stable offset of a log that begins at `start_offset`; UNKNOWN where that is not known."""
        if self.first_unstable == UNKNOWN:
            return UNKNOWN
        ended = self._ended
        while ended and ended[0].marker_offset < high_watermark:
            heappop(ended)
        first = self.first_unstable = self._first()
        return high_watermark if first >= high_watermark else max(first, start_offset)

    def _first(self) -> int:
        first_open = next(iter(self.open.values()), NEVER)
        return min(first_open, self._ended[0].first_offset) if self._ended else first_open

    def has_marker_from(self, offset: int) -> bool:
        """Whether a transaction is open again when the log ends at `offset`."""
        return any(ended.marker_offset >= offset for ended in self._ended)

    def ended(self) -> list[Ended]:
        """Those that may not be committed, for a snapshot."""
        return sorted(self._ended)

    # --- batches that come again ----------------------------------------------------------------------------------------

    def told_to_come_again(self, producer_id: int, epoch: int, sequence: int) -> None:
        """A batch of a producer's transaction was: whether it may be taken was not known."""
        known = self._awaited.get(producer_id)
        if known is not None and known[0] == epoch:
            sequence = min(known[1], sequence)
        elif known is not None and known[0] > epoch:
            return
        self._awaited[producer_id] = (epoch, sequence)
        if len(self._awaited) > MOST_AWAITED:
            del self._awaited[next(iter(self._awaited))]

    def awaits_before(self, producer_id: int, epoch: int, sequence: int) -> bool:
        """Whether a batch in front of this one was told to come again."""
        known = self._awaited.get(producer_id)
        return known is not None and known[0] == epoch and known[1] < sequence

    # --- guards -------------------------------------------------------------------------------------------------------

    def guard(self, transactional_id: str, producer_id: int, epoch: int) -> Guard:
        """To be taken before the coordinator is asked. It is the same for all who ask for an id at a time.

        One of an older epoch than is known spoils nothing, and is no use.
        """
        guards = self.guards.setdefault(producer_id, {})
        known = guards.get(transactional_id)
        if known is not None and known.epoch >= epoch:
            return known if known.epoch == epoch else Guard(transactional_id, epoch)
        guards[transactional_id] = made = Guard(transactional_id, epoch)
        return made

    def answered(self, producer_id: int, guard: Guard, *, is_verified: bool) -> bool:
        """The coordinator has answered. Whether the producer may append now."""
        guards = self.guards.get(producer_id, {})
        if guards.get(guard.transactional_id) is not guard:
            return False
        if is_verified:
            guard.is_verified = True
        elif not guard.is_verified:
            del guards[guard.transactional_id]
            if not guards:
                del self.guards[producer_id]
        return is_verified

    def is_verified(self, producer_id: int, epoch: int, transactional_id: str | None = None) -> bool:
        """Whether the coordinator of an id, or of any, has said so, and nothing has come since."""
        return any(
            guard.is_verified and guard.epoch == epoch and transactional_id in (None, guard.transactional_id)
            for guard in self.guards.get(producer_id, {}).values()
        )
