"""Messages of a topic: looking, one test message, and deleting records before an offset."""

from __future__ import annotations

import base64
import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import ms_typed, said
from controlplane.cli.commands import schema
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Instance, Topic, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns
from controlplane.cli.values import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.cli.session import Session

app = Commands("Messages of a topic. What they take counts against the instance's bandwidth.")
app.add_typer(schema.app, name="schema")
LISTED = columns("partition", "offset", "timestamp_ms", "key", "value", "value_bytes")
EVERY_S = 2.0
END = "end"
Ways = Literal["text", "hex", "base64"]
KeyAs = Annotated[Ways, typer.Option(help="How --key is written.")]
HeaderSought = Annotated[
    str | None, typer.Option("--header", help="Only with a header of this NAME; NAME=TEXT: with the text in its value.")
]
Contains = Annotated[
    str | None, typer.Option(help="Only messages whose value has this text in it, or in what its schema makes of it.")
]
KeyContains = Annotated[
    str | None, typer.Option(help="Only messages whose key has this text in it, or in what its schema makes of it.")
]
TO_THE_END = -1
COUNT = "Message-Count"
"""The header that says how many messages a file holds."""


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    partition: Annotated[int | None, typer.Option(min=0, help="By default all.")] = None,
    start: Annotated[
        Literal["newest", "oldest", "end"] | None, typer.Option(help="Where neither an offset nor a time is said.")
    ] = None,
    offset: Annotated[int | None, typer.Option(min=0, help="From there on, of one partition.")] = None,
    begins: Annotated[
        str | None, typer.Option("--from", help="From there on: ago, such as -1h; or a date or RFC 3339, in UTC.")
    ] = None,
    timestamp_ms: Annotated[int | None, typer.Option(help="The same in ms since 1970.")] = None,
    key: Annotated[str | None, typer.Option(help="Only messages with this key.")] = None,
    key_as: KeyAs = "text",
    header: HeaderSought = None,
    contains: Contains = None,
    key_contains: KeyContains = None,
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 20,
    csv: Annotated[bool, typer.Option("--csv", help="A file with whole messages, for a spreadsheet: > FILE.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="The same with an object a line: > FILE.")] = False,
) -> None:
    """The newest messages, or those from somewhere on. A search goes on until it has found so many, or all is looked at."""
    if csv and jsonl:
        raise Misused("--csv and --jsonl: only one of them")
    query = said(
        partition=partition,
        start=start,
        offset=offset,
        timestamp_ms=_at_ms("--from", begins, timestamp_ms),
        key=None if key is None else _encoded(_typed(key, key_as, "--key")),
        header=header,
        contains=contains,
        key_contains=key_contains,
    )
    if csv or jsonl:
        _files(of(ctx), "csv" if csv else "jsonl", query, limit, instance, topic)
        return
    of(ctx).listed(
        ops.MESSAGES, LISTED, limit=limit, query=query, readable=_readable, instance_id=instance, topic=topic
    )


@app.add("tail")
def tail(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    partition: Annotated[int | None, typer.Option(min=0, help="By default all.")] = None,
    key: Annotated[str | None, typer.Option(help="Only messages with this key.")] = None,
    key_as: KeyAs = "text",
    header: HeaderSought = None,
    contains: Contains = None,
    key_contains: KeyContains = None,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many; by default with Ctrl-C.")] = None,
) -> None:
    """Messages as they come, one a line, from now on. It asks every two seconds."""
    query = said(
        partition=partition,
        start="end",
        key=None if key is None else _encoded(_typed(key, key_as, "--key")),
        header=header,
        contains=contains,
        key_contains=key_contains,
    )
    session, left = of(ctx), limit
    while True:
        page = session.call(ops.MESSAGES, query=query, instance_id=instance, topic=topic)
        for message in page["items"][:left]:
            session.output.line(message, _in_one_line(_readable(message)))
        if left is not None:
            left -= len(page["items"])
            if left <= 0:
                return
        is_all = page["next"] is None or not page["items"]
        query = {name: value for name, value in query.items() if name != "start"} | {"cursor": page["newer"]}
        if is_all:
            session.clock.sleep(EVERY_S)


@app.add("show")
def shown(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0)],
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0)],
    value: Annotated[bool, typer.Option("--value", help="Only the value, byte by byte, for a file or a pipe.")] = False,
) -> None:
    """One message, whole."""
    session = of(ctx)
    found = session.call(ops.MESSAGE, instance_id=instance, topic=topic, partition=str(partition), offset=str(offset))
    if not value:
        session.output.document(found if session.output.is_json else _readable(found))
        return
    if found["masked"]:
        raise Misused("your role may not read messages")
    sys.stdout.buffer.write(base64.b64decode(found["value"] or ""))


@app.add("produce", rehearses=True)
def produce(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    value: Annotated[str | None, typer.Option(help="Text. Without it and --file: null.")] = None,
    file: Annotated[
        typer.FileBinaryRead | None, typer.Option(help="Where the value stands; - is standard input.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="By default none (null); an empty one is --key ''.")] = None,
    key_as: KeyAs = "text",
    value_as: Annotated[Ways, typer.Option(help="How --value is written.")] = "text",
    headers: Annotated[list[str] | None, typer.Option("--header", help="NAME=TEXT; again for more.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="By default chosen by the key.")] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Its timestamp: ago, such as -1h; or a date or RFC 3339, in UTC. By default now."),
    ] = None,
    timestamp_ms: Annotated[int | None, typer.Option(min=0, help="The same in ms since 1970.")] = None,
) -> None:
    """Write one message, acknowledged by all in-sync replicas, and say where it stands."""
    if value is not None and file is not None:
        raise Misused("--value and --file: only one of them")
    content = file.read() if file is not None else None if value is None else _typed(value, value_as, "--value")
    body = said(
        key=None if key is None else _encoded(_typed(key, key_as, "--key")),
        value=None if content is None else _encoded(content),
        headers=_headers(headers),
        partition=partition,
        timestamp_ms=_at_ms("--time", time, timestamp_ms),
    )
    of(ctx).change(ops.MESSAGE_PRODUCE, body=body, instance_id=instance, topic=topic)


@app.add("delete", rehearses=True)
def delete(
    ctx: typer.Context,
    instance: Instance,
    topic: Topic,
    before: Annotated[list[str], typer.Option("--before", help="PARTITION:OFFSET, or PARTITION:end; again for more.")],
    yes: Yes = False,
) -> None:
    """Delete the records before offsets, for good. How many go is shown before it is asked for. For owners."""
    session = of(ctx)
    body: dict[str, Any] = {"before": dict(map(_place, before))}
    if not (yes or session.dry_run):
        plan = session.call(ops.RECORDS_DELETE, body={**body, "dry_run": True}, instance_id=instance, topic=topic)
        records = sum(each["records"] for each in plan["partitions"])
        session.confirm(f"{records} records of {topic} would be deleted for good.", topic, yes=False)
    session.change(ops.RECORDS_DELETE, body=body, instance_id=instance, topic=topic)


def _at_ms(option: str, moment: str | None, timestamp_ms: int | None) -> int | None:
    """Milliseconds since 1970, of whichever of the two options was typed."""
    if moment is not None and timestamp_ms is not None:
        raise Misused(f"{option} and --timestamp-ms are one moment: say one of them")
    return timestamp_ms if moment is None else ms_typed(moment, datetime.now(UTC))


def _files(session: Session, kind: str, query: Mapping[str, Any], limit: int, instance: str, topic: str) -> None:
    """One file of as many as it takes: of CSV only the first begins with the names of columns, which hold no line's end."""
    files = session.files(
        ops.MESSAGES, query={**query, "file": kind}, limit=limit, count=COUNT, instance_id=instance, topic=topic
    )
    for place, content in enumerate(files):
        session.output.content(content if kind == "jsonl" or place == 0 else content.partition(b"\r\n")[2])


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _typed(text: str, how: Ways, option: str) -> bytes:
    """The bytes that are meant."""
    try:
        if how == "hex":
            return bytes.fromhex(text)
        return base64.b64decode(text.encode(), validate=True) if how == "base64" else text.encode()
    except ValueError as error:
        raise Misused(f"{option}: is no {how}") from error


def _in_one_line(message: Mapping[str, Any]) -> str:
    """Where it is and when, then its key and value."""
    shown = ("-" if message[name] is None else plain(str(message[name])) for name in ("timestamp_ms", "key", "value"))
    return "\t".join((f"{message['partition']}:{message['offset']}", *shown))


def _headers(typed: Sequence[str] | None) -> list[list[str]] | None:
    if not typed:
        return None
    found = []
    for each in typed:
        name, equals, text = each.partition("=")
        if not equals:
            raise Misused(f"{each}: must be like name=text")
        found.append([name, _encoded(text.encode())])
    return found


def _place(typed: str) -> tuple[str, int]:
    partition, _, offset = typed.partition(":")
    if not partition.isdecimal() or not (offset == END or offset.isdecimal()):
        raise Misused(f"{typed}: must be like 0:1200, or 0:{END}")
    return partition, TO_THE_END if offset == END else int(offset)


def _readable(message: Mapping[str, Any]) -> dict[str, Any]:
    """For people: JSON where a schema gives it, else text instead of base64, and bytes that are no text in hex."""
    headers = [[name, _decoded(value)] for name, value in message["headers"]]
    return {**message, "key": _part(message, "key"), "value": _part(message, "value"), "headers": headers}


def _part(message: Mapping[str, Any], name: str) -> str | None:
    by_schema = message["decoded"][name]
    if by_schema is not None and by_schema["problem"] is None:
        return json.dumps(by_schema["value"], ensure_ascii=False)
    return _decoded(message[name])


def _decoded(field: str | None) -> str | None:
    return None if field is None else _text(base64.b64decode(field))


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"0x{content.hex()}"
