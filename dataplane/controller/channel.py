"""How the controller's decisions reach brokers: one channel per registered broker.

A channel holds for each partition the *latest* thing the broker must know, not a queue of all of them: while one
request is under way, decisions gather, and the next request carries them together. Requests of one channel follow each
other, and each is repeated until it is answered, for as long as the broker is registered with this broker epoch; a new
registration gets a new channel, which begins with everything.

Order within one round: leaders are told before clients are sent to them (LeaderAndIsr, UpdateMetadata, StopReplica);
only the first round of a channel brings the addresses of the other brokers first.

What tells of tens of thousands of partitions is put together, sent and taken apart in steps, between which the loop serves
others: nobody but the controller's events changes what is told, and they come one after the other.

`settled()` is a promise that what had been decided by now is known to every broker that is still registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar
from uuid import UUID

from dataplane.cluster.metadata import FULL_UPDATE, INCREMENTAL_UPDATE
from dataplane.cluster.paths import INTERNAL_LISTENER, LEADER_DURING_DELETE, BrokerAddress
from dataplane.controller.context import LiveBroker, Partition
from dataplane.controller.decisions.alter_partition import recovery_state
from dataplane.doors import Loop
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import control
from dataplane.protocol.release import emptied, released
from dataplane.records.steps import Pace, Steps, each, grouped, run_through
from dataplane.tasks import Future, Hurried, Task, resolved, sleep

LEADER_AND_ISR_VERSION = 7
UPDATE_METADATA_VERSION = 8
STOP_REPLICA_VERSION = 4
NO_EPOCH = -1
EPOCH_DURING_DELETE = -2
"""Leader epoch of a StopReplica that deletes a topic: above every other, since a deletion has none of its own."""

_RETRY_FIRST_S = 0.05
_RETRY_LONGEST_S = 1.0
_SASL_PLAINTEXT = 2
_LONG = 64
"""Partitions that are told of in steps, and so in more than one turn."""
_PUT_TOGETHER_US, _NOTED_US = 5, 1
"""Of one partition."""
S = TypeVar("S")
T = TypeVar("T")
Key = tuple[str, int]
MetadataStates = dict[Key, tuple[UUID, control.UpdateMetadataPartitionState]]
Leaderships = dict[Key, tuple[UUID, control.LeaderAndIsrPartitionState]]
"""Of partitions, with the ids of their topics."""


class Call(Protocol):
    """How a broker is asked."""

    def __call__(self, broker_id: int, request: Any, version: int, *, is_long: bool) -> Future[Any]:
        """The answer; fails with any exception when there is none. `is_long`: of many partitions."""
        ...


class Listener(Protocol):
    """Who is told what brokers answered."""

    def deposed(self) -> None:
        """A broker has seen a newer controller."""
        ...

    def replicas_failed(self, broker_id: int, partitions: list[Key]) -> None:
        """A broker cannot host these: its disk."""
        ...

    def replicas_stopped(self, broker_id: int, removed: list[Key], refused: list[Key]) -> None:
        """Answer to StopReplica with deletion."""
        ...


@dataclass(slots=True)
class _Round:
    """What one broker has yet to be told."""

    full: bool = False
    metadata_due: bool = False
    all_leaderships: bool = False  # replicas that are not among them are not here any more
    leaderships: Leaderships = field(default_factory=dict)
    metadata: MetadataStates = field(default_factory=dict)
    removals: dict[Key, int] = field(default_factory=dict)  # with the leader epochs in which they were decided
    settled: list[Future[None]] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not (
            self.metadata_due
            or self.all_leaderships
            or self.leaderships
            or self.metadata
            or self.removals
            or self.settled
        )


class Channels:
    """All channels of one term of office."""

    def __init__(
        self, loop: Loop, call: Call, controller_id: int, epoch: int, brokers: Mapping[int, LiveBroker], tell: Listener
    ) -> None:
        self.loop, self.call, self.tell = loop, call, tell
        self.controller_id, self.epoch, self.brokers = controller_id, epoch, brokers
        self.in_steps = Hurried(loop).run  # what all channels do
        self._channels: dict[int, Channel] = {}

    async def open(self, broker_ids: Iterable[int], partitions: Iterable[Partition]) -> None:
        """Brokers registered: tell them of all brokers and all partitions."""
        seen = await self.in_steps(_seen_by_clients(partitions, self.brokers))
        for broker_id in broker_ids:
            self.close(broker_id)
            channel = self._channels[broker_id] = Channel(self, broker_id, self.brokers[broker_id].epoch)
            channel.tell_everything(seen)

    def close(self, broker_id: int) -> None:
        """The registration has gone."""
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    def close_all(self) -> None:
        """The term has ended."""
        for broker_id in list(self._channels):
            self.close(broker_id)

    async def hosted(self, broker_id: int, partitions: Iterable[Partition], *, is_all: bool) -> None:
        """Tell a broker of what it hosts. `is_all`: it removes what else it has from before its start."""
        due = await self.in_steps(_leaderships(broker_id, partitions))
        channel = self._channels.get(broker_id)
        if channel is not None:
            channel.leaderships(due, is_all=is_all)

    def leadership(self, partition: Partition) -> None:
        """Tell replicas of a partition's state."""
        run_through(self._led((partition,), new=False))

    async def leaderships(self, partitions: Iterable[Partition], *, new: bool = False) -> None:
        """The same of many partitions."""
        await self.in_steps(self._led(partitions, new=new))

    def _led(self, partitions: Iterable[Partition], *, new: bool) -> Steps[None]:
        pace = Pace()
        for partition in partitions:
            for replica in partition.replicas:
                channel = self._channels.get(replica)
                if channel is not None and partition.state is not None:
                    channel.leadership(partition, new=new or partition.is_new_on(replica))
            if pace.over(_PUT_TOGETHER_US * len(partition.replicas)):
                yield None

    def metadata_of(self, *partitions: Partition) -> None:
        """Tell all brokers of partitions, of which there are few, and of who lives."""
        self._tell_all(run_through(_seen_by_clients(partitions, self.brokers)))

    async def metadata(self, partitions: Iterable[Partition]) -> None:
        """The same of many partitions: brokers hear of them together."""
        self._tell_all(await self.in_steps(_seen_by_clients(partitions, self.brokers)))

    async def forget(self, partitions: Iterable[Partition]) -> None:
        """Tell all brokers that partitions have been deleted, which may be very many: brokers hear of them together."""
        self._tell_all(await self.in_steps(_seen_by_clients(partitions, self.brokers, forget=True)))

    def _tell_all(self, seen: MetadataStates) -> None:
        for channel in self._channels.values():
            channel.metadata(seen)

    def remove(self, broker_id: int, partition: Partition) -> bool:
        """Tell a broker to delete a replica that has gone to others; False where it is not there.

        With the leader epoch that begins without it (KIP-570): a replica that comes back later has a higher one.
        """
        return self._remove(broker_id, partition, NO_EPOCH if partition.state is None else partition.state.leader_epoch)

    def delete(self, broker_id: int, partition: Partition) -> bool:
        """The same, with its topic."""
        return self._remove(broker_id, partition, EPOCH_DURING_DELETE)

    def _remove(self, broker_id: int, partition: Partition, leader_epoch: int) -> bool:
        channel = self._channels.get(broker_id)
        if channel is not None:
            channel.remove(partition, leader_epoch)
        return channel is not None

    def settled(self) -> Future[Any]:
        """Resolved once every broker knows what was decided before now, or is gone."""
        waits = [channel.settled() for channel in self._channels.values()]
        return Task(_all(waits)) if waits else resolved(None)


async def _all(futures: list[Future[None]]) -> None:
    for future in futures:
        await future


class Channel:
    """To one registration of one broker."""

    def __init__(self, channels: Channels, broker_id: int, broker_epoch: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._channels = channels
        self._next = _Round()
        self._under_way = _Round()
        self._task: Task[None] | None = None
        self._closed = False

    # --- what it must know --------------------------------------------------------------------------------------------

    def tell_everything(self, seen: MetadataStates) -> None:
        """The first word."""
        self._next.full = True
        self.metadata(seen)

    def leadership(self, partition: Partition, *, new: bool) -> None:
        """The state of a partition it hosts."""
        key = (partition.topic, partition.index)
        before = self._next.leaderships.get(key)
        new = new or (before is not None and before[1].is_new)
        self._next.leaderships[key] = (partition.topic_id, _leadership(partition, new=new))
        self._next.removals.pop(key, None)
        self._wake()

    def leaderships(self, due: Leaderships, *, is_all: bool) -> None:
        """The states of very many partitions; `is_all`: of all that it hosts, and the next request has all of them."""
        self._next.all_leaderships |= is_all
        for key in [key for key in self._next.removals if key in due]:
            del self._next.removals[key]
        for key, before in self._next.leaderships.items():
            if before[1].is_new and key in due:
                due[key] = (due[key][0], replace(due[key][1], is_new=True))
        self._next.leaderships.update(due)
        self._wake()

    def metadata(self, seen: MetadataStates) -> None:
        """Partitions as clients see them; with none, still who lives."""
        self._next.metadata.update(seen)
        self._next.metadata_due = True
        self._wake()

    def remove(self, partition: Partition, leader_epoch: int) -> None:
        """Delete a replica."""
        key = (partition.topic, partition.index)
        self._next.removals[key] = leader_epoch
        self._next.leaderships.pop(key, None)
        self._wake()

    def settled(self) -> Future[None]:
        """Resolved after the next round; at once if nothing is due."""
        if self._closed or (self._next.empty and self._under_way.empty):
            return resolved(None)
        future: Future[None] = Future()
        self._next.settled.append(future)
        self._wake()
        return future

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        for future in self._under_way.settled + self._next.settled:
            future.resolve(None)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Send at the end of what is being decided now, so that it goes out together."""
        if self._task is None or self._task.done:
            self._task = Task(self._send_all())

    async def _send_all(self) -> None:
        await sleep(self._channels.loop, 0.0)
        while not self._next.empty:
            self._under_way, self._next = self._next, _Round()
            steps = [self._send_leaderships, self._send_metadata, self._send_removals]
            if self._under_way.full:
                steps = [self._send_metadata, self._send_leaderships, self._send_removals]
            for step in steps:
                await step(self._under_way)
            done, self._under_way = self._under_way, _Round()
            for future in done.settled:
                future.resolve(None)
            for told in (done.leaderships, done.metadata, done.removals):
                await self._channels.in_steps(emptied(told))

    async def _send_leaderships(self, due: _Round) -> None:
        if not due.leaderships and not due.all_leaderships:
            return
        leaders = await self._channels.in_steps(_leaders(due.leaderships))
        request = [
            control.LeaderAndIsrRequest(
                controller_id=self._channels.controller_id,
                controller_epoch=self._channels.epoch,
                broker_epoch=self.broker_epoch,
                type=FULL_UPDATE if due.all_leaderships else INCREMENTAL_UPDATE,
                topic_states=await self._channels.in_steps(_by_topic(due.leaderships, control.LeaderAndIsrTopicState)),
                live_leaders=tuple(
                    control.LeaderAndIsrLiveLeader(broker.address.id, broker.address.host, broker.address.port)
                    for broker_id, broker in self._channels.brokers.items()
                    if broker_id in leaders
                ),
            )
        ]
        answer = await self._answer(request, LEADER_AND_ISR_VERSION, is_long=len(due.leaderships) > _LONG)
        failed = await self._channels.in_steps(_failed(due.leaderships, answer[0]))
        await self._channels.in_steps(released(answer))
        if failed:
            self._channels.tell.replicas_failed(self.broker_id, failed)

    async def _send_metadata(self, due: _Round) -> None:
        if not due.metadata_due:
            return
        request = [
            control.UpdateMetadataRequest(
                controller_id=self._channels.controller_id,
                type=FULL_UPDATE if due.full else INCREMENTAL_UPDATE,
                controller_epoch=self._channels.epoch,
                broker_epoch=self.broker_epoch,
                topic_states=await self._channels.in_steps(_by_topic(due.metadata, control.UpdateMetadataTopicState)),
                live_brokers=tuple(_broker(broker.address) for broker in self._channels.brokers.values()),
            )
        ]
        await self._answer(request, UPDATE_METADATA_VERSION, is_long=len(due.metadata) > _LONG)

    async def _send_removals(self, due: _Round) -> None:
        if not due.removals:
            return
        request = [
            control.StopReplicaRequest(
                controller_id=self._channels.controller_id,
                controller_epoch=self._channels.epoch,
                broker_epoch=self.broker_epoch,
                topic_states=await self._channels.in_steps(_removals_by_topic(due.removals)),
            )
        ]
        (answer,) = await self._answer(request, STOP_REPLICA_VERSION, is_long=len(due.removals) > _LONG)
        refused = {(e.topic_name, e.partition_index): None for e in answer.partition_errors if e.error_code}
        removed = [key for key in due.removals if key not in refused]
        self._channels.tell.replicas_stopped(self.broker_id, removed, list(refused))

    async def _answer(self, request: list[Any], version: int, *, is_long: bool) -> list[Any]:
        """That to a request, which is let go of then. Each is the only item of a list, since it may be long."""
        answer = [await self._call_until_answered(request[0], version, is_long=is_long)]
        await self._channels.in_steps(released(request))
        return answer

    async def _call_until_answered(self, request: Any, version: int, *, is_long: bool) -> Any:
        """The first answer that the broker gave as this controller's subject."""
        pause_s = _RETRY_FIRST_S
        while True:
            try:
                call = self._channels.call(self.broker_id, request, version, is_long=is_long)
                response = await call
            except Exception as error:
                if self._closed:
                    if isinstance(call, Task):
                        call.cancel()  # it may be on its way to being sent
                    raise
                del error
            else:
                if response.error_code == ErrorCode.NONE:
                    return response
                if response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
                    self._channels.tell.deposed()
                # STALE_BROKER_EPOCH: it has not heard yet that it is registered, or we not yet that it is again.
            await sleep(self._channels.loop, pause_s)
            pause_s = min(2 * pause_s, _RETRY_LONGEST_S)


def _by_topic(
    states: Mapping[Key, tuple[UUID, S]], make: Callable[[str, UUID, tuple[S, ...]], T]
) -> Steps[tuple[T, ...]]:
    topics: dict[str, tuple[UUID, list[S]]] = {}
    pace = Pace()
    for (name, _), (topic_id, state) in states.items():
        topics.setdefault(name, (topic_id, []))[1].append(state)
        if pace.over(_NOTED_US):
            yield None
    rows = ((name, topic_id, tuple(of_topic)) for name, (topic_id, of_topic) in topics.items())
    return tuple((yield from each(rows, lambda row: make(*row), _NOTED_US, pace)))


def _leaders(told: Leaderships) -> Steps[dict[int, None]]:
    leaders: dict[int, None] = {}
    pace = Pace()
    for _, state in told.values():
        leaders[state.leader] = None
        if pace.over(_NOTED_US):
            yield None
    return leaders


def _removals_by_topic(removals: Mapping[Key, int]) -> Steps[tuple[control.StopReplicaTopicState, ...]]:
    by_topic: dict[str, list[control.StopReplicaPartitionState]] = {}
    pace = Pace()
    for (topic, index), leader_epoch in removals.items():
        state = control.StopReplicaPartitionState(index, leader_epoch, delete_partition=True)
        by_topic.setdefault(topic, []).append(state)
        if pace.over(_PUT_TOGETHER_US):
            yield None
    return (yield from grouped(by_topic.items(), control.StopReplicaTopicState, _NOTED_US, pace))


def _failed(told: Leaderships, answer: control.LeaderAndIsrResponse) -> Steps[list[Key]]:
    """Partitions that the broker cannot host."""
    names: dict[UUID, str] = {}
    pace = Pace()
    for (name, _), (topic_id, _) in told.items():
        names[topic_id] = name
        if pace.over(_NOTED_US):
            yield None
    failed = []
    for topic in answer.topics:
        for partition in topic.partition_errors:
            if partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR and topic.topic_id in names:
                failed.append((names[topic.topic_id], partition.partition_index))
            if pace.over(_NOTED_US):
                yield None
    return failed


def _leaderships(broker_id: int, partitions: Iterable[Partition]) -> Steps[Leaderships]:
    """Those of a broker that are known."""
    due: Leaderships = {}
    pace = Pace()
    for partition in partitions:
        if partition.state is not None:
            state = _leadership(partition, new=partition.is_new_on(broker_id))
            due[partition.topic, partition.index] = (partition.topic_id, state)
        if pace.over(_PUT_TOGETHER_US):
            yield None
    return due


def _leadership(partition: Partition, *, new: bool) -> control.LeaderAndIsrPartitionState:
    state = partition.state
    assert state is not None
    return control.LeaderAndIsrPartitionState(
        partition_index=partition.index,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        replicas=partition.replicas,
        adding_replicas=partition.assignment.adding,
        removing_replicas=partition.assignment.removing,
        is_new=new,
        leader_recovery_state=recovery_state(state),
    )


def _seen_by_clients(
    partitions: Iterable[Partition], live: Mapping[int, LiveBroker], *, forget: bool = False
) -> Steps[MetadataStates]:
    """The same for every broker, so worked out once; `forget`: they have been deleted."""
    seen: MetadataStates = {}
    pace = Pace()
    for partition in partitions:
        state = _metadata(partition, live, forget=forget)
        if state is not None:
            seen[partition.topic, partition.index] = (partition.topic_id, state)
        if pace.over(_PUT_TOGETHER_US):
            yield None
    return seen


def _metadata(
    partition: Partition, live: Mapping[int, LiveBroker], *, forget: bool
) -> control.UpdateMetadataPartitionState | None:
    state = partition.state
    if state is None and not forget:
        return None
    return control.UpdateMetadataPartitionState(
        partition_index=partition.index,
        controller_epoch=state.controller_epoch if state else 0,
        leader=LEADER_DURING_DELETE if forget or state is None else state.leader,
        leader_epoch=state.leader_epoch if state else 0,
        isr=state.isr if state else (),
        zk_version=state.partition_epoch if state else 0,
        replicas=partition.replicas,
        offline_replicas=tuple(r for r in partition.replicas if r not in live or r in partition.failed),
    )


def _broker(address: BrokerAddress) -> control.UpdateMetadataBroker:
    endpoint = control.UpdateMetadataEndpoint(address.port, address.host, INTERNAL_LISTENER, _SASL_PLAINTEXT)
    return control.UpdateMetadataBroker(id=address.id, endpoints=(endpoint,), rack=address.rack)
