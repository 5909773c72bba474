"""All replicas of this broker: the parts that handlers, coordinators and fetchers hold, made and wired here.

The path of a produce: `registry.leader`, `appending.append` (checks and stages), `appending.after_commit` (what to do
then). Each part does one thing, and callers go to the part that they use: there is no call that only passes on.

    registry        which are here
    configuration   how they are configured
    roles           what happens when one begins or ceases to lead, or its disk refuses
    progress        what moves the high watermark, and what moves with it
    appending       stage, commit, acknowledge
    waiting         requests that wait for acks, or for bytes
    verdicts        what only a sure leader may say
    accounting      bytes and leaders, by instance
    fetchers        copies what we follow
    isr_changes     proposes which replicas are in sync
    throttles       replicas that catch up, held back
    syncs, moves, cleaner, housekeeping     by the clock, or beside requests

Leaders are decided on elsewhere: `leadership` takes the controller's words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.accounting import Accounting
from dataplane.replication.appending import Appending
from dataplane.replication.configuration import Configuration
from dataplane.replication.following.fetchers import Fetchers
from dataplane.replication.isr import AlterPartition, IsrChanges
from dataplane.replication.progress import Progress
from dataplane.replication.replica.partition_state import ReplicaRules
from dataplane.replication.replica_registry import ReplicaRegistry
from dataplane.replication.role_changes import RoleChanges
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
    from dataplane.replication.configuration import TopicOverrides
    from dataplane.replication.replica.partition import Partition
    from dataplane.storage.log import Log
    from dataplane.storage.manager import LogManager
    from dataplane.tasks import Future

_SETTLE_PAUSE_S = 0.02


class Replicas:
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
        settings, clock = config.settings, doors.loop.clock
        self.broker_id = config.id
        self.logs = logs
        self.metadata = metadata
        self.peers = peers
        self.broker_epoch = broker_epoch
        self.loop = doors.loop
        self.files = doors.files
        self.background = doors.background
        self.meter = meter
        self.rules = ReplicaRules(
            config.id, settings.replica_lag_time_max_ms / 1000, lambda broker_id: broker_id in metadata.brokers
        )
        self.registry = ReplicaRegistry(metadata)
        self.accounting = Accounting()
        self.waiting = Waiting(doors.loop)
        self.verdicts = Verdicts(doors.loop, self.waiting)
        self.fetchers = Fetchers(self)
        self.isr_changes = IsrChanges(
            config.id,
            doors.loop,
            broker_epoch,
            alter_partition,
        )
        self.syncs = Syncs(self, doors.background, clock)
        self.throttles = Throttles(config, metadata, clock)
        self.progress = Progress(
            clock,
            self.waiting,
            self.verdicts,
            self.fetchers,
            self.isr_changes,
            tells_followers_at_once=settings.replica_selector_class != "",  # consumers may read from them
        )
        self.isr_changes.on_confirmed(self.progress.isr_confirmed)
        self.roles = RoleChanges(
            doors.loop, self.registry, self.accounting, self.waiting, self.verdicts, self.syncs, self.fetchers
        )
        self.configuration = Configuration(config, self.registry, topic_configs, self.throttles, self.syncs)
        self.appending = Appending(
            doors.loop,
            self.roles,
            self.progress,
            self.waiting,
            self.syncs,
            self.accounting,
            verifies=lambda: self.configuration.settings.transaction_partition_verification_enable,
        )
        self.moves = Moves(self, doors.background)
        self.housekeeping = Housekeeping(self)
        self.cleaner = Cleaner(
            doors, logs, lambda: self.configuration.settings, self.housekeeping.stable_of, self._compacted
        )
        logs.on_directory_failure(self.roles.directory_failed)

    # --- coming and going ---------------------------------------------------------------------------------------------

    def add(self, partition: Partition) -> None:
        """A replica comes to this broker."""
        self.registry.add(partition)
        self.configuration.configure(partition)
        self.accounting.measure(partition)

    def remove(self, partition: Partition) -> None:
        """It goes."""
        self.registry.remove(partition)
        self.accounting.forget(partition)
        self.syncs.forget(partition)
        self.waiting.look_again(partition)
        if self.registry.remove_empty_topic(partition) and self.meter is not None:
            self.meter.retire(partition.topic)

    # --- starting and stopping ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin what happens by the clock."""
        self.housekeeping.start()

    def stop(self) -> Future[None]:
        """No more fetching, proposing and answering; what is staged is written.

        The future is resolved when the high watermarks are on disk. The logs stay open.
        """
        self.moves.stop()
        self.fetchers.stop()
        self.isr_changes.stop()
        for partition in self.registry.partitions():
            self.appending.commit(partition)
            self.waiting.dismiss(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self.verdicts.dismiss(partition)
        return self.housekeeping.stop()

    async def settle(self, within_s: float) -> None:
        """Wait, not for long, until what we took as the leader is known to be committed.

        After leaderships were given away, before we stop: the new leaders' answers to our fetches say so.
        """
        end = self.loop.clock.monotonic() + within_s
        while (
            any(p.counts.uncommitted.is_open() for p in self.registry.partitions())
            and self.loop.clock.monotonic() < end
        ):
            await sleep(self.loop, _SETTLE_PAUSE_S)

    def _compacted(self, log: Log) -> None:
        partition = self.registry.get(log.topic, log.partition)
        if partition is not None and partition.log is log:
            self.accounting.measure(partition)
