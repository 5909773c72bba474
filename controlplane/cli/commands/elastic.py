"""Elastic bandwidth: above what was bought, up to a cap, by the GB."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Instance, Wait
from controlplane.cli.session import of

app = Commands("Bandwidth above the limit, up to a cap, billed by the GB.")


@app.add("show")
def shown(ctx: typer.Context, instance: Instance) -> None:
    """Whether it is on, up to which cap, what it costs and has cost this month."""
    of(ctx).show(ops.ELASTIC, instance_id=instance)


@app.add("set", rehearses=True)
def alter(
    ctx: typer.Context,
    instance: Instance,
    cap: Annotated[float, typer.Option("--cap", help="MiB/s of each direction: at most twice the limit.")],
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", help="A month's; when it is used up, it is off until the month ends. Left out: as it is."
        ),
    ] = None,
    no_budget: Annotated[bool, typer.Option("--no-budget", help="Whatever it costs.")] = False,
    wait: Wait = True,
) -> None:
    """Let an instance go above its bandwidth."""
    session = of(ctx)
    if budget is not None and no_budget:
        raise Misused("take --budget or --no-budget")
    if budget is None and not no_budget:
        budget = session.call(ops.ELASTIC, instance_id=instance)["budget_per_month"]
    body = {"cap_mib_per_s": cap, "budget_per_month": budget}
    session.start(ops.ELASTIC_SET, wait=wait, body=body, instance_id=instance)


@app.add("off", rehearses=True)
def off(ctx: typer.Context, instance: Instance, wait: Wait = True) -> None:
    """No more than the bandwidth limit, as a new instance has it."""
    of(ctx).start(ops.ELASTIC_SET, wait=wait, body={"cap_mib_per_s": None}, instance_id=instance)
