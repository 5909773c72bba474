"""How the bought bandwidth is shared out, who had to wait, and how well it was kept."""

from __future__ import annotations

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, From, Instance, Limit, To
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Quota: how bandwidth is shared out, and who waited.")
INTERVALS = columns("started_at", "ended_at", "direction", "rule", "throttled_ms", "under_limit_ms", "explanation")
DAYS = columns(
    "day",
    "direction",
    "throttled_ms",
    "throttled_under_limit_ms",
    "throttled_under_limit_percent",
    over_1_s="over_admission_percent.window_1_s",
    over_10_s="over_admission_percent.window_10_s",
    over_60_s="over_admission_percent.window_60_s",
)

REPORT = columns(
    "day", "resource", "limit", "p50", "p95", "p99", "used_percent", "headroom", "throttled_minutes", "guarantee",
    "exhausted_on",
)  # fmt: skip


@app.add("allocation")
def allocation(ctx: typer.Context, instance: Instance) -> None:
    """How bandwidth and broker time are shared out between brokers now, in bytes/s and ms/s; transactions and their limits."""
    of(ctx).show(ops.ALLOCATION, instance_id=instance)


@app.add("throttling")
def throttling(ctx: typer.Context, instance: Instance, start: From = None, end: To = None, limit: Limit = None) -> None:
    """Why was I throttled? Each interval of the last 7 days with its reason, the newest first."""
    query = said(**{"from": start, "to": end, "order": "newest"})
    of(ctx).listed(ops.THROTTLING, INTERVALS, limit=limit, query=query, instance_id=instance)


@app.add("guarantee")
def guarantee(ctx: typer.Context, instance: Instance) -> None:
    """How well the bought bandwidth was kept, by days on which anybody waited."""
    of(ctx).listed(ops.GUARANTEE, DAYS, limit=None, instance_id=instance)


@app.add("report")
def report(ctx: typer.Context, instance: Instance, start: From = None, end: To = None, limit: Limit = None) -> None:
    """Each day beside what was bought: percentiles of use, headroom, the guarantee, and when the limit will be reached."""
    query = said(**{"from": start, "to": end})
    of(ctx).listed(ops.QUOTA_REPORT, REPORT, limit=limit, query=query, instance_id=instance)
