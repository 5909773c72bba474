"""Which segments of a broker hold descriptors: all logs of all tenants share what the system allows.

A segment in use holds up to three: its file and the mappings of its two indexes (a mapping keeps its descriptor). The one
that was opened longest ago and not used since gives its own back when there are too many; it opens them again when it is
needed. Use only sets a flag, because an append is the hot path, so this is the clock algorithm and not an exact LRU.

What an evicted segment's indexes have in memory and not in their files is written in the background, and forgotten then: one
segment after the other and with rests, because each file written there takes the interpreter from the loop some ten times. A
request that writes to very many logs leaves many to be written; until then they stay in memory, most of them a few hundred
bytes. Only when together they are large are they written without a rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.doors import Background
    from dataplane.storage.segments.segment import Segment
    from dataplane.storage.unhurried import Later
    from dataplane.tasks import Future

DESCRIPTORS_EACH = 3
REST_S = 0.1
"""Between two: without one, a thousand connections that wrote to 2,500 logs made others wait five times as long."""
RESTS_UP_TO_BYTES = 16 * 2**20
"""Of indexes in memory that are to be written."""


class Descriptors:
    """At most `limit` segments are open at a time; ranges that are being sent keep theirs a little longer.

    `later` calls something after so many seconds (`Loop.call_later`); without it there are no rests.
    """

    def __init__(self, limit: int, background: Background, later: Later | None = None) -> None:
        self._limit, self._background, self._later = max(2, limit), background, later
        self._open: dict[Segment, None] = {}  # in the order of the clock's hand
        self._unsaved: dict[Segment, int] = {}  # evicted, and to be written; the bytes of its indexes
        self._unsaved_bytes = 0
        self._is_saving = False  # or at rest

    def count(self) -> int:
        """Segments that are open."""
        return len(self._open)

    def opened(self, segment: Segment) -> None:
        """It holds descriptors from here on."""
        if segment not in self._open:
            self._open[segment] = None
            if len(self._open) > self._limit:
                self._evict()

    def closed(self, segment: Segment) -> None:
        """It holds none any more."""
        self._open.pop(segment, None)
        self._no_longer_unsaved(segment)  # its directory may be gone, or be another topic's of the same name

    def _evict(self) -> None:
        while True:
            oldest = next(iter(self._open))
            del self._open[oldest]
            if not oldest.touched:
                break
            oldest.touched = False
            self._open[oldest] = None
        oldest.release()
        if oldest.has_unsaved_index():
            self._no_longer_unsaved(oldest)  # evicted before, and opened again since
            self._unsaved[oldest] = oldest.index_bytes()
            self._unsaved_bytes += self._unsaved[oldest]
            self._save_next()

    def _no_longer_unsaved(self, segment: Segment) -> None:
        self._unsaved_bytes -= self._unsaved.pop(segment, 0)

    def _save_next(self) -> None:
        while self._unsaved and not self._is_saving:
            segment = next(iter(self._unsaved))
            self._no_longer_unsaved(segment)
            if (
                segment not in self._open and segment.has_unsaved_index()
            ):  # else it is evicted again, or saved elsewhere
                self._save(segment)

    def _save(self, segment: Segment) -> None:
        def written(future: Future[bool]) -> None:
            if future.error is not None:
                segment.index_not_saved()
            elif segment not in self._open:
                segment.forget_index()
            if self._later is None or self._unsaved_bytes > RESTS_UP_TO_BYTES:
                self._go_on()
            else:
                self._later(REST_S, self._go_on)

        self._is_saving = True
        self._background.run(segment.index_saver()).then(written)

    def _go_on(self) -> None:
        self._is_saving = False
        self._save_next()
