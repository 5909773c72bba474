"""Rebalances: proposals to move partitions between brokers, and how far one is. For operators of the service."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Limit
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("For operators of the service: moving partitions between brokers.")
LISTED = columns("id", "cluster", "state", "cause", "estimated_s", "created_by", "created_at", "finished_at", "problem")
MOVES = columns("number", "topic", "partition", "before", "after", "bytes_to_copy", "copied_bytes", "state", "problem")
EVENTS = columns("at", "actor", "action", "detail")
Id = Annotated[str, typer.Argument(metavar="REBALANCE", help="Its id.")]
Throttle = Annotated[int | None, typer.Option(help="Bytes a second that copying takes at most.")]
AtOnce = Annotated[int | None, typer.Option(help="Partitions that are copied at once.")]


@app.add("list")
def listed(ctx: typer.Context, limit: Limit = None) -> None:
    """Proposals, the newest first."""
    of(ctx).listed(ops.REBALANCES, LISTED, limit=limit)


@app.add("show")
def shown(ctx: typer.Context, rebalance: Id) -> None:
    """One proposal, with what it comes to and how far it is."""
    of(ctx).show(ops.REBALANCE, rebalance_id=rebalance)


@app.add("propose", rehearses=True)
def propose(
    ctx: typer.Context,
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Its name.")],
    goals: Annotated[
        list[str] | None,
        typer.Option(
            "--goal", help="leaders, produce, consume, replicas, disk or bandwidth; in order, again for more."
        ),
    ] = None,
    cordoned: Annotated[list[int] | None, typer.Option("--cordon", help="A broker that gets nothing new.")] = None,
    draining: Annotated[list[int] | None, typer.Option("--drain", help="A broker that is to have nothing.")] = None,
    demoted: Annotated[list[int] | None, typer.Option("--demote", help="A broker that is to lead nothing.")] = None,
    instances: Annotated[list[str] | None, typer.Option("--instance", help="Only this one's partitions.")] = None,
    margin: Annotated[int | None, typer.Option(help="Percent of the average that are even enough.")] = None,
    leaders_only: Annotated[
        bool | None, typer.Option("--leaders-only", help="Nothing is copied, but off brokers that are drained.")
    ] = None,
    in_windows: Annotated[
        bool | None, typer.Option("--in-windows", help="In the maintenance windows of instances that have one.")
    ] = None,
    throttle: Throttle = None,
    at_once: AtOnce = None,
) -> None:
    """Have a rebalance planned. Nothing moves until somebody has it carried out: sluice rebalance act ID carry_out."""
    body = {"cluster": cluster} | said(
        goals=goals,
        cordoned=cordoned,
        draining=draining,
        demoted=demoted,
        instances=instances,
        margin_percent=margin,
        leaders_only=leaders_only,
        in_windows=in_windows,
        throttle_bytes_per_s=throttle,
        at_once=at_once,
    )
    of(ctx).change(ops.REBALANCE_PROPOSE, body=body)


@app.add("pace", rehearses=True)
def pace(ctx: typer.Context, rebalance: Id, throttle: Throttle = None, at_once: AtOnce = None) -> None:
    """Another throttle, or another number of partitions at once; also while it is under way."""
    body = said(throttle_bytes_per_s=throttle, at_once=at_once)
    if not body:
        raise Misused("name what is to be different")
    of(ctx).change(ops.REBALANCE_PACE, body=body, rebalance_id=rebalance)


@app.add("act", rehearses=True)
def act(
    ctx: typer.Context,
    rebalance: Id,
    action: Annotated[
        Literal["approve", "carry_out", "pause", "resume", "cancel", "roll_back"], typer.Argument(help="What to do.")
    ],
) -> None:
    """Approve it, carry it out, pause, resume, cancel or roll it back. Rolling back shows the new proposal."""
    of(ctx).change(ops.REBALANCE_ACT, body={"action": action}, rebalance_id=rebalance)


@app.add("moves")
def moves(ctx: typer.Context, rebalance: Id, limit: Limit = None) -> None:
    """Its moves in their order, each with how far it is."""
    of(ctx).listed(ops.REBALANCE_MOVES, MOVES, limit=limit, rebalance_id=rebalance)


@app.add("events")
def events(ctx: typer.Context, rebalance: Id) -> None:
    """Who said what about it, in order."""
    session = of(ctx)
    found = session.call(ops.REBALANCE_EVENTS, rebalance_id=rebalance)
    session.output.items(found, EVENTS)
