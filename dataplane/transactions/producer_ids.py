"""Producer ids, unique in the cluster: a broker claims blocks of 1,000 by compare-and-set on one znode, as Kafka does.

``/latest_producer_id_block`` holds the last block claimed: ``{"version":1,"broker":2,"block_start":"3000","block_end":"3999"}``.
"""

from __future__ import annotations

import json

from dataplane.doors import BadVersionError, NodeExistsError, NoNodeError, ZooKeeper
from dataplane.tasks import Future, Task

PATH = "/latest_producer_id_block"
BLOCK_SIZE = 1_000
_MAX_ATTEMPTS = 20


class ProducerIds:
    """The ids of this broker. Concurrent callers share one claim."""

    def __init__(self, zookeeper: ZooKeeper, broker_id: int) -> None:
        self._zookeeper = zookeeper
        self._broker_id = broker_id
        self._next = self._end = 0  # the block's ids that are left: next … end - 1
        self._claim: Future[None] | None = None

    async def next(self) -> int:
        """An id that was never given out. Raises ZooKeeperError."""
        while self._next >= self._end:
            if self._claim is None or self._claim.done:
                self._claim = Task(self._claim_block(), "claim producer ids")
            await self._claim
        self._next += 1
        return self._next - 1

    async def _claim_block(self) -> None:
        for _ in range(_MAX_ATTEMPTS):
            try:
                data, stat = await self._zookeeper.get(PATH)
            except NoNodeError:
                start, version = 0, None
            else:
                start, version = int(json.loads(data)["block_end"]) + 1, stat.version
            try:
                await self._write(start, version)
            except (BadVersionError, NodeExistsError, NoNodeError):
                continue  # another broker was faster
            self._next, self._end = start, start + BLOCK_SIZE
            return
        raise BadVersionError(PATH)

    async def _write(self, start: int, version: int | None) -> None:
        block = {
            "version": 1,
            "broker": self._broker_id,
            "block_start": str(start),
            "block_end": str(start + BLOCK_SIZE - 1),
        }
        data = json.dumps(block).encode()
        if version is None:
            await self._zookeeper.create(PATH, data)
        else:
            await self._zookeeper.set(PATH, data, version)
