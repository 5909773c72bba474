"""Topics of an instance."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said, settings
from controlplane.cli.errors import Misused
from controlplane.cli.options import Cidrs, Commands, DryRun, Instance, Limit, Prefix, Settings, Topic, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Topics of an instance.")
LISTED = columns("name", "partitions", "replication_factor", "whitelist")


@app.add("list")
def listed(ctx: typer.Context, instance: Instance, prefix: Prefix = None, limit: Limit = None) -> None:
    """Topics of the instance by name."""
    of(ctx).listed(ops.TOPICS, LISTED, limit=limit, query=said(prefix=prefix), instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, topic: Topic) -> None:
    """A topic with each partition's leader, replicas and in-sync replicas."""
    of(ctx).show(ops.TOPIC, instance_id=instance, topic=topic)


@app.add("create")
def create(
    ctx: typer.Context,
    instance: Instance,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    partitions: Annotated[int | None, typer.Option(help="By default as the instance's settings say.")] = None,
    replication_factor: Annotated[int | None, typer.Option(help="The same.")] = None,
    config: Settings = None,
    dry_run: DryRun = False,
) -> None:
    """A new topic, ready for use when this ends."""
    body = said(name=name, partitions=partitions, replication_factor=replication_factor, config=settings(config))
    of(ctx).change(ops.TOPIC_CREATE, dry_run=dry_run, body=body, instance_id=instance)


@app.add("alter")
def alter(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    partitions: Annotated[int | None, typer.Option(help="More than there are.")] = None,
    config: Settings = None,
    reset: Annotated[
        list[str] | None, typer.Option(help="A setting that goes back to its default; again for more.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """More partitions, or other settings."""
    if config is None and reset is None and partitions is None:
        raise Misused("name --partitions, --config or --reset")
    changes = {**(settings(config) or {}), **dict.fromkeys(reset or [])}
    body = said(partitions=partitions, config=changes or None)
    of(ctx).change(ops.TOPIC_CHANGE, dry_run=dry_run, body=body, instance_id=instance, topic=topic)


@app.add("delete")
def delete(ctx: typer.Context, instance: Instance, topic: Topic, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a topic and its records."""
    session = of(ctx)
    session.confirm(f"This deletes the topic {topic} with all its records.", topic, yes=yes or dry_run)
    session.change(ops.TOPIC_DELETE, done=f"{topic} is deleted.", dry_run=dry_run, instance_id=instance, topic=topic)


@app.add("whitelist")
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
