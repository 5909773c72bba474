"""What a month costs: so far, at its end, by instance, by topic and by user."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, Instance, Limit, Sort
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("What a month costs so far, and will have cost at its end.")
INSTANCES = columns("instance_id", "name", "so_far", "forecast", "currency", "final", "computed_at")
Month = Annotated[str | None, typer.Option(help="YYYY-MM, UTC; by default the present one.")]


@app.add("total")
def total(ctx: typer.Context, month: Month = None) -> None:
    """Of all instances, by currency."""
    of(ctx).show(ops.COST, query=said(month=month))


@app.add("instances")
def instances(ctx: typer.Context, month: Month = None, sort: Sort = None, limit: Limit = None) -> None:
    """Of each instance, as last computed."""
    of(ctx).listed(ops.COST_INSTANCES, INSTANCES, query=said(month=month, sort=sort), limit=limit)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, month: Month = None) -> None:
    """Of one instance, of now: by item, and by which hours the forecast goes."""
    of(ctx).show(ops.COST_INSTANCE, query=said(month=month), instance_id=instance)


@app.add("topics")
def topics(
    ctx: typer.Context,
    instance: Instance,
    month: Month = None,
    most: Annotated[int | None, typer.Option(help="So many topics, 1 to 1000; by default 100.")] = None,
) -> None:
    """A bill by topic, to the cent; what no topic can be given stands in lines of its own."""
    of(ctx).show(ops.COST_TOPICS, query=said(month=month, most=most), instance_id=instance)


@app.add("users")
def users(
    ctx: typer.Context,
    instance: Instance,
    month: Month = None,
    most: Annotated[int | None, typer.Option(help="So many users, 1 to 1000; by default 100.")] = None,
) -> None:
    """A bill by user, to the cent; what no user can be given stands in lines of its own."""
    of(ctx).show(ops.COST_USERS, query=said(month=month, most=most), instance_id=instance)


@app.add("what-if")
def what_if(
    ctx: typer.Context,
    instance: Instance,
    month: Month = None,
    bandwidth: Annotated[float | None, typer.Option(help="MiB/s; by default as it was.")] = None,
    storage: Annotated[float | None, typer.Option(help="GiB; by default as it was.")] = None,
    partitions: Annotated[int | None, typer.Option(help="By default as they were.")] = None,
    plan: Annotated[
        str | None, typer.Option(help="pro, traffic, pro-usd or traffic-usd; by default as it was.")
    ] = None,
) -> None:
    """What a month would have cost at another size or plan, and on how many days that is too small. Nothing is changed."""
    size = said(bandwidth_mib_per_s=bandwidth, storage_gib=storage, partitions=partitions)
    of(ctx).show(ops.WHAT_IF, query=said(month=month, plan=plan) | size, instance_id=instance)
