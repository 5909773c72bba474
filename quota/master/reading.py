"""The door at which everybody who may look reads the master, over HTTP.

Each says who it is (`quota.contracts.identity`), by a certificate where there is TLS, or by a credential. The control plane and
operators read everything, monitoring ``/metrics``, which may be open to all by configuration; ``/health`` needs nobody's name.
Who does not prove it is told so after a while, and counted.

``/health``, ``/v1/instances``, ``/v1/instances/<id>,<id>``, ``/v1/instances/<id>,<id>/allocations``,
``/v1/instances/<id>,<id>/requests/<at>``, ``/v1/instances/<id>/allocation``, ``/v1/brokers``, ``/v1/throttled/<position>``,
``/v1/elastic/<position>``, ``/v1/loop-times/<broker>/<at>``, ``/metrics``. A standby answers 503 with the active master's
address, except for ``/metrics`` and the two journals, which are its own.

Asked for one instance that it does not know, the master looks into ZooKeeper before it says that there is none: whoever has
just made it asks before the change arrives here. Where ZooKeeper does not answer, neither does it: 503, try again.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from quota.contracts.identity import Identity, Keys
from quota.contracts.identity import Role as IdentityRole
from quota.contracts.namespace import instance_key
from quota.master.election import Election, Role
from quota.master.http import MAX_HEAD_BYTES, Response, json_response, problem, serve_one
from quota.master.journal import Journal
from quota.master.secured import HANDSHAKE_WITHIN_S, Secured
from quota.master.service import Service
from quota.master.views import (
    allocation_document,
    allocations_document,
    brokers_document,
    instances_document,
    loop_times_document,
    metrics_text,
    requests_document,
)
from quota.master.zookeeper import ZooKeeperLost

_ALLOCATION = re.compile(r"/v1/instances/([^/]+)/allocation")
_ALLOCATIONS = re.compile(r"/v1/instances/([^/]+)/allocations")
_LOOP_TIMES = re.compile(r"/v1/loop-times/([0-9]{1,10})/([0-9]{1,12})")
_REQUESTS = re.compile(r"/v1/instances/([^/]+)/requests/([0-9]{1,12})")
_SOME = re.compile(r"/v1/instances/([^/]+)")
_THROTTLED = re.compile(r"/v1/throttled/([0-9]{1,18})")
_ELASTIC = re.compile(r"/v1/elastic/([0-9]{1,18})")

REFUSED_AFTER_S = 0.3
_READERS = (IdentityRole.CONTROL_PLANE, IdentityRole.OPERATOR, IdentityRole.ANYBODY)

Learn = Callable[[str], Awaitable[None]]
"""Reads the spec of one instance now, if there is one. Raises ZooKeeperLost."""


class HttpServer:
    """Serves the read API to the control plane and to Prometheus."""

    def __init__(
        self,
        service: Service,
        election: Election,
        *,
        now: Callable[[], float],
        learn: Learn,
        keys: Keys,
        journal: Journal | None = None,
        elastic: Journal | None = None,
        open_metrics: bool = False,
        secured: Secured | None = None,
    ) -> None:
        self._secured = secured
        self._keys, self._open_metrics = keys, open_metrics
        self.refused_total = 0
        self._service = service
        self._learn = learn
        self._journal, self._elastic = journal, elastic
        self._election = election
        self._now = now
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, for callers that asked for 0. Raises OSError."""
        self._server = await asyncio.start_server(
            self._serve,
            host,
            port,
            limit=MAX_HEAD_BYTES,
            ssl=self._secured.http() if self._secured else None,
            ssl_handshake_timeout=HANDSHAKE_WITHIN_S if self._secured else None,
        )
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Close the listener; requests under way end by themselves."""
        if self._server:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown = None
        if self._secured is not None:
            with contextlib.suppress(ValueError):  # nobody of the cluster: as who shows nothing
                shown = self._secured.identity(writer.transport)
        await serve_one(reader, writer, lambda path, authorization: self.answer(path, authorization, shown))

    async def answer(self, path: str, authorization: str, shown: Identity | None = None) -> Response:
        """`shown`: who it is by its certificate."""
        if not self._may_read(path, shown or self._keys.bearer_proven(authorization)):
            self.refused_total += 1
            await asyncio.sleep(REFUSED_AFTER_S)
            return problem(HTTPStatus.UNAUTHORIZED, "the credential of an identity that may read this is missing")
        return await self._answer(path)

    def _may_read(self, path: str, identity: Identity | None) -> bool:
        if path == "/health" or (path == "/metrics" and self._open_metrics):
            return True
        return identity is not None and (
            identity.role in _READERS or (path == "/metrics" and identity.role is IdentityRole.MONITORING)
        )

    async def _answer(self, path: str) -> Response:
        ledger, now = self._service.ledger, self._now()
        if path == "/metrics":
            text = metrics_text(ledger, reports_total=self._service.reports_total, now=now)
            text += f"# TYPE sluice_master_refused_total counter\nsluice_master_refused_total {self.refused_total}\n"
            return Response(HTTPStatus.OK, text.encode(), "text/plain; version=0.0.4; charset=utf-8")
        if match := _THROTTLED.fullmatch(path):
            return _page(self._journal, "intervals", int(match[1]))
        if match := _ELASTIC.fullmatch(path):
            return _page(self._elastic, "uses", int(match[1]))
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
            return await self._allocation(match[1])
        if match := _REQUESTS.fullmatch(path):
            return json_response(requests_document(ledger, match[1].split(","), int(match[2]), now))
        if match := _LOOP_TIMES.fullmatch(path):
            return json_response(loop_times_document(ledger, int(match[1]), int(match[2])))
        if match := _ALLOCATIONS.fullmatch(path):
            return json_response(allocations_document(ledger, match[1].split(","), now))
        return problem(HTTPStatus.NOT_FOUND, "there is nothing at this path")

    async def _allocation(self, instance: str) -> Response:
        try:
            instance_key(instance)
            if self._service.ledger and instance not in self._service.ledger.specs:
                await self._learn(instance)
        except ZooKeeperLost:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, f"whether there is an instance {instance} is not known now")
        except ValueError:
            return problem(HTTPStatus.NOT_FOUND, f"{instance} cannot be the id of an instance")
        ledger = self._service.ledger
        if ledger is None:
            return self._standby()
        if instance not in ledger.specs:
            return problem(HTTPStatus.NOT_FOUND, f"there is no instance {instance}")
        return json_response(allocation_document(ledger, instance, self._now()))

    def _standby(self) -> Response:
        current = self._election.current
        document = {"role": Role.STANDBY.value, "active": current.http if current else None}
        return json_response(document, HTTPStatus.SERVICE_UNAVAILABLE)


def _page(journal: Journal | None, name: str, position: int) -> Response:
    """Lines of a journal from a position on."""
    if journal is None:
        return problem(HTTPStatus.NOT_FOUND, "this master keeps no journals: it has no data_dir")
    lines, following = journal.read(position)
    return json_response({name: lines, "next": following})
