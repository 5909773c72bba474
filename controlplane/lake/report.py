"""What a program that has started a load, or a copy, reads of it: a file of JSON, replaced whole each time.

While it runs ``{"says": "commit 2 of 5: writing 1,000,000 rows"}``, and in the end ::

    {"status": 0, "says": "2,000,000 rows, …", "topic_id": "rJ0f…", "rows": 2000000, "bytes": 1234, "commits": 2,
     "problems": 0, "gaps": ["partition 0 offsets 0-7"], "is_whole": true,
     "partitions": {"0": {"first": 8, "end": 40, "rows": 31, "checksum": "00ab…"}}}

with the exit status of the program. Without a load that ended well `says` is why, and only `status` stands beside it.

A copy into a bucket (`copy`) says ``{"says": "version 7 of 9 copied", "version": 7}`` while it runs and after it, with its status
in the end. `version` is the newest that the bucket has, also when the copy failed; without it there is none.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controlplane.lake.loading import Summary
    from controlplane.lake.progress import Say


@dataclass(frozen=True, slots=True)
class Told:
    """One that was read. `status` None: the program runs."""

    says: str = ""
    status: int | None = None
    topic_id: str = ""
    rows: int = 0
    bytes: int = 0
    commits: int = 0
    problems: int = 0
    gaps: list[str] = field(default_factory=list)
    partitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_whole: bool = True
    version: int | None = None


def read(path: Path) -> Told:
    """What the file says; nothing where there is none yet."""
    try:
        members = json.loads(path.read_text())
    except (OSError, ValueError):
        return Told()
    return Told(**{name: members[name] for name in Told.__dataclass_fields__ if name in members})


class Reporter:
    """Writes it. Without a path it only passes on what is said."""

    def __init__(self, path: Path | None, say: Say) -> None:
        self._path, self._next, self._last = path, say, ""
        self._noted: dict[str, int | bool] = {}

    def note(self, *, version: int) -> None:
        """A version is in the bucket. It stands in whatever is written from now on."""
        self._noted["version"] = version

    def cut(self) -> None:
        """It ends before all is copied, since it was told to."""
        self._noted["is_whole"] = False

    def say(self, text: str) -> None:
        """Progress, or what went wrong."""
        self._last = text
        self._next(text)
        self._write({"says": text})

    def end(self, status: int, summary: Summary | None) -> None:
        """How it went; what was said last is why, where there is no summary."""
        if summary is None:
            self._write({"says": self._last, "status": status})
            return
        gaps = [gap.sentence for commit in summary.commits for gap in commit.gaps]
        self._write(
            {
                "says": next(iter(summary.lines())), "status": status, "topic_id": summary.topic_id, "rows": summary.rows,
                "bytes": summary.bytes, "commits": len(summary.commits), "problems": summary.problems, "gaps": gaps,
                "is_whole": summary.is_whole,
                "partitions": {
                    str(at): {"first": span.first, "end": span.end, "rows": total.rows, "checksum": f"{total.checksum:016x}"}
                    for at, (span, total) in sorted(summary.partitions.items())
                },
            }
        )  # fmt: skip

    def _write(self, members: Mapping[str, Any]) -> None:
        if self._path is None:
            return
        partial = self._path.with_suffix(".part")
        with contextlib.suppress(OSError):  # a full disk has to be said by the exit status
            partial.write_text(json.dumps({**members, **self._noted}))
            partial.replace(self._path)
