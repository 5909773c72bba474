"""Topics of an instance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said, settings
from controlplane.cli.errors import Misused, Refused
from controlplane.cli.options import (
    Cidrs,
    Commands,
    Instance,
    Limit,
    Prefix,
    Settings,
    Since,
    Sort,
    Topic,
    Until,
    Wait,
    Yes,
)
from controlplane.cli.output import INCOMPLETE
from controlplane.cli.session import of
from controlplane.cli.tables import columns
from controlplane.cli.values import since

app = Commands("Topics of an instance.")
LISTED = columns("name", "partitions", "replication_factor", "whitelist", "tags", "note")
SIZED = columns("name", "stored_bytes", "partitions", "replication_factor", "whitelist", "tags", "note")
CONFIGS = columns("name", "value", "source", "default", "read_only", "documentation")
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="A tag; again for more. They replace those that there are.")
]


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    prefix: Prefix = None,
    tag: Annotated[str | None, typer.Option(help="Only those that have this tag.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Topics of the instance by name, with their tags and notes."""
    columns_ = SIZED if (sort or "").removeprefix("-") == "stored_bytes" else LISTED
    query = said(prefix=prefix, tag=tag, sort=sort)
    of(ctx).listed(ops.TOPICS, columns_, limit=limit, query=query, instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, topic: Topic) -> None:
    """A topic with each partition's leader, replicas and in-sync replicas."""
    of(ctx).show(ops.TOPIC, instance_id=instance, topic=topic)


@app.add("figures")
def figures(ctx: typer.Context, instance: Instance, topic: Topic) -> None:
    """Size, records, offsets, last write, flow, skew, who reads it, and hints."""
    of(ctx).show(ops.TOPIC_FIGURES, instance_id=instance, topic=topic)


@app.add("history")
def history(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    start: Since = "-1h",
    end: Until = None,
    step: Annotated[int | None, typer.Option(min=10, help="Seconds; by default as few as make 1,000 lines.")] = None,
) -> None:
    """Bytes produced and consumed a second, and records produced: 10 s for an hour, a minute for 15 days, an hour for 400 days.

    And bytes stored, of all replicas, the average of whole hours. Of the last hour also how far behind the groups are that read
    it, in records, bytes and seconds: the largest of any.
    """
    now = datetime.now(UTC)
    query = said(**{"from": since(start, now), "to": end and since(end, now), "step": step})
    session = of(ctx)
    found = session.call(ops.TOPIC_HISTORY, query=query, instance_id=instance, topic=topic)
    names = [metric["name"] for metric in found["metrics"]]  # a service of an earlier release has no lag
    session.output.pages([found], columns("time", *names))
    session.output.note(f"Steps of {found['step_s']} s, of rows of {found['resolution_s']} s; a dash is a gap.")
    if not found.get("is_complete", True):
        session.output.note(INCOMPLETE)


@app.add("configs")
def configs(ctx: typer.Context, instance: Instance, topic: Topic) -> None:
    """Every configuration with its value, where it comes from, its default, and what it does."""
    of(ctx).listed(ops.TOPIC_CONFIGS, CONFIGS, limit=None, instance_id=instance, topic=topic)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    instance: Instance,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    partitions: Annotated[int | None, typer.Option(help="By default as the instance's settings say.")] = None,
    replication_factor: Annotated[int | None, typer.Option(help="The same.")] = None,
    config: Settings = None,
) -> None:
    """A new topic, ready for use when this ends."""
    body = said(name=name, partitions=partitions, replication_factor=replication_factor, config=settings(config))
    of(ctx).change(ops.TOPIC_CREATE, body=body, instance_id=instance)


@app.add("alter", rehearses=True)
def alter(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    partitions: Annotated[int | None, typer.Option(help="More than there are.")] = None,
    config: Settings = None,
    reset: Annotated[
        list[str] | None, typer.Option(help="A setting that goes back to its default; again for more.")
    ] = None,
) -> None:
    """More partitions, or other settings."""
    if config is None and reset is None and partitions is None:
        raise Misused("name --partitions, --config or --reset")
    changes = {**(settings(config) or {}), **dict.fromkeys(reset or [])}
    body = said(partitions=partitions, config=changes or None)
    of(ctx).change(ops.TOPIC_CHANGE, body=body, instance_id=instance, topic=topic)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, instance: Instance, topic: Topic, yes: Yes = False) -> None:
    """Delete a topic and its records."""
    session = of(ctx)
    session.confirm(f"This deletes the topic {topic} with all its records.", topic, yes=yes)
    session.change(ops.TOPIC_DELETE, done=f"{topic} is deleted.", instance_id=instance, topic=topic)


@app.add("whitelist", rehearses=True)
def whitelist(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    cidrs: Cidrs = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="Let nobody use it.")] = False,
    everyone: Annotated[bool, typer.Option("--everyone", help="Whoever may connect to the instance.")] = False,
) -> None:
    """Who may use the topic, among those who may connect; in force within 2 s. Without options: who may now."""
    session = of(ctx)
    if sum((bool(cidrs), nobody, everyone)) > 1:
        raise Misused("take --cidr, --nobody or --everyone")
    if not (cidrs or nobody or everyone):
        found = session.call(ops.TOPIC, instance_id=instance, topic=topic)
        session.output.document({"whitelist": found["whitelist"]})
        return
    wanted = None if everyone else cidrs or []
    session.change(ops.TOPIC_WHITELIST, body={"cidrs": wanted}, instance_id=instance, topic=topic)


@app.add("note", rehearses=True)
def note(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    text: Annotated[str | None, typer.Option("--note", help="What to say about it; empty: nothing.")] = None,
    tags: Tags = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Take all tags away.")] = False,
) -> None:
    """Write about a topic, or give it tags. Without options: what is written now."""
    session = of(ctx)
    if tags and no_tags:
        raise Misused("take --tag or --no-tags")
    body = said(note=text, tags=[] if no_tags else tags or None)
    if not body:
        found = session.call(ops.TOPIC, instance_id=instance, topic=topic)
        session.output.document({"note": found["note"], "tags": found["tags"]})
        return
    session.change(ops.TOPIC_NOTE, body=body, instance_id=instance, topic=topic)


@app.add("configure", rehearses=True)
def configure(
    ctx: typer.Context,
    instance: Instance,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Their names.")],
    config: Settings = None,
    reset: Annotated[
        list[str] | None, typer.Option(help="A setting that goes back to its default; again for more.")
    ] = None,
    wait: Wait = True,
) -> None:
    """The same settings for several topics, by one operation. One that is refused is named, and stops no other."""
    session = of(ctx)
    changes = {**(settings(config) or {}), **dict.fromkeys(reset or [])}
    if not changes:
        raise Misused("name --config or --reset")
    body = {"topics": topics, "config": changes}
    answer = session.start(ops.TOPICS_CONFIGURE, wait=wait, body=body, instance_id=instance)
    if wait:
        result = session.call(ops.OPERATION, operation_id=answer["operation_id"])["result"]
        failed = [row for row in result["topics"] if row["outcome"] == "failed"]
        for row in failed:
            session.output.note(f"{row['topic']}: {row['detail']}")
        if failed:
            raise Refused(
                f"{len(failed)} of {len(result['topics'])} topics were not changed",
                notes=(f"All of them: sluice operation show {answer['operation_id']}",),
            )
