"""Where a master keeps throttled intervals, and what is billed of elastic bandwidth: logs of lines, read by position.

Append-only, bounded in age and size; each kind has a name of its own.

::

    <directory>/throttled-1763712063000000.jsonl     a segment; the number is the position of its first byte

A position is a byte of the whole journal. The first one is the microseconds of the clock when the journal was made: a
journal that begins anew, because its directory was lost, stands above every position of the old one as long as less than
a megabyte a second is written. So a reader that goes on from where it was never waits for bytes that come later.

A start begins a new segment: a line that a killed master left unfinished ends where it is, and readers step over what is
no line. Nothing is synced: a kill loses nothing that was handed to the system, and a power cut loses seconds of history
that no promise hangs on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

SEGMENT_BYTES = 16 * 2**20
MOST_BYTES = 2**30
KEPT_S = 7 * 24 * 3600
PAGE_BYTES = 2**20
THROTTLED, ELASTIC = "throttled", "elastic"
KEPT_BILLED_S = 60 * 24 * 3600
"""What is billed waits longer for a control plane that is away."""
_SUFFIX = ".jsonl"


class Journal:
    """See the file's text. `clock` is seconds since 1970."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Callable[[], float],
        segment: int = SEGMENT_BYTES,
        most: int = MOST_BYTES,
        name: str = THROTTLED,
        kept_s: float = KEPT_S,
    ) -> None:
        self._directory = directory
        self._prefix, self._kept_s = f"{name}-", kept_s
        self._clock = clock
        self._segment_bytes, self._most_bytes = segment, most
        directory.mkdir(parents=True, exist_ok=True)
        self._segments = self._found()
        self._file: BinaryIO | None = None

    @property
    def end(self) -> int:
        """The position behind the last byte."""
        if not self._segments:
            return int(self._clock() * 1_000_000)
        last = max(self._segments)
        return last + self._size(last)

    def append(self, lines: Iterable[bytes]) -> None:
        """Write lines, given without their ends. Raises OSError."""
        data = b"".join(line + b"\n" for line in lines)
        if not data:
            return
        if self._file is None or self._file.tell() >= self._segment_bytes:
            self._roll()
        assert self._file is not None
        self._file.write(data)
        self._file.flush()

    def read(self, position: int, most: int = PAGE_BYTES) -> tuple[list[dict[str, Any]], int]:
        """Lines from a position on, and the position to go on from: the same where there is nothing more."""
        position = max(position, min(self._segments, default=self.end))
        for base in sorted(self._segments):
            if position < base + self._size(base):
                return self._page(base, max(position, base), most)
        return [], position

    def prune(self) -> None:
        """Let go of segments that are too old or too many, but for the one that is written."""
        oldest = self._clock() - self._kept_s
        total = sum(self._size(base) for base in self._segments)
        for base in sorted(self._segments)[:-1]:
            if total > self._most_bytes or self._path(base).stat().st_mtime < oldest:
                total -= self._size(base)
                self._path(base).unlink()
                self._segments.remove(base)

    def close(self) -> None:
        """Nothing more will be written."""
        if self._file:
            self._file.close()
            self._file = None

    # --- inside -------------------------------------------------------------------------------------------------------

    def _found(self) -> list[int]:
        prefix = self._prefix
        numbers = (path.name[len(prefix) : -len(_SUFFIX)] for path in self._directory.glob(f"{prefix}*{_SUFFIX}"))
        return [int(number) for number in numbers if number.isdigit()]

    def _path(self, base: int) -> Path:
        return self._directory / f"{self._prefix}{base}{_SUFFIX}"

    def _size(self, base: int) -> int:
        return self._path(base).stat().st_size

    def _roll(self) -> None:
        base = self.end
        self.close()
        self._file = self._path(base).open("ab")
        if base not in self._segments:  # unless the last start wrote nothing
            self._segments.append(base)
        self.prune()

    def _page(self, base: int, position: int, most: int) -> tuple[list[dict[str, Any]], int]:
        """Whole lines of one segment. What is left of a segment that no longer grows is stepped over."""
        with self._path(base).open("rb") as file:
            file.seek(position - base)
            data = file.read(most)
        whole = data.rfind(b"\n") + 1
        if whole == 0 and base != max(self._segments):
            return [], base + self._size(base)
        lines = (_parsed(line) for line in data[:whole].splitlines())
        return [line for line in lines if line is not None], position + whole


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except ValueError:
        return None  # the end of a line, asked for from its middle, or what a killed master left
    return document if isinstance(document, dict) else None
