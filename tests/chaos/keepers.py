"""Three ZooKeepers that elect a leader among themselves, for what one cannot show: losing it, and being a minority.

A minority answers nobody who does not ask to read only, and brokers do not: for them it is as if there were none.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from tests.support.ports import free_port
from tests.support.waiting import wait_for
from tests.support.zookeeper import HOST, ZooKeeperServer

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = (1, 2, 3)
_QUORUM_WITHIN_S = 60.0
_RULES = "initLimit=60\nsyncLimit=10\n"  # ticks; what a follower of a cold JVM may take until it is in sync


class Keeper(ZooKeeperServer):
    """One of them."""

    def __init__(self, directory: Path, number: int, port: int, members: str) -> None:
        super().__init__(directory, port)
        self._number, self._members = number, members

    def prepare(self) -> list[str]:
        java, *rest = super().prepare()
        with (self.directory / "zoo.cfg").open("a") as config:
            config.write(f"\n{_RULES}{self._members}\n")
        (self.directory / "data" / "myid").write_text(f"{self._number}\n")
        return [java, "-Dreadonlymode.enabled=true", *rest]

    def mode(self) -> str:
        """leader, follower or read-only; empty while it is none of these."""
        try:
            with socket.create_connection((HOST, self.port), timeout=2) as connection:
                connection.sendall(b"srvr")
                said = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        except OSError:
            return ""
        return next((line.removeprefix("Mode: ") for line in said.splitlines() if line.startswith("Mode: ")), "")


class Keepers:
    """All three, with what `ZooKeeperServer` has for one."""

    def __init__(self, directory: Path) -> None:
        ports = {number: (free_port(), free_port(), free_port()) for number in NUMBERS}
        members = "\n".join(f"server.{n}={HOST}:{peer}:{election}" for n, (_, peer, election) in ports.items())
        self.members = {n: Keeper(directory / str(n), n, ports[n][0], members) for n in NUMBERS}
        self.down = list(NUMBERS)

    @property
    def hosts(self) -> str:
        return ",".join(keeper.hosts for keeper in self.members.values())

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [(HOST, keeper.port) for keeper in self.members.values()]

    def start(self) -> None:
        """All that do not run; returns when one of them leads."""
        while self.down:
            self.members[self.down.pop()].start()
        wait_for(self.leader, _QUORUM_WITHIN_S, "a leader among the ZooKeepers")

    def leader(self) -> int | None:
        return next((number for number, keeper in self.members.items() if keeper.mode() == "leader"), None)

    def kill_some(self, *numbers: int) -> None:
        self.down += numbers
        for number in numbers:
            self.members[number].kill()

    def stop(self) -> None:
        for keeper in self.members.values():
            keeper.stop()
