"""Receivers of an instance's alarms. The secret of a webhook is shown once, where it is made."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Instance, Limit, Sort, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Receivers: who is told of alarms.")
LISTED = columns("id", "name", "kind", "address", "confirmed", "previous_secret_until")
MESSAGES = columns("id", "kind", "state", "attempts", "created_at", "ended_at", "next_attempt_at", "error")
ONCE = "The secret is shown this once."
Receiver = Annotated[str, typer.Argument(metavar="RECEIVER", help="Its id.")]


@app.add("list")
def listed(ctx: typer.Context, instance: Instance, sort: Sort = None, limit: Limit = None) -> None:
    """Who can be told; never a secret."""
    of(ctx).listed(ops.RECEIVERS, LISTED, limit=limit, query=said(sort=sort), instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, receiver: Receiver) -> None:
    """One of them."""
    of(ctx).show(ops.RECEIVER, instance_id=instance, receiver_id=receiver)


@app.add("add", rehearses=True)
def add(
    ctx: typer.Context,
    instance: Instance,
    name: Annotated[str, typer.Argument(help="To tell it from others.")],
    kind: Annotated[Literal["email", "webhook"], typer.Argument(help="How it is told.")],
    address: Annotated[str, typer.Argument(help="An e-mail address, or an https URL.")],
) -> None:
    """A new one. An e-mail address gets a code, which confirms it."""
    session = of(ctx)
    body = {"name": name, "kind": kind, "address": address}
    session.change(ops.RECEIVER_CREATE, body=body, instance_id=instance)
    session.output.note(ONCE if kind == "webhook" else "A code was sent there: sluice alarm receiver confirm takes it.")


@app.add("alter", rehearses=True)
def alter(
    ctx: typer.Context,
    instance: Instance,
    receiver: Receiver,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    address: Annotated[str | None, typer.Option(help="Another address, of the same kind.")] = None,
) -> None:
    """Another name or address; alarms go on telling it. An e-mail address gets a code again, a webhook keeps its secret."""
    body = said(name=name, address=address)
    if not body:
        raise Misused("name what is to be different")
    of(ctx).change(ops.RECEIVER_CHANGE, body=body, instance_id=instance, receiver_id=receiver)


@app.add("confirm", rehearses=True)
def confirm(
    ctx: typer.Context,
    instance: Instance,
    receiver: Receiver,
    code: Annotated[str, typer.Argument(help="What was sent to the address.")],
) -> None:
    """Give back the code that an e-mail address got."""
    of(ctx).change(ops.RECEIVER_CONFIRM, body={"code": code}, instance_id=instance, receiver_id=receiver)


@app.add("test", rehearses=True)
def test(ctx: typer.Context, instance: Instance, receiver: Receiver) -> None:
    """Send a test message; not more than once in 10 s."""
    of(ctx).change(ops.RECEIVER_TEST, instance_id=instance, receiver_id=receiver)


@app.add("rotate", rehearses=True)
def rotate(ctx: typer.Context, instance: Instance, receiver: Receiver) -> None:
    """Another secret for a webhook; the one before signs as well for a day."""
    session = of(ctx)
    session.change(ops.RECEIVER_SECRET, instance_id=instance, receiver_id=receiver)
    session.output.note(ONCE)


@app.add("messages")
def messages(ctx: typer.Context, instance: Instance, receiver: Receiver, limit: Limit = None) -> None:
    """What became of the messages to it, the newest first."""
    of(ctx).listed(ops.RECEIVER_MESSAGES, MESSAGES, limit=limit, instance_id=instance, receiver_id=receiver)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, instance: Instance, receiver: Receiver, yes: Yes = False) -> None:
    """No message goes there any more."""
    session = of(ctx)
    session.confirm(f"This deletes the receiver {receiver}.", receiver, yes=yes)
    session.change(ops.RECEIVER_DELETE, done=f"{receiver} is deleted.", instance_id=instance, receiver_id=receiver)
