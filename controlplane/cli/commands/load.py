"""Loads of topics into Delta Lake tables: set up, run, stopped. A bucket's secret key is asked for, and never an argument."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import file_text, ms_typed, said, whole_or_null
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Instance, Limit, Sort, Topic, Wait, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands(
    "Loads of topics into Delta Lake tables. What they read counts against the consume limit of the instance."
)
LISTED = columns(
    "id", "topic", "uri", "every_minutes", "enabled", "next_start_at",
    state="last_run.state", rows="last_run.rows", ended_at="last_run.ended_at",
)  # fmt: skip
RUNS = columns("id", "state", "asked_at", "asked_by", "rows", "bytes", "commits", "problems", "reason", "says")
KEPT = columns("id", "topic", "bytes", "deleted_at", "deleted_by")
RANGE = re.compile(r"(\d+):(\d+)-(\d+)", re.ASCII)
Kind = Literal["folder", "bucket"]
Form = Literal["delta", "parquet"]
Load = Annotated[str, typer.Argument(metavar="LOAD", help="Its id.")]
Region = Annotated[str | None, typer.Option(help="Of the bucket.")]
AccessKey = Annotated[str | None, typer.Option(help="Of the bucket. Its secret key is asked for.")]
SkipExpired = Annotated[
    bool | None,
    typer.Option("--skip-expired/--no-skip-expired", help="Go on behind records that expired, and note the gap."),
]


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    topic: Annotated[str | None, typer.Option(help="Only those of this topic.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="By default both.")] = None,
    enabled: Annotated[Literal["true", "false"] | None, typer.Option(help="Whether the schedule is on.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Loads, each with its last run."""
    query = said(topic=topic, kind=kind, enabled=enabled, sort=sort)
    of(ctx).listed(ops.LOADS, LISTED, limit=limit, query=query, instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, load: Load) -> None:
    """One load, with its last run."""
    of(ctx).show(ops.LOAD, instance_id=instance, load_id=load)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    kind: Annotated[Kind, typer.Argument(help="A folder of the service, or a bucket of your own.")],
    bucket: Annotated[str | None, typer.Option(help="Its name.")] = None,
    path: Annotated[str | None, typer.Option(help="Of the table in the bucket, such as lake/orders.")] = None,
    region: Region = None,
    access_key: AccessKey = None,
    schema: Annotated[
        str | None, typer.Option(help="Of JSON values: raw (none, the default), inferred, or Spark's DDL or JSON.")
    ] = None,
    schema_file: Annotated[Path | None, typer.Option(help="Where the DDL or the JSON stands.")] = None,
    every: Annotated[int | None, typer.Option(help="Minutes between two runs; by default only when asked for.")] = None,
    skip_expired: SkipExpired = None,
) -> None:
    """Set up a load of a topic into a table. With --every its first run begins at once."""
    if schema is not None and schema_file is not None:
        raise Misused("--schema and --schema-file: only one of them")
    body = said(
        topic=topic,
        kind=kind,
        bucket=bucket,
        path=path,
        region=region,
        access_key=access_key,
        secret_key=None if access_key is None else _secret(),
        schema=schema if schema_file is None else file_text(schema_file).strip(),
        every_minutes=every,
        skip_expired=skip_expired,
    )
    of(ctx).change(ops.LOAD_CREATE, body=body, instance_id=instance)


@app.add("begin", rehearses=True)
def begin(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    destination: Annotated[
        str, typer.Argument(metavar="URI", help="s3://bucket/path, or folder: for a folder of the service.")
    ],
    form: Annotated[
        Form | None, typer.Option("--format", help="By default delta; parquet: files alone, never replaced.")
    ] = None,
    begins: Annotated[
        str | None,
        typer.Option("--from", help="Records from there on: ago, such as -7d; or a date or RFC 3339, in UTC."),
    ] = None,
    ends: Annotated[
        str | None, typer.Option("--to", help="Records before this moment; by default all that is there.")
    ] = None,
    region: Region = None,
    access_key: AccessKey = None,
    skip_expired: SkipExpired = None,
    wait: Wait = True,
) -> None:
    """Load a topic at once into a table of its own. The operation ends when all is loaded."""
    now = datetime.now(UTC)
    body = said(
        topic=topic,
        destination=destination,
        format=form,
        to=ms_typed(ends, now),
        region=region,
        access_key=access_key,
        secret_key=None if access_key is None else _secret(),
        skip_expired=skip_expired,
        **{"from": ms_typed(begins, now)},
    )
    of(ctx).start(ops.LOAD_CREATE, wait=wait, body=body, instance_id=instance)


@app.add("update", rehearses=True)
def update(
    ctx: typer.Context,
    instance: Instance,
    load: Load,
    every: Annotated[str | None, typer.Option(help="Minutes between two runs; null: only when asked for.")] = None,
    enabled: Annotated[bool | None, typer.Option("--enabled/--disabled", help="Whether the schedule runs it.")] = None,
    skip_expired: SkipExpired = None,
    region: Region = None,
    access_key: AccessKey = None,
    ask_secret: Annotated[bool, typer.Option("--ask-secret", help="Another secret of the same access key.")] = False,
) -> None:
    """Another schedule, or another key of the bucket."""
    asks = ask_secret or access_key is not None
    body = said(
        enabled=enabled,
        skip_expired=skip_expired,
        region=region,
        access_key=access_key,
        secret_key=_secret() if asks else None,
    ) | whole_or_null(every_minutes=every)
    if not body:
        raise Misused("name what is to be different")
    of(ctx).change(ops.LOAD_CHANGE, body=body, instance_id=instance, load_id=load)


@app.add("delete", rehearses=True)
def delete(
    ctx: typer.Context,
    instance: Instance,
    load: Load,
    remove_table: Annotated[
        bool,
        typer.Option(
            "--remove-table", help="Remove the table in the service's folder as well; else it counts as a load."
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Load no more. The table in the service's folder is kept unless --remove-table is said; a copy in a bucket stays."""
    session = of(ctx)
    becomes = (
        "is removed, with all that was loaded" if remove_table else "is kept, and counts as a load until it is removed"
    )
    session.confirm(f"This deletes the load {load}. Its table in the service's folder {becomes}.", load, yes=yes)
    session.change(
        ops.LOAD_DELETE,
        query={"table": "remove" if remove_table else "keep"},
        done=f"{load} is deleted.",
        instance_id=instance,
        load_id=load,
    )


@app.add("tables")
def tables(ctx: typer.Context, instance: Instance, limit: Limit = None) -> None:
    """Tables of loads that were deleted. Each counts as a load until it is removed."""
    of(ctx).listed(ops.KEPT_TABLES, KEPT, limit=limit, instance_id=instance)


@app.add("remove-table", rehearses=True)
def remove_table(ctx: typer.Context, instance: Instance, load: Load, yes: Yes = False) -> None:
    """Remove the table of a load that was deleted."""
    session = of(ctx)
    session.confirm(f"This removes the table of {load}, with all that was loaded.", load, yes=yes)
    session.change(
        ops.KEPT_TABLE_REMOVE, done=f"The table of {load} is being removed.", instance_id=instance, load_id=load
    )


@app.add("run", rehearses=True)
def run(
    ctx: typer.Context,
    instance: Instance,
    load: Load,
    from_time: Annotated[
        str | None, typer.Option(help="Again from there on: ago, such as -7d; or a date or RFC 3339, in UTC.")
    ] = None,
    offsets: Annotated[
        list[str] | None,
        typer.Option(help="0:100-200 are offsets 100 to 199 of partition 0, loaded again; once more for another."),
    ] = None,
    new_topic: Annotated[
        bool, typer.Option("--new-topic", help="The topic was deleted and made again: load the new one.")
    ] = False,
    skip_expired: Annotated[
        bool, typer.Option("--skip-expired", help="Go on behind records that expired, in this run.")
    ] = False,
) -> None:
    """Run it now: what is new, or a time or offsets again in place of what the table has of them."""
    body = said(
        from_time_ms=ms_typed(from_time, datetime.now(UTC)),
        offsets=None if offsets is None else [_range(text) for text in offsets],
        new_topic=new_topic or None,
        skip_expired=skip_expired or None,
    )
    of(ctx).change(ops.LOAD_RUN, body=body, instance_id=instance, load_id=load)


@app.add("runs")
def runs(ctx: typer.Context, instance: Instance, load: Load, limit: Limit = None) -> None:
    """Its runs, the newest first."""
    of(ctx).listed(ops.LOAD_RUNS, RUNS, limit=limit, instance_id=instance, load_id=load)


@app.add("stop", rehearses=True)
def stop(ctx: typer.Context, instance: Instance, load: Load) -> None:
    """Stop the run that waits or is under way. What it has committed stays, and the next run goes on there."""
    of(ctx).change(ops.LOAD_STOP, done="It stops within seconds.", instance_id=instance, load_id=load)


def _range(typed: str) -> dict[str, int]:
    found = RANGE.fullmatch(typed)
    if found is None:
        raise Misused(f"{typed}: must be like 0:100-200")
    partition, first, end = map(int, found.groups())
    return {"partition": partition, "first": first, "end": end}


def _secret() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Secret key", hide_input=True, err=True))
    text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise Misused("no secret key was given")
    return text
