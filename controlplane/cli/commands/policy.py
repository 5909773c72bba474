"""What an instance does by itself when its disk fills up."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, ConfirmPrice, Instance
from controlplane.cli.session import of

app = Commands("Policies: what an instance does by itself.")
Policy = Literal["none", "retention", "expansion"]


@app.add("show")
def shown(ctx: typer.Context, instance: Instance) -> None:
    """What is done when the disk fills up, topics whose retention is shortened now, and why it could not act last."""
    of(ctx).show(ops.POLICIES, instance_id=instance)


@app.add("disk", rehearses=True)
def disk(
    ctx: typer.Context,
    instance: Instance,
    policy: Annotated[Policy, typer.Argument(help="Shorten the retention of topics, buy more storage, or do nothing.")],
    level: Annotated[
        int | None, typer.Option(help="Percent of the storage: when so much is used; by default 75.")
    ] = None,
    step: Annotated[int | None, typer.Option(help="Percent at a time; by default 10.")] = None,
    floor_minutes: Annotated[
        int | None, typer.Option(help="Retention is never made shorter than this; by default 60.")
    ] = None,
    spare_unread: Annotated[
        bool | None, typer.Option("--spare-unread", help="Leave topics alone that groups have still to read.")
    ] = None,
    max_storage: Annotated[float | None, typer.Option(help="GiB: storage is never made larger than this.")] = None,
    confirm_price: ConfirmPrice = None,
) -> None:
    """What is done when the disk fills up. A dry run says which groups would lose unread records, or what it would cost."""
    body = {"policy": policy} | said(
        level_percent=level,
        step_percent=step,
        floor_minutes=floor_minutes,
        spare_unread=spare_unread,
        max_storage_gib=max_storage,
        confirm_price=confirm_price,
    )
    of(ctx).change(ops.DISK_POLICY, body=body, instance_id=instance)
