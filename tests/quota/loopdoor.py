"""The loop door of `quota.agent.transport` on real asyncio sockets, for loopback tests."""

import asyncio


class AsyncioDoor:
    """A shim with the methods of `LoopDoor`."""

    def __init__(self):
        self._loop = asyncio.get_running_loop()
        self._tasks = set()

    def connect(self, host, port, on_open, on_data, on_closed):
        conn = _Conn(on_open, on_data, on_closed)
        task = self._loop.create_task(self._connect(host, port, conn))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return conn

    async def _connect(self, host, port, conn):
        try:
            await self._loop.create_connection(lambda: conn, host, port)
        except OSError:
            conn.connection_lost(None)

    def call_later(self, seconds, fn):
        return self._loop.call_later(seconds, fn)

    def now(self):
        return self._loop.time()


class _Conn(asyncio.Protocol):
    def __init__(self, on_open, on_data, on_closed):
        self._on_open, self._on_data, self._on_closed = on_open, on_data, on_closed
        self._transport = None
        self._given_up = False

    def connection_made(self, transport):
        self._transport = transport
        if self._given_up:
            transport.abort()
        else:
            self._on_open()

    def data_received(self, data):
        self._on_data(data)

    def connection_lost(self, exc):
        if not self._given_up:
            self._on_closed()

    def send(self, data):
        self._transport.write(data)

    def close(self):
        self._given_up = True
        if self._transport:
            self._transport.abort()
