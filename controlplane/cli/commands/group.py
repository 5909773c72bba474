"""Consumer groups: who reads, how far behind, and where they read on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import ms_typed, said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Group, Instance, Limit, Prefix, Since, Sort, Until, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns
from controlplane.cli.values import since

if TYPE_CHECKING:
    from collections.abc import Mapping

app = Commands("Consumer groups: who reads, and how far behind.")
LISTED = columns(
    "name", "state", "protocol", "lag_messages", "lag_bytes", "lag_seconds", "lag_seconds_at", members="members.#"
)


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    prefix: Prefix = None,
    state: Annotated[str | None, typer.Option(help="Only those in this state, such as Stable or Empty.")] = None,
    by: Annotated[
        Literal["name", "lag"],
        typer.Option(help="lag: the furthest behind first; all of them are asked for their lag now."),
    ] = "name",
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Groups with members and lag in records, bytes and seconds. Seconds, and the order by lag of --sort, are a minute old."""
    if sort is not None and by == "lag":
        raise Misused("--by=lag and --sort are two orders: say one of them")
    order = _furthest_first if by == "lag" else None
    query = said(prefix=prefix, state=state, sort=sort)
    found = of(ctx).listed(ops.GROUPS, LISTED, limit=limit, query=query, order=order, instance_id=instance)
    if found["missing_brokers"]:
        named = ", ".join(map(str, found["missing_brokers"]))
        of(ctx).output.note(f"Not all groups are here, or with all figures: brokers that do not answer are {named}.")


def _furthest_first(group: Mapping[str, Any]) -> tuple[bool, int, str]:
    """What is not known stands above what is: it may be worse."""
    lag = group["lag_messages"]
    return lag is not None, -(lag or 0), group["name"]


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, group: Group) -> None:
    """Members, and for each partition what is left to read in records, bytes and seconds."""
    of(ctx).show(ops.GROUP, instance_id=instance, group=group)


@app.add("history")
def history(
    ctx: typer.Context,
    instance: Instance,
    group: Group,
    start: Since = "-1h",
    end: Until = None,
    step: Annotated[int | None, typer.Option(min=10, help="Seconds; by default as few as make 1,000 lines.")] = None,
) -> None:
    """How far behind it was, and records it read a second: 10 s for an hour, a minute for 15 days, an hour for 400 days."""
    now = datetime.now(UTC)
    query = said(**{"from": since(start, now), "to": end and since(end, now), "step": step})
    session = of(ctx)
    found = session.call(ops.GROUP_HISTORY, query=query, instance_id=instance, group=group)
    lags = (f"{name}{most}" for name in ("lag_messages", "lag_bytes", "lag_seconds") for most in ("", "_max"))
    session.output.pages([found], columns("time", *lags, "consume_records_per_s", "produce_records_per_s"))
    session.output.note(f"Steps of {found['step_s']} s, of rows of {found['resolution_s']} s; a dash is a gap.")


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    instance: Instance,
    name: Annotated[str, typer.Argument(help="What it is to be called.")],
    topics: Annotated[list[str], typer.Option("--topic", help="That it is to read; again for more.")],
) -> None:
    """Make a group that begins with what comes to its topics from now on. It has no members yet."""
    of(ctx).change(ops.GROUP_CREATE, body={"name": name, "topics": topics}, instance_id=instance)


@app.add("reset-offsets", rehearses=True)
def reset(
    ctx: typer.Context,
    instance: Instance,
    group: Group,
    to: Annotated[
        Literal["earliest", "latest", "timestamp", "shift", "offset"] | None,
        typer.Option(help="Where the group is to read on; timestamp where --time says it."),
    ] = None,
    value: Annotated[
        int | None,
        typer.Option(help="Of timestamp: ms since 1970; of shift: records, negative is back; of offset: the offset."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="From this moment on: ago, such as -1h or -2d; or a date or RFC 3339, in UTC."),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="By default each that the group has an offset in.")] = None,
    partitions: Annotated[
        list[int] | None, typer.Option("--partition", help="Of the topic; again for more. By default all.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Move the offsets of a group without members. What would be read again or skipped is shown before it is asked for."""
    session = of(ctx)
    if time is not None and (value is not None or to not in {None, "timestamp"}):
        raise Misused("--time says where to read on: it goes without --value, and with no --to but timestamp")
    if time is None and to is None:
        raise Misused("say where the group is to read on, by --to or --time")
    if time is not None:
        to, value = "timestamp", ms_typed(time, datetime.now(UTC))
    body = said(strategy=to, value=value, topic=topic, partitions=partitions)
    if not (yes or session.dry_run):
        plan = session.call(ops.GROUP_OFFSETS, body={**body, "dry_run": True}, instance_id=instance, group=group)
        moved = f"{plan['read_again']} records would be read again and {plan['skipped']} skipped"
        new = sum(move["from"] is None for move in plan["partitions"])
        without = (
            f" Partitions without an offset yet: {new}; records before the new one will not be read." if new else ""
        )
        session.confirm(f"In {len(plan['partitions'])} partitions {moved} by {group}.{without}", group, yes=False)
    session.change(ops.GROUP_OFFSETS, body=body, instance_id=instance, group=group)


@app.add("delete-offsets", rehearses=True)
def delete_offsets(
    ctx: typer.Context,
    instance: Instance,
    group: Group,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Of which the group is to have no offsets.")],
    yes: Yes = False,
) -> None:
    """Delete a group's offsets of a topic; with its last ones the group ends, within minutes. It must have no members."""
    session = of(ctx)
    session.confirm(f"This deletes the offsets of {group} in {topic}.", group, yes=yes)
    session.change(
        ops.GROUP_TOPIC_DELETE, done=f"{group} has left {topic}.", instance_id=instance, group=group, topic=topic
    )


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, instance: Instance, group: Group, yes: Yes = False) -> None:
    """Delete a group that has no members, with its offsets."""
    session = of(ctx)
    session.confirm(f"This deletes the group {group} with its offsets.", group, yes=yes)
    session.change(ops.GROUP_DELETE, done=f"{group} is deleted.", instance_id=instance, group=group)


@app.add("remove-member", rehearses=True)
def remove_member(
    ctx: typer.Context,
    instance: Instance,
    group: Group,
    member: Annotated[str, typer.Argument(metavar="MEMBER", help="Its id, as group show has it.")],
    yes: Yes = False,
) -> None:
    """Take a member out of the group: its partitions go to the others. A consumer that lives joins again by itself."""
    session = of(ctx)
    session.confirm(f"This takes {member} out of {group}.", member, yes=yes)
    session.change(
        ops.GROUP_MEMBER_REMOVE, done=f"{member} is out of {group}.", instance_id=instance, group=group, member=member
    )
