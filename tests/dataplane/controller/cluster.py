"""A cluster for tests of the controller: real controllers on the in-memory ZooKeeper, brokers that only answer.

    cluster = ControlledCluster(brokers=3)
    cluster.create("orders", partitions=2, factor=3)
    cluster.kill(1)
    cluster.run(5)
    cluster.state("orders", 0).leader

A fake broker keeps what it was told (metadata, leaderships, removals) and refuses stale epochs, as the real one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from dataplane.cluster.membership import Membership
from dataplane.cluster.metadata import Metadata
from dataplane.cluster.paths import BrokerAddress, PartitionState, parse_state, parse_topic, state_path, topic_path
from dataplane.controller.controller import Controller, MorePartitions, NewTopic, Rules, TopicOutcome
from dataplane.doors import Doors
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import control
from dataplane.tasks import Future, Task
from tests.simulation.virtual_time import VirtualTime
from tests.simulation.zookeeper import ZooKeeperServer

SESSION_S = 2.0


class FakeBroker:
    """One incarnation of a broker: registration, controller candidate, and what it was told."""

    def __init__(self, cluster: ControlledCluster, broker_id: int, whole_since: int | None = None) -> None:
        self.id = broker_id
        self.cluster = cluster
        self.alive = True
        self.metadata = Metadata()
        self.leaderships: dict[tuple[str, int], control.LeaderAndIsrPartitionState] = {}
        self.removed: list[tuple[str, int]] = []
        self.requests: list[Any] = []
        self.bad_disk: dict[tuple[str, int], None] = {}
        self.deaf = False  # it is registered and answers nothing
        self.zookeeper = cluster.server.connect(SESSION_S)
        doors = Doors(cluster.time, None, self.zookeeper, None, Random(broker_id))  # type: ignore[arg-type]
        self.membership = Membership(
            doors,
            BrokerAddress(broker_id, "127.0.0.1", 20010 + broker_id, cluster.racks.get(broker_id)),
            SESSION_S,
            lambda: whole_since,
        )
        self.controller = Controller(doors, broker_id, self._call, cluster.rules)
        Task(self._start())

    async def _start(self) -> None:
        await self.membership.start()
        self.controller.start()

    def _call(self, broker_id: int, request: Any, version: int, *, is_long: bool) -> Future[Any]:
        """Over the wire: encoded, delayed, answered by whoever has this id then."""
        answer: Future[Any] = Future()
        wire = encode(request, version)

        def arrive() -> None:
            target = self.cluster.brokers.get(broker_id)
            if target is None or not target.alive or target.deaf or not self.alive:
                self.cluster.time.call_later(0.01, lambda: answer.fail(OSError("no answer")))
                return
            response = target.handle(decode(type(request), version, wire))
            back = encode(response, version)
            self.cluster.time.call_later(
                self.cluster.delay(), lambda: answer.resolve(decode(type(response), version, back))
            )

        self.cluster.time.call_later(self.cluster.delay(), arrive)
        return answer

    def handle(self, request: Any) -> Any:
        self.requests.append(request)
        stale = self._refusal(request)
        match request:
            case control.LeaderAndIsrRequest():
                return control.LeaderAndIsrResponse(stale, topics=() if stale else self._lead(request))
            case control.UpdateMetadataRequest():
                return control.UpdateMetadataResponse(stale or self.metadata.apply(request))
            case control.StopReplicaRequest():
                if not stale:
                    for topic in request.topic_states:
                        for partition in topic.partition_states:
                            self.removed.append((topic.topic_name, partition.partition_index))
                            self.leaderships.pop((topic.topic_name, partition.partition_index), None)
                return control.StopReplicaResponse(stale)
        raise AssertionError(request)

    def _refusal(self, request: Any) -> ErrorCode:
        if not self.membership.accepts(request.broker_epoch):
            return ErrorCode.STALE_BROKER_EPOCH
        if not self.metadata.saw_controller(request.controller_id, request.controller_epoch):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE

    def _lead(self, request: control.LeaderAndIsrRequest) -> tuple[control.LeaderAndIsrTopicError, ...]:
        answers = []
        for topic in request.topic_states:
            errors = []
            for state in topic.partition_states:
                key = (topic.topic_name, state.partition_index)
                bad = key in self.bad_disk
                if not bad and self._is_news(key, state):
                    self.leaderships[key] = state
                code = ErrorCode.KAFKA_STORAGE_ERROR if bad else ErrorCode.NONE
                errors.append(
                    control.LeaderAndIsrPartitionError(partition_index=state.partition_index, error_code=code)
                )
            answers.append(control.LeaderAndIsrTopicError(topic.topic_id, tuple(errors)))
        return tuple(answers)

    def _is_news(self, key: tuple[str, int], state: control.LeaderAndIsrPartitionState) -> bool:
        known = self.leaderships.get(key)
        return known is None or state.partition_epoch >= known.partition_epoch


class ControlledCluster:
    """Brokers, ZooKeeper and time."""

    def __init__(
        self, brokers: int = 3, seed: int = 1, rebalance_s: float = 5.0, racks: Mapping[int, str] | None = None
    ) -> None:
        self.racks = dict(racks or {})
        self.time = VirtualTime()
        self.random = Random(seed)
        self.enough = 1
        self.rules = Rules(rebalance_interval_s=rebalance_s, min_insync_replicas=lambda _topic: self.enough)
        self.server = ZooKeeperServer(self.time.call_later, self.delay)
        self.brokers: dict[int, FakeBroker] = {}
        for broker_id in range(1, brokers + 1):
            self.start(broker_id)
        self.time.until(lambda: all(broker.metadata.alive() == list(self.brokers) for broker in self.brokers.values()))

    def delay(self) -> float:
        return self.random.uniform(0.0005, 0.003)

    # --- doing --------------------------------------------------------------------------------------------------------

    def start(self, broker_id: int, whole_since: int | None = None) -> FakeBroker:
        self.brokers[broker_id] = FakeBroker(self, broker_id, whole_since)
        return self.brokers[broker_id]

    def kill(self, broker_id: int) -> FakeBroker:
        """SIGKILL: no goodbye; the session ends by its timeout."""
        broker = self.brokers[broker_id]
        broker.alive = False
        broker.zookeeper.kill()
        broker.controller.stop()
        broker.membership.stop()
        return broker

    def run(self, seconds: float) -> None:
        self.time.run(seconds)

    def wait(self, future: Future[Any]) -> Any:
        return self.time.wait(future)

    def create(self, name: str, partitions: int = 1, factor: int = 3, **options: Any) -> TopicOutcome:
        topic = NewTopic(name, partitions, factor, **options)
        return self.wait(Task(self.controller().controller.create_topics([topic])))[0]

    def grow(self, name: str, count: int, **options: Any) -> TopicOutcome:
        more = MorePartitions(name, count, **options)
        return self.wait(Task(self.controller().controller.create_partitions([more])))[0]

    def create_on(self, name: str, *replicas: int) -> TopicOutcome:
        """One partition on these brokers."""
        return self.create(name, assignment={0: replicas})

    def delete(self, name: str, timeout_s: float = 10.0) -> TopicOutcome:
        return self.wait(Task(self.controller().controller.delete_topics([name], timeout_s)))[0]

    def propose(self, leader: int, topic: str, isr: list[int], **overrides: Any) -> tuple[int, Any]:
        """AlterPartition by a leader: (error of the whole, answer for the partition)."""
        state = self.state(topic, 0)
        epochs = overrides.pop("epochs", {})
        request = control.AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=overrides.pop("broker_epoch", self.epoch(leader)),
            topics=(
                control.AlterPartitionRequestTopicData(
                    topic_id=parse_topic(self.data(topic_path(topic))).topic_id,
                    partitions=(
                        control.AlterPartitionRequestPartitionData(
                            **{
                                "partition_index": 0,
                                "leader_epoch": state.leader_epoch,
                                "partition_epoch": state.partition_epoch,
                                "new_isr_with_epochs": tuple(
                                    control.BrokerState(b, epochs.get(b, self.epoch(b))) for b in isr
                                ),
                                **overrides,
                            }
                        ),
                    ),
                ),
            ),
        )
        response = self.wait(Task(self.controller().controller.alter_partition(request, 3)))
        return response.error_code, response.topics[0].partitions[0] if response.topics else None

    # --- looking ------------------------------------------------------------------------------------------------------

    def controller(self) -> FakeBroker:
        """The broker that is the controller; there is exactly one, sooner or later."""

        def active() -> list[FakeBroker]:
            return [broker for broker in self.brokers.values() if broker.alive and broker.controller.is_active]

        self.time.until(lambda: len(active()) == 1)
        return active()[0]

    def data(self, path: str) -> bytes:
        return self.server.tree.node(path).data

    def exists(self, path: str) -> bool:
        return self.server.tree.find(path) is not None

    def state(self, topic: str, index: int) -> PartitionState:
        node = self.server.tree.node(state_path(topic, index))
        return parse_state(node.data, node.version)

    def epoch(self, broker_id: int) -> int:
        """As registered."""
        return self.brokers[broker_id].membership.broker_epoch

    def others(self, broker_id: int) -> list[FakeBroker]:
        return [broker for broker in self.brokers.values() if broker.alive and broker.id != broker_id]
