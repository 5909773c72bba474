"""This broker's registration: the ephemeral node /brokers/ids/<id>, whose czxid is the broker epoch.

The epoch tells one incarnation of a broker from the next: the controller puts it on what it sends, and a broker refuses
what was meant for an earlier incarnation (KIP-380). After an expired session the broker registers again and has a new
epoch; in between it takes on no new leadership.

A node of the same id that belongs to another session is most often our own previous life, killed a moment ago: it is
waited for, up to twice the session timeout. If it is still there then, another broker runs with this id: an error.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dataplane.cluster.paths import PERSISTENT, BrokerAddress, broker_json, broker_path
from dataplane.cluster.watching import RETRY_S
from dataplane.doors import Doors, NodeExistsError, Stat, ZooKeeperError
from dataplane.tasks import Future, Task, sleep


class BrokerIdTakenError(Exception):
    """Another broker is registered with this id."""


class Membership:
    """Registers, and registers again after every new session."""

    def __init__(
        self,
        doors: Doors,
        address: BrokerAddress,
        session_timeout_s: float,
        whole_since: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.address = address
        self.broker_epoch = -1  # of the present registration
        self.registered = False
        self._doors = doors
        self._whole_since = whole_since
        self._patience_s = 2 * session_timeout_s
        self._first: Future[None] = Future()
        self._task: Task[None] | None = None
        self._stopped = False
        self._listeners: list[Callable[[int], None]] = []
        doors.zookeeper.on_session(self._on_session)

    def on_registered(self, callback: Callable[[int], None]) -> None:
        """Called with the broker epoch at every registration."""
        self._listeners.append(callback)

    def start(self) -> Future[None]:
        """Register. Resolved when registered for the first time; fails with BrokerIdTakenError."""
        if self._doors.zookeeper.session_id():
            self._begin()
        return self._first

    def stop(self) -> None:
        """Stop registering. The node goes with the session."""
        self._stopped = True
        self._forget()
        if self._task is not None:
            self._task.cancel()

    def accepts(self, broker_epoch: int) -> bool:
        """Whether a controller's request was meant for this incarnation, and we are still part of the cluster.

        An epoch above ours is our own newer registration, whose answer the controller saw before we did.
        """
        return self.registered and (broker_epoch == -1 or broker_epoch >= self.broker_epoch)

    def _on_session(self, state: str) -> None:
        if state == "expired":
            self._forget()
        elif state == "connected":
            self._begin()

    def _forget(self) -> None:
        self.broker_epoch, self.registered = -1, False

    def _begin(self) -> None:
        if self._stopped:
            return
        if self._task is not None:
            self._task.cancel()
        self._task = Task(self._register(), "register")
        self._task.then(self._ended)

    def _ended(self, task: Future[None]) -> None:
        if isinstance(task.error, BrokerIdTakenError):
            self._first.fail(task.error)

    async def _register(self) -> None:
        deadline = self._doors.clock.monotonic() + self._patience_s
        while True:
            try:
                for path in PERSISTENT:
                    await self._make_directory(path)
                stat = await self._create(deadline)
            except ZooKeeperError:
                await sleep(self._doors.loop, RETRY_S)
                continue
            if stat is not None:
                break
        self.broker_epoch, self.registered = stat.czxid, True
        self._first.resolve(None)
        for listener in self._listeners:
            listener(self.broker_epoch)

    async def _make_directory(self, path: str) -> None:
        zookeeper = self._doors.zookeeper
        if await zookeeper.exists(path) is None:
            try:
                await zookeeper.create(path, parents=True)
            except NodeExistsError:
                return

    async def _create(self, deadline: float) -> Stat | None:
        """The stat of our node; None: look again. Raises BrokerIdTakenError."""
        zookeeper = self._doors.zookeeper
        path = broker_path(self.address.id)
        with suppress(NodeExistsError):
            data = broker_json(self.address, self._doors.clock.now_ms(), self._whole_since())
            await zookeeper.create(path, data, ephemeral=True)
        gone: Future[None] = Future()
        stat = await zookeeper.exists(path, lambda: gone.resolve(None))
        if stat is None or stat.ephemeral_owner == zookeeper.session_id():
            return stat
        left_s = deadline - self._doors.clock.monotonic()
        if left_s <= 0:
            raise BrokerIdTakenError(f"another broker is registered with id {self.address.id}")
        timer = self._doors.loop.call_later(left_s, lambda: gone.resolve(None))
        await gone
        timer.cancel()
        return None
