"""What was used, by the hour, and the records that say so."""

from __future__ import annotations

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, From, Instance, Limit, To
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Usage: hour by hour, and the records behind it.")
HOURS = columns(
    "hour", "produced_bytes", "consumed_bytes", "stored_byte_hours", "wire_in_bytes", "wire_out_bytes", "requests",
    "throttled_ms", "so_far",
)  # fmt: skip
RECORDS = columns(
    "hour", "topic", "broker", "produced_bytes", "consumed_bytes", "stored_byte_seconds", "partition", "offset"
)


@app.add("hours")
def hours(ctx: typer.Context, instance: Instance, start: From = None, end: To = None, limit: Limit = None) -> None:
    """Hours in which the instance used anything; by default of this month."""
    query = said(**{"from": start, "to": end})
    of(ctx).listed(ops.USAGE, HOURS, limit=limit, query=query, instance_id=instance)


@app.add("records")
def records(ctx: typer.Context, instance: Instance, start: From = None, end: To = None, limit: Limit = None) -> None:
    """What hours are made of: by topic and broker, with partition and offset of the record in __usage."""
    query = said(**{"from": start, "to": end})
    of(ctx).listed(ops.USAGE_RECORDS, RECORDS, limit=limit, query=query, note="away", instance_id=instance)


@app.add("metering")
def metering(ctx: typer.Context) -> None:
    """Whether usage is being metered, and up to when it is complete."""
    of(ctx).show(ops.METERING)
