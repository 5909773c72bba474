"""Small requests: what one costs the broker, in requests a second of broker CPU ("per core").

The same request over and over on a few connections, many in flight on each: the client cannot be what is measured.
"""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import dataclass

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from tests.benchmarks.server import Server

IN_FLIGHT = 20
CONNECTIONS = 10


def produce_request(topic: str) -> bytes:
    """One record of 100 bytes, acks=1."""
    batch = bytes(build_batch([Record(None, bytes(100))], now_ms=1))
    data = TopicProduceData(topic, (PartitionProduceData(0, batch),))
    request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=30_000, topic_data=(data,))
    return encode_request(APIS[ApiKey.PRODUCE], 7, 1, "bench", request)


def fetch_request(topic: str, offset: int) -> bytes:
    """At most 1 KiB of one partition, from `offset`, at once."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1024)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1024,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(partition,)),),
    )
    return encode_request(APIS[ApiKey.FETCH], 11, 1, "bench", request)


@dataclass
class _Peer:
    sock: socket.socket
    answer_bytes: int
    received: int = 0
    asked: int = 0


def per_core(server: Server, request: bytes, seconds: float) -> tuple[float, float]:
    """(requests a second of the broker's CPU, requests a second) over `seconds`."""
    peers = [_connect(server, request) for _ in range(CONNECTIONS)]
    answered = 0
    before, began = server.cpu_s(), time.monotonic()
    with selectors.DefaultSelector() as selector:
        for peer in peers:
            selector.register(peer.sock, selectors.EVENT_READ, peer)
            _ask(peer, request, IN_FLIGHT)
        while time.monotonic() - began < seconds:
            for key, _ in selector.select(1.0):
                answered += _serve(key.data, request)
    used = server.cpu_s() - before
    for peer in peers:
        peer.sock.close()
    return answered / used, answered / (time.monotonic() - began)


def _connect(server: Server, request: bytes) -> _Peer:
    """Ask once, to learn how long the answer is."""
    sock = socket.create_connection(server.address(), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(request)
    size = int.from_bytes(_exactly(sock, 4))
    _exactly(sock, size)
    return _Peer(sock, 4 + size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return data


def _ask(peer: _Peer, request: bytes, count: int) -> None:
    peer.sock.sendall(request * count)
    peer.asked += count


def _serve(peer: _Peer, request: bytes) -> int:
    """Take what has come; ask as many again as were answered. Answers all have the same size."""
    before = peer.received // peer.answer_bytes
    data = peer.sock.recv(2**20)
    if not data:
        raise ConnectionError("the broker closed the connection")
    peer.received += len(data)
    done = peer.received // peer.answer_bytes - before
    if done:
        _ask(peer, request, done)
    return done
