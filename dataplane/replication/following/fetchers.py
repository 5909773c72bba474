"""Who is copied from whom: one `Fetcher` for each broker that leads something we follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.replication.following.fetcher import Fetcher
from dataplane.replication.replica.partition_state import NO_LEADER

if TYPE_CHECKING:
    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition


class Fetchers:
    """The fetchers of this broker, by leader."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._by_leader: dict[int, Fetcher] = {}
        self._stopped = False

    def follow(self, partition: Partition) -> None:
        """Copy from its leader, in its present epoch; from nobody where it has none."""
        self.leave(partition)
        leader = partition.state.leader_id
        if leader <= NO_LEADER or self._stopped:
            return
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = Fetcher(self._replicas, leader)
        fetcher.add(partition)

    def ask_again(self, partition: Partition) -> None:
        """What it has is on disk: its leader may hear of it."""
        fetcher = self._by_leader.get(partition.state.leader_id)
        if fetcher is not None:
            fetcher.ask_again()

    def leave(self, partition: Partition) -> None:
        """Stop copying it."""
        for leader, fetcher in list(self._by_leader.items()):
            if fetcher.remove(partition) and fetcher.is_idle():
                del self._by_leader[leader]
                fetcher.stop()

    def changed(self, partition: Partition) -> None:
        """The log of one that we follow begins somewhere else."""
        fetcher = self._by_leader.get(partition.state.leader_id)
        if fetcher is not None:
            fetcher.changed(partition)

    def stop(self) -> None:
        """Copy nothing any more."""
        self._stopped = True
        fetchers, self._by_leader = self._by_leader, {}
        for fetcher in fetchers.values():
            fetcher.stop()
