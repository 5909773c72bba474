"""The broker's line to the active master: follows ``/sluice/master`` and feeds `quota.agent` its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dataplane.doors import Connection, Doors, NoNodeError, Timer, TlsClient, ZooKeeperError
from dataplane.peers.internal_tls import InternalTls
from dataplane.tasks import Task
from quota.agent.agent import Agent, InstanceFacts
from quota.agent.transport import MasterLink, RequestSteps
from quota.contracts.identity import master
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
        requests: RequestSteps,
        tls: InternalTls | None = None,
    ) -> None:
        self._tls = tls
        self._is_secured = False  # what the master speaks
        self._master_id = 0
        self._zookeeper = doors.zookeeper
        self._loop = doors.loop
        self._closed = False
        self._log = log
        self._link = MasterLink(
            _LinkDoor(doors, self._tls_client),
            agent,
            broker=broker_id,
            secret=secret,
            facts=facts,
            log=log,
            load=load,
            absent=absent,
            requests=requests,
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
        problem = self._problem(mastership)
        if problem is not None:
            self._log(f"master {mastership.id}: {problem}")
            self._link.set_master(None)
            return
        self._is_secured, self._master_id = mastership.is_secured, mastership.id
        self._link.set_master(*mastership.report_address, mastership.epoch)

    def _problem(self, mastership: Mastership) -> str | None:
        """Why nothing is said to this master."""
        if mastership.is_secured and self._tls is None:
            return "it speaks TLS, and this broker has no certificate (tls_folder)"
        if not mastership.is_secured and self._tls is not None and not self._tls.security.takes_plaintext:
            return 'it speaks plaintext, and internal_security = "ssl" is TLS only'
        return None

    def _tls_client(self) -> TlsClient | None:
        """For a connection that is opened now."""
        return self._tls.client(master(self._master_id)) if self._tls is not None and self._is_secured else None


class _LinkDoor:
    """The loop as `quota.agent.transport.LoopDoor` wants it: a stream instead of frames."""

    def __init__(self, doors: Doors, tls: Callable[[], TlsClient | None]) -> None:
        self._loop, self._tls = doors.loop, tls

    def connect(
        self,
        host: str,
        port: int,
        on_open: Callable[[], None],
        on_data: Callable[[bytes], None],
        on_closed: Callable[[], None],
    ) -> _LinkConnection:
        return _LinkConnection(self._loop.connect, host, port, on_open, on_data, on_closed, self._tls())

    def call_later(self, seconds: float, fn: Callable[[], None]) -> Timer:
        return self._loop.call_later(seconds, fn)

    def now(self) -> float:
        """Monotonic seconds."""
        return self._loop.clock.monotonic()


def _nothing() -> None:
    """There is nothing to give up."""


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
        tls: TlsClient | None,
    ) -> None:
        self._on_open, self._on_data, self._on_closed = on_open, on_data, on_closed
        self._connection: Connection | None = None
        self._give_up: Callable[[], None] = connect(host, port, self._opened, self.closed, tls)

    def _opened(self, connection: Connection) -> _LinkConnection:
        self._connection = connection
        self._give_up = _nothing
        self._on_open()
        return self

    def frame(self, data: memoryview) -> None:
        """One document of the master."""
        self._on_data(frame(bytes(data)))

    def closed(self, _reason: str) -> None:
        """The master, or this side, has ended it; or it never came to be."""
        self._give_up = _nothing  # it has this: a cycle would stay in memory (`garbage`)
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
