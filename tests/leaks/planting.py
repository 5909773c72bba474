"""What a side has, made through its own address by ordinary Kafka requests.

Two topics with records of an idempotent producer, two groups with a member each and committed offsets, an ACL, a user, client
quotas and a fetch session. One topic and one group have the same names on both sides; all else is called by a word (`token`)
that nothing else has, so that it can be looked for in anybody's answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from dataplane.protocol.messages.configs import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from dataplane.protocol.messages.discovery import (
    DescribeClusterRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.groups import (
    DescribeGroupsRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from dataplane.protocol.messages.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.protocol.messages.security import (
    AclCreation,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    ScramCredentialUpsertion,
)
from dataplane.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from dataplane.records.batch import Record, build_batch
from tests.leaks.client import Client

SHARED_TOPIC, SHARED_INSTANCE = "shared-orders", "shared-instance"
PARTITIONS = 2
NOW_MS = 1_700_000_000_000
SESSION_MS = 1_800_000
"""Members need no heartbeats while the matrix runs."""
TOPIC_RESOURCE, LITERAL, READ, ALLOW, SCRAM_256 = 2, 3, 3, 3, 1
PASSWORD = "a password of the leak matrix"
_TOPIC_THERE = 36


@dataclass(frozen=True)
class Numbers:
    """What a side is told by, where there is no room for a word."""

    committed_offset: int
    retention_ms: str
    quota_rate: float
    acl_host: str
    iterations: int


@dataclass
class Facts:
    """Of one side. Names are its own, not the cluster's."""

    token: str
    cluster_id: str
    brokers: tuple[int, ...]
    topic: str
    group: str
    shared_group: str
    client_id: str
    numbers: Numbers
    topics: dict[str, UUID] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)  # by group
    instances: dict[str, str] = field(default_factory=dict)  # likewise
    generations: dict[str, int] = field(default_factory=dict)
    producer_id: int = -1
    producer_epoch: int = -1
    session_id: int = 0
    session_at: int = -1  # the broker that keeps it
    member_host: str = ""  # where the group's member has come from, as its side is told

    @property
    def key(self) -> str | None:
        """What physical names begin with; None: its cluster id does not say."""
        key = self.cluster_id.removeprefix("ins-")
        return key if len(key) == 8 and key != self.cluster_id else None

    def shared(self) -> Facts:
        """The same where it is asked for by the names that both sides have."""
        return replace(self, topic=SHARED_TOPIC, group=self.shared_group)

    @property
    def new_topic(self) -> str:
        """One that does not exist."""
        return f"{self.token}-new-aaaa"

    @property
    def transactional_id(self) -> str:
        return f"{self.token}-txn-aaaa"

    @property
    def member_id(self) -> str:
        return self.members[self.group]

    @property
    def instance_id(self) -> str:
        return self.instances[self.group]

    @property
    def generation(self) -> int:
        return self.generations[self.group]

    @property
    def user(self) -> str:
        return f"{self.token}-user-aaaa"

    @property
    def principal(self) -> str:
        return f"User:{self.token}-principal-aaaa"

    @property
    def acl_host(self) -> str:
        return self.numbers.acl_host

    @property
    def salt(self) -> bytes:
        return f"{self.token}-salt".encode()

    @property
    def acl_resource(self) -> str:
        return f"{self.token}-resource-aaaa"

    @property
    def quota_user(self) -> str:
        return f"{self.token}-quser-aaaa"

    @property
    def quota_client(self) -> str:
        return f"{self.token}-qclient-aaaa"


def group_names(token: str) -> list[str]:
    """Which names a group may have; which one it has, its coordinator decides."""
    return [f"{token}-group-{letters}" for letters in endings()]


def endings() -> list[str]:
    """Four letters each; names that exist end with such, so that others of the same length are at hand."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return [f"aa{one}{two}" for one in alphabet for two in alphabet]


def coordinator_of(client: Client, name: str, key_type: int = 0) -> int:
    """The broker that keeps a group, or (1) a transactional id, as this side is told; -1: none that it reaches."""
    return int(client.call(next(iter(client.brokers)), FindCoordinatorRequest(key=name, key_type=key_type), 1).node_id)


def cluster_id_of(client: Client) -> str:
    """As the side is told."""
    return str(client.call(next(iter(client.brokers)), DescribeClusterRequest(), 0).cluster_id)


def plant(
    client: Client,
    token: str,
    leaders: tuple[int, ...],
    numbers: Numbers,
    groups: tuple[str, str],
    *,
    apart: bool = False,
) -> Facts:
    """Everything. `leaders`: brokers that shall lead its partitions, in turn; `groups`: its own and the one of both sides.

    `apart`: members come from another address than requests do.
    """
    facts = Facts(
        token,
        cluster_id_of(client),
        tuple(sorted(client.brokers)),
        f"{token}-topic-aaaa",
        *groups,
        f"{token}-client-aaaa",
        numbers,
    )
    names = (facts.topic, SHARED_TOPIC)
    create_topics(client, names, leaders, numbers.retention_ms)
    facts.topics = topic_ids(client, names)
    _produce(client, facts, leaders)
    member = Client(client.network, client.bootstrap, facts.client_id, apart=apart, brokers=client.brokers)
    _populate(member, facts, facts.group, f"{token}-instance-aaaa")
    _populate(member, facts, facts.shared_group, SHARED_INSTANCE)
    member.close()
    _permit(client, facts)
    _open_session(client, facts, leaders[0])
    return facts


def create_topics(client: Client, names: tuple[str, ...], leaders: tuple[int, ...], retention_ms: str) -> None:
    """Led by these brokers in turn, copied to all that the side has (three at most)."""
    others = sorted(client.brokers)
    rows = tuple(
        CreatableReplicaAssignment(index, tuple(dict.fromkeys((leaders[index % len(leaders)], *others)))[:3])
        for index in range(PARTITIONS)
    )
    config = (CreatableTopicConfig("retention.ms", retention_ms),)
    request = CreateTopicsRequest(tuple(CreatableTopic(name, -1, -1, rows, config) for name in names), 30_000)

    def made() -> bool:
        client.look()
        if client.controller not in client.brokers:
            return False
        found = client.call(client.controller, request, 5).topics
        return all(topic.error_code in (0, _TOPIC_THERE) for topic in found)

    client.wait(made, "controller that makes topics")
    for broker in client.brokers:
        client.wait(lambda: _led(client, broker, names), f"leaders at broker {broker}")  # noqa: B023 - called at once


def topic_ids(client: Client, names: tuple[str, ...]) -> dict[str, UUID]:
    """By name."""
    return {topic.name: topic.topic_id for topic in _described(client, next(iter(client.brokers)), names)}


def _led(client: Client, broker: int, names: tuple[str, ...]) -> bool:
    found = _described(client, broker, names)
    return all(
        not topic.error_code and topic.partitions and all(p.leader_id >= 0 for p in topic.partitions) for topic in found
    )


def _described(client: Client, broker: int, names: tuple[str, ...]) -> tuple[Any, ...]:
    asked = MetadataRequest(tuple(MetadataRequestTopic(name=name) for name in names), allow_auto_topic_creation=False)
    return tuple(client.call(broker, asked, 12).topics)


def _produce(client: Client, facts: Facts, leaders: tuple[int, ...]) -> None:
    broker = next(iter(client.brokers))

    def producer() -> bool:
        answer = client.call(broker, InitProducerIdRequest(None, 60_000), 4)
        facts.producer_id, facts.producer_epoch = answer.producer_id, answer.producer_epoch
        return not answer.error_code

    client.wait(producer, "producer id")
    for name in (facts.topic, SHARED_TOPIC):
        for index in range(PARTITIONS):
            batch = build_batch(
                [Record(b"key", f"{facts.token}-record-{n}".encode()) for n in range(3)],
                now_ms=NOW_MS,
                producer_id=facts.producer_id,
                producer_epoch=facts.producer_epoch,
                base_sequence=0,
            )
            data = TopicProduceData(name, (PartitionProduceData(index, bytes(batch)),))
            request = ProduceRequest(None, -1, 30_000, (data,))
            done: Callable[[], bool] = lambda: not _produced(client, leaders[index % len(leaders)], request)  # noqa: B023, E731
            client.wait(done, f"leader of {name}")


def _produced(client: Client, leader: int, request: ProduceRequest) -> int:
    return int(client.call(leader, request, 8).responses[0].partition_responses[0].error_code)


def _populate(member: Client, facts: Facts, group: str, instance: str) -> None:
    """A group with one member, and its offsets."""
    keeper = member.wait(lambda: max(0, coordinator_of(member, group) + 1), f"coordinator of {group}") - 1
    offers = (JoinGroupRequestProtocol("range", f"{facts.token}-subscription".encode()),)
    join = JoinGroupRequest(group, SESSION_MS, 10_000, "", instance, "consumer", offers)

    def joined() -> Any:
        answer = member.call(keeper, join, 5)
        return None if answer.error_code else answer

    answer = member.wait(joined, f"membership of {group}")
    facts.members[group], facts.instances[group], facts.generations[group] = (
        answer.member_id,
        instance,
        answer.generation_id,
    )
    assigned = (SyncGroupRequestAssignment(answer.member_id, f"{facts.token}-assignment".encode()),)
    request = SyncGroupRequest(group, answer.generation_id, answer.member_id, instance, assignments=assigned)
    synced = member.call(keeper, request, 3)
    assert not synced.error_code, synced
    row = OffsetCommitRequestPartition(0, facts.numbers.committed_offset, committed_metadata=f"{facts.token}-metadata")
    topics = (OffsetCommitRequestTopic(facts.topic, (row,)), OffsetCommitRequestTopic(SHARED_TOPIC, (row,)))
    commit = OffsetCommitRequest(group, answer.generation_id, answer.member_id, instance, topics=topics)
    for version in (0, 7):  # as ZooKeeper keeps it, and as groups do
        rows = member.call(keeper, commit, version).topics
        assert not any(p.error_code for topic in rows for p in topic.partitions), rows
    described = member.call(keeper, DescribeGroupsRequest((group,)), 0).groups[0].members
    facts.member_host = described[0].client_host


def _permit(client: Client, facts: Facts) -> None:
    """An ACL, a user, and client quotas."""
    broker = next(iter(client.brokers))
    row = AclCreation(TOPIC_RESOURCE, facts.acl_resource, LITERAL, facts.principal, facts.acl_host, READ, ALLOW)
    made = client.call(broker, CreateAclsRequest((row,)), 3)
    assert not made.results[0].error_code, made
    iterations = facts.numbers.iterations
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), facts.salt, iterations)
    user = ScramCredentialUpsertion(facts.user, SCRAM_256, iterations, facts.salt, salted)
    users = client.call(broker, AlterUserScramCredentialsRequest((), (user,)), 0)
    assert not users.results[0].error_code, users
    entries = tuple(
        AlterClientQuotasRequestEntryData(
            (AlterClientQuotasRequestEntityData(kind, name),),
            (OpData("producer_byte_rate", facts.numbers.quota_rate),),
        )
        for kind, name in (("user", facts.quota_user), ("client-id", facts.quota_client))
    )
    quotas = client.call(broker, AlterClientQuotasRequest(entries, False), 1)
    assert not any(entry.error_code for entry in quotas.entries), quotas


def _open_session(client: Client, facts: Facts, broker: int) -> None:
    part = FetchPartition(partition=0, partition_max_bytes=1_000)
    request = FetchRequest(session_epoch=0, topics=(FetchTopic(facts.topic, partitions=(part,)),), max_bytes=1_000)
    answer = client.call(broker, request, 7)
    assert answer.session_id, answer
    facts.session_id, facts.session_at = answer.session_id, broker
