"""Following something in ZooKeeper: read, tell, wait for the watch, read again.

Level-triggered: a follower is told the present state after every change, never the change itself, so nothing is missed
when several changes fall into one reading, or when the session was lost in between (watches fire then, too).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dataplane.doors import Loop, NoNodeError, ZooKeeper, ZooKeeperError
from dataplane.tasks import Future, Task, sleep

RETRY_S = 0.2


class OthersChildren:
    """Calls `changed` with the sorted names below a path: now, and after somebody else has made or deleted some.

    For long lists to which we do most of what is done. A watch would have all of it read after each change of our own. So
    the node is asked, once in `period_s`, how many changes it has seen; `ours` is how many of them we have made.
    """

    def __init__(
        self,
        loop: Loop,
        zookeeper: ZooKeeper,
        path: str,
        ours: Callable[[], int],
        changed: Callable[[list[str]], None],
        period_s: float = 1.0,
    ) -> None:
        self._loop, self._zookeeper, self._path = loop, zookeeper, path
        self._ours, self._changed, self._period_s = ours, changed, period_s
        self._task: Task[None] | None = None

    def start(self) -> None:
        """Begin. The first call comes after two round trips."""
        if self._task is None:
            self._task = Task(self._follow(), f"others below {self._path}")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        seen: int | None = None
        while True:
            with suppress(ZooKeeperError):
                stat = await self._zookeeper.exists(self._path)
                others = 0 if stat is None else stat.child_changes - self._ours()
                if others != seen:
                    names = await self._names()
                    seen = others  # counted before the names were read: what came in between is found the next time
                    self._changed(names)
            await sleep(self._loop, self._period_s)

    async def _names(self) -> list[str]:
        try:
            return await self._zookeeper.children(self._path)
        except NoNodeError:
            return []


class ChildrenWatch:
    """Calls `changed` with the sorted names below a path, now and after every change; a missing node has none.

    After a reading, none is made for `rest_s`. What changes meanwhile is told together: in a long list that changes often, all
    names would be read for each one that comes.
    """

    def __init__(
        self,
        loop: Loop,
        zookeeper: ZooKeeper,
        path: str,
        changed: Callable[[list[str]], None],
        rest_s: float = 0.0,
    ) -> None:
        self._loop = loop
        self._zookeeper = zookeeper
        self._path = path
        self._changed = changed
        self._rest_s = rest_s
        self._task: Task[None] | None = None

    def start(self) -> None:
        """Begin. The first call comes after one round trip."""
        if self._task is None:
            self._task = Task(self._follow(), f"watch {self._path}")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        while True:
            fired: Future[None] = Future()
            try:
                names = await self._read(fired)
            except ZooKeeperError:
                await sleep(self._loop, RETRY_S)
                continue
            if names is not None:
                self._changed(names)
                if self._rest_s:
                    await sleep(self._loop, self._rest_s)
                await fired

    async def _read(self, fired: Future[None]) -> list[str] | None:
        """Names, with a watch set; None where the node appeared between two reads."""

        def watch() -> None:
            fired.resolve(None)

        try:
            return await self._zookeeper.children(self._path, watch)
        except NoNodeError:
            return [] if await self._zookeeper.exists(self._path, watch) is None else None
