"""Elections that somebody asks for: of preferred replicas, or of any replica at all (KIP-460).

An unclean election is for partitions without a leader, and takes a replica that was not in sync where no other lives:
what only the lost ones had is gone. By /admin/preferred_replica_election only preferred replicas can be asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial

from dataplane.cluster.paths import NO_LEADER
from dataplane.controller.channel import Key
from dataplane.controller.context import Context, Partition
from dataplane.controller.deletion import Deletions
from dataplane.controller.leaders import Leaders, chosen
from dataplane.controller.operators.admin_nodes import AdminNodes
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tasks import Future

_LOOKED_AT_PER_TURN = 50


class ElectionType(IntEnum):
    """Preferred or unclean, as ElectLeaders numbers them."""

    PREFERRED = 0
    UNCLEAN = 1


_NOBODY = {
    ElectionType.PREFERRED: ApiError(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "the preferred replica is not alive, or not in sync"
    ),
    ElectionType.UNCLEAN: ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no replica is alive"),
}


class RequestedElections:
    """Those of one term of office. Its coroutines are events of the controller."""

    def __init__(
        self,
        context: Context,
        leaders: Leaders,
        deletions: Deletions,
        nodes: AdminNodes,
        pause: Callable[[], Future[None]],
    ) -> None:
        self._pause = pause  # until the next turn of the loop
        self._context = context
        self._leaders = leaders
        self._deletions = deletions
        self._nodes = nodes

    async def hold(self, keys: Sequence[Key] | None, kind: ElectionType) -> dict[Key, ApiError | None]:
        """What came of it for each partition. None: of all partitions; then only where an election was needed."""
        if keys is None:
            is_wanting = partial(self._is_wanting, kind=kind)
            wanting = await chosen(self._context.partitions(), is_wanting, self._pause)
            keys = [(partition.topic, partition.index) for partition in wanting]
        outcomes: dict[Key, ApiError | None] = {}
        for place, key in enumerate(keys, 1):
            outcomes[key] = self._refusal(key, kind)
            if place % _LOOKED_AT_PER_TURN == 0:
                await self._pause()
        held = [
            partition
            for key, refusal in outcomes.items()
            if refusal is None and (partition := self._context.partition(*key)) is not None
        ]
        await self._elect(held, kind)
        for partition in held:
            if _needs(partition, kind):
                outcomes[partition.topic, partition.index] = _NOBODY[kind]
        return outcomes

    async def follow_node(self) -> None:
        """Hold the election that /admin/preferred_replica_election asks for."""
        keys = await self._nodes.preferred_election()
        if keys:
            await self.hold(keys, ElectionType.PREFERRED)
            await self._nodes.end_preferred_election()

    async def _elect(self, partitions: Sequence[Partition], kind: ElectionType) -> None:
        if kind is ElectionType.PREFERRED:
            await self._leaders.prefer(partitions)
        else:
            await self._leaders.elect_unclean(partitions)

    def _refusal(self, key: Key, kind: ElectionType) -> ApiError | None:
        partition = self._context.partition(*key)
        if partition is None or partition.state is None:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the partition does not exist")
        if partition.topic in self._deletions:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic is being deleted")
        if not _needs(partition, kind):
            return ApiError(ErrorCode.ELECTION_NOT_NEEDED, "the partition has such a leader already")
        return None

    def _is_wanting(self, partition: Partition, kind: ElectionType) -> bool:
        return partition.topic not in self._deletions and _needs(partition, kind)


def _needs(partition: Partition, kind: ElectionType) -> bool:
    if partition.state is None:
        return False
    leader = partition.state.leader
    return leader == NO_LEADER if kind is ElectionType.UNCLEAN else leader != partition.replicas[0]
