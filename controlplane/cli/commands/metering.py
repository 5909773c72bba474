"""What usage waits for, and what was recomputed of it. For operators of the service."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, Limit
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("For operators of the service: what usage and invoices wait for.")
BROKERS = columns("cluster", "broker", "told_to", "said_at", "gap_at", "boots", "away_since", waived="waived.reason")
MONTHS = columns("month", "cluster", "invoices", "why")
WAIVERS = columns("id", "month", "cluster", "instance_id", "actor", "reason", "at")
LOSSES = columns(
    "id", "cluster", "partition", "start_offset", "end_offset", "found_at", "settled_at", "settled_by", "detail"
)
RECONCILIATIONS = columns(
    "id", "hours_from", "hours_to", "at", "compared", "different", "raised", "gone", "begins_later"
)
DIFFERENCES = columns(
    "reconciliation", "against", "instance_id", "hour", "boot", "topic", "counter", "recomputed", "known"
)
CAPS = columns(
    "id", "instance_id", "boot", "topic", "produced_bytes", "consumed_bytes", "stored_byte_seconds", "set_by", "set_at"
)
Counter = Annotated[int | None, typer.Option(min=0, help="Since the boot.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept.")]
Cluster = Annotated[str | None, typer.Option(help="A physical cluster, by its name.")]


@app.add("brokers")
def brokers(ctx: typer.Context) -> None:
    """Up to when each broker has told all that it counted. An hour is final when every one has, or is waived."""
    of(ctx).listed(ops.METERED_BROKERS, BROKERS, limit=None)


@app.add("waive-broker", rehearses=True)
def waive_broker(
    ctx: typer.Context,
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="Its id.", min=0)],
    reason: Reason,
    cluster: Cluster = None,
) -> None:
    """Usage waits no longer for this broker, until it speaks again. What it tells after all is adjusted later."""
    session, query = of(ctx), said(cluster=cluster)
    session.change(ops.METERED_BROKER_WAIVE, query=query, body={"reason": reason}, broker=str(broker))


@app.add("months")
def months(ctx: typer.Context) -> None:
    """Months that are over and whose invoices wait, and for what."""
    of(ctx).listed(ops.METERING_MONTHS, MONTHS, limit=None)


@app.add("waivers")
def waivers(ctx: typer.Context, limit: Limit = None) -> None:
    """Months whose invoices were written without waiting, and who said so; the newest first."""
    of(ctx).listed(ops.METERING_WAIVERS, WAIVERS, limit=limit)


@app.add("waive", rehearses=True)
def waive(
    ctx: typer.Context,
    month: Annotated[str, typer.Argument(metavar="MONTH", help="YYYY-MM, one that is over.")],
    reason: Reason,
    instance_id: Annotated[str | None, typer.Option("--instance", help="Of this one alone, by its id.")] = None,
    cluster: Cluster = None,
) -> None:
    """Invoices of a month wait for metering no longer. What is counted later is adjusted."""
    body = {"month": month, "reason": reason} | said(instance_id=instance_id, cluster=cluster)
    of(ctx).change(ops.METERING_WAIVE, body=body)


@app.add("losses")
def losses(
    ctx: typer.Context,
    settled: Annotated[
        Literal["true", "false"] | None, typer.Option(help="false: only those that usage waits for; by default all.")
    ] = None,
    cluster: Cluster = None,
    limit: Limit = None,
) -> None:
    """Records of usage that were gone before they were read, the last found first."""
    of(ctx).listed(ops.METERING_LOSSES, LOSSES, limit=limit, query=said(settled=settled, cluster=cluster))


@app.add("settle", rehearses=True)
def settle(ctx: typer.Context, loss: Annotated[int, typer.Argument(metavar="LOSS", help="Its id.", min=0)]) -> None:
    """No usage is missing by it, or what is missing shall not be billed: usage waits for it no longer."""
    of(ctx).change(ops.METERING_LOSS_SETTLE, loss_id=str(loss))


@app.add("caps")
def caps(ctx: typer.Context, limit: Limit = None) -> None:
    """Counters that operators have ruled out beyond some value; the newest first."""
    of(ctx).listed(ops.METERING_CAPS, CAPS, limit=limit)


@app.add("cap", rehearses=True)
def cap(
    ctx: typer.Context,
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="Its id.")],
    boot: Annotated[str, typer.Argument(metavar="BOOT", help="As in usage records, with its generation.")],
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="As the tenant calls it.")],
    reason: Reason,
    produced_bytes: Counter = None,
    consumed_bytes: Counter = None,
    stored_byte_seconds: Counter = None,
) -> None:
    """Believe counters of a topic and a broker's boot up to some value only: the last that can be true."""
    values = said(produced_bytes=produced_bytes, consumed_bytes=consumed_bytes, stored_byte_seconds=stored_byte_seconds)
    body = {"instance_id": instance, "boot": boot, "topic": topic, "reason": reason} | values
    of(ctx).change(ops.METERING_CAP, body=body)


@app.add("reconciliations")
def reconciliations(ctx: typer.Context, limit: Limit = None) -> None:
    """Usage that was recomputed from the raw records and compared with what is known and billed."""
    of(ctx).listed(ops.METERING_RECONCILIATIONS, RECONCILIATIONS, limit=limit)


@app.add("differences")
def differences(
    ctx: typer.Context,
    reconciliation: Annotated[int | None, typer.Option(min=0, help="Of this run alone, by its id.")] = None,
    limit: Limit = None,
) -> None:
    """Counters that were not what the raw records say, of one run or of all."""
    query = said(reconciliation=reconciliation)
    of(ctx).listed(ops.METERING_DIFFERENCES, DIFFERENCES, limit=limit, query=query)


@app.add("fold")
def fold(ctx: typer.Context) -> None:
    """Up to when days are kept as sums alone, and why not further."""
    of(ctx).show(ops.METERING_FOLD)
