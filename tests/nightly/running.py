"""One part as a process: begun, looked at, and ended when its time is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_TIDIES_UP_WITHIN_S = 60.0
FINISHED = {0: "passed", 1: "FINDINGS"}
"""By exit status."""
_NOT_FINISHED = {2: "INCOMPLETE"}


def _hears_interrupts() -> None:
    """Also where this process was begun in the background of a shell, and does not: a part is ended so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Running:
    """What it prints is in a file of its own."""

    def __init__(self, arguments: Sequence[str], log: Path, bound_s: float) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log, self._bound_s, self._began = log, bound_s, time.monotonic()
        self.began_at = int(time.time())  # whole seconds: file systems are no more exact than they are
        with log.open("wb") as out:
            command = [sys.executable, "-m", *arguments]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=_hears_interrupts,  # noqa: PLW1509 - one thread
            )

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    def verdict(self) -> str | None:
        """What has become of it; None: it is still under way."""
        status = self._process.poll()
        if status is not None:
            return (FINISHED | _NOT_FINISHED).get(status, f"BROKEN ({status})")
        if self.seconds < self._bound_s:
            return None
        self.stop()
        return "OUT OF TIME"

    def last_line(self) -> str:
        """Of what it has printed."""
        with self._log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 2_000))
            lines = log.read().decode(errors="replace").split()
        return " ".join(lines[-16:])[-100:]

    def stop(self) -> None:
        """It may tidy up (brokers, mounts); then whatever is left of it goes."""
        with suppress(subprocess.TimeoutExpired):
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
                self._process.wait(_TIDIES_UP_WITHIN_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
