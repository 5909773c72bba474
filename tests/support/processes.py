"""Brokers and masters as processes of their own: written configuration, a log file, and a pid to stop or kill.

broker = broker_process(folder, 1, zookeeper="127.0.0.1:10001", secrets=secrets_file(folder))
broker.start()      # returns at once
broker.kill()       # SIGKILL; data stays, start() begins again on it
broker.stop()       # SIGTERM, then SIGKILL when its patience is over
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from controlplane.stack.process import dies_with_parent
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOST = "127.0.0.1"
SECRET = "the cluster's secret"
SESSION_MS = 4000
"""A third of it may have passed since the last heartbeat when the machine stands still: then 2 s more end no session. A broker
that was killed is missed after as long."""


class ServerProcess:
    """One server that is started, killed and started again on the same configuration."""

    def __init__(self, name: str, module: str, config: Path, ports: Mapping[str, int]) -> None:
        self.name = name
        self.config = config
        self.ports = ports
        self.log = config.with_suffix(".log")
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        assert not self.is_running, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def stop(self, patience_s: float = 15.0) -> int:
        """SIGTERM, and SIGKILL to what does not listen; the exit status."""
        if self._process is None:
            return 0
        self._process.terminate()
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return -9

    def accepts(self) -> bool:
        """Whether all its ports do. Fails at once, with the end of the log, when the process is gone."""
        assert self.is_running, f"{self.name} is gone:\n{self.tail()}"
        for port in self.ports.values():
            with socket.socket() as probe:
                probe.settimeout(0.5)
                if probe.connect_ex((HOST, port)):
                    return False
        return True

    def configure(self, **members: object) -> None:
        """Further members of its first table, from the next start on."""
        head, rest = self.config.read_text().split("\n", 1)
        kept = [line for line in rest.splitlines() if line.partition(" = ")[0] not in members]
        lines = [head, *(f"{name} = {json.dumps(value)}" for name, value in members.items()), *kept]
        self.config.write_text("\n".join(lines) + "\n")

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""


def secrets_file(folder: Path) -> Path:
    """What the servers find their secret in."""
    path = folder / "secrets.json"
    path.write_text(json.dumps({"cluster_secret": SECRET}))
    return path


def broker_process(
    folder: Path,
    broker: int,
    *,
    zookeeper: str,
    secrets: Path,
    settings: Mapping[str, object] | None = None,
    module: str = "dataplane",
    tables: Mapping[str, Mapping[str, object]] | None = None,
    **members: object,
) -> ServerProcess:
    """A broker with its own data directory; ports: internal. `members` are further ones of [broker], `tables` beside it."""
    port = free_port()
    table = {
        "id": broker,
        "data_dirs": [str(folder / f"data-{broker}")],
        "internal": f"{HOST}:{port}",
        "zookeeper": zookeeper,
        "secrets_file": str(secrets),
        "session_timeout_ms": SESSION_MS,
        **members,
    }
    config = _write(folder / f"broker-{broker}.toml", broker=table, settings=settings or {}, **(tables or {}))
    return ServerProcess(f"broker {broker}", module, config, {"internal": port})


def master_process(
    folder: Path,
    master: int,
    *,
    zookeeper: str,
    secrets: Path,
    lease_ms: int,
    tables: Mapping[str, Mapping[str, object]] | None = None,
    **members: object,
) -> ServerProcess:
    """A master; ports: report, http. `members` are further ones of [master], `tables` beside it."""
    ports = {"report": free_port(), "http": free_port()}
    table = {
        "id": master,
        **{name: f"{HOST}:{port}" for name, port in ports.items()},
        "zookeeper": zookeeper,
        "secrets_file": str(secrets),
        "session_timeout_ms": SESSION_MS,
        "period_ms": 1000,
        "lease_ms": lease_ms,
        "data_dir": str(folder / f"master-{master}"),
        **members,
    }
    config = _write(folder / f"master-{master}.toml", master=table, **(tables or {}))
    return ServerProcess(f"master {master}", "quota", config, ports)


def _write(path: Path, **tables: Mapping[str, object]) -> Path:
    # JSON's strings, numbers, booleans and arrays of strings are TOML's too.
    lines = []
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    path.write_text("\n".join(lines) + "\n")
    return path
