"""Roles of the organisation's own: what they open by scope and instance. `member role` gives them."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import completion
from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.commands.key import Scope
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Limit, Prefix, Sort, Yes
from controlplane.cli.session import Session, of
from controlplane.cli.tables import columns

app = Commands("Roles of your own: which scopes, and of which instances.")
LISTED = columns("id", "name", "scopes", "instances", "description")
Id = Annotated[str, typer.Argument(metavar="ID")]
Look = Annotated[list[Scope] | None, typer.Option("--look", help="What it may look at; again for more.")]
Change = Annotated[
    list[Scope] | None, typer.Option("--change", help="What it may change, and look at; again for more.")
]
Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance", help="For this one alone, by id or name; again for more.", autocompletion=completion.instances
    ),
]
Description = Annotated[str | None, typer.Option(help="What it is for.")]


@app.add("list")
def listed(ctx: typer.Context, prefix: Prefix = None, sort: Sort = None, limit: Limit = None) -> None:
    """Roles of the organisation's own."""
    of(ctx).listed(ops.ROLES, LISTED, limit=limit, query=said(prefix=prefix, sort=sort))


@app.add("show")
def show(ctx: typer.Context, role: Id) -> None:
    """One of them."""
    of(ctx).show(ops.ROLE, role_id=role)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    look: Look = None,
    change: Change = None,
    instance: Instances = None,
    description: Description = None,
) -> None:
    """A new role, which nobody has yet; owners decide."""
    session = of(ctx)
    body = said(scopes=_scopes(look, change), instances=_ids(session, instance), description=description)
    session.change(ops.ROLE_CREATE, body={"name": name, **body})


@app.add("change", rehearses=True)
def change(
    ctx: typer.Context,
    role: Id,
    name: Annotated[str | None, typer.Option(help="What it is to be called.")] = None,
    look: Look = None,
    change: Change = None,
    instance: Instances = None,
    all_instances: Annotated[bool, typer.Option("--all-instances", help="For all again, those to come too.")] = False,
    description: Description = None,
) -> None:
    """What it opens, for all who have it. Scopes that are given replace those of before, and so do instances."""
    if instance and all_instances:
        raise Misused("give --instance or --all-instances, not both")
    session = of(ctx)
    scopes = _scopes(look, change) or None
    body = said(name=name, scopes=scopes, instances=_ids(session, instance), description=description)
    body |= {"instances": None} if all_instances else {}
    session.change(ops.ROLE_CHANGE, body=body, role_id=role)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, role: Id, yes: Yes = False) -> None:
    """End a role that nobody has."""
    session = of(ctx)
    session.confirm(f"This deletes {role}.", role, yes=yes)
    session.change(ops.ROLE_DELETE, done=f"{role} is deleted.", role_id=role)


def _scopes(look: list[Scope] | None, change: list[Scope] | None) -> dict[str, str]:
    looks = {each.value: "look" for each in look or ()}
    return looks | {each.value: "change" for each in change or ()}


def _ids(session: Session, instances: list[str] | None) -> list[str] | None:
    return [session.instance_id(each) for each in instances] if instances else None
