"""A command that belongs to a suite: its lines as they come, its time bounded, its whole process group ended by id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

TIMED_OUT = -1000


def run_lines(
    command: Sequence[str],
    *,
    limit_s: float,
    log: Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
    stdin: str | None = None,
) -> int:
    """The exit status, or TIMED_OUT. What it says, errors among it, goes to `log` and line by line to `on_line`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that what it starts can be ended with it
    )
    timed_out = threading.Event()

    def end() -> None:
        timed_out.set()
        _end_group(process)

    timer = threading.Timer(limit_s, end)
    timer.start()
    try:
        if stdin is not None:
            assert process.stdin is not None
            process.stdin.write(stdin)
            process.stdin.close()
        assert process.stdout is not None
        with process.stdout, log.open("w") as out:
            for line in process.stdout:
                out.write(line)
                if on_line is not None:
                    on_line(line.rstrip("\n"))
        process.wait()
    finally:
        timer.cancel()
        _end_group(process)
        process.wait()
    return TIMED_OUT if timed_out.is_set() else process.returncode


def _end_group(process: subprocess.Popen[str]) -> None:
    """The group's number is the pid of its first process, which is ours."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
