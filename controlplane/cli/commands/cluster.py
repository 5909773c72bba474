"""Physical clusters, for operators of the service."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import or_null, said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, From, To
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("For operators of the service: physical clusters and their brokers.")
LISTED = columns("name", "state", "zones", "instances", "capacity", "brokers", "brokers_there", "zookeeper_hosts")
EVENTS = columns("at", "actor", "action", "changes", "reason")
POINTS = columns(
    "time", "produce_bytes_per_s", "consume_bytes_per_s", "requests_per_s", "errors_per_s", "produce_p99_ms",
    "fetch_p99_ms",
)  # fmt: skip
Cluster = Annotated[str, typer.Argument(metavar="CLUSTER", help="Its name.")]
Broker = Annotated[int, typer.Argument(metavar="BROKER", help="Its id.", min=0)]
Zones = Annotated[list[str] | None, typer.Option("--zone", help="A zone that it has brokers in; again for more.")]
Capacity = Annotated[int | None, typer.Option(help="Instances at most.")]


@app.add("list")
def listed(ctx: typer.Context) -> None:
    """Every physical cluster, with how full it is."""
    of(ctx).listed(ops.CLUSTERS, LISTED, limit=None)


@app.add("show")
def shown(ctx: typer.Context, cluster: Cluster) -> None:
    """One cluster, with what it has of each resource and what of it is sold."""
    of(ctx).show(ops.CLUSTER, cluster=cluster)


@app.add("register", rehearses=True)
def register(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="To tell it from others.")],
    zookeeper: Annotated[str, typer.Option(help="HOST:PORT, with commas between.")],
    zones: Zones = None,
    capacity: Capacity = None,
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
) -> None:
    """Register a cluster. Instances are placed on it from then on, by what is free."""
    body = {"name": name, "zookeeper_hosts": zookeeper} | said(zones=zones, capacity=capacity, reason=reason)
    of(ctx).change(ops.CLUSTER_REGISTER, body=body)


@app.add("change", rehearses=True)
def change(
    ctx: typer.Context,
    cluster: Cluster,
    reason: Annotated[str, typer.Option(help="Why.")],
    state: Annotated[
        Literal["open", "cordoned", "draining", "retired"] | None,
        typer.Option(help="cordoned: nothing new is placed on it; draining: what is there has to leave."),
    ] = None,
    zones: Zones = None,
    capacity: Capacity = None,
) -> None:
    """Other zones, another capacity, or another state. What is on it stays there."""
    body = said(state=state, zones=zones, capacity=capacity)
    if not body:
        raise Misused("name what is to be different")
    of(ctx).change(ops.CLUSTER_CHANGE, body={**body, "reason": reason}, cluster=cluster)


@app.add("events")
def events(ctx: typer.Context, cluster: Cluster) -> None:
    """Who decided what about it, the newest first."""
    session = of(ctx)
    found = session.call(ops.CLUSTER_EVENTS, cluster=cluster)
    session.output.items(found, EVENTS)


@app.add("leaving")
def leaving(ctx: typer.Context, cluster: Cluster) -> None:
    """What has to be moved away before it is empty, and where each could go."""
    of(ctx).show(ops.CLUSTER_LEAVING, cluster=cluster)


@app.add("broker")
def broker(ctx: typer.Context, cluster: Cluster, broker: Broker) -> None:
    """One broker: how it is, the instances that have most flow on it, and when it was away."""
    session = of(ctx)
    session.show(ops.CLUSTER_BROKER, cluster=cluster, broker=str(broker))


@app.add("broker-history")
def broker_history(
    ctx: typer.Context,
    cluster: Cluster,
    broker: Broker,
    start: From = None,
    end: To = None,
    step: Annotated[int | None, typer.Option(min=1, help="Seconds a row.")] = None,
) -> None:
    """What all instances together asked of a broker over time: flow, requests, errors and latencies."""
    query = said(**{"from": start, "to": end, "step": step})
    session = of(ctx)
    session.listed(ops.CLUSTER_BROKER_HISTORY, POINTS, limit=None, query=query, cluster=cluster, broker=str(broker))


@app.add("rebalancing")
def rebalancing(ctx: typer.Context, cluster: Cluster) -> None:
    """When the cluster is rebalanced by itself."""
    of(ctx).show(ops.BALANCE_RULE, cluster=cluster)


@app.add("set-rebalancing", rehearses=True)
def set_rebalancing(
    ctx: typer.Context,
    cluster: Cluster,
    reason: Annotated[str, typer.Option(help="Why.")],
    mode: Annotated[Literal["off", "propose", "carry_out"] | None, typer.Option(help="What begins by itself.")] = None,
    new_brokers: Annotated[
        bool | None, typer.Option("--new-brokers/--no-new-brokers", help="Where a broker has nothing yet.")
    ] = None,
    skew: Annotated[
        str | None, typer.Option(help='Where a broker is so many percent above the average, or "null": never for that.')
    ] = None,
    lasting_minutes: Annotated[int | None, typer.Option(help="Once that has lasted so long.")] = None,
    rest_hours: Annotated[int | None, typer.Option(help="So long after the one before.")] = None,
    in_windows: Annotated[
        bool | None, typer.Option("--in-windows/--at-any-time", help="Only in maintenance windows of instances.")
    ] = None,
    throttle: Annotated[int | None, typer.Option(help="Bytes a second that copying takes at most.")] = None,
    at_once: Annotated[int | None, typer.Option(help="Partitions that are copied at once.")] = None,
) -> None:
    """Another rule: it holds from now on. What is under way goes on."""
    body = said(
        mode=mode,
        new_brokers=new_brokers,
        lasting_minutes=lasting_minutes,
        rest_hours=rest_hours,
        in_windows=in_windows,
        throttle_bytes_per_s=throttle,
        at_once=at_once,
    )
    if skew is not None:
        body["skew_percent"] = or_null(skew, whole=True)
    if not body:
        raise Misused("name what is to be different")
    of(ctx).change(ops.BALANCE_RULE_SET, body={**body, "reason": reason}, cluster=cluster)


@app.add("balance")
def balance(
    ctx: typer.Context,
    cluster: Annotated[str | None, typer.Option(help="Its name; needed where there are several.")] = None,
) -> None:
    """What each broker has of leaders, flow, replicas, disk and bandwidth that was sold."""
    of(ctx).show(ops.BALANCE, query=said(cluster=cluster))
