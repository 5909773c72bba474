"""DescribeConnections: who is connected to an instance here, who was refused, and who moves how much of which topic.

An API of our own, for the control plane. Rows come by what moves most: of very many, the largest are told one by one and the
others together. It goes through all connections of the instance in steps, so rows are true one by one, not at one moment. A
topic's name is compared, so that of a topic of somebody else nothing is found; what an instance's clients have moved is in
that instance's table alone.
"""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Generic, TypeVar

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.connections import (
    ConnectionRow,
    DescribeConnectionsRequest,
    DescribeConnectionsResponse,
    FlowOfTheRest,
    RefusedConnectionRow,
    TalkerRow,
)
from dataplane.records.steps import Pace, each
from dataplane.tenancy.talkers import MOST_CLIENT_ID

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps
    from dataplane.tenancy.instance import Instance

MOST_ROWS = 1_000
"""Of either kind, whatever is asked for."""
_LOOK_US, _ROW_US = 4, 6
_MS = 1_000
_LEAST_S = 1.0
"""What came in less time counts as if it had come in a second: who has just connected would be ahead of everybody."""

Row = TypeVar("Row")


def handle_describe_connections(
    ctx: RequestContext, request: DescribeConnectionsRequest
) -> Steps[DescribeConnectionsResponse]:
    """Of an instance that is not served here, RESOURCE_NOT_FOUND."""
    instance = ctx.broker.registry.get(request.instance_id)
    if instance is None:
        return DescribeConnectionsResponse(error_code=ErrorCode.RESOURCE_NOT_FOUND)
    pace = Pace()
    connections: _Largest[ConnectionRow] = _Largest(request.most_connections)
    talkers: _Largest[TalkerRow] = _Largest(request.most_talkers)
    refused: tuple[RefusedConnectionRow, ...] = ()
    if connections.most:
        yield from _connections(ctx, instance, connections, pace)
        rows = instance.refused.rows()
        refused = tuple((yield from each(rows, lambda row: RefusedConnectionRow(*row), _LOOK_US, pace)))
    if talkers.most:
        yield from _talkers(ctx, instance, request.topic, talkers, pace)
    return DescribeConnectionsResponse(
        connections=connections.rows(),
        other_connections=connections.rest(),
        refused=refused,
        other_refused=instance.refused.forgotten,
        talkers=talkers.rows(),
        other_talkers=talkers.rest(),
    )


def _connections(ctx: RequestContext, instance: Instance, found: _Largest[ConnectionRow], pace: Pace) -> Steps[None]:
    clock = ctx.broker.doors.clock
    for connection in list(instance.connections):
        if pace.over(_LOOK_US):
            yield None
        if connection not in instance.connections:
            continue
        now = clock.monotonic()
        seconds, (received, sent, requests) = connection.lately(now)
        session, opened_ms = connection.session, clock.now_ms() - int((now - connection.opened_s) * _MS)
        software_name, software_version = session.software
        row = ConnectionRow(
            connection.client_id[:MOST_CLIENT_ID],
            software_name,
            software_version,
            session.peer,
            session.principal if session.authenticated else "",
            session.route,
            opened_ms,
            int(max(_LEAST_S, seconds) * _MS),
            received,
            sent,
            requests,
        )
        found.add(row, row.window_ms, received, sent, requests)


def _talkers(
    ctx: RequestContext, instance: Instance, topic: str | None, found: _Largest[TalkerRow], pace: Pace
) -> Steps[None]:
    clock = ctx.broker.doors.clock
    for talk in instance.talkers.all():
        if pace.over(_LOOK_US):
            yield None
        if topic is not None and talk.topic != topic:
            continue
        seconds, produced, consumed = talk.lately(clock.monotonic())
        if produced or consumed:
            window_ms = int(max(_LEAST_S, seconds) * _MS)
            row = TalkerRow(talk.client_id, talk.address, talk.topic, window_ms, produced, consumed)
            found.add(row, window_ms, produced, consumed)
    if topic is None:  # of the others nobody knows the topic
        seconds, produced, consumed = instance.talkers.others.lately(clock.monotonic())
        found.count_in(int(max(_LEAST_S, seconds) * _MS), produced, consumed)


class _Largest(Generic[Row]):
    """Of very many rows, those that move most; of the others, sums."""

    def __init__(self, most: int) -> None:
        self.most = max(0, min(most, MOST_ROWS))
        self._heap: list[tuple[float, int, Row, tuple[float, float, float]]] = []
        self._added = 0
        self._rest = [0.0, 0.0, 0.0]
        self._count = 0

    def add(self, row: Row, window_ms: int, in_bytes: int, out_bytes: int, requests: int = 0) -> None:
        """Another, with what came and went in so many milliseconds."""
        flow = (in_bytes * _MS / window_ms, out_bytes * _MS / window_ms, requests * _MS / window_ms)
        self._added += 1
        entry = (flow[0] + flow[1], -self._added, row, flow)
        if len(self._heap) < self.most:
            heappush(self._heap, entry)
            return
        self._leave_out(heappushpop(self._heap, entry)[3])

    def count_in(self, window_ms: int, in_bytes: int, out_bytes: int) -> None:
        """What is of nobody who is known: among the rest."""
        if in_bytes or out_bytes:
            self._leave_out((in_bytes * _MS / window_ms, out_bytes * _MS / window_ms, 0.0))

    def _leave_out(self, flow: tuple[float, float, float]) -> None:
        self._count += 1
        for place, more in enumerate(flow):
            self._rest[place] += more

    def rows(self) -> tuple[Row, ...]:
        """The largest first; of equal ones, who came first."""
        return tuple(row for _, _, row, _ in sorted(self._heap, key=lambda entry: (entry[0], entry[1]), reverse=True))

    def rest(self) -> FlowOfTheRest:
        """All others together."""
        return FlowOfTheRest(self._count, *map(round, self._rest))
