"""All parts, one after the other or two at a time, and what is known of them: var/reports/nightly.json.

    commit, seconds, passed, parts: {name: {verdict, seconds, command, figures}}

The file is written whenever a part ends. A part is finished when it ran to its end, whatever it found; it is not run again
for the same commit with the same arguments. One that was stopped, or ran out of time, is, and most go on where they were.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.nightly.parts import Part
from tests.nightly.running import FINISHED, Running

FILE = "nightly.json"
_LOOK_EVERY_S = 0.2
_TELL_EVERY_S = 60.0
_SIDE_BY_SIDE = 2


@dataclass
class Night:
    """The parts that were chosen, on one state of the code."""

    commit: str
    parts: Sequence[Part]
    reports: Path
    logs: Path
    say: Callable[[str], None]
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        path = self.reports / FILE
        before = json.loads(path.read_text()) if path.exists() else {}
        if before.get("commit") == self.commit:
            self.rows = before["parts"]

    def run(self, again: Sequence[str] = ()) -> None:
        """Those that are not finished, or are to be run again."""
        left = [part for part in self.parts if part.name in again or not self._is_finished(part)]
        for part in self.parts:
            if part not in left:
                self.say(f"{part.name}: was run on this commit: {self.rows[part.name]['verdict']}")
        self._run([part for part in left if not part.alone], _SIDE_BY_SIDE)
        self._run([part for part in left if part.alone], 1)

    def _is_finished(self, part: Part) -> bool:
        row = self.rows.get(part.name)
        return row is not None and row["verdict"] in FINISHED.values() and row["command"] == list(part.arguments)

    def _run(self, left: list[Part], at_once: int) -> None:
        under_way: dict[str, tuple[Part, Running]] = {}
        said = time.monotonic()
        try:
            while left or under_way:
                while left and len(under_way) < at_once:
                    part = left.pop(0)
                    self.say(f"{part.name}: python -m {' '.join(part.arguments)}")
                    log = self.logs / f"{part.name.replace(' ', '-')}.log"
                    under_way[part.name] = part, Running(part.arguments, log, part.minutes * 60)
                time.sleep(_LOOK_EVERY_S)
                for part, running in list(under_way.values()):
                    verdict = running.verdict()
                    if verdict is not None:
                        del under_way[part.name]
                        self._ended(part, verdict, running)
                if time.monotonic() - said > _TELL_EVERY_S:
                    said = time.monotonic()
                    for part, running in under_way.values():
                        self.say(f"  {part.name}, {running.seconds / 60:.0f} min: {running.last_line()}")
        finally:
            for _, running in under_way.values():
                running.stop()

    def _ended(self, part: Part, verdict: str, running: Running) -> None:
        figures, seconds = {}, running.seconds
        try:
            figures = part.read(self.reports, running.began_at)
        except (LookupError, ValueError, TypeError) as error:
            if verdict in FINISHED.values():  # an exception has the exit status of a finding
                verdict = f"BROKEN ({error})"
        self.rows[part.name] = {
            "verdict": verdict,
            "seconds": round(seconds),
            "command": list(part.arguments),
            "figures": figures,
        }
        self.say(f"{part.name}: {verdict} after {seconds / 60:.1f} min")
        self._save()

    @property
    def has_passed(self) -> bool:
        """Every part that was chosen."""
        return all(self.rows.get(part.name, {}).get("verdict") == FINISHED[0] for part in self.parts)

    def table(self) -> str:
        """For the terminal."""
        lines = [f"{'':<16}{'verdict':<14}{'min':>6}  figures"]
        for part in self.parts:
            row = self.rows.get(part.name, {"verdict": "not run", "seconds": 0, "figures": {}})
            told = ", ".join(f"{name} {value}" for name, value in row["figures"].items())
            lines.append(f"{part.name:<16}{row['verdict']:<14}{row['seconds'] / 60:>6.1f}  {told}")
        return "\n".join(lines)

    def _save(self) -> None:
        path = self.reports / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "commit": self.commit,
            "passed": self.has_passed,
            "seconds": sum(row["seconds"] for row in self.rows.values()),
            "parts": self.rows,
        }
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(document, indent=1) + "\n")
        new.replace(path)  # whole, whatever ends us
