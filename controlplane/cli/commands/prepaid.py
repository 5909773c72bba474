"""Paying for instances in advance: what it costs, buying months, renewing them, what becomes of it at the end."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, ConfirmPrice, Instance, Wait
from controlplane.cli.session import of

app = Commands("Instances that are paid in advance, by the month.")
AtEnd = Literal["expire", "renew", "postpaid"]
AT_END = "When it has ended: isolate the instance, renew it, or go on by the hour."
Months = Annotated[int, typer.Option("--months", min=1, max=36, help="Calendar months.")]


@app.add("price")
def price(
    ctx: typer.Context,
    bandwidth: Annotated[float, typer.Option("--bandwidth", help="MiB/s, for each direction.")],
    storage: Annotated[float, typer.Option("--storage", help="GiB, all replicas together.")],
    partitions: Annotated[int, typer.Option("--partitions", help="Replicas included.")],
    months: Months = 1,
) -> None:
    """What months of a size cost in advance, before it is bought."""
    query = said(months=months, bandwidth_mib_per_s=bandwidth, storage_gib=storage, partitions=partitions)
    of(ctx).show(ops.PREPAID_PRICE, query=query)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance) -> None:
    """How an instance is paid: up to when, what becomes of it then, what would be paid back now."""
    of(ctx).show(ops.PREPAID, instance_id=instance)


@app.add("begin", rehearses=True)
def begin(
    ctx: typer.Context,
    instance: Instance,
    months: Months = 1,
    at_end: Annotated[AtEnd | None, typer.Option(help=AT_END)] = None,
    confirm_price: ConfirmPrice = None,
    wait: Wait = True,
) -> None:
    """Pay in advance, from the next full hour on. One that is isolated is opened again by it."""
    body = said(months=months, at_end=at_end, confirm_price=confirm_price)
    of(ctx).start(ops.PREPAID_BEGIN, wait=wait, body=body, instance_id=instance)


@app.add("renew", rehearses=True)
def renew(
    ctx: typer.Context,
    instance: Instance,
    months: Months = 1,
    ends_at: Annotated[
        str | None,
        typer.Option(
            help="The end that is put off, as `prepaid show` says it: with it, nothing is paid twice. By default the "
            "present one."
        ),
    ] = None,
    confirm_price: ConfirmPrice = None,
    wait: Wait = True,
) -> None:
    """More months behind what is paid, at the prices of now and the present size."""
    session = of(ctx)
    end = session.call(ops.PREPAID, instance_id=instance)["ends_at"] if ends_at is None else ends_at
    if end is None:
        raise Misused("it is not paid in advance: sluice prepaid begin")
    body = said(months=months, ends_at=end, confirm_price=confirm_price)
    session.start(ops.PREPAID_RENEW, wait=wait, body=body, instance_id=instance)


@app.add("set", rehearses=True)
def alter(
    ctx: typer.Context,
    instance: Instance,
    at_end: Annotated[AtEnd | None, typer.Option(help=AT_END)] = None,
    renew_months: Annotated[
        int | None, typer.Option(min=1, max=36, help="So many at a time, where it is renewed by itself.")
    ] = None,
) -> None:
    """What becomes of an instance when what is paid has ended."""
    body = said(at_end=at_end, renew_months=renew_months)
    if not body:
        raise Misused("name --at-end or --renew-months")
    of(ctx).change(ops.PREPAID_CHANGE, body=body, instance_id=instance)
