"""Single sign-on by an organisation's own provider. Its secret is asked for, and never an argument."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Yes
from controlplane.cli.session import of

app = Commands("Single sign-on: the provider that signs members of the organisation in. For owners.")


@app.add("show")
def shown(ctx: typer.Context) -> None:
    """What is set, and whether it is in force; never the secret."""
    of(ctx).show(ops.SSO)


@app.add("set", rehearses=True)
def put(
    ctx: typer.Context,
    issuer: Annotated[str, typer.Option(help="Its address, to the letter as it names itself.")],
    client_id: Annotated[str, typer.Option(help="As which this service is known there.")],
    label: Annotated[str, typer.Option(help="As members know it.")],
    keep_secret: Annotated[
        bool, typer.Option("--keep-secret", help="The secret of before; none is asked for.")
    ] = False,
) -> None:
    """Set it, or another one; the secret is asked for. To test it, connect your own account in the console."""
    secret = None if keep_secret else _secret()
    of(ctx).change(ops.SSO_SET, body=said(issuer=issuer, client_id=client_id, label=label, client_secret=secret))


@app.add("alter", rehearses=True)
def alter(
    ctx: typer.Context,
    in_force: Annotated[
        bool | None, typer.Option("--in-force/--not-in-force", help="Whether members sign in by it.")
    ] = None,
    required: Annotated[
        bool | None, typer.Option("--required/--not-required", help="Whether they get into the console by it alone.")
    ] = None,
) -> None:
    """In force or not, required or not."""
    body = said(in_force=in_force, required=required)
    if not body:
        raise Misused("name what is to be different")
    of(ctx).change(ops.SSO_CHANGE, body=body)


@app.add("remove", rehearses=True)
def remove(ctx: typer.Context, yes: Yes = False) -> None:
    """Nobody signs in by it any more, and whoever has is signed out."""
    session = of(ctx)
    session.confirm("This removes single sign-on, and signs out whoever came by it.", "sso", yes=yes)
    session.change(ops.SSO_REMOVE, done="Single sign-on is removed.")


def _secret() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Client secret", hide_input=True, err=True))
    text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise Misused("no client secret was given")
    return text
