"""Brokers that come and go, and replicas that one of them cannot host: what that means for leaders, and who is told.

What is registered is compared with what was known. A new broker epoch is a death and a birth, also where nobody noticed
the death: the log may have lost its tail. Everybody who comes is told all that it hosts and all that there is.
"""

from __future__ import annotations

from collections.abc import Iterable

from dataplane.controller.channel import Channels, Key
from dataplane.controller.context import Context, Partition
from dataplane.controller.decisions import alter_partition
from dataplane.controller.deletion import Deletions
from dataplane.controller.leaders import Leaders
from dataplane.controller.store import Store
from dataplane.protocol.errors import ErrorCode


class Brokers:
    """Those of one term of office. Its coroutines are events of the controller, or parts of one."""

    def __init__(
        self, context: Context, store: Store, channels: Channels, leaders: Leaders, deletions: Deletions
    ) -> None:
        self._context = context
        self._store = store
        self._channels = channels
        self._leaders = leaders
        self._deletions = deletions

    async def update(self) -> None:
        """The registrations have changed."""
        registered = await self._store.brokers()
        known = self._context.brokers
        lost = [broker_id for broker_id, broker in known.items() if registered.get(broker_id) != broker]
        fresh = [broker_id for broker_id, broker in registered.items() if known.get(broker_id) != broker]
        if not lost and not fresh:
            return
        for broker_id in lost:
            self._channels.close(broker_id)
            del known[broker_id]
            self._context.shutting_down.pop(broker_id, None)
        for broker_id in lost:
            await self._deletions.broker_lost(broker_id)
        if lost:  # also where it is back already: its log may have lost its tail
            await self._leaders.elect(partition for broker_id in lost for partition in self._hosted(broker_id))
        for broker_id in fresh:
            known[broker_id] = registered[broker_id]
        self._context.sort_brokers()
        for broker_id in fresh:
            await self._welcome(broker_id)
        self._channels.metadata_of()
        await self._deletions.broker_back()

    async def _welcome(self, broker_id: int) -> None:
        hosted = self._hosted(broker_id)
        for partition in hosted:
            partition.failed.pop(broker_id, None)
        await self._channels.open((broker_id,), self._deletions.standing(self._context.partitions()))
        await self._leaders.elect(hosted)
        topics = dict.fromkeys(partition.topic for partition in hosted)
        await self._leaders.start_all(self._context.topics[name] for name in topics)
        await self._channels.hosted(broker_id, hosted, is_all=True)

    async def ask_about_replicas(self, names: Iterable[str]) -> None:
        """Some have lost a data directory. Told again what it hosts, such a broker answers which of it is lost."""
        for broker_id in await self._store.take_log_dir_events(names):
            if broker_id in self._context.brokers:
                await self._channels.hosted(broker_id, self._hosted(broker_id), is_all=False)

    async def replicas_failed(self, broker_id: int, keys: Iterable[Key]) -> None:
        """A broker cannot host these: somebody else must lead them."""
        partitions = [p for p in (self._context.partition(*key) for key in keys) if p is not None]
        for partition in partitions:
            partition.failed[broker_id] = None
        await self._leaders.elect(self._deletions.standing(partitions))
        await self._channels.metadata(partitions)

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[Partition] | ErrorCode:
        """A broker is about to stop: the partitions that it still leads, because no other replica is in sync."""
        broker = self._context.brokers.get(broker_id)
        if broker is None:
            return ErrorCode.BROKER_NOT_AVAILABLE
        if broker_epoch not in (alter_partition.UNKNOWN_BROKER_EPOCH, broker.epoch):
            return ErrorCode.STALE_BROKER_EPOCH
        self._context.shutting_down[broker_id] = None
        shared = [p for p in self._hosted(broker_id) if len(p.replicas) > 1]
        await self._leaders.leave(broker_id, shared)
        return [p for p in shared if p.state is not None and p.state.leader == broker_id]

    def _hosted(self, broker_id: int) -> list[Partition]:
        return self._deletions.standing(self._context.on_broker(broker_id))
