"""Leaders and ISRs of partitions: decided by `elections`, written, remembered, told.

Every change goes through `change`. It has the compare-and-set of the state nodes behind it, so what somebody else has
written in between is found, and not overwritten.

A broker's death is a change of tens of thousands of partitions, a second of work. It is done in pieces, between which the
loop serves others: nobody but the controller's events changes what is decided on, and they come one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dataplane.cluster.paths import NO_LEADER, PartitionState
from dataplane.cluster.topic_settings import config_text
from dataplane.controller.channel import Channels
from dataplane.controller.context import Context, Partition, Topic
from dataplane.controller.decisions import elections
from dataplane.controller.store import Store
from dataplane.tasks import Future

Decided = Iterable[tuple[Partition, PartitionState | None]]
"""A state for each partition; None where nothing changes."""
_DECIDED_PER_TURN, _LOOKED_AT_PER_TURN = 25, 150
"""Partitions that cost half a millisecond at most."""
_CHANGED_TOGETHER, _STARTED_TOGETHER = 300, 150
"""Partitions whose states are written by one transaction."""


async def chosen(
    partitions: Iterable[Partition], is_one: Callable[[Partition], bool], pause: Callable[[], Future[None]]
) -> list[Partition]:
    """Those of very many partitions that are looked for, some hundred of them looked at in a turn."""
    found = []
    for place, partition in enumerate(partitions, 1):
        if is_one(partition):
            found.append(partition)
        if place % _LOOKED_AT_PER_TURN == 0:
            await pause()
    return found


class Leaders:
    """Those of one term of office. Its coroutines are events of the controller, or parts of one."""

    def __init__(
        self,
        context: Context,
        store: Store,
        channels: Channels,
        changed: Callable[[list[Partition]], None],
        pause: Callable[[], Future[None]],
    ) -> None:
        self._changed = changed
        self._pause = pause  # until the next turn of the loop
        self._context = context
        self._store = store
        self._channels = channels
        self._epoch = store.epoch
        self.unclean_by_default = False

    async def change(self, decided: Decided, *, tell: bool = True) -> list[PartitionState | None]:
        """Write new states, remember them, tell the brokers. None where somebody else had written in between."""
        changes = [(partition, state) for partition, state in decided if state is not None]
        written: list[PartitionState | None] = []
        for first in range(0, len(changes), _CHANGED_TOGETHER):
            if first:
                await self._pause()
            written += await self._change_some(changes[first : first + _CHANGED_TOGETHER], tell=tell)
        return written

    async def _change_some(
        self, changes: list[tuple[Partition, PartitionState]], *, tell: bool
    ) -> list[PartitionState | None]:
        written = await self._store.write_states(changes)
        for (partition, _), state in zip(changes, written, strict=True):
            if state is not None:
                partition.take(state)
        if tell:
            await self._channels.leaderships([partition for partition, _ in changes])
        await self._channels.metadata([partition for partition, _ in changes])
        self._changed([partition for partition, _ in changes])
        return written

    async def start(self, topic: Topic) -> None:
        """First leaders for partitions that never had one. Clients hear of all of them together."""
        first = [
            (partition, state)
            for partition in topic.partitions.values()
            if partition.state is None
            and (state := elections.first_state(partition.replicas, self._context.alive(partition), self._epoch))
        ]
        if not first:
            return
        for begin in range(0, len(first), _STARTED_TOGETHER):
            if begin:
                await self._pause()
            some = first[begin : begin + _STARTED_TOGETHER]
            await self._store.create_states(topic, some)
            for partition, state in some:
                partition.take(state)
            await self._channels.leaderships([partition for partition, _ in some], new=True)
        await self._channels.metadata([partition for partition, _ in first])
        self._changed([partition for partition, _ in first])

    async def start_all(self, topics: Iterable[Topic]) -> None:
        """Those that have partitions which never had a leader, of very many topics."""
        for place, topic in enumerate(topics, 1):
            await self.start(topic)
            if place % _LOOKED_AT_PER_TURN == 0:
                await self._pause()

    async def elect(self, partitions: Iterable[Partition], *, tell: bool = True) -> None:
        """Leaders and ISRs from those who live; from those not in sync only where nobody else lives and the topic allows it."""
        clean = await self._decide(partitions, lambda p: self._after_change(p, unclean=False))
        lost = [p for p, state in clean if (now := state or p.state) is not None and now.leader == NO_LEADER]
        allowed = await self._unclean_topics(lost)
        decided = ((p, self._after_change(p, unclean=True) if p.topic in allowed else state) for p, state in clean)
        await self.change(decided, tell=tell)

    async def _decide(
        self, partitions: Iterable[Partition], decide: Callable[[Partition], PartitionState | None]
    ) -> list[tuple[Partition, PartitionState | None]]:
        decided = []
        for place, partition in enumerate(partitions, 1):
            decided.append((partition, decide(partition)))
            if place % _DECIDED_PER_TURN == 0:
                await self._pause()
        return decided

    async def elect_unclean(self, partitions: Iterable[Partition]) -> None:
        """The same where somebody has asked for a leader at any price."""
        await self.change(await self._decide(partitions, lambda p: self._after_change(p, unclean=True)))

    def _after_change(self, partition: Partition, *, unclean: bool) -> PartitionState | None:
        return self._among(partition, self._context.alive(partition), unclean=unclean)

    def _among(self, partition: Partition, alive: elections.Epochs, *, unclean: bool) -> PartitionState | None:
        if partition.state is None:
            return None
        return elections.after_change(
            partition.state,
            partition.assignment.oldest_first,
            alive,
            self._epoch,
            lost=self._context.lost(partition),
            enough=self._context.enough(partition),
            unclean=unclean,
        )

    async def _unclean_topics(self, lost: Iterable[Partition]) -> dict[str, None]:
        """Which topics take any leader rather than none. Read now: what was allowed once must not cost data today."""
        topics = dict.fromkeys(partition.topic for partition in lost)
        configs = await self._store.topic_overrides(topics)
        default = config_text(self.unclean_by_default)
        return {
            topic: None
            for topic, config in zip(topics, configs, strict=True)
            if config.get("unclean.leader.election.enable", default).lower() == "true"
        }

    async def depose_who_restarted(self, partitions: Iterable[Partition]) -> None:
        """Brokers that died and came back while nobody was the controller are in the ISR, and some lead.

        But they are not what they were when they were in sync, and their leader epoch has not moved: a replica that has not
        restarted comes first.
        """
        await self.change(await self._decide(partitions, self._without_restarted), tell=False)

    def _without_restarted(self, partition: Partition) -> PartitionState | None:
        restarted = self._context.restarted(partition)
        if not restarted:
            return None
        alive = self._context.alive(partition)
        since = {broker: epoch for broker, epoch in alive.items() if broker not in restarted}
        return self._among(partition, since, unclean=False)

    async def leave(self, broker_id: int, partitions: Iterable[Partition]) -> None:
        """A broker is about to stop: what others can lead, they lead."""
        await self.change(await self._decide(partitions, lambda p: self._without(p, broker_id)))

    def _without(self, partition: Partition, broker_id: int) -> PartitionState | None:
        context = self._context
        if partition.state is None:
            return None
        return elections.without(
            partition.state,
            partition.replicas,
            context.alive(partition),
            broker_id,
            self._epoch,
            lost=context.lost(partition),
            enough=context.enough(partition),
        )

    async def prefer(self, partitions: Iterable[Partition]) -> None:
        """Give leadership to preferred replicas, where they are alive and in sync."""
        await self.change(await self._decide(partitions, self._preferred))

    def _preferred(self, partition: Partition) -> PartitionState | None:
        if partition.state is None:
            return None
        return elections.preferred(partition.state, partition.replicas, self._context.alive(partition), self._epoch)

    async def rebalance(self, partitions: Iterable[Partition]) -> None:
        """Give it back to those that have caught up, so that load stays where placement put it."""
        await self.prefer(await chosen(partitions, _is_led_by_another, self._pause))


def _is_led_by_another(partition: Partition) -> bool:
    """Than its preferred replica. Where replicas move, the lead moves once, at the end."""
    return (
        partition.state is not None
        and partition.state.leader not in (partition.replicas[0], NO_LEADER)
        and not partition.assignment.is_moving
    )
