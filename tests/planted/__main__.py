"""`make planted`: are the suites worth anything? Each hole of the table is planted, and its tests have to fail.

    python -m tests.planted [hole …]

First its tests run without the hole, and have to succeed. All holes take a quarter of an hour, and their figures are in
var/reports/planted.json. Exit status 1 when a hole was not found.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.nightly import code
from tests.planted.holes import HOLES, Hole
from tests.planted.planting import copy_to, look, planted

FOLDER = Path("var/planted").absolute()
REPORT = Path("var/reports/planted.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    known = {hole.name: hole for hole in HOLES}
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("holes", nargs="*", choices=[*known, []], metavar="hole", help=f"some of {', '.join(known)}")
    wanted = [known[name] for name in parser.parse_args(arguments).holes] or list(HOLES)
    began, state = time.monotonic(), code.state()
    copy_to(FOLDER)
    rows = [_tried(hole) for hole in wanted]
    found = sum(row["found"] for row in rows)
    print(f"{found} of {len(rows)} holes were found")
    if len(rows) == len(HOLES):
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        about = {"commit": state, "seconds": round(time.monotonic() - began), "found": found, "of": len(rows)}
        REPORT.write_text(json.dumps(about | {"holes": rows}, indent=1, ensure_ascii=False) + "\n")
    return 0 if found == len(rows) else 1


def _tried(hole: Hole) -> dict[str, Any]:
    without = look(hole.tests, FOLDER)
    with planted(hole, FOLDER):
        within = look(hole.tests, FOLDER)
    found = without.status == 0 and within.failed
    said = within.said if without.status == 0 else f"without it: {without.said}"
    print(f"{'found' if found else 'NOT FOUND':9}  {hole.name:22} {within.seconds:5.1f} s  {said[:140]}", flush=True)
    return {
        "name": hole.name,
        "what": hole.what,
        "place": hole.path,
        "tests": " ".join(hole.tests),
        "found": found,
        "said": said,
        "seconds": round(without.seconds + within.seconds, 1),
    }


if __name__ == "__main__":
    raise SystemExit(main())
