"""The door at which brokers report to the master.

A connection begins with a hello that says which broker it is, within 5 s; then every report is answered by grants. The broker
proves it by the certificate that it has shown, or where there is no TLS by its own credential, which is in the hello
(`quota.contracts.identity`). A wrong credential, another's certificate, a frame that does not follow the protocol, or a
master that stands by closes the connection: the broker finds the active one in ZooKeeper. A broker that is not heard of
for 30 s is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quota.contracts.identity import Identity, Keys
from quota.contracts.identity import broker as broker_of
from quota.contracts.instance import ContractError
from quota.contracts.report import FlowReport
from quota.master.election import Role
from quota.master.secured import HANDSHAKE_WITHIN_S, Secured
from quota.master.service import GATHER_S, Service
from quota.wire import MAX_FRAME_BYTES, MAX_HELLO_BYTES, Decoder, Hello, WireError, frame

HELLO_WITHIN_S = 5.0
QUIET_S = 30.0
MAX_UNREAD_BYTES = 4 * MAX_FRAME_BYTES
Log = Callable[[str], None]


class ReportServer:
    """Accepts brokers, and has a connection for each."""

    def __init__(
        self, service: Service, role: Callable[[], Role], *, keys: Keys, log: Log, secured: Secured | None = None
    ) -> None:
        self.secured = secured
        self.service = service
        self.role = role
        self.keys = keys
        self.log = log
        self.connections: dict[int, ReportConnection] = {}  # by order of arrival
        self._arrivals = 0
        self._waiting: dict[int, ReportConnection] = {}  # brokers whose report is not answered yet
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, for callers that asked for 0. Raises OSError."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: ReportConnection(self),
            host,
            port,
            ssl=self.secured.reports() if self.secured else None,
            ssl_handshake_timeout=HANDSHAKE_WITHIN_S if self.secured else None,
        )
        return int(self._server.sockets[0].getsockname()[1])

    def arrived(self, connection: ReportConnection) -> int:
        """Remember a connection; the number to forget it by."""
        self._arrivals += 1
        self.connections[self._arrivals] = connection
        return self._arrivals

    def answer_soon(self, broker: int, connection: ReportConnection) -> None:
        """Grants for the broker, after those reports that come at the same time have been taken."""
        if not self._waiting:
            asyncio.get_running_loop().call_later(GATHER_S, self._answer)
        self._waiting[broker] = connection

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if self.role() is not Role.ACTIVE:
            return  # suspended: leases run on, and nothing is granted
        for broker, connection in waiting.items():
            grants = self.service.grants(broker)
            if grants is not None:
                connection.send(frame(grants.to_json()))

    def close_connections(self, reason: str) -> None:
        """Send the brokers to look for the active master."""
        for connection in list(self.connections.values()):
            connection.close(reason)

    def stop(self) -> None:
        if self._server:
            self._server.close()
        self.close_connections("")


class ReportConnection(asyncio.Protocol):
    """One broker's line: its reports come in, its grants go out."""

    def __init__(self, server: ReportServer) -> None:
        self._server = server
        self._decoder = Decoder(MAX_HELLO_BYTES)
        self._transport: asyncio.Transport | None = None
        self._broker: int | None = None
        self._shown: Identity | None = None  # by its certificate
        self._number = 0
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = self._server.arrived(self)
        self._wait(HELLO_WITHIN_S)
        if self._server.role() is Role.STANDBY:
            self.close("")
        if self._server.secured is not None:
            try:
                self._shown = self._server.secured.identity(transport)
            except ValueError as error:
                self.close(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.connections.pop(self._number, None)
        if self._patience:
            self._patience.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            for document in self._decoder.feed(data):
                self._take(document)
        except (WireError, ContractError) as error:
            self.close(str(error))

    def close(self, reason: str) -> None:
        """Close at once; the reason goes to the log."""
        if self._transport and not self._transport.is_closing():
            if reason:
                self._server.log(f"broker {self._broker or '?'}: {reason}")
            self._transport.abort()

    def _take(self, document: dict[str, Any]) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._broker is None:
            hello = Hello.from_document(document)
            self._prove(hello)
            self._broker = hello.broker
            self._decoder.max_frame_bytes = MAX_FRAME_BYTES
        elif document.get("type") == "report":
            self._report(FlowReport.from_document(document))
        else:
            raise WireError("not a report")
        self._wait(QUIET_S)

    def _prove(self, hello: Hello) -> None:
        """That it is the broker that it says. Raises WireError."""
        said = broker_of(hello.broker)
        if self._server.secured is None:
            if self._server.keys.proven(said.name, hello.secret) is None:
                raise WireError(f"the credential of broker {hello.broker} is wrong")
        elif self._shown != said:
            shown = self._shown.name if self._shown else "nobody"
            raise WireError(f"it says that it is broker {hello.broker}, and its certificate is {shown}'s")

    def send(self, data: bytes) -> None:
        """Queue bytes; a broker that does not read is cut off."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.close("does not read its grants")
        else:
            self._transport.write(data)

    def _report(self, report: FlowReport) -> None:
        if report.broker != self._broker:
            raise WireError(f"reports for broker {report.broker}")
        if self._server.service.report(report):
            self._server.answer_soon(report.broker, self)

    def _wait(self, seconds: float) -> None:
        if self._patience:
            self._patience.cancel()
        self._patience = asyncio.get_running_loop().call_later(seconds, self.close, f"quiet for {seconds:.0f} s")
