"""All replicas of this broker: what handlers, coordinators and fetchers call.

The path of a produce: `leader`, `append` (checks and stages), `after_commit` (what to do then). What can be done with the
replicas is told by a file each, and `Replicas` is all of them:

    hosted       which are here, and how they are configured
    roles        what happens when one begins or ceases to lead, or its disk refuses
    reading      ranges of logs, who waits for more, and what moves the high watermark
    appending    stage, commit, acknowledge

Who leads what is decided elsewhere: `leadership` takes the controller's words, `fetchers` copies what we follow, `isr`
proposes who is in sync.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.replication import leadership
from dataplane.replication.accounting import Accounting
from dataplane.replication.appending import Appended, Appending
from dataplane.replication.following.fetchers import Fetchers
from dataplane.replication.isr import AlterPartition, IsrChanges
from dataplane.replication.partition import ReplicaRules
from dataplane.replication.throttling import Throttles
from dataplane.replication.upkeep.housekeeping import Housekeeping
from dataplane.replication.upkeep.moves import Moves
from dataplane.replication.upkeep.syncing import Syncs
from dataplane.replication.verdicts import Verdicts
from dataplane.replication.waiting import Waiting
from dataplane.storage.cleaner.cleaner import Cleaner
from dataplane.tasks import sleep

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.cluster.metadata import Metadata
    from dataplane.config import BrokerConfig
    from dataplane.doors import Doors
    from dataplane.metering.meter import Meter
    from dataplane.peers.outbound import Peers
    from dataplane.protocol.messages.control import (
        LeaderAndIsrRequest,
        LeaderAndIsrResponse,
        StopReplicaRequest,
        StopReplicaResponse,
    )
    from dataplane.replication.replica_registry import TopicOverrides
    from dataplane.storage.log import Log
    from dataplane.storage.manager import LogManager
    from dataplane.tasks import Future

__all__ = ["Appended", "Replicas"]

_SETTLE_PAUSE_S = 0.02


class Replicas(Appending):
    """See the module. `broker_epoch` is the czxid of our registration; -1 while there is none."""

    def __init__(
        self,
        config: BrokerConfig,
        doors: Doors,
        logs: LogManager,
        metadata: Metadata,
        topic_configs: TopicOverrides,
        peers: Peers,
        *,
        broker_epoch: Callable[[], int],
        alter_partition: AlterPartition,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(config)
        self.logs = logs
        self.metadata = metadata
        self.topic_configs = topic_configs
        self.peers = peers
        self.broker_epoch = broker_epoch
        self.loop = doors.loop
        self.files = doors.files
        self.meter = meter
        self.accounting = Accounting()
        self.waiting = Waiting(doors.loop)
        self.verdicts = Verdicts(doors.loop, self.waiting)
        self.fetchers = Fetchers(self)
        self.isr_changes = IsrChanges(config.id, doors.loop, broker_epoch, alter_partition, self.isr_confirmed)
        self.rules = ReplicaRules(
            config.id, config.settings.replica_lag_time_max_ms / 1000, lambda broker_id: broker_id in metadata.brokers
        )
        self._clock = doors.loop.clock
        self.tells_followers_at_once = config.settings.replica_selector_class != ""  # consumers may read from them
        self._dirty = []
        self._listeners = []
        self._broken_listeners = []
        self.background = doors.background
        self.syncs = Syncs(self, doors.background, self._clock)
        self.moves = Moves(self, doors.background)
        self.throttles = Throttles(config, metadata, self._clock)
        self._housekeeping = Housekeeping(self)
        committed_of = self._housekeeping.committed_of
        self.cleaner = Cleaner(doors, logs, lambda: self.config.settings, committed_of, self._compacted)
        topic_configs.on_change(self._configure_topic)
        logs.on_directory_failure(self._directory_failed)

    def start(self) -> None:
        """Begin what happens by the clock."""
        self._housekeeping.start()

    def stop(self) -> Future[None]:
        """No more fetching, proposing and answering; what is staged is written.

        The future is resolved when the high watermarks are on disk. The logs stay open.
        """
        self.moves.stop()
        self.fetchers.stop()
        self.isr_changes.stop()
        for partition in self.partitions():
            self.commit(partition)
            self.waiting.dismiss(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self.verdicts.dismiss(partition)
        return self._housekeeping.stop()

    async def settle(self, within_s: float) -> None:
        """Wait, not for long, until what we took as the leader is known to be committed.

        After leaderships were given away, before we stop: the new leaders' answers to our fetches say so.
        """
        end = self._clock.monotonic() + within_s
        while any(p.uncommitted.is_open() for p in self.partitions()) and self._clock.monotonic() < end:
            await sleep(self.loop, _SETTLE_PAUSE_S)

    def apply_retention(self) -> None:
        """Delete now what is too old or too much; nothing that is not committed."""
        self._housekeeping.apply_retention()

    def _compacted(self, log: Log) -> None:
        partition = self.get(log.topic, log.partition)
        if partition is not None and partition.log is log:
            self.accounting.measure(partition)

    def apply_leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """The controller says who leads and who follows."""
        return leadership.apply_leader_and_isr(self, request)

    def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """The controller takes replicas away from this broker, or from the earth."""
        return leadership.stop_replicas(self, request)
