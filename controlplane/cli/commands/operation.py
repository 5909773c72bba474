"""Operations: long work on instances, step by step."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import completion
from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, From, Limit, Sort, To
from controlplane.cli.session import of
from controlplane.cli.tables import columns
from controlplane.cli.waiting import DEFAULT_TIMEOUT_S, awaited

app = Commands("Operations: long work, step by step.")
LISTED = columns("id", "kind", "target", "state", "progress", "actor", "created_at", "finished_at")
Id = Annotated[str, typer.Argument(metavar="OPERATION", help="Its id.", autocompletion=completion.operations)]


@app.add("list")
def listed(
    ctx: typer.Context,
    state: Annotated[Literal["running", "succeeded", "failed"] | None, typer.Option(help="By default all.")] = None,
    target: Annotated[str | None, typer.Option(help="Only those on this, such as the id of an instance.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only those of this kind, whole or by its beginning, such as instance.")
    ] = None,
    start: From = None,
    end: To = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Operations of the organisation, the newest first."""
    query = said(state=state, target=target, kind=kind, **{"from": start, "to": end})
    query |= {"sort": sort} if sort else {"order": "newest"}
    of(ctx).listed(ops.OPERATIONS, LISTED, limit=limit, query=query)


@app.add("show")
def shown(ctx: typer.Context, operation: Id) -> None:
    """How far an operation is."""
    of(ctx).show(ops.OPERATION, operation_id=operation)


@app.add("wait")
def wait(
    ctx: typer.Context,
    operation: Id,
    timeout_s: Annotated[float, typer.Option("--timeout", min=0, help="Seconds.")] = DEFAULT_TIMEOUT_S,
) -> None:
    """Wait until it has ended. 1: it has failed; 6: it was still running when the time was over."""
    session = of(ctx)
    found = awaited(session.client, operation, output=session.output, clock=session.clock, timeout_s=timeout_s)
    session.output.document(found)
