"""Raw requests by our own codecs over a plain socket: for what no client library would send or show.

with Wire(address, source="127.0.0.9") as wire:
    answer = wire.call(ListOffsetsRequest(…), 5)
"""

from __future__ import annotations

import itertools
import socket
from typing import TYPE_CHECKING, Any, Self

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import ApiVersionsRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from dataplane.protocol.schema import message_info
from quota.contracts.identity import credential

if TYPE_CHECKING:
    import ssl
    from types import TracebackType


class Wire:
    """One connection. Closed by the broker: ConnectionError."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        source: str = "127.0.0.1",
        timeout_s: float = 10.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.socket = socket.create_connection(address, timeout=timeout_s, source_address=(source, 0))
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname=address[0])
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def call(self, request: Any, version: int) -> Any:
        """The answer to a request."""
        api = APIS[ApiKey(message_info(type(request)).api_key)]
        self.send(request, version)
        return decode_response(api, version, self.frame())[1]

    def send(self, request: Any, version: int) -> None:
        api = APIS[ApiKey(message_info(type(request)).api_key)]
        self.socket.sendall(encode_request(api, version, next(self._numbers), "wire", request))

    def frame(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4)))

    def is_closed(self) -> bool:
        """Whether the broker ends the connection within the socket's timeout, saying nothing more."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def log_in(self, secret: str, name: str = "operator") -> int:
        """SASL/PLAIN as an identity, with what it has of the cluster's secret; the error code of the answer."""
        return self.say(name, credential(secret, name))

    def say(self, name: str, password: str) -> int:
        """SASL/PLAIN; the error code of the answer."""
        assert self.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        answer = self.call(SaslAuthenticateRequest(auth_bytes=f"\0{name}\0{password}".encode()), 2)
        return int(answer.error_code)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            found = self.socket.recv(size - len(data))
            if not found:
                raise ConnectionResetError("closed by the broker")
            data += found
        return data


def answers(address: tuple[str, int], source: str = "127.0.0.1") -> bool:
    """Whether a broker answers a client that comes from this address. False: it ends the connection."""
    try:
        with Wire(address, source=source) as wire:
            return bool(wire.call(ApiVersionsRequest(), 0).error_code == 0)
    except ConnectionError:
        return False
