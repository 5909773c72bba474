"""How the bought bandwidth is shared out, who had to wait, and how well it was kept."""

from __future__ import annotations

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, From, Instance, Limit, To, Wait
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Quota: how bandwidth is shared out, and who waited.")
INTERVALS = columns("started_at", "ended_at", "direction", "rule", "throttled_ms", "under_limit_ms", "explanation")
REASONS = columns(
    "started_at",
    "ended_at",
    "times",
    "waited_ms",
    "broker",
    client="who.client_id",
    topic="who.topic",
    remedy="remedy.kind",
    bandwidth="remedy.bandwidth_mib_per_s",
    storage="remedy.storage_gib",
    a_month="remedy.per_month_after",
    explanation="explanation",
)
NEIGHBOURS = columns(
    "started_at", "ended_at", "broker", "score", "requests", "p99_ms", "usual_ms", "others_percent", "explanation"
)
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


@app.add("why")
def why(ctx: typer.Context, instance: Instance, start: From = None, end: To = None) -> None:
    """Why somebody waited, what is alike as one: which client and topic, and what would help, with its price a month."""
    query = said(**{"from": start, "to": end})
    of(ctx).listed(ops.THROTTLING_REASONS, REASONS, limit=None, query=query, instance_id=instance)


@app.add("neighbours")
def neighbours(ctx: typer.Context, instance: Instance, start: From = None, end: To = None) -> None:
    """When requests were slow on a broker, and how much of it other instances had meanwhile, with a score of 0 to 100."""
    query = said(**{"from": start, "to": end})
    of(ctx).listed(ops.NEIGHBOURS, NEIGHBOURS, limit=None, query=query, instance_id=instance)


@app.add("spread", rehearses=True)
def spread(ctx: typer.Context, instance: Instance, wait: Wait = True) -> None:
    """Have other replicas in sync lead, so that brokers carry alike: nothing is copied. Once in five minutes."""
    of(ctx).start(ops.LEADERS_SPREAD, wait=wait, instance_id=instance)


@app.add("guarantee")
def guarantee(ctx: typer.Context, instance: Instance) -> None:
    """How well the bought bandwidth was kept, by days on which anybody waited."""
    of(ctx).listed(ops.GUARANTEE, DAYS, limit=None, instance_id=instance)


@app.add("report")
def report(ctx: typer.Context, instance: Instance, start: From = None, end: To = None, limit: Limit = None) -> None:
    """Each day against the limit: percentiles of use, headroom (limit less p95), the guarantee, when it will be reached."""
    query = said(**{"from": start, "to": end})
    of(ctx).listed(ops.QUOTA_REPORT, REPORT, limit=limit, query=query, instance_id=instance)
