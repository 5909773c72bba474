"""What tests have measured, kept in var/reports beside what benchmarks keep there.

    kept("emergencies", {"A broker hangs": {"seconds": 4.2}})     # var/reports/emergencies.json

A part takes the place of what an earlier test or run said of the same, and leaves all others as they are. Several workers may
write at a time.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.alone import alone

if TYPE_CHECKING:
    from collections.abc import Mapping

REPORTS = Path(__file__).parents[2] / "var" / "reports"
_WITHIN_S = 30


def kept(name: str, parts: Mapping[str, Any]) -> dict[str, Any]:
    """All that the report has afterwards, by part."""
    path = REPORTS / f"{name}.json"
    with alone(path.with_suffix(".lock"), _WITHIN_S):
        found = json.loads(path.read_text()) if path.exists() else {}
        found |= parts
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    return dict(found)


def moment() -> str:
    """Now, in UTC to the second: when something was measured."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
