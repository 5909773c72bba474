"""Schemas by which messages in Avro or Protobuf are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import file_text, said
from controlplane.cli.options import Commands, Instance, Topic
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Schemas by which messages in Avro or Protobuf are shown.")
LISTED = columns("part", "format", "framing", "message", "messages", "updated_at")
Part = Annotated[str, typer.Argument(metavar="PART", help="key or value.")]


@app.add("list")
def listed(ctx: typer.Context, instance: Instance, topic: Topic) -> None:
    """The schemas of the topic's keys and values; with -o json their text, too."""
    of(ctx).listed(ops.SCHEMAS, LISTED, limit=None, instance_id=instance, topic=topic)


@app.add("set", rehearses=True)
def put(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    part: Part,
    format: Annotated[Literal["avro", "protobuf"], typer.Option(help="What it is written in.")],  # noqa: A002 - the option
    file: Annotated[Path, typer.Option(help="Where it stands: an Avro schema in JSON, or a .proto file.")],
    message: Annotated[str | None, typer.Option(help="Of a .proto file with several: its full name.")] = None,
    registry: Annotated[bool, typer.Option("--registry", help="Content begins with the id of a schema.")] = False,
) -> None:
    """Give the topic's keys or values a schema: messages are shown as JSON by it."""
    body = said(format=format, definition=file_text(file), message=message, framing="registry" if registry else None)
    of(ctx).change(ops.SCHEMA_SET, body=body, instance_id=instance, topic=topic, part=part)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, instance: Instance, topic: Topic, part: Part) -> None:
    """Show the topic's keys or values as text and bytes again."""
    done = f"messages of {topic} are shown without a schema of their {part}s"
    of(ctx).change(ops.SCHEMA_DELETE, done=done, instance_id=instance, topic=topic, part=part)
