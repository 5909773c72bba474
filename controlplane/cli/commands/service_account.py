"""Service accounts: identities of the organisation without a person, and their API keys."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import role_typed, said
from controlplane.cli.commands.key import LISTED as KEYS_LISTED
from controlplane.cli.commands.key import (
    ONCE,
    Addresses,
    Expires,
    Instances,
    KeyState,
    NamePrefix,
    Scopes,
    UnusedSince,
    limits_of,
)
from controlplane.cli.options import Commands, Limit, Prefix, Sort, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Service accounts: what programs act as, whoever comes and goes.")
LISTED = columns(
    "id", "name", "role", own_role="custom_role.name", description="description", created_at="created_at",
    disabled_at="disabled_at",
)  # fmt: skip
Id = Annotated[str, typer.Argument(metavar="ID")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="To tell it from others.")]
NAMES = ("operator", "billing", "member", "viewer")
ROLES = "operator, billing, member, viewer, or the id of a role of your own."
Description = Annotated[str | None, typer.Option(help="What it is for.")]


@app.add("list")
def listed(ctx: typer.Context, prefix: Prefix = None, sort: Sort = None, limit: Limit = None) -> None:
    """Service accounts of the organisation."""
    of(ctx).listed(ops.SERVICE_ACCOUNTS, LISTED, limit=limit, query=said(prefix=prefix, sort=sort))


@app.add("show")
def show(ctx: typer.Context, service_account: Id) -> None:
    """One of them."""
    of(ctx).show(ops.SERVICE_ACCOUNT, service_account_id=service_account)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    name: Name,
    role: Annotated[str, typer.Option(help=ROLES)] = "member",
    description: Description = None,
) -> None:
    """A new one, without keys; owners decide."""
    one, own = role_typed(role, names=NAMES)
    body = said(name=name, role=one, custom_role=own, description=description)
    of(ctx).change(ops.SERVICE_ACCOUNT_CREATE, body=body)


@app.add("change", rehearses=True)
def change(
    ctx: typer.Context,
    service_account: Id,
    name: Annotated[str | None, typer.Option(help="What it is to be called.")] = None,
    role: Annotated[str | None, typer.Option(help=ROLES)] = None,
    description: Description = None,
) -> None:
    """Another name, role or description."""
    one, own = role_typed(role, names=NAMES)
    body = said(name=name, role=one, custom_role=own, description=description)
    of(ctx).change(ops.SERVICE_ACCOUNT_CHANGE, body=body, service_account_id=service_account)


@app.add("disable", rehearses=True)
def disable(ctx: typer.Context, service_account: Id) -> None:
    """Refuse its keys, from the next request on, until it is enabled."""
    of(ctx).change(ops.SERVICE_ACCOUNT_CHANGE, body={"disabled": True}, service_account_id=service_account)


@app.add("enable", rehearses=True)
def enable(ctx: typer.Context, service_account: Id) -> None:
    """Its keys are good again."""
    of(ctx).change(ops.SERVICE_ACCOUNT_CHANGE, body={"disabled": False}, service_account_id=service_account)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, service_account: Id, yes: Yes = False) -> None:
    """End it, and revoke its keys for good."""
    session = of(ctx)
    session.confirm(f"This deletes {service_account} and revokes all of its keys.", service_account, yes=yes)
    done = f"{service_account} is deleted."
    session.change(ops.SERVICE_ACCOUNT_DELETE, done=done, service_account_id=service_account)


@app.add("keys")
def keys(
    ctx: typer.Context,
    service_account: Id,
    name_prefix: NamePrefix = None,
    state: KeyState = None,
    last_used_before: UnusedSince = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Its API keys, revoked ones too; never a secret."""
    query = said(name_prefix=name_prefix, state=state, last_used_before=last_used_before, sort=sort)
    of(ctx).listed(ops.SERVICE_ACCOUNT_KEYS, KEYS_LISTED, limit=limit, query=query, service_account_id=service_account)


@app.add("key", rehearses=True)
def key(
    ctx: typer.Context,
    service_account: Id,
    name: Name,
    scope: Scopes = None,
    instance: Instances = None,
    address: Addresses = None,
    expires: Expires = None,
) -> None:
    """A new API key that acts as it, with its rights or fewer."""
    session = of(ctx)
    limits = limits_of(session, scopes=scope, instances=instance, addresses=address, expires_at=expires)
    body = {"name": name, **limits}
    session.change(ops.SERVICE_ACCOUNT_KEY_CREATE, body=body, service_account_id=service_account)
    session.output.note(ONCE)
