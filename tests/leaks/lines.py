"""Connections over sockets."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from tests.leaks.client import Address

USUAL, APART = "127.0.0.1", "127.0.0.77"
"""Source addresses on this machine: with another one, what B's members are said to come from is a word to look for."""


class Sockets:
    """A `client.Network`."""

    def __init__(self, timeout_s: float = 60.0) -> None:
        self._timeout_s = timeout_s

    def open(self, address: Address, *, apart: bool) -> SocketLine:
        is_here = address[0].startswith("127.")
        source = (APART if apart else USUAL, 0) if is_here else None
        return SocketLine(socket.create_connection(address, self._timeout_s, source_address=source))

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def now(self) -> float:
        return time.monotonic()


class SocketLine:
    """A `client.Line`."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def send(self, data: bytes) -> None:
        with suppress(ConnectionError):  # what came before the end can be read all the same
            self._socket.sendall(data)

    def frame(self) -> bytes | None:
        size = self._exactly(4)
        return None if size is None else self._exactly(int.from_bytes(size))

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                found = self._socket.recv(size - len(data))
            except ConnectionError:
                return None
            if not found:
                return None
            data += found
        return data
