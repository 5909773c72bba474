"""Reading connections, within an organisation: one question to each broker.

Brokers tell those that move most one by one, and the others together. Rates are means over the last half minute to two
minutes (less for who came later). A client that speaks with several brokers has a connection to each, and is one talker: what
it moves there is added up. Where a broker does not answer, what it knows is missing, and `missing_brokers` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from controlplane.instances.models import Route
from controlplane.instances.selectors import instance_get
from controlplane.kafka import connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from controlplane.instances.models import Instance
    from controlplane.kafka.connection_bytes import ConnectionRow, RefusedRow, Rest
    from controlplane.kafka.connections import Told
    from controlplane.tenants.models import Organisation

MOST = 1_000
"""Rows of either kind, of each broker."""
SECOND_MS = 1_000


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """One connection, from the broker's side: what comes in is what the client sends."""

    broker: int
    client_id: str  # empty: it has not said one
    software_name: str  # as it calls itself in ApiVersions; empty: it has not
    software_version: str
    address: str
    principal: str | None  # None: it has not logged in yet
    route_id: str
    security: str | None  # of the route; None: the route is gone
    connected_at: datetime
    in_bytes_per_s: float
    out_bytes_per_s: float
    requests_per_s: float

    @property
    def bytes_per_s(self) -> float:
        """Both ways."""
        return self.in_bytes_per_s + self.out_bytes_per_s


@dataclass(frozen=True, slots=True)
class Others:
    """Rows that were not told one by one."""

    count: int
    in_bytes_per_s: int
    out_bytes_per_s: int


@dataclass(frozen=True, slots=True)
class RefusedView:
    """Connections that were not taken since the brokers started, from one address to one route for one reason."""

    address: str
    route_id: str
    reason: str
    count: int
    last_at: datetime
    user: str | None  # that the last of them tried to log in as; None: not known
    client_id: str  # that it said; empty: none


@dataclass(frozen=True, slots=True)
class TalkerView:
    """What one client moves of one topic: bytes of records as they are stored."""

    client_id: str
    address: str
    topic: str
    produced_bytes_per_s: float
    consumed_bytes_per_s: float

    @property
    def bytes_per_s(self) -> float:
        """Both ways."""
        return self.produced_bytes_per_s + self.consumed_bytes_per_s


@dataclass(frozen=True, slots=True)
class Connected:
    """Who is connected and who was refused. Of refused rows, those of which nothing more is known are counted only."""

    connections: list[ConnectionView]
    others: Others
    refused: list[RefusedView]
    other_refused: int
    missing_brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Talking:
    """Who produces and consumes."""

    talkers: list[TalkerView]
    others: Others
    missing_brokers: tuple[int, ...]

    @property
    def produced_bytes_per_s(self) -> float:
        """Of all of them together."""
        return round(sum(row.produced_bytes_per_s for row in self.talkers) + self.others.in_bytes_per_s, 3)

    @property
    def consumed_bytes_per_s(self) -> float:
        """Likewise."""
        return round(sum(row.consumed_bytes_per_s for row in self.talkers) + self.others.out_bytes_per_s, 3)


def connections_read(
    *,
    organisation: Organisation,
    instance_id: str,
    most: int = MOST,
    wanted: Mapping[str, str] = MappingProxyType({}),
    in_order: Callable[[list[ConnectionView]], list[ConnectionView]] | None = None,
) -> Connected:
    """The busiest first; the latest refused first. Raises NotFound, ClusterUnavailable.

    `wanted`: members that connections must have; `in_order` sorts them otherwise. Either is asked of all that brokers tell one
    by one, not of the busiest `most` alone; with a filter, who is not told is in no count.
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    is_all = bool(wanted) or in_order is not None
    told = connections.read(instance.cluster.address, instance.id, most_connections=MOST if is_all else most)
    return _connected(instance, told, most, wanted, in_order)


def fits(row: ConnectionView | RefusedView, wanted: Mapping[str, str]) -> bool:
    """Whether it has these members."""
    return all(getattr(row, name) == value for name, value in wanted.items())


def talkers_read(
    *, organisation: Organisation, instance_id: str, topic: str | None = None, most: int = MOST
) -> Talking:
    """The busiest first, of one topic or of all. A topic that is not there has none. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    told = connections.read(instance.cluster.address, instance.id, most_talkers=most, topic=topic)
    return _talking(told, most)


def overview_read(*, organisation: Organisation, instance_id: str, most_talkers: int) -> tuple[Connected, Talking]:
    """Both of the instance with one question. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    told = connections.read(instance.cluster.address, instance.id, most_connections=MOST, most_talkers=MOST)
    return _connected(instance, told, MOST), _talking(told, most_talkers)


def _connected(
    instance: Instance,
    told: Told,
    most: int,
    wanted: Mapping[str, str] = MappingProxyType({}),
    in_order: Callable[[list[ConnectionView]], list[ConnectionView]] | None = None,
) -> Connected:
    rows = Route.objects.for_organisation(instance.organisation).filter(instance=instance)
    security = dict(rows.values_list("key", "security"))
    found = [
        _connection(broker, row, security.get(row.route_id))
        for broker, answer in told.answers.items()
        for row in answer.connections
    ]
    found = [row for row in found if fits(row, wanted)]
    found.sort(key=lambda row: (-row.bytes_per_s, -row.requests_per_s, row.connected_at, row.broker))
    found = in_order(found) if in_order is not None else found
    untold = [] if wanted else [answer.other_connections for answer in told.answers.values()]
    left_out = [(1, row.in_bytes_per_s, row.out_bytes_per_s) for row in found[most:]]
    return Connected(
        found[:most],
        _others(untold, left_out),
        _refused(told),
        sum(answer.other_refused for answer in told.answers.values()),
        told.missing,
    )


def _connection(broker: int, row: ConnectionRow, security: str | None) -> ConnectionView:
    return ConnectionView(
        broker,
        row.client_id,
        row.software_name,
        row.software_version,
        row.address,
        row.principal or None,
        row.route_id,
        security,
        _moment(row.opened_ms),
        _per_s(row.received_bytes, row.window_ms),
        _per_s(row.sent_bytes, row.window_ms),
        _per_s(row.requests, row.window_ms),
    )


def _refused(told: Told) -> list[RefusedView]:
    found: dict[tuple[str, str, str], tuple[int, RefusedRow]] = {}
    for answer in told.answers.values():
        for row in answer.refused:
            key = (row.address, row.route_id, row.reason)
            count, last = found.get(key, (0, row))
            found[key] = count + row.count, max(last, row, key=lambda each: each.last_ms)
    views = [
        RefusedView(*key, count, _moment(last.last_ms), last.user or None, last.client_id)
        for key, (count, last) in found.items()
    ]
    return sorted(views, key=lambda view: view.last_at, reverse=True)


def _talking(told: Told, most: int) -> Talking:
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    for answer in told.answers.values():
        for row in answer.talkers:
            key = (row.client_id, row.address, row.topic)
            produced, consumed = found.get(key, (0.0, 0.0))
            found[key] = (
                produced + _per_s(row.produced_bytes, row.window_ms),
                consumed + _per_s(row.consumed_bytes, row.window_ms),
            )
    views = [TalkerView(*key, *rates) for key, rates in found.items()]
    views.sort(key=lambda view: (-view.bytes_per_s, view.topic, view.client_id, view.address))
    left_out = [(1, view.produced_bytes_per_s, view.consumed_bytes_per_s) for view in views[most:]]
    others = _others([answer.other_talkers for answer in told.answers.values()], left_out)
    return Talking(views[:most], others, told.missing)


def _others(rests: Iterable[Rest], left_out: Iterable[tuple[int, float, float]]) -> Others:
    rows = [*((rest.count, rest.in_bytes_per_s, rest.out_bytes_per_s) for rest in rests), *left_out]
    return Others(sum(row[0] for row in rows), round(sum(row[1] for row in rows)), round(sum(row[2] for row in rows)))


def _per_s(amount: int, window_ms: int) -> float:
    return round(amount * SECOND_MS / max(1, window_ms), 3)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / SECOND_MS, UTC)
