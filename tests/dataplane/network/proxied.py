"""A listener that expects PROXY headers, on a real loop, in front of an instance's whitelist; and clients for it."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import contextmanager

from dataplane.clock import SystemClock
from dataplane.network.loop import EpollLoop
from dataplane.tenancy.proxies import Proxies
from dataplane.tenancy.whitelist import Whitelist

BALANCER, CLIENT, STRANGER = "127.0.0.9", "127.0.0.5", "127.0.0.6"
"""Whose headers are believed; whom the whitelist lets in; whom it does not."""
SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")
MOST_FRAME_BYTES = 16 * 2**20


def v1(source=CLIENT, port=5123):
    return f"PROXY TCP4 {source} 127.0.0.1 {port} 9092\r\n".encode()


def v2(source=CLIENT, port=5123, tlvs=b""):
    body = socket.inet_aton(source) + socket.inet_aton("127.0.0.1") + struct.pack(">HH", port, 9092) + tlvs
    return SIGNATURE + b"\x21\x11" + struct.pack(">H", len(body)) + body


def framed(payload):
    return struct.pack(">i", len(payload)) + payload


class Echo:
    """What sits on a connection that was let in: it says whose it is, then answers each frame with itself."""

    def __init__(self, connection):
        self._connection = connection

    def frame(self, frame):
        self._connection.send(
            [framed(f"{self._connection.peer[0]} {self._connection.peer[1]} ".encode() + bytes(frame))]
        )

    def closed(self, reason):
        pass


class ProxiedServer:
    """Ports: `port` expects headers, `plain_port` does not."""

    def __init__(self, peers=(f"{BALANCER}/32",), whitelist=(f"{CLIENT}/32",), within_s=5.0):
        self.loop = EpollLoop(SystemClock())
        self.lines = []
        self.loop.report = self.lines.append
        self.let_in = []  # whose the connections are that were let in
        self._whitelist = Whitelist(whitelist)
        proxies = Proxies(peers)
        proxies.within_s = within_s
        self.listener = self.loop.listen("127.0.0.1", 0, self._accept, preface=proxies)
        self.plain = self.loop.listen("127.0.0.1", 0, self._accept)
        self.port, self.plain_port = self.listener.address[1], self.plain.address[1]
        self._thread = threading.Thread(target=self.loop.run, daemon=True)
        self._thread.start()

    def _accept(self, connection):
        if not self._whitelist.allows(connection.peer[0]):
            return None
        connection.max_frame_bytes = MOST_FRAME_BYTES
        self.let_in.append(connection.peer)
        return Echo(connection)

    def on_loop(self, call):
        done, result = threading.Event(), []
        self.loop.call_threadsafe(lambda: (result.append(call()), done.set()))
        assert done.wait(20)
        return result[0]

    def stop(self):
        self.loop.call_threadsafe(self.loop.stop)
        self._thread.join(20)
        self.loop.close()


@contextmanager
def serving(**options):
    server = ProxiedServer(**options)
    try:
        yield server
    finally:
        server.stop()


def connected(port, source):
    return socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(source, 0))


def answer(sock):
    """The next frame; None: the connection has ended instead."""
    data = b""
    try:
        while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
            piece = sock.recv(65536)
            if not piece:
                return None
            data += piece
    except ConnectionError:
        return None
    return data[4:]
