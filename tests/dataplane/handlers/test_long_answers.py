"""What is asked for in thousands is answered in steps: none of them long, and the answer is that of many short requests.

A step is measured by the functions that are called in it, which does not depend on the machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from types import GeneratorType
from typing import Any
from uuid import UUID
from zlib import crc32

import pytest

from dataplane.controller.controller import TopicOutcome
from dataplane.handlers.context import RequestContext
from dataplane.handlers.groups.rows import PORTION
from dataplane.handlers.records import delete_records
from dataplane.handlers.records.produce import _PARTITION_US
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages import (
    configs,
    discovery,
    fetch,
    groups,
    log_dirs,
    offsets,
    produce,
    reassignment,
    topics,
    transactions,
)
from dataplane.protocol.messages.control import UpdateMetadataPartitionState, UpdateMetadataTopicState
from dataplane.protocol.schema import message_info
from dataplane.records.batch import Record, build_batch
from dataplane.records.steps import STEP_US, run_through
from dataplane.replication.upkeep.deletion import when_on_disk
from dataplane.slices import STEPS_PER_SLICE
from dataplane.tasks import Future, Task
from dataplane.tenancy.session import Session
from tests.simulation.cluster import INSTANCE, SimulatedCluster
from tests.support.collecting import no_collection

KEY = "simulate"
TOPICS = [f"{KEY}.topic-{number:04}" for number in range(1_000)]
NOWHERE = [f"{KEY}.nowhere-{number:04}" for number in range(1_000)]
WIDE, PARTITIONS = f"{KEY}.wide", 3_000
ORDERS, QUIET = f"{KEY}.orders", f"{KEY}.quiet"
GROUP = f"{KEY}.readers"
ELSEWHERE = ErrorCode.NOT_LEADER_OR_FOLLOWER
"""Partition 0 of the orders is led by the broker that is asked, partition 1 by another, and there is no other."""
MOST_CALLS = 900
"""Of functions between two pauses: about half a millisecond under the profiler, an eighth of that without."""


class Gauge:
    """Counts the calls between two pauses, and the pauses."""

    def __init__(self) -> None:
        self.calls = self.most = self.pauses = 0

    def note(self, _frame: Any, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1

    def pause(self) -> None:
        self.most, self.calls, self.pauses = max(self.most, self.calls), 0, self.pauses + 1

    def through(self, steps: Any) -> Any:
        """Make all the steps."""
        answer = None
        try:
            while True:
                work = steps.send(answer)
                answer = None if work is None else work()
                self.pause()
        except StopIteration as stop:
            return stop.value

    def run(self, _owner: str, steps: Any, **_how: bool) -> Future[Any]:
        """As `Slices.run`, in one go."""
        future: Future[Any] = Future()
        try:
            value = self.through(steps)
            self.pause()
            future.resolve(value)
        except Exception as error:  # noqa: BLE001 - the future carries it
            future.fail(error)
        return future


class World:
    """A broker of a simulated cluster, told of many topics of one tenant. `ask` is that tenant."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(seed=3)
        self.cluster.until(self.cluster.up)
        self.cluster.create_topic("orders", 2)
        self.cluster.create_topic("quiet", 300)
        metadata = self.cluster.brokers[1].metadata
        self.leader = metadata.partitions(ORDERS)[0].leader
        self._find_coordinator()
        self.broker = self.cluster.brokers[self.leader]
        self._tell(self.broker)

    def _find_coordinator(self) -> None:
        request = discovery.FindCoordinatorRequest("readers")
        self.coordinator = -1
        while self.coordinator < 0:
            self.coordinator = call(self, request, 2).node_id
        self.cluster.network.run_for(1)
        self._tell(self.cluster.brokers[self.coordinator])

    def _tell(self, broker: Any) -> None:
        for name, partitions in [*((topic, 1) for topic in TOPICS), (WIDE, PARTITIONS)]:
            states = tuple(
                UpdateMetadataPartitionState(
                    partition_index=index, leader=self.leader, leader_epoch=0, replicas=(1, 2), isr=(1, 2)
                )
                for index in range(partitions)
            )
            topic = UpdateMetadataTopicState(name, UUID(int=crc32(name.encode())), states)
            run_through(broker.metadata._tables.take(topic.topic_name, topic.topic_id, topic.partition_states))

    def ask(self, request: Any, version: int, *, is_long: bool = True) -> tuple[Any, Gauge]:
        """The answer, in physical names, and how it came about."""
        at_coordinator = type(request).__name__.startswith(
            ("Offset", "DeleteGroups", "ListGroups", "LeaveGroup")
        ) and not isinstance(request, fetch.OffsetForLeaderEpochRequest)
        broker: Any = self.cluster.brokers[self.coordinator] if at_coordinator else self.broker
        instance = broker.registry.get(INSTANCE)
        session = Session(instance, "default", instance.names, "10.0.1.1", authenticated=True)
        row = HANDLERS[message_info(type(request)).api_key]
        ctx = RequestContext(broker, session, row.api.key, version, 1, None, 100, is_long)
        gauge, slices = Gauge(), broker.slices
        broker.metadata.topics_of(KEY)  # which is made once after each change of anything, in one go
        broker.slices = gauge
        try:
            with no_collection():
                sys.setprofile(gauge.note)
                reply = row.handle(ctx, request)
                if isinstance(reply, GeneratorType):
                    reply = gauge.through(reply)
                elif hasattr(reply, "send"):
                    reply = Task(reply)
                gauge.pause()
                sys.setprofile(None)
            if isinstance(reply, Future):
                self.cluster.until(lambda: reply.done)
                reply = reply.result()
        finally:
            sys.setprofile(None)
            broker.slices = slices
        return reply, gauge

    def ask_long(self, request: Any, version: int, at_least: int, most: int = MOST_CALLS) -> Any:
        """Checks the steps."""
        answer, gauge = self.ask(request, version)
        assert gauge.most <= most, f"{gauge.most} calls without a pause"
        assert gauge.pauses >= at_least
        return answer

    def ask_each(self, requests: list[Any], version: int) -> list[Any]:
        return [self.ask(request, version, is_long=False)[0] for request in requests]


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def metadata_of(names: list[str] | None) -> discovery.MetadataRequest:
    topics = None if names is None else tuple(discovery.MetadataRequestTopic(name=name) for name in names)
    return discovery.MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def test_metadata_of_everything(world: World) -> None:
    answer = world.ask_long(metadata_of(None), 12, at_least=100)
    assert [topic.name for topic in answer.topics] == sorted([*TOPICS, WIDE, ORDERS, QUIET])
    assert answer.topics[-1].partitions[-1].partition_index == PARTITIONS - 1
    some = world.ask_each([metadata_of([topic]) for topic in TOPICS[::100]], 12)
    assert [topic for topic in answer.topics if topic.name in TOPICS[::100]] == [one.topics[0] for one in some]


def test_metadata_of_many_names(world: World) -> None:
    names = [name for pair in zip(TOPICS, NOWHERE, strict=True) for name in pair]
    answer = world.ask_long(metadata_of(names), 12, at_least=100)
    assert [topic.name for topic in answer.topics] == names
    some = world.ask_each([metadata_of([topic]) for topic in names[:20]], 12)
    assert list(answer.topics[:20]) == [one.topics[0] for one in some]


def test_metadata_tells_nothing_of_a_topic_that_went_or_that_a_whitelist_has_begun_to_refuse(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two pauses anything may happen."""
    broker: Any = world.broker
    instance = broker.registry.get(INSTANCE)
    ctx = RequestContext(
        broker,
        Session(instance, "default", instance.names, "10.0.1.1", authenticated=True),
        HANDLERS[3].api.key,
        12,
        1,
        None,
        100,
    )
    steps = HANDLERS[3].handle(ctx, metadata_of(None))
    next(steps)
    gone = {name: broker.metadata._partitions.pop(name) for name in TOPICS[900:]}
    monkeypatch.setattr(type(instance), "topic_denied", lambda _self, name, _peer: name in TOPICS[800:900])
    told = {topic.name for topic in Gauge().through(steps).topics}
    broker.metadata._partitions.update(gone)
    assert told >= set(TOPICS[:800])
    assert not told & set(TOPICS[800:])


def test_a_page_of_topic_partitions(world: World) -> None:
    request = discovery.DescribeTopicPartitionsRequest(response_partition_limit=2_000)
    answer = world.ask_long(request, 0, at_least=100)
    assert sum(len(topic.partitions) for topic in answer.topics) == 2_000
    cursor = discovery.DescribeTopicPartitionsRequestCursor(answer.next_cursor.topic_name, 5)
    again = world.ask_long(discovery.DescribeTopicPartitionsRequest(cursor=cursor), 0, at_least=100)
    assert again.topics[0].name == WIDE
    assert again.topics[0].partitions[0].partition_index == 5


def test_a_page_of_very_many_named_topics_without_sorting_them_all(world: World) -> None:
    """Named backwards and twice; a page has the first of them in order, and says with which it goes on."""
    names = sorted({*TOPICS, *NOWHERE, *(f"{KEY}.elsewhere-{number:05}" for number in range(10_000))})
    topics = tuple(discovery.DescribeTopicPartitionsRequestTopicRequest(name) for name in [*names[::-1], *names[:500]])
    request = discovery.DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=1_500)
    answer = world.ask_long(request, 0, at_least=40)
    assert [topic.name for topic in answer.topics] == names[:1_500]
    assert answer.next_cursor.topic_name == names[1_500]
    after = replace(request, cursor=discovery.DescribeTopicPartitionsRequestCursor(names[-1_000], 0))
    answer = world.ask_long(after, 0, at_least=40)
    assert [topic.name for topic in answer.topics] == names[-1_000:]
    assert answer.next_cursor is None


def configs_of(names: list[str], kind: int = 2) -> configs.DescribeConfigsRequest:
    rows = tuple(configs.DescribeConfigsResource(kind, name.removeprefix(f"{KEY}.")) for name in names)
    return configs.DescribeConfigsRequest(resources=rows, include_synonyms=True, include_documentation=True)


def test_configurations_of_many_topics(world: World) -> None:
    overrides: Any = world.broker.topic_configs._configs
    overrides[f"topics/{TOPICS[3]}"] = {"retention.ms": "77", "cleanup.policy": "compact"}
    answer = world.ask_long(configs_of([*TOPICS, *NOWHERE]), 4, at_least=150)
    some = world.ask_each([configs_of([name]) for name in (*TOPICS[:10], *NOWHERE[:10])], 4)
    assert [*answer.results[:10], *answer.results[1_000:1_010]] == [one.results[0] for one in some]
    by_name = {config.name: config for config in answer.results[3].configs}
    assert (by_name["retention.ms"].value, by_name["retention.ms"].synonyms[0].source) == ("77", 1)
    assert {config.name: config.value for config in answer.results[4].configs}["retention.ms"] != "77"


def test_a_broker_has_one_name_only(world: World) -> None:
    number = str(world.leader)
    names = [number, f"0{number}", f"{number:0>20}", f"{number:0>20}7", f"+{number}", f" {number}"]
    answer = world.ask(configs_of(names, kind=4), 4)[0]
    assert [result.error_code for result in answer.results] == [0, *[ErrorCode.INVALID_REQUEST] * 5]
    many = configs_of([f"{number:0>20}{n}" for n in range(1_000)], kind=4)
    assert all(result.error_code for result in world.ask_long(many, 4, at_least=50).results)


def test_changes_of_many_resources(world: World) -> None:
    make = configs.IncrementalAlterConfigsRequestAlterConfigsResource
    change = (configs.IncrementalAlterConfigsRequestAlterableConfig("retention.ms", 0, "5"),)
    names = [name.removeprefix(f"{KEY}.") for name in NOWHERE]
    request = configs.IncrementalAlterConfigsRequest(resources=tuple(make(2, name, change) for name in names))
    answer = world.ask_long(request, 1, at_least=100)
    assert [(r.resource_name, r.error_code) for r in answer.responses] == [(name, 3) for name in names]
    twice = configs.IncrementalAlterConfigsRequest(resources=(make(2, "a", change), make(2, "b"), make(2, "a")))
    assert [r.error_code for r in world.ask(twice, 1)[0].responses] == [42, 3, 42]


def test_more_configurations_than_there_are_in_one_resource(world: World) -> None:
    rows = tuple(configs.AlterConfigsRequestAlterableConfig(f"c{n}", "1") for n in range(5_000))
    resource = configs.AlterConfigsRequestAlterConfigsResource(2, "orders", rows)
    answer = world.ask_long(configs.AlterConfigsRequest(resources=(resource,)), 2, at_least=1)
    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST


def test_log_directories(world: World) -> None:
    everything = world.ask(log_dirs.DescribeLogDirsRequest(topics=None), 4)[0].results[0]
    assert (ORDERS, 2) in [(t.name, len(t.partitions)) for t in everything.topics]
    topic = log_dirs.DescribableLogDirTopic
    asked = tuple(topic(name, (0,)) for name in (*TOPICS, ORDERS, ORDERS))
    named = world.ask_long(log_dirs.DescribeLogDirsRequest(topics=asked), 4, at_least=20).results[0]
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in named.topics] == [(ORDERS, [0])]


def test_log_directories_of_ten_thousand_replicas(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = [world.broker.replicas.registry.get(ORDERS, index) for index in (0, 1)]
    monkeypatch.setattr(world.broker.replicas.registry, "partitions", lambda: iter(replicas * 200))
    answer = world.ask_long(log_dirs.DescribeLogDirsRequest(topics=None), 4, at_least=40)
    assert len(answer.results[0].topics[0].partitions) == 400


def test_coordinators_of_many_groups(world: World) -> None:
    keys = tuple(f"group-{n}" for n in range(1_000))
    answer = world.ask_long(discovery.FindCoordinatorRequest(coordinator_keys=keys), 4, at_least=100)
    some = world.ask_each([discovery.FindCoordinatorRequest(coordinator_keys=(key,)) for key in keys[:10]], 4)
    assert list(answer.coordinators[:10]) == [one.coordinators[0] for one in some]
    assert [found.key for found in answer.coordinators] == list(keys)


def listing(rows: list[tuple[str, int]]) -> fetch.ListOffsetsRequest:
    wanted = fetch.ListOffsetsPartition
    return fetch.ListOffsetsRequest(
        topics=tuple(fetch.ListOffsetsTopic(name, (wanted(partition_index=n, timestamp=-1),)) for name, n in rows)
    )


def test_offsets_of_many_partitions(world: World) -> None:
    rows = [*((name, 0) for name in TOPICS), (ORDERS, 0), (ORDERS, 1)]
    answer = world.ask_long(listing(rows), 7, at_least=100)
    some = world.ask_each([listing([row]) for row in rows[-5:]], 7)
    assert list(answer.topics[-5:]) == [one.topics[0] for one in some]
    assert [topic.partitions[0].error_code for topic in answer.topics[-3:]] == [ELSEWHERE, 0, ELSEWHERE]


@pytest.mark.parametrize("version", [0, 1, 7])
def test_a_partition_that_is_named_again_and_again_is_refused(world: World, version: int) -> None:
    rows = [(ORDERS, 1)] * 1_000 + [(ORDERS, 0)]
    answer = world.ask_long(listing(rows), version, at_least=100)
    codes = [topic.partitions[0].error_code for topic in answer.topics]
    assert codes == [*[ErrorCode.INVALID_REQUEST] * 1_000, ErrorCode.NONE]


def test_leader_epochs_of_many_partitions(world: World) -> None:
    def asked(rows: list[tuple[str, int]]) -> fetch.OffsetForLeaderEpochRequest:
        wanted = fetch.OffsetForLeaderPartition
        return fetch.OffsetForLeaderEpochRequest(
            topics=tuple(fetch.OffsetForLeaderTopic(name, (wanted(partition=n),)) for name, n in rows)
        )

    rows = [(name, 0) for name in TOPICS] + [(ORDERS, n % 3) for n in range(1_000)]
    answer = world.ask_long(asked(rows), 4, at_least=150)
    some = world.ask_each([asked([row]) for row in rows[-5:]], 4)
    assert list(answer.topics[-5:]) == [one.topics[0] for one in some]


def commit(rows: list[tuple[str, int]], group: str = GROUP) -> offsets.OffsetCommitRequest:
    topics: dict[str, list[Any]] = {}
    for name, n in rows:
        topics.setdefault(name, []).append(offsets.OffsetCommitRequestPartition(n, 100 + n))
    return offsets.OffsetCommitRequest(
        group, topics=tuple(offsets.OffsetCommitRequestTopic(name, tuple(found)) for name, found in topics.items())
    )


def fetched(answer: Any) -> dict[tuple[str, int], int]:
    (group,) = answer.groups
    assert group.error_code == 0
    return {(t.name, p.partition_index): p.committed_offset for t in group.topics for p in t.partitions}


def test_committed_offsets_by_the_thousand(world: World) -> None:
    """Committed, fetched by name and all of them, removed."""
    known = [(WIDE, n) for n in range(2_000)]
    unknown = [(name, 0) for name in NOWHERE[:200]]
    world.ask(commit(known[:1]), 8)  # the encoders of its records are made when the process first needs them
    answer = world.ask_long(commit([*known[:1_000], *unknown, *known[1_000:]]), 8, at_least=10, most=PORTION * 80 + 200)
    codes = {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}
    assert codes == {**dict.fromkeys(known, 0), **dict.fromkeys(unknown, 3)}
    expected = {key: 100 + key[1] for key in known}

    ask = offsets.OffsetFetchRequestGroup
    everything = offsets.OffsetFetchRequest(groups=(ask(group_id=GROUP, topics=None),))
    assert fetched(world.ask_long(everything, 8, at_least=100)) == expected
    topic = offsets.OffsetFetchRequestTopics(WIDE, tuple(range(2_500)))
    named = offsets.OffsetFetchRequest(groups=(ask(group_id=GROUP, topics=(topic,)),))
    found = fetched(world.ask_long(named, 8, at_least=100))
    assert found == {**expected, **{(WIDE, n): -1 for n in range(2_000, 2_500)}}
    old = offsets.OffsetFetchRequest(GROUP, topics=(offsets.OffsetFetchRequestTopic(WIDE, tuple(range(2_000))),))
    rows = world.ask_long(old, 7, at_least=100).topics[0].partitions
    assert [row.committed_offset for row in rows] == [100 + n for n in range(2_000)]

    wanted = tuple(offsets.OffsetDeleteRequestPartition(n) for n in range(2_600))
    gone = offsets.OffsetDeleteRequest(GROUP, topics=(offsets.OffsetDeleteRequestTopic(WIDE, wanted),))
    answer = world.ask_long(gone, 0, at_least=10, most=PORTION * 80 + 200)
    assert answer.error_code == 0
    assert [p.error_code for p in answer.topics[0].partitions] == [0] * 2_600
    assert fetched(world.ask(everything, 8)[0]) == {}


def test_many_groups(world: World) -> None:
    names = [f"{KEY}.group-{n}" for n in range(300)]
    mine = []
    for name in names:
        request = commit([(ORDERS, 0)], name)
        if world.ask(request, 8, is_long=False)[0].topics[0].partitions[0].error_code == 0:
            mine.append(name)
    assert len(mine) > 50
    answer = world.ask_long(groups.ListGroupsRequest(states_filter=("empty",) * 500), 4, at_least=10)
    assert {group.group_id for group in answer.groups} >= set(mine)
    described = world.ask_long(groups.DescribeGroupsRequest(groups=(*names, *names)), 5, at_least=30)
    some = world.ask_each([groups.DescribeGroupsRequest(groups=(name,)) for name in names[:5]], 5)
    assert list(described.groups[:5]) == [one.groups[0] for one in some]
    assert [group.group_id for group in described.groups] == names
    deleted = world.ask_long(groups.DeleteGroupsRequest(groups_names=tuple(names)), 2, at_least=100)
    assert {result.group_id for result in deleted.results if result.error_code == 0} == set(mine)


def test_very_many_groups_are_deleted_and_answered_in_steps(world: World) -> None:
    """Nobody knows them. One that is named twice is answered once, where it is named first."""
    names = tuple(f"{KEY}.unknown-{n}" for n in range(3_000))
    answer = world.ask_long(groups.DeleteGroupsRequest(groups_names=(*names, *names)), 2, at_least=1_500)
    some = world.ask_each([groups.DeleteGroupsRequest(groups_names=(name,)) for name in names[:5]], 2)
    assert list(answer.results[:5]) == [one.results[0] for one in some]
    assert [result.group_id for result in answer.results] == list(names)


class Decides:
    """A controller that does what it is asked for, but for the first topic, and is done at once."""

    async def _decide(self, topics: list[Any], *_: Any, **__: Any) -> list[TopicOutcome]:
        profile = sys.getprofile()
        sys.setprofile(None)  # what it does itself is not measured
        names = [topic if isinstance(topic, str) else topic.name for topic in topics]
        outcomes = [TopicOutcome(names[0], ErrorCode.POLICY_VIOLATION), *map(TopicOutcome, names[1:])]
        sys.setprofile(profile)
        return outcomes

    create_topics = create_partitions = delete_topics = _decide


TWICE = f"{KEY}.twice"
LET_GO_CALLS = 2 * MOST_CALLS
"""Cheaper ones: to read the attributes of what is let go of."""


@pytest.mark.parametrize(
    ("make", "version", "at_least", "repeated"),
    [
        (lambda *names: topics.CreateTopicsRequest(tuple(topics.CreatableTopic(n, 1, 1) for n in names)), 5, 1_500, 2),
        (
            lambda *names: topics.CreatePartitionsRequest(tuple(topics.CreatePartitionsTopic(n, 9) for n in names)),
            3,
            300,
            1,
        ),
        (lambda *names: topics.DeleteTopicsRequest(topics=tuple(map(topics.DeleteTopicState, names))), 6, 150, 2),
    ],
)
def test_what_the_controller_decides_about_many_topics_is_answered_in_steps(
    world: World, monkeypatch: pytest.MonkeyPatch, make: Any, version: int, at_least: int, repeated: int
) -> None:
    """From the first look at the request until everything that it became has been let go of. Deleting twice is no error."""
    monkeypatch.setattr(world.broker, "controller", Decides())
    answer = world.ask_long(make(*TOPICS, TWICE, *NOWHERE, TWICE), version, at_least, LET_GO_CALLS)
    rows = [
        (row.name, row.error_code)
        for row in getattr(answer, "topics", getattr(answer, "results", getattr(answer, "responses", ())))
    ]
    deletes = isinstance(answer, topics.DeleteTopicsResponse)
    twice = (TWICE, ErrorCode.NONE if deletes else ErrorCode.INVALID_REQUEST)
    first = (TOPICS[0], ErrorCode.POLICY_VIOLATION)
    expected = [first, *((name, 0) for name in TOPICS[1:]), twice, *((name, 0) for name in NOWHERE), twice]
    assert rows == expected[: len(expected) + repeated - 2]


def test_many_topics_are_refused_in_steps_by_a_broker_that_is_not_the_controller(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere:
        async def create_partitions(self, *_: Any, **__: Any) -> None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "it is another")

    monkeypatch.setattr(world.broker, "controller", Elsewhere())
    wanted = tuple(topics.CreatePartitionsTopic(name, 9) for name in TOPICS)
    answer = world.ask_long(topics.CreatePartitionsRequest(wanted), 3, 150, LET_GO_CALLS)
    assert [row.name for row in answer.results] == TOPICS
    assert {(row.error_code, row.error_message) for row in answer.results} == {
        (ErrorCode.NOT_CONTROLLER, "it is another")
    }


@pytest.mark.parametrize(
    "heavy",
    [
        {"configs": tuple(topics.CreatableTopicConfig("retention.ms", str(n)) for n in range(5_000))},
        {"assignments": tuple(topics.CreatableReplicaAssignment(n, (1, 2)) for n in range(5_000))},
    ],
)
def test_one_topic_that_says_very_much_is_looked_at_in_steps(
    world: World, monkeypatch: pytest.MonkeyPatch, heavy: dict[str, Any]
) -> None:
    monkeypatch.setattr(world.broker, "controller", Decides())
    numbers = (-1, -1) if "assignments" in heavy else (1, 1)
    wanted = topics.CreatableTopic(f"{KEY}.heavy", *numbers, **heavy)
    world.ask_long(topics.CreateTopicsRequest((wanted,)), 5, at_least=60)


def test_many_members_leave(world: World) -> None:
    """The group is led by nobody here or known by nobody: each name has its answer either way, in order."""
    many = tuple(groups.MemberIdentity(f"member-{n}") for n in range(3_000))
    answer, gauge = world.ask(groups.LeaveGroupRequest(GROUP, members=many), 5)
    assert answer.error_code == 0
    assert [row.member_id for row in answer.members] == [row.member_id for row in many]
    assert {row.error_code for row in answer.members} == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert gauge.pauses >= 60
    assert gauge.most <= MOST_CALLS * 10  # one portion of members is an event of the group


def test_producers_of_many_partitions(world: World) -> None:
    make = produce.DescribeProducersRequestTopicRequest
    request = produce.DescribeProducersRequest(topics=(make(ORDERS, (*range(1_000), 0, 1)), make(ORDERS, (1, 5))))
    answer = world.ask_long(request, 0, at_least=100)
    rows = answer.topics[0].partitions
    assert [row.partition_index for row in rows] == list(range(1_000))
    assert [row.error_code for row in rows[:3]] == [0, 0, 3]  # a follower answers as well


def test_records_deleted_from_many_partitions(world: World) -> None:
    """None of ours among them: what a deletion costs the log's files is theirs."""
    rows = tuple(fetch.DeleteRecordsPartition(n, 0) for n in range(1, 1_001))
    request = fetch.DeleteRecordsRequest(topics=(fetch.DeleteRecordsTopic(ORDERS, rows),), timeout_ms=100)
    answer = world.ask_long(request, 2, at_least=100)
    codes = [(p.partition_index, p.error_code) for p in answer.topics[0].partitions]
    assert codes == [(1, ELSEWHERE), *((n, 3) for n in range(2, 1_001))]
    ours = fetch.DeleteRecordsRequest(
        topics=(fetch.DeleteRecordsTopic(ORDERS, (fetch.DeleteRecordsPartition(0, 0), *rows)),), timeout_ms=5_000
    )
    assert world.ask(ours, 2)[0].topics[0].partitions[0].error_code == 0


def test_a_partition_named_very_often_is_waited_for_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []

    def counted(*arguments: Any) -> None:
        waits.append(arguments)
        when_on_disk(*arguments)

    monkeypatch.setattr(delete_records, "when_on_disk", counted)
    beyond = fetch.DeleteRecordsPartition(0, 10**6)
    rows = (*[fetch.DeleteRecordsPartition(0, 0)] * 2_000, beyond, fetch.DeleteRecordsPartition(0, 0))
    request = fetch.DeleteRecordsRequest(topics=(fetch.DeleteRecordsTopic(ORDERS, rows),), timeout_ms=5_000)
    answer = world.ask(request, 2)[0].topics[0].partitions
    assert len(waits) == 1
    assert {row.error_code for row in answer[:2_000]} == {ErrorCode.NONE}
    assert [row.error_code for row in answer[2_000:]] == [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NONE]
    assert {row.low_watermark for row in answer} == {-1, answer[0].low_watermark}


def test_records_deleted_from_many_topics(world: World) -> None:
    wanted = tuple(fetch.DeleteRecordsTopic(name, (fetch.DeleteRecordsPartition(0, 0),)) for name in NOWHERE)
    answer = world.ask_long(fetch.DeleteRecordsRequest(topics=wanted, timeout_ms=100), 2, at_least=100)
    assert [topic.name for topic in answer.topics] == NOWHERE
    assert {topic.partitions[0].error_code for topic in answer.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def call(world: World, request: Any, version: int) -> Any:
    answer = world.cluster.client.call(world.leader, request, version)
    world.cluster.until(lambda: answer.done)
    return answer.result()


@pytest.mark.parametrize(("batches", "kib", "at_once"), [(8, 512, 1024), (5, 900, 900), (2, 512, 1024)])
def test_of_megabytes_of_records_one_is_written_in_a_turn(
    world: World, monkeypatch: pytest.MonkeyPatch, batches: int, kib: int, at_once: int
) -> None:
    """On the wire, since the writing is at the end of a turn."""
    appending, loop = world.broker.replicas.appending, world.broker.doors.loop
    before = world.broker.replicas.registry.get(ORDERS, 0).log.end_offset
    by_turn: dict[int, int] = {}
    append = type(appending).append

    def spy(self: Any, partition: Any, records: Any, *of: Any, **how: Any) -> Any:
        by_turn[loop.turn_number] = by_turn.get(loop.turn_number, 0) + len(records)
        return append(self, partition, records, *of, **how)

    monkeypatch.setattr(type(appending), "append", spy)
    batch = build_batch([Record(None, bytes(kib * 1024 - 100))], now_ms=1)
    data = tuple(produce.PartitionProduceData(0, batch) for _ in range(batches))
    topics = (produce.TopicProduceData("orders", data),)
    rows = call(world, produce.ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=topics), 9).responses[0]
    assert [row.base_offset for row in rows.partition_responses] == list(range(before, before + batches))
    assert sum(by_turn.values()) == batches * len(batch)
    assert at_once * 1000 < max(by_turn.values()) <= at_once * 1024


def test_not_all_batches_of_a_request_are_taken_in_one_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are counted here, since the clock of a simulation stands still in a turn; a slice of a broker has far fewer."""
    appending, loop = world.broker.replicas.appending, world.broker.doors.loop
    turns: list[int] = []
    append = type(appending).append

    def spy(self: Any, *of: Any, **how: Any) -> Any:
        turns.append(loop.turn_number)
        return append(self, *of, **how)

    monkeypatch.setattr(type(appending), "append", spy)
    batch = build_batch([Record(b"k", b"v")], now_ms=1)
    data = (produce.PartitionProduceData(0, batch),) * 200
    request = produce.ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(produce.TopicProduceData("orders", data),))
    assert {row.error_code for row in call(world, request, 9).responses[0].partition_responses} == {0}
    assert len(turns) == 200
    assert max(Counter(turns).values()) <= STEPS_PER_SLICE * (STEP_US // _PARTITION_US + 1)


@pytest.mark.parametrize("batches", [600, 1])
def test_who_sent_a_long_request_pays_for_the_ends_of_the_turns_that_write_it(
    world: World, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    """It came in a turn before them. Whoever happens to receive something in these turns is not charged for it."""
    appending, loop = world.broker.replicas.appending, world.broker.doors.loop
    written: Counter[tuple[int, str]] = Counter()
    turns: Counter[int] = Counter()
    append = type(appending).append

    def spy(self: Any, *of: Any, **how: Any) -> Any:
        turns[loop.turn_number] += 1
        return append(self, *of, **how)

    def will_write(who: str, size: int) -> None:
        written[loop.turn_number, who] += size

    monkeypatch.setattr(type(appending), "append", spy)
    monkeypatch.setattr(loop, "will_write", will_write)
    batch = build_batch([Record(b"k", b"v")], now_ms=1)
    data = (produce.PartitionProduceData(0, batch),) * batches
    request = produce.ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(produce.TopicProduceData("orders", data),))
    assert {row.error_code for row in call(world, request, 9).responses[0].partition_responses} == {0}
    assert (len(turns) > 1) == (batches > 1)
    expected = {(turn, KEY): count * len(batch) for turn, count in turns.items()}
    assert written == (expected if batches > 1 else {})


@pytest.mark.parametrize("acks", [1, -1])
def test_batches_for_many_partitions(world: World, acks: int) -> None:
    """On the wire, since the turns commit what is staged in them."""
    before = world.broker.replicas.registry.get(ORDERS, 0).log.end_offset
    batch = build_batch([Record(b"k", b"v")], now_ms=1)
    data = tuple(produce.PartitionProduceData(0 if n % 3 else 900 + n, batch) for n in range(600))
    request = produce.ProduceRequest(
        acks=acks, timeout_ms=5_000, topic_data=(produce.TopicProduceData("orders", data),)
    )
    rows = call(world, request, 9).responses[0].partition_responses
    assert [row.index for row in rows] == [row.index for row in data]
    taken = [row.base_offset for row in rows if not row.error_code]
    assert taken == list(range(before, before + 400))
    assert {row.error_code for row in rows if row.index} == {3}


def test_a_fetch_of_many_partitions(world: World) -> None:
    batch = build_batch([Record(b"k", b"v" * 50)], now_ms=1)
    data = tuple(produce.PartitionProduceData(n, batch) for n in range(2))
    request = produce.ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(produce.TopicProduceData("orders", data),))
    call(world, request, 9)
    wanted = tuple(fetch.FetchPartition(partition=n % 700, partition_max_bytes=1_000) for n in range(1_000))
    request = fetch.FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=10**6,
        topics=(fetch.FetchTopic(topic="orders", partitions=wanted),),
    )
    for version in (3, 4, 12):
        rows = call(world, request, version).responses[0].partitions
        assert [row.partition_index for row in rows] == list(range(700))
        assert [rows[0].error_code, rows[2].error_code] == [0, 3]
        assert rows[0].records


@pytest.mark.parametrize("version", [0, 3, 4, 12])
def test_the_answer_to_a_fetch_of_many_partitions_is_encoded_in_steps_in_old_versions_too(
    world: World, version: int
) -> None:
    wanted = tuple(fetch.FetchPartition(partition=n, partition_max_bytes=1_000) for n in range(100, 2_100))
    topics = (fetch.FetchTopic(topic=ORDERS, partitions=wanted),)
    request = fetch.FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=10**6, topics=topics)
    answer = world.ask_long(request, version, at_least=20, most=5_000)
    assert sum(len(part) for part in answer.parts) >= 2_000 * 18


def test_a_fetch_of_many_partitions_waits_and_is_woken(world: World) -> None:
    leaders = world.broker.metadata.partitions(QUIET)
    mine = [n for n, partition in leaders.items() if partition.leader == world.leader]
    wanted = tuple(fetch.FetchPartition(partition=n, partition_max_bytes=1_000) for n in mine for _ in range(4))
    request = fetch.FetchRequest(
        replica_id=-1,
        max_wait_ms=5_000,
        min_bytes=1,
        max_bytes=10**6,
        topics=(fetch.FetchTopic(topic="quiet", partitions=wanted),),
    )
    assert len(wanted) > 256
    answer = world.cluster.client.call(world.leader, request, 12)
    world.cluster.network.run_for(0.5)
    assert not answer.done
    data = (produce.PartitionProduceData(mine[-1], build_batch([Record(b"k", b"v")], now_ms=1)),)
    world.cluster.client.call(
        world.leader,
        produce.ProduceRequest(acks=1, timeout_ms=5_000, topic_data=(produce.TopicProduceData("quiet", data),)),
        9,
    )
    world.cluster.network.run_for(0.5)
    rows = {row.partition_index: row for row in answer.result().responses[0].partitions}
    assert rows[mine[-1]].records
    assert len(rows) == len(mine)


# --- what brokers and operators ask for -------------------------------------------------------------------------------


def test_moves_between_directories(world: World) -> None:
    topics = tuple(log_dirs.AlterReplicaLogDirTopic(name, (0, 1)) for name in [*TOPICS, *NOWHERE])
    request = log_dirs.AlterReplicaLogDirsRequest((log_dirs.AlterReplicaLogDir("/nowhere", topics),))
    answer = world.ask_long(request, 2, at_least=100)
    assert [topic.topic_name for topic in answer.results] == [*TOPICS, *NOWHERE]
    assert {row.error_code for topic in answer.results for row in topic.partitions} == {ErrorCode.LOG_DIR_NOT_FOUND}


def test_elections_where_no_controller_is(world: World) -> None:
    topics = tuple(reassignment.TopicPartitions(name, (0, 1)) for name in [*TOPICS, *NOWHERE])
    other = next(broker for broker in world.cluster.brokers.values() if not broker.controller.is_active)
    before, world.broker = world.broker, other
    try:
        answer = world.ask_long(reassignment.ElectLeadersRequest(0, topics, 1_000), 1, at_least=50)
    finally:
        world.broker = before
    assert [topic.topic for topic in answer.replica_election_results] == [*TOPICS, *NOWHERE]
    codes = {row.error_code for topic in answer.replica_election_results for row in topic.partition_result}
    assert codes == {ErrorCode.NOT_CONTROLLER}


def test_partitions_for_many_transactions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestContext, "refusal", lambda *_: ErrorCode.NONE)  # a broker asks
    topics = (transactions.AddPartitionsToTxnTopic(ORDERS, (0,)),)
    asked = tuple(
        transactions.AddPartitionsToTxnTransaction(f"{KEY}.none-{number}", number, 0, True, topics)
        for number in range(1_000)
    )
    answer = world.ask_long(transactions.AddPartitionsToTxnRequest(asked), 4, at_least=100, most=3 * MOST_CALLS)
    assert [one.transactional_id for one in answer.results_by_transaction] == [one.transactional_id for one in asked]


def test_markers_for_many_partitions(world: World) -> None:
    topics = tuple(transactions.WritableTxnMarkerTopic(name, (0, 1)) for name in NOWHERE)
    request = transactions.WriteTxnMarkersRequest((transactions.WritableTxnMarker(1, 0, False, topics, 0),))
    answer = world.ask_long(request, 1, at_least=100)
    assert [topic.name for topic in answer.markers[0].topics] == NOWHERE
    codes = {row.error_code for topic in answer.markers[0].topics for row in topic.partitions}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_assignments_of_more_members_than_there_are(world: World) -> None:
    given = tuple(groups.SyncGroupRequestAssignment(f"member-{number}", b"all") for number in range(5_000))
    request = groups.SyncGroupRequest(f"{KEY}.nobody", 1, "member-0", assignments=given)
    assert world.ask_long(request, 3, at_least=50).error_code


def test_groups_in_states_that_do_not_exist(world: World) -> None:
    states = tuple(f"State{number}" for number in range(5_000))
    assert world.ask_long(groups.ListGroupsRequest(states_filter=states), 4, at_least=50).groups == ()
