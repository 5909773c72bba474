"""A consumer that costs little: it fetches, counts the record bytes, and throws them away."""

from __future__ import annotations

import socket
import ssl
import struct
import time

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

_FETCH = APIS[ApiKey.FETCH]
_VERSION = 11
_BATCH = struct.Struct(">qi").unpack_from
_LAST_DELTA = struct.Struct(">i").unpack_from


class RawConsumer:
    """One connection, one partition."""

    def __init__(self, address: tuple[str, int], topic: str, partition: int, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(address, timeout=30)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=address[0])
        self._topic, self._partition = topic, partition
        self._buffer = memoryview(bytearray(64 * 2**20))
        self.offset = 0

    def fetch(self, max_bytes: int) -> int:
        """Record bytes of one fetch, whole batches only; the offset moves behind the last of them."""
        partition = FetchPartition(partition=self._partition, fetch_offset=self.offset, partition_max_bytes=max_bytes)
        topic = FetchTopic(topic=self._topic, partitions=(partition,))
        request = FetchRequest(
            replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=max_bytes, session_epoch=-1, topics=(topic,)
        )
        self._socket.sendall(encode_request(_FETCH, _VERSION, 7, "bench", request))
        frame = self._receive()
        _, answer = decode_response(_FETCH, _VERSION, frame)
        data = answer.responses[0].partitions[0]
        if data.error_code:
            raise RuntimeError(f"fetch answered error {data.error_code}")
        return self._walk(data.records)

    def drain(self, total: int, max_bytes: int) -> float:
        """Fetch until `total` record bytes have come; seconds."""
        began = time.monotonic()
        got = 0
        while got < total:
            got += self.fetch(max_bytes)
            if time.monotonic() - began > 120:
                raise TimeoutError(f"{got} of {total} bytes")
        return time.monotonic() - began

    def _receive(self) -> memoryview:
        self._fill(4)
        size = int.from_bytes(self._buffer[:4])
        self._fill(size)
        return self._buffer[:size]

    def _fill(self, size: int) -> None:
        done = 0
        while done < size:
            got = self._socket.recv_into(self._buffer[done:size])
            if not got:
                raise ConnectionError("the broker closed the connection")
            done += got

    def _walk(self, records: memoryview) -> int:
        """Record bytes of the whole batches: a part of one at the end would come again, whole."""
        position = 0
        while len(records) - position >= 61:
            base, length = _BATCH(records, position)
            if position + 12 + length > len(records):
                break
            self.offset = base + _LAST_DELTA(records, position + 23)[0] + 1
            position += 12 + length
        return position

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
