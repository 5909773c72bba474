"""Connections: who is connected, who was refused, and who moves most."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import completion
from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, Instance, Sort
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Connections: who is connected, who was refused and why, and who moves most.")
LISTED = columns(
    "client_id",
    "software_name",
    "software_version",
    "address",
    "principal",
    "route_id",
    "broker",
    "in_bytes_per_s",
    "out_bytes_per_s",
    "requests_per_s",
    "connected_at",
)
REFUSED = columns("address", "route_id", "reason", "count", "last_at", "user", "client_id")
TALKERS = columns("client_id", "address", "topic", "produced_bytes_per_s", "consumed_bytes_per_s")
OfTopic = Annotated[
    str | None, typer.Argument(metavar="[TOPIC]", help="Of this topic only.", autocompletion=completion.topics)
]
OfAddress = Annotated[str | None, typer.Option(help="Only those from this address.")]
OfRoute = Annotated[str | None, typer.Option("--route", help="Only those by this route, by its id.")]
Most = Annotated[int | None, typer.Option("--limit", min=1, max=1000, help="Rows, the largest; by default 100.")]


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    client_id: Annotated[str | None, typer.Option(help="Only those with this client id, whole.")] = None,
    address: OfAddress = None,
    principal: Annotated[str | None, typer.Option(help="Only those that have logged in as this.")] = None,
    route_id: OfRoute = None,
    sort: Sort = None,
    limit: Most = None,
) -> None:
    """Who is connected at this moment, the busiest first: client, software, address, user and rates of the last minute."""
    query = said(client_id=client_id, address=address, principal=principal, route_id=route_id, sort=sort, limit=limit)
    of(ctx).listed(ops.CONNECTIONS, LISTED, limit=None, query=query, instance_id=instance)


@app.add("refused")
def refused(
    ctx: typer.Context,
    instance: Instance,
    address: OfAddress = None,
    reason: Annotated[str | None, typer.Option(help="Only those that were refused for this.")] = None,
    route_id: OfRoute = None,
    sort: Sort = None,
    limit: Most = None,
) -> None:
    """Connections that were not taken, by address and reason, since the brokers started; the latest first."""
    query = said(address=address, reason=reason, route_id=route_id, sort=sort, limit=limit)
    of(ctx).listed(ops.REFUSED_CONNECTIONS, REFUSED, limit=None, query=query, instance_id=instance)


@app.add("talkers")
def talkers(
    ctx: typer.Context,
    instance: Instance,
    topic: OfTopic = None,
    limit: Most = None,
) -> None:
    """Who produces and consumes how much of which topic in the last minute, the busiest first."""
    of(ctx).listed(ops.TALKERS, TALKERS, limit=None, query=said(topic=topic, limit=limit), instance_id=instance)
