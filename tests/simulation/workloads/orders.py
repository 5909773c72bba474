"""The topic of every run: two partitions, two producers with acks=all, one with acks=1, and readers."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from tests.simulation.producer import PRODUCE_VERSION
from tests.simulation.workloads.base import Workload

READ_AGAIN = 50


class Orders(Workload):
    """See the module."""

    TOPIC = "orders"
    PARTITIONS = 2

    def clients(self) -> list[Coroutine[Any, Any, None]]:
        readers = [self._read(partition) for partition in range(self.PARTITIONS)]
        return [self.write("a"), self.write("b", in_flight=1), self._write_carelessly(), *readers]

    async def _write_carelessly(self) -> None:
        """With acks=1 and without a producer id, each record sent once: it may be lost, and comes to be there once at most."""
        client, ids = self.cluster.new_client(), self.cluster.ids
        number = 0
        while not self.shared.is_over:
            leaders: dict[int, list[int]] = {}
            for partition in range(self.PARTITIONS):
                leaders.setdefault(await client.leader(self.TOPIC, partition, ids), []).append(partition)
            for leader, partitions in leaders.items():
                began = client.loop.clock.monotonic()
                answer = await client.call(leader, self._careless(partitions, number), PRODUCE_VERSION)
                rows = () if answer is None else answer.responses[0].partition_responses
                if not rows or any(row.error_code for row in rows):
                    for partition in partitions:
                        client.doubt(self.TOPIC, partition)
                else:
                    self.pace.took(client.loop.clock.monotonic() - began, f"acks=1 of {self.TOPIC}")
            number += 1
            await self.pace.rest(0.05, 1.0)

    def _careless(self, partitions: list[int], number: int) -> ProduceRequest:
        now_ms = self.cluster.client.loop.clock.now_ms()
        data = [
            PartitionProduceData(
                partition, bytes(build_batch([Record(b"k", f"c-{partition}-{number}-0".encode())], now_ms=now_ms))
            )
            for partition in partitions
        ]
        return ProduceRequest(acks=1, timeout_ms=3_000, topic_data=(TopicProduceData(self.TOPIC, tuple(data)),))

    async def _read(self, partition: int) -> None:
        """What is new, and a little of what was read before; all of it at the end."""
        client, ids = self.cluster.client, self.cluster.ids
        end = 0
        while not self.shared.is_over:
            for offset, value in await client.read_all(self.TOPIC, partition, ids, max(0, end - READ_AGAIN)):
                self.invariants.read(partition, offset, value)
                end = offset + 1
            await self.pace.rest(0.25, 1.0)
