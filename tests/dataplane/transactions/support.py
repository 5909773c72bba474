"""A transaction coordinator on virtual time, over a log in memory, with leaders that take markers or do not."""

from dataplane.cluster.metadata import TRANSACTIONS_TOPIC, PartitionMetadata
from dataplane.peers.outbound import PeerError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from dataplane.tasks import Future
from dataplane.transactions.coordinator import TransactionCoordinator
from dataplane.transactions.events import AddPartitions, EndTransaction, Initialise
from dataplane.transactions.limits import UNLIMITED
from dataplane.transactions.settings import TransactionSettings
from tests.dataplane.coordination.support import MemoryLog
from tests.support.memory_files import ImmediateBackground
from tests.support.virtual_loop import VirtualNetwork

PARTITIONS = 4
A, B, C = ("orders", 0), ("orders", 1), ("events", 0)


def partition(leader):
    return PartitionMetadata(leader, 0, (1, 2), (1, 2), ())


class Topics:
    """As much of the metadata as markers ask for."""

    def __init__(self):
        self.version = 1
        self.leaders = {A: 1, B: 2, C: 2}
        self.coordinators = {}  # leaders of partitions of transactional ids, by index

    def partition(self, topic, index):
        leader = self.leaders.get((topic, index))
        return None if leader is None else partition(leader)

    def partitions(self, topic):
        assert topic == TRANSACTIONS_TOPIC
        return {index: partition(leader) for index, leader in self.coordinators.items()}


class Leaders:
    """The brokers that lead what transactions write to."""

    def __init__(self, loop):
        self._loop = loop
        self.markers = {}  # by partition: (producer id, epoch, committed, coordinator epoch) of each that was taken
        self.requests = []  # (broker, request)
        self.codes = {}  # what a partition is told instead
        self.away = set()  # brokers
        self.held = False
        self._held = []

    def call(self, broker, request, version, timeout_s):
        del timeout_s
        assert version == 2
        self.requests.append((broker, request))
        answer = Future()
        if self.held:
            self._held.append((broker, request, answer))
        else:
            self._loop.call_soon(lambda: self._answer(broker, request, answer))
        return answer

    def release(self):
        self.held, held = False, self._held
        self._held = []
        for one in held:
            self._answer(*one)

    def _answer(self, broker, request, answer):
        if broker in self.away:
            answer.fail(PeerError("away"))
            return
        answer.resolve(WriteTxnMarkersResponse(markers=tuple(map(self._take, request.markers))))

    def _take(self, marker):
        rows = []
        for topic in marker.topics:
            results = []
            for index in topic.partition_indexes:
                code = self.codes.get((topic.name, index), ErrorCode.NONE)
                if code == ErrorCode.NONE:
                    said = (marker.producer_id, marker.producer_epoch, marker.transaction_result)
                    self.markers.setdefault((topic.name, index), []).append((*said, marker.coordinator_epoch))
                results.append(WritableTxnMarkerPartitionResult(index, code))
            rows.append(WritableTxnMarkerTopicResult(topic.name, tuple(results)))
        return WritableTxnMarkerResult(marker.producer_id, tuple(rows))

    def said(self):
        """Whether each partition was told to commit, by its last marker."""
        return {partition: taken[-1][2] for partition, taken in self.markers.items()}


class Ids:
    """1000, 1001, …"""

    def __init__(self):
        self.last = 999
        self.error = None

    async def next(self):
        if self.error is not None:
            raise self.error
        self.last += 1
        return self.last


class World:
    """One coordinator that leads every partition."""

    def __init__(self, **changes):
        self.network = VirtualNetwork(seed=1)
        self.loop = self.network.loop("broker")
        self.log = MemoryLog(self.loop)
        self.background = ImmediateBackground()
        self.settings = TransactionSettings(**changes)
        self.topics, self.leaders, self.ids = Topics(), Leaders(self.loop), Ids()
        self.epoch = 0
        self.allowed = {}  # by instance key
        self.coordinator = self.new_coordinator()
        self.elect()

    def new_coordinator(self):
        return TransactionCoordinator(
            self.loop,
            self.log,
            self.settings,
            lambda: PARTITIONS,
            self.background,
            self.ids,
            self.topics,
            self.leaders.call,
            lambda key: self.allowed.get(key, UNLIMITED),
        )

    def elect(self):
        self.epoch += 2
        for index in range(PARTITIONS):
            self.coordinator.on_leadership(TRANSACTIONS_TOPIC, index, self.epoch)
        self.run(0.01)

    def resign(self):
        for index in range(PARTITIONS):
            self.coordinator.on_leadership(TRANSACTIONS_TOPIC, index, None)

    def take_over(self):
        """Another broker, with the same log, leads from now on."""
        self.coordinator.stop()
        self.coordinator = self.new_coordinator()
        self.elect()

    def run(self, seconds):
        self.network.run_for(seconds)

    def begin(self, name="t", known=None, timeout_ms=60_000):
        return self.coordinator.initialise(name, Initialise(timeout_ms, known))

    def init(self, name="t", known=None, timeout_ms=60_000):
        """(error, producer id, epoch)."""
        future = self.begin(name, known, timeout_ms)
        self.run(0.01)
        result = future.result()
        return result.error, result.producer_id, result.producer_epoch

    def producer(self, name="t"):
        """(producer id, epoch) of a new producer."""
        error, *who = self.init(name)
        assert error == ErrorCode.NONE
        return tuple(who)

    def add(self, who, *partitions, name="t"):
        future = self.coordinator.add_partitions(name, AddPartitions(*who, partitions))
        self.run(0.01)
        return future.result() if future.done else None

    def end(self, who, is_commit=True, name="t"):
        future = self.coordinator.end(name, EndTransaction(*who, is_commit))
        self.run(0.01)
        return future.result() if future.done else None

    def state(self, name="t"):
        found = self.coordinator.find(name)
        return found if isinstance(found, ErrorCode) else found.state.value
