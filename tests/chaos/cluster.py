"""Three brokers behind proxies and a real ZooKeeper; no masters: quota is not what is tested here.

`tests.support.cluster.ProcessCluster` with what faults need: links to cut, clocks to move, processes to stop and continue, and
a small file system of its own for one broker where we may mount one.
"""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any, Self

from tests.chaos.broker import set_clock
from tests.chaos.keepers import Keepers
from tests.chaos.network import HOST, ZOOKEEPER, Links
from tests.support.cluster import BROKERS, ProcessCluster
from tests.support.ports import free_port
from tests.support.processes import broker_process, secrets_file
from tests.support.specs import Specs
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer, operator

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SMALL_DISK_BROKER = 3
SMALL_DISK = "192m"
SETTINGS = {
    "group_min_session_timeout_ms": 1000,
    "offsets_topic_num_partitions": 4,
    "log_segment_bytes": 2**20,  # so that segments roll under faults
    "replica_lag_time_max_ms": 4000,
}
SESSION_S = 2.0  # with ZooKeeper
LAG_S = SETTINGS["replica_lag_time_max_ms"] / 1000
HEALED_WITHIN_S = 60.0
_RECONNECT = {"max_tries": -1, "max_delay": 0.5}
"""Of our own client. kazoo's longest pause is a minute: after an outage of two, whoever waits a minute hears nothing."""


class ChaosCluster(ProcessCluster):
    """A context manager, as its base."""

    def __init__(
        self, folder: Path, *, small_disk: bool = False, bug: str | None = None, three_keepers: bool = False
    ) -> None:
        self.folder = folder
        self.links = Links()
        self.has_small_disk = small_disk and os.geteuid() == 0
        self.paused: set[int] = set()  # pids
        self.keepers = Keepers(folder / "zookeeper") if three_keepers else None
        self.keeper = ZooKeeperServer(folder / "zookeeper", free_port())  # not started where there are three
        self._zookeeper = self.keepers or self.keeper
        self.zookeeper = operator(self._zookeeper.hosts, timeout=10, connection_retry=_RECONNECT)
        self.specs = Specs(self.zookeeper)
        self.tenants = []
        self.masters = {}
        self.links.start()
        secrets = secrets_file(folder)
        self.links.target(ZOOKEEPER, *(self.keepers.addresses if self.keepers else [(HOST, self.keeper.port)]))
        self.brokers = {n: self._broker(n, secrets, bug) for n in BROKERS}

    def _broker(self, number: int, secrets: Path, bug: str | None) -> Any:
        set_clock(self.clock_file(number), 0)
        members: dict[str, object] = {"chaos_bug": bug} if bug else {}
        server = broker_process(
            self.folder,
            number,
            zookeeper=f"{HOST}:{self.links.listen(ZOOKEEPER, str(number))}",
            secrets=secrets,
            settings=SETTINGS,
            module="tests.chaos.broker",
            session_timeout_ms=2000,  # as `make up` has it: the sooner somebody takes over, the more happens in a round
            advertised_internal=f"{HOST}:{self.links.listen(str(number))}",
            chaos_clock=str(self.clock_file(number)),
            **members,
        )
        self.links.target(str(number), (HOST, server.ports["internal"]))
        return server

    def clock_file(self, broker: int) -> Path:
        return self.folder / f"clock-{broker}"

    def data(self, broker: int) -> Path:
        return self.folder / f"data-{broker}"

    def __enter__(self) -> Self:
        if self.has_small_disk:
            self.has_small_disk = self._mount()
        try:
            super().__enter__()
        except BaseException:
            self._unmount()
            raise
        return self

    def stop(self) -> None:
        self.continue_all()
        super().stop()
        self.links.stop()
        self._unmount()

    def _mount(self) -> bool:
        place = self.data(SMALL_DISK_BROKER)
        place.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "chaos", str(place)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def _unmount(self) -> None:
        if self.has_small_disk:
            subprocess.run(["umount", "-l", str(self.data(SMALL_DISK_BROKER))], check=False, capture_output=True)

    # --- faults' means ------------------------------------------------------------------------------------------------

    def pause(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        self.paused.add(pid)

    def revive_keeper(self) -> None:
        """ZooKeeper runs again, if it does not; all three, where there are three."""
        if self.keepers is not None:
            self.keepers.start()
        elif not self.keeper.answers():
            self.keeper.start()

    def continue_all(self) -> None:
        for pid in sorted(self.paused):
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
        self.paused.clear()

    def island(self, broker: int, others: Iterable[int]) -> None:
        """Cut both ways."""
        for other in others:
            self.separate(str(broker), str(other))

    def separate(self, one: str, other: str) -> None:
        """The same of any two that the links know."""
        self.links.cut(one, other)
        self.links.cut(other, one)

    # --- healing ------------------------------------------------------------------------------------------------------

    def heal(self) -> None:
        """Everything runs, is connected, and every partition has all its replicas in sync."""
        for server in self.brokers.values():
            if not server.is_running:
                server.start()
        wait_for(lambda: all(server.accepts() for server in self.brokers.values()), HEALED_WITHIN_S, "the brokers")
        wait_for(lambda: self.registered() == list(BROKERS), HEALED_WITHIN_S, "the registrations")
        wait_for(self.controller, HEALED_WITHIN_S, "a controller")
        for tenant in self.tenants:
            wait_for(lambda: self.specs.is_applied(tenant), HEALED_WITHIN_S, f"{tenant.id}")  # noqa: B023 - at once
        try:
            wait_for(lambda: not self.behind(), HEALED_WITHIN_S, "all replicas to be in sync")
        except AssertionError as error:
            raise AssertionError(f"{error}; not in sync: {self.behind()}") from error

    def leaders(self, physical: str, partitions: int) -> dict[int, int]:
        return {index: int(self.state(physical, index)["leader"]) for index in range(partitions)}
