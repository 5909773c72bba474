"""Brokers that have nothing but `Replicas`, on the virtual network, and a controller that is told what to decide.

The controller's own broker answers AlterPartition by compare-and-set; leaders are elected by the test. Produce and
Fetch go through the same methods that the broker's handlers call; Fetch and ListOffsets between brokers through the
codec.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from dataplane.config import BrokerConfig, Settings
from dataplane.doors import Doors
from dataplane.peers.outbound import Peers
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from dataplane.records.batch import Record, build_batch, read_records
from dataplane.records.control import Marker, build_marker
from dataplane.replication.appending import Appended
from dataplane.replication.isr import ALTER_PARTITION_VERSION
from dataplane.replication.leadership import apply_leader_and_isr
from dataplane.replication.manager import Replicas
from dataplane.replication.serving.follower_fetches import ReplicaFetches
from dataplane.storage.log import lookup
from dataplane.storage.manager import LogManager
from dataplane.tasks import Future
from tests.support.broker_server import BrokerServer
from tests.support.memory_files import ImmediateBackground, MemoryFiles
from tests.support.virtual_loop import VirtualNetwork

if TYPE_CHECKING:
    from dataplane.protocol.messages.fetch import FetchResponse
    from dataplane.replication.replica.partition import Partition

SECRET = "s3cret"
TOPIC = "aaaabbbb.orders"
TOPIC_ID = UUID(int=7)
CONTROLLER = 100
SETTINGS = Settings(
    replica_lag_time_max_ms=2_000,
    replica_fetch_wait_max_ms=200,
    transaction_partition_verification_enable=False,  # nobody coordinates transactions here
)


@dataclass
class State:
    """What ZooKeeper would hold of one partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int = 0


class Overrides:
    """Topic configurations."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self._callbacks = []

    def get(self, topic):
        return self.configs.get(topic, {})

    def on_change(self, callback):
        self._callbacks.append(callback)

    def set(self, topic, configs):
        """All brokers hear of it."""
        self.configs[topic] = configs
        for callback in self._callbacks:
            callback(topic)


class KnownCluster:
    """What `Replicas` asks of the broker's metadata."""

    def __init__(self) -> None:
        self.brokers: dict[int, object] = {}
        self.controller_id = CONTROLLER
        self.controller_epoch = 1
        self.version = 0

    def partition(self, topic, index):
        return None

    def topic_id(self, topic):
        return None

    def was_deleted(self, topic_id):
        return False

    def saw_controller(self, controller_id, epoch):
        if epoch < self.controller_epoch:
            return False
        self.controller_epoch = epoch
        return True


class Controller:
    """Holds the states; decides about ISRs by compare-and-set. `refuse` makes it answer an error instead."""

    def __init__(self, network: VirtualNetwork) -> None:
        self.states: dict[tuple[str, int], State] = {}
        self.requests: list[AlterPartitionRequest] = []
        self.refuse: ErrorCode | None = None
        self.silent = False
        self.loses_answers = False  # decides, and nobody hears of it
        handlers = {ApiKey.ALTER_PARTITION: self._alter}
        self._server = BrokerServer(network.loop("controller"), "controller", 9000, SECRET, handlers)

    def _alter(self, request: AlterPartitionRequest, version: int):
        self.requests.append(request)
        if self.silent:
            return Future()
        topics = []
        for topic in request.topics:
            rows = tuple(self._decide(request.broker_id, row) for row in topic.partitions)
            topics.append(AlterPartitionResponseTopicData(topic_id=topic.topic_id, partitions=rows))
        return Future() if self.loses_answers else AlterPartitionResponse(topics=tuple(topics))

    def _decide(self, broker_id, row):
        state = self.states[TOPIC, row.partition_index]
        isr = tuple(member.broker_id for member in row.new_isr_with_epochs)
        code = self.refuse or ErrorCode.NONE
        if code == ErrorCode.NONE and row.leader_epoch < state.leader_epoch:
            code = ErrorCode.FENCED_LEADER_EPOCH
        elif code == ErrorCode.NONE and isr != state.isr and row.partition_epoch != state.partition_epoch:
            code = ErrorCode.INVALID_UPDATE_VERSION
        if code != ErrorCode.NONE:
            return AlterPartitionResponsePartitionData(partition_index=row.partition_index, error_code=code)
        if isr != state.isr:
            state.isr, state.partition_epoch = isr, state.partition_epoch + 1
        return AlterPartitionResponsePartitionData(
            partition_index=row.partition_index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            partition_epoch=state.partition_epoch,
        )


class Broker:
    """One life of one broker; its files outlive it."""

    def __init__(self, cluster: ReplicatedCluster, broker_id: int, files: MemoryFiles) -> None:
        self.id, self.files = broker_id, files
        self.host = f"b{broker_id}"
        network = cluster.network
        self.loop = network.loop(self.host)
        homes = tuple(f"/data/{broker_id}{suffix}" for suffix in cluster.homes)
        config = BrokerConfig(broker_id, homes, (self.host, 9092), settings=cluster.settings)
        background = ImmediateBackground()
        self.background = background
        doors = Doors(self.loop, files, None, background, Random(broker_id))
        self.logs = LogManager(files, network.clock, background, config)
        self.logs.open_all()
        self.metadata = KnownCluster()
        self.peers = Peers(self.loop, f"broker-{broker_id}", SECRET, cluster.addresses.get)
        self.broker_epoch = cluster.next_broker_epoch()
        self.replicas = Replicas(
            config,
            doors,
            self.logs,
            self.metadata,
            cluster.overrides,
            self.peers,
            broker_epoch=lambda: self.broker_epoch,
            alter_partition=lambda request: self.peers.call(CONTROLLER, request, ALTER_PARTITION_VERSION, 5.0),
        )
        self.leadership: list[tuple[str, int, int | None]] = []
        self.replicas.roles.on_leadership(lambda *change: self.leadership.append(change))
        self.fetches = ReplicaFetches(self.replicas)
        self.fetch_requests = 0
        self.server = BrokerServer(
            self.loop, self.host, 9092, SECRET, {ApiKey.FETCH: self._fetch, ApiKey.LIST_OFFSETS: self._list_offsets}
        )
        self.replicas.start()

    def _fetch(self, request, version):
        self.fetch_requests += 1
        answer: Future[FetchResponse] = Future()
        self.fetches.serve(request, answer.resolve)
        return answer

    def _list_offsets(self, request, version):
        from dataplane.handlers.records.log_offsets import list_offsets

        return list_offsets(self.replicas, request, version, is_internal=True)

    def partition(self, index: int = 0) -> Partition:
        partition = self.replicas.registry.get(TOPIC, index)
        assert partition is not None
        return partition

    def values(self, index: int = 0) -> list[bytes | None]:
        """All record values of the log, committed or not."""
        log = self.partition(index).log
        found = [read_records(bytes(batch)) for _, batch in lookup.batches(log, log.start_offset, log.end_offset)]
        return [record.value for records in found for record in records]

    def committed_values(self, index: int = 0) -> list[bytes | None]:
        return self.values(index)[: self.partition(index).state.high_watermark]


@dataclass
class Produced:
    """An append and what became of it."""

    appended: Appended | None = None
    codes: list[ErrorCode] = field(default_factory=list)
    at: float = -1.0

    @property
    def code(self) -> ErrorCode | None:
        assert len(self.codes) <= 1, "answered twice"
        return self.codes[0] if self.codes else None


class ReplicatedCluster:
    """`size` brokers, each a host, and the controller."""

    def __init__(
        self, size: int = 3, seed: int = 1, settings: Settings = SETTINGS, homes: tuple[str, ...] = ("",)
    ) -> None:
        self.homes = homes  # what the names of a broker's data directories end with
        self.network = VirtualNetwork(seed)
        self.settings = settings
        self.overrides = Overrides()
        self.controller = Controller(self.network)
        self.addresses = {CONTROLLER: ("controller", 9000)}
        self._broker_epoch = 10
        self.brokers: dict[int, Broker] = {}
        for broker_id in range(1, size + 1):
            self.start(broker_id, MemoryFiles())

    def next_broker_epoch(self) -> int:
        self._broker_epoch += 1
        return self._broker_epoch

    def start(self, broker_id: int, files: MemoryFiles | None = None) -> Broker:
        """A broker, with the files of its former life if it had one. It knows no role until it is told."""
        broker = Broker(self, broker_id, files or self.brokers[broker_id].files)
        self.brokers[broker_id] = broker
        self.addresses[broker_id] = (broker.host, 9092)
        self._everybody_knows()
        return broker

    def kill(self, broker_id: int) -> None:
        self.network.crash(f"b{broker_id}")

    def forget(self, broker_id: int) -> None:
        """Its registration is gone: nobody takes it for alive any more."""
        for broker in self.brokers.values():
            broker.metadata.brokers.pop(broker_id, None)

    def _everybody_knows(self) -> None:
        for broker in self.brokers.values():
            broker.metadata.brokers = dict.fromkeys(sorted(self.brokers))

    def __getitem__(self, broker_id: int) -> Broker:
        return self.brokers[broker_id]

    # --- the controller's decisions -----------------------------------------------------------------------------------

    def create(self, replicas: tuple[int, ...] = (1, 2, 3), index: int = 0, **overrides: str) -> None:
        """A partition whose first replica leads."""
        if overrides:
            self.overrides.configs[TOPIC] = {name.replace("_", "."): value for name, value in overrides.items()}
        self.controller.states[TOPIC, index] = State(replicas[0], 0, replicas, replicas)
        self.tell(index)

    def elect(self, leader: int, isr: tuple[int, ...], index: int = 0, told: tuple[int, ...] | None = None) -> None:
        """Another leader, in the next epoch."""
        old = self.controller.states[TOPIC, index]
        self.controller.states[TOPIC, index] = replace(
            old, leader=leader, isr=isr, leader_epoch=old.leader_epoch + 1, partition_epoch=old.partition_epoch + 1
        )
        self.tell(index, told)

    def tell_next_epoch(self, broker_id: int) -> list[LeaderAndIsrResponse]:
        """As `elect`, of a leader alone; returns its answer."""
        state = self.controller.states[TOPIC, 0]
        self.controller.states[TOPIC, 0] = replace(state, leader=broker_id, leader_epoch=state.leader_epoch + 1)
        return list(self.tell(told=(broker_id,)).values())

    def tell(self, index: int = 0, told: tuple[int, ...] | None = None) -> dict[int, LeaderAndIsrResponse]:
        """LeaderAndIsr to all replicas, or to some."""
        state = self.controller.states[TOPIC, index]
        answers: dict[int, LeaderAndIsrResponse] = {}
        for broker_id in told if told is not None else state.replicas:
            broker = self.brokers[broker_id]
            request = self.leader_and_isr(broker, index)

            def apply(broker=broker, request=request) -> None:
                answers[broker.id] = apply_leader_and_isr(broker.replicas, request)

            broker.loop.post(apply)
        self.network.run_for(0.0001)
        for broker in self.brokers.values():
            broker.metadata.version += 1  # as the controller goes on: everybody hears of it
        return answers

    def leader_and_isr(self, broker: Broker, index: int = 0) -> LeaderAndIsrRequest:
        state = self.controller.states[TOPIC, index]
        row = LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=1,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
        )
        topic = LeaderAndIsrTopicState(topic_name=TOPIC, topic_id=TOPIC_ID, partition_states=(row,))
        return LeaderAndIsrRequest(
            controller_id=CONTROLLER, controller_epoch=1, broker_epoch=broker.broker_epoch, topic_states=(topic,)
        )

    # --- clients ------------------------------------------------------------------------------------------------------

    def produce(
        self,
        broker_id: int,
        *values: str,
        acks: int = -1,
        timeout_s: float = 30.0,
        index: int = 0,
        producer: tuple[int, int, int] = (-1, -1, -1),
        key: bytes | None = None,
        transactional: bool = False,
    ) -> Produced:
        """One batch to one broker, in a turn of its own or with others of the same moment."""
        broker = self.brokers[broker_id]
        records = [Record(key, value.encode()) for value in values]
        batch = build_batch(
            records,
            now_ms=self.network.clock.now_ms(),
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            transactional=transactional,
        )
        produced = Produced()

        def handle() -> None:
            partition = broker.replicas.registry.leader(TOPIC, index)
            if isinstance(partition, ErrorCode):
                answered(partition)
                return
            produced.appended = broker.replicas.appending.append(
                partition, memoryview(batch), acks, is_transactional=transactional
            )
            if produced.appended.error is not ErrorCode.NONE:
                answered(produced.appended.error)
            else:
                last = produced.appended.last_offset
                broker.replicas.appending.after_commit(partition, last, acks, timeout_s, answered)

        def answered(code: ErrorCode) -> None:
            produced.codes.append(code)
            produced.at = self.network.clock.seconds

        broker.loop.post(handle)
        return produced

    def mark(
        self,
        broker_id: int,
        marker: Marker,
        *,
        producer: int,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        index: int = 0,
    ) -> Produced:
        """A coordinator ends a producer's transaction."""
        broker = self.brokers[broker_id]
        produced = Produced()
        batch = build_marker(
            marker, producer_id=producer, producer_epoch=epoch, coordinator_epoch=coordinator_epoch, now_ms=0
        )

        def handle() -> None:
            appending, partition = broker.replicas.appending, broker.partition(index)
            produced.appended = appending.append_marker(partition, memoryview(batch), coordinator_epoch)
            if produced.appended.error is not ErrorCode.NONE:
                produced.codes.append(produced.appended.error)
            else:
                appending.after_commit(partition, produced.appended.last_offset, -1, 30.0, produced.codes.append)

        broker.loop.post(handle)
        return produced

    def run(self, seconds: float = 1.0) -> None:
        self.network.run_for(seconds)
