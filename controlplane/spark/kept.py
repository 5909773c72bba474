"""Programs as processes of their own: the words that start one, and a keeper, by which it ends with all that it has started.

All of it ends with the process that has started it, too.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from controlplane.spark import keeper


class Kept:
    """Of one command. `environment`: None is this process's own."""

    def __init__(
        self, command: Sequence[str], *, stops_within_s: float, environment: Mapping[str, str] | None = None
    ) -> None:
        """Raises OSError: it cannot be started."""
        self._process = _started(list(command), stops_within_s, environment)
        self._stops_within_s = stops_within_s + (keeper.ENDS_WITHIN_S if keeper.is_possible() else 0)

    def poll(self) -> int | None:
        """Its status; None: it goes on."""
        return self._process.poll()

    def ask(self) -> None:
        """Have it end."""
        self._process.terminate()

    def ended(self) -> int:
        """Its status, once it has ended; one that was asked and goes on is killed after a while."""
        try:
            return self._process.wait(self._stops_within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def stop(self) -> int:
        """Both."""
        self.ask()
        return self.ended()


def program(module: str, submit: Sequence[str]) -> list[str]:
    """Words that start one of our programs: by `submit` (``spark-submit --master yarn``), or, without it, by this Python."""
    if not submit:
        return [sys.executable, "-m", module]
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return [*submit, found.origin]


def _started(
    command: list[str], stops_within_s: float, environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    """A keeper with the command below it; the command alone where the system has no keepers."""
    if not keeper.is_possible():
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)  # noqa: S603  # ours
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as problem:
        try:
            words = keeper.words(command, fd=writing, stops_within_s=stops_within_s)
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[writing], env=environment)  # noqa: S603
        finally:
            os.close(writing)
        number = problem.read()  # until the command is there, or is known not to be
    if number:
        process.wait()
        raise OSError(int(number), os.strerror(int(number)))
    return process
