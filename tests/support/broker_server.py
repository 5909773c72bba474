"""The server's end of an internal listener, as small as can be: SASL/PLAIN or TLS, then one function per API key.

A handler gets the decoded request and the version, and returns the answer (bytes: its body) or a future of it; answers leave in
the order of the requests. What the broker itself serves is `dataplane.network`; this is for tests of its clients.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.headers import RequestHeader, decode_request, encode_frame, parse_request_header, prefixed
from dataplane.protocol.messages.security import SaslAuthenticateResponse, SaslHandshakeResponse
from dataplane.tasks import Future, resolved

if TYPE_CHECKING:
    from dataplane.doors import Connection, Loop
    from dataplane.peers.internal_tls import InternalTls

Handler = Callable[[Any, int], Any]


class BrokerServer:
    """Listens at (host, port) and serves the handlers."""

    def __init__(
        self,
        loop: Loop,
        host: str,
        port: int,
        secret: str,
        handlers: dict[int, Handler],
        tls: InternalTls | None = None,
    ) -> None:
        self.secret = secret
        self.handlers = handlers
        self.logins = 0
        self.let_in: list[str] = []  # by their certificates
        self._tls = tls
        self.listener = loop.listen(host, port, self._accept, tls=tls is not None)

    def _accept(self, connection: Connection) -> _Served:
        served, tls = _Served(self, connection), self._tls

        def shown(certificate: bytes | None) -> None:
            assert tls is not None
            self.let_in.append(tls.identity(certificate).name)
            served.is_let_in()

        if tls is not None:
            connection.secure(tls.server(), shown)
        return served


class _Served:
    def __init__(self, server: BrokerServer, connection: Connection) -> None:
        self._server, self._connection = server, connection
        self._authenticated = False
        self._answers: deque[tuple[RequestHeader, Future[Any]]] = deque()

    def is_let_in(self) -> None:
        self._authenticated = True

    def frame(self, frame: memoryview) -> None:
        header = parse_request_header(frame)
        request = decode_request(header, frame)
        answer = self._answer(header, request)
        future = answer if isinstance(answer, Future) else resolved(answer)
        self._answers.append((header, future))
        future.then(lambda _: self._flush())

    def closed(self, reason: str) -> None:
        pass

    def _answer(self, header: RequestHeader, request: Any) -> Any:
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return SaslHandshakeResponse(mechanisms=("PLAIN",))
        if header.api_key == ApiKey.SASL_AUTHENTICATE:
            self._authenticated = request.auth_bytes.rpartition(b"\0")[2] == self._server.secret.encode()
            self._server.logins += self._authenticated
            return SaslAuthenticateResponse(error_code=0 if self._authenticated else 58)
        if not self._authenticated:
            self._connection.close()
            return Future()
        return self._server.handlers[header.api_key](request, header.api_version)

    def _flush(self) -> None:
        while self._answers and self._answers[0][1].done:
            header, future = self._answers.popleft()
            api = header.api
            assert api is not None
            answer = future.result()
            if isinstance(answer, bytes):
                self._connection.send([prefixed(header.correlation_id.to_bytes(4) + answer)])
            else:
                self._connection.send(encode_frame(api, header.api_version, header.correlation_id, answer))
