"""The clients of `fairness`: producers by the thousand in one thread, some at a rate, some as fast as they are let.

Each has a connection, a client id, and one request that it repeats; of a thousand requests the batch is the same memory. What
happens is noted by the machine's monotonic clock: when a request was due, when its answer came, and what it said.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.codec import encode
from dataplane.protocol.headers import decode_response
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch

VERSION = 7
"""Of Produce: the last whose header has nothing behind the client id, so that the rest of the frame can be shared."""
TIMED_OUT_S = 30.0
_BATCH_OVERHEAD_BYTES = 80
_HEADER = struct.Struct(">ihhih")
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT

Address = tuple[str, int]


class Noted(NamedTuple):
    """A request that was answered, or whose connection ended first."""

    client: int
    due_s: float
    answered_s: float
    size: int
    error: int  # of Kafka; -2: no answer


def body(topic: str, partition: int, size: int) -> bytes:
    """A request with a batch of `size` bytes, without its header."""
    batch = bytes(build_batch([Record(None, os.urandom(size - _BATCH_OVERHEAD_BYTES))], now_ms=int(time.time() * 1000)))
    data = TopicProduceData(topic, (PartitionProduceData(partition, batch),))
    return encode(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(data,)), VERSION)


@dataclass
class Client:
    """Whom it asks for what. `every_s` of 0: again as soon as `depth` allows. `waits`: as long as answers tell it to."""

    number: int
    address: Address
    client_id: str
    body: bytes
    every_s: float = 0.0
    depth: int = 5
    waits: bool = True
    connects_anew: bool = False  # after every answer
    offers: bool = True
    # What follows is the swarm's.
    sock: socket.socket | None = None
    due: deque[float] = field(default_factory=deque)
    sent: deque[float] = field(default_factory=deque)
    out: list[memoryview] = field(default_factory=list)
    received: bytearray = field(default_factory=bytearray)
    next_s: float = 0.0
    mute_until: float = 0.0
    listens_to_send: bool = False

    def frame(self) -> list[memoryview]:
        name = self.client_id.encode()
        size = _HEADER.size - 4 + len(name) + len(self.body)
        head = _HEADER.pack(size, int(ApiKey.PRODUCE), VERSION, 1, len(name)) + name
        return [memoryview(head), memoryview(self.body)]


class Swarm:
    """All clients, driven by `run`; what they noted is in `noted`."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self.clients = clients
        self.noted: list[Noted] = []
        self._epoll = select.epoll()
        self._by_fd: dict[int, Client] = {}
        self._later: deque[Client] = deque()  # who connects anew
        for client in clients:
            self._connect(client)

    def close(self) -> None:
        for client in self.clients:
            if client.sock is not None:
                client.sock.close()
        self._epoll.close()

    def run(self, until_s: float) -> None:
        """Offer what is to be offered until this moment."""
        while (now := time.monotonic()) < until_s:
            for _ in range(len(self._later)):
                self._connect(self._later.popleft())
            wake_s = until_s
            for client in self.clients:
                if client.sock is not None:
                    wake_s = min(wake_s, self._offer(client, now))
            for fd, events in self._epoll.poll(max(0.001, min(wake_s - now, 0.05))):
                client = self._by_fd[fd]
                if events & ~_OUT:
                    self._receive(client)
                if client.sock is not None and events & _OUT:
                    self._send(client)

    def waiting(self, now: float) -> list[Noted]:
        """Requests that were due so long ago that a client would have given them up, and have no answer yet."""
        return [
            Noted(client.number, due, now, len(client.body), -2)
            for client in self.clients
            for due in (*client.sent, *client.due)
            if now - due > TIMED_OUT_S
        ]

    def _offer(self, client: Client, now: float) -> float:
        """Send what is due; when to look again."""
        if client.every_s and client.offers:
            client.next_s = client.next_s or now
            while client.next_s <= now:
                client.due.append(client.next_s)
                client.next_s += client.every_s
        if client.mute_until > now:
            return client.mute_until
        while len(client.sent) < client.depth and not client.out:
            if client.every_s:
                if not client.due:
                    break
                client.sent.append(client.due.popleft())
            elif client.offers:
                client.sent.append(now)
            else:
                break
            client.out = client.frame()
            self._send(client)
            if client.sock is None:
                break
        return client.next_s if client.every_s and client.offers else now + 0.05

    def _send(self, client: Client) -> None:
        assert client.sock is not None
        try:
            while client.out:
                sent = client.sock.sendmsg(client.out)
                while client.out and sent >= len(client.out[0]):
                    sent -= len(client.out.pop(0))
                if client.out:
                    client.out[0] = client.out[0][sent:]
        except BlockingIOError:
            pass
        except OSError:
            self._lose(client)
            return
        if client.listens_to_send != bool(client.out):
            client.listens_to_send = bool(client.out)
            self._epoll.modify(client.sock.fileno(), _IN | (_OUT if client.out else 0))

    def _receive(self, client: Client) -> None:
        assert client.sock is not None
        try:
            found = client.sock.recv(2**16)
        except BlockingIOError:
            return
        except OSError:
            found = b""
        if not found:
            self._lose(client)
            return
        client.received += found
        while len(client.received) >= 4 and len(client.received) >= (end := 4 + int.from_bytes(client.received[:4])):
            self._answered(client, bytes(client.received[4:end]))
            del client.received[:end]
        if client.connects_anew and not client.sent:
            self._leave(client)

    def _answered(self, client: Client, frame: bytes) -> None:
        now = time.monotonic()
        answer = decode_response(APIS[ApiKey.PRODUCE], VERSION, frame)[1]
        error = answer.responses[0].partition_responses[0].error_code
        self.noted.append(Noted(client.number, client.sent.popleft(), now, len(client.body), error))
        if client.waits and answer.throttle_time_ms:
            client.mute_until = max(client.mute_until, now + answer.throttle_time_ms / 1000)

    def _lose(self, client: Client) -> None:
        now = time.monotonic()
        self.noted += (Noted(client.number, due, now, len(client.body), -2) for due in client.sent)
        self._leave(client)

    def _leave(self, client: Client) -> None:
        assert client.sock is not None
        del self._by_fd[client.sock.fileno()]
        self._epoll.unregister(client.sock.fileno())
        client.sock.close()
        client.sock = None
        client.sent.clear()
        client.out.clear()
        client.received.clear()
        self._later.append(client)

    def _connect(self, client: Client) -> None:
        with suppress(OSError):
            sock = socket.create_connection(client.address, timeout=5.0)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sock, client.listens_to_send = sock, False
            self._by_fd[sock.fileno()] = client
            self._epoll.register(sock.fileno(), _IN)
            return
        self._later.append(client)


def most_in(noted: Sequence[Noted], window_s: float) -> float:
    """The most bytes whose answers fall into one window of this length, wherever it begins."""
    admitted = sorted((each.answered_s, each.size) for each in noted if each.error == 0)
    most = inside = first = 0
    for answered_s, size in admitted:
        inside += size
        while admitted[first][0] <= answered_s - window_s:
            inside -= admitted[first][1]
            first += 1
        most = max(most, inside)
    return float(most)
