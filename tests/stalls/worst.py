"""The worst that was thought of by hand: what held a broker up once, or looks as if it could.

A declaration cannot know that a broker's id may be written with zeros before it, that a topic named twice is looked up twice,
or that who never reads his answers has them kept for him.
"""

from __future__ import annotations

from dataclasses import replace

from dataplane.cluster.metadata import COORDINATORS_TOPICS
from dataplane.cluster.paths import INTERNAL_LISTENER
from dataplane.protocol.messages.configs import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    OpData,
)
from dataplane.protocol.messages.control import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataResponse
from dataplane.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from dataplane.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol, ListGroupsRequest
from dataplane.protocol.messages.log_dirs import DescribeLogDirsRequest
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from dataplane.throttle.client_quotas import PRODUCE_RATE
from quota.contracts.instance import MIB
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from tests.stalls.attacks import Attack, framed
from tests.stalls.largest import Bounds, Shape, batch, largest
from tests.stalls.world import INTERNAL, TENANT, World, zookeeper
from tests.support.processes import SECRET
from tests.support.specs import Specs
from tests.support.wire import Wire

_BROKER, _TOPIC = 4, 2
_FOREVER_MS = 2**31 - 1
_ELEMENTS = 19_000
_INCREMENTAL = 1


# --- configurations ---------------------------------------------------------------------------------------------------


def _zeros(count: int, keys: tuple[str, ...] | None) -> DescribeConfigsRequest:
    """One broker by ever other names: a broker that compares the first twenty characters takes them all for itself."""
    names = (f"{1:020d}{number}" for number in range(count))
    resources = tuple(DescribeConfigsResource(_BROKER, name, keys) for name in names)
    return DescribeConfigsRequest(resources, include_synonyms=True, include_documentation=True)


def _four_thousand(world: World) -> list[bytes]:
    known = world.known[TENANT].topics
    resources = tuple(DescribeConfigsResource(_TOPIC, known[number % len(known)], None) for number in range(4_000))
    request = DescribeConfigsRequest(resources, include_synonyms=True, include_documentation=True)
    return [framed(request, 4)]


def _quotas(world: World) -> list[bytes]:
    """Each of fifty entries a rule of its own, for a user and a client."""
    del world

    def entry(number: int) -> AlterClientQuotasRequestEntryData:
        parts = (("user", f"u{number}"), ("client-id", f"c{number}"))
        entity = tuple(AlterClientQuotasRequestEntityData(*part) for part in parts)
        return AlterClientQuotasRequestEntryData(entity, (OpData(PRODUCE_RATE, 1e6),))

    return [framed(AlterClientQuotasRequest(tuple(map(entry, range(50)))), 1)]


def _multiply(world: World) -> None:
    """One rule of all users times all clients, as an instance may have it."""
    users, clients = (tuple(f"{word}{n}" for n in range(400)) for word in ("u", "c"))
    _set_rules(world, RuleSet(1, (ThrottleRule("rule-1", RuleKind.CLIENT, MIB, None, users=users, clients=clients),)))


def _divide(world: World) -> None:
    _set_rules(world, RuleSet(9_999))


def _set_rules(world: World, rules: RuleSet) -> None:
    assert world.tenants is not None
    with zookeeper(world.server.zookeeper) as client:
        Specs(client).change(world.tenants["aggressor"], rules=rules)


# --- everything -------------------------------------------------------------------------------------------------------


def _metadata(world: World) -> list[bytes]:
    del world
    everything = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    return [framed(everything, 10)]


def _log_dirs(world: World) -> list[bytes]:
    del world
    return [framed(DescribeLogDirsRequest(topics=None), 4)]


def _groups(world: World) -> list[bytes]:
    del world
    return [framed(ListGroupsRequest(), 4)]


def _offsets(world: World) -> list[bytes]:
    groups = tuple(OffsetFetchRequestGroup(name, topics=None) for name in world.known[TENANT].groups)
    return [framed(OffsetFetchRequest(groups=groups), 8)]


def _many_groups(world: World) -> list[bytes]:
    return [framed(largest(OffsetFetchRequest, 8, Shape.WIDE, world.known[TENANT], world.bounds(TENANT, 9)), 8)]


def _duplicates(world: World) -> list[bytes]:
    one = (ListOffsetsPartition(0, timestamp=-1, max_num_offsets=_FOREVER_MS),)
    request = ListOffsetsRequest(-1, topics=(ListOffsetsTopic(world.known[TENANT].sink, one * _ELEMENTS),))
    return [framed(request, 0)]


# --- topics -----------------------------------------------------------------------------------------------------------


def _validated(world: World) -> list[bytes]:
    del world
    topics = tuple(CreatableTopic(f"maybe-{number}", 1, 1) for number in range(1_000))
    return [framed(CreateTopicsRequest(topics, 5_000, validate_only=True), 7)]


def _hundred() -> list[str]:
    return [f"gone-{number}" for number in range(100)]


def _make_hundred(world: World) -> None:
    """A hundred topics, and groups with many offsets that deleting a topic has to look through."""
    with Wire(world.doors[TENANT], timeout_s=60) as wire:
        topics = tuple(CreatableTopic(name, 1, 1) for name in _hundred())
        wire.call(CreateTopicsRequest(topics, 30_000), 5)
        partition = (OffsetCommitRequestPartition(0, 1, committed_metadata=""),)
        names = tuple(OffsetCommitRequestTopic(name, partition) for name in (*world.known[TENANT].topics, *_hundred()))
        for number in range(50):
            wire.call(OffsetCommitRequest(f"heavy-{number}", topics=names), 7)


def _delete_hundred(world: World) -> list[bytes]:
    del world
    return [framed(DeleteTopicsRequest(tuple(map(DeleteTopicState, _hundred())), timeout_ms=30_000), 6)]


# --- memory -----------------------------------------------------------------------------------------------------------


def _sixty_mib(world: World) -> list[bytes]:
    request = largest(ProduceRequest, 11, Shape.WIDE, world.known["indebted"], Bounds(60 * MIB, _ELEMENTS))
    return [framed(request, 11)]


def _announced(world: World) -> list[bytes]:
    """All of a frame of 100 MiB but its last KiB, which never comes."""
    whole = framed(largest(ProduceRequest, 11, Shape.WIDE, world.known[TENANT], Bounds(100 * MIB, _ELEMENTS)), 11)
    size = 100 * MIB
    return [size.to_bytes(4) + whole[4:] + bytes(max(0, size - len(whole) - 1_020))]


def _invented(world: World) -> list[bytes]:
    """Batches of producers whose ids no broker gave out: each log remembers every one of them."""
    known = world.known[TENANT]

    def of(producer: int) -> bytes:
        records = batch(9, 1, producer_id=producer, producer_epoch=0, base_sequence=0)
        data = tuple(PartitionProduceData(index, records) for index in range(known.sink_partitions))
        return framed(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(TopicProduceData(known.sink, data),)), 9)

    return [of(1_000_000 + number) for number in range(3_000)]


def _parked(world: World) -> list[bytes]:
    """A fetch of all topics that waits for what never comes."""
    return [framed(_fetch(world, session_epoch=-1), 12)]


def _sessions(world: World) -> list[bytes]:
    """A new session for each request."""
    return [framed(_fetch(world, session_epoch=0), 12)]


def _begin_session(world: World) -> None:
    """One of as many partitions as a broker remembers of a session. They are not there, and have that to tell each time."""
    with Wire(world.doors[TENANT], timeout_s=60) as wire:
        partitions = tuple(FetchPartition(200 + number, partition_max_bytes=1) for number in range(3_900))
        topics = (FetchTopic(world.known[TENANT].sink, partitions=partitions),)
        answer = wire.call(FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, session_epoch=0, topics=topics), 12)
    assert answer.session_id, answer.error_code
    world.noted["session"] = answer.session_id


def _resumed(world: World) -> list[bytes]:
    """Its next requests, which name nothing."""
    session = world.noted.get("session", 1)
    request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, session_id=session)
    return [framed(replace(request, session_epoch=epoch), 12) for epoch in range(1, 2_000)]


def _fetch(world: World, session_epoch: int) -> FetchRequest:
    known = world.known[TENANT]
    partition = (FetchPartition(0, partition_max_bytes=MIB),)
    topics = tuple(FetchTopic(name, partitions=partition) for name in known.topics if name != known.sink)
    return FetchRequest(replica_id=-1, max_wait_ms=_FOREVER_MS, min_bytes=1, session_epoch=session_epoch, topics=topics)


def _members(world: World) -> list[bytes]:
    """All in one group, each with much to say to its leader."""
    del world
    protocols = (JoinGroupRequestProtocol("range", bytes(32 * 2**10)),)
    request = JoinGroupRequest("crowd", 6_000, 6_000, protocol_type="consumer", protocols=protocols)
    return [framed(request, 3)]


# --- what the controller says -----------------------------------------------------------------------------------------


def _cluster(world: World) -> MetadataResponse:
    with Wire(world.doors[INTERNAL], timeout_s=60) as wire:
        assert wire.log_in(SECRET) == 0
        found: MetadataResponse = wire.call(MetadataRequest(topics=None), 12)
        return found


def _update_metadata(world: World) -> list[bytes]:
    """Of every topic, what is known already: as to all brokers after the start of a controller."""
    found, (controller, epoch) = _cluster(world), world.controller()
    brokers = tuple(
        UpdateMetadataBroker(
            broker.node_id, endpoints=(UpdateMetadataEndpoint(broker.port, broker.host, INTERNAL_LISTENER),)
        )
        for broker in found.brokers
    )
    topics = tuple(
        UpdateMetadataTopicState(
            topic.name or "",
            topic.topic_id,
            tuple(
                UpdateMetadataPartitionState(
                    "", p.partition_index, epoch, p.leader_id, p.leader_epoch, p.isr_nodes, 0, p.replica_nodes
                )
                for p in topic.partitions
            ),
        )
        for topic in found.topics
    )
    request = UpdateMetadataRequest(
        controller, type=_INCREMENTAL, controller_epoch=epoch, topic_states=topics, live_brokers=brokers
    )
    return [framed(request, 8)]


def _leader_and_isr(world: World) -> list[bytes]:
    """The same roles once more."""
    found, (controller, epoch) = _cluster(world), world.controller()
    topics = tuple(
        LeaderAndIsrTopicState(
            topic.name or "",
            topic.topic_id,
            tuple(
                LeaderAndIsrPartitionState(
                    "", p.partition_index, epoch, p.leader_id, p.leader_epoch, p.isr_nodes, 0, p.replica_nodes
                )
                for p in topic.partitions
            ),
        )
        for topic in found.topics
        if topic.name not in COORDINATORS_TOPICS
    )
    leaders = tuple(LeaderAndIsrLiveLeader(broker.node_id, broker.host, broker.port) for broker in found.brokers)
    request = LeaderAndIsrRequest(
        controller, controller_epoch=epoch, type=_INCREMENTAL, topic_states=topics, live_leaders=leaders
    )
    return [framed(request, 7)]


def worst() -> list[Attack]:
    """All of them; what fills memory comes last."""
    ours = Attack(TENANT, "", 0, "", _metadata, on_apache=False)
    either = replace(ours, on_apache=True)
    inside = replace(ours, door=INTERNAL)

    def row(like: Attack, api: str, version: int, form: str, **members: object) -> Attack:
        return replace(like, api=api, version=version, form=form, **members)  # type: ignore[arg-type]

    return [
        row(either, "DESCRIBE_CONFIGS", 4, "of 4,000 names, topics again and again", frames=_four_thousand),
        row(
            ours,
            "DESCRIBE_CONFIGS",
            4,
            "of 4,000 names for one broker",
            frames=lambda _: [framed(_zeros(4_000, None), 4)],
        ),
        row(
            ours,
            "DESCRIBE_CONFIGS",
            4,
            "of 9,000 names for one broker, one setting",
            frames=lambda _: [framed(_zeros(9_000, ("log.dirs",)), 4)],
        ),
        row(either, "METADATA", 10, "of everything, 100 connections pipelined", connections=100, depth=50),
        row(inside, "METADATA", 10, "of everything, 10 connections pipelined", connections=10, depth=50),
        row(either, "LIST_OFFSETS", 0, "one partition 19,000 times", frames=_duplicates),
        row(
            either,
            "DESCRIBE_LOG_DIRS",
            4,
            "of everything, 10 connections pipelined",
            frames=_log_dirs,
            connections=10,
            depth=50,
        ),
        row(inside, "DESCRIBE_LOG_DIRS", 4, "of everything", frames=_log_dirs),
        row(either, "LIST_GROUPS", 4, "all, 100 connections pipelined", frames=_groups, connections=100, depth=50),
        row(either, "OFFSET_FETCH", 8, "all of all groups", frames=_offsets),
        row(either, "OFFSET_FETCH", 8, "all of all groups, 100 connections", frames=_offsets, connections=100),
        row(inside, "UPDATE_METADATA", 8, "of everything", frames=_update_metadata),
        row(inside, "LEADER_AND_ISR", 7, "of everything", frames=_leader_and_isr),
        row(either, "CREATE_TOPICS", 7, "1,000, validated only", frames=_validated),
        row(either, "CREATE_TOPICS", 7, "1,000, validated only, 100 connections", frames=_validated, connections=100),
        row(either, "JOIN_GROUP", 3, "a thousand members of one group", frames=_members, connections=1_000),
        row(either, "FETCH", 12, "a thousand that wait for all topics", frames=_parked, connections=1_000),
        row(
            either, "FETCH", 12, "a thousand with a new session each time", frames=_sessions, connections=1_000, depth=2
        ),
        row(
            either,
            "FETCH",
            12,
            "a session of 3,900 partitions that are not there",
            frames=_resumed,
            before=_begin_session,
            resets=False,
        ),
        row(
            ours,
            "ALTER_CLIENT_QUOTAS",
            1,
            "where users times clients have a rule",
            frames=_quotas,
            before=_multiply,
            after=_divide,
        ),
        row(either, "DELETE_TOPICS", 6, "a hundred, with many offsets", frames=_delete_hundred, before=_make_hundred),
        row(
            either,
            "OFFSET_FETCH",
            8,
            "of all groups, a thousand connections that go in order",
            frames=_many_groups,
            connections=1_000,
            resets=False,
        ),
        row(
            either, "PRODUCE", 9, "of producers that nobody knows", frames=_invented, connections=4, depth=5, seconds=2
        ),
        row(
            either, "PRODUCE", 11, "100 MiB announced on three connections", frames=_announced, connections=3, seconds=2
        ),
        row(
            ours,
            "PRODUCE",
            11,
            "24 frames of 60 MiB, indebted",
            door="indebted",
            frames=_sixty_mib,
            connections=24,
            seconds=2,
        ),
        row(
            either,
            "METADATA",
            10,
            "answers that a thousand connections leave unread",
            connections=1_000,
            depth=100,
            reads=False,
            seconds=4,
        ),
    ]
