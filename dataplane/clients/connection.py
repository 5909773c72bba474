"""One connection to one broker: a blocking socket, one request at a time, by our own codecs.

It begins with TLS, if that is set, then asks for versions, then says who we are. A broker from before Kafka 0.10 ends the
connection at the question for versions; the next connection to it does not ask (`versions.BEFORE_API_VERSIONS`).

After ConnectionLostError it is of no use any more; its owner makes another. Threads may share one: they take turns.
"""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from dataplane.clients.authentication import tls_context, tokens
from dataplane.clients.errors import AuthenticationError, ConnectionLostError, UnsupportedError
from dataplane.clients.settings import Address, ConnectionSettings
from dataplane.clients.versions import BEFORE_API_VERSIONS, Range, chosen, theirs
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import ApiVersionsRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from dataplane.protocol.primitives import DecodeError
from dataplane.protocol.schema import message_info

_LARGEST_ANSWER = 2**30
_SOFTWARE = ("sluice-clients", "0.1.0")


class Connection:
    """Open when made. Raises ConnectionLostError, AuthenticationError, UnsupportedError from everything."""

    def __init__(self, address: Address, settings: ConnectionSettings, *, asks_versions: bool = True) -> None:
        self.address = address
        self._settings = settings
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()
        self._socket = self._connected()
        self.versions: Mapping[int, Range] = BEFORE_API_VERSIONS
        try:
            if asks_versions:
                self.versions = self._asked_versions()
            if settings.has_sasl:
                self._log_in()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Whoever waits for an answer gets ConnectionLostError."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that reads, which `close` alone does not
        self._socket.close()

    def version(self, key: ApiKey, *, at_most: int | None = None) -> int:
        """In which a request of this API is sent."""
        return chosen(key, self.versions, at_most=at_most)

    def call(self, request: Any, *, version: int | None = None, timeout_ms: int | None = None) -> Any:
        """The answer. `timeout_ms`: beyond what is usual, for requests that wait at the broker."""
        key = ApiKey(message_info(type(request)).api_key or 0)
        version = self.version(key) if version is None else version
        with self._turn:
            number = self._send(key, version, request)
            try:
                self._socket.settimeout((self._settings.socket_timeout_ms + (timeout_ms or 0)) / 1000)
                answered, answer = decode_response(APIS[key], version, self._frame())
            except (OSError, DecodeError) as error:
                raise self._lost(error) from error
            if answered != number:
                raise self._lost("an answer to another request")
        return answer

    def tell(self, request: Any, *, version: int | None = None) -> None:
        """A request that has no answer: produce with acks=0."""
        key = ApiKey(message_info(type(request)).api_key or 0)
        with self._turn:
            self._send(key, self.version(key) if version is None else version, request)

    def _send(self, key: ApiKey, version: int, request: Any) -> int:
        number = next(self._numbers) & 0x7FFFFFFF
        try:
            self._socket.settimeout(self._settings.socket_timeout_ms / 1000)
            self._socket.sendall(encode_request(APIS[key], version, number, self._settings.client_id, request))
        except OSError as error:
            raise self._lost(error) from error
        return number

    # --- how it begins ------------------------------------------------------------------------------------------------

    def _connected(self) -> socket.socket:
        timeout_s = self._settings.connect_timeout_ms / 1000
        plain = None
        try:
            plain = socket.create_connection(self.address, timeout=timeout_s)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._settings.has_tls:
                return plain
            return tls_context(self._settings).wrap_socket(plain, server_hostname=self.address[0])
        except OSError as error:
            if plain is not None:
                plain.close()
            raise self._lost(error) from error

    def _asked_versions(self) -> dict[int, Range]:
        name, version = _SOFTWARE
        answer = self.call(ApiVersionsRequest(client_software_name=name, client_software_version=version), version=3)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:  # it knows older ones
            answer = self.call(ApiVersionsRequest(), version=0)
        if answer.error_code != ErrorCode.NONE:
            raise UnsupportedError(f"{self._where} does not say which versions it has: error {answer.error_code}")
        return theirs(answer)

    def _log_in(self) -> None:
        mechanism = self._settings.sasl_mechanism
        handshake = self.call(SaslHandshakeRequest(mechanism=mechanism), version=1)
        if handshake.error_code != ErrorCode.NONE:
            raise AuthenticationError(f"{self._where} has {', '.join(handshake.mechanisms)}, not {mechanism}")
        exchange = tokens(self._settings)
        token = next(exchange)
        while True:
            answer = self.call(SaslAuthenticateRequest(auth_bytes=token))
            if answer.error_code != ErrorCode.NONE:
                raise AuthenticationError(f"{self._where}: {answer.error_message or 'the login is refused'}")
            try:
                token = exchange.send(answer.auth_bytes)
            except StopIteration:
                return

    # --- bytes --------------------------------------------------------------------------------------------------------

    def _frame(self) -> memoryview:
        size = int.from_bytes(self._exactly(4), signed=True)
        if not 0 <= size <= _LARGEST_ANSWER:
            raise DecodeError(f"an answer of {size} bytes")
        return self._exactly(size)

    def _exactly(self, size: int) -> memoryview:
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            got = self._socket.recv_into(view[done:])
            if not got:
                raise ConnectionResetError("closed by the broker")
            done += got
        return view

    @property
    def _where(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    def _lost(self, reason: OSError | DecodeError | str) -> ConnectionLostError:
        if hasattr(self, "_socket"):
            self._socket.close()
        return ConnectionLostError(f"{self._where}: {reason}")


def opened(address: Address, settings: ConnectionSettings, *, may_be_old: bool = True) -> Connection:
    """A connection to a broker of any age. Raises as `Connection`.

    What does not know ApiVersions ends the connection, and so does what lets nobody in: only the next request tells.
    """
    try:
        return Connection(address, settings)
    except ConnectionLostError as error:
        is_ended = isinstance(error.__cause__, ConnectionError) and not isinstance(
            error.__cause__, ConnectionRefusedError
        )
        if settings.security_protocol != "PLAINTEXT" or not (may_be_old and is_ended):
            raise
        return Connection(address, settings, asks_versions=False)
