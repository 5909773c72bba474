"""A whole cluster in one process: three brokers as they are, on virtual time, a virtual network, disks and ZooKeeper in memory.

Everything that happens follows from the seed: the brokers' own randomness, latencies, and when the test does what. `trace`
sums up the run: every delivery on the network, and what clients saw. Two runs of a seed have equal traces.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from dataplane.broker import Broker
from dataplane.config import BrokerConfig, Settings
from dataplane.doors import Create as CreateNode
from dataplane.doors import Doors, SetData
from dataplane.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from dataplane.tasks import Future, Task
from quota.contracts.identity import Keys
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from tests.simulation.client import Client
from tests.simulation.zookeeper import ZooKeeperServer
from tests.support.memory_files import MemoryFiles
from tests.support.virtual_background import VirtualBackground
from tests.support.virtual_loop import VirtualNetwork

INSTANCE = "ins-simulate"
SESSION_TIMEOUT_S = 2.0
INTERNAL_PORT, TENANT_PORT = 9000, 9100
SETTINGS = Settings(
    replica_lag_time_max_ms=3_000,
    replica_fetch_wait_max_ms=200,
    offsets_topic_num_partitions=2,
    transaction_state_log_num_partitions=2,
)


class SimulatedCluster:
    """Brokers 1, 2, 3 on hosts 10.0.0.1 to 10.0.0.3; a client's host beside them."""

    def __init__(
        self, seed: int, brokers: int = 3, *, data_dirs: tuple[str, ...] = ("/data",), settings: Settings = SETTINGS
    ) -> None:
        self._data_dirs, self._settings = data_dirs, settings
        self.random = Random(seed)
        self.network = VirtualNetwork(self.random.getrandbits(64))
        latency = Random(self.random.getrandbits(64))
        self.zookeeper = ZooKeeperServer(
            self.network.loop("zookeeper").call_later, lambda: latency.uniform(0.0005, 0.002)
        )
        self.ids = list(range(1, brokers + 1))
        self.brokers: dict[int, Broker] = {}
        self.former: dict[int, Broker] = {}  # the last life of each that went, as it was then
        self.before_power_cuts: dict[int, list[Broker]] = {}  # lives that ended so, of brokers not in sync since
        self.files = {broker: MemoryFiles() for broker in self.ids}
        self.background: dict[int, VirtualBackground] = {}
        self.deaths: list[Callable[[int], None]] = []  # called with who is about to be killed
        self.power_cuts: list[Callable[[int], None]] = []  # called before a disk loses what was not synced
        self.log: list[tuple[float, str]] = []
        self._sessions: dict[int, Any] = {}
        self._write_spec()
        for broker in self.ids:
            self.start(broker)
        self.client = self.new_client()

    def new_client(self) -> Client:
        """One with connections of its own: on a connection an answer waits for those to all requests before."""
        return Client(self.network.loop("10.0.1.1"), lambda broker: (self.host(broker), TENANT_PORT))

    # --- life of brokers ----------------------------------------------------------------------------------------------

    def start(self, broker: int) -> None:
        """Start a broker, for the first time or again on the files that it left."""
        loop = self.network.loop(self.host(broker))
        session = self._sessions[broker] = self.zookeeper.connect(SESSION_TIMEOUT_S)
        random = Random(self.random.getrandbits(64))
        background = self.background[broker] = VirtualBackground(loop, Random(random.getrandbits(64)))
        doors = Doors(loop, self.files[broker], session, background, random)
        config = BrokerConfig(
            id=broker,
            data_dirs=self._data_dirs,
            internal=(self.host(broker), INTERNAL_PORT),
            keys=Keys("secret"),
            session_timeout_ms=int(SESSION_TIMEOUT_S * 1000),
            settings=self._settings,
        )
        self.brokers[broker] = Broker(config, doors, lambda text: self.note(f"b{broker}: {text}"))
        self.brokers[broker].start()

    def kill(self, broker: int) -> None:
        """SIGKILL: sockets reset, the session ends by its timeout, what is in files stays."""
        self.note(f"kill b{broker}")
        for look in self.deaths:
            look(broker)
        self.network.crash(self.host(broker))
        self._sessions[broker].kill()
        self.former[broker] = self.brokers.pop(broker)

    def lose_power(self, broker: int) -> None:
        """What the disk of a broker that was killed had not synced is gone, or any part of it. Who had it is remembered."""
        self.note(f"power of b{broker}")
        self.before_power_cuts.setdefault(broker, []).append(self.former[broker])
        self.cut_power(broker)

    def cut_power(self, broker: int) -> None:
        """The same of one whose former life need not count as a copy: what counts is on its disk."""
        for look in self.power_cuts:
            look(broker)
        self.files[broker].crash(self.random)

    def controller(self) -> int:
        """Who thinks it is the controller; -1: nobody."""
        return next((number for number, broker in self.brokers.items() if broker.controller.is_active), -1)

    def recovered(self) -> None:
        """Whoever has lost power is in sync again."""
        self.before_power_cuts.clear()

    async def stop(self, broker: int) -> None:
        """SIGTERM: it gives its leaderships away, and ends."""
        self.note(f"stop b{broker}")
        running = self.brokers[broker]
        await running.stop()
        if self.brokers.get(broker) is running:  # else it was killed meanwhile
            self.network.crash(self.host(broker))
            self.former[broker] = self.brokers.pop(broker)

    @staticmethod
    def host(broker: int) -> str:
        """A broker's host on the network."""
        return f"10.0.0.{broker}"

    def session(self, broker: int) -> Any:
        """The simulator's handles on a broker's ZooKeeper session."""
        return self._sessions[broker]

    def note(self, text: str) -> None:
        """Remember that something happened, and when."""
        self.log.append((round(self.network.clock.monotonic(), 6), text))

    @property
    def trace(self) -> tuple[int, tuple[tuple[float, str], ...]]:
        """The run in short."""
        return self.network.digest, tuple(self.log)

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, Any], within_s: float = 120.0) -> Any:
        """Run until a coroutine has its result."""
        task: Future[Any] = Task(coroutine)
        self.network.run_until(lambda: task.done, within_s)
        return task.result()

    def until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Run until a condition holds."""
        self.network.run_until(condition, within_s)

    def up(self) -> bool:
        """Whether every broker that was not killed knows all of them, and the instance."""
        alive = sorted(self.brokers)
        return all(b.metadata.alive() == alive and b.registry.get(INSTANCE) for b in self.brokers.values())

    def in_sync(self, topic: str) -> bool:
        """Whether all partitions of a tenant's topic have all brokers in their ISR, in everybody's view."""
        physical = f"simulate.{topic}"
        return all(
            (found := b.metadata.partitions(physical))
            and all(p.has_leader and len(p.isr) == len(self.ids) for p in found.values())
            for b in self.brokers.values()
        )

    def all_in_sync(self) -> bool:
        """Whether all partitions of all topics have all their replicas in sync, in everybody's view."""
        return all(
            p.has_leader and len(p.isr) == len(p.replicas)
            for b in self.brokers.values()
            for topic in b.metadata.topics()
            for p in b.metadata.partitions(topic).values()
        )

    # --- the tenant ---------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int, *, on: tuple[int, ...] = (), **config: str) -> None:
        """Create a topic as its tenant, and wait for all replicas; with one partition `on` these brokers, the leader first."""
        self.run(self.creating(name, partitions, on=on, **config))

    async def creating(self, name: str, partitions: int, *, on: tuple[int, ...] = (), **config: str) -> None:
        """The same, for who does it while other things happen."""
        configs = tuple(CreatableTopicConfig(key.replace("_", "."), value) for key, value in config.items())
        topic = CreatableTopic(name, partitions, 3, (), configs)
        if on:
            topic = CreatableTopic(name, -1, -1, (CreatableReplicaAssignment(0, on),), configs)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
        while not (self.brokers and self.in_sync(name)):
            answer = await self.client.call(self._controller_as_told(), request, 5)
            if answer is not None and answer.topics[0].error_code in (0, 36):  # 36: or the one before is on its way out
                again = self.network.clock.seconds + 3.0
                while not (self.brokers and self.in_sync(name)) and self.network.clock.seconds < again:
                    await self.client.sleep(0.05)
            else:
                await self.client.sleep(0.1)

    def delete_topic(self, name: str) -> None:
        """Delete a topic as its tenant, and wait until nobody knows it."""
        request = DeleteTopicsRequest(topic_names=(name,), timeout_ms=10_000)
        physical = f"simulate.{name}"

        async def delete() -> None:
            while any(b.metadata.has_topic(physical) for b in self.brokers.values()):
                await self.client.call(self._controller_as_told(), request, 5)
                await self.client.sleep(0.1)

        self.run(delete())

    def _controller_as_told(self) -> int:
        return next((b.metadata.controller_id for b in self.brokers.values()), -1)

    def _write_spec(self) -> None:
        endpoints = {
            broker: Endpoint((self.host(broker), TENANT_PORT), (self.host(broker), TENANT_PORT)) for broker in self.ids
        }
        spec = InstanceSpec(
            id=INSTANCE,
            generation=1,
            state=InstanceState.RUNNING,
            limits=Limits(None, None, None, None),
            whitelist=("0.0.0.0/0", "::/0"),
            routes=(Route("default", endpoints),),
        )
        paths = ("/sluice", "/sluice/instances", "/sluice/changes", "/sluice/applied")
        self.zookeeper.write([CreateNode(path) for path in paths])
        self.zookeeper.write([CreateNode(f"/sluice/instances/{INSTANCE}", spec.to_json())])


__all__ = ["INSTANCE", "SetData", "SimulatedCluster"]
