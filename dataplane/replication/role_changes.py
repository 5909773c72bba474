"""Roles of the replicas here begin and end: requests that waited are told, and so are the coordinators that follow leadership."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.waiting import hear, tell

if TYPE_CHECKING:
    from dataplane.doors import Callback, Loop
    from dataplane.replication.accounting import Accounting
    from dataplane.replication.following.fetchers import Fetchers
    from dataplane.replication.replica.partition import Partition
    from dataplane.replication.replica_registry import ReplicaRegistry
    from dataplane.replication.upkeep.syncing import Syncs
    from dataplane.replication.verdicts import Verdicts
    from dataplane.replication.waiting import Waiting

Leadership = Callable[[str, int, int | None], None]
"""(topic, partition, leader epoch): we lead it from here on; None: we do not, or not any more."""

_log = logging.getLogger(__name__)


class RoleChanges:
    """Who decides about roles is `leadership`, or a disk that refused."""

    def __init__(
        self,
        loop: Loop,
        registry: ReplicaRegistry,
        accounting: Accounting,
        waiting: Waiting,
        verdicts: Verdicts,
        syncs: Syncs,
        fetchers: Fetchers,
    ) -> None:
        self._loop = loop
        self._registry = registry
        self._accounting = accounting
        self._waiting = waiting
        self._verdicts = verdicts
        self._syncs = syncs
        self._fetchers = fetchers
        self._listeners: list[Leadership] = []
        self._broken_listeners: list[Callback] = []

    def on_leadership(self, callback: Leadership) -> None:
        """Hear of every partition that we begin or cease to lead, after the fact and in order."""
        self._listeners.append(callback)

    def role_changed(self, partition: Partition, led: bool, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """After a change of role or epoch: requests that waited for us as the leader get `code`, and every listener is told."""
        if partition.state.is_leader != led:
            self._accounting.led(partition, -1 if led else 1)
            self._waiting.dismiss(partition, code)
        self._verdicts.dismiss(partition)
        self._waiting.look_again(partition)
        self._syncs.catch_up(partition)
        if partition.state.is_leader or led:
            for listener in self._listeners:
                hear(
                    listener,
                    partition.topic,
                    partition.index,
                    partition.state.leader_epoch if partition.state.is_leader else None,
                )

    def failed(self, partition: Partition) -> None:
        """The disk refused: nothing of this replica can be trusted before recovery at the next start."""
        if not partition.log.failed:
            partition.log.fail(OSError(errno.EIO, "Input/output error", partition.log.directory))  # a read
        led = partition.state.fail()
        self._fetchers.leave(partition)
        queues = partition.queues
        for call in queues.take_turn_end_calls() + [done for _, _, done in queues.take_turn_end_acks()]:
            tell(call, ErrorCode.KAFKA_STORAGE_ERROR)
        self.role_changed(partition, led, ErrorCode.KAFKA_STORAGE_ERROR)

    def on_broken(self, callback: Callback) -> None:
        """Hear of replicas that are lost without their directory."""
        self._broken_listeners.append(callback)

    def broken(self, partition: Partition, error: Exception) -> None:
        """A bug has met it in the middle of its work.

        What its log has in memory cannot be trusted, nor anything that is staged: this one is offline until recovery at
        the next start, as after a refusal of the disk. Nothing is wrong with the disk: the logs beside it serve on.
        """
        _log.error("%s-%d is offline until the next start", partition.topic, partition.index, exc_info=error)
        partition.log.give_up()
        self.failed(partition)
        for listener in self._broken_listeners:
            hear(listener)

    def directory_failed(self, _path: str, _error: str, keys: list[tuple[str, int]]) -> None:
        """All that is there is lost to us. In the next turn: something is in the middle of its work."""

        def lose() -> None:
            for key in keys:
                partition = self._registry.get(*key)
                if partition is not None and partition.log.failed and not partition.state.is_offline:
                    self.failed(partition)

        self._loop.call_soon(lose)
