"""Producer ids, unique in the cluster: a broker claims blocks of 1,000 by compare-and-set on one znode, as Kafka does.

The next block is claimed before one is used up: a thousand producers that wait for it would all be answered in one turn.

``/latest_producer_id_block`` holds the last block claimed: ``{"version":1,"broker":2,"block_start":"3000","block_end":"3999"}``.
"""

from __future__ import annotations

import json

from dataplane.doors import BadVersionError, NodeExistsError, NoNodeError, ZooKeeper
from dataplane.tasks import Future, Task

PATH = "/latest_producer_id_block"
BLOCK_SIZE = 1_000
_AHEAD = BLOCK_SIZE // 4
"""With so few left the next block is claimed."""
_MAX_ATTEMPTS = 20
_NONE = range(0)


class ProducerIds:
    """The ids of this broker. Concurrent callers share one claim."""

    def __init__(self, zookeeper: ZooKeeper, broker_id: int) -> None:
        self._zookeeper = zookeeper
        self._broker_id = broker_id
        self._left = self._following = _NONE
        self._claim: Future[None] | None = None

    async def next(self) -> int:
        """An id that was never given out. Raises ZooKeeperError."""
        while not self._left:
            if self._following:
                self._left, self._following = self._following, _NONE
            else:
                await self._claimed()
        given, self._left = self._left[0], self._left[1:]
        if len(self._left) <= _AHEAD and not self._following:
            self._claimed().then(lambda _: None)  # what fails is tried again by whoever needs it
        return given

    def _claimed(self) -> Future[None]:
        if self._claim is None or self._claim.done:
            self._claim = Task(self._claim_block(), "claim producer ids")
        return self._claim

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
            self._following = range(start, start + BLOCK_SIZE)
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
