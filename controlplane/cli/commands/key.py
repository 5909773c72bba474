"""API keys, and access keys for programs that speak the vendor's API. A secret is shown once, where it is made."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.options import Commands, Limit, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("API keys: for this program, and for REST.")
access_app = Commands("Access keys: SecretId and SecretKey for /compat/ckafka.")
LISTED = columns("id", "name", "prefix", "owner", "created_at", "last_used_at", "revoked_at")
ACCESS_LISTED = columns("id", "name", "secret_id", "owner", "created_at", "last_used_at", "revoked_at")
ONCE = "The secret is shown this once."
Name = Annotated[str, typer.Argument(metavar="NAME", help="To tell it from others.")]
Id = Annotated[str, typer.Argument(metavar="ID")]


@app.add("list")
def listed(ctx: typer.Context, limit: Limit = None) -> None:
    """API keys of the organisation, revoked ones too; never a secret."""
    of(ctx).listed(ops.API_KEYS, LISTED, limit=limit)


@app.add("create")
def create(ctx: typer.Context, name: Name) -> None:
    """A new key with your own rights."""
    session = of(ctx)
    session.change(ops.API_KEY_CREATE, body={"name": name})
    session.output.note(ONCE)


@app.add("revoke")
def revoke(ctx: typer.Context, key: Id, yes: Yes = False) -> None:
    """End a key, from the next request on."""
    session = of(ctx)
    session.confirm(f"This revokes {key}: whatever uses it is refused from now on.", key, yes=yes)
    session.change(ops.API_KEY_REVOKE, done=f"{key} is revoked.", key_id=key)


@access_app.add("list")
def access_listed(ctx: typer.Context, limit: Limit = None) -> None:
    """Access keys of the organisation, revoked ones too; never a secret."""
    of(ctx).listed(ops.ACCESS_KEYS, ACCESS_LISTED, limit=limit)


@access_app.add("create")
def access_create(ctx: typer.Context, name: Name) -> None:
    """A new pair of SecretId and SecretKey with your own rights."""
    session = of(ctx)
    session.change(ops.ACCESS_KEY_CREATE, body={"name": name})
    session.output.note(ONCE)


@access_app.add("revoke")
def access_revoke(ctx: typer.Context, key: Id, yes: Yes = False) -> None:
    """End an access key: what is signed with it is refused from now on."""
    session = of(ctx)
    session.confirm(f"This revokes {key}: what is signed with it is refused from now on.", key, yes=yes)
    session.change(ops.ACCESS_KEY_REVOKE, done=f"{key} is revoked.", access_key_id=key)
