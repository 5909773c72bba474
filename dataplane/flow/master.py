"""The broker's line to the active master: follows ``/sluice/master`` and feeds `quota.agent` its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dataplane.doors import Connection, Doors, NoNodeError, Timer, ZooKeeperError
from dataplane.tasks import Task
from quota.agent.agent import Agent, InstanceFacts
from quota.agent.transport import MasterLink
from quota.contracts.instance import MASTER_PATH, ContractError
from quota.contracts.mastership import Mastership
from quota.contracts.report import Absent, LoopLoad
from quota.wire import frame

_RETRY_S = 1.0


class MasterFollower:
    """Starts and steers the link."""

    def __init__(
        self,
        doors: Doors,
        agent: Agent,
        broker_id: int,
        secret: str,
        facts: Callable[[], Iterable[tuple[str, InstanceFacts]]],
        log: Callable[[str], None],
        load: Callable[[], LoopLoad | None],
        absent: Callable[[], Absent],
    ) -> None:
        self._zookeeper = doors.zookeeper
        self._loop = doors.loop
        self._closed = False
        self._log = log
        self._link = MasterLink(
            _LinkDoor(doors), agent, broker=broker_id, secret=secret, facts=facts, log=log, load=load, absent=absent
        )

    def start(self) -> None:
        """Begin to report as soon as there is a master."""
        self._link.start()
        self.follow()

    def stop(self) -> None:
        self._closed = True
        self._link.stop()

    def follow(self) -> None:
        """Read who the master is, now and whenever it changes."""
        if not self._closed:
            Task(self._read(), "master")

    async def _read(self) -> None:
        try:
            stat = await self._zookeeper.exists(MASTER_PATH, self.follow)
            if stat is None:
                self._link.set_master(None)
                return
            data, _ = await self._zookeeper.get(MASTER_PATH)
        except NoNodeError:
            return  # the watch has fired
        except ZooKeeperError:
            # The last master known stays: an outage of ZooKeeper is not one of the master.
            self._loop.call_later(_RETRY_S, self.follow)
            return
        try:
            mastership = Mastership.from_json(data)
        except ContractError as error:
            self._log(f"the active master's node cannot be used: {error}")
            self._link.set_master(None)
            return
        self._link.set_master(*mastership.report_address, mastership.epoch)


class _LinkDoor:
    """The loop as `quota.agent.transport.LoopDoor` wants it: a stream instead of frames."""

    def __init__(self, doors: Doors) -> None:
        self._loop = doors.loop

    def connect(
        self,
        host: str,
        port: int,
        on_open: Callable[[], None],
        on_data: Callable[[bytes], None],
        on_closed: Callable[[], None],
    ) -> _LinkConnection:
        return _LinkConnection(self._loop.connect, host, port, on_open, on_data, on_closed)

    def call_later(self, seconds: float, fn: Callable[[], None]) -> Timer:
        return self._loop.call_later(seconds, fn)

    def now(self) -> float:
        """Monotonic seconds."""
        return self._loop.clock.monotonic()


class _LinkConnection:
    """A connection, or one that is being made; also the protocol on it."""

    def __init__(
        self,
        connect: Callable[..., Callable[[], None]],
        host: str,
        port: int,
        on_open: Callable[[], None],
        on_data: Callable[[bytes], None],
        on_closed: Callable[[], None],
    ) -> None:
        self._on_open, self._on_data, self._on_closed = on_open, on_data, on_closed
        self._connection: Connection | None = None
        self._give_up = connect(host, port, self._opened, lambda _reason: on_closed())

    def _opened(self, connection: Connection) -> _LinkConnection:
        self._connection = connection
        self._on_open()
        return self

    def frame(self, data: memoryview) -> None:
        """One document of the master."""
        self._on_data(frame(bytes(data)))

    def closed(self, _reason: str) -> None:
        """The master, or this side, has ended it."""
        self._on_closed()

    def send(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.send([data])

    def close(self) -> None:
        """Close, or give up connecting."""
        if self._connection is None:
            self._give_up()
        else:
            self._connection.close()
