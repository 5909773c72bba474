"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from __future__ import annotations

from uuid import UUID

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.fetch import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from dataplane.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.differential.asking import Asker
from tests.differential.scenarios import scenario
from tests.differential.scenarios.cluster import BAD_NAMES, NOBODY

CREATE_NEWEST = 7


@scenario(ApiKey.CREATE_TOPICS)
def create_topics(asker: Asker) -> None:
    def create(label: str, *topics: CreatableTopic, validate_only: bool = False) -> None:
        asker.ask(label, CreateTopicsRequest(topics, 10_000, validate_only))

    def new(suffix: str, partitions: int = 1, factor: int = 1, assigned: dict | None = None, **configs: str | None):
        assignments = tuple(CreatableReplicaAssignment(p, tuple(b)) for p, b in (assigned or {}).items())
        settings = tuple(CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items())
        return CreatableTopic(asker.name(suffix), partitions, factor, assignments, settings)

    create("plain", new("a", 2))
    create("exists already", new("a", 2))
    create("none")
    create("two", new("b"), new("c", 3))
    create("the same twice", new("d"), new("d"))
    create("one good, one bad", new("e"), new("f", 0))
    for bad in BAD_NAMES:
        create(f"bad name {bad[:5]!r}", CreatableTopic(bad, 1, 1))
    create("an internal name", CreatableTopic("__consumer_offsets", 1, 1))
    create("249 characters", CreatableTopic(f"{asker.name('n')}-".ljust(249, "x"), 1, 1))
    create("a dot where another has an underscore: first", CreatableTopic(asker.name("x.y"), 1, 1))
    create("a dot where another has an underscore: second", CreatableTopic(asker.name("x_y"), 1, 1))
    for partitions in (0, -1, -2):
        create(f"{partitions} partitions", new(f"p{partitions}", partitions))
    for factor in (0, -1, -2, 2, 1000):
        create(f"factor {factor}", new(f"r{factor}", 1, factor))
    create("assigned", new("as", -1, -1, {0: [0], 1: [0]}))
    create("assigned and counted", new("as2", 1, 1, {0: [0]}))
    create("assigned twice to one broker", new("as4", -1, -1, {0: [0, 0]}))
    create("assigned with a gap", new("as5", -1, -1, {0: [0], 2: [0]}))
    create("assigned, not from 0", new("as6", -1, -1, {1: [0]}))
    if asker.version == CREATE_NEWEST:  # Apache Kafka says nothing, or waits until the time is up
        create("assigned to an unknown broker", new("as3", -1, -1, {0: [77]}))
        create("assigned to nobody", new("as7", -1, -1, {0: []}))
        create("assigned, a negative partition", new("as8", -1, -1, {-1: [0]}))
    create("configured", new("c1", retention_ms="3600000", cleanup_policy="compact"))
    create("an unknown config", new("c2", no_such="1"))
    create("a bad value", new("c3", retention_ms="soon"))
    create("a value out of range", new("c4", retention_ms="-2"))
    create("a bad policy", new("c5", cleanup_policy="burn"))
    create("both policies", new("c6", cleanup_policy="compact,delete"))
    create("an empty value", new("c7", cleanup_policy=""))
    create("null as a value", new("c8", retention_ms=None))
    create("a boolean", new("c9", preallocate="maybe"))
    create("small segments", new("c10", segment_bytes="100"))
    create("least segments", new("c11", segment_bytes="1048576"))
    create("a codec", new("c12", compression_type="zstd"))
    create("an unknown codec", new("c13", compression_type="rar"))
    create("append time", new("c14", message_timestamp_type="LogAppendTime"))
    create("an unknown timestamp type", new("c15", message_timestamp_type="Later"))
    create("in sync 0", new("c16", min_insync_replicas="0"))
    create("in sync 5", new("c17", min_insync_replicas="5"))
    create("dirty ratio 2", new("c18", min_cleanable_dirty_ratio="2"))
    create("message bytes -1", new("c19", max_message_bytes="-1"))
    if asker.version >= 1:
        create("only looked at", new("v1"), validate_only=True)
        create("only looked at, exists", new("a"), validate_only=True)
        create("only looked at, bad", new("v2", 0), validate_only=True)


@scenario(ApiKey.DELETE_TOPICS)
def delete_topics(asker: Asker) -> None:
    def delete(label: str, *names: str) -> None:
        if asker.version >= 6:
            asker.ask(label, DeleteTopicsRequest(tuple(DeleteTopicState(name) for name in names), (), 10_000))
        else:
            asker.ask(label, DeleteTopicsRequest((), names, 10_000))

    first, second = asker.topic("a"), asker.topic("b")
    delete("none")
    delete("unknown", asker.name("no"))
    delete("one", first)
    delete("the same twice", second, second)
    delete("gone", first)
    for bad in BAD_NAMES:
        delete(f"bad name {bad[:5]!r}", bad)
    if asker.version >= 6:
        third = asker.topic("c")
        known = asker.topic_id(third)
        asker.ask("name and id", DeleteTopicsRequest((DeleteTopicState(third, known),), (), 10_000))
        asker.ask("neither", DeleteTopicsRequest((DeleteTopicState(None, UUID(int=0)),), (), 10_000))
        asker.ask("an unknown id", DeleteTopicsRequest((DeleteTopicState(None, NOBODY),), (), 10_000))
        twice = (DeleteTopicState(None, known), DeleteTopicState(None, known))
        asker.ask("an id twice", DeleteTopicsRequest(twice, (), 10_000))
        fourth = asker.topic("d")
        by_both = (DeleteTopicState(None, asker.topic_id(fourth)), DeleteTopicState(fourth))
        asker.ask("the same by name and by id", DeleteTopicsRequest(by_both, (), 10_000))
        fifth = asker.topic("e")
        asker.ask("by id", DeleteTopicsRequest((DeleteTopicState(None, asker.topic_id(fifth)),), (), 10_000))


@scenario(ApiKey.CREATE_PARTITIONS)
def create_partitions(asker: Asker) -> None:
    def grow(label: str, *topics: CreatePartitionsTopic, validate_only: bool = False) -> None:
        asker.ask(label, CreatePartitionsRequest(topics, 10_000, validate_only))

    def assigned(*brokers: list[int]) -> tuple[CreatePartitionsAssignment, ...]:
        return tuple(CreatePartitionsAssignment(tuple(ids)) for ids in brokers)

    name = asker.topic("t", 2)
    grow("none")
    grow("only looked at", CreatePartitionsTopic(name, 3, None), validate_only=True)
    grow("to three", CreatePartitionsTopic(name, 3, None))
    grow("to three again", CreatePartitionsTopic(name, 3, None))
    grow("to fewer", CreatePartitionsTopic(name, 1, None))
    grow("to none", CreatePartitionsTopic(name, 0, None))
    grow("to -1", CreatePartitionsTopic(name, -1, None))
    grow("unknown", CreatePartitionsTopic(asker.name("no"), 3, None))
    grow("the same twice", CreatePartitionsTopic(name, 4, None), CreatePartitionsTopic(name, 5, None))
    grow("assigned", CreatePartitionsTopic(name, 4, assigned([0])))
    grow("too few assigned", CreatePartitionsTopic(name, 6, assigned([0])))
    grow("too many assigned", CreatePartitionsTopic(name, 5, assigned([0], [0])))
    grow("assigned to an unknown broker", CreatePartitionsTopic(name, 5, assigned([77])))
    grow("assigned twice to one broker", CreatePartitionsTopic(name, 5, assigned([0, 0])))
    grow("assigned to nobody", CreatePartitionsTopic(name, 5, assigned([])))
    grow("no assignments", CreatePartitionsTopic(name, 5, ()))
    grow("an internal topic", CreatePartitionsTopic("__consumer_offsets", 1, None))


@scenario(ApiKey.DELETE_RECORDS)
def delete_records(asker: Asker) -> None:
    name = asker.topic("t", 2)
    asker.produce(name, batches=3)

    def delete(label: str, *parts: tuple[int, int], topic: str = name) -> None:
        partitions = tuple(DeleteRecordsPartition(partition, offset) for partition, offset in parts)
        asker.ask(label, DeleteRecordsRequest((DeleteRecordsTopic(topic, partitions),), 10_000))

    asker.ask("none", DeleteRecordsRequest((), 10_000))
    delete("to 4", (0, 4))
    delete("back to 2", (0, 2))
    delete("beyond the end", (0, 10))
    delete("to the end", (0, -1))
    delete("to -2", (0, -2))
    delete("of nothing", (1, 0))
    delete("an unknown partition", (9, 0))
    delete("a negative partition", (-1, 0))
    delete("an unknown topic", (0, 0), topic=asker.name("no"))
    delete("the same twice", (0, 5), (0, 6))
    compacted = asker.topic("c", cleanup_policy="compact")
    delete("of a compacted topic", (0, 0), topic=compacted)
