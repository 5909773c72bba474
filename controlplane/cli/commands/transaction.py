"""Transactions: what is open, what waits for it, and ending one."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, Instance, Limit, Sort, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Transactions: what is open, and since when.")
LISTED = columns("transactional_id", "state", "producer_id", "producer_epoch", "started_at", "open_seconds")
HANGING = columns("topic", "partition", "first_offset", "producer_id", "producer_epoch", "written_at", "holds_back")
Transaction = Annotated[str, typer.Argument(metavar="ID", help="The producer's transactional.id.")]


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    state: Annotated[
        Literal["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"] | None,
        typer.Option(help="By default all."),
    ] = None,
    open_seconds: Annotated[int | None, typer.Option(min=0, help="Only those that have been open for longer.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Transactional ids by name, with state, producer, and since when a transaction is open."""
    query = said(state=state, open_seconds=open_seconds, sort=sort)
    of(ctx).listed(ops.TRANSACTIONS, LISTED, limit=limit, query=query, instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, transaction: Transaction) -> None:
    """State, producer, and for each partition where the transaction begins and whether readers wait for it."""
    of(ctx).show(ops.TRANSACTION, instance_id=instance, transactional_id=transaction)


@app.add("end", rehearses=True)
def end(ctx: typer.Context, instance: Instance, transaction: Transaction, yes: Yes = False) -> None:
    """Abort an open transaction: what it wrote is not read, and its producer has to begin anew."""
    session = of(ctx)
    session.confirm(f"This aborts the open transaction of {transaction} and fences its producer.", transaction, yes=yes)
    session.change(
        ops.TRANSACTION_END,
        done=f"The transaction of {transaction} is ended.",
        instance_id=instance,
        transactional_id=transaction,
    )


@app.add("hanging")
def hanging(
    ctx: typer.Context,
    instance: Instance,
    idle_seconds: Annotated[
        int | None, typer.Option(min=60, help="Whose producer has written nothing for longer; 900 by default.")
    ] = None,
    limit: Limit = None,
) -> None:
    """Transactions that no coordinator knows, in all partitions: nobody will end them, and readers stand at them."""
    query = said(idle_seconds=idle_seconds)
    of(ctx).listed(ops.HANGING_TRANSACTIONS, HANGING, limit=limit, query=query, instance_id=instance)


@app.add("end-hanging", rehearses=True)
def end_hanging(
    ctx: typer.Context,
    instance: Instance,
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0)],
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="Where it begins, as the list says.")],
    yes: Yes = False,
) -> None:
    """Abort a transaction that hangs: what it wrote to the partition is not read."""
    session = of(ctx)
    session.confirm(
        f"This aborts what hangs in partition {partition} of {topic} from offset {offset} on.", topic, yes=yes
    )
    session.change(
        ops.HANGING_TRANSACTION_END,
        done=f"What hung in partition {partition} of {topic} is ended.",
        instance_id=instance,
        topic=topic,
        partition=str(partition),
        offset=str(offset),
    )
