"""Token issuers: whose tokens let clients in by OAUTHBEARER."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, Instance, Limit, Sort, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Issuers of tokens, by which clients log in.")
LISTED = columns("id", "issuer", "audiences", "principal_claim", "scope", "keys_fetched_at", "keys_error")
Issuer = Annotated[str, typer.Argument(metavar="ISSUER", help="Its id.")]


@app.add("list")
def listed(ctx: typer.Context, instance: Instance, sort: Sort = None, limit: Limit = None) -> None:
    """Whose tokens let in, with how fetching their keys has gone."""
    of(ctx).listed(ops.TOKEN_ISSUERS, LISTED, limit=limit, query=said(sort=sort), instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, issuer: Issuer) -> None:
    """One of them."""
    of(ctx).show(ops.TOKEN_ISSUER, instance_id=instance, issuer_id=issuer)


@app.add("add", rehearses=True)
def add(
    ctx: typer.Context,
    instance: Instance,
    issuer: Annotated[str, typer.Option(help='What "iss" of a token has to be, to the letter.')],
    jwks_url: Annotated[str, typer.Option(help="Where its keys are, https.")],
    audiences: Annotated[list[str], typer.Option("--audience", help='What "aud" has to hold one of; again for more.')],
    principal_claim: Annotated[str | None, typer.Option(help="By default sub.")] = None,
    scope: Annotated[str | None, typer.Option(help="One that a token has to have; by default none.")] = None,
) -> None:
    """Trust an issuer: its tokens let in within 2 s."""
    body = said(issuer=issuer, jwks_url=jwks_url, audiences=audiences, principal_claim=principal_claim, scope=scope)
    of(ctx).change(ops.TOKEN_ISSUER_CREATE, body=body, instance_id=instance)


@app.add("remove", rehearses=True)
def remove(ctx: typer.Context, instance: Instance, issuer: Issuer, yes: Yes = False) -> None:
    """Trust it no more: connections that came by its tokens end."""
    session = of(ctx)
    session.confirm(f"This ends the trust in {issuer}, and connections that came by its tokens.", issuer, yes=yes)
    session.change(ops.TOKEN_ISSUER_DELETE, done="Trusted no more.", instance_id=instance, issuer_id=issuer)


@app.add("refresh", rehearses=True)
def refresh(ctx: typer.Context, instance: Instance, issuer: Issuer) -> None:
    """Fetch its keys now; not more than once in 30 s."""
    of(ctx).change(ops.TOKEN_ISSUER_REFRESH, instance_id=instance, issuer_id=issuer)
