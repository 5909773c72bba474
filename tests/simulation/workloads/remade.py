"""A topic that is deleted and made again under its name: what was written to the newest of them is there, and stays.

Half of the time something delays what a broker hears of the controller just then, on the connections that stand, and ends
these for the controller: it says everything again on new ones, and what it had said before comes last of all.

A replica is in use before its directory is on disk, and a power cut in between takes the directory with all that is in it, as it
takes records that nothing has synced (`storage/startup/founding`): others have what was acknowledged, and it is made again. So
that a log has gone is a violation only where its directory was on disk, or where nobody lost power.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from dataplane.cluster.paths import parse_topic, topic_path
from dataplane.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from dataplane.storage.startup import founding
from dataplane.tasks import Future, Task
from tests.simulation.client import PAUSE_S
from tests.simulation.invariants import MIN_INSYNC_REPLICAS, Invariants, ViolationError
from tests.simulation.workloads.base import Workload

BATCHES = 6
PATIENCE_S = 2.0


class Remade(Workload):
    """See the module."""

    TOPIC = "remade"

    def prepare(self) -> None:
        super().prepare()
        self._id = self._look_up()
        self._hosts: dict[int, UUID] = {}  # which of them each broker was seen to have
        self.cluster.power_cuts.append(self._power_goes)

    def clients(self) -> list[Coroutine[Any, Any, None]]:
        return [self._live()]

    async def _live(self) -> None:
        cluster, client, random = self.cluster, self.cluster.client, self.shared.random
        lives = 0
        while True:
            await self._write_some(f"l{lives}")
            self.check_hosts()
            if self.shared.is_over:
                return
            await self.pace.rest(0.2, 1.0)
            self.check_hosts()
            if random.random() < 0.5 and not self.shared.is_to_be_calm:
                Task(self._make_late(), "late bytes")
            await self._delete()
            self.invariants.close()
            self.acknowledged.clear()
            await client.sleep(random.choice((0.0, 0.0, 0.5)))
            await cluster.creating(self.TOPIC, self.PARTITIONS, min_insync_replicas=str(MIN_INSYNC_REPLICAS))
            self._id = self._look_up()
            self.invariants = Invariants(cluster, self.TOPIC, self.PARTITIONS, topic_id=self._id)
            self.check_hosts()
            client.doubt(self.TOPIC, 0)
            lives += 1

    async def _write_some(self, writer: str) -> None:
        batches = 0

        async def rest() -> None:
            nonlocal batches
            batches += 1
            await self.pace.rest(0.05, 0.3)

        self._producers.clear()
        await self.write_while(writer, rest, lambda: batches >= BATCHES)

    def check_hosts(self) -> None:
        """Who has had its log has it still, unless its power took what was not on its disk. Raises ViolationError."""
        for broker, running in self.cluster.brokers.items():
            log = running.logs.get(f"simulate.{self.TOPIC}", 0)
            if log is not None and log.topic_id == self._id:
                self._hosts[broker] = self._id
            elif self._hosts.get(broker) == self._id and self.cluster.files[broker].fault is None:
                raise ViolationError(f"broker {broker} has lost its log of {self.TOPIC}")

    def _power_goes(self, broker: int) -> None:
        """Of a broker whose log is there, and whose directory is not on disk, nothing is expected any more."""
        files, directory = self.cluster.files[broker], f"/data/simulate.{self.TOPIC}-0"
        if files.exists(f"{directory}/{founding.PARTITION_METADATA}"):
            return
        there = founding.found(files, directory)
        if there is not None and there == self._hosts.get(broker):
            del self._hosts[broker]

    async def _delete(self) -> None:
        """By its id: what is heard late is not about the one that comes next."""
        cluster, topic_id = self.cluster, self._id
        request = DeleteTopicsRequest(topics=(DeleteTopicState(topic_id=topic_id),), timeout_ms=10_000)
        while cluster.zookeeper.tree.find(topic_path(f"simulate.{self.TOPIC}")) is not None or any(
            broker.metadata.topic_of_id(topic_id) for broker in cluster.brokers.values()
        ):
            await cluster.client.call(cluster.controller(), request, 6)
            await cluster.client.sleep(PAUSE_S)

    async def _make_late(self) -> None:
        cluster, client, random = self.cluster, self.cluster.client, self.shared.random
        controller = cluster.controller()
        other = random.choice([broker for broker in cluster.ids if broker != controller])
        if controller < 0:
            return
        here, there = cluster.host(controller), cluster.host(other)
        if random.random() < 0.8:  # it is told to forget the topic, and then to remove it: that is to be late
            await self._is_forgotten(other)
        cluster.network.delay(here, there, random.uniform(0.5, 3.0))
        await client.sleep(random.uniform(0.01, 0.5))
        cluster.note(f"reset b{controller} -> b{other}")
        cluster.network.reset(here, there)

    def _is_forgotten(self, broker: int) -> Future[None]:
        """Resolved at the end of the turn in which a broker heard of it; after some time in any case."""
        cluster, topic_id, forgotten = self.cluster, self._id, Future[None]()

        def look(_host: str) -> None:
            running = cluster.brokers.get(broker)
            if running is None or running.metadata.topic_of_id(topic_id) is None:
                forgotten.resolve(None)

        cluster.network.looks.append(look)
        cluster.client.sleep(PATIENCE_S).then(lambda _: forgotten.resolve(None))
        forgotten.then(lambda _: cluster.client.loop.call_soon(lambda: cluster.network.looks.remove(look)))
        return forgotten

    def _look_up(self) -> UUID:
        """The id of the one that there is now."""
        node = self.cluster.zookeeper.tree.node(topic_path(f"simulate.{self.TOPIC}"))
        return parse_topic(node.data).topic_id
