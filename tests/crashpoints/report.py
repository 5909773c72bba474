"""What crash-point runs have found: as a table, in var/reports/crash.json, and added up where several processes ran.

A part of a run (`--shard 1/2`) leaves `crash.1-of-2.json` beside it; `merged` makes the whole of all parts.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.crashpoints.points import ENDS
from tests.support.shard import IncompleteError, all_parts, suffix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.crashpoints.points import Outcome
    from tests.support.shard import Shard

DIRECTORY = Path("var/reports")
_SHOWN = 20
_COUNTS = ("by_end", "by_call", "by_step")

Report = dict[str, Any]


def report_of(outcome: Outcome, options: dict[str, object], seconds: float) -> Report:
    """As it is written."""
    opened = sum(outcome.opened.values())
    return {
        "options": options,
        "seconds": round(seconds, 1),
        "crash_points": outcome.points,
        "opened": opened,
        "recovered": opened - len(outcome.failures),
        "by_end": dict(outcome.opened),
        "by_call": dict(outcome.by_call.most_common()),
        "by_step": dict(outcome.by_step.most_common()),
        "failures": [asdict(failure) for failure in outcome.failures],
    }


def added_up(parts: Sequence[Report]) -> Report:
    """One report of those of several processes, which ran side by side."""
    if any(part["options"] != parts[0]["options"] for part in parts):
        raise IncompleteError("the parts were run with different options")
    whole: Report = {"options": parts[0]["options"], "seconds": max(part["seconds"] for part in parts)}
    for name in ("crash_points", "opened", "recovered"):
        whole[name] = sum(part[name] for part in parts)
    for name in _COUNTS:
        whole[name] = dict(sum((Counter(part[name]) for part in parts), Counter()).most_common())
    whole["failures"] = [failure for part in parts for failure in part["failures"]]
    return whole


def path_of(part: Shard, directory: Path = DIRECTORY) -> Path:
    """Where a part is written, or the whole where that is the only part."""
    return directory / f"crash{suffix(part)}.json"


def merged(directory: Path = DIRECTORY) -> Report:
    """Of all parts there are, which are removed: what they say is in crash.json. Raises IncompleteError."""
    found = all_parts(directory, "crash")
    whole = added_up([json.loads(path.read_text()) for path in found])
    write(whole, directory / "crash.json")
    for path in found:
        path.unlink()
    return whole


def write(report: Report, path: Path) -> None:
    """For later."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")


def show(report: Report) -> None:
    """For whoever waits for it."""
    failed = Counter(failure["end"] for failure in report["failures"])
    print(f"\n{'what ended the writer':24}{'opened':>10}{'recovered':>12}")
    for end in ENDS:
        opened = report["by_end"].get(end, 0)
        print(f"{end:24}{opened:>10}{opened - failed[end]:>12}")
    print(f"\n{'stopped after':24}{'points':>10}")
    for call, count in report["by_call"].items():
        print(f"{call:24}{count:>10}")
    for failure in report["failures"][:_SHOWN]:
        print("\nseed {seed}, point {point} ({step}; {call}; {end})\n    {problem}".format(**failure))
    print("\n{crash_points} crash points, {opened} times opened, {recovered} recovered".format(**report))
