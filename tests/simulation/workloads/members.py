"""A group of two members. What one was told is committed is found by whoever has the partition next, or something newer.

A member that gets no answer, or an error, joins again: what it had sent is then of a generation that is over, and cannot
put an offset back, however late it comes. Each commits higher offsets than it found, so an offset never goes back.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.simulation.client import PAUSE_S
from tests.simulation.invariants import Invariants, ViolationError
from tests.simulation.workloads.base import Shared, Workload

GROUP = "readers"
MEMBERS = 2
STEPS_OF_A_MEMBER = 30
"""After so many it leaves without a word, as if it had died, and comes again as another."""


class Members(Workload):
    """Commits to the partitions of `orders`, which is there in any case."""

    TOPIC = "orders"
    PARTITIONS = 2

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._told = dict.fromkeys(range(self.PARTITIONS), -1)  # the highest offset that was acknowledged
        self._sent = dict.fromkeys(range(self.PARTITIONS), -1)

    def prepare(self) -> None:
        self.cluster.run(self.cluster.client.commit("nobody", self.TOPIC, 0, 1, self.cluster.ids))
        partitions = self.cluster.brokers[1].metadata.partitions(OFFSETS_TOPIC)
        self.invariants = Invariants(self.cluster, OFFSETS_TOPIC, len(partitions), are_logs_equal=False, internal=True)

    def clients(self) -> list[Coroutine[Any, Any, None]]:
        return [self._member() for _ in range(MEMBERS)]

    async def _member(self) -> None:
        member = _Member(self)
        while not self.shared.is_over:
            assigned = await member.join()
            if assigned is None or not await member.look(assigned):
                await self.cluster.client.sleep(PAUSE_S)
                continue
            for _ in range(STEPS_OF_A_MEMBER):
                if self.shared.is_over or not await member.step(assigned):
                    break
                await self.pace.rest(0.1, 0.6)
            else:
                member.id = ""

    def found(self, partition: int, offset: int, told: int) -> None:
        """A look-up that began when `told` had been acknowledged. Raises ViolationError."""
        if not told <= offset <= self._sent[partition]:
            raise ViolationError(
                f"{offset} is committed for {partition}; {told} was acknowledged, {self._sent[partition]} the last sent"
            )

    def told(self) -> dict[int, int]:
        """What is acknowledged by now."""
        return dict(self._told)

    def sends(self, partition: int) -> int:
        """An offset to be committed."""
        self._sent[partition] += 1
        return self._sent[partition]

    def is_told(self, partition: int, offset: int) -> None:
        """It is committed."""
        self._told[partition] = max(offset, self._told[partition])

    def check(self) -> None:
        for partition in range(self.PARTITIONS):
            client = self.cluster.client
            offset = self.cluster.run(client.committed(GROUP, self.TOPIC, partition, self.cluster.ids))
            self.found(partition, offset, self._told[partition])


class _Member:
    """One of the group, with the wire protocol of a classic consumer."""

    def __init__(self, group: Members) -> None:
        self.id = ""
        self._group, self._client, self._ids = group, group.cluster.client, group.cluster.ids
        self._coordinator = -1
        self._generation = -1

    async def join(self) -> list[int] | None:
        """Which partitions it has; None: it did not come to that."""
        if self._coordinator < 0:
            await self._find()
        joined = await self._ask(self._join_request(), 5)
        if joined is not None and joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = joined.member_id
            joined = await self._ask(self._join_request(), 5)
        if joined is None or joined.error_code:
            return self._refused(joined)
        self.id, self._generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == self.id:
            members = [member.member_id for member in joined.members]
            for number, name in enumerate(members):
                mine = [p for p in range(self._group.PARTITIONS) if p % len(members) == number]
                assignments.append(SyncGroupRequestAssignment(name, bytes(mine)))
        request = SyncGroupRequest(GROUP, self._generation, self.id, assignments=tuple(assignments))
        synced = await self._ask(request, 3)
        return self._refused(synced) if synced is None or synced.error_code else list(synced.assignment)

    def _join_request(self) -> JoinGroupRequest:
        protocols = (JoinGroupRequestProtocol("simple", b""),)
        return JoinGroupRequest(GROUP, 6_000, 3_000, self.id, protocol_type="consumer", protocols=protocols)

    async def look(self, assigned: list[int]) -> bool:
        """What is committed for its partitions."""
        told = self._group.told()
        request = OffsetFetchRequest(group_id=GROUP, topics=(OffsetFetchRequestTopic("orders", tuple(assigned)),))
        answer = await self._ask(request, 7)
        if answer is None or answer.error_code or any(row.error_code for row in answer.topics[0].partitions):
            return False
        for row in answer.topics[0].partitions:
            self._group.found(row.partition_index, row.committed_offset, told[row.partition_index])
        return True

    async def step(self, assigned: list[int]) -> bool:
        """A heartbeat, or a commit. False: it has to join again."""
        if not assigned or self._group.shared.random.random() < 0.3:
            answer = await self._ask(HeartbeatRequest(GROUP, self._generation, self.id), 3)
            if answer is None or answer.error_code:
                self._refused(answer)
                return False
            return True
        rows = {partition: self._group.sends(partition) for partition in assigned}
        topic = OffsetCommitRequestTopic("orders", tuple(_row(partition, offset) for partition, offset in rows.items()))
        answer = await self._ask(OffsetCommitRequest(GROUP, self._generation, self.id, topics=(topic,)), 7)
        results = () if answer is None else answer.topics[0].partitions
        for result in results:
            if not result.error_code:
                self._group.is_told(result.partition_index, rows[result.partition_index])
        if not results or any(result.error_code for result in results):
            self._refused(None)
            return False
        return True

    def _refused(self, answer: Any) -> None:
        self._coordinator = -1
        if answer is not None and answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.id = ""

    async def _find(self) -> None:
        for broker in self._ids:
            answer = await self._client.call(broker, FindCoordinatorRequest(key=GROUP, key_type=0), 2)
            if answer is not None and not answer.error_code:
                self._coordinator = answer.node_id
                return

    async def _ask(self, request: Any, version: int) -> Any:
        return await self._client.call(self._coordinator, request, version)


def _row(partition: int, offset: int) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
