"""A real store's process for a test: start, stop, kill, start again on the same data; also a context manager.

server.start()          # returns when it accepts and answers
server.stop()           # SIGTERM, then SIGKILL after 5 s; data stays
server.kill()           # SIGKILL at once
"""

import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane.stack.process import dies_with_parent

HOST = "127.0.0.1"
STARTS_WITHIN_S = 120.0  # a JVM, where many others want the cores; on a quiet machine it takes one


class StoreServer:
    """One server on loopback. Subclasses say which command runs it and how it answers."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.port = port
        self.user: str | None = None  # who runs it, if not we
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> list[str]:
        """Write the server's files; the command that runs it."""
        raise NotImplementedError

    def answers(self) -> bool:
        raise NotImplementedError

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self, timeout_s: float = STARTS_WITHIN_S) -> None:
        command = self.prepare()
        log_path = self.directory / "out.log"
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.user,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )
        deadline = time.monotonic() + timeout_s
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{type(self).__name__} did not start:\n{log_path.read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
