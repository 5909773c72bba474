"""Users, with whose passwords clients log in. A password is asked for or made, and never an argument."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Instance, Limit, Prefix, Sort, User, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Users whom clients log in as.")
LISTED = columns("name", "mechanisms", "previous_password_until")
ONCE = "The password is shown this once."
Ask = Annotated[
    bool, typer.Option("--ask-password", help="Type one, or send it to standard input. By default one is made.")
]
LEFT, DELETED, SUPER = "Sluice-Acls-Left", "Sluice-Acls-Deleted", "Sluice-Super-User"


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    prefix: Prefix = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Only those who can log in by it, such as SCRAM-SHA-256.")
    ] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Users by name; those that Kafka clients have made are among them."""
    query = said(prefix=prefix, mechanism=mechanism, sort=sort)
    of(ctx).listed(ops.USERS, LISTED, limit=limit, query=query, instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, user: User) -> None:
    """One user."""
    of(ctx).show(ops.USER, instance_id=instance, user=user)


@app.add("add", rehearses=True)
def add(
    ctx: typer.Context,
    instance: Instance,
    user: User,
    ask_password: Ask = False,
    mechanisms: Annotated[
        list[str] | None,
        typer.Option("--mechanism", help="SCRAM-SHA-256 or SCRAM-SHA-512; by default both."),
    ] = None,
) -> None:
    """A new user, who can log in within 2 s."""
    session = of(ctx)
    body = said(name=user, password=_asked() if ask_password else None, mechanisms=mechanisms)
    session.change(ops.USER_CREATE, body=body, instance_id=instance)
    if not ask_password:
        session.output.note(ONCE)


@app.add("password", rehearses=True)
def password(
    ctx: typer.Context,
    instance: Instance,
    user: User,
    ask_password: Ask = False,
    keep_previous_s: Annotated[
        int, typer.Option("--keep-previous", min=0, help="Seconds that the one of before stays good.")
    ] = 0,
) -> None:
    """Another password; that of before may stay good for a while, so that clients can change one after another."""
    session = of(ctx)
    body = said(password=_asked() if ask_password else None, keep_previous_s=keep_previous_s)
    session.change(ops.USER_PASSWORD, body=body, instance_id=instance, user=user)
    if not ask_password:
        session.output.note(ONCE)


@app.add("remove", rehearses=True)
def remove(
    ctx: typer.Context,
    instance: Instance,
    user: User,
    with_acls: Annotated[bool, typer.Option("--with-acls", help="ACLs that name the user go as well.")] = False,
    yes: Yes = False,
) -> None:
    """Nobody logs in by this name any more. ACLs that name it stay unless --with-acls is said."""
    session = of(ctx)
    session.confirm(f"This deletes the user {user}.", user, yes=yes)
    query = {"with_acls": "true"} if with_acls else {}
    if session.dry_run:
        session.change(ops.USER_DELETE, query=query, instance_id=instance, user=user)
    ids = {"instance_id": session.instance_id(instance), "user": user}
    headers = session.client.headers(ops.USER_DELETE, ids, query=query)
    session.output.note(f"{user} is deleted, and {headers.get(DELETED, '0')} ACLs with it.")
    if headers.get(LEFT, "0") != "0":
        session.output.note(f"{headers[LEFT]} ACLs still name it: whoever is given the name later has them.")
    if headers.get(SUPER) == "true":
        session.output.note("The settings of the instance still have it among the super users.")


def _asked() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise Misused("no password was given")
    return text
