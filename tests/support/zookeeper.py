"""A real ZooKeeper for a test: `ZooKeeperServer(directory, port)`, start, stop, start again on the same data.

server = ZooKeeperServer(tmp_path / "zk", free_port())
server.start()          # returns when it accepts and answers `ruok`
client = KazooClient(server.hosts)
server.stop()           # SIGTERM, then SIGKILL after 5 s; data stays
server.kill()           # SIGKILL at once
"""

import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane.stack import zookeeper
from controlplane.stack.process import dies_with_parent


class ZooKeeperServer:
    """One standalone server on loopback; also a context manager."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def hosts(self) -> str:
        return f"{zookeeper.HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self, timeout_s: float = 30.0) -> None:
        command = zookeeper.prepare(self.directory, self.port)
        with (self.directory / "out.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )
        deadline = time.monotonic() + timeout_s
        while not zookeeper.answers(zookeeper.HOST, self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"ZooKeeper did not start:\n{(self.directory / 'out.log').read_text()[-2000:]}")
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
