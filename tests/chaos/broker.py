"""`python -m tests.chaos.broker broker.toml`: a broker whose wall clock can be moved, and which may have a bug planted.

[broker]
chaos_clock = "/…/clock-1"    a file of eight bytes: nanoseconds to add to what the system says, read at every look
chaos_bug = "…"               one of `tests.simulation.bugs`, for calibration

Only wall time moves; the monotonic clock never does, as on a machine whose date is set.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
import tomllib
from contextlib import nullcontext
from pathlib import Path

_CODE = struct.Struct("<q")


def set_clock(file: Path, offset_ns: int) -> None:
    """Move the clock of whoever looks at this file. In place: it is mapped."""
    if not file.exists():
        file.write_bytes(_CODE.pack(0))
    with file.open("r+b") as opened:
        opened.write(_CODE.pack(offset_ns))


def _move_clock(file: Path) -> None:
    with file.open("rb") as opened:
        offset = mmap.mmap(opened.fileno(), _CODE.size, access=mmap.ACCESS_READ)
    system_ns, system_s = time.time_ns, time.time
    time.time_ns = lambda: system_ns() + _CODE.unpack(offset)[0]
    time.time = lambda: system_s() + _CODE.unpack(offset)[0] / 1e9


def main(config: str) -> int:
    """The broker's exit status."""
    table = tomllib.loads(Path(config).read_text())["broker"]
    _move_clock(Path(table["chaos_clock"]))
    from dataplane.__main__ import main as broker

    planted = nullcontext()
    if table.get("chaos_bug"):
        from tests.simulation import bugs

        planted = bugs.planted(table["chaos_bug"])  # type: ignore[assignment]
    with planted:
        return broker([config])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
