"""A word of the controller about many partitions is obeyed in steps, and nothing overtakes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from dataplane.cluster.in_order import InOrder, at_once
from dataplane.cluster.metadata import Metadata
from dataplane.handlers.context import RequestContext
from dataplane.handlers.internal.replication import handle_leader_and_isr, handle_stop_replica
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from dataplane.records.steps import Steps
from dataplane.slices import CONTROLLER as WORDS
from dataplane.slices import INTERNAL
from dataplane.tasks import Future, Task, resolved
from tests.dataplane.replication.cluster import CONTROLLER, TOPIC, ReplicatedCluster

COUNT = 40


class World:
    """Broker 1 of a cluster, whose slices are made when the test says so."""

    def __init__(self) -> None:
        self.cluster = ReplicatedCluster()
        self.replicas = self.cluster[1].replicas
        self.steps: list[tuple[Steps[Any], Future[Any]]] = []
        self.cluster.create()
        broker = SimpleNamespace(
            replicas=self.replicas,
            metadata=SimpleNamespace(words=InOrder(), is_overtaken=Metadata().is_overtaken),
            slices=SimpleNamespace(run=self._run),
            topic_configs=SimpleNamespace(refresh=self._refresh),
        )
        self.ctx: Any = SimpleNamespace(broker=broker, owner=WORDS, is_long=False, session=SimpleNamespace(number=1))
        self.refreshing: Future[None] = resolved(None)
        self.refreshed: list[str] = []

    def _refresh(self, topics: Iterable[str]) -> Future[None]:
        self.refreshed += topics
        return self.refreshing

    def on_connection(self, number: int) -> Any:
        """What comes on another connection of the controller's; a later one has a larger number."""
        return SimpleNamespace(**vars(self.ctx) | {"session": SimpleNamespace(number=number)})

    def _run(self, owner: str, steps: Steps[Any]) -> Future[Any]:
        assert owner == WORDS
        future: Future[Any] = Future()
        self.steps.append((steps, future))
        return future

    def step(self) -> None:
        steps, future = self.steps[0]
        try:
            next(steps)
        except StopIteration as stop:
            self.steps.pop(0)
            future.resolve(stop.value)

    def until(self, condition: Callable[[], bool]) -> int:
        count = 0
        while not condition():
            self.step()
            count += 1
        return count

    def hosted(self) -> int:
        return sum(self.replicas.registry.get(TOPIC, index) is not None for index in range(COUNT))

    def roles(self, count: int = COUNT, **more: Any) -> LeaderAndIsrRequest:
        request = self.cluster.leader_and_isr(self.cluster[1])
        (topic,) = request.topic_states
        states = tuple(
            replace(topic.partition_states[0], partition_index=index, leader_epoch=5) for index in range(count)
        )
        return replace(request, topic_states=(replace(topic, partition_states=states),), **more)

    def tell_metadata(self) -> None:
        """As a controller does before it has something removed (`leadership._is_late`)."""

        def word() -> Steps[None]:
            self.replicas.metadata.version += 1
            yield None

        self.ctx.broker.metadata.words.add(word(), at_once)

    def removal(self, index: int, **more: Any) -> StopReplicaRequest:
        row = StopReplicaPartitionState(partition_index=index, leader_epoch=-2, delete_partition=True)
        topic = StopReplicaTopicState(topic_name=TOPIC, partition_states=(row,))
        return replace(StopReplicaRequest(controller_id=CONTROLLER, controller_epoch=1, topic_states=(topic,)), **more)


def test_roles_of_many_partitions_are_taken_over_in_steps_of_a_few():
    world = World()
    answer = Task(handle_leader_and_isr(world.ctx, world.roles()))
    seen = [world.hosted()]
    while not answer.done:
        world.step()
        seen.append(world.hosted())
    assert seen[-1] == COUNT
    assert max(after - before for before, after in pairwise(seen)) == 1  # each is a new log
    assert {error.error_code for error in answer.result().topics[0].partition_errors} == {ErrorCode.NONE}
    again = Task(handle_leader_and_isr(world.ctx, world.roles()))
    assert 1 < world.until(lambda: again.done) < len(seen)


def test_the_words_of_a_controller_have_slices_of_their_own():
    internal: Any = SimpleNamespace(account=INTERNAL)
    words = {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA}
    for key in (*words, ApiKey.CREATE_TOPICS, ApiKey.FETCH, ApiKey.ALTER_PARTITION):
        ctx = RequestContext(SimpleNamespace(), internal, key, 0, 0, None, 0)  # type: ignore[arg-type]
        assert ctx.owner == (WORDS if key in words else INTERNAL)


def test_what_comes_behind_waits_for_the_end():
    world = World()
    roles = Task(handle_leader_and_isr(world.ctx, world.roles()))
    world.tell_metadata()
    removal = Task(handle_stop_replica(world.ctx, world.removal(COUNT - 1)))
    world.until(lambda: world.hosted() > COUNT // 2)
    assert not removal.done
    world.until(lambda: roles.done)
    assert removal.result().error_code == ErrorCode.NONE
    assert world.hosted() == COUNT - 1


def test_a_newer_controller_waits_as_well_and_then_the_older_one_is_refused():
    world = World()
    first = Task(handle_leader_and_isr(world.ctx, world.roles()))
    world.until(lambda: world.hosted() > COUNT // 2)
    newer = Task(handle_leader_and_isr(world.ctx, world.roles(1, controller_epoch=2)))
    older = Task(handle_stop_replica(world.ctx, world.removal(0)))
    assert not newer.done
    world.until(lambda: first.done)
    assert first.result().error_code == newer.result().error_code == ErrorCode.NONE
    assert older.result().error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert world.hosted() == COUNT


def test_a_short_word_is_obeyed_at_once():
    world = World()
    assert Task(handle_leader_and_isr(world.ctx, world.roles(2))).done
    world.tell_metadata()
    assert Task(handle_stop_replica(world.ctx, world.removal(1))).done
    assert world.hosted() == 1


def test_what_is_refused_anyway_has_nothing_read_for_it():
    world = World()
    world.replicas.metadata.saw_controller(CONTROLLER, 7)
    answer = Task(handle_leader_and_isr(world.ctx, world.roles(controller_epoch=6)))
    assert answer.result().error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert world.refreshed == []


def new_topic(world: World, name: str, replicas: tuple[int, ...]) -> LeaderAndIsrTopicState:
    (topic,) = world.roles(1).topic_states
    state = replace(topic.partition_states[0], replicas=replicas)
    return replace(topic, topic_name=name, topic_id=UUID(int=7), partition_states=(state,))


def test_only_new_topics_with_a_replica_here_are_read_beforehand():
    world = World()
    topics = new_topic(world, "elsewhere", (2, 3)), new_topic(world, "here", (1, 2)), *world.roles(1).topic_states
    Task(handle_leader_and_isr(world.ctx, replace(world.roles(1), topic_states=topics)))
    assert world.refreshed == ["here"]


def test_topics_of_a_long_word_are_looked_through_in_steps():
    world = World()
    world.ctx.is_long = True
    word = replace(world.roles(1), topic_states=(new_topic(world, "here", (1, 2)),))
    answer = Task(handle_leader_and_isr(world.ctx, word))
    assert world.refreshed == []
    world.until(lambda: answer.done)
    assert world.refreshed == ["here"]


def test_a_removal_that_lay_in_an_earlier_connection_is_late():
    """Since then the controller has given the replica back: by now it may hold what nobody else does."""
    world = World()
    Task(handle_leader_and_isr(world.on_connection(2), world.roles(2)))
    world.tell_metadata()
    late = Task(handle_stop_replica(world.on_connection(1), world.removal(1)))
    assert late.result().error_code == ErrorCode.STALE_BROKER_EPOCH
    assert world.hosted() == 2


def test_roles_that_lay_in_an_earlier_connection_are_late():
    world = World()
    Task(handle_leader_and_isr(world.on_connection(2), world.roles(1)))
    late = Task(handle_leader_and_isr(world.on_connection(1), world.roles(3)))
    assert late.result().error_code == ErrorCode.STALE_BROKER_EPOCH
    assert world.hosted() == 1


def test_roles_are_late_as_well_if_they_are_overtaken_while_configuration_is_read():
    world = World()
    world.refreshing = Future()
    roles = world.roles(1)
    (topic,) = roles.topic_states
    other = replace(
        topic, topic_name="aaaabbbb.other", topic_id=UUID(int=7)
    )  # new here: its configuration is read first
    first = Task(handle_leader_and_isr(world.on_connection(1), replace(roles, topic_states=(other,))))
    assert (first.done, world.refreshed) == (False, ["aaaabbbb.other"])
    assert Task(handle_leader_and_isr(world.on_connection(2), roles)).result().error_code == ErrorCode.NONE
    world.refreshing.resolve(None)
    assert first.result().error_code == ErrorCode.STALE_BROKER_EPOCH
    assert not world.replicas.registry.hosts_topic("aaaabbbb.other")


def test_another_controller_begins_with_connections_of_its_own():
    world = World()
    Task(handle_leader_and_isr(world.on_connection(9), world.roles(1)))
    newer = Task(handle_leader_and_isr(world.on_connection(4), world.roles(2, controller_id=2, controller_epoch=2)))
    assert newer.result().error_code == ErrorCode.NONE
    older = Task(handle_leader_and_isr(world.on_connection(10), world.roles(3)))
    assert older.result().error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    again = Task(handle_leader_and_isr(world.on_connection(4), world.roles(3, controller_id=2, controller_epoch=2)))
    assert again.result().error_code == ErrorCode.NONE
    assert world.hosted() == 3
