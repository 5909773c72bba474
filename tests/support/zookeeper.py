"""A real ZooKeeper for a test.

    server = ZooKeeperServer(tmp_path / "zk", free_port())
    server.start()
    client = KazooClient(server.hosts)

Start, stop, kill and restart are those of `StoreServer`.
"""

from controlplane.stack import zookeeper
from tests.support.store import HOST, StoreServer


class ZooKeeperServer(StoreServer):
    """One standalone server on loopback."""

    @property
    def hosts(self) -> str:
        return f"{HOST}:{self.port}"

    def prepare(self) -> list[str]:
        return zookeeper.prepare(self.directory, self.port)

    def answers(self) -> bool:
        return zookeeper.answers(HOST, self.port)
