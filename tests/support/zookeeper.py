"""A real ZooKeeper for a test, and clients of it.

    server = ZooKeeperServer(tmp_path / "zk", free_port())
    server.start()
    client = operator(server.hosts)      # may do everything with every node of a cluster of `processes.SECRET`
    client = stranger(server.hosts)      # proves nothing

Start, stop, kill and restart are those of `StoreServer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient

from controlplane.stack import zookeeper
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from quota.zookeeper.client import Client
from tests.support.processes import SECRET
from tests.support.store import HOST, StoreServer

if TYPE_CHECKING:
    from pathlib import Path


class ZooKeeperServer(StoreServer):
    """One standalone server on loopback. `config`: further lines of zoo.cfg."""

    def __init__(self, directory: Path, port: int, **config: object) -> None:
        super().__init__(directory, port)
        self._config = "".join(f"{name.replace('_', '.')}={value}\n" for name, value in config.items())

    @property
    def hosts(self) -> str:
        return f"{HOST}:{self.port}"

    def prepare(self) -> list[str]:
        command = zookeeper.prepare(self.directory, self.port)
        with (self.directory / "zoo.cfg").open("a") as file:
            file.write(self._config)
        return command

    def answers(self) -> bool:
        return zookeeper.answers(HOST, self.port)

    def chroot(self, name: object) -> str:
        """Hosts with a new root, which is everybody's: an empty cluster beside others on one server."""
        path = f"/cluster-{abs(hash(name)):x}"
        client = stranger(self.hosts)
        client.start(timeout=30)
        client.ensure_path(path)
        client.stop()
        client.close()
        return self.hosts + path


def party_client(hosts: str, party: Party, *secrets: str, closed: bool = True, **options: Any) -> Client:
    """A client that is not started yet; `chroot` and options of kazoo's as `Client` has them."""
    return Client(hosts, access_by_secret(secrets or (SECRET,), party, closed=closed), **options)


def operator(hosts: str, *secrets: str, **options: Any) -> Client:
    """As `party_client`: of whoever may do everything. `closed=False` where the tree may be Apache Kafka's."""
    return party_client(hosts, Party.OPERATORS, *secrets, **options)


def started(client: KazooClient, within_s: float = 30) -> KazooClient:
    """Connected. kazoo's own `start` looks at the root, which not everybody may."""
    assert client.start_async().wait(within_s), "no connection to ZooKeeper"
    return client


def stranger(hosts: str, **options: Any) -> KazooClient:
    """As `party_client`: of somebody who reaches ZooKeeper's port and knows nothing."""
    return KazooClient(hosts, **options)
