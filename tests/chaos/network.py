"""What brokers reach each other and ZooKeeper through: TCP proxies that know who talks to whom, and hold what is cut.

links = Links(); links.start()
port = links.listen("2")                   # what broker 2 advertises; `links.target("2", address)` says where it really is
links.cut("1", "2")                        # nothing from 1 arrives at 2 any more, whoever opened the connection
links.slow("1", "2", 0.5)                  # what 1 says arrives at 2 half a second later
links.mend("1", "2")                       # what was held arrives; with `reset` those connections end instead
links.heal(reset=True)                     # the same of all that is cut, and nothing is slow any more

A cut is silent, as on a network that drops packets: connections stand, bytes are held, a new connection is accepted and
hears nothing. One direction can be cut alone. Who opened a connection to a broker stands in its first request (the client
id `broker-<id>`, at byte 10 behind a length of two bytes); ZooKeeper has a port for each broker, so there it is known.

ZooKeeper's first answer carries the session's id and password, which are kept: whoever has them may close the session
(`Session.close`), and that is an expiry as the broker sees it.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine

HOST = "127.0.0.1"
ZOOKEEPER = "zookeeper"
_CHUNK = 2**16
_ON_THE_WAY = 256  # chunks of a direction
_CLIENT_ID = 12  # where it is in a frame: length, key, version, correlation id, its own length
_PREFIX = b"broker-"
_CLOSE_SESSION = struct.pack(">iii", 8, 1, -11)


@dataclass(frozen=True, slots=True)
class Session:
    """A broker's session with ZooKeeper, as its server described it."""

    id: int
    password: bytes
    timeout_ms: int

    def close(self, port: int) -> None:
        """In the broker's name, on a connection of our own. Raises OSError."""
        body = struct.pack(">iqiq", 0, 0, self.timeout_ms, self.id)
        body += struct.pack(">i", len(self.password)) + self.password + b"\0"
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body + _CLOSE_SESSION)
            connection.settimeout(2)
            with suppress(OSError):
                while connection.recv(4096):
                    pass


class Links:
    """All proxies, on a loop in a thread of their own."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}  # by broker, the latest
        self._targets: dict[str, tuple[tuple[str, int], ...]] = {}
        self._cuts: set[tuple[str, str]] = set()
        self._delays: dict[tuple[str, str], float] = {}  # seconds
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._open: dict[asyncio.StreamWriter, tuple[str, str]] = {}
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        for task in asyncio.all_tasks(self._loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        for server in self._servers:
            server.close()
        for writer in self._open:
            writer.transport.abort()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def listen(self, target: str, source: str | None = None) -> int:
        """A port for connections to `target`; `source` where all of them come from one."""
        listening = socket.create_server((HOST, 0))
        self._do(self._serve(listening, target, source))
        return int(listening.getsockname()[1])

    def target(self, name: str, *addresses: tuple[str, int]) -> None:
        """Where it really is; of several, a connection goes to any that accepts it."""
        self._targets[name] = addresses

    def cut(self, source: str, target: str) -> None:
        """From now on nothing gets from one to the other."""
        self._do(self._set({*self._cuts, (source, target)}))

    def slow(self, source: str, target: str, delay_s: float) -> None:
        """From now on what one says arrives so much later."""
        self._delays[source, target] = delay_s

    def mend(self, source: str, target: str, *, reset: bool = False) -> None:
        """One direction gets through again."""
        self._do(self._mend({(source, target)}, reset=reset))

    def heal(self, *, reset: bool = False) -> None:
        """Everything gets through again, and at once."""
        self._delays.clear()
        self._do(self._mend(set(self._cuts), reset=reset))

    def _do(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _set(self, cuts: set[tuple[str, str]]) -> None:
        self._cuts = cuts
        self._changed.set()
        self._changed = asyncio.Event()

    async def _mend(self, cuts: set[tuple[str, str]], *, reset: bool) -> None:
        touched = {frozenset(pair) for pair in cuts}
        if reset:
            for writer, pair in list(self._open.items()):
                if frozenset(pair) in touched:
                    writer.transport.abort()
        await self._set(self._cuts - cuts)

    async def _serve(self, listening: socket.socket, target: str, source: str | None) -> None:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._carry(reader, writer, source, target)
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                self._tasks.discard(task)
                writer.transport.abort()

        self._servers.append(await asyncio.start_server(accepted, sock=listening))

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str | None, target: str
    ) -> None:
        first = b""
        if source is None:
            first = await reader.readexactly(_CLIENT_ID + 2)
            length = int.from_bytes(first[_CLIENT_ID : _CLIENT_ID + 2])
            first += await reader.readexactly(length)
            source = first[_CLIENT_ID + 2 :].removeprefix(_PREFIX).decode()
        await self._may_pass(source, target)
        far_reader, far_writer = await self._reach(target)
        self._open[writer] = (source, target)
        self._open[far_writer] = (source, target)
        try:
            far_writer.write(first)
            there = asyncio.create_task(self._pump(reader, far_writer, source, target))
            back = asyncio.create_task(self._pump(far_reader, writer, target, source))
            # Each direction ends for itself, as between the two ends; an error is heard by both.
            _, standing = await asyncio.wait((there, back), return_when=asyncio.FIRST_EXCEPTION)
            for pump in standing:
                pump.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
        finally:
            del self._open[writer], self._open[far_writer]
            far_writer.transport.abort()

    async def _reach(self, target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        addresses = self._targets[target]
        *others, last = random.sample(addresses, len(addresses))
        for address in others:
            with suppress(OSError):
                return await asyncio.open_connection(*address)
        return await asyncio.open_connection(*last)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str, target: str) -> None:
        said: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_ON_THE_WAY)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._hear(reader, said, source, target))
            both.create_task(self._tell(writer, said, source, target))

    async def _hear(
        self, reader: asyncio.StreamReader, said: asyncio.Queue[tuple[float, bytes]], source: str, target: str
    ) -> None:
        is_first = source == ZOOKEEPER
        data = b"anything"
        while data:
            data = await reader.read(_CHUNK)
            if is_first:
                self._note_session(target, data)
                is_first = False
            await said.put((self._loop.time() + self._delays.get((source, target), 0.0), data))

    async def _tell(
        self, writer: asyncio.StreamWriter, said: asyncio.Queue[tuple[float, bytes]], source: str, target: str
    ) -> None:
        while True:
            due, data = await said.get()
            if (left_s := due - self._loop.time()) > 0:
                await asyncio.sleep(left_s)
            await self._may_pass(source, target)
            if not data:  # the end, heard no sooner than what was said before it
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    async def _may_pass(self, source: str, target: str) -> None:
        while (source, target) in self._cuts:
            await self._changed.wait()

    def _note_session(self, broker: str, data: bytes) -> None:
        if len(data) >= 24:
            _, _, timeout_ms, session, length = struct.unpack_from(">iiiqi", data)
            password = data[24 : 24 + length]
            if session and len(password) == length:
                self.sessions[broker] = Session(session, password, timeout_ms)
