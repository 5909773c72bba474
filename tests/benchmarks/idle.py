"""What costs although nothing happens: memory of idle connections."""

from __future__ import annotations

import socket
import time

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.discovery import ApiVersionsRequest
from tests.benchmarks.server import Server

CONNECTIONS = 1_000


def kib_per_connection(server: Server) -> float:
    """Resident KiB that each of 1,000 connections adds, once it has asked for ApiVersions."""
    hello = encode_request(APIS[ApiKey.API_VERSIONS], 0, 1, "bench", ApiVersionsRequest())
    before = server.resident_mib()
    peers = []
    for _ in range(CONNECTIONS):
        peer = socket.create_connection(server.address(), timeout=10)
        peer.sendall(hello)
        peer.recv(65536)
        peers.append(peer)
    time.sleep(1)
    grown = server.resident_mib() - before
    for peer in peers:
        peer.close()
    return grown * 1024 / CONNECTIONS
