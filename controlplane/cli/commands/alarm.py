"""Alarms of an instance: what is watched, how it is, when messages are held back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from controlplane.cli import completion
from controlplane.cli import operations as ops
from controlplane.cli.bodies import nullable, said, until_typed, whole_or_null
from controlplane.cli.commands import receiver
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Instance, Limit, Prefix, Sort, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Alarms: who is told when something is the matter.")
app.add_typer(receiver.app, name="receiver")
LISTED = columns(
    "id",
    "name",
    "state",
    "since",
    "value",
    "missing",
    "watch",
    "group",
    "topic",
    "comparison",
    "threshold",
    "silenced_until",
)
EVENTS = columns("time", "kind", "value", "actor")
Watch = Literal[
    "storage_full", "partitions_without_leader", "route_down", "storage_nearly_full", "partitions_under_replicated",
    "throttled_under_limit", "limit_used_up", "change_not_in_force", "flow_unknown", "cluster_unknown", "metering_behind",
    "storage_used_percent", "produce_percent", "consume_percent", "connections",
    "produce_bytes_per_s", "consume_bytes_per_s", "produce_throttled_ms_per_s", "consume_throttled_ms_per_s",
    "produce_limit_bytes_per_s", "consume_limit_bytes_per_s", "produce_allocated_bytes_per_s", "consume_allocated_bytes_per_s",
    "storage_used_bytes", "storage_limit_bytes",
    "requests_per_s", "errors_per_s", "produce_requests_per_s", "fetch_requests_per_s",
    "produce_p50_ms", "produce_p99_ms", "produce_p999_ms", "fetch_p50_ms", "fetch_p99_ms", "fetch_p999_ms",
    "under_replicated_partitions", "offline_partitions", "health_level",
    "group_lag_messages", "group_lag_bytes", "group_lag_seconds", "group_consume_records_per_s", "group_produce_records_per_s",
    "any_group_lag_messages", "any_group_lag_bytes", "any_group_lag_seconds", "expiring_unread_messages",
    "any_broker_produce_p99_ms", "any_broker_fetch_p99_ms", "any_broker_errors_per_s",
    "topic_produce_bytes_per_s", "topic_consume_bytes_per_s",
]  # fmt: skip
Comparison = Literal["above", "at_least", "below", "at_most"]
Alarm = Annotated[str, typer.Argument(metavar="ALARM", help="Its id.", autocompletion=completion.alarms)]
Compared = Annotated[Comparison | None, typer.Option("--comparison", help="Of a figure.")]
Threshold = Annotated[str | None, typer.Option("--threshold", help="Of a figure, in its unit.")]
Group = Annotated[
    str | None, typer.Option("--group", help="The consumer group, of group_lag_messages and the others of a group.")
]
Topic = Annotated[
    str | None, typer.Option("--topic", help="The topic, of topic_produce_bytes_per_s and the other of a topic.")
]
Duration = Annotated[int | None, typer.Option("--duration", help="Seconds for which it must hold; by default 0.")]
Repeat = Annotated[str | None, typer.Option("--repeat", help="Seconds until it is told again; null: told once.")]
TellNoData = Annotated[
    bool | None,
    typer.Option("--tell-no-data/--no-tell-no-data", help="Whether receivers are told that there are no values."),
]
Receivers = Annotated[list[str] | None, typer.Option("--receiver", help="The id of one; again for more.")]
Until = Annotated[str | None, typer.Option("--until", help="RFC 3339, at most 30 days away.")]
Lasting = Annotated[str | None, typer.Option("--for", help="So long from now, such as 30m, 4h or 7d; at most 30d.")]
Enabled = Annotated[bool | None, typer.Option("--enabled/--disabled", help="Whether it is looked at.")]


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    prefix: Prefix = None,
    state: Annotated[Literal["ok", "pending", "firing", "no_data"] | None, typer.Option(help="By default all.")] = None,
    watch: Annotated[Watch | None, typer.Option(help="Only those that watch this.")] = None,
    enabled: Annotated[Literal["true", "false"] | None, typer.Option(help="Whether they are looked at.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Alarms with their states and last values."""
    query = said(prefix=prefix, state=state, watch=watch, enabled=enabled, sort=sort)
    of(ctx).listed(ops.ALARMS, LISTED, limit=limit, query=query, instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, alarm: Alarm) -> None:
    """One alarm."""
    of(ctx).show(ops.ALARM, instance_id=instance, alarm_id=alarm)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    instance: Instance,
    name: Annotated[str, typer.Argument(help="To tell it from others.")],
    watch: Annotated[Watch, typer.Argument(help="A health reason, or a figure.")],
    comparison: Compared = None,
    threshold: Threshold = None,
    group: Group = None,
    topic: Topic = None,
    duration: Duration = None,
    repeat: Repeat = None,
    tell_no_data: TellNoData = None,
    receivers: Receivers = None,
    enabled: Enabled = None,
) -> None:
    """Watch something: it is looked at within 30 s."""
    members = said(group=group, topic=topic, tell_no_data=tell_no_data) | _members(
        comparison, threshold, duration, repeat, receivers, enabled
    )
    of(ctx).change(ops.ALARM_CREATE, body={"name": name, "watch": watch, **members}, instance_id=instance)


@app.add("alter", rehearses=True)
def alter(
    ctx: typer.Context,
    instance: Instance,
    alarm: Alarm,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    watch: Annotated[Watch | None, typer.Option(help="Something else.")] = None,
    comparison: Compared = None,
    threshold: Threshold = None,
    group: Group = None,
    topic: Topic = None,
    duration: Duration = None,
    repeat: Repeat = None,
    tell_no_data: TellNoData = None,
    receivers: Receivers = None,
    no_receivers: Annotated[bool, typer.Option("--no-receivers", help="Nobody is told.")] = False,
    enabled: Enabled = None,
) -> None:
    """Another rule. Receivers that are given replace those before."""
    wanted = [] if no_receivers else receivers
    body = said(name=name, watch=watch, group=group, topic=topic, tell_no_data=tell_no_data) | _members(
        comparison, threshold, duration, repeat, wanted, enabled
    )
    if not body:
        raise Misused("name what is to be different")
    of(ctx).change(ops.ALARM_CHANGE, body=body, instance_id=instance, alarm_id=alarm)


@app.add("silence", rehearses=True)
def silence(
    ctx: typer.Context,
    instance: Instance,
    alarm: Alarm,
    until: Until = None,
    lasting: Lasting = None,
    end: Annotated[bool, typer.Option("--end", help="Messages come again.")] = False,
) -> None:
    """Hold messages back for a while; the alarm goes on."""
    moment = until_typed(until, lasting, datetime.now(UTC), ends=end)
    of(ctx).change(ops.ALARM_SILENCE, body={"until": moment}, instance_id=instance, alarm_id=alarm)


@app.add("silence-all", rehearses=True)
def silence_all(
    ctx: typer.Context,
    instance: Instance,
    until: Until = None,
    lasting: Lasting = None,
    end: Annotated[bool, typer.Option("--end", help="Every silence ends.")] = False,
) -> None:
    """Hold back the messages of all alarms of the instance, as during maintenance; one that is silenced for longer stays so."""
    moment = until_typed(until, lasting, datetime.now(UTC), ends=end)
    of(ctx).change(ops.ALARMS_SILENCE, body={"until": moment}, instance_id=instance)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, instance: Instance, alarm: Alarm, yes: Yes = False) -> None:
    """It is looked at no more."""
    session = of(ctx)
    session.confirm(f"This deletes the alarm {alarm}.", alarm, yes=yes)
    session.change(ops.ALARM_DELETE, done=f"{alarm} is deleted.", instance_id=instance, alarm_id=alarm)


@app.add("history")
def history(ctx: typer.Context, instance: Instance, alarm: Alarm, limit: Limit = None) -> None:
    """What happened to it in the last 90 days, the newest first."""
    of(ctx).listed(ops.ALARM_EVENTS, EVENTS, limit=limit, instance_id=instance, alarm_id=alarm)


def _members(
    comparison: str | None,
    threshold: str | None,
    duration: int | None,
    repeat: str | None,
    receivers: list[str] | None,
    enabled: bool | None,
) -> dict[str, object]:
    return {
        **said(comparison=comparison, duration_s=duration, receivers=receivers, enabled=enabled),
        **nullable(threshold=threshold),
        **whole_or_null(repeat_s=repeat),
    }
