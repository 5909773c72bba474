"""The master's two doors: brokers report on one, everybody who may look reads the other over HTTP.

Reports: a connection begins with a hello that carries the cluster secret, within 5 s; then every report is answered by
grants. A wrong secret, a frame that does not follow the protocol, or a master that stands by closes the connection: the
broker finds the active one in ZooKeeper. A broker that is not heard of for 30 s is cut off.

HTTP: ``/health``, ``/v1/instances``, ``/v1/instances/<id>,<id>``, ``/v1/instances/<id>,<id>/allocations``,
``/v1/instances/<id>/allocation``, ``/v1/brokers``, ``/v1/throttled/<position>``, ``/metrics``. A standby answers 503 with
the active master's address, except for ``/metrics`` and ``/v1/throttled``, which are its own.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from quota.contracts.instance import ContractError
from quota.contracts.report import FlowReport
from quota.master.election import Election, Role
from quota.master.http import MAX_HEAD_BYTES, Response, json_response, problem, serve_one
from quota.master.journal import Journal
from quota.master.service import GATHER_S, Service
from quota.master.views import (
    allocation_document,
    allocations_document,
    brokers_document,
    instances_document,
    metrics_text,
)
from quota.wire import MAX_FRAME_BYTES, MAX_HELLO_BYTES, Decoder, Hello, WireError, frame

HELLO_WITHIN_S = 5.0
QUIET_S = 30.0
MAX_UNREAD_BYTES = 4 * MAX_FRAME_BYTES
_ALLOCATION = re.compile(r"/v1/instances/([^/]+)/allocation")
_ALLOCATIONS = re.compile(r"/v1/instances/([^/]+)/allocations")
_SOME = re.compile(r"/v1/instances/([^/]+)")
_THROTTLED = re.compile(r"/v1/throttled/([0-9]{1,18})")
Log = Callable[[str], None]


class ReportServer:
    """All brokers' connections."""

    def __init__(self, service: Service, role: Callable[[], Role], *, secret: str, log: Log) -> None:
        self.service = service
        self.role = role
        self.secret = secret
        self.log = log
        self.connections: dict[int, ReportConnection] = {}  # by order of arrival
        self._arrivals = 0
        self._waiting: dict[int, ReportConnection] = {}  # brokers whose report is not answered yet
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, for callers that asked for 0. Raises OSError."""
        self._server = await asyncio.get_running_loop().create_server(lambda: ReportConnection(self), host, port)
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
        """Close everything."""
        if self._server:
            self._server.close()
        self.close_connections("")


class ReportConnection(asyncio.Protocol):
    """One broker's connection."""

    def __init__(self, server: ReportServer) -> None:
        self._server = server
        self._decoder = Decoder(MAX_HELLO_BYTES)
        self._transport: asyncio.Transport | None = None
        self._broker: int | None = None
        self._number = 0
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = self._server.arrived(self)
        self._wait(HELLO_WITHIN_S)
        if self._server.role() is Role.STANDBY:
            self.close("")

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        del exc
        self._server.connections.pop(self._number, None)
        if self._patience:
            self._patience.cancel()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
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
            if not hmac.compare_digest(hello.secret.encode(), self._server.secret.encode()):
                raise WireError("the secret is wrong")
            self._broker = hello.broker
            self._decoder.max_frame_bytes = MAX_FRAME_BYTES
        elif document.get("type") == "report":
            self._report(FlowReport.from_document(document))
        else:
            raise WireError("not a report")
        self._wait(QUIET_S)

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


class HttpServer:
    """The read API."""

    def __init__(
        self, service: Service, election: Election, *, now: Callable[[], float], journal: Journal | None = None
    ) -> None:
        self._service = service
        self._journal = journal
        self._election = election
        self._now = now
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, for callers that asked for 0. Raises OSError."""
        self._server = await asyncio.start_server(
            lambda reader, writer: serve_one(reader, writer, self.answer), host, port, limit=MAX_HEAD_BYTES
        )
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Close the listener; requests under way end by themselves."""
        if self._server:
            self._server.close()

    def answer(self, path: str) -> Response:
        """The routes."""
        ledger, now = self._service.ledger, self._now()
        if path == "/metrics":
            text = metrics_text(ledger, reports_total=self._service.reports_total, now=now)
            return Response(HTTPStatus.OK, text.encode(), "text/plain; version=0.0.4; charset=utf-8")
        if match := _THROTTLED.fullmatch(path):
            return self._throttled(int(match[1]))
        if ledger is None:
            return self._standby()
        if path == "/health":
            role = self._election.role.value
            brokers = list(ledger.reporting(now))
            return json_response(
                {"role": role, "epoch": ledger.epoch, "learning": ledger.learning(now), "brokers": brokers}
            )
        if path == "/v1/instances":
            return json_response(instances_document(ledger, now))
        if path == "/v1/brokers":
            return json_response(brokers_document(ledger, now))
        if match := _SOME.fullmatch(path):
            return json_response(instances_document(ledger, now, frozenset(match[1].split(","))))
        if match := _ALLOCATION.fullmatch(path):
            if match[1] not in ledger.specs:
                return problem(HTTPStatus.NOT_FOUND, f"there is no instance {match[1]}")
            return json_response(allocation_document(ledger, match[1], now))
        if match := _ALLOCATIONS.fullmatch(path):
            return json_response(allocations_document(ledger, match[1].split(","), now))
        return problem(HTTPStatus.NOT_FOUND, "there is nothing at this path")

    def _throttled(self, position: int) -> Response:
        if self._journal is None:
            return problem(HTTPStatus.NOT_FOUND, "this master keeps no throttled intervals: it has no data_dir")
        intervals, following = self._journal.read(position)
        return json_response({"intervals": intervals, "next": following})

    def _standby(self) -> Response:
        current = self._election.current
        document = {"role": Role.STANDBY.value, "active": current.http if current else None}
        return json_response(document, HTTPStatus.SERVICE_UNAVAILABLE)
