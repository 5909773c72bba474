"""What a pass over a log knows of transactions: which batches were aborted, and which markers nobody needs any more.

The records of an aborted transaction go with the first round that reaches them, whatever their keys. A marker stays as long as
a batch of its transaction was met before it, though it were one that only keeps its producer's sequence; after that it is
of use to readers who have begun to read the transaction, and goes when `delete.retention.ms` have passed (its *delete horizon*,
as for tombstones: `batches`).

Batches have to be met in the order of the log. Only what lies below the last stable offset is read, so that every transaction
in it has an end, though perhaps behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.records.control import Marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.records.header import BatchHeader
    from dataplane.storage.checkpoints.transactions import AbortedTransaction


class CleanedTransactions:
    """One pass. `aborted` are all that have records in what is read."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}  # by producer id, open where the pass is
        self._met: dict[int, None] = {}  # producers with a batch since their last marker
        self._kept: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch that is not a marker goes, with all its records."""
        if not header.is_transactional:
            return False
        self._begin_up_to(header)
        self._met[header.producer_id] = None
        aborted = self._aborted.get(header.producer_id)
        return aborted is not None and aborted.last_offset >= header.base_offset

    def may_go(self, header: BatchHeader, marker: Marker) -> bool:
        """Whether nothing of a marker's transaction is left."""
        self._begin_up_to(header)
        was_met = header.producer_id in self._met
        self._met.pop(header.producer_id, None)
        aborted = self._aborted.pop(header.producer_id, None)
        if was_met and marker is Marker.ABORT and aborted is not None:
            self._kept.append(aborted)
        return not was_met

    def _begin_up_to(self, header: BatchHeader) -> None:
        to_come = self._to_come
        while to_come and to_come[-1].first_offset <= header.last_offset:
            aborted = to_come.pop()
            if aborted.last_offset >= header.base_offset:
                self._aborted[aborted.producer_id] = aborted

    def take_kept(self) -> list[AbortedTransaction]:
        """Those whose markers have stayed since this was last asked: for the index of the new segment."""
        kept, self._kept = self._kept, []
        return kept
