"""What a controller reads from and writes to ZooKeeper. Every write is fenced.

A write is a multi that begins with Check(/controller_epoch, version at our election): once another broker has been
elected, nothing of ours can be applied any more (KAFKA-6082), however late it arrives. Writes of many partitions are
packed into few multis; the operations of one group are never torn apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dataplane.cluster.paths import (
    BROKER_IDS,
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    LOG_DIR_EVENTS,
    TOPICS,
    PartitionState,
    TopicAssignment,
    broker_path,
    config_change_json,
    config_json,
    delete_topic_path,
    parse_broker,
    parse_config,
    parse_log_dir_event,
    parse_state,
    parse_topic,
    parse_whole_since,
    partition_path,
    partitions_path,
    state_json,
    state_path,
    topic_config_path,
    topic_json,
    topic_path,
)
from dataplane.controller.assignment import Assignment
from dataplane.controller.context import LiveBroker, Partition, Topic
from dataplane.doors import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SetData,
    ZooKeeper,
)
from dataplane.tasks import Task, gather

_OPERATIONS_PER_MULTI = 300
KEPT_CONFIG_CHANGES = 1000
_TRIMMED_TOGETHER = 250
_READ_AT_A_TIME = 128
"""Topics: two milliseconds for one answer to all of them."""


class DeposedError(Exception):
    """Another broker is the controller now."""


@dataclass(frozen=True, slots=True)
class Store:
    """Reads, and writes of one term of office."""

    zookeeper: ZooKeeper
    epoch: int
    epoch_version: int  # of the /controller_epoch node
    own_changes: dict[str, int] = field(default_factory=lambda: dict.fromkeys((TOPICS, DELETE_TOPICS), 0))
    """Children of these that we have created, and deleted."""

    # --- reading ------------------------------------------------------------------------------------------------------

    async def brokers(self) -> dict[int, LiveBroker]:
        """All registered brokers, in order of their ids."""
        names = await self.zookeeper.children(BROKER_IDS)
        ids = sorted(int(name) for name in names)
        found = await gather([Task(self._broker(broker_id)) for broker_id in ids])
        return {broker.address.id: broker for broker in found if broker is not None}

    async def topics(self, names: Iterable[str]) -> list[Topic]:
        """Topics with the states of their partitions; one that has gone is left out.

        Some of them at a time: what all have to say would be one long turn of the loop.
        """
        wanted = [*names]
        found: list[Topic | None] = [None] * len(wanted)
        left = enumerate(wanted)

        async def read() -> None:
            for place, name in left:
                found[place] = await self._topic(name)

        readers = [Task(read()) for _ in range(min(_READ_AT_A_TIME, len(wanted)))]
        try:
            await gather(readers)
        finally:
            for reader in readers:
                reader.cancel()  # of a term that has ended
        return [topic for topic in found if topic is not None]

    async def topic_names(self) -> list[str]:
        """All topics, also those that are being deleted."""
        return await self.zookeeper.children(TOPICS)

    async def doomed(self) -> list[str]:
        """Topics whose deletion was asked for."""
        return await self.zookeeper.children(DELETE_TOPICS)

    async def topic_overrides(self, topics: Iterable[str]) -> list[Mapping[str, str]]:
        """What is configured for each; nothing where there is nothing, or what cannot be read."""
        return await gather([Task(self._overrides(topic)) for topic in topics])

    async def _overrides(self, topic: str) -> Mapping[str, str]:
        try:
            data, _ = await self.zookeeper.get(topic_config_path(topic))
            return parse_config(data)
        except (NoNodeError, ValueError):
            return {}

    async def _broker(self, broker_id: int) -> LiveBroker | None:
        try:
            data, stat = await self.zookeeper.get(broker_path(broker_id))
        except NoNodeError:
            return None
        return LiveBroker(parse_broker(broker_id, data), stat.czxid, parse_whole_since(data, stat.czxid))

    async def _topic(self, name: str) -> Topic | None:
        try:
            data, _ = await self.zookeeper.get(topic_path(name))
        except NoNodeError:
            return None
        assignment = parse_topic(data)
        topic = new_topic(name, assignment)
        topic.has_directory = await self.zookeeper.exists(partitions_path(name)) is not None
        if topic.has_directory:
            partitions = list(topic.partitions.values())
            states = await gather([Task(self.state(name, partition.index)) for partition in partitions])
            for partition, state in zip(partitions, states, strict=True):
                if state is not None:
                    partition.load(*state)
        return topic

    async def state(self, topic: str, index: int) -> tuple[PartitionState, int] | None:
        """The state node of a partition, if it has one, and the transaction that wrote it last."""
        try:
            data, stat = await self.zookeeper.get(state_path(topic, index))
        except NoNodeError:
            return None
        return parse_state(data, stat.version), stat.mzxid

    # --- writing ------------------------------------------------------------------------------------------------------

    async def fenced(self, operations: Sequence[Operation]) -> list[Any]:
        """One multi. Raises DeposedError, or the error of the operation that was refused."""
        try:
            results = await self.zookeeper.multi([Check(CONTROLLER_EPOCH, self.epoch_version), *operations])
        except (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError):
            stat = await self.zookeeper.exists(CONTROLLER_EPOCH)
            if stat is None or stat.version != self.epoch_version:
                raise DeposedError from None
            raise
        for operation in operations:
            if isinstance(operation, (Create, Delete)):
                parent = operation.path.rpartition("/")[0]
                if parent in self.own_changes:
                    self.own_changes[parent] += 1
        return results[1:]

    async def fenced_groups(self, groups: Sequence[Sequence[Operation]]) -> list[list[Any]]:
        """Many groups of operations, packed. Stops at the first multi that is refused."""
        results: list[list[Any]] = []
        for packed in _pack(groups):
            flat = await self.fenced([operation for group in packed for operation in group])
            for group in packed:
                results.append(flat[: len(group)])
                del flat[: len(group)]
        return results

    async def write_states(self, changes: Sequence[tuple[Partition, PartitionState]]) -> list[PartitionState | None]:
        """Compare-and-set, each on its partition epoch: the states with their new epochs.

        None where somebody else had written the node: the partition's memory then holds what was found.
        """
        groups = [[SetData(_path(p), state_json(state), state.partition_epoch)] for p, state in changes]
        written: list[PartitionState | None] = []
        done = 0
        for packed in _pack(groups):
            part = changes[done : done + len(packed)]
            done += len(packed)
            try:
                stats = await self.fenced([operation for group in packed for operation in group])
            except (BadVersionError, NoNodeError):
                for partition, state in part:
                    written.append(await self._write_alone(partition, state))
            else:
                written += [
                    replace(state, partition_epoch=stat.version) for (_, state), stat in zip(part, stats, strict=True)
                ]
        return written

    async def _write_alone(self, partition: Partition, state: PartitionState) -> PartitionState | None:
        try:
            (stat,) = await self.fenced([SetData(_path(partition), state_json(state), state.partition_epoch)])
        except (BadVersionError, NoNodeError):
            found = await self.state(partition.topic, partition.index)
            if found is not None:
                partition.load(*found)
            return None
        return replace(state, partition_epoch=stat.version)

    async def create_states(self, topic: Topic, states: Sequence[tuple[Partition, PartitionState]]) -> None:
        """State nodes of partitions that have none, with the directories above."""
        groups: list[list[Operation]] = [] if topic.has_directory else [[Create(partitions_path(topic.name))]]
        groups += [
            [Create(partition_path(topic.name, partition.index)), Create(_path(partition), state_json(state))]
            for partition, state in states
        ]
        await self.fenced_groups(groups)
        topic.has_directory = True

    async def create_topic(self, name: str, assignment: TopicAssignment, config: dict[str, str]) -> Topic:
        """The nodes that make a topic, at once; the topic as it would be read now. Raises NodeExistsError."""
        path, data = topic_config_path(name), config_json(config)
        operations: list[Operation] = [
            Create(topic_path(name), topic_json(assignment)),
            Create(CONFIG_CHANGE_PREFIX, config_change_json(name), sequential=True),
        ]
        try:
            await self.fenced([*operations, Create(path, data)])
        except NodeExistsError:
            if await self.zookeeper.exists(topic_path(name)) is not None:
                raise
            # The configuration is left over where a deletion was cut short by hand: overwritten, not an error.
            await self.fenced([*operations, SetData(path, data)])
        return new_topic(name, assignment)

    async def grow_topic(self, name: str, added: Mapping[int, tuple[int, ...]]) -> bool:
        """Write more partitions into the topic's node; False where somebody else has changed or deleted it."""
        try:
            data, stat = await self.zookeeper.get(topic_path(name))
            before = parse_topic(data)
            if added.keys() & before.partitions.keys():
                return False
            grown = replace(before, partitions={**before.partitions, **added})
            await self.fenced([SetData(topic_path(name), topic_json(grown), stat.version)])
        except (BadVersionError, NoNodeError):
            return False
        return True

    async def doom(self, topics: Sequence[str]) -> None:
        """Note that topics are to be deleted; what a crash leaves unfinished, the next controller finishes."""
        known = dict.fromkeys(await self.doomed())
        await self.fenced_groups([[Create(delete_topic_path(topic))] for topic in topics if topic not in known])

    async def forget_topic(self, topic: str) -> None:
        """Delete every node of a topic, the note of its deletion last. Can be repeated after a crash in the middle."""
        groups: list[list[Operation]] = []
        last: list[Operation] = []
        try:
            indexes = [int(name) for name in await self.zookeeper.children(partitions_path(topic))]
            groups += [[Delete(state_path(topic, i)), Delete(partition_path(topic, i))] for i in indexes]
            last.append(Delete(partitions_path(topic)))
        except NoNodeError:
            pass
        named = (topic_path(topic), topic_config_path(topic), delete_topic_path(topic))
        last += [Delete(path) for path in named if await self.zookeeper.exists(path) is not None]
        await self.fenced_groups([*groups, last])

    async def take_log_dir_events(self, names: Iterable[str]) -> list[int]:
        """Brokers that have lost a data directory; the notifications are deleted."""
        brokers: dict[int, None] = {}
        for name in names:
            path = f"{LOG_DIR_EVENTS}/{name}"
            try:
                data, _ = await self.zookeeper.get(path)
            except NoNodeError:
                continue
            broker_id = parse_log_dir_event(data)
            if broker_id is not None:
                brokers[broker_id] = None
            await self.fenced_groups([[Delete(path)]])
        return list(brokers)

    async def trim_config_changes(self) -> None:
        """Delete the oldest notifications when there are many; brokers that missed some read everything."""
        names = await self.zookeeper.children(CONFIG_CHANGES)
        old = names[: max(0, len(names) - KEPT_CONFIG_CHANGES)]
        for first in range(0, len(old), _TRIMMED_TOGETHER):
            part = old[first : first + _TRIMMED_TOGETHER]
            await self.fenced_groups([[Delete(f"{CONFIG_CHANGES}/{name}")] for name in part])


def new_topic(name: str, assignment: TopicAssignment) -> Topic:
    """A topic that nobody leads yet."""
    topic = Topic(name, assignment.topic_id, {})
    for partition in new_partitions(topic, assignment.partitions):
        adding, removing = assignment.adding.get(partition.index, ()), assignment.removing.get(partition.index, ())
        partition.assignment = Assignment(partition.replicas, adding, removing)
        topic.partitions[partition.index] = partition
    return topic


def new_partitions(topic: Topic, assignment: Mapping[int, tuple[int, ...]]) -> list[Partition]:
    """Partitions of a topic that nobody leads yet."""
    return [
        Partition(topic.name, topic.topic_id, index, Assignment(replicas)) for index, replicas in assignment.items()
    ]


def _path(partition: Partition) -> str:
    return state_path(partition.topic, partition.index)


def _pack(groups: Iterable[Sequence[Operation]]) -> list[list[Sequence[Operation]]]:
    packs: list[list[Sequence[Operation]]] = []
    size = 0
    for group in groups:
        if not packs or size + len(group) > _OPERATIONS_PER_MULTI:
            packs.append([])
            size = 0
        packs[-1].append(group)
        size += len(group)
    return packs
